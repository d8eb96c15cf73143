"""Namespaces as dictionaries: `globals()`, `locals()`, `vars()`.

The module's own dictionary holds `__builtins__`, so it may be used with a known plain key only
(`if "cache" not in globals()`). The locals of a function, and `vars` of the candidate's own objects, are harmless.
"""

import ast
from collections.abc import Iterator

from outpace.static_check.rules import Rules
from outpace.static_check.scopes import Scope
from outpace.static_check.values import Values

_NAMESPACES = frozenset({"globals", "locals", "vars"})
_KEYED_METHODS = frozenset({"get", "setdefault", "pop"})


def check_namespace(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    """Calls of the three built-ins, and mentions of them without a call."""
    _note_plain_use(node, scope, values)
    if isinstance(node, ast.Name):
        if node.id in _NAMESPACES and scope.owner(node.id) is None and id(node) not in values.called:
            yield f"call:{node.id}"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMESPACES:
        values.called.add(id(node.func))
        if scope.owner(node.func.id) is None and not _is_harmless(node, scope, values):
            yield f"call:{node.func.id}"


def is_own_object(node: ast.expr | None, scope: Scope, values: Values) -> bool:
    """A name that the candidate bound, and not to anything imported."""
    return isinstance(node, ast.Name) and scope.owner(node.id) is not None and not values.origins(node, scope)


def _is_harmless(node: ast.Call, scope: Scope, values: Values) -> bool:
    assert isinstance(node.func, ast.Name)
    if node.args:
        return node.func.id == "vars" and is_own_object(node.args[0], scope, values)
    return id(node) in values.plainly_used or (node.func.id != "globals" and scope.kind == "function")


def _note_plain_use(node: ast.AST, scope: Scope, values: Values) -> None:
    """Remember calls whose result is only asked for a known key; the parent of a call is visited before it."""
    used: list[ast.expr] = []
    key: ast.expr | None = None
    match node:
        case ast.Subscript():
            used, key = [node.value], node.slice
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[container]):
            used, key = [container], left
        case ast.Call(func=ast.Attribute(value=container, attr=method), args=[first, *_]) if method in _KEYED_METHODS:
            used, key = [container], first
    keys = values.strings(key, scope) if used and isinstance(used[0], ast.Call) else None
    if keys is not None and not any(text.startswith("__") for text in keys):
        values.plainly_used.update(map(id, used))
