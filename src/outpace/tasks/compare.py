"""Comparators: whether a value that came off the wire counts as the expected one.

Every comparator takes any value of any depth, runs none of its code and never raises. Accepted types are exact:
a subclass, a `Fraction` or a `Decimal` is a wrong answer, never a lenient match. Lists and tuples stand for each
other, and so do sets and frozensets. Shape is checked before values. Comparators are frozen values, so that a task
can be pickled.

Not covered: the types that may cross the wire at all (the sandbox decides that), and any notion of "nearly" for text.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Args, Comparator

_SEQUENCES = (list, tuple)
_SETS = (set, frozenset)
_NUMBERS = (int, float)
_PLAIN = (*_NUMBERS, *_SEQUENCES, *_SETS, bool, str, bytes, complex, dict, type(None))


@dataclass(frozen=True, slots=True)
class Exact:
    """Equal values: `2` equals `2.0`, `True` does not equal `1`, NaN passes only where NaN is expected."""

    def __call__(self, actual: Any, expected: Any, args: Args = ()) -> bool:
        """True when `actual` is `expected`, entry by entry."""
        leaves = _leaf_pairs(actual, expected)
        return leaves is not None and all(_same_leaf(a, e) for a, e in leaves)


@dataclass(frozen=True, slots=True)
class Close:
    """Numbers within `atol + rtol * (largest finite entry expected)`, the same bound for every entry.

    Only int and float are numbers here. An infinite entry must be met exactly and NaN only where NaN is expected.
    Entries that are not numbers (text, None, keys of a dict) must be equal.
    """

    atol: float = 1e-9
    rtol: float = 1e-9

    def __post_init__(self) -> None:
        for name, value in (("atol", self.atol), ("rtol", self.rtol)):
            if not (type(value) in _NUMBERS and 0 <= value < math.inf):
                raise TaskError(f"close: {name} must be a finite number of at least 0, got {value!r}")

    def __call__(self, actual: Any, expected: Any, args: Args = ()) -> bool:
        """True when every number of `actual` is near enough to its place in `expected`."""
        leaves = _leaf_pairs(actual, expected)
        if leaves is None:
            return False
        numbers: list[tuple[float, float]] = []
        for a, e in leaves:
            if type(e) in _NUMBERS:
                if type(a) not in _NUMBERS:
                    return False
                numbers.append((a, e))
            elif not _same_leaf(a, e):
                return False
        scale = max((abs(e) for _, e in numbers if _is_finite(e)), default=0)
        return all(self._is_near(a, e, scale) for a, e in numbers)

    def _is_near(self, actual: float, expected: float, scale: float) -> bool:
        if actual == expected:
            return True
        if not (_is_finite(actual) and _is_finite(expected)):
            return _is_nan(actual) and _is_nan(expected)
        try:
            return abs(actual - expected) <= self.atol + self.rtol * scale
        except OverflowError:  # an int beyond the range of float
            bound = Fraction(self.atol) + Fraction(self.rtol) * Fraction(scale)
            return abs(Fraction(actual) - Fraction(expected)) <= bound


@dataclass(frozen=True, slots=True)
class Unordered:
    """Equal when the outer `levels` of lists are read as collections without order; entries as in `Exact`."""

    levels: int = 1

    def __post_init__(self) -> None:
        if type(self.levels) is not int or self.levels < 1:
            raise TaskError(f"unordered: levels must be an int of at least 1, got {self.levels!r}")

    def __call__(self, actual: Any, expected: Any, args: Args = ()) -> bool:
        """True when both hold the same entries equally often."""
        if type(expected) not in (*_SEQUENCES, *_SETS) or type(actual) not in (*_SEQUENCES, *_SETS):
            return False
        if len(actual) != len(expected):
            return False
        depth = _depth(expected)
        try:
            return _frozen(actual, self.levels, depth) == _frozen(expected, self.levels, depth)
        except (_NotPlainError, RecursionError):
            return False


@dataclass(frozen=True, slots=True)
class Custom:
    """Asks `accepts(actual, expected, args)`, a trusted function of the task's author.

    It sees plain values only, at most 100 deep; an exception in it means "not accepted".
    """

    accepts: Callable[[Any, Any, Args], bool]

    def __call__(self, actual: Any, expected: Any, args: Args = ()) -> bool:
        """True when the author's function returns a true value."""
        if not _is_plain(actual, depth=100):
            return False
        try:
            return bool(self.accepts(actual, expected, args))
        except Exception:  # the contract of a comparator: odd values are wrong, never an error
            return False


exact = Exact()
"""The default comparator."""


def close(atol: float = 1e-9, rtol: float = 1e-9) -> Close:
    """Numbers within `atol + rtol * (largest entry expected)`; see `Close`."""
    return Close(atol, rtol)


def unordered(levels: int = 1) -> Unordered:
    """The outer `levels` of lists in any order; see `Unordered`."""
    return Unordered(levels)


def custom(accepts: Callable[[Any, Any, Args], bool]) -> Custom:
    """A comparator from the author's own function; see `Custom`."""
    return Custom(accepts)


def comparator_from(spec: Any) -> Comparator:
    """The comparator that a task file names.

    `"exact"`, `"close"`, `"unordered"`, or a dict with one of these and its options: `{"close": {"atol": 1e-6}}`.
    Raises TaskError for anything else.
    """
    makers: dict[str, Callable[..., Comparator]] = {"exact": Exact, "close": Close, "unordered": Unordered}
    name, options = next(iter(spec.items())) if type(spec) is dict and len(spec) == 1 else (spec, {})
    if type(name) is not str or name not in makers:
        raise TaskError(f"unknown comparator {spec!r}: use one of {', '.join(makers)}")
    if type(options) is not dict:
        raise TaskError(f"comparator {name!r}: its options must be an object, got {options!r}")
    try:
        return makers[name](**options)
    except TypeError as error:
        known = {"exact": "none", "close": "atol and rtol", "unordered": "levels"}[name]
        raise TaskError(f"comparator {name!r} has no such options: {sorted(options)} (it takes {known})") from error


class _NotPlainError(Exception):
    """A value holds something that is no plain data, or is nested too deeply."""


def _is_finite(number: float) -> bool:
    return type(number) is int or math.isfinite(number)


def _is_nan(number: complex) -> bool:
    return number != number  # noqa: PLR0124 -- true of NaN alone, for every kind of number


def _same_leaf(a: Any, e: Any) -> bool:
    """Compare two values of which `e` is neither a sequence nor a dict."""
    if type(e) in _NUMBERS:
        return type(a) in _NUMBERS and (a == e or (_is_nan(a) and _is_nan(e)))
    if type(e) in _SETS:
        return type(a) in _SETS and _same_members(a, e)
    if type(e) is complex:
        return type(a) in (*_NUMBERS, complex) and (a == e or (_is_nan(a) and _is_nan(e)))
    return type(a) is type(e) and type(e) in _PLAIN and bool(a == e)


def _leaf_pairs(actual: Any, expected: Any) -> list[tuple[Any, Any]] | None:
    """The values inside lists and dicts, each beside the one expected in its place; None when the shapes differ."""
    leaves: list[tuple[Any, Any]] = []
    pairs = [(actual, expected)]
    while pairs:
        a, e = pairs.pop()
        if type(e) in _SEQUENCES:
            if type(a) not in _SEQUENCES or len(a) != len(e):
                return None
            pairs.extend(zip(a, e, strict=True))
        elif type(e) is dict:
            if type(a) is not dict or not _same_members(a, e):
                return None
            pairs.extend((a[key], value) for key, value in e.items())
        else:
            leaves.append((a, e))
    return leaves


def _same_members(a: Any, e: Any) -> bool:
    """Whether two sets, or the keys of two dicts, agree, telling True from 1. Hashes only what is expected."""
    if len(a) != len(e) or not all(member in a for member in e):
        return False
    return sum(type(member) is bool for member in a) == sum(type(member) is bool for member in e)


def _depth(value: Any) -> int:
    """How many containers deep a trusted value is."""
    deepest, todo = 0, [(value, 1)]
    while todo:
        item, depth = todo.pop()
        deepest = max(deepest, depth)
        if type(item) is dict:
            todo.extend((entry, depth + 1) for pair in item.items() for entry in pair)
        elif type(item) in (*_SEQUENCES, *_SETS):
            todo.extend((entry, depth + 1) for entry in item)
    return deepest


def _is_plain(value: Any, depth: int) -> bool:
    todo = [(value, depth)]
    while todo:
        item, left = todo.pop()
        if type(item) not in _PLAIN or left < 0:
            return False
        if type(item) is dict:
            todo.extend((entry, left - 1) for pair in item.items() for entry in pair)
        elif type(item) in (*_SEQUENCES, *_SETS):
            todo.extend((entry, left - 1) for entry in item)
    return True


def _frozen(value: Any, levels: int, depth: int) -> Hashable:
    """A hashable stand-in that is equal for equal values; deeper than `depth` is refused, so recursion is bounded."""
    kind = type(value)
    if depth < 1 or kind not in _PLAIN:
        raise _NotPlainError
    if kind in _SEQUENCES or (kind in _SETS and levels > 0):
        entries = [_frozen(entry, levels - 1, depth - 1) for entry in value]
        return ("bag", frozenset(Counter(entries).items())) if levels > 0 else ("list", tuple(entries))
    if kind in _SETS:
        return ("set", frozenset(_frozen(entry, 0, depth - 1) for entry in value))
    if kind is dict:
        return ("dict", frozenset((_frozen(k, 0, depth - 1), _frozen(v, 0, depth - 1)) for k, v in value.items()))
    if kind in (*_NUMBERS, complex):
        return ("number", "nan" if _is_nan(value) else value)
    return (kind.__name__, value)
