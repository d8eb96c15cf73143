"""How fast the core runs at this moment: the parent times a fixed loop of its own before and after every call.

The kernel's CPU clock does not count waiting, but it does stretch: while the other half of a physical core is busy
(hyper-threads, virtual CPUs), the same work takes up to 1.9 times the CPU time, and not every program suffers
alike. So each trial carries the pace at which it ran, trials at the best pace of a measurement are preferred, and a
call waits a little for a calm moment. The best pace is the 5 % quantile of the last seconds: a lone fast reading (they
come 25 % too fast now and then) is no measure, and on a machine that is always busy the busy pace is the best one.

Not covered: what happens within one call, between two readings of the pace.
"""

import bisect
import math
import threading
import time
from collections import deque
from collections.abc import Callable

from outpace.timing.settings import TimingSettings

_LOOPS = 400
_PAUSE_S = 0.0005
_MEMORY_S = 3.0


def spin_ns() -> int:
    """CPU nanoseconds that the calling thread needs for a fixed loop (about 30 us)."""
    start_ns, s = time.thread_time_ns(), 0
    for i in range(_LOOPS):
        s = (s * 31 + i) % 1000003
    return time.thread_time_ns() - start_ns


class Pacer:
    """Reads the pace of the core that the calling thread runs on, and waits for calm within a budget."""

    def __init__(
        self,
        read_ns: Callable[[], int] = spin_ns,
        sleep_s: Callable[[float], None] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_ns, self._sleep_s, self._now_s = read_ns, sleep_s, now_s
        self._recent: deque[tuple[float, int]] = deque()
        self._sorted_ns: list[int] = []
        self._calm_pace = 1.0
        self._pauses_left = 0

    def begin(self, settings: TimingSettings) -> None:
        """Start a measurement: what counts as calm, and how long it may wait for it."""
        self._calm_pace = settings.calm_pace
        self._pauses_left = round(settings.calm_wait_s / _PAUSE_S)

    def read(self) -> int:
        """The pace now, in nanoseconds per loop; a slow reading is taken twice, since a lone one is often a tick."""
        ns = self._read_ns()
        if not self.is_calm(ns):
            ns = min(ns, self._read_ns())
        self._remember(ns)
        return ns

    @property
    def best_ns(self) -> float:
        """The best pace of the last seconds; infinite before the first reading."""
        return self._sorted_ns[len(self._sorted_ns) // 20] if self._sorted_ns else math.inf

    def wait_for_calm(self, last_ns: int | None) -> int:
        """The pace now, after waiting for a calm moment as long as the budget of the measurement allows.

        `last_ns` is a reading made just before; a calm one is not repeated.
        """
        ns = last_ns if last_ns is not None and self.is_calm(last_ns) else self.read()
        while not self.is_calm(ns) and self._pauses_left > 0:
            self._pauses_left -= 1
            self._sleep_s(_PAUSE_S)
            ns = self.read()
        return ns

    def is_calm(self, ns: float) -> bool:
        """Whether a reading is near the best pace."""
        return ns <= self.best_ns * self._calm_pace

    def _remember(self, ns: int) -> None:
        now_s = self._now_s()
        self._recent.append((now_s, ns))
        bisect.insort(self._sorted_ns, ns)
        while self._recent[0][0] < now_s - _MEMORY_S:
            _, forgotten_ns = self._recent.popleft()
            del self._sorted_ns[bisect.bisect_left(self._sorted_ns, forgotten_ns)]


_OWN = threading.local()


def pacer_of_this_thread() -> Pacer:
    """The pacer of the calling thread, which remembers the best pace from one measurement to the next."""
    if not hasattr(_OWN, "pacer"):
        _OWN.pacer = Pacer()
    pacer: Pacer = _OWN.pacer
    return pacer
