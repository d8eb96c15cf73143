"""Public fakes: test your own rewards, trainers and reports without a sandbox, a clock or a model.

Nothing here executes a candidate: verdicts are what the test says they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from outpace.schema import Candidate, Execution, Isolation, Outcome, Sample, StaticReport, Task, Timing, Verdict

__all__ = ["ScriptedGrader", "sample", "timing", "verdict"]

_READ = (Outcome.NO_CODE, Outcome.SYNTAX_ERROR)


def timing(ratio: float, *, spread: float = 0.01, noise_floor: float = 0.01, trusted: bool = True) -> Timing:
    """A `Timing` with a symmetric relative interval around `ratio`; it holds no raw samples."""
    return Timing(
        ratio=ratio,
        low=ratio / (1.0 + spread),
        high=ratio * (1.0 + spread),
        noise_floor=noise_floor,
        trusted=trusted,
    )


def verdict(  # the facts of a verdict, each with a plausible default
    outcome: Outcome = Outcome.CORRECT,
    *,
    reason: str | None = None,
    passed: int | None = None,
    total: int = 10,
    ratio: float | None = None,
    source: str = "def f(x):\n    return x\n",
    task_id: str = "fake/identity",
) -> Verdict:
    """A `Verdict` whose other facts agree with `outcome`: a program with a syntax error has run no test."""
    ran = outcome not in (*_READ, Outcome.FORBIDDEN)
    if passed is None:
        passed = total if outcome is Outcome.CORRECT else 0
    return Verdict(
        task_id=task_id,
        outcome=outcome,
        reason=reason,
        candidate=None if outcome is Outcome.NO_CODE else Candidate(source=source, where="block 1 of 1"),
        static=None
        if outcome is Outcome.NO_CODE
        else StaticReport(parses=outcome is not Outcome.SYNTAX_ERROR, defines_entry_point=outcome not in _READ),
        execution=Execution(tests_passed=passed, tests_total=total) if ran else None,
        timing=None if ratio is None else timing(ratio),
        isolation=Isolation(level="fake"),
    )


def sample(task: Task, given: Verdict | None = None, *, completion: str = "", finished: bool = True) -> Sample:
    """A `Sample` around a verdict; None stands for a completion that we failed to grade."""
    return Sample(task=task, completion=completion, finished=finished, verdict=given)


class ScriptedGrader:
    """Stands in for `outpace.Grader`: looks verdicts up by the text of the completion.

    Args:
        verdicts: completion text -> verdict, or None for a failure of ours.
        default: the verdict of any other completion.
    """

    def __init__(self, verdicts: Mapping[str, Verdict | None], default: Verdict | None = None) -> None:
        self.failures: Counter[str] = Counter()
        self.first_failure: str | None = None
        self.busy_s = 0.0
        self.graded: list[str] = []
        """Every completion that was handed in, in order."""
        self._verdicts, self._default = verdicts, default

    def grade_group(
        self,
        completions_G: Sequence[str],
        task: Task,
        *,
        finished_G: Sequence[bool] | None = None,
        answers_G: Sequence[str | None] | None = None,
    ) -> list[Verdict | None]:
        """The scripted verdicts of a group; failures are counted as `Grader` counts them."""
        group = self.open_group(task, len(completions_G))
        for index, completion in enumerate(completions_G):
            group.add(index, completion)
        return group.result()

    def open_group(self, task: Task, size: int) -> "_ScriptedGroup":
        """A group that answers from the script."""
        return _ScriptedGroup(self, size)

    def look_up(self, completion: str) -> Verdict | None:
        """The scripted verdict of one completion."""
        self.graded.append(completion)
        found = self._verdicts.get(completion, self._default)
        if found is None:
            self.failures["ScriptedFailure"] += 1
            self.first_failure = self.first_failure or "the script says that we failed"
        return found

    def close(self) -> None:
        """Nothing was started, so nothing ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ScriptedGroup:
    def __init__(self, grader: ScriptedGrader, size: int) -> None:
        self.error = None
        self._grader = grader
        self._verdicts_G: list[Verdict | None] = [None] * size

    def add(self, index: int, completion: str, *, finished: bool = True, answer: str | None = None) -> None:
        self._verdicts_G[index] = self._grader.look_up(completion)

    def done(self) -> bool:
        return True

    def result(self, timeout_s: float | None = None) -> list[Verdict | None]:
        return list(self._verdicts_G)
