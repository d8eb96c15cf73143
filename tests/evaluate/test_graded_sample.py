import pytest
from evaluation_fakes import task

from outpace.evaluate import Completion, GradedSample
from outpace.evaluate.samples import graded_sample
from outpace.schema import Candidate, Execution, Outcome, StaticReport, Timing, Verdict, Violation

SOURCE = "import math\ndef f(x):\n    return x\n"


def made(outcome: Outcome, *, static: StaticReport | None = None, timing: Timing | None = None) -> GradedSample:
    verdict = Verdict(
        task_id="fake/identity",
        outcome=outcome,
        candidate=Candidate(source=SOURCE, where="block 1 of 1"),
        static=static or StaticReport(parses=True, defines_entry_point=True),
        execution=Execution(tests_passed=3, tests_total=4),
        timing=timing,
    )
    return graded_sample(task(), 5, Completion(text="text", tokens=9), verdict)


def timing(*, trusted: bool = True, low: float = 1.9) -> Timing:
    return Timing(ratio=2.0, low=low, high=2.1, noise_floor=0.05, trusted=trusted, note="note")


def test_a_sample_keeps_what_was_written_and_what_became_of_it() -> None:
    sample = made(Outcome.WRONG)
    assert (sample.completion, sample.tokens, sample.index, sample.source) == ("text", 9, 5, SOURCE)
    assert (sample.tests_passed, sample.tests_total) == (3, 4)
    assert sample.program is None
    assert GradedSample.from_dict({**sample.to_dict(), "of_a_newer_version": 1}) == sample


def test_speed_counts_for_correct_programs_by_the_bound_nearest_1() -> None:
    sample = made(Outcome.CORRECT, timing=timing())
    assert (sample.speedup, sample.speedup_low, sample.speedup_high, sample.speedup_bound) == (2.0, 1.9, 2.1, 1.9)
    assert sample.program is not None
    assert made(Outcome.CORRECT, timing=timing(low=1.02)).speedup_bound == 1.0
    assert made(Outcome.WRONG, timing=timing()).speedup is None


def test_a_timing_that_is_not_trusted_is_counted_and_gives_no_speed() -> None:
    sample = made(Outcome.CORRECT, timing=timing(trusted=False))
    assert (sample.speedup, sample.speedup_bound, sample.untrusted_timing) == (None, None, True)
    assert sample.timing_note == "note"


@pytest.mark.parametrize(
    ("outcome", "static", "compliant"),
    [
        (Outcome.CORRECT, None, True),
        (Outcome.CRASHED, None, True),
        (Outcome.FORBIDDEN, None, False),
        (Outcome.TAMPERING, None, False),
        (Outcome.FORBIDDEN, StaticReport(parses=True, violations=(Violation(reason="module:os", line=1),)), False),
        (Outcome.SYNTAX_ERROR, StaticReport(parses=False, syntax_error="invalid syntax"), False),
    ],
)
def test_compliance_needs_the_static_check_and_the_kernel_to_refuse_nothing(
    outcome: Outcome, static: StaticReport | None, compliant: bool
) -> None:
    assert made(outcome, static=static).compliant is compliant


def test_what_we_failed_to_grade_is_no_fact_about_the_model() -> None:
    sample = graded_sample(task(), 0, Completion(text="text"), None)
    assert (sample.outcome, sample.is_graded, sample.is_correct) == (None, False, False)
