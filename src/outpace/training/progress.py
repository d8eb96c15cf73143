"""What a person sees while a run runs: a live table on a terminal, one line a step elsewhere (notebooks, logs)."""

import math
import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from outpace.training.phases import PHASES

_SHOWN_STEPS = 8
_ETA_WINDOW = 20


class RunProgress:
    """Shows evaluation and training; a context manager. Nothing here is recorded."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
        )
        self._task: TaskID | None = None
        self._rows: deque[dict[str, str]] = deque(maxlen=_SHOWN_STEPS)
        self._times: deque[float] = deque(maxlen=_ETA_WINDOW)
        self._total = 0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._is_live:
            self._live = Live(self._view(), console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(Text(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """A warning that stays."""
        self._console.print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)

    def begin(self, what: str, done: int, total: int) -> None:
        """A new stage of `total` parts."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, total=total, completed=done, note="")
        self._total = total
        self._times.clear()
        if not self._is_live:
            self.say(f"{what} ...")
        self._refresh()

    def advance(self, done: int) -> None:
        """`done` parts of the stage are done."""
        if self._task is not None:
            self._bar.update(self._task, completed=done)
        self._refresh()

    def step(self, step: int, record: Mapping[str, Any]) -> None:
        """One training step's figures."""
        self._times.append(time.monotonic())
        left = self._seconds_left(step)
        row = columns(step, record)
        self._rows.append(row)
        if self._task is not None:
            self._bar.update(self._task, completed=step, note="" if left is None else f"{_duration(left)} left")
        if not self._is_live:
            note = "" if left is None else f"  {_duration(left)} left"
            self.say(
                f"step {step}/{self._total}  " + "  ".join(f"{k} {v}" for k, v in row.items() if k != "step") + note
            )
        self._refresh()

    def _seconds_left(self, step: int) -> float | None:
        if len(self._times) < 2:
            return None
        pace = (self._times[-1] - self._times[0]) / (len(self._times) - 1)
        return pace * (self._total - step)

    def _view(self) -> Group:
        table = Table(box=None, padding=(0, 1))
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        for name in names:
            table.add_column(name, justify="right")
        for row in self._rows:
            table.add_row(*(row.get(name, "") for name in names))
        return Group(table, self._bar) if self._rows else Group(self._bar)

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._view())


def columns(step: int, record: Mapping[str, Any]) -> dict[str, str]:
    """One step as short texts by column; what has no value is left out."""
    row = {"step": str(step)}

    def put(name: str, key: str, form: str) -> None:
        value = record.get(key)
        if isinstance(value, int | float) and math.isfinite(value):
            row[name] = form.format(value)

    if "reward" not in record:
        put("loss", "loss", "{:.4f}")  # with groups, the loss is 0 by construction and says nothing
    put("reward", "reward", "{:+.2f}")
    put("correct", "pass_rate", "{:.0%}")
    put("speed-up", "speedup", "{:.2f}x")
    for key in record:
        if key.startswith("rewards/") and key.endswith("/mean"):
            put(key.split("/")[1], key, "{:+.2f}")
    put("tokens", "completions/mean_length", "{:.0f}")
    put("cut off", "truncated", "{:.0%}")
    put("kl", "kl", "{:.3f}")
    put("entropy", "entropy", "{:.2f}")
    put("s", "seconds/step", "{:.1f}")
    parts = [(phase, record.get(f"seconds/{phase}")) for phase in PHASES]
    shown = [
        f"{phase.replace('_', ' ')} {value:.1f}" for phase, value in parts if isinstance(value, float) and value >= 0.05
    ]
    if shown:
        row["of which"] = ", ".join(shown)
    return row


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
