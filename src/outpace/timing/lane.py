"""One program in one fresh process: its readings, its values, and the failure that ends it."""

from collections.abc import Callable
from typing import Any

from outpace.schema import Args, Failure, Instance, Outcome
from outpace.timing.estimate import ProcessReadings
from outpace.timing.pace import Pacer
from outpace.timing.settings import TimingSettings

Judge = Callable[[Any, Args], bool]
"""Whether a value is right for the arguments; called only when every candidate process of the pair has ended."""


class Lane:
    """Calls one instance again and again, until it fails or has had its share: `trials` calls at a calm pace."""

    def __init__(self, instance: Instance, pacer: Pacer, settings: TimingSettings, trials: int) -> None:
        self.failure: Failure | None = instance.load_failure
        self._instance, self._pacer, self._settings, self._trials = instance, pacer, settings, trials
        self._charges_ns: list[int | None] = []
        self._paces_ns: list[int] = []
        self._values: dict[int, Any] = {}
        self.last_value: Any = None

    def is_spent(self) -> bool:
        """Whether it can or may answer no more: it failed, or has used up its calls or its CPU (after one trial)."""
        if self.failure is not None:
            return True
        trials, spent_ns = len(self._charges_ns) - 1, sum(ns for ns in self._charges_ns if ns is not None)
        return trials >= 1 and (trials >= self._settings.max_trials or spent_ns >= self._settings.process_budget_ns)

    def wants_more(self, *, is_unclear: bool = False) -> bool:
        """Whether it may be called again and should: the verdict is unclear, or too few trials were calm so far."""
        calm = sum(self._pacer.is_calm(pace_ns) for pace_ns in self._paces_ns[1:])
        return (is_unclear or calm < self._trials) and not self.is_spent()

    def run(self, turn: int, args: Args, pace_ns: int) -> int:
        """Call once in round `turn`, `pace_ns` being the pace before it; returns the pace after it."""
        result = self._instance.call(args)
        after_ns = self._pacer.read()
        if result.failure is not None:
            self.failure = result.failure
        else:
            # A trial must be calm at both ends; the first answer, which sets a least price, is busy only if both were.
            pick = max if self._charges_ns else min
            self._paces_ns.append(pick(pace_ns, after_ns))
            self._charges_ns.append(result.cpu_ns)
            self._values[turn] = self.last_value = result.value
        return after_ns

    def close(self) -> None:
        """End the process; what it did after its last reply is found out here, and outweighs any other failure."""
        self.failure = self._instance.close() or self.failure

    def judge(self, is_right: Judge, turn: int, args: Args) -> None:
        """Judge the value of one round, the warm-up's too, and let it go; a wrong one is the candidate's failure."""
        if turn in self._values and not is_right(self._values.pop(turn), args) and self.failure is None:
            self.failure = Failure(outcome=Outcome.WRONG, reason="wrong_while_timed")

    def readings(self) -> ProcessReadings:
        """What the process was charged, and at which pace beside the best of the whole measurement."""
        warmup_ns, *trials_ns = self._charges_ns or [None]
        warmup_pace, *paces_T = [ns / self._pacer.best_ns for ns in self._paces_ns] or [1.0]
        return ProcessReadings(
            load_ns=self._instance.load_cpu_ns,
            warmup_ns=warmup_ns,
            warmup_pace=warmup_pace,
            trials_ns=tuple(trials_ns),
            paces_T=tuple(paces_T),
        )
