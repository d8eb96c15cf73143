"""Every measure of an evaluation in one list: what it is called, whom it counts, how it is averaged.

A value of NaN means that the sample does not count for the measure: our own failures count for none, an untrusted
timing counts for no speed. A sample that has not been shown to be right or fast is never left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import nan, prod

import numpy as np

from outpace.evaluate.bootstrap import (
    Floats,
    weighted_geometric_mean,
    weighted_mean,
    weighted_median,
)
from outpace.evaluate.samples import GradedSample


class Unit(StrEnum):
    """What the numbers of a measure are."""

    SHARE = "share"
    """Between 0 and 1; shown as per cent."""
    RATIO = "ratio"
    """Reference time over candidate time; 1 is equal speed."""
    TOKENS = "tokens"
    PROGRAMS = "programs"


Statistic = Callable[[Floats, Floats], Floats]
"""(values_N, counts_BN) -> (B,): the average that a measure takes over a resample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMeasure:
    """An average over samples; tasks are drawn for its interval, and samples."""

    name: str
    label: str
    unit: Unit
    value: Callable[[GradedSample], float | None]
    """None: does not count. Only graded samples are asked."""
    statistic: Statistic = weighted_mean
    higher_is_better: bool | None = True
    """None: neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMeasure:
    """A mean over tasks of a number that needs all samples of a task; only tasks are drawn for its interval.

    Drawing samples with replacement would repeat some and so lower the number itself.
    """

    name: str
    label: str
    unit: Unit
    value: Callable[[Sequence[GradedSample]], float | None]
    """Of the graded samples of one task; None: does not count."""
    higher_is_better: bool | None = True


AnyMeasure = SampleMeasure | TaskMeasure


def pass_at_k(n: int, correct: int, k: int) -> float | None:
    """Chance that at least one of `k` samples is correct, estimated from `correct` of `n`.

    The unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. (2021), as a product that cannot overflow.
    None when k > n: there is no unbiased estimate.
    """
    if not 0 <= correct <= n or k < 1:
        raise ValueError(f"pass@k needs 0 <= correct <= n and k >= 1, got n={n}, correct={correct}, k={k}")
    if k > n:
        return None
    if n - correct < k:
        return 1.0
    return 1.0 - prod(1.0 - k / i for i in range(n - correct + 1, n + 1))


def _pass_at(k: int) -> TaskMeasure:
    return TaskMeasure(
        name=f"pass@{k}",
        label=f"pass@{k}",
        unit=Unit.SHARE,
        value=lambda samples: pass_at_k(len(samples), sum(sample.is_correct for sample in samples), k),
    )


def _faster_than(times: float, *, among_correct: bool) -> SampleMeasure:
    def value(sample: GradedSample) -> float | None:
        if not sample.timed_task:
            return None
        if not sample.is_correct:
            return None if among_correct else 0.0
        if sample.speedup_bound is None:
            return None
        return float(sample.speedup_bound > 1.0 and sample.speedup_bound >= times)

    return SampleMeasure(
        name=f"faster_{times:g}x" + ("_of_correct" if among_correct else ""),
        label=f"faster than {times:g}x" + (", of correct" if among_correct else ""),
        unit=Unit.SHARE,
        value=value,
    )


def _slower(sample: GradedSample) -> float | None:
    return None if sample.speedup_bound is None else float(sample.speedup_bound < 1.0)


def _speedup(name: str, label: str, statistic: Statistic) -> SampleMeasure:
    return SampleMeasure(
        name=f"speedup_{name}",
        label=f"speed-up, {label}",
        unit=Unit.RATIO,
        value=lambda sample: sample.speedup,
        statistic=statistic,
    )


def _distinct(samples: Sequence[GradedSample]) -> float | None:
    return float(len({sample.program for sample in samples if sample.program})) if samples else None


def catalogue(k_values: Sequence[int]) -> tuple[AnyMeasure, ...]:
    """All measures in the order in which tables show them."""
    return (
        SampleMeasure(name="syntax", label="code parses", unit=Unit.SHARE, value=lambda s: float(s.parses)),
        SampleMeasure(
            name="stdlib_only",
            label="imports stdlib only",
            unit=Unit.SHARE,
            value=lambda s: float(s.stdlib_only),
        ),
        SampleMeasure(
            name="compliance", label="nothing forbidden", unit=Unit.SHARE, value=lambda s: float(s.compliant)
        ),
        SampleMeasure(name="pass@1", label="correct (pass@1)", unit=Unit.SHARE, value=lambda s: float(s.is_correct)),
        *(_pass_at(k) for k in sorted(set(k_values) - {1})),
        *(_faster_than(times, among_correct=False) for times in (1.0, 1.5, 2.0)),
        *(_faster_than(times, among_correct=True) for times in (1.0, 1.5, 2.0)),
        SampleMeasure(
            name="slower_of_correct",
            label="slower than 1x, of correct",
            unit=Unit.SHARE,
            value=_slower,
            higher_is_better=False,
        ),
        _speedup("median", "median", weighted_median),
        _speedup("mean", "mean", weighted_mean),
        _speedup("geometric_mean", "geometric mean", weighted_geometric_mean),
        TaskMeasure(name="distinct_correct", label="distinct correct", unit=Unit.PROGRAMS, value=_distinct),
        SampleMeasure(
            name="tokens",
            label="length, tokens",
            unit=Unit.TOKENS,
            value=lambda s: None if s.tokens is None else float(s.tokens),
            higher_is_better=None,
        ),
        SampleMeasure(
            name="cut_off",
            label="cut off",
            unit=Unit.SHARE,
            value=lambda s: float(not s.finished),
            higher_is_better=False,
        ),
    )


def values_of(measure: AnyMeasure, samples: Sequence[GradedSample]) -> Floats:
    """The measure's values: (N,) for a sample measure, (T,) for a task measure; samples sorted by task."""
    if isinstance(measure, SampleMeasure):
        values = [measure.value(sample) if sample.is_graded else None for sample in samples]
    else:
        by_task = (list(group) for _, group in groupby(samples, key=lambda sample: sample.task_id))
        values = [measure.value([sample for sample in group if sample.is_graded]) for group in by_task]
    return np.array([nan if value is None else value for value in values])
