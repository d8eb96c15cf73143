"""Split a completion's text into reasoning and answer.

This is the fallback for completions whose token ids are not at hand; `split_reasoning_ids` is exact, text is not: a
marker that a program merely quotes looks like a marker. The rules by which quoted ones are told apart:

* harmony: the text must begin with a marker (or hold `<|end|><|start|>assistant`); a message ends at `<|start|>` after
  an end marker, or at the end of the text, so an end marker inside a string of the final message is code;
* think tags: the reasoning ends at the last closing tag that counts. Outside code blocks every tag counts, unless in
  inline code. Inside a code block one counts only when it starts a line, for a draft in the reasoning may leave its
  fence open. A program with a string in which a line starts with the tag is misread.
"""

import re
from dataclasses import dataclass

from outpace.extract.blocks import fences


@dataclass(frozen=True, slots=True)
class Parts:
    """Reasoning and answer; `answer` is None when the reasoning never ended, with the reason."""

    reasoning: str | None
    answer: str | None
    reason: str | None = None


_HEADER = re.compile(
    r"(?:<\|start\|>[^<]*)?<\|channel\|>\s*(?P<channel>\w+)(?P<to>[^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
_IS_HARMONY = re.compile(r"\s*(?:<\|start\|>[^<]*)?<\|channel\|>|.*<\|(?:end|call)\|>\s*<\|start\|>\s*\w+", re.DOTALL)
_MESSAGE_END = re.compile(r"<\|(?:end|call|return)\|>\s*(?=<\|start\|>)|<\|start\|>(?=[^<]*<\|channel\|>)")
_ANY_NEXT = re.compile(r"<\|(?:end|call|return|start|channel)\|>")
"""What ends a message that is not final, also where the model left out its end marker."""
_IS_STRIPPED_HARMONY = re.compile(r"\s*(?:analysis|commentary)(?=[A-Z]|.*assistantfinal)", re.DOTALL)
"""Harmony decoded without its special tokens: `analysisLet us ...assistantfinal...`."""

_TAGS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
]
_END_OF_TURN = (
    *(
        "<|return|>",
        "<|end|>",
        "<|call|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|end_of_text|>",
        "<|eom_id|>",
    ),
    *("</s>", "<eos>", "<end_of_turn>", "<｜end▁of▁sentence｜>"),
)


def split_reasoning(completion: str) -> tuple[str | None, str | None]:
    """Reasoning and answer of a completion; None for a part that is not there."""
    parts = split(completion)
    return parts.reasoning, parts.answer


def split(completion: str) -> Parts:
    """The same with the reason why there is no answer: `no_final_channel` or `unfinished_thinking`."""
    if _IS_HARMONY.match(completion):
        return _split_harmony(completion)
    if _IS_STRIPPED_HARMONY.match(completion):
        reasoning, found, answer = completion.rpartition("assistantfinal")
        return Parts(reasoning, without_end(answer)) if found else Parts(completion, None, "no_final_channel")
    for opening, closing in _TAGS:
        opened = completion.lstrip().startswith(opening)
        if opened or closing in completion:
            at = _last_that_counts(completion, closing)
            if at is not None:
                reasoning = completion[:at].strip().removeprefix(opening)
                return Parts(reasoning, without_end(completion[at + len(closing) :]))
            if opened:
                return Parts(completion.lstrip().removeprefix(opening), None, "unfinished_thinking")
    return Parts(None, without_end(completion))


def _split_harmony(completion: str) -> Parts:
    """The answer is the last message of the final channel; analysis and commentary are reasoning."""
    reasoning: list[str] = []
    answer: str | None = None
    position = 0
    first = _HEADER.search(completion)
    if first and completion[: first.start()].strip():
        reasoning.append(completion[: first.start()])  # the prompt had already opened the first message
    while header := _HEADER.search(completion, position):
        is_final = header["channel"] == "final" and "to=" not in header["to"]
        end = (_MESSAGE_END if is_final else _ANY_NEXT).search(completion, header.end())
        position = end.start() if end else len(completion)
        content = completion[header.end() : position]
        if is_final:
            answer = content
        else:
            reasoning.append(content)
    text = "\n".join(reasoning) if reasoning else None
    if answer is None:
        return Parts(text, None, "no_final_channel")
    return Parts(text, without_end(answer))


def _last_that_counts(text: str, closing: str) -> int | None:
    inside: set[int] | None = None
    found, start = None, 0
    for number, line in enumerate(text.split("\n")):
        for match in re.finditer(re.escape(closing), line):
            starts_line = not line[: match.start()].strip()
            if not starts_line and inside is None:
                inside = _lines_inside_fences(text)  # most models put the tag on a line of its own
            in_inline_code = line[: match.start()].endswith("`")
            if starts_line or not (number in (inside or ()) or in_inline_code):
                found = start + match.start()
        start += len(line) + 1
    return found


def _lines_inside_fences(text: str) -> set[int]:
    """0-based numbers of the lines between fences (a line ends at a line feed)."""
    text = text.replace("\r", " ")
    return {line for block in fences(text) for line in range(block.first_line, block.last_line)}


def without_end(text: str) -> str:
    """Drop end-of-turn markers, which would otherwise stick to a closing fence."""
    stripped = text.rstrip()
    if not stripped.endswith(_END_OF_TURN):
        return text
    while stripped.endswith(_END_OF_TURN):
        marker = next(marker for marker in _END_OF_TURN if stripped.endswith(marker))
        stripped = stripped.removesuffix(marker).rstrip()
    return stripped + "\n"
