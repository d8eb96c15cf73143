"""Group-relative advantages as pure functions: the same numbers as the trainer's, without a tensor.

Both ways of joining components follow the textbook: sample standard deviation (ddof = 1) plus `EPSILON`. A group whose
values are all equal has advantages of exactly 0.0; a sample without any known component has None (masked) and takes no
part in mean or deviation. Not covered: how an advantage enters the loss.

Sources: DeepSeekMath (GRPO, arXiv 2402.03300), GDPO (arXiv 2601.05242) for `normalize_then_sum`.
"""

import math
from collections.abc import Mapping, Sequence

from outpace.reward.base import Value
from outpace.reward.rewardset import contributions

EPSILON = 1e-4

Rows = Sequence[Mapping[str, Value]]
"""The components of each sample of one group, before weights."""


def sum_then_normalize(rows: Rows, weights: Mapping[str, float], *, scale: bool = True) -> list[Value]:
    """Advantages of one group `(G,)`: the weighted sums, less their mean, over their deviation (`scale=False`: not).

    A component that is known for some samples only counts as their mean for the others (`rewardset.contributions`).
    """
    totals = [_sum(shares) for shares in contributions(rows, weights)]
    return normalize(totals, scale=scale)


def normalize_then_sum(groups: Sequence[Rows], weights: Mapping[str, float]) -> list[list[Value]]:
    """GDPO advantages of a batch `(groups, G)`: each component is normalised in its group, then weighed and summed.

    So a component of small spread counts as much as one of large spread, and mixtures with equal sums stay apart.
    The sums are normalised once more over the whole batch, as GDPO does.
    """
    sums: list[Value] = []
    for rows in groups:
        columns = {name: normalize([row[name] for row in rows]) for name in weights}
        for index in range(len(rows)):
            known = {name: column[index] for name, column in columns.items() if column[index] is not None}
            sums.append(_sum({name: weights[name] * value for name, value in known.items() if value is not None}))
    flat = iter(normalize(sums))
    return [[next(flat) for _ in rows] for rows in groups]


def normalize(values: Sequence[Value], *, scale: bool = True) -> list[Value]:
    """(value - mean) / (standard deviation + EPSILON) over the known values; exactly 0.0 when they are all equal."""
    there = [value for value in values if value is not None]
    if not there or min(there) == max(there):
        return [None if value is None else 0.0 for value in values]
    mean = math.fsum(there) / len(there)
    spread = deviation(there) + EPSILON if scale else 1.0
    return [None if value is None else (value - mean) / spread for value in values]


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (ddof = 1); 0.0 for fewer than two values and exactly 0.0 for equal ones."""
    if len(values) < 2 or min(values) == max(values):
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _sum(shares: Mapping[str, Value]) -> Value:
    there = [share for share in shares.values() if share is not None]
    return math.fsum(there) if there else None
