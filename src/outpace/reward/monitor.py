"""Statistics of rewards over groups, and warnings when they teach nothing or the wrong thing.

Pure bookkeeping over `RewardVector`s: nothing is evaluated and no reward is changed. A figure over values of which
some are unknown is taken over the known ones, and their share is reported beside it.
"""

import math
from collections.abc import Mapping, Sequence

from outpace.reward.advantages import deviation
from outpace.reward.base import Value
from outpace.reward.rewardset import contributions
from outpace.schema import RewardVector

Groups = Sequence[Sequence[RewardVector]]

DOMINANCE = 0.9
"""A component with more than this share of the total's variance within groups is said to dominate."""


def statistics(groups: Groups, weights: Mapping[str, float]) -> dict[str, float]:
    """Figures of one step, ready for a metrics file.

    Args:
        groups: The reward vectors, one list per prompt.
        weights: `RewardSet.weights(step)`.

    Returns:
        `reward/mean`, `reward/std`, `reward/known` (share of samples with a total); for each component
        `reward/<name>/mean|std|known|variance_share`; `groups/no_signal` (share of groups whose totals are all equal),
        `groups/collapsed` (share whose totals are equal although their components differ). Means and deviations are
        missing when nothing is known; a variance share is missing when totals do not vary.
    """
    vectors = [vector for group in groups for vector in group]
    figures = _column("reward", [vector.total for vector in vectors])
    shares = variance_shares(groups, weights)
    for name in weights:
        figures |= _column(f"reward/{name}", [vector.components[name] for vector in vectors])
        if name in shares:
            figures[f"reward/{name}/variance_share"] = shares[name]
    if groups:
        figures["groups/no_signal"] = sum(_is_flat(group) for group in groups) / len(groups)
        figures["groups/collapsed"] = sum(is_collapsed(group) for group in groups) / len(groups)
    return figures


def _column(prefix: str, values: Sequence[Value]) -> dict[str, float]:
    there = [value for value in values if value is not None]
    figures = {f"{prefix}/known": len(there) / len(values)} if values else {}
    if there:
        figures |= {f"{prefix}/mean": math.fsum(there) / len(there), f"{prefix}/std": deviation(there)}
    return figures


def variance_shares(groups: Groups, weights: Mapping[str, float]) -> dict[str, float]:
    """Each component's share of the totals' variance within groups (covariance with the total over its variance).

    The shares add up to 1; one below 0 works against the total. Empty when no total varies within its group.
    """
    covariances = dict.fromkeys(weights, 0.0)
    for group in groups:
        rows = [row for row in contributions([vector.components for vector in group], weights) if _known(row)]
        columns = {name: [row[name] or 0.0 for row in rows] for name in weights}
        totals = [math.fsum(column[i] for column in columns.values()) for i in range(len(rows))]
        for name, column in columns.items():
            covariances[name] += _covariance(column, totals)
    whole = math.fsum(covariances.values())
    return {name: covariance / whole for name, covariance in covariances.items()} if whole > 1e-12 else {}


def _known(row: Mapping[str, Value]) -> bool:
    return any(value is not None for value in row.values())


def _covariance(xs: Sequence[float], ys: Sequence[float]) -> float:
    if not xs:
        return 0.0
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))


def _is_flat(group: Sequence[RewardVector]) -> bool:
    totals = [vector.total for vector in group if vector.total is not None]
    return not totals or max(totals) - min(totals) <= 1e-9


def is_collapsed(group: Sequence[RewardVector]) -> bool:
    """Whether all totals are equal although the components differ: what tells the samples apart was summed away."""
    mixtures = {tuple(vector.components.items()) for vector in group if vector.total is not None}
    return _is_flat(group) and len(mixtures) > 1


class Monitor:
    """Watches the rewards of a run and says each thing once.

    Args:
        patience: How many steps in a row something must hold before it is worth a warning.
    """

    def __init__(self, patience: int = 5) -> None:
        self._patience = patience
        self._streaks: dict[str, int] = {}
        self._said: set[str] = set()

    def warnings(self, groups: Groups, weights: Mapping[str, float]) -> list[str]:
        """The warnings that become due with this step's groups, one sentence each."""
        figures = statistics(groups, weights)
        found: dict[str, str] = {}
        active = [name for name, weight in weights.items() if weight != 0]
        for name in active:
            found |= _of_component(name, figures, alone=len(active) == 1)
        if figures.get("groups/collapsed", 0.0) >= 0.5:
            found["collapsed"] = (
                "In most groups different mixtures of rewards add up to one total, so nothing is learnt from them; "
                "change the weights or use multi_objective_aggregation: normalize_then_sum."
            )
        self._streaks = {key: self._streaks.get(key, 0) + 1 for key in found}
        due = [key for key in found if self._streaks[key] >= self._patience and key not in self._said]
        self._said.update(due)
        return [found[key] for key in due]


def _of_component(name: str, figures: Mapping[str, float], *, alone: bool) -> dict[str, str]:
    prefix = f"reward/{name}"
    if f"{prefix}/std" not in figures:
        cause = "the tasks do not have it, or it fails (see the log)"
        return {f"{name}/unknown": f"The reward {name!r} is unknown for every sample: {cause}."}
    if figures[f"{prefix}/std"] == 0.0:
        value = figures[f"{prefix}/mean"]
        return {
            f"{name}/constant": f"The reward {name!r} is {value:g} for every sample, so it teaches nothing at present."
        }
    share = figures.get(f"{prefix}/variance_share", 0.0)
    if share > DOMINANCE and not alone:
        return {
            f"{name}/dominant": f"The reward {name!r} makes up {share:.0%} of the variance within groups, so the other "
            "rewards hardly count; lower its weight or clip it."
        }
    return {}
