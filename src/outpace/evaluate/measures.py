"""From graded samples to measures with intervals. Reads no file, runs no code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.evaluate.bootstrap import (
    Floats,
    Ints,
    draw_samples,
    draw_tasks,
    exact_interval_at_the_edge,
    expanded_tail,
    percentile_interval,
    weighted_mean,
    with_samples,
)
from outpace.evaluate.catalogue import AnyMeasure, SampleMeasure, TaskMeasure, Unit, catalogue, values_of
from outpace.evaluate.samples import GradedSample
from outpace.evaluate.settings import EvalSettings

MIN_VALUES = 5
"""Fewer values than this give no bootstrap interval: its ends would be the values themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number about a model with its interval, and how much it rests on."""

    name: str
    label: str
    unit: Unit
    value: float | None
    """None: nothing counted for it, such as speed when no sample is correct."""
    low: float | None
    high: float | None
    """None with a value: too little to tell."""
    samples: int
    """Samples that count for it."""
    tasks: int
    """Tasks that these samples belong to."""
    higher_is_better: bool | None = True

    def to_dict(self) -> dict[str, Any]:
        """Plain data, one JSON object."""
        return {
            "name": self.name,
            "label": self.label,
            "unit": self.unit.value,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "samples": self.samples,
            "tasks": self.tasks,
            "higher_is_better": self.higher_is_better,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Measure":
        """Read `to_dict`'s data."""
        return cls(**{**data, "unit": Unit(data["unit"])})


Measures = Mapping[str, Measure]
"""Measures by name, in the catalogue's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A measure's values, and what it comes to on every resample of tasks and of samples."""

    measure: AnyMeasure
    values: Floats
    task_of_values: Ints
    """The task's number of each value."""
    point: float | None
    by_tasks_B: Floats
    by_samples_B: Floats | None
    """None for a measure of whole tasks."""

    @property
    def counted(self) -> int:
        """How many values count."""
        return int((~np.isnan(self.values)).sum())

    @property
    def counted_tasks(self) -> int:
        """How many tasks these values are of."""
        return len(np.unique(self.task_of_values[~np.isnan(self.values)]))


def sort_samples(samples: Sequence[GradedSample]) -> list[GradedSample]:
    """By task, then by index: the order that all arrays of this package have."""
    return sorted(samples, key=lambda sample: (sample.task_id, sample.index))


def spreads(samples: Sequence[GradedSample], settings: EvalSettings) -> dict[str, Spread]:
    """Resample sorted samples.

    Equal tasks, sample numbers and seed give equal draws, so the resamples of two evaluations pair up.
    """
    names, task_N = np.unique([sample.task_id for sample in samples], return_inverse=True)
    rng = np.random.default_rng(settings.seed)
    counts_BT = draw_tasks(len(names), settings.resamples, rng)
    measures = catalogue(settings.k_values)
    values = {measure.name: values_of(measure, samples) for measure in measures}
    of_samples = [measure for measure in measures if isinstance(measure, SampleMeasure)]
    by_tasks = _statistics(of_samples, values, with_samples(counts_BT, task_N))
    by_samples = _statistics(of_samples, values, draw_samples(task_N, settings.resamples, rng))
    result = {}
    for measure in measures:
        name, of_value = measure.name, task_N
        if isinstance(measure, SampleMeasure):
            point = measure.statistic(values[name], np.ones((1, len(task_N))))[0]
        else:
            of_value = np.arange(len(names))
            point = weighted_mean(values[name], np.ones((1, len(names))))[0]
            by_tasks[name] = weighted_mean(values[name], counts_BT)
        result[name] = Spread(
            measure=measure,
            values=values[name],
            task_of_values=of_value,
            point=None if np.isnan(point) else float(point),
            by_tasks_B=by_tasks[name],
            by_samples_B=by_samples.get(name),
        )
    return result


def _statistics(
    measures: Sequence[SampleMeasure], values: Mapping[str, Floats], blocks: Iterable[Floats]
) -> dict[str, Floats]:
    """Each measure's statistic on every resample, by name, shape (B,)."""
    found: dict[str, list[Floats]] = {measure.name: [] for measure in measures}
    for counts_BN in blocks:
        for measure in measures:
            found[measure.name].append(measure.statistic(values[measure.name], counts_BN))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def measure_all(samples: Sequence[GradedSample], settings: EvalSettings) -> dict[str, Measure]:
    """Every measure of the samples, by name; empty without samples."""
    if not samples:
        return {}
    ordered = sort_samples(samples)
    return measures_of(spreads(ordered, settings), ordered, settings)


def measures_of(
    all_spreads: Mapping[str, Spread], samples: Sequence[GradedSample], settings: EvalSettings
) -> dict[str, Measure]:
    """The measures that `spreads` of the same sorted samples come to."""
    return {name: _measure(spread, samples, settings, all_spreads["pass@1"]) for name, spread in all_spreads.items()}


def _measure(spread: Spread, samples: Sequence[GradedSample], settings: EvalSettings, pass_at_1: Spread) -> Measure:
    known = ~np.isnan(spread.values)
    if isinstance(spread.measure, TaskMeasure):
        task_ids = sorted({sample.task_id for sample in samples})
        counted_tasks = {task for task, is_known in zip(task_ids, known, strict=True) if is_known}
        n_samples = sum(sample.is_graded and sample.task_id in counted_tasks for sample in samples)
    else:
        counted_tasks = {sample.task_id for sample, is_known in zip(samples, known, strict=True) if is_known}
        n_samples = spread.counted
    interval = interval_of(spread, settings)
    if interval is None and spread.measure.name.startswith("pass@") and len(counted_tasks) == 1:
        interval = _pass_at_k_of_one_task(pass_at_1, settings, k=int(spread.measure.name.removeprefix("pass@")))
    low, high = interval or (None, None)
    return Measure(
        name=spread.measure.name,
        label=spread.measure.label,
        unit=spread.measure.unit,
        value=spread.point,
        low=low,
        high=high,
        samples=n_samples,
        tasks=len(counted_tasks),
        higher_is_better=spread.measure.higher_is_better,
    )


def interval_of(spread: Spread, settings: EvalSettings) -> tuple[float, float] | None:
    """The interval of one measure; the exact one for shares of 0 and 1; None when there is too little to resample."""
    is_share = spread.measure.unit is Unit.SHARE
    of_tasks = isinstance(spread.measure, TaskMeasure)
    if spread.point is None:
        return None
    if is_share and spread.point in (0.0, 1.0) and not (of_tasks and spread.counted == 1):
        return exact_interval_at_the_edge(spread.point, spread.counted, settings.confidence)
    if spread.counted < MIN_VALUES and (of_tasks or not is_share):
        return None
    return resampled_interval(spread, spread.by_tasks_B, spread.by_samples_B, settings.confidence)


def resampled_interval(
    spread: Spread, by_tasks_B: Floats, by_samples_B: Floats | None, confidence: float
) -> tuple[float, float] | None:
    """What covers both the interval over tasks and the one over samples; None when neither can be had.

    `spread` says how many tasks and values there are, the arrays hold the replicates of it or of a difference.
    """
    n, n_tasks = spread.counted, spread.counted_tasks
    found = []
    if n_tasks > 1:
        tail = expanded_tail(confidence, n_tasks, n_tasks - 1)
        found.append(percentile_interval(by_tasks_B, tail))
    if by_samples_B is not None and n > n_tasks:
        tail = expanded_tail(confidence, n / n_tasks, n - n_tasks)
        found.append(percentile_interval(by_samples_B, tail))
    ends = [interval for interval in found if interval is not None]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def _pass_at_k_of_one_task(pass_at_1: Spread, settings: EvalSettings, *, k: int) -> tuple[float, float] | None:
    # With one task there are no tasks to draw; pass@k rises with the chance p of one sample as 1 - (1-p)^k.
    interval = interval_of(pass_at_1, settings)
    if interval is None:
        return None
    low, high = interval
    return 1 - (1 - low) ** k, 1 - (1 - high) ** k
