"""Shortens a teacher's answer without changing what its program does: the starter must be cheap to sample on a CPU.

Dropped: prose after the code block, comments, docstrings, demonstration calls below the definitions, and blank lines
within functions. An answer that cannot be taken apart (no block, unparsable code) only loses the prose after its block.
"""

import ast
import io
import re
import tokenize

_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)


def trim(answer: str, entry_point: str) -> str:
    """Return the shortened answer; prose before the block is kept when it is one short line."""
    blocks = list(_BLOCK.finditer(answer))
    chosen = next((block for block in reversed(blocks) if f"def {entry_point}" in block[1]), None)
    if chosen is None:
        return answer[: blocks[-1].end()] if blocks else answer
    before = answer[: chosen.start()].strip()
    before = f"{before}\n" if before and "\n" not in before and "```" not in before and len(before) <= 120 else ""
    return f"{before}```python\n{trim_code(chosen[1], entry_point)}\n```"


def trim_code(source: str, entry_point: str) -> str:
    """Return the source without comments, docstrings, demonstration calls and blank lines within functions."""
    try:
        tree = ast.parse(source)
        kept = source.splitlines()
        for line in _docstring_lines(tree) | _demonstration_lines(tree, entry_point):
            kept[line - 1] = ""
        text = _without_comments("\n".join(kept) + "\n")
        text = re.sub(r"\n\s*\n(?=[ \t])", "\n", "\n".join(line.rstrip() for line in text.splitlines()).strip("\n"))
        text = re.sub(r"\n{2,}", "\n\n", text).strip("\n")
        if ast.dump(ast.parse(text)) and f"def {entry_point}" in text:
            return text
    except (SyntaxError, ValueError, tokenize.TokenError, IndentationError, RecursionError):
        pass
    return source.strip("\n")


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        first = node.body[0] if node.body else None
        is_text = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        if is_text and first is not None and len(node.body) > 1:
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def _demonstration_lines(tree: ast.Module, entry_point: str) -> set[int]:
    """Top-level statements below the last definition: calls, prints, asserts and the variables made for them."""
    last = max(
        (index for index, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef | ast.ClassDef)), default=-1
    )
    lines: set[int] = set()
    below = tree.body[last + 1 :]
    if any(isinstance(node, ast.Assign) and _assigns(node, entry_point) for node in below):
        return lines
    for node in below:
        lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _without_comments(source: str) -> str:
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines)
