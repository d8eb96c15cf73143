"""A group whose completions arrive one by one: checked on arrival, timed together, each distinct program once.

The correct programs are timed when the last completion has been checked, or as soon as `GradeSettings.time_together` of
them wait. A group whose first results come while completions are still to be handed in need not wait for either: while
a worker is idle, a few programs are timed at once, and those that are found right meanwhile come next, so that little
is left to time when the last completion ends. A group that is handed in as a whole is timed as a whole. Spellings of
one program (`outpace.fingerprint`) share one measurement, and so earn the same.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from outpace.errors import InfrastructureError
from outpace.grade.pipeline import Submission, check, time_programs, with_timing
from outpace.grade.settings import GradeSettings
from outpace.schema import Failure, Outcome, Sandbox, Task, Timing, Verdict

P = ParamSpec("P")
R = TypeVar("R")

_FEWEST_TOGETHER = 2
"""Least programs of a job that is begun early. Each job has reference processes of its own, which cost time and have a
bias that only the programs of that job share, so fewer jobs are cheaper and compare a group's programs better. More
than two would rarely wait in a group of eight before its sampling ends."""


class Engine(Protocol):
    """The part of a `Grader` that a group needs."""

    settings: GradeSettings

    def submit(self, job: Callable[Concatenate[Sandbox, P], R], *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Run a job in a scoring process."""
        ...

    def submit_later(self, job: Callable[Concatenate[Sandbox, P], R], *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Run a long job in a scoring process when no job of `submit` waits."""
        ...

    @property
    def idle_workers(self) -> int:
        """Scoring processes for which there is no job; a group is asked again (`ask_again`) when jobs end."""
        ...

    def note_failure(self, error: BaseException) -> None:
        """Count one of our own failures."""
        ...


class GroupInFlight:
    """The completions of one prompt while they are still arriving; usable from several threads."""

    def __init__(self, engine: Engine, task: Task, size: int) -> None:
        if size < 1:
            raise ValueError(f"a group needs at least one completion, got {size}")
        self.error: InfrastructureError | None = None
        self._engine, self._task = engine, task
        self._verdicts_G: list[Verdict | None] = [None] * size
        self._added_G = [False] * size
        self._unchecked = size
        self._is_streamed = False
        """Whether a completion was checked before the last one was handed in."""
        self._waiting: dict[str, str] = {}
        """Sources of correct programs that are not being timed yet, by fingerprint."""
        self._timings: dict[str, Timing | Failure | None] = {}
        """By fingerprint; None while the program is being timed, and for good when we failed to."""
        self._timing_jobs = 0
        self._is_over = False
        self._lock = threading.Lock()
        self._done: Future[list[Verdict | None]] = Future()

    def add(self, index: int, completion: str, *, finished: bool = True, answer: str | None = None) -> None:
        """Hand in completion `index` of the group; returns at once."""
        self._hand_in({index: Submission(completion=completion, finished=finished, answer=answer)})

    def add_all(self, submissions_G: Sequence[Submission]) -> None:
        """Hand in the whole group; no timing then begins before `time_together` wait or all have been checked."""
        self._hand_in(dict(enumerate(submissions_G)))

    def ask_again(self) -> None:
        """A worker may have become idle: start the timing that waited for one, if any did; returns at once."""
        self._go_on()

    def done(self) -> bool:
        """Whether every completion has its final verdict."""
        return self._done.done()

    @property
    def timed_so_far(self) -> int:
        """How many distinct programs have been timed."""
        with self._lock:
            return sum(timing is not None for timing in self._timings.values())

    def result(self, timeout_s: float | None = None) -> list[Verdict | None]:
        """Wait for the verdicts, in the order of their indices; None where we failed.

        Raises TaskError when the task itself is broken.
        """
        if not all(self._added_G):
            raise ValueError(f"{self._added_G.count(False)} completions of this group were never added")
        return self._done.result(timeout_s)

    def _hand_in(self, submissions: Mapping[int, Submission]) -> None:
        with self._lock:
            for index in submissions:
                if self._added_G[index]:
                    raise ValueError(f"completion {index} of this group was added before")
            for index in submissions:
                self._added_G[index] = True
        for index, submission in submissions.items():
            future = self._engine.submit(check, self._task, submission, self._engine.settings)
            future.add_done_callback(partial(self._checked, index))

    def _checked(self, index: int, future: "Future[Verdict]") -> None:
        verdict = self._result_or_none(future)
        with self._lock:
            self._verdicts_G[index] = verdict
            self._unchecked -= 1
            self._is_streamed = self._is_streamed or not all(self._added_G)
            program = self._program_to_time(verdict)
            if verdict and verdict.candidate and program and program not in self._timings:
                self._waiting[program] = verdict.candidate.source
        self._go_on()

    def _program_to_time(self, verdict: Verdict | None) -> str | None:
        """Fingerprint of a verdict's program; None when it is not to be timed."""
        is_timed = self._engine.settings.measure_speed and self._task.is_timed
        return verdict.program if verdict and is_timed and verdict.outcome is Outcome.CORRECT else None

    def _go_on(self) -> None:
        """Time what waits, when it is time; hand the verdicts out when nothing is left to do."""
        with self._lock:
            batch, self._waiting = (self._waiting, {}) if self._is_due() else ({}, self._waiting)
            self._timings.update(dict.fromkeys(batch))
            self._timing_jobs += bool(batch)
            is_over = self._unchecked == 0 and self._timing_jobs == 0 and not self._is_over
            self._is_over = self._is_over or is_over
        if batch:
            self._time(batch)
        elif is_over and not self._done.done():
            self._done.set_result([self._final(verdict) for verdict in self._verdicts_G])

    def _is_due(self) -> bool:
        """Whether what waits is to be timed now; asked with the lock held."""
        if self._unchecked == 0 or len(self._waiting) >= self._engine.settings.time_together:
            return True
        has_few = len(self._waiting) >= _FEWEST_TOGETHER and self._timing_jobs == 0
        is_early = self._is_streamed and self._engine.settings.time_early
        return is_early and has_few and self._engine.idle_workers > 0

    def _time(self, batch: dict[str, str]) -> None:
        try:
            future = self._engine.submit_later(time_programs, self._task, tuple(batch.values()), self._engine.settings)
        except Exception as error:  # the pool was closed meanwhile
            if not self._done.done():
                self._done.set_exception(error)
            return
        future.add_done_callback(partial(self._timed, tuple(batch)))

    def _timed(self, programs: tuple[str, ...], future: "Future[list[Timing | Failure]]") -> None:
        measured = self._result_or_none(future)
        with self._lock:
            self._timings.update(zip(programs, measured or (), strict=False))
            self._timing_jobs -= 1
        self._go_on()

    def _final(self, verdict: Verdict | None) -> Verdict | None:
        """When we fail to time, the verdict is lost too: a correct program without speed would be underpaid."""
        program = self._program_to_time(verdict)
        if verdict is None or program is None:
            return verdict
        measured = self._timings[program]
        return None if measured is None else with_timing(verdict, measured)

    def _result_or_none(self, future: "Future[R]") -> R | None:
        """The result, None when we failed; a broken task ends the whole group with its error."""
        error = future.exception() if not future.cancelled() else InfrastructureError("grading was cancelled")
        if error is None:
            return future.result()
        if isinstance(error, InfrastructureError):
            self._engine.note_failure(error)
            self.error = self.error or error
        elif not self._done.done():
            self._done.set_exception(error)
        return None
