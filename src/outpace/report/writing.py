"""Writes the two report files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from outpace.errors import RunFolderError
from outpace.records import write_atomic
from outpace.report.markdown import document
from outpace.report.page import page
from outpace.report.runs import RunData, read_run


def write(run_dirs: Sequence[Path | str], out: Path | str | None = None) -> tuple[Path, Path]:
    """Write `report.md` and `report.html` for one run, or for several side by side.

    A run that has not got far gives a report too; it says what is missing.

    Args:
        run_dirs: run folders.
        out: folder to write into; None: the run's own folder, or for several the folder that holds the first.

    Returns:
        The paths of `report.md` and `report.html`.

    Raises:
        RunFolderError: a folder is not a run, or nothing can be written.
    """
    if not run_dirs:
        raise RunFolderError("no run was named: give one or more run folders, such as runs/starter")
    folders = [Path(run_dir) for run_dir in run_dirs]
    runs = _with_names_of_their_own([read_run(folder) for folder in folders], folders)
    folder = Path(out) if out is not None else folders[0] if len(folders) == 1 else folders[0].resolve().parent
    markdown, html = folder / "report.md", folder / "report.html"
    write_atomic(markdown, document(runs))
    write_atomic(html, page(runs))
    return markdown, html


def _with_names_of_their_own(runs: Sequence[RunData], folders: Sequence[Path]) -> list[RunData]:
    """Runs of one name are told apart by the folder that holds them, or by number."""
    names = [run.name for run in runs]
    longer = [
        f"{folder.resolve().parent.name}/{name}" if names.count(name) > 1 else name
        for name, folder in zip(names, folders, strict=True)
    ]
    return [
        replace(run, name=f"{name} ({number})" if longer.count(name) > 1 else name)
        for number, (run, name) in enumerate(zip(runs, longer, strict=True), 1)
    ]
