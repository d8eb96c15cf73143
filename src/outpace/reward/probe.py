"""Samples with known facts, to try a reward on before a model is loaded.

`probe_group` is what every user reward is called with once; `check_sign` finds a reward that pays for the opposite of
what it says. Nothing is executed: the verdicts are made up, and say so in their task's id.
"""

from collections.abc import Sequence
from typing import Any

from outpace.errors import RewardError
from outpace.reward.base import Reward, Value
from outpace.reward.rewardset import RewardSet
from outpace.schema import Args, Candidate, Case, Execution, Outcome, Sample, StaticReport, Task, Verdict

_PROGRAM = "def double(x):\n    return 2 * x\n"


def _equal(actual: Any, expected: Any, args: Args) -> bool:
    return bool(actual == expected)


_TASK = Task(
    id="probe/double",
    prompt=({"role": "user", "content": "Write a Python function double(x) that returns twice x."},),
    entry_point="double",
    compare=_equal,
    cases=(Case(args=(2,), expected=4),),
)


def probe_group() -> list[Sample]:
    """Four samples of one prompt: a known good one first, then wrong, forbidden and, last, without code."""
    good = f"Doubling is one multiplication.\n\n```python\n{_PROGRAM}```\n"
    return [
        _sample(good, Outcome.CORRECT, _PROGRAM),
        _sample(good.replace("2 *", "3 *"), Outcome.WRONG, _PROGRAM.replace("2 *", "3 *")),
        _sample(good.replace("return", "import ctypes; return"), Outcome.FORBIDDEN, f"import ctypes\n{_PROGRAM}"),
        _sample("I cannot help with that.", Outcome.NO_CODE, None),
    ]


def _sample(completion: str, outcome: Outcome, source: str | None) -> Sample:
    verdict = Verdict(
        task_id=_TASK.id,
        outcome=outcome,
        candidate=None if source is None else Candidate(source=source, where="block 1 of 1"),
        static=None if source is None else StaticReport(parses=True, defines_entry_point=True),
        execution=Execution(tests_passed=int(outcome is Outcome.CORRECT), tests_total=1),
    )
    ids = tuple(ord(character) for character in completion)
    return Sample(task=_TASK, completion=completion, completion_ids=ids, answer=completion, verdict=verdict)


def values_of(reward: Reward | RewardSet, group: Sequence[Sample]) -> list[Value]:
    """What a reward, or a set's total, says of each sample."""
    if isinstance(reward, RewardSet):
        return [vector.total for vector in reward.score(group)]
    return reward(group)


def check_sign(reward: Reward | RewardSet, good: Sample | None = None, bad: Sample | None = None) -> None:
    """Raise RewardError unless a known good sample earns more than a known bad one.

    The defaults are a correct program and a refusal. A reward that measures a distance, where less is better, fails.
    """
    samples = probe_group()
    good, bad = good or samples[0], bad or samples[-1]
    better, worse = values_of(reward, [good, bad])
    if better is None or worse is None:
        raise RewardError("The reward's sign cannot be checked, because it is unknown for one of the two samples.")
    if better <= worse:
        name = "total" if isinstance(reward, RewardSet) else reward.name
        raise RewardError(
            f"The reward {name} gives {better:g} to a good completion and {worse:g} to a bad one; "
            "more must be better, so check its sign."
        )
