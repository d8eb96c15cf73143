"""Figures of one scored batch, by the names under which `metrics.jsonl` has them.

A figure that has no value (the speed-up of a batch without a correct answer) is left out, never written as 0.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from outpace.reward.monitor import is_collapsed, variance_shares
from outpace.schema import Outcome, RewardVector, Sample

_UNSAFE = frozenset({Outcome.FORBIDDEN, Outcome.TAMPERING})
_UNREADABLE = frozenset({Outcome.NO_CODE, Outcome.SYNTAX_ERROR})


def batch_facts(groups: Sequence[Sequence[Sample]], vectors: Sequence[Sequence[RewardVector]]) -> dict[str, float]:
    """Shares, means and medians over the samples of one batch of groups.

    `not_graded` is the share that we failed to grade; every other share is over those that were graded.
    """
    samples = [sample for group in groups for sample in group]
    graded = [sample.verdict for sample in samples if sample.verdict is not None]
    facts = {
        "not_graded": 1.0 - len(graded) / len(samples),
        "truncated": sum(not sample.finished for sample in samples) / len(samples),
        "equal_groups": sum(_is_equal(group) for group in vectors) / len(vectors),
        "distinct": statistics.fmean(_distinct(group) for group in groups),
    }
    if graded:
        count = Counter(verdict.outcome for verdict in graded)
        facts["pass_rate"] = count[Outcome.CORRECT] / len(graded)
        facts["parses"] = 1.0 - sum(count[outcome] for outcome in _UNREADABLE) / len(graded)
        facts["compliant"] = 1.0 - sum(count[outcome] for outcome in _UNSAFE | _UNREADABLE) / len(graded)
        facts |= {f"outcome/{outcome.value}": number / len(graded) for outcome, number in sorted(count.items())}
    ratios = [v.timing.ratio for v in graded if v.outcome is Outcome.CORRECT and v.timing and v.timing.trusted]
    if ratios:
        facts["speedup"] = statistics.median(ratios)
        facts["speedup_best"] = max(ratios)
    return facts | component_facts([vector for group in vectors for vector in group])


def component_facts(vectors: Sequence[RewardVector]) -> dict[str, float]:
    """Mean and standard deviation of each reward component before its weight, over the samples where it is known."""
    facts: dict[str, float] = {}
    for name in vectors[0].components if vectors else ():
        known = [value for vector in vectors if (value := vector.components[name]) is not None]
        if known:
            facts[f"components/{name}/mean"] = statistics.fmean(known)
            facts[f"components/{name}/std"] = statistics.pstdev(known)
    return facts


def spread_facts(groups: Sequence[Sequence[RewardVector]], weights: Mapping[str, float]) -> dict[str, float]:
    """Each component's share of the variance within groups, and the share of groups whose mixtures sum to one total."""
    figures = {f"components/{name}/variance_share": share for name, share in variance_shares(groups, weights).items()}
    return figures | {"collapsed_groups": sum(is_collapsed(group) for group in groups) / len(groups)}


def sample_row(step: int, sample: Sample, vector: RewardVector) -> dict[str, Any]:
    """One completion as `samples/step-N.jsonl` keeps it."""
    verdict = sample.verdict
    execution = verdict.execution if verdict else None
    timing = verdict.timing if verdict else None
    return {
        "step": step,
        "task_id": sample.task.id,
        "completion": sample.completion,
        "tokens": None if sample.completion_ids is None else len(sample.completion_ids),
        "finished": sample.finished,
        "outcome": verdict.outcome.value if verdict else None,
        "reason": verdict.reason if verdict else None,
        "source": verdict.candidate.source if verdict and verdict.candidate else None,
        "tests_passed": execution.tests_passed if execution else None,
        "tests_total": execution.tests_total if execution else None,
        "speedup": timing.ratio if timing and timing.trusted else None,
        "rewards": dict(vector.components),
        "reward": vector.total,
    }


def _is_equal(group: Sequence[RewardVector]) -> bool:
    totals = [vector.total for vector in group if vector.total is not None]
    return not totals or math.isclose(max(totals), min(totals), abs_tol=1e-8)


def _distinct(group: Sequence[Sample]) -> float:
    """Share of different programs (or texts, where no code was found) in a group."""
    texts = {
        sample.verdict.candidate.source if sample.verdict and sample.verdict.candidate else sample.completion
        for sample in group
    }
    return len(texts) / len(group)
