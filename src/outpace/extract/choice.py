"""Choose the candidate among a completion's code blocks."""

import re
from collections.abc import Sequence

from outpace.extract.blocks import Block, code_blocks
from outpace.extract.reasoning import split, without_end
from outpace.schema import Candidate, Extraction
from outpace.source import Definition, Parsed, find_entry_point, looks_like_definition, parse

_LINE_OF_CODE = re.compile(r"(?:from|import|def|async|class|@|\w+\s*=)(?:\W|$)|(?:from|import|def|class)\s")
_FENCE_LINE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+.-]*[ \t]*")
_NOT_PYTHON = frozenset(
    {*("text", "txt", "plaintext", "output", "console", "bash", "sh", "shell"), *("json", "yaml", "diff", "md", "math")}
)
"""Labels of blocks that are taken only when no other defines the entry point: `matmul = O(n^3)` is no program."""


def extract(
    completion: str, entry_point: str, *, finished: bool = True, lenient: bool = False, answer: str | None = None
) -> Extraction:
    """Find the source that answers for `entry_point`: the last block that defines it at module level.

    One labelled as another language counts only when no other does, one that defines it as a bare `...` template not
    at all. When no block that parses defines it, the last one that does not parse but plainly means to is chosen, to
    be reported as a syntax error later.

    Args:
        completion: the generated text alone, never the prompt.
        entry_point: a name, or `Class.method`.
        finished: the completion ended by itself; a fence that is still open is then taken as closed by the end.
        lenient: also accept code without any fence around it.
        answer: the part after the reasoning where that was split off by token ids; None: split the text.
    """
    if not completion.strip():
        return _nothing("empty")
    if answer is None or not answer.strip():
        parts = split(completion)
        if answer is not None or parts.answer is None:
            return _nothing(parts.reason or "empty")
        answer = parts.answer
    blocks = code_blocks(without_end(answer))
    chosen, reason = _choose(blocks, entry_point, finished)
    if chosen is not None:
        return Extraction(candidate=_candidate(blocks, chosen))
    if lenient:
        bare = _bare_code(answer, entry_point)
        if bare is not None:
            return Extraction(candidate=Candidate(source=bare, where="no fence"))
    return _nothing(reason)


def _nothing(reason: str) -> Extraction:
    return Extraction(candidate=None, reason=reason)


def _choose(blocks: Sequence[Block], entry_point: str, finished: bool) -> tuple[int | None, str]:
    """The index of the chosen block, or None with the reason."""
    if not blocks:
        return None, "no_fence"
    parsed = [parse(block.source) for block in blocks]
    found = [
        find_entry_point(p.tree, entry_point)
        if p.tree is not None
        else (Definition.PRESENT if looks_like_definition(block.source, entry_point) else Definition.ABSENT)
        for block, p in zip(blocks, parsed, strict=True)
    ]
    counts = [block.is_closed or finished for block in blocks]
    present = [i for i, definition in enumerate(found) if definition is Definition.PRESENT]
    usable = [i for i in present if counts[i]]
    parsing = [i for i in usable if parsed[i].tree is not None]
    for wanted in ([i for i in parsing if blocks[i].label not in _NOT_PYTHON], parsing, usable):
        if wanted:
            return wanted[-1], ""
    if not all(counts):
        return None, "unclosed_fence"
    return None, "placeholder" if Definition.PLACEHOLDER in found else "no_entry_point"


def _candidate(blocks: Sequence[Block], chosen: int) -> Candidate:
    block = blocks[chosen]
    return Candidate(
        source=block.source,
        where=f"block {chosen + 1} of {len(blocks)}, lines {block.first_line}-{block.last_line}",
        discarded=tuple(other.source for i, other in enumerate(blocks) if i != chosen),
    )


def _bare_code(answer: str, entry_point: str) -> str | None:
    """Code without a fence: from the first line of code to the last line that still parses."""
    lines = [line for line in answer.splitlines() if not _FENCE_LINE.fullmatch(line)]
    start = next((i for i, line in enumerate(lines) if _LINE_OF_CODE.match(line)), None)
    if start is None:
        return None
    lines = lines[start:]
    whole = "\n".join(lines) + "\n"
    text, parsed = whole, parse(whole)
    while parsed.tree is None and _can_cut(parsed, lines):
        lines = lines[: (parsed.line or 1) - 1]
        text = "\n".join(lines) + "\n"
        parsed = parse(text)
    if parsed.tree is None:
        return whole if looks_like_definition(whole, entry_point) else None
    return text if find_entry_point(parsed.tree, entry_point) is Definition.PRESENT else None


def _can_cut(parsed: Parsed, lines: Sequence[str]) -> bool:
    """Whether the error is at an unindented line of prose, behind which nothing is wanted."""
    at = (parsed.line or 0) - 1
    return 0 < at < len(lines) and bool(lines[at].strip()) and not lines[at][:1].isspace()
