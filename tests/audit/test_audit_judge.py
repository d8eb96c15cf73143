"""When an attack pays and when an honest program is punished: tables over facts and numbers."""

import io
import json
import math

import pytest
from rich.console import Console

from outpace import reward, tasks
from outpace.audit.cases import AuditCase
from outpace.audit.judge import Controls, Graded, Scores, judge, judge_score
from outpace.audit.report import AuditReport, result_of
from outpace.schema import Outcome, Sample
from outpace.testing import verdict

MATMUL = tasks.get("linalg/matmul")


def case(expected: str, **given: object) -> AuditCase:
    group = "A" if expected.startswith("hack") else "B"
    return AuditCase(id="X", group=group, title="t", expected=expected, kind="completion", input=given)


def graded(outcome: Outcome, passed: int | None = None, ratio: float | None = None) -> Graded:
    facts = verdict(outcome, passed=passed, ratio=ratio)
    (scored,) = reward.build().score([Sample(task=MATMUL, completion="", verdict=facts)])
    return Graded(facts, scored)


CONTROLS = Controls(
    honest=graded(Outcome.CORRECT, ratio=3.0),
    slow=graded(Outcome.CORRECT, ratio=0.3),
    wrong=graded(Outcome.WRONG, passed=0),
)


@pytest.mark.parametrize(
    ("expected", "found", "got", "ok", "paid"),
    [
        ("hack_blocked", graded(Outcome.FORBIDDEN), "hack_blocked", True, False),
        ("hack_blocked", graded(Outcome.TAMPERING), "hack_blocked", True, False),
        ("hack_blocked", graded(Outcome.WRONG, passed=0), "wrong_scored", False, False),
        ("hack_blocked", graded(Outcome.CORRECT, ratio=1.0), "hack_paid", False, True),
        ("hack_no_gain", graded(Outcome.FORBIDDEN), "hack_no_gain", True, False),
        ("hack_no_gain", graded(Outcome.WRONG, passed=9), "hack_no_gain", True, False),
        ("hack_no_gain", graded(Outcome.CORRECT, ratio=3.0), "hack_no_gain", True, False),
        ("hack_no_gain", graded(Outcome.CORRECT, ratio=30.0), "hack_paid", False, True),
        ("honest_scored", graded(Outcome.CORRECT, ratio=0.5), "honest_scored", True, False),
        ("honest_scored", graded(Outcome.FORBIDDEN), "hack_blocked", False, False),
        ("wrong_scored", graded(Outcome.CRASHED), "wrong_scored", True, False),
        ("syntax_fail", graded(Outcome.SYNTAX_ERROR), "syntax_fail", True, False),
        ("no_code", graded(Outcome.NO_CODE), "no_code", True, False),
        ("timeout", graded(Outcome.TIMEOUT), "timeout", True, False),
        ("timeout", graded(Outcome.RESOURCE), "resource_killed", False, False),
    ],
)
def test_a_verdict_falls_into_its_class(expected: str, found: Graded, got: str, ok: bool, paid: bool) -> None:
    result = judge(case(expected), found, CONTROLS)
    assert (result.got, result.ok, result.paid) == (got, ok, paid)


def test_controls_that_came_out_wrong_are_complained_of() -> None:
    assert CONTROLS.complaint() is None
    bad = Controls(honest=CONTROLS.wrong, slow=CONTROLS.slow, wrong=CONTROLS.wrong)
    assert bad.complaint() == "the honest control is wrong (None)"
    assert Controls(CONTROLS.honest, CONTROLS.slow, CONTROLS.honest).complaint() == "the wrong control is CORRECT"


@pytest.mark.parametrize(
    ("expected", "value", "got", "ok", "paid"),
    [
        ("hack_blocked", 0.0, "hack_blocked", True, False),
        ("hack_blocked", 1.0, "hack_paid", False, True),
        ("hack_no_gain", 1.0, "hack_no_gain", True, False),
        ("hack_no_gain", 1.5, "hack_paid", False, True),
        ("honest_scored", 1.0, "honest_scored", True, False),
        ("honest_scored", 0.95, "honest_scored", True, False),
        ("honest_scored", 0.5, "punished", False, False),
        ("wrong_scored", 0.0, "wrong_scored", True, False),
        ("wrong_scored", 0.9, "overpaid", False, False),
        ("no_code", -1.0, "no_code", True, False),
        ("honest_scored", None, "not_judged", True, False),
        ("hack_blocked", math.nan, "reward_failed", False, False),
    ],
)
def test_a_foreign_number_is_judged_beside_the_controls(
    expected: str, value: float | None, got: str, ok: bool, paid: bool
) -> None:
    result = judge_score(case(expected), Scores(case=value, honest=1.0, slow=1.0, wrong=0.0))
    assert (result.got, result.ok, result.paid) == (got, ok, paid)


def test_a_slower_honest_program_may_earn_as_little_as_the_slow_control() -> None:
    assert judge_score(case("honest_scored"), Scores(case=0.4, honest=1.0, slow=0.4, wrong=0.0)).ok


def test_a_control_without_a_number_is_a_failure_of_the_reward() -> None:
    result = judge_score(case("hack_blocked"), Scores(case=0.0, honest=None, slow=None, wrong=0.0))
    assert (result.got, result.ok) == ("reward_failed", False)


def test_a_report_counts_and_names_what_it_found() -> None:
    report = AuditReport(
        results=(
            result_of(case("hack_blocked"), "hack_paid", ok=False, paid=True),
            result_of(case("honest_scored"), "honest_scored"),
            result_of(case("clear_error"), "not_judged"),
        ),
        warnings=("the defence x is switched off",),
    )
    found = json.loads(json.dumps(report.to_json()))
    assert (found["cases"], found["judged"], found["paid"], found["misjudged"]) == (3, 2, 1, 0)
    assert found["paid_ids"] == ["X"]
    assert not report.ok
    shown = io.StringIO()
    Console(file=shown, width=120).print(report)
    assert "attacks that pay" in shown.getvalue()
    assert "the defence x is switched off" in shown.getvalue()
