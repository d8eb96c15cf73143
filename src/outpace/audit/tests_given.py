"""Cases of kind `tests`: a program, and the very calls on which it is judged.

`code`, then either arguments by name with `expected_value`, or `cases`: a list of arguments with `out`. A single number
as the expected value of a task that returns a nested list stands for every entry of it.
"""

import inspect
from dataclasses import replace
from typing import Any

from outpace import tasks
from outpace.audit.cases import AuditCase, fenced
from outpace.audit.expressions import read_value
from outpace.errors import ConfigError, TaskError
from outpace.grade import Grader
from outpace.schema import Args, Case, Task

_NOT_ARGUMENTS = frozenset({"kind", "task", "code", "text", "expected_value", "out", "cases"})


def find_task(name: str | None) -> Task:
    """A task by id, or by the part of a built-in id behind the slash (`matmul`); raises TaskError."""
    if name is None:
        raise TaskError("the case names no task; give input.task, for example matmul")
    if "/" in name:
        return tasks.get(name)
    found = [task for task in tasks.load("builtin") if task.id.rpartition("/")[2] == name]
    return found[0] if found else tasks.get(name)


def task_and_completion(case: AuditCase, grader: Grader) -> tuple[Task, str]:
    """The task with the case's own calls as its only tests, and the program as a completion."""
    task, given = find_task(case.task), case.input
    rows = given.get("cases", [given])
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"case {case.id} holds no test; give arguments with expected_value, or cases")
    fixed = tuple(_read_row(row, task, grader) for row in rows)
    task = replace(task, inputs=None, oracle=None, reference=None, test_code=None, cases=fixed)
    return task, fenced(str(given["code"])) if "code" in given else str(given.get("text", ""))


def _read_row(row: dict[str, Any], task: Task, grader: Grader) -> Case:
    names = [name for name in row if name not in _NOT_ARGUMENTS]
    if task.oracle is not None:
        order = list(inspect.signature(task.oracle).parameters)
        names.sort(key=lambda name: order.index(name) if name in order else len(order))
    args = tuple(read_value(grader, row[name]) for name in names)
    own = _by_oracle(task, args)
    for key in ("expected_value", "out"):
        if key in row:
            return Case(args=args, expected=_spread(read_value(grader, row[key]), own))
    return Case(args=args, expected=own)


def _by_oracle(task: Task, args: Args) -> Any:
    return None if task.oracle is None else task.oracle(*args)


def _spread(expected: Any, shape: Any) -> Any:
    """`expected` in the shape of the oracle's answer, when it is a single number and the answer is not."""
    if isinstance(shape, list) and isinstance(expected, int | float):
        return [_spread(expected, entry) for entry in shape]
    return expected
