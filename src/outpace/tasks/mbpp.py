"""MBPP: Google's file of 974 problems (`mbpp.jsonl`), each with asserts as its tests.

The asserts, setup code and challenge asserts of a row become one `check(candidate)`. Rows 601-974 are the train split;
the others (few-shot, test and validation rows of the paper) are held out.

Four rows pass objects that are no plain data; `mbpp_adapters` says how they are checked all the same.

Not covered: the sanitised edition, which is another format.
"""

import ast
import textwrap
from pathlib import Path
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Limits, Task
from outpace.tasks.compare import exact
from outpace.tasks.files import read_rows
from outpace.tasks.mbpp_adapters import ADAPTED
from outpace.tasks.prompt import build_prompt
from outpace.tasks.reading import functions_of, names_in, tree_of

_KEYS = {"task_id": int, "text": str, "code": str, "test_list": list}
_FIRST_TRAIN_ID = 601
_SLOW = {123: Limits(wall_s=60.0, cpu_s=30.0)}
"""Rows whose published solution takes seconds: 123 sums amicable numbers below 9999 in 5 s."""


def load(path: Path) -> list[Task]:
    """The tasks of Google's JSONL file, `mbpp/1` first; raises TaskError when it is missing or of another format."""
    tasks: dict[str, Task] = {}
    for line, row in read_rows(path):
        if wrong := [key for key, kind in _KEYS.items() if not isinstance(row.get(key), kind)]:
            raise TaskError(f"{path}, line {line}: {wrong[0]!r} is missing or odd; is this Google's mbpp.jsonl?")
        try:
            found = _task(row)
        except (TaskError, TypeError, ValueError) as error:
            raise TaskError(f"{path}, line {line}: {error}") from error
        if found.id in tasks:
            raise TaskError(f"{path}, line {line}: task id {found.id} is there twice; remove one")
        tasks[found.id] = found
    return list(tasks.values())


def _task(row: dict[str, Any]) -> Task:
    code = _unix(row["code"]) + "\n"
    tests = [_unix(test) for test in [*row["test_list"], *row.get("challenge_test_list", [])]]
    if not tests:
        raise TaskError(f"task {row['task_id']} has no asserts")
    entry_point = _entry_point(code, tests[0])
    adapted = ADAPTED.get((row["task_id"], entry_point))
    return Task(
        id=f"mbpp/{row['task_id']}",
        prompt=build_prompt(
            row["text"], entry_point, example=f"Your code should pass this test: `{tests[0]}`", is_timed=False
        ),
        entry_point=entry_point,
        compare=exact,
        test_code=_test_code(
            code,
            body=[
                f"{entry_point} = candidate" if adapted is None else adapted.in_check,
                _unix(row.get("test_setup_code", "")),
                *tests,
            ],
        ),
        adapter=None if adapted is None else adapted.in_candidate,
        reference=code,
        limits=_SLOW.get(row["task_id"], Limits()),
        tags=("mbpp",),
        split="train" if row["task_id"] >= _FIRST_TRAIN_ID else "heldout",
    )


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _entry_point(code: str, test: str) -> str:
    """The function of `code` that the first assert calls."""
    defined = functions_of(code)
    for node in ast.walk(tree_of(test)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
            return node.func.id
    raise TaskError(f"the assert {test!r} calls no function of its solution")


def _test_code(code: str, body: list[str]) -> str:
    """`check(candidate)` with the parts of `body`, after those of the solution's imports that they use."""
    used = names_in(*body)
    imports = [
        ast.unparse(node)
        for node in tree_of(code).body
        if isinstance(node, ast.Import) and used & {alias.asname or alias.name for alias in node.names}
    ]
    indented = [textwrap.indent(part, "    ") for part in body if part]
    return "\n".join([*imports, "def check(candidate):", *indented]) + "\n"
