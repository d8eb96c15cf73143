"""Split a completion's token ids into reasoning and answer: exact, for a quoted marker is not a special token.

Ids are looked up by the token's name; none is written down here. Covers harmony channels and `<think>` tags. Does not
decode: the caller decodes `answer_ids` and passes the text to `extract(..., answer=text)`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Tokenizer(Protocol):
    """The two methods of a Hugging Face tokenizer that are needed."""

    def get_vocab(self) -> Mapping[str, int]:
        """Token text to id, special tokens included."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> Any:
        """Ids of a text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningMarkers:
    """Ids of one tokenizer's reasoning markers; None where it has no such token."""

    think: int | None = None
    end_think: int | None = None
    channel: int | None = None
    message: int | None = None
    end_message: frozenset[int] = frozenset()
    """`<|end|>`, `<|return|>`, `<|call|>` and `<|start|>`: each ends the content of a message."""
    final: tuple[int, ...] = ()
    """The ids of the word `final`."""

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> "ReasoningMarkers":
        """Look the markers up by name."""
        vocab = tokenizer.get_vocab()
        channel, message = vocab.get("<|channel|>"), vocab.get("<|message|>")
        if channel is not None and message is not None:
            ends = (vocab.get(name) for name in ("<|end|>", "<|return|>", "<|call|>", "<|start|>"))
            final = tuple(int(i) for i in tokenizer.encode("final", add_special_tokens=False))
            return cls(
                channel=channel, message=message, end_message=frozenset(i for i in ends if i is not None), final=final
            )
        for opening, closing in (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<thinking>", "</thinking>")):
            if closing in vocab:
                return cls(think=vocab.get(opening), end_think=vocab[closing])
        return cls()

    @property
    def known(self) -> bool:
        """Whether this tokenizer has markers at all; without them only the text can be split."""
        return self.channel is not None or self.end_think is not None


@dataclass(frozen=True, slots=True)
class ReasoningSplit:
    """Token ids of the two parts, markers left out."""

    reasoning_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    complete: bool
    """The reasoning ended (or there was none); False: the completion holds no answer, `answer_ids` is empty."""


def split_reasoning_ids(
    ids: Sequence[int], markers: ReasoningMarkers, *, already_thinking: bool = False
) -> ReasoningSplit:
    """Split a completion's ids.

    Args:
        ids: the generated ids alone, without padding.
        markers: of the tokenizer that made them.
        already_thinking: the prompt ends inside the reasoning (its template opened `<think>`); without this a
            completion that holds no marker is all answer.
    """
    if markers.channel is not None and markers.channel in ids:
        return _split_channels(list(ids), markers)
    if markers.end_think is not None:
        return _split_think(list(ids), markers, already_thinking)
    return ReasoningSplit((), tuple(ids), complete=True)


def _split_think(ids: list[int], markers: ReasoningMarkers, thinking: bool) -> ReasoningSplit:
    """The first closing tag ends the reasoning, and only an opening tag resumes it: a later closing tag is quoted."""
    if not thinking and markers.think not in ids:
        thinking = markers.end_think in ids  # the opening tag was in the prompt
    reasoning: list[int] = []
    answer: list[int] = []
    for i in ids:
        if i == markers.think and not answer:
            thinking = True
        elif i == markers.end_think and thinking:
            thinking = False
        else:
            (reasoning if thinking else answer).append(i)
    return ReasoningSplit(tuple(reasoning), () if thinking else tuple(answer), complete=not thinking)


def _split_channels(ids: list[int], markers: ReasoningMarkers) -> ReasoningSplit:
    """The answer is the last message of the final channel; whatever else was said is reasoning."""
    reasoning: list[int] = []
    answer: tuple[int, ...] | None = None
    content: list[int] = []
    is_final = in_header = False
    header: list[int] = []
    for i in [*ids, None]:
        if i == markers.channel:
            header, in_header = [], True
        elif i == markers.message:
            is_final, in_header = tuple(header[: len(markers.final)]) == markers.final, False
            content = []
        elif i is None or i in markers.end_message:
            if is_final:
                answer = tuple(content)
            elif not in_header:
                reasoning += content
            content, is_final = [], False
        elif in_header:
            header.append(i)
        else:
            content.append(i)
    return ReasoningSplit(tuple(reasoning), answer or (), complete=answer is not None)
