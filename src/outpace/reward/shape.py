"""Rewards of an answer's shape: fences, formats, lengths.

They read the answer (the completion without its thinking) or the number of generated tokens. None of them looks at
what the text means, so each can be earned by nonsense: weigh them low, or gate them (`gate: accuracy`).
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from outpace.reward.base import PerSample, Value
from outpace.reward.reading import answer_of
from outpace.reward.thinking import Bands, band, check_bands
from outpace.schema import Sample


@dataclass(frozen=True, kw_only=True)
class Fence(PerSample):
    """1.0 for an answer with exactly one closed code fence, `several` (0.5) with more, 0.0 without; by CommonMark.

    Indented code, and a fence that is still open at the end of the answer, do not count.
    """

    name: ClassVar[str] = "fence"
    several: float = 0.5

    def score(self, sample: Sample) -> Value:
        """0.0, `several` or 1.0."""
        fences = closed_fences(answer_of(sample))
        return 0.0 if fences == 0 else 1.0 if fences == 1 else self.several


def closed_fences(text: str) -> int:
    """How many fenced code blocks of the text are closed; fences in lists and quotes count too."""
    from markdown_it import MarkdownIt

    lines = text.splitlines()
    closed = 0
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence" and token.map is not None:
            last = lines[min(token.map[1], len(lines)) - 1].strip(" \t>")
            closed += token.map[1] - token.map[0] > 1 and last.startswith(token.markup) and not last.strip("`~")
    return closed


@dataclass(frozen=True, kw_only=True)
class AnswerFormat(PerSample):
    """1.0 when the answer matches the regular expression `pattern` from its first to its last character, else 0.0.

    The dot matches line ends. Keep the pattern simple: one that backtracks without bound hangs on an unlucky answer.
    """

    name: ClassVar[str] = "answer_format"
    pattern: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(
                f"answer_format.pattern is not a regular expression ({error}): {self.pattern!r}"
            ) from error

    def score(self, sample: Sample) -> Value:
        """0.0 or 1.0."""
        return 1.0 if re.fullmatch(self.pattern, answer_of(sample), re.DOTALL) else 0.0


@dataclass(frozen=True, kw_only=True)
class ProseFormat(PerSample):
    """0.5 for an answer that ends with a full stop, and 0.5 for one that does not begin with white space.

    White space after the full stop does not count against it. For prose; an answer that is code ends in a fence.
    """

    name: ClassVar[str] = "prose_format"
    full_stop: float = 0.5
    no_leading_space: float = 0.5

    def score(self, sample: Sample) -> Value:
        """0.0 to 1.0; 0.0 for an empty answer."""
        answer = answer_of(sample)
        stops = self.full_stop if answer.rstrip().endswith(".") else 0.0
        return stops + (self.no_leading_space if answer and not answer[0].isspace() else 0.0)


@dataclass(frozen=True, kw_only=True)
class LengthWords(PerSample):
    """The value of the band that the answer's number of words reaches: under 5 -1.0, from 5 1.0, from 50 0.5."""

    name: ClassVar[str] = "length_words"
    bands: Bands = ((0, -1.0), (5, 1.0), (50, 0.5))

    def __post_init__(self) -> None:
        check_bands("length_words.bands", self.bands)

    def score(self, sample: Sample) -> Value:
        """The band's value."""
        return band(self.bands, len(answer_of(sample).split()))


@dataclass(frozen=True, kw_only=True)
class LengthTokens(PerSample):
    """The value of the band that the number of generated tokens reaches, thinking included.

    None when the ids are not known. The bands have no default: what is long depends on the task and the tokenizer.
    """

    name: ClassVar[str] = "length_tokens"
    bands: Bands

    def __post_init__(self) -> None:
        check_bands("length_tokens.bands", self.bands)

    def score(self, sample: Sample) -> Value:
        """The band's value, or None."""
        return None if sample.completion_ids is None else band(self.bands, len(sample.completion_ids))


@dataclass(frozen=True, kw_only=True)
class Overlong(PerSample):
    """The soft overlong penalty: 0.0 up to `max_tokens - buffer_tokens`, then down in a line to -1.0 at `max_tokens`.

    Set `max_tokens` to the recipe's `max_completion_length`. None when the ids are not known.
    Source: DAPO (arXiv 2503.14476), equation 13.
    """

    name: ClassVar[str] = "overlong"
    max_tokens: int
    buffer_tokens: int

    def __post_init__(self) -> None:
        if not 0 < self.buffer_tokens <= self.max_tokens:
            raise ValueError(
                "overlong.buffer_tokens must be above 0 and at most max_tokens, "
                f"got {self.buffer_tokens} of {self.max_tokens}"
            )

    def score(self, sample: Sample) -> Value:
        """-1.0 to 0.0, or None."""
        if sample.completion_ids is None:
            return None
        over = len(sample.completion_ids) - (self.max_tokens - self.buffer_tokens)
        return 0.0 - min(max(over / self.buffer_tokens, 0.0), 1.0)
