import dataclasses
from itertools import combinations

import numpy as np
import pytest
from evaluation_fakes import SETTINGS, evaluation, graded, many
from hypothesis import given
from hypothesis import strategies as st

from outpace.evaluate import EvalSettings, pass_at_k
from outpace.evaluate.compare import differences
from outpace.evaluate.measures import measure_all
from outpace.evaluate.programs import imports_only_stdlib
from outpace.schema import Outcome


@given(st.integers(1, 9), st.data())
def test_pass_at_k_is_the_share_of_k_subsets_with_a_correct_sample(n: int, data: st.DataObject) -> None:
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations([True] * correct + [False] * (n - correct), k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_survives_numbers_whose_binomials_overflow() -> None:
    assert pass_at_k(20_000, 1, 10_000) == pytest.approx(0.5)


def test_pass_at_k_with_too_few_samples_is_unknown() -> None:
    assert pass_at_k(3, 3, 4) is None
    with pytest.raises(ValueError, match="0 <= correct <= n"):
        pass_at_k(3, 4, 1)


def test_our_own_failures_count_for_nothing_and_are_counted() -> None:
    graded_only = many(0.5)
    failed = [graded(None, task_id=f"fake/{number}", index=4, tokens=900) for number in range(6)]
    with_failures = evaluation(graded_only + failed)
    assert with_failures.infra_failures == 6
    assert with_failures.outcomes == {"correct": 12, "wrong": 12, "not_graded": 6}
    for name, measure in evaluation(graded_only).overall.items():
        assert with_failures.overall[name].value == measure.value, name
        assert with_failures.overall[name].samples == measure.samples, name


def test_each_measure_counts_what_its_label_says() -> None:
    samples = [
        graded(speedup=4.0, bound=3.0, index=0, program="a"),
        graded(speedup=1.6, bound=1.4, index=1, program="b"),
        graded(speedup=1.01, bound=1.0, index=2, program="b"),
        graded(speedup=0.5, bound=0.6, index=3, program="c"),
        graded(index=4, untrusted_timing=True, program="c"),
        graded(Outcome.WRONG, index=5),
        graded(Outcome.FORBIDDEN, index=6, parses=True, stdlib_only=True),
        graded(Outcome.SYNTAX_ERROR, index=7, finished=False, tokens=60),
    ]
    found = {name: measure.value for name, measure in measure_all(samples, SETTINGS).items()}
    assert found == pytest.approx(
        {
            "syntax": 7 / 8,
            "stdlib_only": 7 / 8,
            "compliance": 6 / 8,
            "pass@1": 5 / 8,
            "pass@4": 1 - 0 / 70,
            "faster_1x": 2 / 7,
            "faster_1.5x": 1 / 7,
            "faster_2x": 1 / 7,
            "faster_1x_of_correct": 2 / 4,
            "faster_1.5x_of_correct": 1 / 4,
            "faster_2x_of_correct": 1 / 4,
            "slower_of_correct": 1 / 4,
            "speedup_median": (1.6 + 1.01) / 2,
            "speedup_mean": (4.0 + 1.6 + 1.01 + 0.5) / 4,
            "speedup_geometric_mean": (4.0 * 1.6 * 1.01 * 0.5) ** 0.25,
            "distinct_correct": 3,
            "tokens": 25,
            "cut_off": 1 / 8,
        }
    )


def test_speed_is_unknown_where_nothing_is_correct_and_its_share_is_zero_not_unknown() -> None:
    measures = measure_all([graded(Outcome.WRONG, index=i) for i in range(8)], SETTINGS)
    assert measures["speedup_median"].value is None
    assert measures["speedup_median"].low is None
    assert measures["faster_1x_of_correct"].value is None
    assert measures["faster_1x"].value == 0.0


def test_tasks_that_cannot_be_timed_count_for_no_share_of_speed() -> None:
    samples = [graded(index=i, timed_task=False) for i in range(4)]
    assert measure_all(samples, SETTINGS)["faster_1x"].value is None


def test_an_interval_holds_its_value_and_stays_a_share() -> None:
    for measure in evaluation(many(0.5)).overall.values():
        if measure.low is not None and measure.high is not None and measure.value is not None:
            assert measure.low <= measure.value <= measure.high, measure.name
            if measure.unit == "share":
                assert 0 <= measure.low <= measure.high <= 1, measure.name


def test_all_correct_is_not_certainty() -> None:
    measure = measure_all(many(1.0, tasks=1, per_task=4), SETTINGS)["pass@1"]
    assert (measure.value, measure.high) == (1.0, 1.0)
    assert measure.low == pytest.approx(0.3976, abs=1e-3)


def test_a_few_speeds_give_no_interval() -> None:
    measure = measure_all([graded(index=i, speedup=2.0 + i) for i in range(4)], SETTINGS)["speedup_median"]
    assert (measure.value, measure.low, measure.high, measure.samples) == (3.5, None, None, 4)


def test_more_samples_narrow_the_interval() -> None:
    def width(per_task: int) -> float:
        measure = measure_all(many(0.5, tasks=1, per_task=per_task), SETTINGS)["pass@1"]
        assert measure.low is not None
        assert measure.high is not None
        return measure.high - measure.low

    assert width(64) < width(16) < width(4)


def test_pass_at_k_of_one_task_has_the_interval_of_pass_at_1_carried_over() -> None:
    measures = measure_all(many(0.5, tasks=1, per_task=8), SETTINGS)
    low, high = measures["pass@1"].low, measures["pass@1"].high
    assert low is not None
    assert high is not None
    assert measures["pass@4"].low == pytest.approx(1 - (1 - low) ** 4)
    assert measures["pass@4"].high == pytest.approx(1 - (1 - high) ** 4)


def test_the_same_seed_gives_the_same_intervals_whatever_the_order_of_samples() -> None:
    samples = many(0.5)
    assert measure_all(samples, SETTINGS) == measure_all(samples[::-1], SETTINGS)


def test_a_measure_says_how_many_samples_and_tasks_it_rests_on() -> None:
    measures = measure_all(many(0.5), SETTINGS)
    assert (measures["pass@1"].samples, measures["pass@1"].tasks) == (24, 6)
    assert (measures["speedup_mean"].samples, measures["speedup_mean"].tasks) == (12, 6)
    assert (measures["distinct_correct"].samples, measures["distinct_correct"].tasks) == (24, 6)


def test_intervals_cover_the_truth_and_equal_models_differ_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(7)
    covered = told_apart = 0
    for seed in range(60):
        chances = rng.beta(2, 2, size=16)
        one, other = (
            [
                graded(Outcome.CORRECT if rng.random() < chance else Outcome.WRONG, task_id=f"fake/{t:02}", index=i)
                for t, chance in enumerate(chances)
                for i in range(8)
            ]
            for _ in range(2)
        )
        settings = dataclasses.replace(SETTINGS, seed=seed, resamples=300, k_values=(1,))
        measure = measure_all(one, settings)["pass@1"]
        assert measure.low is not None
        assert measure.high is not None
        covered += measure.low <= 0.5 <= measure.high
        told_apart += differences(list(zip(one, other, strict=True)), settings)["pass@1"].is_clear
    assert covered >= 52  # 95 % of 60 is 57, and fewer than 52 has a chance of 1 in 200
    assert told_apart <= 8


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"samples_per_task": 0}, "samples_per_task of at least 1"),
        ({"samples_per_task": 2, "k_values": (4,)}, "pass@4 needs at least 4 samples per task"),
        ({"temperature": -1.0}, "temperature of 0 or more"),
        ({"confidence": 95}, "between 0.5 and 1"),
        ({"resamples": 3}, "at least 100 resamples"),
    ],
)
def test_settings_refuse_what_cannot_be_measured(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvalSettings(**setting)


def test_the_article_s_rule_does_not_fail_on_a_source_too_deep_to_parse() -> None:
    assert imports_only_stdlib("x = " + "(" * 5_000) is False


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import math, heapq", True),
        ("from collections.abc import Sequence", True),
        ("import ctypes", True),
        ("import numpy as np", False),
        ("def f():\n    from numba import jit", False),
        ("from . import x", False),
        ("import (", False),
    ],
)
def test_foreign_imports_are_seen_wherever_they_stand(source: str, expected: bool) -> None:
    assert imports_only_stdlib(source) is expected
