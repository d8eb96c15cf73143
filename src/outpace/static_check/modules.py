"""Facts about the modules that a candidate may import.

Looks at the real modules of this interpreter, but only at allowed ones of the standard library, which are safe to
import; the candidate runs under the same interpreter. A module that a task adds from elsewhere is never imported.
"""

import contextlib
import functools
import importlib
import sys
import warnings
from types import ModuleType

from outpace.static_check.rules import ALLOWED_DUNDERS, ALLOWED_MODULES, MODULE_ALIASES, NOT_ATTRIBUTES, Rules


def is_allowed_module(name: str, rules: Rules) -> bool:
    """Whether `import name` is allowed: the module or a package around it is listed, and no part of it is private."""
    parts = name.split(".")
    prefixes = {".".join(parts[: i + 1]) for i in range(len(parts))}
    is_private = any(part.startswith("_") for part in parts[1:])
    return bool(prefixes & rules.allowed_modules) and not is_private


@functools.lru_cache(maxsize=512)
def find(path: str) -> object | None:
    """The thing that a dotted path names, when it starts at an allowed standard module; None when there is none."""
    root, *rest = path.split(".")
    if root not in ALLOWED_MODULES:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # asking a module for a deprecated name may warn
        found: object = importlib.import_module(root)
        for i, part in enumerate(rest):
            if isinstance(found, ModuleType) and not hasattr(found, part) and not part.startswith("_"):
                _import_submodule(".".join([root, *rest[: i + 1]]))
            found = getattr(found, part, None)
    return found


def _import_submodule(path: str) -> None:
    with contextlib.suppress(ImportError):
        importlib.import_module(path)


def is_module(path: str) -> bool:
    """Whether a dotted path names a module; for modules that are not looked at, whether it is a bare name."""
    if path.partition(".")[0] in ALLOWED_MODULES:
        return isinstance(find(path), ModuleType)
    return "." not in path


def is_refused_attribute(path: str, name: str, rules: Rules) -> bool:
    """Whether `path.name` may not be used, `path` being a module that is allowed itself."""
    if name.startswith("_"):
        return name not in ALLOWED_DUNDERS
    only = rules.only_attributes.get(path)
    if only is not None and name not in only:
        return True
    if f"{path}.{name}" in NOT_ATTRIBUTES:
        return True
    if path.partition(".")[0] not in ALLOWED_MODULES:
        return name in MODULE_ALIASES
    value = find(f"{path}.{name}")
    return isinstance(value, ModuleType) and sys.modules.get(f"{path}.{name}") is not value


def star_names(path: str) -> list[str]:
    """The names that `from path import *` would bind, for the modules that are looked at.

    `typing` is left out: what is refused of it is refused where the name is used.
    """
    module = find(path) if path != "typing" else None
    public = [name for name in dir(module) if not name.startswith("_")] if module is not None else []
    return list(getattr(module, "__all__", public))
