"""Tasks from users' files: a Python file of decorated functions, or JSON lines.

A Python file is trusted: it is executed here. A JSONL file holds data and source text; nothing in it runs here.
Keys of a JSONL row: see `docs/tasks.md`.
"""

import difflib
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Case, Limits, Message, Task
from outpace.tasks.compare import comparator_from
from outpace.tasks.define import TaskDefinition
from outpace.tasks.prompt import build_prompt

_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "prompt": (str, list),
    "entry_point": str,
    "cases": list,
    "test_code": str,
    "reference": str,
    "compare": (str, dict),
    "returns_sequence": bool,
    "allowed_modules": list,
    "limits": dict,
    "split": str,
    "tags": list,
}
_NEEDED = ("id", "prompt", "entry_point")


def load(path: Path) -> list[Task]:
    """The tasks of a `.py` or `.jsonl` file, in order; raises TaskError when it cannot be used or holds none."""
    tasks = _from_python(path) if path.suffix == ".py" else _from_jsonl(path)
    if not tasks:
        raise TaskError(f"{path} defines no task; decorate a reference function with @task")
    seen: set[str] = set()
    for found in tasks:
        if found.id in seen:
            raise TaskError(f"{path}: task id {found.id!r} is there twice; rename one")
        seen.add(found.id)
    return tasks


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers; raises TaskError when it is missing, broken or empty."""
    is_empty = True
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        is_empty = False
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TaskError(f"{path}, line {number}: not valid JSON ({error})") from error
        if not isinstance(row, dict):
            raise TaskError(f"{path}, line {number}: a task must be a JSON object, got {type(row).__name__}")
        yield number, row
    if is_empty:
        raise TaskError(f"{path} is empty; write one JSON object per line, one for each task")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise TaskError(f"there is no task file {path}; check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"the task file {path} cannot be read: {error}") from error


def _from_jsonl(path: Path) -> list[Task]:
    tasks = []
    for number, row in read_rows(path):
        try:
            tasks.append(_task_from_row(row))
        except (TaskError, ValueError, TypeError) as error:
            raise TaskError(f"{path}, line {number}: {error}") from error
    return tasks


def _task_from_row(row: dict[str, Any]) -> Task:
    _check_keys(row)
    modules = row.get("allowed_modules")
    return Task(
        id=row["id"],
        prompt=_prompt(row),
        entry_point=row["entry_point"],
        compare=comparator_from(row.get("compare", "exact")),
        cases=tuple(_case(case) for case in row.get("cases", [])),
        test_code=row.get("test_code"),
        reference=row.get("reference"),
        returns_sequence=row.get("returns_sequence", False),
        allowed_modules=None if modules is None else frozenset(modules),
        limits=_limits(row.get("limits", {})),
        split=row.get("split", "train"),
        tags=tuple(row.get("tags", [])),
    )


def _check_keys(row: dict[str, Any]) -> None:
    for key, value in row.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, list(_KEYS), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(_KEYS)}"
            raise TaskError(f"unknown key {key!r}; {hint}")
        if not isinstance(value, _KEYS[key]):
            raise TaskError(f"{key!r} has the wrong type ({type(value).__name__}); see docs/tasks.md")
    for key in _NEEDED:
        if not row.get(key):
            raise TaskError(f"{key!r} is missing or empty")
    if bool(row.get("cases")) == bool(row.get("test_code")):
        raise TaskError("a task needs either 'cases' (at least one) or 'test_code', not both")
    if row.get("split", "train") not in ("train", "heldout"):
        raise TaskError(f"'split' must be train or heldout, got {row['split']!r}")
    for key in ("tags", "allowed_modules"):
        if not all(isinstance(entry, str) for entry in row.get(key, [])):
            raise TaskError(f"{key!r} must be a list of strings")


def _limits(given: dict[str, Any]) -> Limits:
    known = [field.name for field in fields(Limits)]
    for key, value in given.items():
        if key not in known or type(value) not in (int, float):
            raise TaskError(f"'limits' takes numbers for {', '.join(known)}; got {key!r}: {value!r}")
    return Limits(**given)


def _case(case: Any) -> Case:
    if not isinstance(case, dict) or set(case) != {"args", "expected"} or not isinstance(case["args"], list):
        raise TaskError('a case must be {"args": [...], "expected": ...}')
    return Case(args=tuple(case["args"]), expected=case["expected"])


def _prompt(row: dict[str, Any]) -> tuple[Message, ...]:
    """A string is a statement that our builder frames; a list of messages is used as it is."""
    if isinstance(row["prompt"], str):
        modules = row.get("allowed_modules")
        return build_prompt(row["prompt"], row["entry_point"], allowed_modules=modules, is_timed=False)
    for message in row["prompt"]:
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise TaskError('a prompt must be a string or a list of {"role": ..., "content": ...}')
    return tuple(row["prompt"])


def _from_python(path: Path) -> list[Task]:
    module = _execute(path, _read_text(path))
    definitions = {id(value): value for value in vars(module).values() if isinstance(value, TaskDefinition)}
    return [definition.build() for definition in definitions.values()]


def _execute(path: Path, source: str) -> ModuleType:
    """Run the file as a module that nothing can import, so that its functions are pickled by value."""
    module = ModuleType("outpace_task_file_" + sha256(str(path.resolve()).encode()).hexdigest()[:12])
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and `inspect` look the module up while it runs
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102 -- the user's own file
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from error
    except SyntaxError as error:
        raise TaskError(f"{path}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        raise TaskError(f"{where}: {type(error).__name__}: {error}") from error
    finally:
        del sys.modules[module.__name__]
    return module
