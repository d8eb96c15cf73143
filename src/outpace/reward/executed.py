"""The rewards that executed code earns: syntax, security, accuracy, speed.

They are gated in that order: a sample that fails one stage earns nothing from the later ones, so a forbidden program
has no accuracy and a wrong one no speed. With their default values and weights of 1 a total reads as

    forbidden -1   no code 0   wrong 2 to 3   correct 3 to 8 (4 at the reference's speed)

so losing a test never pays, whatever the speed: the lowest speed takes less than the last test gives.
Not covered: how the facts came about (`grade`), and rewards of the text (`shape`, `thinking`).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from outpace.reward.base import PerSample, Value, passes
from outpace.schema import Outcome, Sample


@dataclass(frozen=True, kw_only=True)
class Syntax(PerSample):
    """`credit` (1.0) when the completion holds code that parses and defines the entry point, else 0.0."""

    name: ClassVar[str] = "syntax"
    credit: float = 1.0

    def score(self, sample: Sample) -> Value:
        """0.0 or `credit`."""
        return self.credit if passes(sample, "syntax") else 0.0


@dataclass(frozen=True, kw_only=True)
class Security(PerSample):
    """`credit` (+1.0) for code that keeps the rules, `penalty` (-2.0) for code that breaks them, 0.0 without code.

    A completion without code is not punished like cheating. The penalty is bounded at 4 times the credit: one cheat at
    -20 in a group of honest programs would take up the group's whole standard deviation.
    """

    name: ClassVar[str] = "security"
    credit: float = 1.0
    penalty: float = -2.0

    def __post_init__(self) -> None:
        if self.credit < 0 or not -4 * max(self.credit, 1.0) <= self.penalty <= 0:
            raise ValueError(
                "security.credit must not be negative and security.penalty must lie between -4 times the credit and 0, "
                f"got {self.credit} and {self.penalty}"
            )

    def score(self, sample: Sample) -> Value:
        """`credit`, 0.0 or `penalty`."""
        if not passes(sample, "syntax"):
            return 0.0
        return self.credit if passes(sample, "security") else self.penalty


@dataclass(frozen=True, kw_only=True)
class Accuracy(PerSample):
    """`full` (2.0) when every hidden test passed, else `partial` (1.0) times the share that passed.

    The share of an incorrect program is below 1, so part marks never reach `partial`, and `partial` never reaches
    `full`. Forbidden code and tampering earn 0.0, whatever they passed.
    """

    name: ClassVar[str] = "accuracy"
    full: float = 2.0
    partial: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.partial <= self.full:
            raise ValueError(
                f"accuracy.partial must lie between 0 and accuracy.full, got {self.partial} and {self.full}"
            )

    def score(self, sample: Sample) -> Value:
        """Between 0.0 and `full`."""
        if passes(sample, "accuracy"):
            return self.full
        if sample.verdict is None or not passes(sample, "security"):
            return 0.0
        return self.partial * min(max(sample.verdict.share_passed, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Speed(PerSample):
    """log2 of how many times faster than the reference, clipped to `low`..`high`; only for correct programs.

    It reads the end of the timing interval nearest to 1, so there is no credit for what may be noise: twice as fast
    earns 1.0, half as fast -1.0, no clear difference 0.0. Timing that is not trusted may cost but never pays. A task
    that is not timed has no speed: None. Incorrect programs: 0.0.
    """

    name: ClassVar[str] = "speed"
    low: float = -1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        if not self.low <= 0 <= self.high:
            raise ValueError(
                f"speed.low must not be above 0 and speed.high not below 0, got {self.low} and {self.high}"
            )

    def score(self, sample: Sample) -> Value:
        """Between `low` and `high`, or None when the task is not timed."""
        if not sample.task.is_timed:
            return None
        timing = sample.verdict.timing if sample.verdict else None
        if timing is None or not passes(sample, "accuracy"):
            return 0.0
        gain = _log2(timing.bound_nearest_1)
        return min(max(gain, self.low), self.high if timing.trusted else 0.0)


def _log2(ratio: float) -> float:
    """log2, and 0.0 for a ratio that no clock can have measured (zero, negative, infinite, NaN)."""
    return math.log2(ratio) if math.isfinite(ratio) and ratio > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Outcomes(PerSample):
    """One number for each outcome, looked up in `values`; outcomes that are not listed earn `other`.

    For ablations and for recipes that want a plain table instead of the graded rewards above.
    """

    name: ClassVar[str] = "outcome"
    values: dict[Outcome, float]
    other: float = 0.0

    def score(self, sample: Sample) -> Value:
        """The listed number."""
        return self.other if sample.verdict is None else self.values.get(sample.verdict.outcome, self.other)
