"""`RunFolder`: one run's folder, its lock, and the names of what is in it."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outpace.errors import RunFolderError
from outpace.records import checkpoints, files

_RESERVE_BYTES = 64 * 2**20
"""Left free beside a checkpoint, so that metrics and reports can still be written."""

_held: set[Path] = set()
"""Folders locked by this process: a POSIX record lock does not exclude its own process."""


class RunFolder:
    """The folder of one run; opening it changes nothing, `create` makes it and proves that it can be written.

    Every write raises RunFolderError (one sentence) on a full disk or a read-only folder, and leaves what was there.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, output_dir: Path | str, name: str, *, fresh: bool = False) -> "RunFolder":
        """Make `output_dir/name`, or take it up again; `fresh` first renames what is there to `name.old-TIME`."""
        path = Path(output_dir) / name
        with files.explained(path):
            if fresh and path.exists():
                stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
                path.rename(path.with_name(f"{name}.old-{stamp}"))
            path.mkdir(parents=True, exist_ok=True)
        folder = cls(path)
        files.write_atomic(path / ".writable", b"")
        with files.explained(path):
            (path / ".writable").unlink()
        return folder

    @classmethod
    def open(cls, path: Path | str) -> "RunFolder":
        """An existing run, to read.

        Raises:
            RunFolderError: there is no run there.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise RunFolderError(f"there is no run folder {folder.path}: give one, such as runs/starter")
        if not (folder.path / "recipe.yaml").is_file():
            raise RunFolderError(
                f"{folder.path} is not a run folder (it has no recipe.yaml): give one, such as runs/starter"
            )
        return folder

    @property
    def name(self) -> str:
        """The run's name: the last part of the path."""
        return self.path.name

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for this process; a killed process lets go by itself.

        Raises:
            RunFolderError: another process (or this one) is training in it.
        """
        path = (self.path / ".lock").resolve()
        with files.explained(path, "locked"):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if path in _held:
                raise RunFolderError(f"{self.path} is already in use by this process")
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                raise RunFolderError(
                    f"{self.path} is in use by process {owner or 'unknown'}: wait for it, or choose another name=..."
                ) from error
            os.truncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            _held.add(path)
            try:
                yield
            finally:
                _held.discard(path)
        finally:
            os.close(handle)

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file of the run."""
        files.write_atomic(self.path / name, text)

    def write_json(self, name: str, value: Any) -> None:
        """Replace a JSON file of the run; dataclasses are written as objects."""
        files.write_json(self.path / name, value)

    def read_json(self, name: str) -> Any | None:
        """A JSON file of the run; None when it is not there."""
        path = self.path / name
        return files.read_json(path) if path.is_file() else None

    def discard(self, name: str) -> None:
        """Remove a file of the run, if it is there."""
        with files.explained(self.path / name, "removed"):
            (self.path / name).unlink(missing_ok=True)

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one record to `metrics.jsonl`; it must hold `step`."""
        files.append_jsonl(self.path / "metrics.jsonl", record)

    def metrics(self) -> list[dict[str, Any]]:
        """The records of `metrics.jsonl`, in order."""
        return files.read_jsonl(self.path / "metrics.jsonl")

    def write_samples(self, step: int, rows: Sequence[Mapping[str, Any]], *, part: int = 0) -> None:
        """Replace the samples that process `part` drew for update `step` (and those after it, up to the next)."""
        suffix = f"-{part}" if part else ""
        files.write_jsonl(self.path / "samples" / f"step-{step:06d}{suffix}.jsonl", rows)

    def samples(self, step: int | None = None) -> list[dict[str, Any]]:
        """Training samples of one generation, or of all, in order of steps."""
        return [
            row
            for path in self._sample_files()
            if step is None or _step_of(path) == step
            for row in files.read_jsonl(path)
        ]

    def rewind(self, step: int) -> None:
        """Forget what was recorded after update `step`, so that a resumed run records nothing twice."""
        metrics = self.metrics()
        kept = [record for record in metrics if not isinstance(record.get("step"), int) or record["step"] <= step]
        if len(kept) != len(metrics):
            files.write_jsonl(self.path / "metrics.jsonl", kept)
        with files.explained(self.path):
            for path in self._sample_files():
                if _step_of(path) > step:
                    path.unlink()

    def checkpoint(self, say: Callable[[str], None]) -> checkpoints.Checkpoint | None:
        """The newest usable checkpoint; unusable newer ones are set aside and told through `say`."""
        return checkpoints.find_checkpoint(self.path, say)

    def require_space(self, needed_bytes: int) -> None:
        """Refuse to begin a write of `needed_bytes` that would fill the disk.

        Raises:
            RunFolderError: too little space is left; nothing was touched.
        """
        with files.explained(self.path, "examined"):
            free = shutil.disk_usage(self.path).free
        if free < needed_bytes + _RESERVE_BYTES:
            raise RunFolderError(
                f"{self.path} has {_megabytes(free)} left, and a checkpoint needs "
                f"{_megabytes(needed_bytes + _RESERVE_BYTES)}: free some space and run the same command again to resume"
            )

    def _sample_files(self) -> list[Path]:
        return sorted((self.path / "samples").glob("step-*.jsonl"))


def _step_of(path: Path) -> int:
    match = re.match(r"^step-(\d+)", path.name)
    return int(match[1]) if match else -1


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MB"
