"""Completions in, reward vectors out: the part that all adapters share.

Reasoning is split off by token ids where a tokenizer is at hand, else by the text; the samples of one prompt are graded
together, so that their speeds are measured on the same inputs and group rewards see the group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from outpace.errors import RewardError
from outpace.extract import ReasoningMarkers, split_reasoning, split_reasoning_ids
from outpace.reward import RewardSet, build
from outpace.schema import RewardVector, Sample, Task, Verdict


class Grades(Protocol):
    """The part of `outpace.grade.Grader` that adapters use; `outpace.testing.ScriptedGrader` has it too."""

    def grade_group(
        self,
        completions_G: Sequence[str],
        task: Task,
        *,
        finished_G: Sequence[bool] | None = None,
        answers_G: Sequence[str | None] | None = None,
    ) -> list[Verdict | None]:
        """One verdict per completion; None where grading itself failed."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """One completion taken apart."""

    text: str
    ids: tuple[int, ...] | None
    answer: str | None
    reasoning: str | None
    reasoning_ids: tuple[int, ...] | None
    finished: bool
    split_by_ids: bool
    """False: the text was split; the grader then does so itself, and says more precisely why there is no answer."""

    def sample(self, task: Task, verdict: Verdict | None) -> Sample:
        """With its verdict, as rewards take it."""
        return Sample(
            task=task,
            completion=self.text,
            completion_ids=self.ids,
            finished=self.finished,
            answer=self.answer,
            reasoning=self.reasoning,
            reasoning_ids=self.reasoning_ids,
            verdict=verdict,
        )


class Scorer:
    """Grades and rewards completions of known tasks; as safe to share between threads as its grader is.

    Args:
        grader: An `outpace.Grader`; the caller closes it.
        tasks: The tasks that completions may belong to.
        rewards: A `RewardSet`, or what `outpace.reward.build` takes.
        tokenizer: A Hugging Face tokenizer; with it reasoning is split off by token ids and ends are recognised.
        eos_token_ids: All tokens that end a completion; by default the tokenizer's own.
    """

    def __init__(
        self,
        grader: Grades,
        tasks: Sequence[Task],
        rewards: RewardSet | Mapping[str, Any] | str = "default",
        *,
        tokenizer: Any = None,
        eos_token_ids: Sequence[int] | None = None,
    ) -> None:
        self.rewards = rewards if isinstance(rewards, RewardSet) else build(rewards)
        self._grader = grader
        self._tasks = {task.id: task for task in tasks}
        self._tokenizer = tokenizer
        self._markers = ReasoningMarkers() if tokenizer is None else ReasoningMarkers.from_tokenizer(tokenizer)
        self._ends = frozenset(eos_token_ids or ([] if tokenizer is None else [tokenizer.eos_token_id]))
        self._opens_thinking: dict[str, bool] = {}

    @property
    def task_ids(self) -> list[str]:
        """The ids of all tasks, in the order given."""
        return list(self._tasks)

    def task(self, task_id: str) -> Task:
        """The task with that id; raises RewardError when this scorer does not have it."""
        if task_id not in self._tasks:
            raise RewardError(
                f"The completion's task_id {task_id!r} is not among the {len(self._tasks)} tasks given; "
                "pass every task that the data set uses."
            )
        return self._tasks[task_id]

    def score_groups(
        self,
        groups: Sequence[tuple[str, Sequence[str], Sequence[Sequence[int]] | None]],
        *,
        step: int | None = None,
    ) -> list[list[RewardVector]]:
        """Score groups, each `(task_id, completions, their token ids or None)`; one vector per completion."""
        samples = []
        for task_id, texts, ids in groups:
            task = self.task(task_id)
            answered = [self.take_apart(task, text, ids[i] if ids else None) for i, text in enumerate(texts)]
            verdicts = self._grader.grade_group(
                [one.text for one in answered],
                task,
                finished_G=[one.finished for one in answered],
                answers_G=[one.answer if one.split_by_ids else None for one in answered],
            )
            samples.append([one.sample(task, verdict) for one, verdict in zip(answered, verdicts, strict=True)])
        return self.rewards.score_groups(samples, step=step)

    def score(self, task_id: str, completion: str, *, step: int | None = None) -> RewardVector:
        """Score one completion, as a group of its own."""
        return self.score_groups([(task_id, [completion], None)], step=step)[0][0]

    def take_apart(self, task: Task, text: str, ids: Sequence[int] | None) -> Answered:
        """Split reasoning and answer; an answer of "" means that thinking was cut off."""
        known = None if ids is None else tuple(ids)
        finished = known is None or not self._ends or (bool(known) and known[-1] in self._ends)
        if known is not None and self._markers.known:
            split = split_reasoning_ids(known, self._markers, already_thinking=self._prompt_opens_thinking(task))
            decode: Callable[..., str] = self._tokenizer.decode
            answer = decode(list(split.answer_ids), skip_special_tokens=True)
            thought = decode(list(split.reasoning_ids), skip_special_tokens=True) if split.reasoning_ids else None
            return Answered(text, known, answer, thought, split.reasoning_ids or None, finished, split_by_ids=True)
        thought, found = split_reasoning(text)
        return Answered(text, known, found or "", thought, None, finished, split_by_ids=False)

    def _prompt_opens_thinking(self, task: Task) -> bool:
        """Whether the chat template ends a prompt inside the reasoning; the same for every prompt of a task."""
        if task.id not in self._opens_thinking:
            text = self._tokenizer.apply_chat_template(list(task.prompt), add_generation_prompt=True, tokenize=False)
            ids = self._tokenizer.encode(text, add_special_tokens=False)
            seen = [i for i in ids if i in (self._markers.think, self._markers.end_think)]
            self._opens_thinking[task.id] = bool(seen) and seen[-1] == self._markers.think
        return self._opens_thinking[task.id]
