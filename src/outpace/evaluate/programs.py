"""Reads programs without running them: are two of them the same, do they import anything foreign.

Only for sources that the static check has already parsed; nothing here is a security check.
"""

import ast
import hashlib
import sys


class _Canonical(ast.NodeTransformer):
    """Drops docstrings and annotations, and renames what the program binds to v0, v1, ... in order of appearance."""

    def __init__(self, bound: set[str], kept: str) -> None:
        self._bound = bound - {kept}
        self._names: dict[str, str] = {}

    def _rename(self, name: str) -> str:
        return self._names.setdefault(name, f"v{len(self._names)}") if name in self._bound else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(id=self._rename(node.id), ctx=node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(arg=self._rename(node.arg), annotation=None)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [self._rename(name) for name in node.names]
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        node.arg = self._rename(node.arg) if node.arg else None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return ast.Assign(targets=[node.target], value=node.value) if node.value else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._rename(node.name)
        node.returns = None
        node.body = _without_docstring(node.body)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._rename(node.name)
        node.body = _without_docstring(node.body)
        self.generic_visit(node)
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return (body[1:] or [ast.Pass()]) if is_text else body


def _bound_names(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def fingerprint(source: str, entry_point: str) -> str:
    """Equal for programs that differ only in layout, comments, docstrings, annotations and names of their own.

    It does not see deeper: two spellings of one algorithm are two programs. Falls back to the text itself when
    the source is too deep to walk.
    """
    try:
        tree = ast.parse(source)
        tree.body = _without_docstring(tree.body) if tree.body else []
        form = ast.dump(_Canonical(_bound_names(tree), entry_point).visit(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        form = source
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def imports_only_stdlib(source: str) -> bool:
    """Whether every import statement names a standard-library module: the seed article's rule, no more.

    True for `import ctypes`: what is allowed is the static check's question. False when the source does not parse.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = ["." if node.level else node.module or "."]
        else:
            continue
        if any(module.partition(".")[0] not in sys.stdlib_module_names for module in modules):
            return False
    return True
