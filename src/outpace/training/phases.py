"""Where a step's time goes, from timestamps taken in public hooks; pure bookkeeping, no clock of its own.

sample          drawing completions (with `sampler: transformers`, log-probabilities are in it)
score_hidden    grading while completions were still being drawn: seconds in which at least one was being graded
score_exposed   grading that was waited for
logprobs        old and reference log-probabilities
update          forward, backward and optimiser
"""

import time
from collections.abc import Callable

PHASES = ("sample", "score_hidden", "score_exposed", "logprobs", "update")


class PhaseClock:
    """Collects the seconds of one step; `take` hands them out and begins the next step."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seconds: dict[str, float] = {}
        self._began: float | None = None
        self._sampled: float | None = None
        self._scored: float | None = None

    def step_began(self) -> None:
        """Before a step's first micro-batch."""
        self._began = self._now()
        self._sampled = self._scored = None

    def add(self, phase: str, seconds: float) -> None:
        """Add seconds to one of `PHASES`."""
        self._seconds[phase] = self._seconds.get(phase, 0.0) + max(0.0, seconds)

    def sampled(self, began: float, graded_s: float) -> None:
        """Sampling that began at `began` has ended now; for `graded_s` of it something was being graded."""
        now = self._now()
        self.add("sample", now - began)
        self.add("score_hidden", graded_s)
        self._sampled = now

    def scoring_began(self) -> float:
        """Rewards are asked for; what lies since sampling were log-probabilities."""
        now = self._now()
        if self._sampled is not None:
            self.add("logprobs", now - self._sampled)
        elif self._began is not None:
            self.add("sample", now - self._began)
        self._sampled = None
        return now

    def scored(self, began: float) -> None:
        """Rewards have been handed out; they were asked for at `began`."""
        self._scored = self._now()
        self.add("score_exposed", self._scored - began)

    def take(self) -> dict[str, float]:
        """Seconds by phase of the step that ends now, as `seconds/<phase>`, and their sum as `seconds/step`."""
        now = self._now()
        since = self._scored if self._scored is not None else self._began
        if since is not None:
            self.add("update", now - since)
        seconds, self._seconds = self._seconds, {}
        record = {f"seconds/{phase}": seconds[phase] for phase in PHASES if phase in seconds}
        if self._began is not None:
            record["seconds/step"] = now - self._began
        self._began = self._sampled = self._scored = None
        return record

    @property
    def now(self) -> float:
        """The clock's reading, for callers that must measure by the same clock."""
        return self._now()
