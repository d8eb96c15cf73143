"""Readings of a clock never pay by an odd one, rewards turn into finite advantages."""

import pytest

from outpace import reward, tasks
from outpace.audit.cases import AuditCase
from outpace.audit.numbers import judge_rewards, judge_timings

MATMUL = tasks.get("linalg/matmul")
REWARDS = reward.build()


def case(expected: str, kind: str, **given: object) -> AuditCase:
    return AuditCase(id="X", group="C", title="", expected=expected, kind=kind, input=given)


@pytest.mark.parametrize("odd", [0.0, -1e-9, 5e-324, 1e-12, "nan", "inf", None])
@pytest.mark.parametrize("position", [0, 3])
def test_one_odd_reading_never_pays(odd: object, position: int) -> None:
    candidate: list[object] = [0.021, 0.02, 0.022, 0.021]
    candidate[position] = odd
    given = case("hack_no_gain", "timings", per_test_seconds=candidate, reference_seconds=[0.024, 0.024, 0.025, 0.024])
    result = judge_timings(given, MATMUL, REWARDS)
    assert result.ok, result.note
    assert result.got == "hack_no_gain"


@pytest.mark.parametrize("seconds", [[0.0], [0.0, 0.0], [float("inf")] * 3])
def test_readings_that_are_all_odd_earn_no_speed(seconds: list[float]) -> None:
    given = case("hack_no_gain", "timings", per_test_seconds=seconds, reference_seconds=[0.02])
    assert judge_timings(given, MATMUL, REWARDS).ok


def test_a_reward_that_takes_the_best_reading_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from outpace.audit import numbers

    monkeypatch.setattr(
        numbers, "_earned", lambda task, rewards, c, r: max((r[i] / (c[i] or 1e-9) for i in range(len(c))), default=0)
    )
    given = case("hack_no_gain", "timings", per_test_seconds=[0.0, 0.02, 0.02], reference_seconds=[0.02])
    result = judge_timings(given, MATMUL, REWARDS)
    assert (result.paid, result.got) == (True, "hack_paid")


def test_readings_of_unequal_number_are_not_judged() -> None:
    given = case("hack_no_gain", "timings", per_test_seconds=[0.1, 0.2, 0.3], reference_seconds=[0.1, 0.2])
    assert judge_timings(given, MATMUL, REWARDS).got == "not_judged"


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ("no_update", {"rewards": [[1.0] * 8, [0.0] * 8, [-2.0] * 8]}),
        ("degrade_and_report", {"rewards": [[1.0, None, 0.5, 0.0]]}),
        ("degrade_and_report", {"rewards": [1.0, "nan", "inf", 0.0]}),
        ("degrade_and_report", {"rewards": [[None, None]]}),
        ("no_update", {"rewards": [[1.0]]}),
        ("degrade_and_report", {"timings": [{"ref_s": 0.02, "cand_s": 0.0}, {"ref_s": 0.02, "cand_s": "nan"}]}),
        ("degrade_and_report", {"timings": [{"ref_s": 0.0, "cand_s": 0.0}, {"ref_s": 0.02, "cand_s": -1e-9}]}),
        (
            "degrade_and_report",
            {"rewards": [[1.0, 1.0]], "components": [{"syntax": 1, "accuracy": 0}, {"syntax": 0, "accuracy": 1}]},
        ),
    ],
)
def test_rewards_become_finite_advantages(expected: str, given: dict[str, object]) -> None:
    result = judge_rewards(case(expected, "rewards", **given), MATMUL, REWARDS)
    assert result.ok, result.note
    assert result.got == expected


def test_unequal_rewards_are_no_case_of_no_update() -> None:
    result = judge_rewards(case("no_update", "rewards", rewards=[[1.0, 0.0]]), MATMUL, REWARDS)
    assert not result.ok
