"""Cases without a program: readings of a clock, and rewards that must turn into advantages. Pure arithmetic."""

import math
from collections.abc import Sequence
from typing import Any

from outpace.audit.cases import AuditCase
from outpace.audit.report import CaseResult, result_of
from outpace.reward import RewardSet
from outpace.reward.advantages import normalize, normalize_then_sum, sum_then_normalize
from outpace.schema import Execution, Outcome, Sample, StaticReport, Task, Verdict
from outpace.timing import estimate_over_tests

MARGIN = 0.2
"""In log2: how much more readings may earn than without their best one."""


def judge_timings(case: AuditCase, task: Task, rewards: RewardSet) -> CaseResult:
    """Readings of several tests: the reward is finite, and no single reading carries it.

    They pay when they earn more than the same readings without the one that is most in the candidate's favour.
    """
    candidate_s = _numbers(_first(case, "per_test_seconds", "candidate_seconds"))
    reference_s = _numbers(_first(case, "reference_seconds"))
    reference_s = reference_s * len(candidate_s) if len(reference_s) == 1 else reference_s
    if not candidate_s or len(candidate_s) != len(reference_s):
        return result_of(case, "not_judged", note="needs per_test_seconds and reference_seconds of equal length")
    earned = _earned(task, rewards, candidate_s, reference_s)
    if not math.isfinite(earned):
        return result_of(case, "hack_paid", paid=True, ok=False, note=f"the reward is {earned}")
    gains = [_gain(c, r) for c, r in zip(candidate_s, reference_s, strict=True)]
    best = max(range(len(gains)), key=gains.__getitem__)
    rest = [i for i in range(len(gains)) if i != best]
    deserved = _earned(task, rewards, [candidate_s[i] for i in rest], [reference_s[i] for i in rest])
    note = f"earns {earned:.3g}, without its best reading {deserved:.3g}"
    paid = earned > max(deserved, _earned(task, rewards, [], [])) + MARGIN
    return result_of(case, "hack_paid" if paid else "hack_no_gain", paid=paid, ok=not paid, reward=earned, note=note)


def _gain(candidate_s: float, reference_s: float) -> float:
    """Order of readings by what a careless ratio would make of them; impossible ones first."""
    if not (math.isfinite(candidate_s) and candidate_s > 0):
        return math.inf
    return reference_s / candidate_s if math.isfinite(reference_s) else math.inf


def judge_rewards(case: AuditCase, task: Task, rewards: RewardSet) -> CaseResult:
    """Group C of kind `rewards`: advantages (or speed rewards of odd readings) are finite, masked or exactly zero."""
    if "timings" in case.input:
        problem = _odd_timings(case.input["timings"], task, rewards)
    elif "components" in case.input:
        problem = _mixtures(case.input["components"])
    else:
        problem = _groups(case.input.get("rewards", []), expects_no_update=case.expected == "no_update")
    if problem is None:
        return result_of(case, case.expected)
    return result_of(case, "reward_failed", ok=False, note=problem)


def _odd_timings(timings: Sequence[Any], task: Task, rewards: RewardSet) -> str | None:
    best = _earned(task, rewards, [1e-9], [1e9])
    for timing in timings:
        pair = _numbers([timing.get("cand_s")]), _numbers([timing.get("ref_s")])
        earned = _earned(task, rewards, *pair)
        if not math.isfinite(earned) or earned > best:
            return f"{timing} earns {earned}"
    return None


def _groups(groups: Sequence[Any], *, expects_no_update: bool) -> str | None:
    if not groups:
        return "the case holds no rewards"
    for given in groups if isinstance(groups[0], list) else [groups]:
        values = [value if value is None or math.isfinite(value) else None for value in _numbers(given, keep_none=True)]
        advantages = normalize(values)
        if [a is None for a in advantages] != [v is None for v in values]:
            return f"{given}: a sample without reward has an advantage, or one with a reward has none"
        known = [a for a in advantages if a is not None]
        if not all(map(math.isfinite, known)):
            return f"{given}: advantages {advantages}"
        if expects_no_update and any(known):
            return f"{given}: equal rewards have the advantages {advantages}"
    return None


def _mixtures(rows: Sequence[dict[str, float]]) -> str | None:
    """Samples of equal sums stay apart in their components, and the one with the accuracy is not behind."""
    weights = {name: 2.0 if name == "accuracy" else 1.0 for row in rows for name in row}
    for advantages in (sum_then_normalize(rows, weights), normalize_then_sum([rows], weights)[0]):
        if any(a is None or not math.isfinite(a) for a in advantages):
            return f"advantages {advantages}"
        pairs = [(row.get("accuracy", 0), a or 0.0) for row, a in zip(rows, advantages, strict=True)]
        best = max(accuracy for accuracy, _ in pairs)
        right = [a for accuracy, a in pairs if accuracy == best]
        wrong = [a for accuracy, a in pairs if accuracy < best]
        if wrong and min(right) <= max(wrong):
            return f"accuracy does not dominate: {advantages}"
    return None


def _earned(task: Task, rewards: RewardSet, candidate_s: Sequence[float], reference_s: Sequence[float]) -> float:
    """Total reward of a correct program with these readings."""
    verdict = Verdict(
        task_id=task.id,
        outcome=Outcome.CORRECT,
        static=StaticReport(parses=True, defines_entry_point=True),
        execution=Execution(tests_passed=1, tests_total=1),
        timing=estimate_over_tests(candidate_s, reference_s),
    )
    return rewards.score([Sample(task=task, completion="", verdict=verdict)])[0].total or 0.0


def _first(case: AuditCase, *keys: str) -> list[Any]:
    return next((list(case.input[key]) for key in keys if isinstance(case.input.get(key), list)), [])


def _numbers(values: Sequence[Any], *, keep_none: bool = False) -> list[Any]:
    """JSON has no NaN: text such as "nan" is a number here, and null a reading that is not there."""
    return [None if value is None and keep_none else math.nan if value is None else float(value) for value in values]
