"""Reading a completion's parts: what was thought, and what was answered.

Whoever makes a `Sample` splits it with `outpace.extract`, by token ids where it has them, and fills in `answer`,
`reasoning` and `reasoning_ids`; nothing here tokenises again. For a sample that nobody split, plain markers in the text
are read, and without ids tokens are counted as words. Not covered: finding code, and quoted markers (`extract`).
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from outpace.schema import Sample

_OPEN = re.compile(r"<think(?:ing)?>|<\|channel\|>analysis.*?<\|message\|>", re.DOTALL)
_CLOSE = re.compile(r"</think(?:ing)?>|<\|channel\|>final.*?<\|message\|>", re.DOTALL)
_MARKER = re.compile(r"</?think(?:ing)?>|<\|[a-z_]+\|>")


class ThoughtState(StrEnum):
    """How the thinking of a completion ended."""

    ABSENT = "absent"
    """There is none, or nothing but white space between its markers."""
    CUT_OFF = "cut_off"
    """It began, and no answer follows."""
    CLOSED = "closed"
    """It ended, and an answer follows."""


@dataclass(frozen=True, slots=True)
class Thought:
    """The thinking of one completion; `tokens` are token ids where these are known, else words."""

    state: ThoughtState
    tokens: int = 0
    text: str = ""


def thought_of(sample: Sample) -> Thought:
    """The thinking of a sample, as the caller split it off, else by the markers in the text."""
    if sample.answer is not None and not sample.reasoning_ids and not sample.reasoning:
        return Thought(ThoughtState.ABSENT)
    if sample.reasoning_ids is None and sample.reasoning is None:
        return _by_markers(sample.completion)
    text = sample.reasoning
    if text is None:
        text = _without_markers(_before(sample.completion, sample.answer))
    count = len(text.split()) if sample.reasoning_ids is None else len(sample.reasoning_ids)
    return _thought(text, count, closed=bool(sample.answer and sample.answer.strip()))


def answer_of(sample: Sample) -> str:
    """The completion without its thinking; empty when the thinking was cut off."""
    if sample.answer is not None:
        return sample.answer
    if sample.reasoning_ids is not None or sample.reasoning is not None:
        return ""
    *_, closing = [None, *_CLOSE.finditer(sample.completion)]
    if closing is not None:
        return sample.completion[closing.end() :]
    return "" if _OPEN.search(sample.completion) else sample.completion


def _by_markers(completion: str) -> Thought:
    *_, closing = [None, *_CLOSE.finditer(completion)]
    opening = _OPEN.search(completion)
    if closing is None and opening is None:
        return Thought(ThoughtState.ABSENT)
    text = _without_markers(completion[: closing.start()] if closing else completion)
    return _thought(text, len(text.split()), closed=closing is not None)


def _thought(text: str, count: int, *, closed: bool) -> Thought:
    if closed and not text.strip():
        return Thought(ThoughtState.ABSENT)
    return Thought(ThoughtState.CLOSED if closed else ThoughtState.CUT_OFF, count, text)


def _without_markers(text: str) -> str:
    return _MARKER.sub(" ", _OPEN.sub(" ", text)).strip()


def _before(completion: str, answer: str | None) -> str:
    """What stands before the answer; all of it when the answer's text is not the end of the completion."""
    return completion.removesuffix(answer) if answer else completion
