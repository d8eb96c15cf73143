"""A recipe's rewards together: evaluate, gate, bound, weigh, sum.

The facts stay visible: `RewardVector.components` holds every component before its weight, `total` the weighted sum.
Not covered: advantages (`advantages`), statistics (`monitor`), and how a recipe's text becomes a set (`build`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from outpace.errors import RewardError
from outpace.reward.base import Value, passes
from outpace.reward.part import Part
from outpace.schema import RewardVector, Sample


@runtime_checkable
class Prefetching(Protocol):
    """A slow reward (a judge) that can start its work for many groups before the first value is asked for."""

    def prefetch(self, samples: Sequence[Sample]) -> None:
        """Start work on the samples and return at once."""
        ...


@runtime_checkable
class Measured(Protocol):
    """A reward with figures of its own: failures, cost, latency."""

    def metrics(self) -> Mapping[str, float]:
        """The figures since the last call, by short name."""
        ...


@runtime_checkable
class Checked(Protocol):
    """A reward that can find out, before a model is loaded, that it will not work."""

    def check(self) -> None:
        """Raise RewardError or JudgeUnavailable with the cause and the remedy."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A reward that holds threads, files or connections."""

    def close(self) -> None:
        """Let go of them; calling it twice does no harm."""
        ...


@dataclass(frozen=True, slots=True)
class RewardSet:
    """The rewards of a run, in the order of the recipe; use it as a context manager when it holds a judge."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise RewardError("rewards is empty; name at least one reward, for example {accuracy: 1.0}.")
        for part in self.parts:
            if isinstance(part.gate, tuple) and (part.gate[0] not in names or part.gate[0] == part.name):
                raise RewardError(
                    f"rewards.{part.name}.gate names {part.gate[0]!r}, which is not another component; "
                    f"the components are {', '.join(names)}."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The component names, in order."""
        return tuple(part.name for part in self.parts)

    def weights(self, step: int | None = None) -> dict[str, float]:
        """Each component's weight at `step`; None asks for the final weights."""
        return {part.name: part.weight.at(step) for part in self.parts}

    def score(self, group: Sequence[Sample], *, step: int | None = None) -> list[RewardVector]:
        """Score the samples of one prompt; a sample without a verdict has None in every component and as total."""
        return self.score_groups([group], step=step)[0]

    def score_groups(self, groups: Sequence[Sequence[Sample]], *, step: int | None = None) -> list[list[RewardVector]]:
        """Score several groups; slow rewards work on all of them at once."""
        weights = self.weights(step)
        for part in self.parts:
            if isinstance(part.reward, Prefetching) and weights[part.name] != 0:
                part.reward.prefetch([sample for group in groups for sample in group])
        return [self._score_group(group, weights) for group in groups]

    def _score_group(self, group: Sequence[Sample], weights: Mapping[str, float]) -> list[RewardVector]:
        columns = {part.name: self._column(part, group, weights[part.name]) for part in self.parts}
        for part in self.parts:
            if part.gate is not None:
                columns[part.name] = _shut(part.gate, columns[part.name], group, columns)
        rows = [{name: column[index] for name, column in columns.items()} for index in range(len(group))]
        shares = contributions(rows, weights)
        return [RewardVector(row, _total(share)) for row, share in zip(rows, shares, strict=True)]

    @staticmethod
    def _column(part: Part, group: Sequence[Sample], weight: float) -> list[Value]:
        if weight == 0 and isinstance(part.reward, Prefetching):
            return [None] * len(group)  # a judge costs money; one that does not count yet is not asked
        values = part.reward(group)
        if len(values) != len(group):
            raise RewardError(
                f"The reward {part.name!r} returned {len(values)} values for {len(group)} samples; "
                "it must return exactly one per sample."
            )
        return [
            None if sample.verdict is None else part.bound(value) for sample, value in zip(group, values, strict=True)
        ]

    def metrics(self) -> dict[str, float]:
        """The rewards' own figures since the last call, as `<component>/<figure>`."""
        return {
            f"{part.name}/{key}": figure
            for part in self.parts
            if isinstance(part.reward, Measured)
            for key, figure in part.reward.metrics().items()
        }

    def check(self) -> None:
        """Ask every reward that can tell whether it will work; call this before a model is loaded."""
        for part in self.parts:
            if isinstance(part.reward, Checked):
                part.reward.check()

    def close(self) -> None:
        """Let go of threads, files and connections."""
        for part in self.parts:
            if isinstance(part.reward, Closing):
                part.reward.close()

    def __enter__(self) -> "RewardSet":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def contributions(rows: Sequence[Mapping[str, Value]], weights: Mapping[str, float]) -> list[dict[str, Value]]:
    """Weight times value for each sample and component of one group, ready to be summed.

    A component that is unknown for one sample counts there as the mean of those where it is known, so a judge that
    fails on one sample neither helps nor hurts it; unknown for the whole group, it stays None. A sample of which
    nothing at all is known keeps None everywhere.
    """
    means = {name: _mean([row[name] for row in rows]) for name in weights}
    filled: list[dict[str, Value]] = []
    for row in rows:
        if all(row[name] is None for name in weights):
            filled.append(dict.fromkeys(weights))
            continue
        values = {name: means[name] if row[name] is None else row[name] for name in weights}
        filled.append({name: None if value is None else weights[name] * value for name, value in values.items()})
    return filled


def _mean(values: Sequence[Value]) -> Value:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def _total(shares: Mapping[str, Value]) -> Value:
    there = [share for share in shares.values() if share is not None]
    return math.fsum(there) if there else None


def _shut(
    gate: str | tuple[str, float], column: Sequence[Value], group: Sequence[Sample], columns: Mapping[str, list[Value]]
) -> list[Value]:
    """The column with what a shut gate holds back: gains become 0.0, penalties stay."""
    kept: list[Value] = []
    for index, (value, sample) in enumerate(zip(column, group, strict=True)):
        if isinstance(gate, str):
            is_open = passes(sample, gate)
        else:
            other = columns[gate[0]][index]
            is_open = other is not None and other >= gate[1]
        kept.append(value if value is None or is_open else min(value, 0.0))
    return kept
