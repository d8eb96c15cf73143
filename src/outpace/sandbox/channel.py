"""The parent's end of a child's socket: deadlines on everything, and the kernel's word on who is at the other end."""

import select
import socket
import struct
import time

_CREDENTIALS = struct.Struct("3i")
_SMALL, _LARGE = 1 << 12, 1 << 18
"""Bytes asked for at once: most replies are small, and a buffer is allocated for each reading."""


class Channel:
    """One stream socket to one child; `theirs` is the child's end until `hand_over` is called."""

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def greeting(self, timeout_s: float) -> tuple[int, int] | None:
        """The child's process id as it sees it and as we do, from its first four bytes; None when there is no child.

        Those bytes are sent before any candidate code runs, and our view of the id comes from the kernel.
        """
        if not self._poll.poll(timeout_s * 1000):
            return None
        pid_inside, ancillary, _, _ = self._socket.recvmsg(4, socket.CMSG_SPACE(_CREDENTIALS.size))
        if len(pid_inside) < 4:
            return None
        return int.from_bytes(pid_inside, "little"), _CREDENTIALS.unpack(ancillary[0][2])[0]

    def send(self, frame: bytes, deadline_s: float) -> None:
        """Write all of `frame`; raises TimeoutError at the deadline, OSError when the child has gone."""
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._socket, select.POLLOUT)
                if not writable.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
                    raise TimeoutError from None

    def read(self, count: int, timeout_s: float) -> bytes | None:
        """Some bytes, at least one; None when none came in time; empty when the child has gone."""
        if not self._poll.poll(timeout_s * 1000 + 1):
            return None
        try:
            return self._socket.recv(min(max(_SMALL, count), _LARGE))
        except OSError:
            return b""

    def has_bytes(self) -> bool:
        """Whether something waits to be read."""
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def close(self) -> None:
        """Close both ends that are ours."""
        self._socket.close()
        self.theirs.close()
