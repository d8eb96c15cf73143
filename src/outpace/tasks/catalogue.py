"""Find tasks by name: built-in ones, public sets and users' files.

A spec is one of, or several joined by commas:

    builtin, builtin:train, builtin:heldout      the built-in tasks, or one split of them
    linalg, linalg:heldout                       one family, or one split of it
    linalg/matmul                                one task
    humaneval, mbpp:PATH                         public sets
    FILE.py, FILE.jsonl                          your own

Nothing here runs a task or checks it; `check` does.
"""

import difflib
import importlib
from functools import cache
from pathlib import Path

from outpace.errors import TaskError
from outpace.schema import Task
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
    """The one task with this id: built-in, or `humaneval/N`; raises TaskError with the nearest id."""
    if task_id.startswith("humaneval/"):
        from outpace.tasks import humaneval

        known = {found.id: found for found in humaneval.load()}
    else:
        known = {found.id: found for found in builtin_tasks()}
    if task_id not in known:
        raise TaskError(f"unknown task {task_id!r}{_nearest(task_id, list(known))}; `outpace tasks list` shows all")
    return known[task_id]


@cache
def builtin_tasks() -> tuple[Task, ...]:
    """All built-in tasks, `linalg/matmul` first."""
    tasks = []
    for family in FAMILIES:
        module = importlib.import_module(f"outpace.tasks.builtin.{family}")
        tasks += [value.build() for value in vars(module).values() if isinstance(value, TaskDefinition)]
    return tuple(tasks)


def _load_part(part: str) -> list[Task]:
    name, _, option = part.partition(":")
    if name == "humaneval" and not option:
        from outpace.tasks import humaneval

        return humaneval.load()
    if name == "mbpp":
        from outpace.tasks import mbpp

        if not option:
            raise TaskError("mbpp needs the path of Google's JSONL file: mbpp:PATH")
        return mbpp.load(Path(option))
    if part.endswith((".py", ".jsonl")):
        from outpace.tasks import files

        return files.load(Path(part))
    if name == "builtin" or name in FAMILIES:
        return _load_builtin(name, option)
    if "/" in part:
        return [get(part)]
    known = ["builtin", "humaneval", "mbpp:PATH", *FAMILIES]
    options = ", ".join(known)
    raise TaskError(f"unknown task spec {part!r}{_nearest(part, known)}; use one of {options}, an id or a file")


def _load_builtin(name: str, split: str) -> list[Task]:
    if split and split not in SPLITS:
        raise TaskError(f"unknown split {split!r} of {name}{_nearest(split, list(SPLITS))}; use train or heldout")
    tasks = [found for found in builtin_tasks() if name in ("builtin", found.family)]
    return [found for found in tasks if not split or found.split == split]


def _nearest(name: str, known: list[str]) -> str:
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f", did you mean {matches[0]!r}?" if matches else ""
