"""Candidate source as text: parse it within bounds, and find its entry point, without running it.

Covers every way in which Python's own parser can be made to fail (NUL, lone surrogates, depth, size, warnings that
were turned into errors). Does not judge what the source may do: that is `static_check`.
"""

import ast
import functools
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

MAX_SOURCE_BYTES = 64 * 2**10
"""The parser needs up to 0.3 s for this much of the worst text we found."""

MAX_DEPTH = 500
"""Levels of the syntax tree. Python's own limit depends on the caller's stack, so that the same text would parse here
and not there; this one does not."""

_filters_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A syntax tree, or one sentence that says why there is none."""

    tree: ast.Module | None
    error: str | None = None
    line: int | None = None


class Definition(Enum):
    """How a module defines a name."""

    ABSENT = "absent"
    """Not at module level."""
    PLACEHOLDER = "placeholder"
    """A function with nothing but a docstring and `...`: the template of a prompt, not an answer."""
    PRESENT = "present"
    """Really."""


@functools.lru_cache(maxsize=16)
def parse(text: str) -> Parsed:
    """Parse `text` as a module; total: a text that cannot be parsed is a result, never an exception.

    The tree is shared between callers and must not be changed.
    """
    refused = _refuse_before_parsing(text)
    if refused:
        return Parsed(None, refused)
    try:
        with _filters_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is no error, even under -W error
            tree = ast.parse(text, "<candidate>")
            if _is_deep(tree):
                return Parsed(None, f"nested more than {MAX_DEPTH} levels deep")
            # `return` outside a function and its like are found only by the compiler
            compile(text, "<candidate>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return Parsed(None, str(error.msg), error.lineno)
    except (RecursionError, MemoryError):
        return Parsed(None, f"nested more than {MAX_DEPTH} levels deep")
    except (ValueError, OverflowError) as error:
        return Parsed(None, str(error))
    return Parsed(tree)


def _refuse_before_parsing(text: str) -> str | None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        return f"a lone surrogate (position {error.start}) is not text"
    if "\0" in text:
        return "a NUL byte is not allowed in source"
    if size > MAX_SOURCE_BYTES:
        return f"the source has {size} bytes, more than the {MAX_SOURCE_BYTES} that are read"
    return None


def _is_deep(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def is_main_guard(statement: ast.stmt) -> bool:
    """Whether this is `if __name__ == "__main__":`, whose body never runs in a candidate's process."""
    if not (isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare)):
        return False
    test = statement.test
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, test.comparators[0]]
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    values = [side.value for side in sides if isinstance(side, ast.Constant)]
    return names == ["__name__"] and values == ["__main__"]


def find_entry_point(tree: ast.Module, entry_point: str) -> Definition:
    """How `tree` defines `entry_point` at module level; `Solution.matmul` means that method of that class."""
    owner, _, method = entry_point.rpartition(".")
    if owner:
        return _find_method(tree, owner, method)
    return _last_definition(tree.body, entry_point)


def _find_method(tree: ast.Module, owner: str, method: str) -> Definition:
    classes = {node.name: node for node in _module_level(tree.body) if isinstance(node, ast.ClassDef)}
    pending, seen = [owner], set()
    while pending:
        name = pending.pop(0)
        if name in seen or name not in classes:
            continue
        seen.add(name)
        found = _last_definition(classes[name].body, method)
        if found is not Definition.ABSENT:
            return found
        pending += [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
    return Definition.ABSENT


def _last_definition(body: Sequence[ast.stmt], name: str) -> Definition:
    found = Definition.ABSENT
    for statement in _module_level(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == name:
            found = Definition.PLACEHOLDER if _is_placeholder(statement.body) else Definition.PRESENT
        elif name in _names_bound(statement):
            found = Definition.PRESENT
    return found


def _module_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is loaded: also those inside `if`, `try` and the like."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if is_main_guard(statement):
            assert isinstance(statement, ast.If)
            yield from _module_level(statement.orelse)
            continue
        for block in ("body", "orelse", "finalbody"):
            yield from _module_level(getattr(statement, block, ()))
        for handler in getattr(statement, "handlers", ()):
            yield from _module_level(handler.body)


def _names_bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    nodes = (node for target in targets for node in ast.walk(target))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _is_placeholder(body: Sequence[ast.stmt]) -> bool:
    values = [statement.value for statement in body if isinstance(statement, ast.Expr | ast.Return)]
    others = [statement for statement in body if not isinstance(statement, ast.Expr | ast.Return | ast.Pass)]
    constants = [value.value for value in values if isinstance(value, ast.Constant)]
    has_ellipsis = any(constant is Ellipsis for constant in constants)
    only_text_beside = all(constant is Ellipsis or isinstance(constant, str) for constant in constants)
    return has_ellipsis and only_text_beside and not others and len(constants) == len(values)


def looks_like_definition(text: str, entry_point: str) -> bool:
    """Whether a text that does not parse still plainly means to define the entry point."""
    owner, _, name = entry_point.rpartition(".")
    define = rf"(?:async[ \t]+)?def[ \t]+{re.escape(name)}\b|class[ \t]+{re.escape(name)}\b|{re.escape(name)}[ \t]*="
    if owner:
        has_class = re.search(rf"^class[ \t]+{re.escape(owner)}\b", text, re.MULTILINE)
        return bool(has_class and re.search(rf"^\s+(?:{define})", text, re.MULTILINE))
    return re.search(rf"^(?:{define})", text, re.MULTILINE) is not None
