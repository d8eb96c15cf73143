"""One graded sample: the facts that measures, reports and stored files need, and no live object."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from outpace.evaluate.programs import imports_only_stdlib
from outpace.evaluate.settings import Completion
from outpace.fingerprint import program_of
from outpace.schema import Isolation, Outcome, Task, Timing, Verdict

_BREACHES = frozenset({Outcome.FORBIDDEN, Outcome.TAMPERING})


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedSample:
    """What a model wrote for a task and what became of it."""

    task_id: str
    split: str
    index: int
    """Number of the sample within its task: the same index and seed pair up before and after training."""
    completion: str
    finished: bool
    tokens: int | None = None
    outcome: Outcome | None = None
    """None: we failed to grade it, which says nothing about the model."""
    reason: str | None = None
    detail: str = ""
    source: str | None = None
    parses: bool = False
    stdlib_only: bool = False
    compliant: bool = False
    """Code was found, it parses, and neither the static check nor the kernel refused anything it did."""
    tests_passed: int = 0
    tests_total: int = 0
    timed_task: bool = False
    """The task has a reference to be timed against."""
    speedup: float | None = None
    """Reference time over candidate time; None: not correct, not timed, or the timing is not trusted."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    speedup_bound: float | None = None
    """The end of the interval nearest to 1; 1.0 when the difference is within the noise."""
    timing_note: str = ""
    untrusted_timing: bool = False
    program: str | None = None
    """Fingerprint of a correct program; equal ones differ only in layout, comments and names."""

    @property
    def is_graded(self) -> bool:
        """Whether there is a verdict."""
        return self.outcome is not None

    @property
    def is_correct(self) -> bool:
        """Whether every hidden test passed."""
        return self.outcome is Outcome.CORRECT

    def to_dict(self) -> dict[str, Any]:
        """Plain data, one JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "GradedSample":
        """Read `to_dict`'s data; keys of a newer version are passed over."""
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        if values.get("outcome") is not None:
            values["outcome"] = Outcome(values["outcome"])
        return cls(**values)


def graded_sample(task: Task, index: int, completion: Completion, verdict: Verdict | None) -> GradedSample:
    """Join a completion and its verdict (None: we failed) into one record."""
    source = verdict.candidate.source if verdict and verdict.candidate else None
    return GradedSample(
        task_id=task.id,
        split=task.split,
        index=index,
        completion=completion.text,
        finished=completion.finished,
        tokens=completion.tokens,
        timed_task=task.is_timed,
        source=source,
        **(_facts(task, verdict, source) if verdict else {}),
    )


def _facts(task: Task, verdict: Verdict, source: str | None) -> dict[str, Any]:
    static, execution = verdict.static, verdict.execution
    parses = static is not None and static.parses
    is_correct = verdict.outcome is Outcome.CORRECT
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "detail": verdict.detail,
        "parses": parses,
        "stdlib_only": parses and source is not None and imports_only_stdlib(source),
        "compliant": static is not None and static.is_compliant and verdict.outcome not in _BREACHES,
        "tests_passed": execution.tests_passed if execution else 0,
        "tests_total": execution.tests_total if execution else 0,
        "program": program_of(verdict, task.entry_point) if is_correct else None,
        **(_speed(verdict.timing) if is_correct and verdict.timing else {}),
    }


def _speed(timing: Timing) -> dict[str, Any]:
    if not timing.trusted:
        return {"untrusted_timing": True, "timing_note": timing.note}
    return {
        "speedup": timing.ratio,
        "speedup_low": timing.low,
        "speedup_high": timing.high,
        "speedup_bound": timing.bound_nearest_1,
        "timing_note": timing.note,
    }


def isolation_of(verdicts: list[Verdict | None]) -> Isolation | None:
    """The isolation in force for the first verdict that records it."""
    return next((verdict.isolation for verdict in verdicts if verdict and verdict.isolation), None)
