"""Tasks whose tests are code (HumanEval's `check`, MBPP's asserts): two children that never share a process.

The test code runs in a checker child of its own. Where it calls the entry point, it meets a proxy: the checker
returns to the parent with the arguments, the parent calls the candidate's child, and the checker runs again from
its start with one answer more. Expected values thus never enter the candidate's process, and the only protocol
needed is "call a function, get a value". Test code must be deterministic between runs: `random` is reseeded.

Each `assert` is counted and its failure recorded instead of raised, so that the share passed is known; a check
that reaches its end without one assertion is an error of the task.
"""

import ast
import time
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Execution, Failure, Instance, Limits, Outcome, Sandbox, Task

MAX_CALLS = 10_000
ADAPTED = "adapted_entry"
"""What a task's adapter defines: the entry point behind a translation to and from plain values."""

_DRIVER = """
import builtins as _builtins, copy as _copy, random as _random
_answers, _state = [], {}
class _Need(BaseException):
    pass
class _CandidateFailed(Exception):
    pass
def _candidate(*args, **kwargs):
    index = _state["calls"]
    _state["calls"] += 1
    if index == len(_answers):
        raise _Need(args, kwargs)
    kind, value = _answers[index]
    if kind == "value":
        return _copy.deepcopy(value)
    error = getattr(_builtins, value, None)
    if isinstance(error, type) and issubclass(error, Exception):
        raise error("raised by the candidate")
    raise _CandidateFailed(value)
def _record(ok):
    _state["passed" if ok else "failed"] += 1
def _step(answer):
    if answer is not None:
        _answers.append(answer)
    _state.update(calls=0, passed=0, failed=0)
    _random.seed(0)
    try:
        check(_candidate)
    except _Need as need:
        return ("call", need.args[0], need.args[1])
    except Exception as error:
        return ("raised", _state["passed"], _state["failed"], type(error).__name__ + ": " + str(error)[:200])
    return ("done", _state["passed"], _state["failed"])
"""


class _CountAsserts(ast.NodeTransformer):
    """Turns `assert X, message` into a recorded check that never stops the rest."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        template = ast.parse("try:\n    _record(bool(X))\nexcept Exception:\n    _record(False)").body[0]
        assert isinstance(template, ast.Try)
        template.body[0].value.args[0].args[0] = node.test  # type: ignore[attr-defined]
        return ast.fix_missing_locations(ast.copy_location(template, node))


def instrument(test_code: str) -> str:
    """The checker's program: `test_code`, which defines `check(candidate)`, with its asserts counted."""
    return _DRIVER + "\n" + ast.unparse(_CountAsserts().visit(ast.parse(test_code)))


def run_test_code(sandbox: Sandbox, task: Task, source: str) -> Execution:
    """Execute `source` against the task's test code, each in a child of its own.

    Raises TaskError when the test code cannot be loaded, fails by itself, or asserts nothing.
    """
    if task.test_code is None:
        raise TaskError(f"task {task.id} has no test code")
    started = time.monotonic()
    program, entry_point = source, task.entry_point
    if task.adapter is not None:
        program, entry_point = f"{source}\n{task.adapter}", ADAPTED
    candidate = sandbox.open(program, entry_point, task.limits, consume_iterator=task.returns_sequence)
    try:
        checker = sandbox.open(instrument(task.test_code), "_step", Limits(import_cpu_s=2.0, wall_s=30.0, cpu_s=15.0))
        try:
            passed, failed, first = _converse(task, checker, candidate)
        finally:
            checker.close()
    finally:
        closing = candidate.close()
    if closing is not None and closing.outcome is Outcome.TAMPERING:
        passed, failed, first = 0, passed + failed, closing
    if passed + failed == 0 and first is None:
        raise TaskError(f"the test code of task {task.id} asserts nothing: a check needs at least one assert")
    if failed and first is None:
        first = Failure(
            outcome=Outcome.WRONG, reason="wrong_value", detail=f"{failed} of {passed + failed} asserts failed"
        )
    return Execution(
        tests_passed=passed,
        tests_total=max(passed + failed, 1),
        failure=first,
        wall_s=time.monotonic() - started,
    )


def _converse(task: Task, checker: Instance, candidate: Instance) -> tuple[int, int, Failure | None]:
    """Carry calls from checker to candidate until the check ends: asserts passed, failed, first failure."""
    first = candidate.load_failure
    if first is not None:
        return 0, 1, first
    answer: tuple[str, Any] | None = None
    for _ in range(MAX_CALLS):
        step = _checked_step(task, checker, answer)
        if step[0] == "done":
            return step[1], step[2], first if step[2] else None  # an exception that the check wanted is no failure
        if step[0] == "raised" and answer is None:
            raise TaskError(f"the test code of task {task.id} failed before it called the candidate: {step[3]}")
        if step[0] == "raised":
            failure = first or Failure(outcome=Outcome.WRONG, reason="check_raised", detail=step[3])
            return step[1], step[2] + 1, failure
        if step[2]:
            raise TaskError(f"the test code of task {task.id} passes keyword arguments; pass them by position")
        result = candidate.call(step[1])
        if result.failure is None:
            answer = ("value", result.value)
        else:
            first = first or result.failure
            answer = ("failed", result.failure.reason.removeprefix("exception:"))
            if result.failure.outcome not in (Outcome.CRASHED, Outcome.WRONG):
                return 0, 1, result.failure
    raise TaskError(f"the test code of task {task.id} calls the candidate more than {MAX_CALLS} times")


def _checked_step(task: Task, checker: Instance, answer: tuple[str, Any] | None) -> Any:
    result = checker.call((answer,))
    failure = checker.load_failure or result.failure
    if failure is not None:
        raise TaskError(f"the test code of task {task.id} failed by itself: {failure.reason} {failure.detail}".strip())
    return result.value
