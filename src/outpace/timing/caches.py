"""The machine's caches: how large they are, and how to empty them. Linux only; elsewhere a fixed size is assumed."""

from collections.abc import Callable
from pathlib import Path

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_ASSUMED_BYTES = 32 * 2**20
_MOST_BYTES = 512 * 2**20


def largest_cache_bytes(cpu_folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """Size of the largest cache of the first core, as the kernel reports it; None when it reports none."""
    sizes = []
    for file in cpu_folder.glob("index*/size"):
        text = file.read_text().strip()
        digits, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
        if digits.isdigit():
            sizes.append(int(digits) * _UNITS.get(unit, 1))
    return max(sizes, default=None)


def eviction_bytes() -> int:
    """What to sweep so that nothing useful stays cached: twice the largest cache, at most 512 MiB."""
    return min(2 * (largest_cache_bytes() or _ASSUMED_BYTES), _MOST_BYTES)


def sweeper(size_bytes: int) -> Callable[[], None]:
    """A function that writes to every cache line of a buffer of `size_bytes`; one that does nothing for 0."""
    if size_bytes == 0:
        return lambda: None
    import numpy as np

    buffer = np.zeros(size_bytes // 8, dtype=np.int64)
    lines = buffer[::8]

    def sweep() -> None:
        nonlocal lines
        lines += 1

    return sweep
