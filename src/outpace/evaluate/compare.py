"""Two evaluations on the same tasks, side by side: which differences are clear, which are noise.

Paired: the same task and sample number on both sides, and the same draws, so that a hard task or an odd seed
weighs alike on both. What is compared among correct samples only (speed) can move because other samples became
correct; `faster_*x`, which counts wrong ones as not faster, cannot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outpace.errors import ConfigError
from outpace.evaluate.bootstrap import combined_interval
from outpace.evaluate.catalogue import Unit
from outpace.evaluate.evaluation import Evaluation
from outpace.evaluate.measures import (
    MIN_VALUES,
    Measure,
    Spread,
    measures_of,
    resampled_interval,
    sort_samples,
    spreads,
)
from outpace.evaluate.samples import GradedSample
from outpace.evaluate.settings import EvalSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure before and after, and the interval of after - before."""

    before: Measure
    after: Measure
    difference: float | None
    low: float | None
    high: float | None

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0; False when there is none."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def judgement(self) -> str:
        """`better`, `worse`, `changed` (clear, but neither good nor bad) or `unclear`."""
        if not self.is_clear or self.difference is None:
            return "unclear"
        if self.after.higher_is_better is None:
            return "changed"
        return "better" if (self.difference > 0) == self.after.higher_is_better else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, one JSON object."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "judgement": self.judgement,
        }


Differences = Mapping[str, Difference]
"""Differences by the measure's name, in the catalogue's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences between two evaluations: overall, per split and per task."""

    before_label: str
    after_label: str
    confidence: float
    overall: Differences
    by_split: Mapping[str, Differences]
    by_task: Mapping[str, Differences]
    notes: tuple[str, ...] = ()
    """What makes the comparison weaker than it looks."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, one JSON object."""
        return {
            "before": self.before_label,
            "after": self.after_label,
            "confidence": self.confidence,
            "overall": {name: row.to_dict() for name, row in self.overall.items()},
            "by_split": {s: {name: row.to_dict() for name, row in rows.items()} for s, rows in self.by_split.items()},
            "by_task": {t: {name: row.to_dict() for name, row in rows.items()} for t, rows in self.by_task.items()},
            "notes": list(self.notes),
        }


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """Pair two evaluations by task and sample number; raises ConfigError when they share no task.

    What only one of them has is left out, and the notes say so. Resamples as `before.settings` says.
    """
    shared = {(s.task_id, s.index) for s in before.samples} & {(s.task_id, s.index) for s in after.samples}
    if not shared:
        raise ConfigError("the two evaluations share no task, so there is nothing to compare; use the same --tasks")
    befores, afters = (_pick(evaluation.samples, shared) for evaluation in (before, after))
    pairs = list(zip(befores, afters, strict=True))
    splits = sorted({sample.split for sample in befores}, key=lambda split: (split != "train", split))
    tasks = [task for task in before.by_task if any(sample.task_id == task for sample in befores)]
    settings = before.settings
    return Comparison(
        before_label=before.label,
        after_label=after.label,
        confidence=settings.confidence,
        overall=differences(pairs, settings),
        by_split={split: differences([p for p in pairs if p[0].split == split], settings) for split in splits},
        by_task={task: differences([p for p in pairs if p[0].task_id == task], settings) for task in tasks},
        notes=tuple(_notes(before, after, len(shared))),
    )


def _pick(samples: Sequence[GradedSample], keys: set[tuple[str, int]]) -> list[GradedSample]:
    return sort_samples([sample for sample in samples if (sample.task_id, sample.index) in keys])


def differences(pairs: Sequence[tuple[GradedSample, GradedSample]], settings: EvalSettings) -> dict[str, Difference]:
    """Every measure's difference over sorted pairs of one sample before and one after."""
    befores, afters = ([pair[side] for pair in pairs] for side in (0, 1))
    before_spreads, after_spreads = spreads(befores, settings), spreads(afters, settings)
    before_measures = measures_of(before_spreads, befores, settings)
    after_measures = measures_of(after_spreads, afters, settings)
    result = {}
    for name, before in before_measures.items():
        after = after_measures[name]
        resampled = _resampled(before_spreads[name], after_spreads[name], settings)
        interval = _interval(before, after, resampled)
        value = None if before.value is None or after.value is None else after.value - before.value
        low, high = interval if interval and value is not None else (None, None)
        result[name] = Difference(before=before, after=after, difference=value, low=low, high=high)
    return result


def _resampled(before: Spread, after: Spread, settings: EvalSettings) -> tuple[float, float] | None:
    """The interval of the difference over paired resamples; None where one side has too few values for one."""
    fewer = min(before, after, key=lambda spread: spread.counted)
    if fewer.counted < MIN_VALUES:
        return None
    by_samples_B = None
    if before.by_samples_B is not None and after.by_samples_B is not None:
        by_samples_B = after.by_samples_B - before.by_samples_B
    return resampled_interval(fewer, after.by_tasks_B - before.by_tasks_B, by_samples_B, settings.confidence)


def _interval(before: Measure, after: Measure, resampled: tuple[float, float] | None) -> tuple[float, float] | None:
    """The paired interval; for shares without spread of their own, at least the combination of both intervals."""
    sides = (before.low, before.value, before.high, after.low, after.value, after.high)
    if before.unit is not Unit.SHARE or any(side is None for side in sides):
        return resampled
    at_the_edge = before.value in (0.0, 1.0) or after.value in (0.0, 1.0)
    if resampled and not at_the_edge:
        return resampled
    b_low, b, b_high, a_low, a, a_high = (float(side) for side in sides if side is not None)
    combined = combined_interval((b_low, b, b_high), (a_low, a, a_high))
    return (min(combined[0], resampled[0]), max(combined[1], resampled[1])) if resampled else combined


def _notes(before: Evaluation, after: Evaluation, n_shared: int) -> list[str]:
    notes = []
    if n_shared < max(len(before.samples), len(after.samples)):
        notes.append(
            f"only the {n_shared} samples that both sides have are compared "
            f"(before: {len(before.samples)}, after: {len(after.samples)})"
        )
    for name in ("seed", "temperature", "max_completion_length"):
        values = getattr(before.settings, name), getattr(after.settings, name)
        if values[0] != values[1]:
            notes.append(f"{name} differs: {values[0]} before, {values[1]} after")
    for evaluation in (before, after):
        if evaluation.infra_failures:
            notes.append(
                f"{evaluation.label}: {evaluation.infra_failures} samples could not be graded by us and are left out"
            )
        if evaluation.untrusted_timings:
            notes.append(
                f"{evaluation.label}: the timing of {evaluation.untrusted_timings} correct samples is not trusted "
                "and counts for no measure of speed"
            )
    return notes
