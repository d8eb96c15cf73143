"""Read the source text that a task carries (reference, test code), without running it.

Not covered: what the source may do; that is the static check's business, and a reference is the author's own.
"""

import ast
import builtins
import symtable
import warnings

from outpace.errors import TaskError
from outpace.source import parse


def tree_of(source: str) -> ast.Module:
    """The syntax tree of `source`, shared and not to be changed; raises TaskError when it does not parse."""
    parsed = parse(source)
    if parsed.tree is None:
        raise TaskError(f"{parsed.error}" + (f" (line {parsed.line})" if parsed.line else ""))
    return parsed.tree


def functions_of(source: str) -> dict[str, ast.FunctionDef]:
    """The functions that `source` defines at its top level, by name."""
    return {node.name: node for node in tree_of(source).body if isinstance(node, ast.FunctionDef)}


def names_in(*sources: str) -> set[str]:
    """Every name that occurs in any of the sources."""
    return {node.id for source in sources for node in ast.walk(tree_of(source)) if isinstance(node, ast.Name)}


def missing_names(source: str) -> list[str]:
    """Names that `source` reads but that neither it nor Python defines, sorted; empty when it stands alone.

    Names made by `exec` or `import *` are not seen. Raises TaskError when it does not parse.
    """
    tree_of(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape is no error
        top = symtable.symtable(source, "<reference>", "exec")
    known = {"__name__", "__doc__", *dir(builtins)}
    known |= {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
    missing = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table is top) and symbol.get_name() not in known:
                missing.add(symbol.get_name())
    return sorted(missing)
