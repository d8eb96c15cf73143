"""Resampling by counts: pure numpy, seeded, no knowledge of models or tasks.

A resample is a row of counts: how often each sample was drawn. Tasks are drawn first, with replacement; then, for
every draw of a task, as many of its samples as it has. So an interval speaks about other tasks of the same kind as
well as about other samples. With one task it speaks about samples only.

Percentile intervals, not BCa: most measures are shares near 0 or 1 over few tasks, where BCa's acceleration (a
jackknife over tasks) is unstable, and a percentile interval stays within [0, 1] and moves with the statistic under
a change of scale. Drawing at both stages widens intervals a little (noise within tasks is counted in the first
stage too): an error on the safe side.

Axes: `_N` samples, `_T` tasks, `_B` resamples.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 4_000_000
"""Counts held at once; 32 MB."""


def task_counts(n_tasks: int, resamples: int, rng: np.random.Generator) -> Ints:
    """How often each task is drawn, shape (B, T); every row sums to T."""
    return rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), size=resamples)


def sample_counts(task_N: Ints, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each sample is drawn, in blocks of shape (b, N) whose b sum to `resamples`.

    `task_N` holds the task's number of each sample: 0 to T-1, each at least once, in ascending order.
    """
    sizes_T = np.bincount(task_N)
    block = max(1, _BLOCK // len(task_N))
    for start in range(0, resamples, block):
        drawn = task_counts(len(sizes_T), min(block, resamples - start), rng)
        counts = np.empty((len(drawn), len(task_N)))
        end = 0
        for task, size in enumerate(sizes_T):
            begin, end = end, end + size
            counts[:, begin:end] = rng.multinomial(drawn[:, task] * size, np.full(size, 1 / size))
        yield counts


def weighted_mean(values_N: Floats, counts_BN: Floats) -> Floats:
    """Mean of the values that are not NaN, per resample; NaN where a resample holds none. Shape (B,)."""
    known = ~np.isnan(values_N)
    weight_B = counts_BN @ known.astype(np.float64)
    total_B = counts_BN @ np.where(known, values_N, 0.0)
    mean_B: Floats = np.divide(total_B, weight_B, out=np.full(len(counts_BN), np.nan), where=weight_B > 0)
    return mean_B


def weighted_geometric_mean(values_N: Floats, counts_BN: Floats) -> Floats:
    """Geometric mean of positive values, as `weighted_mean`."""
    mean_B: Floats = np.exp(weighted_mean(np.log(values_N), counts_BN))
    return mean_B


def weighted_median(values_N: Floats, counts_BN: Floats) -> Floats:
    """Median of the values that are not NaN, per resample; the mean of the middle two when even. Shape (B,)."""
    known = np.flatnonzero(~np.isnan(values_N))
    result = np.full(len(counts_BN), np.nan)
    if not len(known):
        return result
    order = known[np.argsort(values_N[known], kind="stable")]
    cumulative = counts_BN[:, order].cumsum(axis=1)
    total_B = cumulative[:, -1]
    lower = (cumulative < np.floor((total_B + 1) / 2)[:, None]).sum(axis=1)
    upper = (cumulative < (np.floor(total_B / 2) + 1)[:, None]).sum(axis=1)
    drawn = total_B > 0
    result[drawn] = (values_N[order[lower[drawn]]] + values_N[order[upper[drawn]]]) / 2
    return result


def percentile_interval(replicates_B: Floats, confidence: float) -> tuple[float, float] | None:
    """The central share `confidence` of the replicates; None when more than half of them are undefined."""
    known = replicates_B[~np.isnan(replicates_B)]
    if len(known) * 2 <= len(replicates_B):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def exact_interval_at_the_edge(share: float, n: int, confidence: float) -> tuple[float, float]:
    """Clopper-Pearson's interval for 0 or `n` successes of `n`, where every resample is the same.

    Raises ValueError for a share other than 0 or 1.
    """
    if share not in (0.0, 1.0):
        raise ValueError(f"only the shares 0 and 1 have no spread, got {share}")
    reach = 1 - ((1 - confidence) / 2) ** (1 / n)
    return (0.0, reach) if share == 0.0 else (1 - reach, 1.0)


def combined_interval(before: tuple[float, float, float], after: tuple[float, float, float]) -> tuple[float, float]:
    """Interval of after - before from two (low, value, high), by the method of variance estimates recovery.

    Newcombe (1998), method 10; it takes the two as independent.
    """
    before_low, before_value, before_high = before
    after_low, after_value, after_high = after
    difference = after_value - before_value
    below = np.hypot(after_value - after_low, before_high - before_value)
    above = np.hypot(after_high - after_value, before_value - before_low)
    return float(difference - below), float(difference + above)
