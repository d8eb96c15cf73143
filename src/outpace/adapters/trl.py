"""outpace's rewards in a plain TRL script: `GRPOTrainer(reward_funcs=reward_funcs(grader, tasks), ...)`.

Works with every TRL trainer that takes `reward_funcs`. TRL calls one function per component on the same lists; the
first call grades and scores the batch, the others look it up, so each completion runs once. Not covered: streaming and
resumable runs (`outpace train` has them).
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from outpace.adapters.scoring import Grades, Scorer
from outpace.errors import RewardError
from outpace.reward import RewardSet
from outpace.reward.monitor import Monitor, statistics
from outpace.reward.rewardset import contributions
from outpace.schema import RewardVector, Task

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger("outpace.reward")

Column = list[float | None]
RewardFunc = Callable[..., Column]
AsyncRewardFunc = Callable[..., Awaitable[Column]]
Rewards = RewardSet | Mapping[str, Any] | str
Function = TypeVar("Function", bound=Callable[..., Any])


def dataset(tasks: Sequence[Task]) -> "datasets.Dataset":
    """A data set with the columns `prompt` (messages) and `task_id`, one row per task."""
    import datasets

    return datasets.Dataset.from_list([{"prompt": [dict(m) for m in t.prompt], "task_id": t.id} for t in tasks])


def reward_funcs(
    grader: Grades,
    tasks: Sequence[Task],
    rewards: Rewards = "default",
    *,
    tokenizer: Any = None,
    num_generations: int | None = None,
    weighted: bool = True,
) -> list[RewardFunc]:
    """One TRL reward function per component, each with the component's name, so that TRL logs them apart.

    Args:
        grader: An `outpace.Grader`; close it after training.
        tasks: The tasks of the data set; its column `task_id` says which one a row is.
        rewards: A preset's name, a recipe's `rewards`, or a `RewardSet`.
        tokenizer: The model's tokenizer; give it for models that think, and to tell cut-off completions.
        num_generations: TRL's setting. None: neighbours with one task are one group, which is the same thing unless
            two groups of one task meet in a batch.
        weighted: True: values carry their weight (and curriculum), for TRL's default of summing. False: give the
            weights to TRL as `reward_weights`, for `multi_objective_aggregation="normalize_then_sum"`.
    """
    batch = _Batch(Scorer(grader, tasks, rewards, tokenizer=tokenizer), num_generations, weighted)

    def function(name: str) -> RewardFunc:
        def component(*, completions: Sequence[Any], **columns: Any) -> Column:
            return batch.column(name, completions, columns)

        return _named(component, name)

    return [function(name) for name in batch.names]


def async_reward_funcs(
    grader: Grades,
    tasks: Sequence[Task],
    rewards: Rewards = "default",
    *,
    tokenizer: Any = None,
    num_generations: int | None = None,
    weighted: bool = True,
) -> list[AsyncRewardFunc]:
    """The same as `reward_funcs`, awaitable: TRL then runs them beside other async rewards."""
    batch = _Batch(Scorer(grader, tasks, rewards, tokenizer=tokenizer), num_generations, weighted)

    def function(name: str) -> AsyncRewardFunc:
        async def component(*, completions: Sequence[Any], **columns: Any) -> Column:
            return await asyncio.to_thread(batch.column, name, completions, columns)

        return _named(component, name)

    return [function(name) for name in batch.names]


def _named(function: Function, name: str) -> Function:
    """TRL keys its metrics by `__name__`."""
    for attribute in ("__name__", "__qualname__"):
        setattr(function, attribute, name)
    return function


class _Batch:
    """The last batch scored, for the calls that ask for its other components."""

    def __init__(self, scorer: Scorer, num_generations: int | None, weighted: bool) -> None:
        self.names = scorer.rewards.names
        self._scorer = scorer
        self._num_generations = num_generations
        self._weighted = weighted
        self._monitor = Monitor()
        self._lock = threading.Lock()
        self._last: Sequence[Any] | None = None
        self._columns: dict[str, Column] = {}

    def column(self, name: str, completions: Sequence[Any], columns: Mapping[str, Any]) -> Column:
        with self._lock:  # async calls arrive together; the first one works, the others wait for it
            if self._last is not completions:
                self._columns = self._score(completions, columns)
                self._last = completions
            return list(self._columns[name])

    def _score(self, completions: Sequence[Any], columns: Mapping[str, Any]) -> dict[str, Column]:
        task_ids = columns.get("task_id")
        if task_ids is None:
            raise RewardError(
                "The data set has no column task_id; build it with outpace.adapters.trl.dataset(tasks), or add one."
            )
        step = getattr(columns.get("trainer_state"), "global_step", None)
        ids = columns.get("completion_ids")
        texts = [_text(completion) for completion in completions]
        groups = [
            (task_ids[part.start], texts[part], None if ids is None else ids[part]) for part in self._parts(task_ids)
        ]
        vectors = self._scorer.score_groups(groups, step=step)
        weights = self._scorer.rewards.weights(step)
        if not self._weighted:
            weights = dict.fromkeys(weights, 1.0)
        self._report(vectors, columns, step)
        rows = [row for group in vectors for row in contributions([vector.components for vector in group], weights)]
        return {name: [row[name] for row in rows] for name in self.names}

    def _report(self, vectors: Sequence[Sequence[RewardVector]], columns: Mapping[str, Any], step: int | None) -> None:
        """Figures of groups and components to TRL's log, and what is wrong with them to ours."""
        weights = self._scorer.rewards.weights(step)
        for warning in self._monitor.warnings(vectors, weights):
            _log.warning(warning)
        if log_metric := columns.get("log_metric"):
            for figure, value in (statistics(vectors, weights) | self._scorer.rewards.metrics()).items():
                log_metric(figure, value)

    def _parts(self, task_ids: Sequence[str]) -> Iterator[slice]:
        """The stretches of the batch that belong to one prompt."""
        start = 0
        for end in range(1, len(task_ids) + 1):
            is_full = self._num_generations is not None and end - start == self._num_generations
            if end == len(task_ids) or is_full or task_ids[end] != task_ids[start]:
                yield slice(start, end)
                start = end


def _text(completion: Any) -> str:
    """The text of a completion: a string, or chat messages as TRL passes them for chat prompts."""
    if isinstance(completion, str):
        return completion
    return "".join(str(message.get("content") or "") for message in completion)
