"""`outpace watch`: follows a run's `metrics.jsonl` while it grows. Reads only; the run does not notice."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from outpace.errors import RunFolderError
from outpace.report.charts import show_on_axis, spark
from outpace.report.curves import panels_of_run
from outpace.report.facts import describe
from outpace.report.numbers import show_duration
from outpace.report.runs import RunData, read_run


def watch(
    run_dir: Path | str,
    console: Console | None = None,
    *,
    interval_s: float = 1.0,
    once: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show the figures of a run as they come, until the run is over or the user presses Ctrl-C.

    Args:
        run_dir: the run folder; it may still be empty.
        console: where to; None: the terminal.
        interval_s: seconds between looks.
        once: show the state once and return.
        sleep: how to wait.

    Raises:
        RunFolderError: there is no such folder.
    """
    path = Path(run_dir)
    if not path.is_dir():
        raise RunFolderError(f"there is no run folder {path}: give one, such as runs/starter")
    console = console or Console()
    run = _look(path)
    if once:
        console.print(_view(path, run, console.width))
        return
    with Live(_view(path, run, console.width), console=console, auto_refresh=False) as live:
        try:
            while run is None or not run.is_over:
                sleep(interval_s)
                run = _look(path)
                live.update(_view(path, run, console.width), refresh=True)
        except KeyboardInterrupt:
            return


def _look(path: Path) -> RunData | None:
    """The run as far as it got; None while nothing is there."""
    try:
        return read_run(path)
    except RunFolderError:
        return None


def _view(path: Path, run: RunData | None, width: int) -> Group | Text:
    return Text(f"{path.name}: nothing is logged yet", style="dim") if run is None else render_run(run, width)


def render_run(run: RunData, width: int = 80) -> Group:
    """The latest figure of every curve with its way so far, and the warnings."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "first", "", "now"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for panel in panels_of_run(run.metrics):
        for line in panel.lines:
            name = panel.title if len(panel.lines) == 1 else line.label
            table.add_row(
                Text(name),
                Text(show_on_axis(float(f"{line.values[0]:.3g}"), panel.unit), style="dim"),
                Text(spark(line.values, max(8, min(40, width - 60))), style="cyan"),
                Text(show_on_axis(float(f"{line.values[-1]:.3g}"), panel.unit), style="bold"),
            )
    title = Text.assemble((run.name, "bold"), "  ", (describe(run), "dim"), "  ", (_eta(run), "dim"))
    return Group(title, table, *(Text(f"! {warning}", style="yellow") for warning in run.warnings))


def _eta(run: RunData) -> str:
    """Time left by the mean of the last ten steps; empty when the plan or the pace is not known."""
    planned, seconds = run.recipe.get("max_steps"), _recent(run.metrics, "seconds/step")
    if not isinstance(planned, int) or not seconds or run.last_step >= planned:
        return ""
    return f"{show_duration((planned - run.last_step) * sum(seconds) / len(seconds))} left"


def _recent(metrics: Sequence[Mapping[str, Any]], key: str, count: int = 10) -> list[float]:
    found = [record[key] for record in metrics if isinstance(record.get(key), int | float)]
    return [float(value) for value in found[-count:]]
