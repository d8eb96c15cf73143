"""From graded samples to measures with intervals. Reads no file, runs no code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.evaluate.bootstrap import (
    Floats,
    Ints,
    exact_interval_at_the_edge,
    percentile_interval,
    sample_counts,
    task_counts,
    weighted_mean,
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
    """A measure's values and what it comes to on every resample."""

    measure: AnyMeasure
    values: Floats
    point: float | None
    replicates_B: Floats

    @property
    def counted(self) -> int:
        """How many values count."""
        return int((~np.isnan(self.values)).sum())


def sort_samples(samples: Sequence[GradedSample]) -> list[GradedSample]:
    """By task, then by index: the order that all arrays of this package have."""
    return sorted(samples, key=lambda sample: (sample.task_id, sample.index))


def task_numbers(samples: Sequence[GradedSample]) -> tuple[Ints, int]:
    """The task's number of each sample, shape (N,), and the number of tasks."""
    _, task_N = np.unique([sample.task_id for sample in samples], return_inverse=True)
    return task_N.astype(np.int64), int(task_N.max()) + 1


def spreads(samples: Sequence[GradedSample], settings: EvalSettings) -> dict[str, Spread]:
    """Resample sorted samples.

    Equal tasks, sample numbers and seed give equal draws, so the resamples of two evaluations pair up.
    """
    task_N, n_tasks = task_numbers(samples)
    measures = catalogue(settings.k_values)
    values = {measure.name: values_of(measure, samples) for measure in measures}
    of_samples = [measure for measure in measures if isinstance(measure, SampleMeasure)]
    blocks: dict[str, list[Floats]] = {measure.name: [] for measure in of_samples}
    for counts_BN in sample_counts(task_N, settings.resamples, np.random.default_rng(settings.seed)):
        for one in of_samples:
            blocks[one.name].append(one.statistic(values[one.name], counts_BN))
    counts_BT = task_counts(n_tasks, settings.resamples, np.random.default_rng(settings.seed)).astype(np.float64)
    result = {}
    for measure in measures:
        name = measure.name
        if isinstance(measure, SampleMeasure):
            statistic, replicates = measure.statistic, np.concatenate(blocks[name])
        else:
            statistic, replicates = weighted_mean, weighted_mean(values[name], counts_BT)
        point = float(statistic(values[name], np.ones((1, len(values[name]))))[0])
        result[name] = Spread(
            measure=measure, values=values[name], point=None if np.isnan(point) else point, replicates_B=replicates
        )
    return result


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
    """The percentile interval; the exact one for shares of 0 and 1; None when there is too little to resample."""
    is_share = spread.measure.unit is Unit.SHARE
    of_tasks = isinstance(spread.measure, TaskMeasure)
    if spread.point is None:
        return None
    if is_share and spread.point in (0.0, 1.0) and not (of_tasks and spread.counted == 1):
        return exact_interval_at_the_edge(spread.point, spread.counted, settings.confidence)
    if spread.counted < MIN_VALUES and (of_tasks or not is_share):
        return None
    return percentile_interval(spread.replicates_B, settings.confidence)


def _pass_at_k_of_one_task(pass_at_1: Spread, settings: EvalSettings, *, k: int) -> tuple[float, float] | None:
    # With one task there are no tasks to draw; pass@k rises with the chance p of one sample as 1 - (1-p)^k.
    interval = interval_of(pass_at_1, settings)
    if interval is None:
        return None
    low, high = interval
    return 1 - (1 - low) ** k, 1 - (1 - high) ** k
