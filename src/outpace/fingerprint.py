"""Whether two programs are the same: one text for all spellings of one program. Not a security check."""

import ast
import hashlib
from contextlib import suppress

from outpace.schema import Verdict
from outpace.source import parse

_NAME_FIELDS = frozenset({"id", "arg", "name", "names", "asname"})
_LEFT_OUT = frozenset({"annotation", "returns", "type_comment", "ctx", "simple"})
_WITH_DOCSTRING = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def fingerprint(source: str, entry_point: str) -> str:
    """Equal for programs that differ only in layout, comments, docstrings, annotations and names of their own.

    It does not see deeper: two spellings of one algorithm are two programs. A source that does not parse, or is too
    deep to walk, stands for itself.
    """
    tree = parse(source).tree
    form = source
    if tree is not None:
        with suppress(RecursionError):
            form = _Form(tree, entry_point).of(tree)
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def program_of(verdict: Verdict, entry_point: str) -> str | None:
    """The fingerprint of a verdict's program, read from it where grading has noted it; None when no code was found."""
    if verdict.program is not None or verdict.candidate is None:
        return verdict.program
    return fingerprint(verdict.candidate.source, entry_point)


class _Form:
    """Writes a tree as text, with the names that the program binds as v0, v1, ... in order of appearance."""

    def __init__(self, tree: ast.AST, entry_point: str) -> None:
        self._bound = _bound_names(tree) - {entry_point}
        self._new_names: dict[str, str] = {}

    def of(self, node: ast.AST) -> str:
        fields = []
        for name, value in ast.iter_fields(node):
            if name in _LEFT_OUT:
                continue
            if isinstance(node, ast.AnnAssign) and name == "target":
                fields.append(f"targets=[{self.of(node.target)}]")
            elif name == "body" and isinstance(node, _WITH_DOCSTRING):
                fields.append(f"body={self._value('body', [line for line in node.body if not is_text(line)])}")
            else:
                fields.append(f"{name}={self._value(name, value)}")
        kind = "Assign" if isinstance(node, ast.AnnAssign) else type(node).__name__
        return f"{kind}({', '.join(fields)})"

    def _value(self, field: str, value: object) -> str:
        if isinstance(value, ast.AST):
            return self.of(value)
        if isinstance(value, list):
            return f"[{', '.join(self._value(field, item) for item in value)}]"
        if field in _NAME_FIELDS and isinstance(value, str) and value in self._bound:
            return self._new_names.setdefault(value, f"v{len(self._new_names)}")
        return repr(value)


def is_text(statement: ast.stmt) -> bool:
    """Nothing but a text: a docstring, or a comment in disguise."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _bound_names(tree: ast.AST) -> set[str]:
    names: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname)
    return {name for name in names if name is not None}
