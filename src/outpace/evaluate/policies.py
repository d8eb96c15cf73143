"""A policy as a source of completions, drawn by outpace's own sampler. Imports torch when it is called, not before."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outpace.evaluate.settings import Completion, EvalSettings, SampleCompletions
from outpace.extract import ReasoningMarkers, split_reasoning_ids
from outpace.schema import Task

if TYPE_CHECKING:
    from outpace.policy import Generation, Policy

Prompt = Sequence[int] | Sequence[Mapping[str, str]] | str


def from_policy(policy: "Policy", prompt_of: Callable[[Task], Prompt] | None = None) -> SampleCompletions:
    """Draw completions from a loaded policy.

    Reasoning is split off by token ids where the tokenizer has markers for it, and counts as length.

    Args:
        policy: what is sampled; its current weights, adapters included.
        prompt_of: makes a task's prompt; None: its messages, by the tokenizer's chat template.
    """
    markers = ReasoningMarkers.from_tokenizer(policy.tokenizer)

    def draw(tasks: Sequence[Task], settings: EvalSettings, seed: int) -> list[list[Completion]]:
        from outpace.policy import SamplingSettings, sample

        count = settings.samples_per_task
        sampling = SamplingSettings(max_new_tokens=settings.max_completion_length, temperature=settings.temperature)
        prompts = [prompt_of(task) if prompt_of else task.prompt for task in tasks]
        generations = sample(policy, prompts, sampling, num_generations=count, seed=seed)
        groups = [generations[start : start + count] for start in range(0, len(generations), count)]
        return [[completion_of(generation, policy.tokenizer, markers) for generation in group] for group in groups]

    return draw


def completion_of(generation: "Generation", tokenizer: Any, markers: ReasoningMarkers) -> Completion:
    """What was drawn as what is graded: the answer is what follows the reasoning, empty when that never ended."""
    answer = None
    if markers.known:
        opened = markers.think is not None and _last_marker(generation.prompt_ids, markers) == markers.think
        parts = split_reasoning_ids(generation.completion_ids, markers, already_thinking=opened)
        if parts.reasoning_ids or not parts.complete:
            answer = tokenizer.decode(list(parts.answer_ids), skip_special_tokens=True)
    return Completion(
        text=generation.text, finished=generation.finished, tokens=len(generation.completion_ids), answer=answer
    )


def _last_marker(ids: Sequence[int], markers: ReasoningMarkers) -> int | None:
    """The last reasoning marker of a prompt; its template may have opened the reasoning."""
    return next((token for token in reversed(ids) if token in (markers.think, markers.end_think)), None)
