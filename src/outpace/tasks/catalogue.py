"""Find tasks by name: built-in ones, public sets and users' files.

A spec is one of, or several joined by commas:

    builtin, builtin:train, builtin:heldout      the built-in tasks, or one split of them
    linalg, linalg:heldout                       one family, or one split of it
    linalg/matmul                                one task
    humaneval, humaneval/0, mbpp:PATH            public sets
    FILE.py, FILE.jsonl                          your own
    FILE#ID, mbpp:PATH#mbpp/11                   one task of a file

Nothing here runs a task or checks it; `check` does.
"""

import difflib
import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from outpace.errors import TaskError
from outpace.schema import Task
from outpace.tasks import builtin, files, humaneval, mbpp
from outpace.tasks.define import TaskDefinition

FAMILIES = ("linalg", "sequences", "strings", "graphs", "dynamic", "numbers", "geometry", "sorting", "simulation")
"""Families of built-in tasks in the order in which they are listed."""

SPLITS = ("train", "heldout")


def load(spec: str) -> list[Task]:
    """The tasks that `spec` names, each once, in order.

    Raises TaskError, with the nearest known name, when a part of it is unknown, empty or cannot be read.
    """
    parts = [part.strip() for part in spec.split(",")]
    if not all(parts):
        raise TaskError(f"task spec {spec!r} has an empty part; try builtin, linalg/matmul or a file")
    tasks: dict[str, Task] = {}
    for part in dict.fromkeys(parts):
        for found in _load_part(part):
            if tasks.setdefault(found.id, found) is not found:
                raise TaskError(f"task id {found.id!r} of {part} is taken by another task; rename one")
    return list(tasks.values())


def get(task_id: str) -> Task:
    """The one task that an id or FILE#ID names; raises TaskError, with the nearest id, when it is not one."""
    found = _load_part(task_id)
    if len(found) != 1:
        raise TaskError(f"{task_id!r} names {len(found)} tasks; name one by its id, or as FILE#ID")
    return found[0]


@cache
def builtin_tasks() -> tuple[Task, ...]:
    """All built-in tasks, `linalg/matmul` first."""
    tasks = []
    for family in FAMILIES:
        module = importlib.import_module(f"outpace.tasks.builtin.{family}")
        tasks += [value.build() for value in vars(module).values() if isinstance(value, TaskDefinition)]
    return tuple(replace(found, limits=builtin.LIMITS) for found in tasks)


def _load_part(part: str) -> list[Task]:
    whole, _, task_id = part.partition("#")
    if task_id:
        return [_pick(task_id, _load_part(whole), whole)]
    name, _, option = part.partition(":")
    if name == "mbpp" and option:
        return mbpp.load(Path(option))
    if part.endswith((".py", ".jsonl")):
        return files.load(Path(part))
    if part == "humaneval":
        return humaneval.load()
    if part.startswith("humaneval/"):
        return [_pick(part, humaneval.load(), "humaneval")]
    if name == "builtin" or name in FAMILIES:
        return _load_builtin(name, option)
    if name == "mbpp" or part.startswith("mbpp/"):
        raise TaskError(f"{part!r} lacks the path of Google's file: use mbpp:PATH, or mbpp:PATH#mbpp/11 for one task")
    if "/" in part:
        return [_pick(part, builtin_tasks(), "builtin")]
    known = ["builtin", "humaneval", "mbpp:PATH", *FAMILIES]
    options = ", ".join(known)
    near = _nearest(part, [*known, *(found.id for found in builtin_tasks())])
    raise TaskError(f"unknown task spec {part!r}{near}; use one of {options}, an id or a file")


def _pick(task_id: str, tasks: Sequence[Task], whole: str) -> Task:
    known = {found.id: found for found in tasks}
    if task_id not in known:
        raise TaskError(
            f"unknown task {task_id!r}{_nearest(task_id, list(known))}; `outpace tasks list {whole}` shows all"
        )
    return known[task_id]


def _load_builtin(name: str, split: str) -> list[Task]:
    if split and split not in SPLITS:
        raise TaskError(f"unknown split {split!r} of {name}{_nearest(split, list(SPLITS))}; use train or heldout")
    tasks = [found for found in builtin_tasks() if name in ("builtin", found.family)]
    return [found for found in tasks if not split or found.split == split]


def _nearest(name: str, known: Sequence[str]) -> str:
    """A hint for an error: the known name most like `name`, by all of it or by its part after the slash."""
    short = {entry.rpartition("/")[2]: entry for entry in known}
    matches = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(name, short, n=1)
    return f", did you mean {short.get(matches[0], matches[0])!r}?" if matches else ""
