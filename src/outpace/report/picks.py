"""Which programs of an evaluation a report shows: the best gain, a typical one, failures of each kind. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outpace.evaluate import GradedSample
from outpace.schema import Outcome

_FAILURES = (
    Outcome.WRONG,
    Outcome.FORBIDDEN,
    Outcome.TAMPERING,
    Outcome.CRASHED,
    Outcome.TIMEOUT,
    Outcome.RESOURCE,
    Outcome.SYNTAX_ERROR,
    Outcome.NO_CODE,
)
_WORDS = {
    Outcome.WRONG: "a wrong answer",
    Outcome.FORBIDDEN: "something forbidden",
    Outcome.TAMPERING: "an attempt to cheat",
    Outcome.CRASHED: "a crash",
    Outcome.TIMEOUT: "too slow to finish",
    Outcome.RESOURCE: "too much memory",
    Outcome.SYNTAX_ERROR: "a syntax error",
    Outcome.NO_CODE: "no code",
}


@dataclass(frozen=True, slots=True)
class Pick:
    """A sample and why it is shown."""

    why: str
    sample: GradedSample


def pick_programs(samples: Sequence[GradedSample], count: int = 5) -> list[Pick]:
    """At most `count` samples: the fastest, a typical correct one, one failure of each kind, then more correct ones.

    No program is shown twice. The choice depends on the samples alone, not on their order.
    """
    ordered = sorted(samples, key=lambda s: (s.task_id, s.index))
    picks: list[Pick] = []

    def take(why: str, found: Sequence[GradedSample]) -> None:
        shown = {pick.sample.source or pick.sample.completion for pick in picks}
        for sample in found:
            if len(picks) < count and (sample.source or sample.completion) not in shown:
                picks.append(Pick(why, sample))
                return

    by_speed = _sorted(ordered, lambda s: s.speedup)
    take("the greatest gain", by_speed[::-1])
    typical = by_speed[len(by_speed) // 2 :] + by_speed[: len(by_speed) // 2]
    take("a typical correct one", [s for s in typical if s.task_id != by_speed[-1].task_id] + typical)
    for outcome in _FAILURES:
        take(_WORDS[outcome], [sample for sample in ordered if sample.outcome is outcome])
    for task_id in dict.fromkeys(sample.task_id for sample in ordered):
        if task_id not in {pick.sample.task_id for pick in picks}:
            take("another correct one", [s for s in ordered if s.is_correct and s.task_id == task_id])
    for _ in range(count - len(picks)):
        take("another correct one", [sample for sample in ordered if sample.is_correct])
    return picks


def _sorted(samples: Sequence[GradedSample], key: Callable[[GradedSample], float | None]) -> list[GradedSample]:
    known = [(value, sample) for sample in samples if (value := key(sample)) is not None]
    return [sample for _, sample in sorted(known, key=lambda pair: pair[0])]
