"""Which figures of `metrics.jsonl` are drawn together, and how noise is smoothed for the eye. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]

_PHASES = ("sample", "score_hidden", "score_exposed", "logprobs", "sync", "update")
_SCALARS = (
    ("Reward", "reward", "plain"),
    ("Correct answers", "pass_rate", "share"),
    ("Median speed-up of correct answers", "speedup", "ratio"),
    ("Length, tokens", "completions/mean_length", "plain"),
    ("Entropy, nats per token", "entropy", "plain"),
    ("KL, nats per token", "kl", "plain"),
    ("Seconds per step", "seconds/step", "plain"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure over the steps at which it was logged."""

    label: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines that share their axes; `unit` is `plain`, `share` (drawn from 0 to 1) or `ratio`."""

    title: str
    unit: str
    lines: tuple[Line, ...]


def line(records: Sequence[Record], key: str, label: str) -> Line | None:
    """The finite values of one key, by step; None when there are none. The last record of a step counts."""
    found: dict[int, float] = {}
    for record in records:
        step, value = record.get("step"), record.get(key)
        if isinstance(step, int) and isinstance(value, int | float) and math.isfinite(value):
            found[step] = float(value)
    if not found:
        return None
    steps = tuple(sorted(found))
    return Line(label=label, steps=steps, values=tuple(found[step] for step in steps))


def panels_of_run(records: Sequence[Record]) -> list[Panel]:
    """The panels of one run; those without any figure are left out, and so is a KL that is always 0."""
    panels = [
        _panel("Reward, weighted sum", "plain", [line(records, "reward", "reward")]),
        _panel("Reward by component", "plain", _components(records)),
        _panel(
            "Shares of completions",
            "share",
            [
                line(records, "pass_rate", "correct"),
                line(records, "parses", "parses"),
                line(records, "compliant", "nothing forbidden"),
                line(records, "truncated", "cut off"),
            ],
        ),
    ]
    panels += [_panel(title, unit, [line(records, key, key.split("/")[0])]) for title, key, unit in _SCALARS[2:6]]
    panels.append(
        _panel("Seconds per step", "plain", [line(records, f"seconds/{p}", p.replace("_", " ")) for p in _PHASES])
    )
    return [panel for panel in panels if panel.lines and not _is_flat_kl(panel)]


def panels_of_runs(runs: Mapping[str, Sequence[Record]]) -> list[Panel]:
    """The panels that lay several runs over each other, one line a run."""
    panels = [
        _panel(title, unit, [line(records, key, name) for name, records in runs.items()])
        for title, key, unit in _SCALARS
    ]
    return [panel for panel in panels if panel.lines and not _is_flat_kl(panel)]


def smoothed(values: Sequence[float]) -> tuple[float, ...] | None:
    """A centred moving mean over about a twelfth of the values; None when there are too few to need one."""
    if len(values) < 24:
        return None
    half = max(1, len(values) // 24)
    return tuple(
        math.fsum(values[max(0, i - half) : i + half + 1]) / len(values[max(0, i - half) : i + half + 1])
        for i in range(len(values))
    )


def _components(records: Sequence[Record]) -> list[Line | None]:
    keys = list(dict.fromkeys(key for record in records for key in record))
    for prefix in ("components/", "rewards/"):
        names = [key.split("/")[1] for key in keys if key.startswith(prefix) and key.endswith("/mean")]
        if names:
            return [line(records, f"{prefix}{name}/mean", name) for name in names]
    return []


def _panel(title: str, unit: str, lines: Sequence[Line | None]) -> Panel:
    return Panel(title=title, unit=unit, lines=tuple(found for found in lines if found is not None))


def _is_flat_kl(panel: Panel) -> bool:
    return panel.title.startswith("KL") and all(value == 0 for found in panel.lines for value in found.values)
