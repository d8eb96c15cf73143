"""Comparators: what counts as the expected value."""

import math
from collections import Counter, OrderedDict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import TaskError
from outpace.tasks.compare import close, comparator_from, custom, exact, unordered

NAN, INF = math.nan, math.inf
HUGE = 10**5000


def name_huge(value: Any) -> str | None:
    """Keep pytest from printing an int of 5000 digits as a test id."""
    return "huge" if type(value) is int and value >= HUGE else None


class ListLike(list):  # type: ignore[type-arg]
    pass


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("actual", "expected", "is_accepted"),
    [
        (2, 2.0, True),
        (2.0, 2, True),
        (True, 1, False),
        (1, True, False),
        (True, True, True),
        (0, False, False),
        (NAN, NAN, True),
        (1.0, NAN, False),
        (NAN, 1.0, False),
        (INF, INF, True),
        (INF, -INF, False),
        ((1, (2,)), [1, [2]], True),
        ([1, [2]], (1, (2,)), True),
        ([], [], True),
        ([], [1], False),
        ([1], [], False),
        ([1, 2], [2, 1], False),
        ("ab", ["a", "b"], False),
        (["a", "b"], "ab", False),
        ("a", b"a", False),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        ([None], [None], True),
        ({"a": 1}, {"a": 1.0}, True),
        ({1: "a"}, {True: "a"}, False),
        ({"a": [1, (2,)]}, {"a": (1, [2])}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({1, 2}, frozenset({2, 1}), True),
        ({0, 1}, {False, True}, False),
        ({True}, {1}, False),
        (HUGE, HUGE, True),
        (HUGE, HUGE + 1, False),
        (HUGE, 1.0, False),
        (1j, 1j, True),
        (Fraction(2), 2, False),
        (Decimal(2), 2, False),
        (ListLike([1]), [1], False),
        (OrderedDict(a=1), {"a": 1}, False),
        (Counter("a"), {"a": 1}, False),
        (AlwaysEqual(), 1, False),
        ([AlwaysEqual()], [1], False),
        (AlwaysEqual(), AlwaysEqual(), False),
    ],
    ids=name_huge,
)
def test_exact_accepts_equal_plain_values_only(actual: Any, expected: Any, is_accepted: bool) -> None:
    assert exact(actual, expected, ()) is is_accepted


@pytest.mark.parametrize(
    ("actual", "expected", "is_accepted"),
    [
        (1.0 + 9e-6, 1.0, True),
        (1.0 + 3e-5, 1.0, False),
        ([0.0009, 100.0], [0.0, 100.0], True),
        ([0.0011, 100.0], [0.0, 100.0], False),
        ([[1.0], [2.0]], ((1,), (2,)), True),
        ([1.0], [[1.0]], False),
        ([], [1.0], False),
        ([1.0, 2.0, 3.0], [1.0, 2.0], False),
        (True, 1.0, False),
        (Fraction(1), 1.0, False),
        (Decimal(1), 1.0, False),
        (1 + 0j, 1.0, False),
        ("1.0", 1.0, False),
        (None, 0.0, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, INF, True),
        (INF, 1.0, False),
        (1e308, INF, False),
        ([1.1, INF], [1.0, INF], False),
        ([HUGE, 1], [HUGE, 1], True),
        ([HUGE, 0.5], [HUGE, 1.5], True),
        (HUGE, 1.0, False),
        (1.0, HUGE, False),
        (HUGE * 2, HUGE, False),
        ({"a": 1.0}, {"a": 1.000001}, True),
        ({"a": "x", "b": None}, {"a": "x", "b": None}, True),
        ({"a": "x"}, {"a": "y"}, False),
    ],
    ids=name_huge,
)
def test_close_measures_against_the_largest_entry(actual: Any, expected: Any, is_accepted: bool) -> None:
    assert close(atol=1e-5, rtol=1e-5)(actual, expected, ()) is is_accepted


@pytest.mark.parametrize(
    ("actual", "expected", "levels", "is_accepted"),
    [
        ([2, 1], [1, 2], 1, True),
        ((2, 1), [1, 2], 1, True),
        ({1, 2}, [1, 2], 1, True),
        ([1, 1, 2], [1, 2, 2], 1, False),
        ([1], [1, 1], 1, False),
        ([2.0, 1], [1, 2], 1, True),
        ([True], [1], 1, False),
        ([NAN, 1], [1, NAN], 1, True),
        ([[1, 2]], [[2, 1]], 1, False),
        ([[1, 2], [3]], [[3], [2, 1]], 2, True),
        ([{"a": 1}, None], [None, {"a": 1}], 1, True),
        ([[[[1]]]], [1], 1, False),
        ([Fraction(1)], [1], 1, False),
        (AlwaysEqual(), [1], 1, False),
        (5, [5], 1, False),
    ],
)
def test_unordered_reads_lists_as_bags(actual: Any, expected: Any, levels: int, is_accepted: bool) -> None:
    assert unordered(levels)(actual, expected, ()) is is_accepted


def nested(depth: int, core: Any = 1) -> Any:
    value = core
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("compare", [exact, close(), unordered(), custom(lambda a, e, args: a == e)])
def test_values_nested_beyond_the_recursion_limit_are_compared_without_a_crash(compare: Any) -> None:
    deep = nested(100_000)
    assert compare(deep, [1], ()) is False
    assert compare([deep], [[1]], ()) is False
    assert compare({"a": deep}, {"a": [1]}, ()) is False
    assert compare([1], [1], ()) is True


def test_deep_expected_values_are_compared_entry_by_entry() -> None:
    assert exact(nested(100_000), nested(100_000), ()) is True
    assert exact(nested(100_000, 1), nested(100_000, 2), ()) is False
    assert close()(nested(100_000, 1.0), nested(100_000, 1), ()) is True


def test_custom_sees_plain_values_and_the_arguments() -> None:
    divides = custom(lambda actual, expected, args: args[0] % actual == 0)
    assert divides(3, None, (12,)) is True
    assert divides(5, None, (12,)) is False
    assert divides(0, None, (12,)) is False, "an exception means: not accepted"
    assert divides(AlwaysEqual(), None, (12,)) is False


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(PLAIN)
def test_every_plain_value_is_equal_to_itself(value: Any) -> None:
    assert exact(value, value, ())
    assert close(0.0, 0.0)(value, value, ())
    assert unordered()([value], [value], ())


@given(PLAIN, PLAIN)
def test_exact_is_symmetric(left: Any, right: Any) -> None:
    assert exact(left, right, ()) == exact(right, left, ())


@given(st.lists(PLAIN, max_size=5), st.randoms(use_true_random=False))
def test_unordered_ignores_every_shuffle(values: list[Any], rng: Any) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert unordered()(shuffled, values, ())


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.floats(0, 1e-3), st.floats(0, 1e-3))
def test_a_looser_close_accepts_whatever_a_tighter_one_does(xs: list[float], tight: float, more: float) -> None:
    moved = [x + tight for x in xs]
    if close(tight, 0.0)(moved, xs, ()):
        assert close(tight + more, more)(moved, xs, ())


@pytest.mark.parametrize(
    ("spec", "equal_to"),
    [
        ("exact", exact),
        ("close", close()),
        ({"close": {"atol": 1e-3}}, close(atol=1e-3)),
        ({"unordered": {"levels": 2}}, unordered(2)),
    ],
)
def test_a_comparator_can_be_named_in_a_file(spec: Any, equal_to: Any) -> None:
    assert comparator_from(spec) == equal_to


@pytest.mark.parametrize(
    "spec",
    [
        "exakt",
        None,
        7,
        {},
        {"close": 3},
        {"close": {"tol": 1}},
        {"close": {"atol": -1}},
        {"close": {"atol": "1"}},
        {"close": {"rtol": INF}},
        {"close": {"atol": NAN}},
        {"unordered": {"levels": 0}},
        {"exact": {"atol": 1}},
        {"close": {}, "exact": {}},
    ],
)
def test_an_unknown_comparator_is_refused_in_one_sentence(spec: Any) -> None:
    with pytest.raises(TaskError) as raised:
        comparator_from(spec)
    assert "\n" not in str(raised.value)
