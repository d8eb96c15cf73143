import json
import math
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.reward.advantages import deviation, normalize, normalize_then_sum, sum_then_normalize

CASES = Path(__file__).parents[3] / "shared" / "cases" / "cases.jsonl"
ONE = {"r": 1.0}


def rows(values):
    return [{"r": value} for value in values]


@pytest.mark.parametrize("value", [1.0, 0.0, -2.0, 0.1, 1e-9])
def test_a_group_of_equal_rewards_has_advantages_of_exactly_zero(value):
    assert sum_then_normalize(rows([value] * 8), ONE) == [0.0] * 8
    assert normalize_then_sum([rows([value] * 8), rows([value] * 8)], ONE) == [[0.0] * 8] * 2


def test_the_textbook_numbers():
    values = [1.0, 0.0, 0.0, 3.0]
    mean, std = statistics.mean(values), statistics.stdev(values)
    expected = [(v - mean) / (std + 1e-4) for v in values]
    assert sum_then_normalize(rows(values), ONE) == pytest.approx(expected, abs=1e-12)
    assert sum_then_normalize(rows(values), ONE, scale=False) == pytest.approx([0, -1, -1, 2])


def test_a_sample_without_rewards_is_masked_and_does_not_move_the_others():
    masked = sum_then_normalize(rows([1.0, None, 0.5, 0.0]), ONE)
    without = sum_then_normalize(rows([1.0, 0.5, 0.0]), ONE)
    assert masked == [without[0], None, without[1], without[2]]
    assert normalize_then_sum([rows([1.0, None, 0.5, 0.0])], ONE)[0][1] is None


def test_a_group_of_nothing_but_failures_is_masked_as_a_whole():
    assert sum_then_normalize(rows([None, None]), ONE) == [None, None]
    assert normalize_then_sum([rows([None, None]), rows([0.0, 1.0])], ONE)[0] == [None, None]


def test_a_single_sample_has_no_advantage():
    assert sum_then_normalize(rows([5.0]), ONE) == [0.0]


def test_normalising_first_keeps_mixtures_apart_that_have_one_sum():
    group = [{"syntax": 1, "accuracy": 0}, {"syntax": 0, "accuracy": 1}] * 2
    even = {"syntax": 1.0, "accuracy": 1.0}
    assert sum_then_normalize(group, even) == [0.0] * 4
    first, second, *_ = normalize_then_sum([group], {"syntax": 1.0, "accuracy": 2.0})[0]
    assert second > 0 > first


def test_normalising_first_gives_a_component_of_small_spread_its_full_weight():
    group = [{"big": 100.0, "small": 0.0}, {"big": 0.0, "small": 0.01}, {"big": 0.0, "small": 0.0}]
    even = {"big": 1.0, "small": 1.0}
    small_first = normalize_then_sum([group], even)[0]
    summed = sum_then_normalize(group, even)
    assert summed[1] - summed[2] < 0.001
    assert small_first[1] - small_first[2] > 1.0


numbers = st.floats(-100, 100).map(lambda x: round(x, 6))


@given(st.lists(numbers, min_size=1, max_size=16))
def test_advantages_are_finite_sum_to_nothing_and_keep_the_order(values):
    advantages = normalize(values)
    assert all(math.isfinite(a) for a in advantages)
    assert math.fsum(advantages) == pytest.approx(0, abs=1e-6)
    by_value = [a for _, a in sorted(zip(values, advantages, strict=True))]
    assert by_value == sorted(by_value)


@given(st.lists(numbers, min_size=2, max_size=16))
def test_the_deviation_is_the_sample_deviation(values):
    assert deviation(values) == pytest.approx(statistics.stdev(values), abs=1e-9)


def test_the_shared_cases_about_advantages_hold():
    if not CASES.exists():
        pytest.skip("the shared case file is not here")
    cases = {case["id"]: case["input"] for case in map(json.loads, CASES.read_text().splitlines())}
    for group in cases["C001"]["rewards"]:
        assert sum_then_normalize(rows(group), ONE) == [0.0] * len(group)
    masked = sum_then_normalize(rows(cases["C003"]["rewards"][0]), ONE)
    assert [value is None for value in masked] == [False, True, False, False]
    assert all(math.isfinite(value) for value in masked if value is not None)
    components = cases["C009"]["components"]
    assert sum_then_normalize(components, {"syntax": 1.0, "accuracy": 1.0}) == [0.0] * 4
    assert any(sum_then_normalize(components, {"syntax": 1.0, "accuracy": 2.0}))
