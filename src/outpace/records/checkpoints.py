"""Which checkpoint to resume from: the newest that is complete and unchanged, by its mark.

The mark is written after everything else, and lists every file with its size and SHA-256. A checkpoint without it was
cut off while being written; one that disagrees with it is damaged. Neither is ever resumed from.
"""

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outpace.errors import RunFolderError
from outpace.records.files import explained, read_json, write_json

MARK = "complete.json"
_NAME = re.compile(r"^checkpoint-(\d+)$")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder `checkpoint-N` and its step N."""

    path: Path
    step: int


def list_checkpoints(run: Path) -> list[Checkpoint]:
    """Every checkpoint folder, oldest first, whatever its state."""
    if not run.is_dir():
        return []
    found = [(match, path) for path in run.iterdir() if (match := _NAME.match(path.name)) and path.is_dir()]
    return sorted((Checkpoint(path, int(match[1])) for match, path in found), key=lambda item: item.step)


def mark_complete(checkpoint: Path) -> None:
    """Write the mark; call it when every other file of the checkpoint is on disk."""
    with explained(checkpoint):
        files = {str(path.relative_to(checkpoint)): _fingerprint(path) for path in _files(checkpoint)}
    write_json(checkpoint / MARK, {"files": files})


def what_is_wrong(checkpoint: Path) -> str | None:
    """Why this checkpoint cannot be resumed from, in a few words; None when it can."""
    if not (checkpoint / MARK).is_file():
        return "was cut off while being written"
    try:
        files = read_json(checkpoint / MARK)["files"]
        for name, expected in files.items():
            path = checkpoint / name
            if not path.is_file():
                return f"has lost {name}"
            if _fingerprint(path) != expected:
                return f"has a damaged {name}"
    except (RunFolderError, OSError, TypeError, KeyError, AttributeError):
        return "has an unreadable completion mark"
    return None


def find_checkpoint(run: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that can be resumed from; None when there is none.

    Those newer than it are unusable: what was cut off is removed, what is damaged is renamed to `damaged-N`, and each
    is told through `say`.
    """
    for checkpoint in reversed(list_checkpoints(run)):
        wrong = what_is_wrong(checkpoint.path)
        if wrong is None:
            return checkpoint
        say(f"{checkpoint.path.name} {wrong}: falling back to the one before")
        set_aside(checkpoint)
    return None


def set_aside(checkpoint: Checkpoint) -> None:
    """Take an unusable checkpoint out of the list: remove it when it was never complete, rename it otherwise."""
    with explained(checkpoint.path):
        if (checkpoint.path / MARK).is_file():
            target = checkpoint.path.with_name(f"damaged-{checkpoint.step}")
            shutil.rmtree(target, ignore_errors=True)
            checkpoint.path.rename(target)
        else:
            shutil.rmtree(checkpoint.path)


def remove_incomplete(run: Path) -> None:
    """Remove checkpoints that were never completed, as after a full disk; never raises."""
    for checkpoint in list_checkpoints(run):
        if not (checkpoint.path / MARK).is_file():
            with contextlib.suppress(OSError):
                shutil.rmtree(checkpoint.path)


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)


def _fingerprint(path: Path) -> list[int | str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [path.stat().st_size, digest]
