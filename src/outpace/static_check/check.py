"""Walk a candidate's syntax tree once and collect what the rules refuse."""

import ast
import re
from collections.abc import Callable, Iterator

from outpace.schema import StaticReport, Violation
from outpace.source import Definition, find_entry_point, parse
from outpace.static_check import attributes
from outpace.static_check.modules import is_allowed_module, is_refused_attribute, star_names
from outpace.static_check.namespaces import check_namespace
from outpace.static_check.rules import DEFAULT, Rules
from outpace.static_check.scopes import Scope, scoped_nodes
from outpace.static_check.values import Values

_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_ENCODINGS = frozenset({"utf-8", "utf8", "utf-8-sig", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1"})
"""Cookies that leave ASCII as it is; the text is compiled as text, so these change nothing."""

_OF_INTEREST = (
    ast.Import,
    ast.ImportFrom,
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.Compare,
    ast.MatchClass,
)

Check = Callable[[ast.AST, Scope, Values, Rules], Iterator[str]]


def check(source: str, entry_point: str, rules: Rules = DEFAULT) -> StaticReport:
    """Read `source` and report whether it parses, defines `entry_point`, and what in it is refused.

    Total: any text gives a report. The same text and rules always give the same one.

    Args:
        source: the very text that will be compiled in the candidate's process.
        entry_point: a name, or `Class.method`.
        rules: what is refused.
    """
    parsed = parse(source)
    if parsed.tree is None:
        return StaticReport(parses=False, syntax_error=parsed.error)
    found = set(_check_text(source)) if rules.text else set()
    values = Values()
    families = _families(rules)
    for node, scope in scoped_nodes(parsed.tree):
        if isinstance(node, _OF_INTEREST):
            for family in families:
                found.update((getattr(node, "lineno", 0), reason) for reason in family(node, scope, values, rules))
    return StaticReport(
        parses=True,
        defines_entry_point=find_entry_point(parsed.tree, entry_point) is Definition.PRESENT,
        violations=tuple(Violation(reason=reason, line=line) for line, reason in sorted(found)),
    )


def _families(rules: Rules) -> list[Check]:
    families: list[Check] = []
    if rules.imports:
        families.append(_check_import)
    if rules.builtins:
        families += [_check_builtin, check_namespace]
    if rules.attributes:
        families += [_check_imported_attribute, attributes.check_attribute, attributes.check_computed]
    if rules.patches:
        families.append(attributes.check_patch)
    return families


def _check_text(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.split("\n"), start=1):
        if _BIDI.search(line):
            yield number, "unicode:bidi"
        cookie = _COOKIE.match(line) if number <= 2 else None
        if cookie and cookie[1].lower().replace("_", "-") not in _PLAIN_ENCODINGS:
            yield number, f"encoding:{cookie[1]}"


def _check_import(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            yield "module:."
            return
        names = [node.module or ""]
    else:
        return
    for name in names:
        if not is_allowed_module(name, rules):
            top = name.partition(".")[0]
            yield f"module:{name if top in rules.allowed_modules else top}"


def _check_imported_attribute(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    """`from module import name` is the attribute `module.name`."""
    if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
        return
    if not is_allowed_module(node.module, rules):
        return
    for alias in node.names:
        names = star_names(node.module) if alias.name == "*" else [alias.name]
        if any(is_refused_attribute(node.module, name, rules) for name in names):
            yield f"attribute:{node.module}.{alias.name}"


def _check_builtin(node: ast.AST, scope: Scope, values: Values, rules: Rules) -> Iterator[str]:
    if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
        return
    if node.id in rules.refused_builtins and not _is_own_name(node, scope):
        yield f"call:{node.id}"


def _is_own_name(node: ast.Name, scope: Scope) -> bool:
    """Whether a name that is also a built-in's surely is the candidate's own here.

    A local of a function never falls back to the built-in; a name of a module or a class does, unless a statement
    that cannot be skipped bound it before, and nothing deletes it.
    """
    owner = scope.owner(node.id)
    if owner is None:
        return False
    if owner.kind in ("function", "comprehension"):
        return True
    bindings = owner.bindings[node.id]
    if owner.kind == "class" or any(binding.is_deletion for binding in bindings):
        return False
    return any(binding.is_certain and binding.line < node.lineno for binding in bindings)
