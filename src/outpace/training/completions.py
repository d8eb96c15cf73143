"""From token ids to what is graded: text, answer and reasoning, end or cut-off. Masks nothing, truncates nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from outpace.extract import ReasoningMarkers, split_reasoning_ids
from outpace.schema import Sample, Task, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One completion on its way from the sampler to the rewards; long fields stay out of log lines."""

    task: Task = field(repr=False)
    ids: tuple[int, ...] = field(repr=False)
    text: str = field(repr=False)
    finished: bool
    answer: str | None = field(default=None, repr=False)
    reasoning_ids: tuple[int, ...] | None = field(default=None, repr=False)

    def sample(self, verdict: Verdict | None) -> Sample:
        """The completion with its verdict, as rewards take it."""
        return Sample(
            task=self.task,
            completion=self.text,
            completion_ids=self.ids,
            finished=self.finished,
            answer=self.answer,
            reasoning_ids=self.reasoning_ids,
            verdict=verdict,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionReader:
    """Reads completions of one tokenizer; every end token it was told of counts as an end.

    Whether a completion ended is decided by its last id, never by padding: pad and end token may be the same.
    """

    decode: Callable[[Sequence[int]], str]
    eos_ids: frozenset[int]
    markers: ReasoningMarkers

    @classmethod
    def of(cls, tokenizer: Any, eos_ids: Sequence[int], *, end_token: str | None, split: bool) -> "CompletionReader":
        """A reader for a Hugging Face tokenizer; `end_token` names an end of thinking that is not known by name."""
        markers = ReasoningMarkers.from_tokenizer(tokenizer) if split else ReasoningMarkers()
        if split and end_token is not None:
            markers = ReasoningMarkers(end_think=_token_id(tokenizer, end_token))

        def decode(ids: Sequence[int]) -> str:
            return str(tokenizer.decode(list(ids), skip_special_tokens=True))

        return cls(decode=decode, eos_ids=frozenset(eos_ids), markers=markers)

    def read(
        self, task: Task, ids: Sequence[int], prompt_ids: Sequence[int] = (), *, finished: bool | None = None
    ) -> Completion:
        """Read one completion's ids (without padding); `finished` overrides what the last id says."""
        ended = bool(ids) and ids[-1] in self.eos_ids if finished is None else finished
        answer: str | None = None
        reasoning: tuple[int, ...] | None = None
        if self.markers.known:
            split = split_reasoning_ids(ids, self.markers, already_thinking=self._is_thinking(prompt_ids))
            answer = self.decode(split.answer_ids)
            reasoning = split.reasoning_ids or None
        return Completion(
            task=task, ids=tuple(ids), text=self.decode(ids), finished=ended, answer=answer, reasoning_ids=reasoning
        )

    def _is_thinking(self, prompt_ids: Sequence[int]) -> bool:
        """Whether the prompt's template opened the reasoning and left it open."""
        for token in reversed(prompt_ids):
            if token == self.markers.end_think:
                return False
            if token == self.markers.think:
                return True
        return False


def _token_id(tokenizer: Any, token: str) -> int:
    from outpace.errors import ConfigError

    found = tokenizer.get_vocab().get(token)
    if found is None:
        raise ConfigError(f"reasoning_end_token={token!r} is not a token of this model: look it up in its tokenizer")
    return int(found)
