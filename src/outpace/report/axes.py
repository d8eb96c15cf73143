"""Round numbers for axes, and the map from numbers to pixels. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low`..`high` to `start`..`end`; a scale without width maps all to the middle."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value, with one decimal."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + share * (self.end - self.start), 1)


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """About `count` round numbers (1, 2 or 5 times a power of ten apart) within `low`..`high`."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """The range of values with a little room on both sides; equal values get room of their own size."""
    low, high = min(values), max(values)
    room = (high - low) * share or abs(high) * 0.1 or 1.0
    return low - room, high + room
