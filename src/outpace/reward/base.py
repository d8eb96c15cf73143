"""What a reward is.

A reward turns facts about one group into numbers. It runs no candidate, changes nothing, and answers None where the
fact it needs is not known. Weights, gates, clips and curricula are not its business: `rewardset` has them.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from outpace.schema import Outcome, Sample

Value = float | None
"""What a reward says of one sample; None means "not known", never zero."""


@runtime_checkable
class Reward(Protocol):
    """Anything that scores the samples of one prompt together."""

    name: str

    def __call__(self, group: Sequence[Sample]) -> list[Value]:
        """One value per sample, in order; None where `sample.verdict` is None."""
        ...


class PerSample(ABC):
    """A reward that looks at each sample alone; it leaves out the samples that we failed to grade."""

    name: ClassVar[str]

    def __call__(self, group: Sequence[Sample]) -> list[Value]:
        """One value per sample: `score` where a verdict is there, else None."""
        return [None if sample.verdict is None else self.score(sample) for sample in group]

    @abstractmethod
    def score(self, sample: Sample) -> Value:
        """The value of one sample that has a verdict."""


STAGES = ("syntax", "security", "accuracy")
"""The stages a gate can ask for, in running order; each needs those before it."""

_FAILS_SYNTAX = frozenset({Outcome.NO_CODE, Outcome.SYNTAX_ERROR})
_FAILS_SECURITY = frozenset({Outcome.FORBIDDEN, Outcome.TAMPERING})


def passes(sample: Sample, stage: str) -> bool:
    """Whether the sample got through `stage` (one of `STAGES`) and all before it; False without a verdict."""
    if sample.verdict is None:
        return False
    outcome = sample.verdict.outcome
    if stage == "accuracy":
        return outcome is Outcome.CORRECT
    if outcome in _FAILS_SYNTAX:
        return False
    return stage == "syntax" or outcome not in _FAILS_SECURITY


def nearest(name: str, names: Iterable[str]) -> str:
    """A clause ` (did you mean 'x'?)`, or nothing when no name is close."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
