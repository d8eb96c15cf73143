"""Runs a candidate on hidden tests: the parent makes the inputs, holds the expected values and judges.

Covers tasks with generated inputs and an oracle, and tasks with listed cases. Tasks whose tests are code are in
`checker`. The candidate is called before the expected value is computed, so that it exists nowhere to be found.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Args, Execution, Failure, Instance, Outcome, Purpose, Sandbox, Task


def run_hidden_tests(sandbox: Sandbox, task: Task, source: str, rng: random.Random) -> Execution:
    """Execute `source` in one fresh child on every hidden test of `task`.

    After a failure that leaves the child alive (an exception, a wrong value) the other tests still run, so that
    partial credit is honest; once the child is dead the rest count as failed.
    Raises TaskError when the task has no tests or its oracle fails, InfrastructureError when we fail.
    """
    started = time.monotonic()
    instance = sandbox.open(source, task.entry_point, task.limits, consume_iterator=task.returns_sequence)
    passed = total = 0
    charged_ns = instance.load_cpu_ns or 0
    first = instance.load_failure
    try:
        for args, expect in _tests(task, rng):
            total += 1
            if instance.load_failure is not None:
                continue
            result = instance.call(args)
            charged_ns += result.cpu_ns or 0
            failure = result.failure or _judge(task, result.value, expect(), args)
            passed += failure is None
            first = first or failure
    finally:
        first = _close(instance) or first
    if total == 0:
        raise TaskError(f"task {task.id} made no tests for {Purpose.CORRECTNESS}: a task needs at least one")
    return Execution(
        tests_passed=0 if first is not None and first.outcome is Outcome.TAMPERING else passed,
        tests_total=total,
        failure=first,
        cpu_ns=charged_ns,
        max_rss_bytes=None if instance.usage is None else instance.usage.max_rss_bytes,
        wall_s=time.monotonic() - started,
    )


def _close(instance: Instance) -> Failure | None:
    """End the child; tampering found at the end overrides whatever came before it."""
    failure = instance.close()
    return failure if failure is not None and failure.outcome is Outcome.TAMPERING else None


class _Expected:
    """The expected value of one call, computed only when it is asked for."""

    def __init__(self, task: Task, args: Args, value: Any = None) -> None:
        self._task, self._args, self._value = task, args, value

    def __call__(self) -> Any:
        if self._task.oracle is None:
            return self._value
        try:
            return self._task.oracle(*self._args)
        except Exception as error:
            raise TaskError(f"the oracle of task {self._task.id} failed on its own input: {error!r}") from error


def _tests(task: Task, rng: random.Random) -> Iterator[tuple[Args, _Expected]]:
    if task.inputs is not None:
        for args in task.inputs(rng, Purpose.CORRECTNESS):
            yield args, _Expected(task, args)
    for case in task.cases:
        yield case.args, _Expected(task, case.args, case.expected)


def _judge(task: Task, actual: Any, expected: Any, args: Args) -> Failure | None:
    if task.compare(actual, expected, args):
        return None
    return Failure(outcome=Outcome.WRONG, reason="wrong_value", detail=_difference(actual, expected))


def _difference(actual: Any, expected: Any) -> str:
    """A short line for people; sizes are capped because both sides may be huge."""
    return f"expected {_shorten(expected)}, got {_shorten(actual)}"


def _shorten(value: Any, limit: int = 80) -> str:
    if isinstance(value, int) and abs(value).bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | tuple | set | frozenset | dict) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)} entries"
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 3] + "..."
