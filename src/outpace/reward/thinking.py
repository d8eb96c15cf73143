"""Rewards of visible reasoning: how long it is, and how much of a train of thought it shows.

Both read token ids (`Sample.reasoning_ids`), so a marker that decoding drops is not missed, and nothing is tokenised
twice. Thinking that the length limit cut off is neither a thought nor none: it earns `cut_off`.
Whether the reasoning is right or led to the answer is not looked at: weigh these rewards low, beside `accuracy`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from outpace.reward.base import PerSample, Value
from outpace.reward.reading import ThoughtState, thought_of
from outpace.schema import Sample

Bands = tuple[tuple[int, float], ...]
"""`(from, value)` pairs, ascending: the value of the last band that a count reaches."""

QUESTIONS = ("?", "wait", "what if", "should i", "let me check", "is that right", "am i sure", "hmm")
"""Signs of self-questioning; words count as whole words, whatever their case."""
STEPS = ("first", "second", "third", "next", "then", "finally", "therefore", "because", "step", "so that")
"""Words that order an argument."""


def band(bands: Bands, count: int) -> float:
    """The value of the last band whose start is at most `count`; 0.0 below the first."""
    reached = [value for start, value in bands if count >= start]
    return reached[-1] if reached else 0.0


def check_bands(name: str, bands: Bands) -> None:
    """Raise ValueError unless the bands ascend."""
    starts = [start for start, _ in bands]
    if not bands or starts != sorted(set(starts)):
        raise ValueError(f"{name} must be pairs of (from, value) in ascending order, got {list(bands)!r}")


def holds_any(text: str, signs: Sequence[str]) -> bool:
    """Whether one of the signs is in the text: words as whole words, punctuation anywhere."""
    words = [re.escape(sign) for sign in signs if sign[:1].isalnum()]
    if any(sign in text for sign in signs if not sign[:1].isalnum()):
        return True
    return bool(words) and re.search(rf"\b(?:{'|'.join(words)})\b", text, re.IGNORECASE) is not None


@dataclass(frozen=True, kw_only=True)
class ThinkingLength(PerSample):
    """Pays for thinking by its length in tokens; -1.0 to 1.1 by default.

    No thinking earns `absent`, thinking that was cut off `cut_off`, else the band that its length reaches. From
    `question_from` tokens on, self-questioning adds `question_bonus`. A band that pays the longest thought most invites
    padding: `overlong` or falling upper bands hold against it.
    """

    name: ClassVar[str] = "thinking_length"
    absent: float = -1.0
    cut_off: float = 0.0
    bands: Bands = ((0, 0.3), (10, 0.7), (30, 1.0))
    question_bonus: float = 0.1
    question_from: int = 10
    questions: tuple[str, ...] = QUESTIONS

    def __post_init__(self) -> None:
        check_bands("thinking_length.bands", self.bands)

    def score(self, sample: Sample) -> Value:
        """The band's value, with the bonus."""
        thought = thought_of(sample)
        if thought.state is ThoughtState.ABSENT:
            return self.absent
        if thought.state is ThoughtState.CUT_OFF:
            return self.cut_off
        asks = thought.tokens >= self.question_from and holds_any(thought.text, self.questions)
        return band(self.bands, thought.tokens) + (self.question_bonus if asks else 0.0)


@dataclass(frozen=True, kw_only=True)
class ThinkingDepth(PerSample):
    """Pays for signs of a train of thought, added up; -0.5 to 1.0 by default.

    `tag` for closed thinking, the band of its length in tokens, `sentences` for two or more sentences, `question` for
    self-questioning, `steps` for words that order an argument. No thinking earns `absent`, cut-off thinking `cut_off`.
    """

    name: ClassVar[str] = "thinking_depth"
    absent: float = -0.5
    cut_off: float = 0.0
    tag: float = 0.3
    bands: Bands = ((10, 0.2), (20, 0.3))
    sentences: float = 0.2
    question: float = 0.1
    steps: float = 0.1
    questions: tuple[str, ...] = QUESTIONS
    step_words: tuple[str, ...] = STEPS

    def __post_init__(self) -> None:
        check_bands("thinking_depth.bands", self.bands)

    def score(self, sample: Sample) -> Value:
        """The sum of what was found."""
        thought = thought_of(sample)
        if thought.state is ThoughtState.ABSENT:
            return self.absent
        if thought.state is ThoughtState.CUT_OFF:
            return self.cut_off
        points = self.tag + band(self.bands, thought.tokens)
        points += self.sentences if sentence_count(thought.text) >= 2 else 0.0
        points += self.question if holds_any(thought.text, self.questions) else 0.0
        points += self.steps if holds_any(thought.text, self.step_words) else 0.0
        return round(points, 9)


def sentence_count(text: str) -> int:
    """How many sentences: stretches with a letter in them that end in `.`, `!`, `?` or the end of the text."""
    return sum(any(c.isalpha() for c in part) for part in re.split(r"[.!?]+(?:\s|$)", text))
