"""What is allowed: plain tables, and the frozen value that carries them.

An entry that is missing here is refused; that is the point of an allow-list. Private C modules (`_ctypes`, `posix`)
and indirect importers (`pkgutil`, `pydoc`, `runpy`) therefore need no entry of their own.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from outpace.errors import ConfigError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOWED_MODULES = _words(
    """
    __future__ abc array base64 binascii bisect calendar cmath collections colorsys contextlib copy csv dataclasses
    datetime decimal difflib enum fractions functools graphlib hashlib heapq html io itertools json keyword math numbers
    operator pprint random re reprlib statistics string struct sys textwrap types typing unicodedata warnings
    zlib
    """
)
"""Modules that compute and touch nothing of the host. `sys` and `types` are open only as far as `ONLY_ATTRIBUTES`."""

ONLY_ATTRIBUTES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "sys": _words(
            """
            argv byteorder float_info float_repr_style get_int_max_str_digits getrecursionlimit getsizeof hash_info
            hexversion implementation int_info intern maxsize maxunicode platform set_int_max_str_digits
            setrecursionlimit stderr stdin stdout version version_info
            """
        ),
        "types": _words(
            """
            BuiltinFunctionType EllipsisType GeneratorType GenericAlias MappingProxyType MethodType NoneType
            NotImplementedType SimpleNamespace UnionType
            """
        ),
    }
)
"""Of these modules nothing else is allowed: the rest of `sys` reaches frames, modules and tracing."""

NOT_ATTRIBUTES = _words("io.open io.open_code io.FileIO io.OpenWrapper typing.get_type_hints typing.ForwardRef")
"""Single attributes of allowed modules that open files or evaluate text."""

REFUSED_BUILTINS = _words(
    """
    eval exec compile open breakpoint get_type_hints ForwardRef
    __import__ __builtins__ __build_class__ __loader__ __spec__
    """
)
"""`globals`, `vars`, `getattr` and their like have honest uses and rules of their own; `input` merely fails. The two
names from `typing` evaluate text; a star import brings them in unseen."""

ALLOWED_DUNDERS = frozenset(
    f"__{name}__"
    for name in _words("""
    abs add aenter aexit aiter all and anext annotations await bool bytes call ceil class class_getitem complex contains
    copy dataclass_fields deepcopy del delattr delete delitem divmod doc enter eq exit float floor floordiv format
    ge get getattr getattribute getitem gt hash iadd iand ifloordiv ilshift imatmul imod imul index init init_subclass
    instancecheck int invert ior ipow irshift isub iter itruediv ixor le len length_hint lshift lt main match_args
    matmul members missing mod module mul name ne neg new next or pos post_init pow prepare qualname radd rand rdivmod
    repr reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor set set_name
    setattr setitem slots str sub subclasscheck truediv trunc version wrapped xor
    """)
)
"""The data model as honest classes use it. Not here: what leads from a value to classes, code, frames or modules."""

REFUSED_ATTRIBUTES = _words(
    """
    f_back f_builtins f_code f_globals f_locals f_trace tb_frame tb_next gi_code gi_frame gi_yieldfrom cr_code cr_frame
    cr_origin ag_code ag_frame co_code co_consts mro
    """
)
"""Refused on any object: frames, code objects and the class tree."""

MODULE_ALIASES = _words("os sys io builtins importlib subprocess ctypes posix")
"""Refused as attributes (also with an underscore in front) of anything but `self`: no honest value has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one check refuses; each family can be switched off, to show what it stops."""

    allowed_modules: frozenset[str] = ALLOWED_MODULES
    imports: bool = True
    """Modules outside the allow-list, relative imports."""
    builtins: bool = True
    """`eval`, `open`, `__import__` and their like."""
    attributes: bool = True
    """Dunder walks, frames, private and module-valued attributes of modules, computed attribute names."""
    patches: bool = True
    """Assignments to what belongs to an imported module."""
    text: bool = True
    """Bidirectional control characters and encoding cookies that change what is read."""
    only_attributes: Mapping[str, frozenset[str]] = field(default_factory=lambda: ONLY_ATTRIBUTES)
    refused_builtins: frozenset[str] = REFUSED_BUILTINS


DEFAULT = Rules()
"""For tasks that ask for pure Python."""

ARTICLE = Rules(
    allowed_modules=frozenset(sys.stdlib_module_names),
    builtins=False,
    attributes=False,
    patches=False,
    text=False,
)
"""The plain "standard library only" rule, for comparison: it looks at import statements and at nothing else."""


def rules_for(task_allowed_modules: frozenset[str] | None, preset: str = "default") -> Rules:
    """The rules for one task: the preset's, with the task's own list of modules in place of the preset's if it has one.

    Raises:
        ConfigError: the preset is not `default` or `article`.
    """
    presets = {"default": DEFAULT, "article": ARTICLE}
    if preset not in presets:
        raise ConfigError(f"static check preset {preset!r} is not known; use one of {', '.join(presets)}")
    if task_allowed_modules is None or preset == "article":
        return presets[preset]
    return Rules(allowed_modules=task_allowed_modules | {"__future__"})
