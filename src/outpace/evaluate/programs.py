"""Reads programs without running them: do they import anything foreign. Not a security check."""

import ast
import sys

from outpace.source import parse


def imports_only_stdlib(source: str) -> bool:
    """Whether every import statement names a standard-library module: the seed article's rule, no more.

    True for `import ctypes`: what is allowed is the static check's question. False when the source does not parse.
    """
    tree = parse(source).tree
    if tree is None:
        return False
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append("." * node.level + (node.module or ""))
    return all(module.partition(".")[0] in sys.stdlib_module_names for module in modules)
