"""Cases to audit: read from a case file or from our own corpus. Nothing here runs a candidate.

A case file is JSON lines with `id, group, title, input, expected` (and `source, why, tags` for readers). A corpus
file is one program, with its strategy in its docstring and three lines at the docstring's end:

    task: linalg/matmul
    expected: hack_blocked
    stopped by: static check (imports)
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from outpace.errors import ConfigError

_NEEDED = ("id", "group", "input", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """One case: what is handed in, and the class in which its result belongs."""

    id: str
    group: str
    """`A` attacks, `B` honest programs, `C` the system around them."""
    title: str
    expected: str
    kind: str
    """`completion`, `tests`, `timings`, `rewards`; anything else is not judged here."""
    input: Mapping[str, Any]
    tags: tuple[str, ...] = field(default=())

    @property
    def task(self) -> str | None:
        """The task's name as the case gives it."""
        name = self.input.get("task")
        return None if name is None else str(name)


def load_cases(path: Path) -> list[AuditCase]:
    """Read a case file; raises ConfigError with file and line when it cannot be used."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the case file {path} cannot be read ({error}); give a file of JSON lines") from error
    cases = [_read_case(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not cases:
        raise ConfigError(f"the case file {path} holds no case; give one JSON object per line")
    twice = [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise ConfigError(f"the case file {path} holds the id {twice[0]!r} more than once; make the ids differ")
    return cases


def _read_case(line: str, where: str) -> AuditCase:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON ({error})") from error
    missing = [key for key in _NEEDED if not isinstance(entry, dict) or key not in entry]
    if missing or not isinstance(entry["input"], dict):
        raise ConfigError(f"{where} needs the keys {', '.join(_NEEDED)}, with an object as input")
    return AuditCase(
        id=str(entry["id"]),
        group=str(entry["group"]),
        title=str(entry.get("title", "")),
        expected=str(entry["expected"]),
        kind=str(entry["input"].get("kind", "completion")),
        input=entry["input"],
        tags=tuple(map(str, entry.get("tags", ()))),
    )


def corpus_cases() -> list[AuditCase]:
    """Our own attacks, in the order of their names."""
    return [_read_program(file) for file in _programs(files("outpace.audit") / "corpus")]


def control_source(task_id: str, control: str) -> str | None:
    """The text of a control (`honest`, `slow`, `wrong`) for a task; None when the corpus holds none."""
    name = f"{task_id.rpartition('/')[2]}_{control}.py.txt"
    file = files("outpace.audit") / "corpus" / "controls" / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


def fenced(source: str) -> str:
    """`source` as a model would answer it: in a fence that is longer than any in the source."""
    longest = max((len(run) for run in re.findall("`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{source.rstrip()}\n{fence}\n"


def _programs(folder: Traversable) -> list[Traversable]:
    return sorted((file for file in folder.iterdir() if file.name.endswith(".py.txt")), key=lambda file: file.name)


def _read_program(file: Traversable) -> AuditCase:
    source = file.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    facts = dict(re.findall(r"^(task|expected|stopped by): (.+)$", docstring, re.MULTILINE))
    return AuditCase(
        id=file.name.removesuffix(".py.txt"),
        group="B" if facts["expected"] == "honest_scored" else "A",
        title=docstring.partition("\n")[0],
        expected=facts["expected"],
        kind="completion",
        input={"task": facts["task"], "text": fenced(source)},
        tags=(facts.get("stopped by", ""),),
    )
