"""One completion -> one `Verdict`: the whole pipeline on one screen.

extract -> static check -> hidden tests in a fresh child; then, for the correct ones of a group, timing.
Facts only: what a verdict is worth is a reward's business. Runs inside a scoring process.
"""

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from outpace.errors import TaskError
from outpace.extract import extract
from outpace.fingerprint import fingerprint
from outpace.grade.checker import run_test_code
from outpace.grade.hidden_tests import run_hidden_tests
from outpace.grade.settings import GradeSettings
from outpace.grade.timed import time_group
from outpace.schema import Candidate, Execution, Failure, Outcome, Sandbox, StaticReport, Task, Timing, Verdict
from outpace.static_check import check as static_check
from outpace.static_check import rules_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One completion to grade: its text, whether it ended by itself, and its answer when reasoning was split off."""

    completion: str
    finished: bool = True
    answer: str | None = None


def check(sandbox: Sandbox, task: Task, submission: Submission, settings: GradeSettings) -> Verdict:
    """Everything but speed: find the code, read it, run it on hidden tests; each stage only if the one before passed.

    Raises InfrastructureError when we fail and TaskError when the task itself is broken; never because of anything
    in the completion.
    """
    found = extract(
        submission.completion,
        task.entry_point,
        finished=submission.finished,
        lenient=settings.lenient,
        answer=submission.answer,
    )
    if found.candidate is None:
        return Verdict(task_id=task.id, outcome=Outcome.NO_CODE, reason=found.reason, isolation=sandbox.isolation)
    report = static_check(
        found.candidate.source,
        task.entry_point,
        rules_for(task.allowed_modules, preset=settings.static_preset),
    )
    refusal = _refusal(report, settings)
    if refusal is not None:
        return _verdict(sandbox, task, found.candidate, report, refusal)
    execution = _execute(sandbox, task, found.candidate.source, settings)
    return _verdict(sandbox, task, found.candidate, report, execution.failure, execution)


def time_programs(
    sandbox: Sandbox, task: Task, sources: Sequence[str], settings: GradeSettings
) -> list[Timing | Failure]:
    """Measure correct programs of one group together, interleaved on the same inputs."""
    return time_group(sandbox, task, sources, input_rng(settings), settings)


def with_timing(verdict: Verdict, measured: Timing | Failure) -> Verdict:
    """The verdict with its timing. A failure takes correctness back: the program was right only while untimed."""
    if isinstance(measured, Timing):
        return replace(verdict, timing=measured)
    execution = verdict.execution
    if execution is not None:
        passed = 0 if measured.outcome is Outcome.TAMPERING else execution.tests_passed
        execution = replace(execution, tests_passed=passed, tests_total=execution.tests_total + 1, failure=measured)
    return replace(
        verdict, outcome=measured.outcome, reason=measured.reason, detail=measured.detail, execution=execution
    )


def input_rng(settings: GradeSettings) -> random.Random:
    """The generator of hidden inputs: from the operating system's secret source, or from the seed asked for."""
    return random.Random(secrets.randbits(128) if settings.seed is None else settings.seed)


def _refusal(report: StaticReport, settings: GradeSettings) -> Failure | None:
    if not report.parses:
        detail = report.syntax_error or ""
        return Failure(outcome=Outcome.SYNTAX_ERROR, reason="syntax", detail=detail)
    if not report.defines_entry_point:
        return Failure(outcome=Outcome.NO_CODE, reason="no_entry_point")
    if report.violations and settings.enforce_static:
        first = report.violations[0]
        return Failure(outcome=Outcome.FORBIDDEN, reason=first.reason, detail=f"line {first.line}: {first.detail}")
    return None


def _execute(sandbox: Sandbox, task: Task, source: str, settings: GradeSettings) -> Execution:
    if task.test_code is not None:
        return run_test_code(sandbox, task, source)
    if task.inputs is None and not task.cases:
        raise TaskError(f"task {task.id} has no tests: give it inputs with an oracle, cases, or test code")
    return run_hidden_tests(sandbox, task, source, input_rng(settings))


def _verdict(
    sandbox: Sandbox,
    task: Task,
    candidate: Candidate,
    report: StaticReport,
    failure: Failure | None,
    execution: Execution | None = None,
) -> Verdict:
    return Verdict(
        task_id=task.id,
        outcome=Outcome.CORRECT if failure is None else failure.outcome,
        program=fingerprint(candidate.source, task.entry_point) if failure is None else None,
        reason=None if failure is None else failure.reason,
        detail="" if failure is None else failure.detail,
        candidate=candidate,
        static=report,
        execution=execution,
        isolation=sandbox.isolation,
    )
