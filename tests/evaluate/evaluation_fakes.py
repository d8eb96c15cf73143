"""Tasks, samples and evaluations that say what a test wants them to say."""

from collections.abc import Sequence
from random import Random
from typing import Any

from outpace.evaluate import Cost, EvalSettings, Evaluation, GradedSample, summarise
from outpace.schema import Outcome, Purpose, Task

COST = Cost(sampling_s=1.5, grading_s=0.5, peak_rss_bytes=2**28)
SETTINGS = EvalSettings(samples_per_task=4, k_values=(1, 4), resamples=400)


def equal(actual: Any, expected: Any, args: tuple[Any, ...]) -> bool:
    return bool(actual == expected)


def inputs(random: Random, purpose: Purpose) -> list[tuple[Any, ...]]:
    return [(1,)]


def task(task_id: str = "fake/identity", split: str = "train", *, timed: bool = True) -> Task:
    return Task(
        id=task_id,
        prompt=({"role": "user", "content": "Write f."},),
        entry_point="f",
        compare=equal,
        inputs=inputs,
        oracle=abs,
        reference="def f(x):\n    return x\n" if timed else None,
        split=split,
    )


def graded(
    outcome: Outcome | None = Outcome.CORRECT,
    *,
    task_id: str = "fake/identity",
    index: int = 0,
    speedup: float | None = None,
    bound: float | None = None,
    **facts: Any,
) -> GradedSample:
    ran = outcome in (Outcome.CORRECT, Outcome.WRONG)
    defaults: dict[str, Any] = {
        "split": "train",
        "completion": "```python\ndef f(x):\n    return x\n```",
        "source": "def f(x):\n    return x\n",
        "finished": True,
        "tokens": 20,
        "parses": ran,
        "stdlib_only": ran,
        "compliant": ran,
        "timed_task": True,
        "program": "0" if outcome is Outcome.CORRECT else None,
        "speedup": speedup,
        "speedup_bound": speedup if bound is None else bound,
    }
    return GradedSample(task_id=task_id, index=index, outcome=outcome, **{**defaults, **facts})


def evaluation(samples: Sequence[GradedSample], settings: EvalSettings = SETTINGS, label: str = "model") -> Evaluation:
    return summarise(label, samples, settings, COST)


def many(correct_share: float, *, tasks: int = 6, per_task: int = 4, speedup: float | None = 1.0) -> list[GradedSample]:
    """Samples of which the first `correct_share` of each task are correct."""
    return [
        graded(
            Outcome.CORRECT if index < correct_share * per_task else Outcome.WRONG,
            task_id=f"fake/{number}",
            index=index,
            speedup=speedup if index < correct_share * per_task else None,
            split="train" if number < tasks / 2 else "heldout",
        )
        for number in range(tasks)
        for index in range(per_task)
    ]
