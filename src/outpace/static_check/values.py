"""What an expression may stand for: a module or a thing imported from one, or a known string.

Follows plain assignment, defaults, tuples, loops over literals and conditional expressions; stops at calls, except
for string methods on known text. Bounded in depth and size; what cannot be followed is "not known".
"""

import ast
import itertools
from collections.abc import Callable, Iterable

from outpace.static_check.scopes import Binding, Scope

_MAX_DEPTH = 30
_MAX_VALUES = 64
_MAX_LENGTH = 1000

_NOTHING: frozenset[str] = frozenset()
_CASE_METHODS = frozenset({"lower", "upper", "strip", "casefold", "replace", "removeprefix", "removesuffix"})


class Values:
    """Answers for one source; each node is looked at once, so that the work is linear."""

    def __init__(self) -> None:
        self._origins: dict[tuple[int, bool], frozenset[str]] = {}
        self._strings: dict[int, frozenset[str] | None] = {}
        self._depth = 0
        self.called: set[int] = set()
        """Ids of the nodes that stand as the function of a call."""
        self.plainly_used: set[int] = set()
        """Ids of the calls whose result is only asked for one known key."""

    def origins(self, node: ast.expr | None, scope: Scope, *, of_element: bool = False) -> frozenset[str]:
        """Dotted names of the imported things that `node` may denote (`random`, `random._os`); empty when none.

        With `of_element`: what an element of the container `node` may denote.
        """
        if node is None or self._depth > _MAX_DEPTH:
            return _NOTHING
        key = (id(node), of_element)
        if key not in self._origins:
            self._origins[key] = _NOTHING  # holds while a cycle comes back here
            self._depth += 1
            find = self._element_origins if of_element else self._own_origins
            self._origins[key] = frozenset(itertools.islice(sorted(find(node, scope)), _MAX_VALUES))
            self._depth -= 1
        return self._origins[key]

    def _own_origins(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        parts: list[ast.expr] = []
        if isinstance(node, ast.Name):
            return _NOTHING.union(*map(self._bound_origins, _bindings(node, scope)))
        if isinstance(node, ast.Attribute):
            return frozenset(f"{base}.{node.attr}"[:_MAX_LENGTH] for base in self.origins(node.value, scope))
        if isinstance(node, ast.Subscript):
            return self.origins(node.value, scope, of_element=True)
        if isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.NamedExpr):
            parts = [node.value]
        return _NOTHING.union(*(self.origins(part, scope) for part in parts))

    def _element_origins(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        if isinstance(node, ast.Name):
            bindings = [binding for binding in _bindings(node, scope) if not binding.is_element]
            return _NOTHING.union(*(self.origins(b.value, b.scope, of_element=True) for b in bindings))
        return _NOTHING.union(*(self.origins(element, scope) for element in _elements(node)))

    def _bound_origins(self, binding: Binding) -> frozenset[str]:
        if binding.path is not None:
            return frozenset({binding.path})
        return self.origins(binding.value, binding.scope, of_element=binding.is_element)

    def strings(self, node: ast.expr | None, scope: Scope) -> frozenset[str] | None:
        """Every text that `node` may be, or None when that is not known."""
        if node is None or self._depth > _MAX_DEPTH:
            return None
        if id(node) not in self._strings:
            self._strings[id(node)] = None  # holds while a cycle comes back here
            self._depth += 1
            self._strings[id(node)] = self._own_strings(node, scope)
            self._depth -= 1
        return self._strings[id(node)]

    def _own_strings(self, node: ast.expr, scope: Scope) -> frozenset[str] | None:
        found: frozenset[str] | None = None
        match node:
            case ast.Constant(value=str(text)):
                found = frozenset({text})
            case ast.Name():
                found = _union(self._bound_strings(binding) for binding in _bindings(node, scope))
            case ast.IfExp():
                found = _union([self.strings(node.body, scope), self.strings(node.orelse, scope)])
            case ast.BinOp(op=ast.Add()):
                found = _joined([self.strings(node.left, scope), self.strings(node.right, scope)])
            case ast.JoinedStr():
                found = _joined([self.strings(part, scope) for part in node.values])
            case ast.FormattedValue(format_spec=None):
                found = self.strings(node.value, scope)
            case ast.Subscript(
                slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(operand=ast.Constant(value=1)))
            ):
                found = _map(self.strings(node.value, scope), lambda text: text[::-1])
            case ast.Call(func=ast.Name(id="chr"), args=[ast.Constant(value=int(code))]):
                found = frozenset({chr(code)}) if 0 <= code < 0x110000 else None
            case ast.Call(func=ast.Attribute() as method, keywords=[]):
                found = self._method(method, node.args, scope)
        return found

    def _bound_strings(self, binding: Binding) -> frozenset[str] | None:
        if binding.is_element:
            return _union(self.strings(element, binding.scope) for element in _elements(binding.value))
        return self.strings(binding.value, binding.scope)

    def _method(self, func: ast.Attribute, args: list[ast.expr], scope: Scope) -> frozenset[str] | None:
        """`"".join([...])`, and methods that change case or replace text."""
        base = self.strings(func.value, scope)
        if func.attr == "join" and len(args) == 1 and base is not None:
            pieces = [self.strings(element, scope) for element in _elements(args[0])]
            separated = [part for piece in pieces for part in (base, piece)][1:]
            return _joined(separated) if pieces else None
        if func.attr not in _CASE_METHODS:
            return None
        known = [self.strings(argument, scope) for argument in args]
        if any(k is None or len(k) != 1 for k in known):
            return None
        values = [next(iter(k)) for k in known if k]
        try:
            return _map(base, lambda text: str(getattr(text, func.attr)(*values)))
        except TypeError:
            return None


def _bindings(node: ast.Name, scope: Scope) -> list[Binding]:
    owner = scope.owner(node.id)
    return owner.bindings[node.id] if owner is not None else []


def _elements(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    return node.values if isinstance(node, ast.Dict) else []


def _map(texts: frozenset[str] | None, change: Callable[[str], str]) -> frozenset[str] | None:
    return None if texts is None else frozenset(change(text)[:_MAX_LENGTH] for text in texts)


def _union(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    every: frozenset[str] = _NOTHING
    for part in parts:
        if part is None:
            return None
        every |= part
    return every if 0 < len(every) <= _MAX_VALUES else None


def _joined(parts: list[frozenset[str] | None]) -> frozenset[str] | None:
    made = frozenset({""})
    for part in parts:
        if part is None or len(made) * len(part) > _MAX_VALUES:
            return None
        made = frozenset((head + tail)[:_MAX_LENGTH] for head in made for tail in part)
    return made
