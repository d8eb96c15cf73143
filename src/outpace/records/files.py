"""Files that survive being killed: replaced as a whole, or appended line by line.

A reader never sees half a file, and half a last line (the writer was killed) is left out. Not covered: two writers of
one file; the run folder's lock is for that.
"""

import contextlib
import errno
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from outpace.errors import RunFolderError

_REMEDIES = {
    errno.ENOSPC: "free some space, or choose another output_dir",
    errno.EDQUOT: "free some of your quota, or choose another output_dir",
    errno.EROFS: "choose an output_dir on a file system that can be written",
    errno.EACCES: "change its permissions, or choose another output_dir",
    errno.EPERM: "change its permissions, or choose another output_dir",
    errno.ENOTDIR: "a file stands where a folder is needed; choose another output_dir or name",
    errno.EEXIST: "a file stands where a folder is needed; choose another output_dir or name",
}


@contextlib.contextmanager
def explained(path: Path, doing: str = "written") -> Iterator[None]:
    """Turn any OSError inside into a RunFolderError of one sentence: what, why, and what to do."""
    try:
        yield
    except RunFolderError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        remedy = _REMEDIES.get(error.errno or 0, "check the folder, or choose another output_dir")
        raise RunFolderError(f"{path} cannot be {doing}: {reason}; {remedy}") from error


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace `path` by `data` as a whole: temporary file, fsync, rename; on failure the old content stays.

    Raises:
        RunFolderError: the disk is full, the folder is read-only, or the like.
    """
    content = data.encode("utf-8", errors="surrogatepass") if isinstance(data, str) else data
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by `value` as indented JSON; dataclasses become objects, NaN and infinities become null."""
    write_atomic(path, json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n")


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace `path` by one JSON line per record."""
    write_atomic(path, "".join(_line(record) for record in records))


def append_jsonl(path: Path, record: Mapping[str, Any]) -> None:
    """Add one record; a torn last line left by a kill is cut off first, so that it cannot swallow this one."""
    data = _line(record).encode("ascii")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _cut_torn_line(path)
        before = path.stat().st_size if path.is_file() else None
        try:
            with path.open("ab") as file:
                file.write(data)
                file.flush()
        except OSError:
            if before is not None:
                with contextlib.suppress(OSError):
                    os.truncate(path, before)
            raise


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        RunFolderError: it is missing, unreadable or not JSON.
    """
    with explained(path, "read"):
        text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError as error:
        raise RunFolderError(f"{path} is damaged (not JSON): delete it, or start again with --fresh") from error


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The whole records of a JSONL file, in order; a missing file is empty, a torn or damaged line is left out."""
    if not path.exists():
        return []
    with explained(path, "read"):
        lines = path.read_bytes().split(b"\n")
    records = []
    for line in lines:
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                records.append(record)
    return records


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: dataclasses become objects, sequences lists, and NaN and infinities None."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(plain(record), ensure_ascii=True, allow_nan=False) + "\n"


def _cut_torn_line(path: Path) -> None:
    """Cut what follows the last newline of a regular file."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(end - 1)
        if file.read(1) == b"\n":
            return
        position = end
        while position:
            start = max(0, position - 2**16)
            file.seek(start)
            newline = file.read(position - start).rfind(b"\n")
            if newline >= 0:
                file.truncate(start + newline + 1)
                return
            position = start
        file.truncate(0)
