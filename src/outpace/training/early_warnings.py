"""Early warnings: what in the logged figures says that a run is going wrong, long before its end. Pure.

Each kind speaks once, and again only after `_SILENCE` steps. Not here: what stops a run (`callbacks`), and rewards that
are constant, dominate or cancel out (`reward.monitor`).
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from outpace.config import Recipe

_BASELINE = 5
"""Steps whose mean is what later steps are compared with."""
_PATIENCE = 5
"""Steps in a row that a share must stay high."""
_SILENCE = 25


class EarlyWarnings:
    """Reads one record of figures per step and says what is wrong, in sentences with a remedy."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._baseline: dict[str, list[float]] = defaultdict(list)
        self._run: dict[str, int] = defaultdict(int)
        self._spoken: dict[str, int] = {}

    def observe(self, step: int, record: Mapping[str, Any]) -> list[str]:
        """The warnings that `record` gives rise to; figures that are missing or None say nothing."""
        figures = {key: float(value) for key, value in record.items() if isinstance(value, int | float)}
        found = (
            self._not_graded(figures)
            | self._truncation(figures)
            | self._equal_groups(figures)
            | self._no_code(figures)
            | self._policy_drift(figures)
        )
        due = {kind: text for kind, text in found.items() if step - self._spoken.get(kind, -_SILENCE) >= _SILENCE}
        self._spoken |= dict.fromkeys(due, step)
        return list(due.values())

    def _lasting(self, kind: str, holds: bool, steps: int = _PATIENCE) -> bool:
        self._run[kind] = self._run[kind] + 1 if holds else 0
        return self._run[kind] >= steps

    @staticmethod
    def _not_graded(figures: Mapping[str, float]) -> dict[str, str]:
        share = figures.get("not_graded", 0.0)
        if share == 0.0:
            return {}
        return {"not_graded": f"{share:.0%} of completions could not be graded by us; they take no part in the update"}

    def _truncation(self, figures: Mapping[str, float]) -> dict[str, str]:
        share, limit = figures.get("truncated"), self._recipe.max_completion_length
        if share is None:
            return {}
        if share == 1.0:
            return {"truncated": f"all completions were truncated at {limit} tokens: raise max_completion_length"}
        if self._lasting("truncated", share >= self._recipe.warn_truncated_share):
            return {
                "truncated": f"{share:.0%} of completions are truncated at {limit} tokens: raise max_completion_length"
            }
        return {}

    def _equal_groups(self, figures: Mapping[str, float]) -> dict[str, str]:
        share = figures.get("equal_groups")
        if share is None or not self._lasting("equal", share >= self._recipe.warn_equal_groups_share):
            return {}
        return {
            "equal": f"{share:.0%} of groups have equal rewards, so nothing is learned from them: choose tasks "
            "that are sometimes solved, raise num_generations, or add a finer reward"
        }

    def _no_code(self, figures: Mapping[str, float]) -> dict[str, str]:
        share = figures.get("outcome/no_code", 0.0 if "pass_rate" in figures else None)
        if share is None or not self._lasting("no_code", share >= 0.9):
            return {}
        return {
            "no_code": f"{share:.0%} of completions hold no code at all: read samples/, then lower learning_rate or "
            "raise beta, or check that the prompt asks for a fenced block"
        }

    def _policy_drift(self, figures: Mapping[str, float]) -> dict[str, str]:
        recipe, found = self._recipe, {}
        kl, entropy = figures.get("kl"), figures.get("entropy")
        if kl is not None and kl > recipe.warn_kl:
            found["kl"] = (
                f"the policy is {kl:.1f} nats per token from where it began: raise beta or lower learning_rate"
            )
        if entropy is not None:
            if entropy < recipe.warn_entropy_low:
                found["entropy_low"] = (
                    f"entropy fell to {entropy:.4f} nats: completions hardly differ any more; lower "
                    "learning_rate, raise beta, or add the diversity reward"
                )
            factor = self._against_baseline("entropy", entropy)
            if factor is not None and factor > recipe.warn_entropy_factor:
                found["entropy_high"] = (
                    f"entropy is {factor:.1f} times what it was: the policy is becoming random; lower learning_rate or "
                    "raise beta (the entropy bonus is 0 here)"
                )
        length = figures.get("completions/mean_length")
        factor = None if length is None else self._against_baseline("length", length)
        if factor is not None and not 1 / recipe.warn_length_factor <= factor <= recipe.warn_length_factor:
            found["length"] = (
                f"completions are {factor:.1f} times as long as in the first steps ({length:.0f} tokens): read "
                "samples/; a length reward or a higher beta holds them"
            )
        return found

    def _against_baseline(self, name: str, value: float) -> float | None:
        """`value` over the mean of the first steps; None while those are being collected."""
        baseline = self._baseline[name]
        if len(baseline) < _BASELINE:
            baseline.append(value)
            return None
        mean = sum(baseline) / len(baseline)
        return value / mean if mean > 0 else None
