"""What every command prints with: JSON for programs, rich for people."""

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]

console = Console()


def print_json(value: Any) -> None:
    """Print `value` as one JSON document on stdout; NaN and infinity become null, dataclasses become objects."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """`value` as JSON types: dataclasses, enums, mappings, sequences and numbers; anything else as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def read_text(path: Path | str) -> str:
    """The text of a file, or of stdin for `-`; odd bytes are kept as lone surrogates for the checks to judge."""
    if str(path) == "-":
        return typer.get_binary_stream("stdin").read().decode("utf-8", errors="surrogateescape")
    return Path(path).read_bytes().decode("utf-8", errors="surrogateescape")


def progress_console(as_json: bool) -> Console:
    """Where progress goes: stdout for people, stderr when stdout carries JSON."""
    return Console(stderr=True) if as_json else console


@contextlib.contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr fed with (done, total); nothing is shown when `quiet`."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        row = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(row, completed=done, total=total)


@contextlib.contextmanager
def waiting(what: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while something takes its time; nothing is shown when `quiet`.

    Yields a function that shows how far it is.
    """
    if quiet:
        yield lambda progress: None
        return
    with Console(stderr=True).status(what) as status:
        yield lambda progress: status.update(f"{what}: {progress}")
