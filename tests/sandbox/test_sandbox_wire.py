"""The decoder reads what `marshal` writes for plain values, and refuses everything else without harm."""

import marshal
import math
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.errors import TaskError
from outpace.sandbox import wire

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**200), max_value=2**200),
    st.floats(),
    st.complex_numbers(allow_nan=False),
    st.text(),
    st.binary(),
)
KEYS = st.one_of(st.integers(), st.text(), st.binary(), st.booleans(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(KEYS, inner),
        st.sets(KEYS),
        st.frozensets(KEYS),
    ),
    max_leaves=30,
)


def same(left: Any, right: Any) -> bool:
    """Equal in value and in exact type, all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same(list(left.items()), list(right.items()))
    return bool(left == right)


@given(VALUES)
def test_plain_values_come_back_as_they_were(value):
    assert same(wire.decode(marshal.dumps(value, 2)), value)


@pytest.mark.parametrize("count", [0, 3, 4, 5, 4096, 4097, 10_000])
@pytest.mark.parametrize("make", [float, int, str, lambda x: [x], lambda x: float(x) if x % 7 else x])
def test_long_lists_come_back_as_they_were(count, make):
    value = [make(x) for x in range(count)]
    assert same(wire.decode(marshal.dumps(value, 2)), value)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_plain_value_or_a_bad_frame(data):
    try:
        value = wire.decode(data)
    except wire.BadFrame:
        return
    assert is_plain(value)


@given(VALUES, st.data())
@settings(max_examples=200)
def test_damaged_values_give_a_plain_value_or_a_bad_frame(value, data):
    damaged = bytearray(marshal.dumps(value, 2))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        result = wire.decode(bytes(damaged))
    except wire.BadFrame:
        return
    assert is_plain(result)


def is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(is_plain(k) and is_plain(v) for k, v in value.items())
    return value is None or type(value) in (bool, int, float, str, bytes, complex)


def code_object() -> bytes:
    return marshal.dumps(compile("1", "x", "eval"), 2)


REFUSED = {
    "nothing": b"",
    "a code object": code_object(),
    "the stop-iteration singleton": b"S",
    "an ellipsis": b".",
    "a reference": b"r\0\0\0\0",
    "a flagged object": b"\xe9\0\0\0\0",
    "a version 4 string": marshal.dumps("abc"),
    "a text float": b"f\x011",
    "an interned string": b"t\x01\0\0\0a",
    "bytes after the value": b"NN",
    "a list longer than its bytes": b"[\xff\xff\xff\x7f",
    "a negative length": b"[\xff\xff\xff\xff",
    "a string longer than its bytes": b"s\xff\xff\xff\x7fabc",
    "a negative string length": b"s\xff\xff\xff\xffabc",
    "text that is not UTF-8": b"u\x01\0\0\0\xff",
    "an unhashable key": b"{[\0\0\0\0N0",
    "an unhashable member": b"<\x01\0\0\0[\0\0\0\0",
    "an endless dictionary": b"{" + b"NN" * 3,
    "half a float": b"g\0\0\0",
    "an integer with too large a digit": b"l\x01\0\0\0\xff\xff",
    "an integer with a leading zero digit": b"l\x02\0\0\0\x01\0\0\0",
    "an integer without digits": b"l\0\0\0\0",
}


@pytest.mark.parametrize("name", REFUSED)
def test_everything_else_is_refused(name):
    with pytest.raises(wire.BadFrame):
        wire.decode(REFUSED[name])


def test_nesting_is_bounded():
    with pytest.raises(wire.TooDeep):
        wire.decode(b"[\x01\0\0\0" * 5000 + b"N")
    with pytest.raises(wire.TooDeep):
        wire.decode(b"{N" * 5000)


def test_the_number_of_containers_is_bounded(monkeypatch):
    monkeypatch.setattr(wire, "MAX_CONTAINERS", 10)
    with pytest.raises(wire.TooDeep):
        wire.decode(marshal.dumps([[] for _ in range(20)], 2))


def test_keys_that_share_a_hash_are_refused_before_they_cost_minutes():
    modulus = 2**61 - 1  # integers that are multiples of it all hash to zero
    colliding = [k * modulus for k in range(1, 200_000)]
    body = b"<" + struct.pack("<i", len(colliding)) + b"".join(marshal.dumps(k, 2) for k in colliding)
    with pytest.raises(wire.BadFrame):  # building that set would take hours: the timeout of this test is its threshold
        wire.decode(body)


def test_a_huge_integer_is_read_in_reasonable_time():
    value = 7**400_000
    assert wire.decode(marshal.dumps(value, 2)) == value


def test_arguments_that_are_not_plain_are_the_tasks_fault():
    with pytest.raises(TaskError, match="plain data"):
        wire.encode_args((object(),))


def test_arguments_that_alias_each_other_arrive_as_copies():
    row = [0.0]
    body = wire.encode_args(([row, row],))
    ([first, second],) = marshal.loads(body[4:])
    assert first == second
    assert first is not second
