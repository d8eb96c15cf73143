"""The seed article's speed harness, rebuilt faithfully so that ours can stand beside it in one run.

It runs the candidate by `exec` in its own interpreter, sweeps 1 GB of memory before every call, reads the wall
clock, takes the median of three calls on one input, and times the reference once. It is no sandbox: trusted
programs only.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from outpace.schema import Args

SWEEP_BYTES = 2**30


class ArticleHarness:
    """Speed ratios as the article measures them; the reference is timed when the harness is made."""

    def __init__(self, reference: str, entry_point: str, args: Args, sweep_bytes: int = SWEEP_BYTES) -> None:
        import numpy as np

        self._entry_point, self._args = entry_point, args
        self._buffer = np.zeros(sweep_bytes, dtype=np.uint8)
        self._buffer += 1
        self._reference_s = self.median_s(reference)

    def ratio(self, source: str) -> float:
        """Reference time over candidate time; above 1 is faster than the reference."""
        return self._reference_s / self.median_s(source)

    def median_s(self, source: str) -> float:
        """Median wall-clock seconds of three calls, each after a sweep."""
        namespace: dict[str, Any] = {}
        exec(source, namespace)  # noqa: S102 - the article's way, on programs of this package
        return statistics.median(self._once_s(namespace[self._entry_point]) for _ in range(3))

    def _once_s(self, function: Callable[..., Any]) -> float:
        self._buffer ^= 1
        start_s = time.perf_counter()
        function(*self._args)
        return time.perf_counter() - start_s
