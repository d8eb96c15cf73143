"""Length-prefixed messages between a pool and its scoring processes (both ours; never a candidate's bytes)."""

import socket
import struct

_HEADER = struct.Struct("<Q")


def send(channel: socket.socket, data: bytes) -> None:
    """Send one message; raises OSError when the other side has gone."""
    channel.sendall(_HEADER.pack(len(data)) + data)


def receive(channel: socket.socket) -> bytes:
    """The next message; raises EOFError when the other side has closed, TimeoutError by the socket's timeout."""
    (length,) = _HEADER.unpack(_exactly(channel, _HEADER.size))
    return _exactly(channel, length)


def _exactly(channel: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
