"""Sampling for TRL's `rollout_func`: each completion is graded as soon as it ends, while others are still written.

Grading runs beside sampling: tests when a completion ends, timing when a few of its group are right and a scoring
process is idle, when many are, or when all are there. A batch that does not fit in memory is drawn in halves. Not
covered: `sampler: vllm` and `transformers`, where TRL samples and the rewards grade.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from outpace.errors import InfrastructureError, TrainingDiverged
from outpace.policy import Generation, Policy, SamplingSettings, sample
from outpace.policy.sampler import forget
from outpace.schema import Message, Task
from outpace.training.completions import Completion, CompletionReader
from outpace.training.memory import free_memory, is_out_of_memory
from outpace.training.phases import PhaseClock
from outpace.training.rewards import GradedGroup, Grades, Group
from outpace.training.schedule import PromptKey, prompt_key


@dataclass(slots=True, eq=False, kw_only=True)
class StreamedRollout:
    """A `rollout_func`: called with a batch of prompts, each already repeated once per completion wanted."""

    policy: Policy
    grader: Grades
    tasks: dict[PromptKey, Task]
    reader: CompletionReader
    settings: SamplingSettings
    encode: Callable[[Sequence[Message]], tuple[int, ...]]
    num_generations: int
    seed: int
    clock: PhaseClock
    part: int = 0
    """Rank of this process: it draws other random numbers than the others."""
    frees_memory: bool = False
    """Give the sampler's cache and graphs back before training; capturing them again costs about a second a step."""

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """TRL's contract: ids of prompts and completions, row by row; extra fields reach the rewards."""
        began, graded_s = self.clock.now, self.grader.busy_s
        prompts_P = prompts[:: self.num_generations]
        tasks_P = [self.tasks[prompt_key(prompt)] for prompt in prompts_P]
        groups_P = [self.grader.open_group(task, self.num_generations) for task in tasks_P]
        policy = replace(self.policy, model=trainer.accelerator.unwrap_model(trainer.model))
        drawn = self._draw(policy, prompts_P, tasks_P, groups_P, int(trainer.state.global_step))
        if self.frees_memory:
            _give_back(policy)
        self.clock.sampled(began, self.grader.busy_s - graded_s)
        graded = [GradedGroup([row[1] for row in rows], group) for rows, group in zip(drawn, groups_P, strict=True)]
        return {
            "prompt_ids": [list(generation.prompt_ids) for rows in drawn for generation, _ in rows],
            "completion_ids": [list(generation.completion_ids) for rows in drawn for generation, _ in rows],
            "logprobs": None,  # the trainer recomputes them; ours would only serve vLLM's correction
            "graded": [group for group in graded for _ in range(self.num_generations)],
        }

    def _draw(
        self, policy: Policy, prompts_P: list[Any], tasks_P: list[Task], groups_P: list[Group], step: int
    ) -> list[list[tuple[Generation, Completion]]]:
        """Completions by prompt; each was handed to its group when it ended."""
        found: dict[tuple[int, int], tuple[Generation, Completion]] = {}
        ids_P = [self.encode(prompt) for prompt in prompts_P]

        def draw(start: int, end: int) -> None:
            def finish(generation: Generation) -> None:
                index, member = start + generation.prompt_index, generation.member
                if (index, member) in found:
                    return  # this part of the batch is drawn again, in halves
                completion = self._read(tasks_P[index], generation)
                groups_P[index].add(member, completion.text, finished=completion.finished, answer=completion.answer)
                found[index, member] = (generation, completion)

            sample(
                policy,
                ids_P[start:end],
                self.settings,
                num_generations=self.num_generations,
                seed=_mix(self.seed, step, self.part, start),
                on_finish=finish,
            )

        _in_halves(draw, partial(_give_back, policy), 0, len(ids_P))
        return [[found[p, g] for g in range(self.num_generations)] for p in range(len(ids_P))]

    def _read(self, task: Task, generation: Generation) -> Completion:
        if not all(logprob > float("-inf") for logprob in generation.logprobs):
            raise TrainingDiverged(
                f"a token of a completion for {task.id} was drawn with a log-probability that is not finite: use "
                "float32 or bfloat16 instead of float16, or go back to an earlier checkpoint"
            )
        return self.reader.read(task, generation.completion_ids, generation.prompt_ids, finished=generation.finished)


def _give_back(policy: Policy) -> None:
    """Free the sampler's cache and graphs, and what the graphs worked with."""
    forget(policy)
    free_memory()


def _in_halves(draw: Callable[[int, int], None], give_back: Callable[[], None], start: int, end: int) -> None:
    """Draw prompts `start` to `end`; when memory runs out, one half after the other."""
    try:
        draw(start, end)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if end - start == 1:
            raise InfrastructureError(
                "sampling one group does not fit in memory: lower max_completion_length or num_generations"
            ) from error
    else:
        return
    give_back()
    middle = (start + end) // 2
    _in_halves(draw, give_back, start, middle)
    _in_halves(draw, give_back, middle, end)


def _mix(seed: int, step: int, part: int, start: int) -> int:
    """One seed per run, step, process and place in the batch; the same after a resume."""
    return (seed * 1_000_003 + step) * 1_000_003 + part * 8191 + start
