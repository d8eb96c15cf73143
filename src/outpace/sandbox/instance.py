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
import time
from typing import TYPE_CHECKING

from outpace.errors import SandboxUnavailable
from outpace.sandbox import failures, wire
from outpace.sandbox.channel import Channel
from outpace.sandbox.settings import Layer
from outpace.schema import Args, CallResult, Failure, Limits, Outcome, Usage

if TYPE_CHECKING:
    from outpace.sandbox.forkserver import Zygote
    from outpace.sandbox.process import ProcessSandbox

_START_S = 10.0
_IDLE_ALLOWANCE_NS = 50_000_000
"""CPU time that may pass after the last reply: freeing what was sent, readings that are stale by a scheduler tick, and
what a hypervisor takes from the core meanwhile, which the kernel charges to whoever is on it (6.5 ms were seen). No
reading follows, so that work done then can make no call look cheaper."""
_EXIT_ALLOWANCE_NS = _IDLE_ALLOWANCE_NS + 30_000_000
_EXIT_ALLOWANCE_NS_PER_BYTE = 0.25
"""Tearing down memory counts as the child's own CPU time: about 1 us a page, more on a busy machine."""


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
        self._pidfd: int | None = None
        self._charged_ns = 0
        self._owner = os.getpid()
        self._over: Failure | None = None
        self._number = 0
        """Frames sent since the first; a reply says which one it answers."""
        self._wall_left_s = limits.wall_s
        if len(source.encode("utf-8", "surrogatepass")) > limits.source_bytes:
            self.load_failure = Failure(outcome=Outcome.RESOURCE, reason="source_size")
            return
        cpu_s = math.ceil(limits.import_cpu_s + limits.cpu_s) + 1
        load = (source, entry_point, consume_iterator, limits.reply_bytes, limits.memory_bytes, cpu_s)
        self._connect(wire.encode_frame(load))
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
        if self._pidfd is None:
            return None
        suspicion = self._suspicion() if self._over is None else None
        usage = self._end()
        if suspicion is None and self._over is None and self._checks_usage:
            allowance_ns = _EXIT_ALLOWANCE_NS + _EXIT_ALLOWANCE_NS_PER_BYTE * usage.max_rss_bytes
            if usage.cpu_ns - self._charged_ns > allowance_ns:
                suspicion = _tampering("uncharged_cpu")
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
        greeting = self._fork(load) or self._fork(load)
        if greeting is None:
            raise SandboxUnavailable("a child could not be started; is the machine out of memory or processes?")
        self._pid_inside, self._pid = greeting
        self._pidfd = os.pidfd_open(self._pid)
        self._clock_id = ~self._pid << 3 | 2

    def _fork(self, load: bytes) -> tuple[int, int] | None:
        self._channel = Channel()
        self._started_s = time.monotonic()
        try:
            self._zygote: Zygote = self._sandbox.fork(self._channel.theirs)
            self._channel.theirs.close()
            self._channel.send(load, self._started_s + _START_S)
            greeting = self._channel.greeting(_START_S)
        except OSError:
            greeting = None
        except BaseException:
            self._channel.close()
            raise
        if greeting is None:
            self._channel.close()
            self._sandbox.give_up_on(self._zygote)
        return greeting

    def _clock(self) -> int:
        """CPU nanoseconds of the child so far, from the kernel."""
        try:
            return time.clock_gettime_ns(self._clock_id)
        except OSError as error:  # only we have it reaped: its fork server must have died
            self._release()
            raise SandboxUnavailable("a child vanished together with its fork server") from error

    def _charge(self) -> int:
        """Charge everything up to now; the reading."""
        if self._pidfd is not None:
            self._charged_ns = max(self._charged_ns, self._clock())
        return self._charged_ns

    def _exchange(self, frame: bytes) -> CallResult:
        if self._checks_usage and (early := self._pending()):
            self._over = early
            return CallResult(failure=early)
        self._number += 1
        try:
            self._channel.send(frame, time.monotonic() + self._wall_left_s)
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
        """Kind and body of the reply to the last frame."""
        deadline_s = time.monotonic() + self._wall_left_s
        head, size = b"", wire.REPLY_HEADER.size
        data = bytearray()
        try:
            while len(data) < size:
                data += self._read_some(size - len(data), deadline_s, cpu_end_ns)
                if not head and len(data) >= size:
                    head = bytes(data[:size])
                    size += wire.REPLY_HEADER.unpack(head)[0]
                    if size > wire.REPLY_HEADER.size + self.limits.reply_bytes:
                        raise _Ended(_tampering("frame_length"))
        finally:
            now_ns = self._charge()
            self._wall_left_s = deadline_s - time.monotonic()
        _, kind, number = wire.REPLY_HEADER.unpack(head)
        if self._checks_usage and (len(data) > size or number != self._number):
            raise _Ended(_tampering("unsolicited_bytes"))
        if now_ns > cpu_end_ns:
            raise _Ended(Failure(outcome=Outcome.TIMEOUT, reason=self._cpu_reason()))
        return kind, bytes(data[wire.REPLY_HEADER.size : size])

    def _read_some(self, count: int, deadline_s: float, cpu_end_ns: int) -> bytes:
        while True:
            wall_left_s = deadline_s - time.monotonic()
            if wall_left_s <= 0:
                raise _Ended(Failure(outcome=Outcome.TIMEOUT, reason="wall_limit"))
            cpu_left_s = (cpu_end_ns - self._clock()) / 1e9
            if cpu_left_s <= 0:
                raise _Ended(Failure(outcome=Outcome.TIMEOUT, reason=self._cpu_reason()))
            part = self._channel.read(count, min(wall_left_s, cpu_left_s))
            if part:
                return part
            if part is not None:
                raise _Ended(self._cause_of_death())

    def _cpu_reason(self) -> str:
        return "import_cpu_limit" if self.load_cpu_ns is None else "cpu_limit"

    def _interpret(self, kind: int, body: bytes) -> CallResult:
        try:
            if kind == (wire.VALUE if self.load_cpu_ns is None else wire.LOADED):
                raise _Ended(_tampering("malformed_frame", "a reply of another kind was due"))
            value = wire.decode(body) if body or kind == wire.VALUE else None
            failure = None if kind in (wire.LOADED, wire.VALUE) else failures.from_reply(kind, value)
        except wire.TooDeep as error:
            return CallResult(failure=Failure(outcome=Outcome.WRONG, reason="output_type", detail=str(error)))
        except wire.BadFrame as error:
            raise _Ended(_tampering("malformed_frame", str(error))) from error
        return CallResult(value=value if failure is None else None, failure=failure)

    def _pending(self) -> Failure | None:
        """TAMPERING when bytes are there that answer nothing."""
        return _tampering("unsolicited_bytes") if self._channel.has_bytes() else None

    def _suspicion(self) -> Failure | None:
        if not self._checks_usage:
            return None
        if self._clock() - self._charged_ns > _IDLE_ALLOWANCE_NS:
            return _tampering("uncharged_cpu")
        return self._pending()

    def _cause_of_death(self) -> Failure:
        """Why the channel ended, from the wait status; raises SandboxUnavailable when we or the machine did it."""
        watch = select.poll()
        watch.register(self._pidfd or -1, select.POLLIN)
        died_itself = bool(watch.poll(500))
        usage = self._end()
        if not died_itself:
            return _tampering("channel_closed")
        if (failure := failures.from_status(self._status)) is not None:
            return failure
        if usage.cpu_ns > self.limits.cpu_s * 1e9:
            return Failure(outcome=Outcome.TIMEOUT, reason=self._cpu_reason())
        if Layer.SECCOMP in self._zygote.in_force:
            raise SandboxUnavailable("a child was killed from outside (by the out-of-memory killer or an operator)")
        return Failure(outcome=Outcome.CRASHED, reason="signal:SIGKILL")

    def _end(self) -> Usage:
        """Kill, reap, note the usage."""
        try:
            self._kill()
            self._status, cpu_us, max_rss_bytes = self._sandbox.reap(self._zygote, self._pid_inside)
        finally:
            self._release()
        wall_s = time.monotonic() - self._started_s
        self.usage = Usage(cpu_ns=cpu_us * 1000, max_rss_bytes=max_rss_bytes, wall_s=wall_s)
        return self.usage

    def _kill(self) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _release(self) -> None:
        self._channel.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def _tampering(reason: str, detail: str = "") -> Failure:
    return Failure(outcome=Outcome.TAMPERING, reason=reason, detail=detail)
