"""Samples with made-up facts, so that rewards can be tested without running anything."""

import random
from collections.abc import Sequence
from typing import Any

from outpace.schema import (
    Args,
    Candidate,
    Case,
    Execution,
    Outcome,
    Purpose,
    Sample,
    StaticReport,
    Task,
    Timing,
    Verdict,
)


def _same(actual: Any, expected: Any, args: Args) -> bool:
    return bool(actual == expected)


def _inputs(rng: random.Random, purpose: Purpose) -> Sequence[Args]:
    return [(rng.random(),)]


TIMED = Task(
    id="made/up",
    prompt=({"role": "user", "content": "Write f."},),
    entry_point="f",
    compare=_same,
    inputs=_inputs,
    oracle=lambda x: x,
    reference="def f(x):\n    return x\n",
)
UNTIMED = Task(
    id="made/cases", prompt=TIMED.prompt, entry_point="f", compare=_same, cases=(Case(args=(1,), expected=1),)
)

PROGRAM = "def f(x):\n    return x\n"


def timing(low: float, high: float | None = None, *, trusted: bool = True, floor: float = 0.0) -> Timing:
    high = low if high is None else high
    return Timing(ratio=(low + high) / 2, low=low, high=high, noise_floor=floor, trusted=trusted)


def sample(
    outcome: Outcome | None = Outcome.CORRECT,
    *,
    passed: int | None = None,
    total: int = 10,
    speed: Timing | None = None,
    task: Task = TIMED,
    source: str | None = PROGRAM,
    completion: str | None = None,
    **fields: Any,
) -> Sample:
    """A sample of the given outcome; None for a sample that we failed to grade."""
    if completion is None:
        completion = f"```python\n{source}```\n"
    if outcome is None:
        return Sample(task=task, completion=completion, **fields)
    if passed is None:
        passed = total if outcome is Outcome.CORRECT else 0
    no_code = outcome is Outcome.NO_CODE or source is None
    verdict = Verdict(
        task_id=task.id,
        outcome=outcome,
        candidate=None if no_code else Candidate(source=source or "", where="block 1 of 1"),
        static=None if no_code else StaticReport(parses=outcome is not Outcome.SYNTAX_ERROR, defines_entry_point=True),
        execution=Execution(tests_passed=passed, tests_total=total),
        timing=speed,
    )
    return Sample(task=task, completion=completion, verdict=verdict, **fields)
