"""The code blocks of a Markdown text, by CommonMark's rules.

Two deviations, both towards what models write: HTML blocks are read as text, so that a fence after a line
`<answer>` is a fence; and an indented block that holds a whole fence is looked into. Inline code is never a block.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

_NEVER_IN_CODE = "\ue000"
"""Stands in for NUL, which CommonMark would replace by a harmless character; the candidate must keep it."""

_LONG = 200_000
"""Characters beyond which only fences outside lists and quotes are found: the full parser takes minutes for a megabyte
of list items, and no answer is that long."""

_parser = MarkdownIt("commonmark").disable(["html_block", "reference", "inline"])


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced code block: its content without the fence's indentation, and where it stands."""

    source: str
    first_line: int
    """1-based, of the opening fence."""
    last_line: int
    is_closed: bool
    """False: the text ends before a closing fence."""
    label: str = ""
    """First word behind the opening fence, in lower case."""


def code_blocks(text: str) -> list[Block]:
    """All fenced blocks of `text` that hold more than white space, in order."""
    return [block for block in fences(text) if block.source.strip()]


def fences(text: str) -> list[Block]:
    """All fenced blocks of `text`, also empty ones, in order."""
    text = text.removeprefix("\ufeff")
    marker = _NEVER_IN_CODE if _NEVER_IN_CODE not in text else None
    if marker:
        text = text.replace("\0", marker)
    blocks = _parse(text, 0) if len(text) <= _LONG else _scan(text)
    if not marker:
        return list(blocks)
    return [replace(block, source=block.source.replace(marker, "\0")) for block in blocks]


def _parse(text: str, line_offset: int) -> Iterator[Block]:
    lines = re.split(r"\r\n|\r|\n", text)
    end_of_text = max((i + 1 for i, line in enumerate(lines) if line.strip()), default=0)
    for token in _parser.parse(text):
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "fence":
            closed = _is_closed(token, lines[first:end]) or end < end_of_text  # its container may end it
            source = token.content.removeprefix("\ufeff")
            yield Block(source, line_offset + first + 1, line_offset + end, closed, _label(token.info))
        elif token.type == "code_block" and re.match(r"\s*(```|~~~)", token.content):
            yield from _parse(_dedent(token.content), line_offset + first)


def _scan(text: str) -> Iterator[Block]:
    """The same for very long texts, in linear time."""
    fence, first, label, content = "", 0, "", list[str]()
    lines = re.split(r"\r\n|\r|\n", text)
    for number, line in enumerate(lines, start=1):
        marker = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if fence and marker and marker[1].startswith(fence) and not marker[2].strip():
            yield Block("\n".join([*content, ""]), first, number, True, label)
            fence, content = "", []
        elif fence:
            content.append(line)
        elif marker and not (marker[1][0] == "`" and "`" in marker[2]):
            fence, first, label = marker[1], number, _label(marker[2])
    if fence:
        yield Block("\n".join(content), first, len(lines), False, label)


def _label(info: str) -> str:
    word = re.search(r"[\w+#-]+", info.lower())
    return word[0] if word else ""


def _is_closed(token: Token, lines: list[str]) -> bool:
    """Whether the last line is a closing fence, behind whatever marks its block quote or list."""
    fence = re.escape(token.markup[0]) + "{" + str(len(token.markup)) + ",}"
    return len(lines) > 1 and re.fullmatch(rf"[\s>]*{fence}\s*", lines[-1]) is not None


def _dedent(content: str) -> str:
    """Take the first line's indentation off every line, as a fence does with its content."""
    margin = len(content) - len(content.lstrip(" \t"))
    return "\n".join(line[min(margin, len(line) - len(line.lstrip(" \t"))) :] for line in content.split("\n"))
