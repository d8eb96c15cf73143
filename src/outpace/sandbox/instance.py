"""One candidate in one child, seen from the parent: deadlines, charges, and the meaning of every way to fail.

The child's CPU time is read from the kernel's clock of its process, and charged from reading to reading, so that
no phase is untimed. A reading is exact while the child is off the CPU, which holds when child and caller are pinned
to one core. Nothing that a child says about itself is used for judging.
"""

import contextlib
import math
import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outpace.errors import SandboxUnavailable
from outpace.sandbox import failures, wire
from outpace.sandbox.settings import Layer
from outpace.schema import Args, CallResult, Failure, Limits, Outcome

if TYPE_CHECKING:
    from outpace.sandbox.forkserver import Zygote
    from outpace.sandbox.process import ProcessSandbox

_CREDENTIALS = struct.Struct("3i")
_CHUNK = 1 << 16
_START_S = 10.0
_IDLE_ALLOWANCE_NS = 4_000_000
"""CPU time that may pass after the last reply: freeing what was sent."""
_STALE_ALLOWANCE_NS = 20_000_000
"""The same where readings can be stale by a scheduler tick or more."""
_EXIT_ALLOWANCE_NS = 30_000_000
_EXIT_ALLOWANCE_NS_PER_BYTE = 0.25
"""Tearing down memory counts as the child's own CPU time: about 1 us a page, more on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one child used from fork to exit, as the kernel tells."""

    cpu_ns: int
    max_rss_bytes: int
    wall_s: float


class _Ended(Exception):
    """The child can answer no more; carries why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class ProcessInstance:
    """A candidate loaded in a fresh child; implements `outpace.schema.Instance`. Not for two threads at once."""

    def __init__(
        self, sandbox: "ProcessSandbox", source: str, entry_point: str, limits: Limits, consume_iterator: bool
    ) -> None:
        self.limits = limits
        self.usage: Usage | None = None
        """Set by `close`."""
        self.load_failure: Failure | None = None
        self.load_cpu_ns: int | None = None
        self._sandbox = sandbox
        self._owner = os.getpid()
        self._over: Failure | None = None
        self._wall_left_s = limits.wall_s
        cpu_s = math.ceil(limits.import_cpu_s + limits.cpu_s) + 1
        load = (source, entry_point, consume_iterator, limits.reply_bytes, limits.memory_bytes, cpu_s)
        self._connect(wire.encode_frame(load))
        self._charged_ns = 0
        try:
            self.load_failure = self._answer(limits.import_cpu_s).failure
        finally:
            self.load_cpu_ns = self._charged_ns

    def call(self, args: Args) -> CallResult:
        """Call the entry point with a private copy of `args`; a failure never raises."""
        if self.load_failure is not None or self._over is not None:
            return CallResult(failure=self.load_failure or self._over)
        frame = wire.encode_args(args)
        before_ns = self._charged_ns
        result = self._exchange(frame)
        return CallResult(value=result.value, failure=result.failure, cpu_ns=self._charged_ns - before_ns)

    def close(self) -> Failure | None:
        """End the child; TAMPERING when it wrote or computed when nobody had asked, else None."""
        if self.usage is not None:
            return None
        suspicion = self._suspicion() if self._over is None else None
        total_ns = self._end()
        if suspicion is None and self._over is None and self._checks_usage:
            allowance_ns = _EXIT_ALLOWANCE_NS + _EXIT_ALLOWANCE_NS_PER_BYTE * self.usage.max_rss_bytes  # type: ignore[attr-defined]
            if total_ns - self._charged_ns > allowance_ns:
                suspicion = Failure(outcome=Outcome.TAMPERING, reason="uncharged_cpu")
        return suspicion

    def __enter__(self) -> "ProcessInstance":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pidfd", None) is not None and os.getpid() == self._owner:
            self._kill()
            self._sandbox.abandon(self._zygote, self._pid_inside)
            self._release()

    @property
    def _checks_usage(self) -> bool:
        return Layer.USAGE_CHECK in self._zygote.in_force

    def _connect(self, load: bytes) -> None:
        for attempt in (1, 2):
            self._socket, theirs = socket.socketpair()
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with theirs:
                self._zygote: Zygote = self._sandbox.fork(theirs)
            self._started_s = time.monotonic()
            self._poll = select.poll()
            self._poll.register(self._socket, select.POLLIN)
            try:
                self._send(load, self._started_s + _START_S)
                self._poll.poll(_START_S * 1000)
                pid_inside, ancillary, _, _ = self._socket.recvmsg(4, socket.CMSG_SPACE(_CREDENTIALS.size))
            except OSError:
                pid_inside = b""
            if len(pid_inside) == 4:
                break
            self._socket.close()
            self._sandbox.give_up_on(self._zygote)
            if attempt == 2:
                raise SandboxUnavailable("a child could not be started; is the machine out of memory or processes?")
        self._pid_inside = int.from_bytes(pid_inside, "little")
        self._pid = _CREDENTIALS.unpack(ancillary[0][2])[0]
        self._pidfd: int | None = os.pidfd_open(self._pid)
        self._clock_id = ~self._pid << 3 | 2

    def _clock(self) -> int:
        """CPU nanoseconds of the child so far, from the kernel."""
        return time.clock_gettime_ns(self._clock_id)

    def _send(self, frame: bytes, deadline_s: float) -> None:
        """Write a frame; raises TimeoutError at the deadline, OSError when the child has gone."""
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._socket, select.POLLOUT)
                if not writable.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
                    raise TimeoutError from None

    def _charge(self) -> int:
        """Charge everything up to now; the reading."""
        if self.usage is None:
            self._charged_ns = max(self._charged_ns, self._clock())
        return self._charged_ns

    def _exchange(self, frame: bytes) -> CallResult:
        if self._checks_usage and (early := self._pending()):
            self._over = early
            return CallResult(failure=early)
        try:
            self._send(frame, time.monotonic() + self._wall_left_s)
        except TimeoutError:
            self._over = Failure(outcome=Outcome.TIMEOUT, reason="wall_limit")
            return CallResult(failure=self._over)
        except OSError:
            pass  # it is gone; reading says why
        return self._answer(self.limits.cpu_s)

    def _answer(self, cpu_s: float) -> CallResult:
        """The next reply, within what is left of the wall clock and `cpu_s` of CPU (of loading, or of all calls)."""
        start_ns = self.load_cpu_ns or 0
        try:
            kind, body = self._receive(start_ns + int(cpu_s * 1e9))
            return self._interpret(kind, body)
        except _Ended as end:
            self._over = end.failure
            if self.usage is None:
                self._end()
            return CallResult(failure=end.failure)

    def _receive(self, cpu_end_ns: int) -> tuple[int, bytes]:
        began_s = time.monotonic()
        deadline_s = began_s + self._wall_left_s
        data = bytearray()
        needed = wire.HEADER.size
        try:
            while len(data) < needed:
                part = self._read_some(max(_CHUNK, needed - len(data)), deadline_s, cpu_end_ns)
                data += part
                if needed == wire.HEADER.size and len(data) >= needed:
                    needed += wire.HEADER.unpack_from(data)[0]
                    if not 1 <= needed - wire.HEADER.size <= self.limits.reply_bytes:
                        raise _Ended(Failure(outcome=Outcome.TAMPERING, reason="frame_length"))
        finally:
            now_ns = self._charge()
            self._wall_left_s = deadline_s - time.monotonic()
        if len(data) > needed:
            raise _Ended(Failure(outcome=Outcome.TAMPERING, reason="unsolicited_bytes"))
        if now_ns > cpu_end_ns:
            raise _Ended(Failure(outcome=Outcome.TIMEOUT, reason=self._cpu_reason()))
        return data[wire.HEADER.size], bytes(data[wire.HEADER.size + 1 :])

    def _read_some(self, count: int, deadline_s: float, cpu_end_ns: int) -> bytes:
        while True:
            wall_left_s = deadline_s - time.monotonic()
            if wall_left_s <= 0:
                raise _Ended(Failure(outcome=Outcome.TIMEOUT, reason="wall_limit"))
            cpu_left_s = (cpu_end_ns - self._clock()) / 1e9
            if cpu_left_s <= 0:
                raise _Ended(Failure(outcome=Outcome.TIMEOUT, reason=self._cpu_reason()))
            if not self._poll.poll(min(wall_left_s, cpu_left_s) * 1000 + 1):
                continue
            try:
                part = self._socket.recv(count)
            except OSError:
                part = b""
            if not part:
                raise _Ended(self._cause_of_death())
            return part

    def _cpu_reason(self) -> str:
        return "import_cpu_limit" if self.load_cpu_ns is None else "cpu_limit"

    def _interpret(self, kind: int, body: bytes) -> CallResult:
        try:
            if kind == (wire.VALUE if self.load_cpu_ns is None else wire.LOADED):
                return self._tampered("a reply of another kind was due")
            value = wire.decode(body) if body else None
            failure = None if kind in (wire.LOADED, wire.VALUE) else failures.from_reply(kind, value)
        except wire.TooDeep as error:
            return CallResult(failure=Failure(outcome=Outcome.WRONG, reason="output_type", detail=str(error)))
        except wire.BadFrame as error:
            return self._tampered(str(error))
        return CallResult(value=value if failure is None else None, failure=failure)

    def _tampered(self, detail: str) -> CallResult:
        self._over = Failure(outcome=Outcome.TAMPERING, reason="malformed_frame", detail=detail)
        return CallResult(failure=self._over)

    def _pending(self) -> Failure | None:
        """TAMPERING when bytes are there that answer nothing."""
        try:
            early = self._socket.recv(1, socket.MSG_PEEK)
        except OSError:
            return None
        return Failure(outcome=Outcome.TAMPERING, reason="unsolicited_bytes") if early else None

    def _suspicion(self) -> Failure | None:
        if not self._checks_usage:
            return None
        exact = self._zygote.clock(self._sandbox.settings) == "exact"
        if self._clock() - self._charged_ns > (_IDLE_ALLOWANCE_NS if exact else _STALE_ALLOWANCE_NS):
            return Failure(outcome=Outcome.TAMPERING, reason="uncharged_cpu")
        return self._pending()

    def _cause_of_death(self) -> Failure:
        """Why the channel ended, from the wait status; raises SandboxUnavailable when we or the machine did it."""
        died_itself = self._pidfd is not None and bool(_readable(self._pidfd, 0.5))
        spent_ns = self._end()
        if not died_itself:
            return Failure(outcome=Outcome.TAMPERING, reason="channel_closed")
        if (failure := failures.from_status(self._status)) is not None:
            return failure
        if spent_ns > self.limits.cpu_s * 1e9:
            return Failure(outcome=Outcome.TIMEOUT, reason=self._cpu_reason())
        if Layer.SECCOMP in self._zygote.in_force:
            raise SandboxUnavailable("a child was killed from outside (by the out-of-memory killer or an operator)")
        return Failure(outcome=Outcome.CRASHED, reason="signal:SIGKILL")

    def _end(self) -> int:
        """Kill, reap, note the usage; the child's CPU nanoseconds from fork to exit."""
        try:
            self._kill()
            self._status, cpu_us, max_rss_bytes = self._sandbox.reap(self._zygote, self._pid_inside)
        finally:
            self._release()
        wall_s = time.monotonic() - self._started_s
        self.usage = Usage(cpu_ns=cpu_us * 1000, max_rss_bytes=max_rss_bytes, wall_s=wall_s)
        return cpu_us * 1000

    def _kill(self) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _release(self) -> None:
        self._socket.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def _readable(descriptor: int, timeout_s: float) -> list[tuple[int, int]]:
    watch = select.poll()
    watch.register(descriptor, select.POLLIN)
    return watch.poll(timeout_s * 1000)
