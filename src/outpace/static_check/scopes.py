"""Which scope a name belongs to, and what was bound to it: Python's own rules, read off the syntax tree.

Without recursion, so that a deep tree cannot overflow the stack. Values are followed only as far as plain
assignment carries them (`_r = random`); what a function returns is not.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from outpace.source import is_main_guard

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(slots=True)
class Binding:
    """One place where a name gets a value."""

    line: int
    scope: "Scope"
    """Where `value` is evaluated."""
    path: str | None = None
    """Dotted origin, when an import binds it: `random`, `random.Random`."""
    value: ast.expr | None = None
    """The expression assigned, or one that holds it as an element."""
    is_element: bool = False
    """The value is an element of `value` (a loop variable)."""
    is_certain: bool = False
    """A top-level statement that cannot be skipped."""
    is_deletion: bool = False


@dataclass(slots=True)
class Scope:
    """A module, class, function or comprehension, with the names it binds."""

    kind: str
    parent: "Scope | None" = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)

    def module(self) -> "Scope":
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self, name: str) -> "Scope | None":
        """The scope whose binding of `name` is seen from here; None: nobody binds it, so it is a built-in."""
        if name in self.global_names:
            module = self.module()
            return module if name in module.bindings else None
        scope: Scope | None = self
        while scope is not None:
            is_visible = scope is self or scope.kind != "class"
            if is_visible and name in scope.bindings and name not in scope.nonlocal_names:
                return scope
            scope = scope.parent
        return None

    def bind(self, name: str, binding: Binding) -> None:
        """Record a binding where it takes effect (`global` and `nonlocal` move it outwards)."""
        target = self
        if name in self.global_names:
            target = self.module()
        elif name in self.nonlocal_names and self.parent is not None:
            target = self.parent.owner(name) or self.parent
        target.bindings.setdefault(name, []).append(binding)


def scoped_nodes(tree: ast.Module) -> list[tuple[ast.AST, Scope]]:
    """Every node that can run, with the scope it runs in; all bindings are known when this returns.

    The body of `if __name__ == "__main__":` is left out, unless the source binds `__name__` itself.
    """
    builder = _Builder(tree)
    builder.run()
    return builder.nodes


class _Builder:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes: list[tuple[ast.AST, Scope]] = []
        self.top = set(map(id, tree.body))
        self.bound: set[int] = set()
        """Ids of the Name nodes whose value is already recorded."""

    def run(self) -> None:
        pending: list[tuple[ast.AST, Scope]] = [(self.tree, Scope("module"))]
        while pending:
            node, scope = pending.pop()
            self.nodes.append((node, scope))
            self._bind(node, scope)
            pending.extend(reversed(list(self._children(node, scope))))

    def _children(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        inner = scope
        inside: set[int] | None = None
        if isinstance(node, _Function):
            inner = Scope("function", scope)
            body = node.body if isinstance(node.body, list) else [node.body]
            inside = set(map(id, body))
            _declare(body, inner)
            _bind_parameters(node.args, inner, node.lineno)
        elif isinstance(node, ast.ClassDef):
            inner, inside = Scope("class", scope), set(map(id, node.body))
            _declare(node.body, inner)
        elif isinstance(node, _Comprehension):
            inner = Scope("comprehension", scope)
        elif isinstance(node, ast.If) and self._is_dead_guard(node):
            yield from ((child, scope) for child in node.orelse)
            return
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context):
                yield child, inner if inside is None or id(child) in inside else scope

    def _is_dead_guard(self, node: ast.If) -> bool:
        return id(node) in self.top and is_main_guard(node) and not _may_rebind_name(self.tree)

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        certain = id(node) in self.top
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.bind(node.name, Binding(node.lineno, scope, is_certain=certain))
            case ast.Import() | ast.ImportFrom():
                _bind_import(node, scope, certain)
            case ast.Assign():
                for target in node.targets:
                    self._bind_target(target, node.value, scope, certain=certain)
            case ast.AnnAssign(value=ast.expr() as value):
                self._bind_target(node.target, value, scope, certain=certain)
            case ast.NamedExpr():
                self._bind_target(node.target, node.value, _function_around(scope))
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                self._bind_target(node.target, node.iter, scope, is_element=True)
            case _:
                self._bind_opaque(node, scope)

    def _bind_opaque(self, node: ast.AST, scope: Scope) -> None:
        """Names that get a value which is not followed."""
        match node:
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scope.bind(name, Binding(node.lineno, scope))
            case ast.MatchMapping(rest=str(name)):
                scope.bind(name, Binding(node.lineno, scope))
            case ast.Name(ctx=ast.Store() | ast.Del()) if id(node) not in self.bound:
                scope.bind(node.id, Binding(node.lineno, scope, is_deletion=isinstance(node.ctx, ast.Del)))

    def _bind_target(
        self, target: ast.expr, value: ast.expr, scope: Scope, *, certain: bool = False, is_element: bool = False
    ) -> None:
        pairs = [(target, value, is_element)]
        while pairs:
            target, value, is_element = pairs.pop()
            if isinstance(target, ast.Name):
                self.bound.add(id(target))
                binding = Binding(target.lineno, scope, None, value, is_element=is_element, is_certain=certain)
                scope.bind(target.id, binding)
            elif isinstance(target, ast.Tuple | ast.List):
                elements = value.elts if isinstance(value, ast.Tuple | ast.List) and not is_element else []
                if len(elements) == len(target.elts):
                    pairs += [(t, v, False) for t, v in zip(target.elts, elements, strict=True)]
                else:
                    pairs += [(t, value, True) for t in target.elts]
            elif isinstance(target, ast.Starred):
                pairs.append((target.value, value, True))


def _function_around(scope: Scope) -> Scope:
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    return scope


def _may_rebind_name(tree: ast.Module) -> bool:
    """Whether `__name__` may be made `"__main__"` by the source itself."""
    return any(
        (isinstance(node, ast.Name) and node.id == "__name__" and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.alias) and "__name__" in (node.name, node.asname))
        or (isinstance(node, ast.Global) and "__name__" in node.names)
        for node in ast.walk(tree)
    )


def _declare(body: list[ast.stmt] | list[ast.expr], scope: Scope) -> None:
    """Collect the `global` and `nonlocal` names of one function; they hold for all of it."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Global):
            scope.global_names.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.nonlocal_names.update(node.names)
        elif isinstance(node, ast.stmt) and not isinstance(node, _Definition):
            pending.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.ExceptHandler | ast.match_case):
            pending.extend(node.body)


def _bind_parameters(arguments: ast.arguments, scope: Scope, line: int) -> None:
    outside = scope.parent or scope
    positional = [*arguments.posonlyargs, *arguments.args]
    rest = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    for parameter in [*positional, *arguments.kwonlyargs, *rest]:
        scope.bind(parameter.arg, Binding(line, scope))
    defaults = list(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    keyword = [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    for parameter, default in defaults + keyword:
        scope.bind(parameter.arg, Binding(line, outside, None, default))


def _bind_import(node: ast.Import | ast.ImportFrom, scope: Scope, certain: bool) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            top = alias.name.partition(".")[0]
            name, path = alias.asname or top, alias.name if alias.asname else top
        elif alias.name == "*" or node.level or not node.module:
            continue
        else:
            name, path = alias.asname or alias.name, f"{node.module}.{alias.name}"
        scope.bind(name, Binding(node.lineno, scope, path, is_certain=certain))
