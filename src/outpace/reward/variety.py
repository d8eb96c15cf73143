"""Rewards against sameness: repetition within one completion, and a group that collapses to one program."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from outpace.fingerprint import program_of
from outpace.reward.base import PerSample, Value, passes
from outpace.schema import Sample


@dataclass(frozen=True, kw_only=True)
class Repetition(PerSample):
    """Minus the share of `ngram`-token stretches that occurred before; 0.0 (none) to -1.0 (nothing else).

    Reads token ids where they are known, else words. Code repeats short stretches honestly: keep `ngram` long.
    """

    name: ClassVar[str] = "repetition"
    ngram: int = 16

    def __post_init__(self) -> None:
        if self.ngram < 1:
            raise ValueError(f"repetition.ngram must be at least 1, got {self.ngram}")

    def score(self, sample: Sample) -> Value:
        """-1.0 to 0.0; 0.0 for a completion shorter than `ngram`."""
        units: Sequence[Hashable] = sample.completion_ids or sample.completion.split()
        stretches = [tuple(units[i : i + self.ngram]) for i in range(len(units) - self.ngram + 1)]
        return (len(set(stretches)) - len(stretches)) / len(stretches) if stretches else 0.0


@dataclass(frozen=True, kw_only=True)
class GroupDiversity:
    """1.0 shared among the samples of a group whose programs are the same but for names, comments and layout.

    A program that nobody else wrote earns 1.0, one written by n samples 1/n each, so the group's sum is its number of
    distinct programs and a collapsed group earns least. Code that fails the stage `among` (`syntax`, `security` or
    `accuracy`) earns 0.0, so being different is no way round being right. Equal behaviour by different means counts as
    different.
    """

    name: ClassVar[str] = "group_diversity"
    among: str = "accuracy"

    def __post_init__(self) -> None:
        if self.among not in ("syntax", "security", "accuracy"):
            raise ValueError(f"group_diversity.among must be syntax, security or accuracy, got {self.among!r}")

    def __call__(self, group: Sequence[Sample]) -> list[Value]:
        """One value per sample, 0.0 to 1.0; None without a verdict."""
        shapes = [_shape(sample) if passes(sample, self.among) else None for sample in group]
        counts = Counter(shape for shape in shapes if shape is not None)
        return [
            None if sample.verdict is None else 0.0 if shape is None else 1.0 / counts[shape]
            for sample, shape in zip(group, shapes, strict=True)
        ]


def _shape(sample: Sample) -> str | None:
    return program_of(sample.verdict, sample.task.entry_point) if sample.verdict else None
