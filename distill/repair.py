"""Adds the imports that a program forgot; the teacher's most frequent slip is `List[...]` without `typing`."""

import ast
import builtins

_HOME = dict.fromkeys(("List", "Dict", "Tuple", "Set", "Optional", "Union", "Any", "Iterable", "Callable"), "typing")
_HOME |= dict.fromkeys(("defaultdict", "Counter", "deque", "OrderedDict"), "collections")
_HOME |= dict.fromkeys(("lru_cache", "reduce", "cache", "cmp_to_key"), "functools")
_HOME |= dict.fromkeys(("accumulate", "product", "combinations", "permutations", "chain", "groupby"), "itertools")
_HOME |= dict.fromkeys(("bisect_left", "bisect_right"), "bisect") | {"gcd": "math", "sqrt": "math", "prod": "math"}
_HOME |= dict.fromkeys(("heappush", "heappop", "heapify", "nsmallest"), "heapq") | {"mul": "operator"}
_MODULES = ("math", "itertools", "functools", "operator", "collections", "heapq", "bisect", "re", "string")


def add_imports(source: str) -> str | None:
    """Return the source with the imports it lacks, or None when it lacks none that we know."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    known = set(dir(builtins))
    used: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Name):
            known.add(node.id) if isinstance(node.ctx, ast.Store) else used.append(node.id)
    missing = [name for name in dict.fromkeys(used) if name not in known]
    lines = [f"import {name}" for name in missing if name in _MODULES]
    homes: dict[str, list[str]] = {}
    for name in missing:
        if name in _HOME:
            homes.setdefault(_HOME[name], []).append(name)
    lines += [f"from {module} import {', '.join(names)}" for module, names in homes.items()]
    if not lines:
        return None
    gap = "\n" if source.startswith(("import ", "from ")) else "\n\n"
    return "\n".join(lines) + gap + source
