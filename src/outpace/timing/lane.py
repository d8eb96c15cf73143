"""One program in one fresh process: its readings, its values, and the failure that ends it. Judges nothing itself."""

from collections.abc import Callable
from typing import Any

from outpace.schema import Args, Failure, Instance, Outcome
from outpace.timing.estimate import ProcessReadings
from outpace.timing.settings import TimingSettings

Judge = Callable[[Any, Args], bool]
"""Whether a value is right for the arguments; called only when every candidate process of the pair has ended."""


class Lane:
    """Calls one instance round after round, until it fails or has had its share of CPU."""

    def __init__(self, instance: Instance, settings: TimingSettings) -> None:
        self.failure: Failure | None = instance.load_failure
        self._instance, self._settings = instance, settings
        self._charges_ns: list[int | None] = []
        self._values: list[Any] = []

    @property
    def last_value(self) -> Any:
        """The value of the latest call."""
        return self._values[-1]

    def wants_more(self) -> bool:
        """Whether the next round includes this program: one trial at least, and no more once the budget is used."""
        if self.failure is not None:
            return False
        spent_ns = sum(ns for ns in self._charges_ns if ns is not None)
        return len(self._charges_ns) < 2 or spent_ns < self._settings.process_budget_ns

    def run(self, args: Args) -> None:
        """Call once; a failure ends the lane."""
        result = self._instance.call(args)
        if result.failure is not None:
            self.failure = result.failure
            return
        self._charges_ns.append(result.cpu_ns)
        self._values.append(result.value)

    def close(self) -> None:
        """End the process; what it did after its last reply is found out here, and outweighs any other failure."""
        self.failure = self._instance.close() or self.failure

    def judge(self, is_right: Judge, turn: int, args: Args) -> None:
        """Judge the value of one round, the warm-up's too; a wrong one is the candidate's failure."""
        if self.failure is None and turn < len(self._values) and not is_right(self._values[turn], args):
            self.failure = Failure(outcome=Outcome.WRONG, reason="wrong_while_timed")

    def readings(self) -> ProcessReadings:
        """What the process was charged."""
        warmup, *trials = self._charges_ns or [None]
        return ProcessReadings(load_ns=self._instance.load_cpu_ns, warmup_ns=warmup, trials_ns=tuple(trials))
