"""A `RewardSet` as TRL reward functions: one per component, all answering from one scoring of each batch.

TRL calls them one after another on the same lists; the first call grades and scores, the others look up. A sample
that we failed to grade is None in every component, so that TRL leaves it out of its group. Infinite and NaN values
never reach TRL: they would zero a whole group's advantages without a word.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from outpace.errors import InfrastructureError, RewardError
from outpace.reward import RewardSet
from outpace.reward.monitor import Monitor
from outpace.reward.probe import check_sign
from outpace.reward.rewardset import Prefetching, contributions
from outpace.schema import RewardVector, Sample, Task, Verdict
from outpace.training.completions import Completion, CompletionReader
from outpace.training.facts import batch_facts, sample_row, spread_facts
from outpace.training.phases import PhaseClock

RewardFunction = Callable[..., list[float | None]]
Values = dict[str, list[float | None]]


class Group(Protocol):
    """Completions of one prompt that are being graded."""

    def add(self, index: int, completion: str, *, finished: bool = True, answer: str | None = None) -> None:
        """Hand in one completion; grading starts at once."""
        ...

    def result(self) -> list[Verdict | None]:
        """The verdicts; None where we failed."""
        ...


class Grades(Protocol):
    """The part of `outpace.grade.Grader` that training uses; `outpace.testing.ScriptedGrader` has it too."""

    first_failure: str | None

    @property
    def busy_s(self) -> float:
        """Seconds so far in which something was being graded."""
        ...

    def open_group(self, task: Task, size: int) -> Group:
        """Start a group of `size` completions."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class GradedGroup:
    """The completions of one prompt with the group they are graded in; handed from the rollout to the rewards."""

    completions: list[Completion] = field(repr=False)
    group: Group = field(repr=False)

    def samples(self) -> list[Sample]:
        """Wait for the verdicts."""
        return [c.sample(v) for c, v in zip(self.completions, self.group.result(), strict=True)]


@dataclass(slots=True, eq=False, kw_only=True)
class RewardBridge:
    """Hands one scoring of each batch to as many TRL reward functions as there are components."""

    rewards: RewardSet
    grader: Grades
    tasks: dict[str, Task]
    reader: CompletionReader
    num_generations: int
    clock: PhaseClock
    separate: bool
    """True: components before their weights, for `normalize_then_sum`; False: weight times value, to be summed."""
    stop_share: float
    save_rows: Callable[[int, list[dict[str, Any]]], None]
    warn: Callable[[str], None]
    monitor: Monitor = field(default_factory=Monitor)
    _last: tuple[Any, Values] | None = None

    def functions(self) -> list[RewardFunction]:
        """One TRL reward function per component, each with the component's name."""
        return [self._function(name) for name in self.rewards.names]

    def weights(self) -> list[float]:
        """TRL's `reward_weights`: ones, unless the components are handed over before their weights."""
        final = self.rewards.weights()
        return [final[name] if self.separate else 1.0 for name in self.rewards.names]

    def _function(self, name: str) -> RewardFunction:
        def component(completion_ids: list[list[int]], **columns: Any) -> list[float | None]:
            if self._last is None or self._last[0] is not completion_ids:
                self._last = (completion_ids, self._score(completion_ids, columns))
            return self._last[1][name]

        component.__name__ = component.__qualname__ = name
        return component

    def _score(self, completion_ids: list[list[int]], columns: dict[str, Any]) -> Values:
        began = self.clock.scoring_began()
        step = int(columns["trainer_state"].global_step)
        graded = columns.get("graded") or self._grade(completion_ids, columns["task_id"])
        groups = [group.samples() for group in _each_once(graded)]
        self._refuse_too_many_failures(groups)
        vectors = self.rewards.score_groups(groups, step=step)
        weights = self.rewards.weights(step)
        figures = batch_facts(groups, vectors) | spread_facts(vectors, weights) | _prefixed(self.rewards.metrics())
        for name, value in figures.items():
            columns["log_metric"](name, value)
        for warning in self.monitor.warnings(vectors, weights):
            self.warn(warning)
        self.save_rows(step + 1, [sample_row(step + 1, s, v) for s, v in _pairs(groups, vectors)])
        values = self._values(vectors, weights)
        self.clock.scored(began)
        return values

    def _grade(self, completion_ids: list[list[int]], task_ids: Sequence[str]) -> list[GradedGroup]:
        """Grade a batch that was sampled without us; one entry per completion, like a rollout's."""
        size, rows = self.num_generations, []
        for start in range(0, len(completion_ids), size):
            task = self.tasks[task_ids[start]]
            completions = [self.reader.read(task, ids) for ids in completion_ids[start : start + size]]
            group = self.grader.open_group(task, size)
            for index, completion in enumerate(completions):
                group.add(index, completion.text, finished=completion.finished, answer=completion.answer)
            rows += [GradedGroup(completions, group)] * size
        return rows

    def _refuse_too_many_failures(self, groups: Sequence[Sequence[Sample]]) -> None:
        samples = [sample for group in groups for sample in group]
        failed = sum(sample.verdict is None for sample in samples)
        if failed >= self.stop_share * len(samples):
            raise InfrastructureError(
                f"{failed} of {len(samples)} completions could not be graded by us, so this batch says nothing about "
                f"the policy; the first failure was: {self.grader.first_failure or 'not recorded'}"
            )

    def _values(self, vectors: Sequence[Sequence[RewardVector]], weights: dict[str, float]) -> Values:
        scale = dict.fromkeys(weights, 1.0) if self.separate else weights
        rows = [row for group in vectors for row in contributions([vector.components for vector in group], scale)]
        values: Values = {name: [row[name] for row in rows] for name in self.rewards.names}
        for name, column in values.items():
            for value in column:
                if value is not None and not math.isfinite(value):
                    raise RewardError(f"the reward {name!r} gave {value}: a reward must be a finite number or None")
        return values


def _each_once(graded: Sequence[GradedGroup]) -> list[GradedGroup]:
    """The groups of a batch in order; every completion of a group names the same one."""
    return list(dict.fromkeys(graded))


def _pairs(
    groups: Sequence[Sequence[Sample]], vectors: Sequence[Sequence[RewardVector]]
) -> Iterator[tuple[Sample, RewardVector]]:
    for group, group_vectors in zip(groups, vectors, strict=True):
        yield from zip(group, group_vectors, strict=True)


def _prefixed(metrics: dict[str, float]) -> dict[str, float]:
    return {f"components/{name}": value for name, value in metrics.items()}


def doubt_about(rewards: RewardSet) -> str | None:
    """Why these rewards may teach the opposite, tried on a known good and a known bad completion; None: no doubt.

    Sets that ask a judge are not tried, for that costs money.
    """
    if any(isinstance(part.reward, Prefetching) for part in rewards.parts):
        return None
    try:
        check_sign(rewards)
    except RewardError as error:
        return f"{error} (tried before training on a correct program and a refusal)"
    return None
