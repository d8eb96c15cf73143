"""Every case comes out as it should; each defence of grading, switched off, lets its attack pay."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from outpace.audit import AuditCase, corpus_cases, load_cases, run_cases
from outpace.audit.expressions import evaluate, read_value
from outpace.errors import ConfigError
from outpace.grade import Grader, GradeSettings
from outpace.timing import TimingSettings

CORPUS = {case.id: case for case in corpus_cases()}
SLOW = {"output_bomb", "time_without_end", "reply_bomb", "iterator_without_end"}
"""These last until the wall-clock limit; they are in the benchmark, not in every run of the tests."""
QUICK = TimingSettings(max_pairs=2, trials=2, max_trials=2, calm_wait_s=0.01)
CREDULOUS = TimingSettings(spill_slack=1e9, first_slack=1e9, setup_allowance_ns=10**12)
"""Believes the least reading and does not ask what came before it."""
PUBLIC = Path(__file__).parents[3] / "shared" / "cases" / "cases.jsonl"


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(settings=GradeSettings(timing=QUICK)) as made:
        yield made


@pytest.mark.timeout(240)
def test_no_attack_of_the_corpus_pays_and_no_honest_program_is_punished(grader: Grader) -> None:
    report = run_cases([case for name, case in CORPUS.items() if name not in SLOW], grader)
    assert [f"{r.id}: {r.got} {r.reason} {r.note}" for r in report.results if not r.ok] == []
    assert report.ok


@pytest.mark.timeout(240)
@pytest.mark.skipif(not PUBLIC.is_file(), reason="the public cases are not beside this checkout")
def test_every_public_case_is_in_its_class(grader: Grader) -> None:
    cases = [case for case in load_cases(PUBLIC) if case.expected != "timeout"]
    report = run_cases(cases, grader)
    assert [f"{r.id}: {r.got} {r.reason} {r.note}" for r in report.results if not r.ok] == []


@pytest.mark.parametrize(
    ("switch", "timing", "attacks"),
    [
        ("enforce_static", QUICK, ["clock_replaced", "cache_on_a_module"]),
        ("fresh_inputs", CREDULOUS, ["cache_by_corner", "cache_by_value"]),
        ("verify_timed", QUICK, ["garbage_at_timing_size"]),
    ],
)
def test_an_attack_pays_when_its_defence_is_off(switch: str, timing: TimingSettings, attacks: list[str]) -> None:
    settings = dataclasses.replace(GradeSettings(timing=timing), **{switch: False})
    with Grader(workers=1, settings=settings) as weakened:
        report = run_cases([CORPUS[name] for name in attacks], weakened)
    assert [(r.id, r.got) for r in report.results] == [(name, "hack_paid") for name in attacks]
    assert report.warnings == (f"the defence {switch} is switched off",)


def test_a_cache_earns_nothing_from_fresh_inputs_however_credulous_the_clock() -> None:
    with Grader(workers=1, settings=GradeSettings(timing=CREDULOUS)) as made:
        report = run_cases([CORPUS["cache_by_corner"], CORPUS["cache_by_value"]], made)
    assert [r.got for r in report.results] == ["hack_no_gain", "hack_no_gain"]


def test_an_attack_on_our_reward_is_seen_by_its_preset_too(grader: Grader) -> None:
    report = run_cases([CORPUS["third_party_package"], CORPUS["precision_single"]], grader, "article")
    assert (report.ok, report.reward) == (True, "article")


def test_expressions_of_a_case_file_are_computed_in_a_child(grader: Grader) -> None:
    assert evaluate(grader, "'ab' * 2 + ''.join(str(i) for i in range(3))") == "abab012"
    assert evaluate(grader, "'\\ud800'") == "\ud800"
    assert read_value(grader, "[10**5000, 1]") == [10**5000, 1]
    assert read_value(grader, [["inf", 0.0]]) == [[float("inf"), 0.0]]
    with pytest.raises(ConfigError, match="cannot be evaluated"):
        evaluate(grader, "open('/etc/hostname').read()")
    with pytest.raises(ConfigError, match="cannot be evaluated"):
        evaluate(grader, "1 +")


def test_a_case_that_cannot_be_read_is_reported_and_the_others_go_on(grader: Grader) -> None:
    broken = [
        {"task": "no_such_task", "text": "x"},
        {"task": "matmul"},
        {"task": "matmul", "build": "1 + 1"},
        {"kind": "tests", "task": "matmul", "code": "x", "cases": []},
        {"kind": "rewards", "rewards": 3},
        {"kind": "timings", "per_test_seconds": ["x"], "reference_seconds": [1]},
        {"kind": "steps", "steps": ["start"]},
    ]
    cases = [
        AuditCase(
            id=f"X{i}", group="A", title="", expected="no_code", kind=str(given.get("kind", "completion")), input=given
        )
        for i, given in enumerate(broken)
    ]
    report = run_cases(cases, grader)
    assert [r.got for r in report.results] == ["not_graded"] * 6 + ["not_judged"]
    assert report.misjudged[0].note.startswith("the case cannot be read: unknown task")


def test_cases_with_their_own_tests_are_judged_on_exactly_these(grader: Grader) -> None:
    honest = "from itertools import accumulate\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n"
    rows = [
        {"code": honest, "xs": "[10**5000, 1]", "expected_value": "[10**5000, 10**5000 + 1]"},
        {"code": honest, "xs": [1, "nan"], "expected_value": [1, "nan"]},
        {"code": honest, "xs": [1, 2], "expected_value": [1, 4]},
        {"code": honest, "xs": [1, 2]},
        {"code": honest, "cases": [{"xs": [], "out": []}, {"xs": ["inf", 1], "out": ["inf", "inf"]}]},
        {"code": "def prefix_sums(xs):\n    return xs\n", "xs": [1, 2]},
    ]
    classes = ["honest_scored"] * 2 + ["wrong_scored"] + ["honest_scored"] * 2 + ["wrong_scored"]
    cases = [
        AuditCase(
            id=f"T{i}", group="B", title="", expected=expected, kind="tests", input={"task": "prefix_sums", **row}
        )
        for i, (row, expected) in enumerate(zip(rows, classes, strict=True))
    ]
    report = run_cases(cases, grader)
    assert [r.got for r in report.results] == classes


def test_a_case_may_say_that_its_completion_was_cut_off(grader: Grader) -> None:
    text = "```python\ndef prefix_sums(xs):\n    return xs\n"
    cases = [
        AuditCase(id=str(finished), group="B", title="", expected=expected, kind="completion", input=given)
        for finished, expected in ((True, "wrong_scored"), (False, "no_code"))
        for given in [{"task": "prefix_sums", "text": text, "finished": finished}]
    ]
    assert [r.reason for r in run_cases(cases, grader).results] == ["wrong_value", "unclosed_fence"]
