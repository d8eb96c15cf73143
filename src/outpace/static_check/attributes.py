"""Attributes: dunder walks, frames, what modules hide, computed names, and assignments to imported things."""

import ast
from collections.abc import Iterable, Iterator

from outpace.static_check.modules import is_allowed_module, is_module, is_refused_attribute
from outpace.static_check.namespaces import is_own_object
from outpace.static_check.rules import ALLOWED_DUNDERS, MODULE_ALIASES, REFUSED_ATTRIBUTES, Rules
from outpace.static_check.scopes import Scope
from outpace.static_check.values import Values

OWN_INSTANCES = frozenset({"self", "cls", "other"})
"""Names that hold objects of the candidate's own classes by custom; their computed attribute names are fine."""

_BY_NAME = frozenset({"getattr", "setattr", "delattr"})
_BY_NAME_FROM_OPERATOR = frozenset({"operator.attrgetter", "operator.methodcaller"})
_BY_NAME_METHODS = {"__getattribute__": -1, "__delattr__": -1, "__setattr__": -2}
"""Methods that take an attribute's name, and where among the arguments it stands."""


def check_attribute(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    """Attributes written out, also those that a class pattern reads."""
    if isinstance(node, ast.Attribute):
        yield from _refuse(node.value, node.attr, scope, values, rules)
        if node.attr == "__class__" and not isinstance(node.ctx, ast.Load):
            yield "attribute:__class__"
    elif isinstance(node, ast.MatchClass):
        for name in node.kwd_attrs:
            yield from _refuse(None, name, scope, values, rules)


def _refuse(base: ast.expr | None, name: str, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    is_own = isinstance(base, ast.Name) and base.id in OWN_INSTANCES
    if name in REFUSED_ATTRIBUTES:
        yield f"attribute:{name}"
    elif name.startswith("__") and name.endswith("__") and name not in ALLOWED_DUNDERS:
        if not (name == "__dict__" and is_own_object(base, scope, values)):
            yield f"attribute:{name}"
    elif paths := [path for path in sorted(values.origins(base, scope)) if is_module(path)]:
        for path in paths:
            if is_allowed_module(path, rules) and is_refused_attribute(path, name, rules):
                yield f"attribute:{path}.{name}"
    elif name.removeprefix("_") in MODULE_ALIASES and not is_own:
        yield f"attribute:{name}"


def check_computed(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    """Attributes named by a string: each name it may be is checked, one that is not known is refused."""
    if isinstance(node, ast.Name) and node.id in _BY_NAME and scope.owner(node.id) is None:
        if id(node) not in values.called:
            yield f"call:{node.id}"  # handed on under another name, so that its arguments are out of sight
        return
    if not isinstance(node, ast.Call):
        return
    func = node.func
    values.called.add(id(func))  # a call is visited before what it calls
    if isinstance(func, ast.Name) and _is_builtin_call(node, scope, _BY_NAME):
        receiver, name = [*node.args, None, None][:2]
        yield from _refuse_named(receiver, name, func.id, scope, values, rules)
    elif isinstance(func, ast.Attribute) and func.attr in _BY_NAME_METHODS:
        position = _BY_NAME_METHODS[func.attr]
        name = node.args[position] if len(node.args) >= -position else None
        is_unbound = len(node.args) > -position  # object.__setattr__(self, name, value)
        yield from _refuse_named(node.args[0] if is_unbound else func.value, name, func.attr, scope, values, rules)
    elif called := values.origins(func, scope) & _BY_NAME_FROM_OPERATOR:
        for argument in node.args if "operator.attrgetter" in called else node.args[:1]:
            names = values.strings(argument, scope)
            if names is None:
                yield f"call:{min(called)}"
            for part in sorted({part for text in names or () for part in text.split(".")}):
                yield from _refuse(None, part, scope, values, rules)


def _refuse_named(
    receiver: ast.expr | None, name: ast.expr | None, call: str, scope: Scope, values: Values, rules: Rules
) -> Iterator[str]:
    names = values.strings(name, scope)
    if names is not None:
        for known in sorted(names):
            yield from _refuse(receiver, known, scope, values, rules)
    elif values.origins(receiver, scope) or not (_is_instance(receiver, scope) or _starts_with_letter(name)):
        yield f"call:{call}"


def _is_instance(receiver: ast.expr | None, scope: Scope) -> bool:
    """`self` and the like as a parameter, or `super()`."""
    if isinstance(receiver, ast.Call):
        return isinstance(receiver.func, ast.Name) and receiver.func.id == "super"
    if not isinstance(receiver, ast.Name) or receiver.id not in OWN_INSTANCES:
        return False
    owner = scope.owner(receiver.id)
    bindings = owner.bindings[receiver.id] if owner is not None and owner.kind == "function" else []
    return bool(bindings) and all(binding.value is None and binding.path is None for binding in bindings)


def _starts_with_letter(name: ast.expr | None) -> bool:
    """`f"visit_{kind}"` and `"visit_" + kind` cannot become a dunder or a private name."""
    while isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add):
        name = name.left
    first = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else name
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value[:1].isalpha()


def check_patch(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    """Assignments to, and deletions of, what belongs to an imported module or to something imported from one."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield from (f"patch:{path}.{node.attr}" for path in values.origins(node.value, scope))
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield from (f"patch:{path}[]" for path in values.origins(node.value, scope))
    elif isinstance(node, ast.Call) and _is_builtin_call(node, scope, ("setattr", "delattr")) and node.args:
        names = values.strings(node.args[1], scope) if len(node.args) > 1 else None
        for path in values.origins(node.args[0], scope):
            yield from (f"patch:{path}.{name}" for name in names or ("*",))


def _is_builtin_call(node: ast.Call, scope: Scope, names: Iterable[str]) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in names and scope.owner(node.func.id) is None
