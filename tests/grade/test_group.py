"""When a group's programs are timed: with an engine whose jobs end when the test says so."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from outpace import tasks
from outpace.errors import InfrastructureError, ScorerDied
from outpace.grade import GradeSettings, GroupInFlight, Submission
from outpace.grade.pipeline import check
from outpace.schema import Failure, Outcome, Timing, Verdict
from outpace.testing import timing, verdict

TASK = tasks.get("sequences/prefix_sums")
WRONG = verdict(Outcome.WRONG)


def right(program: str) -> Verdict:
    return replace(verdict(source=f"source of {program}"), program=program)


class Desk:
    """An engine that runs nothing; it has as many idle workers as the test says."""

    def __init__(self, *, idle: int, time_together: int = 8, time_early: bool = True) -> None:
        self.settings = GradeSettings(time_together=time_together, time_early=time_early)
        self.idle_workers = idle
        self.checks: dict[str, Future[Any]] = {}
        self.timings: list[tuple[tuple[str, ...], Future[Any]]] = []
        self.failures: list[BaseException] = []

    def submit(self, job: Any, task: Any, submission: Submission, settings: Any) -> Future[Any]:
        assert job is check
        self.checks[submission.completion] = Future()
        return self.checks[submission.completion]

    def submit_later(self, job: Any, task: Any, sources: Sequence[str], settings: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.timings.append((tuple(source.removeprefix("source of ") for source in sources), future))
        return future

    def note_failure(self, error: BaseException) -> None:
        self.failures.append(error)

    @property
    def batches(self) -> list[str]:
        """The programs of every timing job so far, each named by one letter."""
        return ["".join(programs) for programs, _ in self.timings]

    def end_timing(self, job: int, found: Timing | Failure | None = None) -> None:
        programs, future = self.timings[job]
        future.set_result([found or timing(2.0)] * len(programs))


def arrive(group: GroupInFlight, desk: Desk, start: int, *verdicts: Verdict) -> None:
    """Completions end and are checked, one after the other."""
    for index, found in enumerate(verdicts, start):
        group.add(index, f"completion {index}")
        desk.checks[f"completion {index}"].set_result(found)


def opened(desk: Desk, size: int) -> GroupInFlight:
    return GroupInFlight(desk, TASK, size)


def test_programs_of_an_arriving_group_are_timed_at_once_when_a_worker_is_idle() -> None:
    desk = Desk(idle=1)
    group = opened(desk, 8)
    arrive(group, desk, 0, right("a"), WRONG)
    assert desk.batches == []
    arrive(group, desk, 2, right("b"))
    assert desk.batches == ["ab"]


def test_where_sampling_needs_the_cores_nothing_is_timed_early() -> None:
    desk = Desk(idle=2, time_early=False)
    group = opened(desk, 4)
    arrive(group, desk, 0, right("a"), right("b"), right("c"))
    assert desk.batches == []
    arrive(group, desk, 3, WRONG)
    assert desk.batches == ["abc"]


def test_without_an_idle_worker_they_wait_and_are_timed_when_one_is() -> None:
    desk = Desk(idle=0)
    group = opened(desk, 8)
    arrive(group, desk, 0, right("a"), right("b"), right("c"))
    group.ask_again()
    assert desk.batches == []
    desk.idle_workers = 1
    group.ask_again()
    assert desk.batches == ["abc"]


def test_without_an_idle_worker_they_are_timed_when_enough_wait_or_all_are_checked() -> None:
    desk = Desk(idle=0, time_together=3)
    group = opened(desk, 6)
    arrive(group, desk, 0, right("a"), right("b"), right("c"), right("d"), WRONG)
    assert desk.batches == ["abc"]
    arrive(group, desk, 5, WRONG)
    assert desk.batches == ["abc", "d"]


def test_batches_form_while_a_timing_is_in_flight() -> None:
    desk = Desk(idle=9)
    group = opened(desk, 8)
    arrive(group, desk, 0, right("a"), right("b"), right("c"), right("d"), right("e"))
    assert desk.batches == ["ab"]
    desk.end_timing(0)
    assert desk.batches == ["ab", "cde"]
    arrive(group, desk, 5, right("f"))
    desk.end_timing(1)
    assert desk.batches == ["ab", "cde"]
    arrive(group, desk, 6, WRONG, right("g"))
    assert desk.batches == ["ab", "cde", "fg"]
    assert not group.done()
    desk.end_timing(2)
    assert [found is not None and found.timing is not None for found in group.result(1)] == [True] * 6 + [False, True]


def test_a_group_handed_in_as_a_whole_is_timed_as_a_whole_however_many_workers_are_idle() -> None:
    desk = Desk(idle=9)
    group = opened(desk, 4)
    group.add_all([Submission(completion=name) for name in "abcd"])
    for name in "cba":
        desk.checks[name].set_result(right(name))
        group.ask_again()
    assert desk.batches == []
    desk.checks["d"].set_result(right("d"))
    assert desk.batches == ["cbad"]


def test_a_group_whose_first_result_comes_after_its_last_completion_is_timed_as_a_whole_too() -> None:
    desk = Desk(idle=9)
    group = opened(desk, 3)
    for index, name in enumerate("abc"):
        group.add(index, name)
    for name in "abc":
        assert desk.batches == []
        desk.checks[name].set_result(right(name))
    assert desk.batches == ["abc"]


def test_an_arriving_group_does_not_wait_for_the_check_of_its_last_completion() -> None:
    desk = Desk(idle=9)
    group = opened(desk, 3)
    arrive(group, desk, 0, right("a"))
    group.add(1, "runs for long")
    group.add(2, "b")
    desk.checks["b"].set_result(right("b"))
    assert desk.batches == ["ab"]


def test_every_distinct_program_is_timed_once_and_its_spellings_share_the_result() -> None:
    desk = Desk(idle=9)
    group = opened(desk, 7)
    arrive(group, desk, 0, right("a"), right("a"), right("b"), right("a"), right("c"))
    desk.end_timing(0)
    arrive(group, desk, 5, right("b"), right("c"))
    desk.end_timing(1, timing(3.0))
    assert desk.batches == ["ab", "c"]
    ratios = [found.timing.ratio for found in group.result(1) if found is not None and found.timing is not None]
    assert ratios == [2.0, 2.0, 2.0, 2.0, 3.0, 2.0, 3.0]
    assert group.timed_so_far == 3


def test_a_timing_that_fails_costs_its_own_programs_and_no_others() -> None:
    desk = Desk(idle=9)
    group = opened(desk, 5)
    arrive(group, desk, 0, right("a"), right("b"), right("c"), WRONG)
    desk.timings[0][1].set_exception(ScorerDied("gone"))
    arrive(group, desk, 4, right("d"))
    desk.end_timing(1)
    assert desk.batches == ["ab", "cd"]
    assert [found and found.outcome for found in group.result(1)] == [
        None,
        None,
        Outcome.CORRECT,
        Outcome.WRONG,
        Outcome.CORRECT,
    ]
    assert isinstance(group.error, InfrastructureError)
    assert len(desk.failures) == 1


def test_nothing_is_timed_when_speed_is_not_measured() -> None:
    desk = Desk(idle=9)
    desk.settings = GradeSettings(measure_speed=False)
    group = opened(desk, 3)
    arrive(group, desk, 0, right("a"), right("b"), right("c"))
    assert desk.batches == []
    assert group.done()


def test_a_group_refuses_a_second_filling_as_a_whole() -> None:
    desk = Desk(idle=0)
    group = opened(desk, 2)
    group.add(1, "one")
    with pytest.raises(ValueError, match="completion 1 of this group was added before"):
        group.add_all([Submission(completion="zero"), Submission(completion="one again")])
    assert list(desk.checks) == ["one"]
