"""`Grader`: completions in, verdicts out, on one pinned scoring process per core.

A verdict of None means that we failed to grade (after one retry); it is counted in `failures` and must never
become a number. Candidates never run in the calling process, and no scoring process is forked from it.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self, TypeVar

from outpace.errors import InfrastructureError
from outpace.grade.pipeline import Submission, check, time_verdicts
from outpace.grade.settings import GradeSettings
from outpace.sandbox.pool import Pool
from outpace.schema import Isolation, Outcome, Sandbox, Task, Verdict

T = TypeVar("T")


class Grader:
    """Grades completions of tasks; usable from threads; a context manager that leaves no process behind.

    Args:
        workers: scoring processes, one per core by default; they start at the first use.
        settings: what is checked and how; see `GradeSettings`.
    """

    def __init__(self, workers: int | None = None, settings: GradeSettings | None = None) -> None:
        self.settings = settings or GradeSettings()
        self.failures: Counter[str] = Counter()
        """Our own failures by error name; the samples hit have no verdict."""
        self.first_failure: str | None = None
        self._workers = workers
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    def grade(self, completion: str, task: Task, *, finished: bool = True, answer: str | None = None) -> Verdict:
        """Grade one completion, speed included; raises InfrastructureError when we fail to."""
        group = self.open_group(task, 1)
        group.add(0, completion, finished=finished, answer=answer)
        verdict = group.result()[0]
        if verdict is None:
            raise group.error or InfrastructureError("the completion could not be graded")
        return verdict

    def grade_group(
        self,
        completions_G: Sequence[str],
        task: Task,
        *,
        finished_G: Sequence[bool] | None = None,
        answers_G: Sequence[str | None] | None = None,
    ) -> list[Verdict | None]:
        """Grade the completions of one prompt; the correct ones are timed together, on the same inputs."""
        group = self.open_group(task, len(completions_G))
        for index, completion in enumerate(completions_G):
            group.add(
                index,
                completion,
                finished=True if finished_G is None else finished_G[index],
                answer=None if answers_G is None else answers_G[index],
            )
        return group.result()

    def open_group(self, task: Task, size: int) -> "GroupInFlight":
        """Start a group whose completions arrive one by one; each is checked as soon as it is added."""
        return GroupInFlight(self, task, size)

    def isolation(self) -> Isolation:
        """The isolation in force in the scoring processes."""
        return self.pool.submit(_isolation).result()

    @property
    def pool(self) -> Pool:
        """The scoring processes; started when first asked for."""
        with self._lock:
            if self._pool is None:
                self._pool = Pool(workers=self._workers, settings=self.settings.sandbox)
            return self._pool

    def note_failure(self, error: BaseException) -> None:
        """Count one of our own failures, and keep the text of the first."""
        with self._lock:
            self.failures[type(error).__name__] += 1
            self.first_failure = self.first_failure or str(error)

    def close(self) -> None:
        """End the scoring processes and everything they started."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GroupInFlight:
    """The completions of one prompt while they are still arriving: checked on arrival, timed when all are there."""

    def __init__(self, grader: Grader, task: Task, size: int) -> None:
        if size < 1:
            raise ValueError(f"a group needs at least one completion, got {size}")
        self.error: InfrastructureError | None = None
        self._grader, self._task = grader, task
        self._verdicts_G: list[Verdict | None] = [None] * size
        self._added_G = [False] * size
        self._missing = size
        self._lock = threading.Lock()
        self._done: Future[list[Verdict | None]] = Future()

    def add(self, index: int, completion: str, *, finished: bool = True, answer: str | None = None) -> None:
        """Hand in completion `index` of the group; returns at once."""
        if self._added_G[index]:
            raise ValueError(f"completion {index} of this group was added before")
        self._added_G[index] = True
        submission = Submission(completion=completion, finished=finished, answer=answer)
        future = self._grader.pool.submit(check, self._task, submission, self._grader.settings)
        future.add_done_callback(lambda done: self._checked(index, done))

    def done(self) -> bool:
        """Whether every completion has its final verdict."""
        return self._done.done()

    def result(self, timeout_s: float | None = None) -> list[Verdict | None]:
        """Wait for the verdicts, in the order of their indices; None where we failed.

        Raises TaskError when the task itself is broken.
        """
        if not all(self._added_G):
            raise ValueError(f"{self._added_G.count(False)} completions of this group were never added")
        return self._done.result(timeout_s)

    def _checked(self, index: int, future: "Future[Verdict]") -> None:
        verdict = self._verdict_or_none(future)
        with self._lock:
            self._verdicts_G[index] = verdict
            self._missing -= 1
            complete = self._missing == 0
        if complete and not self._done.done():
            self._time()

    def _time(self) -> None:
        settings = self._grader.settings
        correct = [v for v in self._verdicts_G if v is not None and v.outcome is Outcome.CORRECT]
        if not (correct and settings.measure_speed and self._task.is_timed):
            self._done.set_result(self._verdicts_G)
            return
        try:
            future = self._grader.pool.submit(time_verdicts, self._task, correct, settings)
        except Exception as error:  # the pool was closed meanwhile
            self._done.set_exception(error)
            return
        future.add_done_callback(self._timed)

    def _timed(self, future: "Future[list[Verdict]]") -> None:
        """When we fail to time, the verdict is lost too: a correct program without speed would be underpaid."""
        verdicts = self._verdict_or_none(future)
        timed = iter(verdicts or [])
        if self._done.done():
            return
        self._done.set_result(
            [
                next(timed, None) if verdict is not None and verdict.outcome is Outcome.CORRECT else verdict
                for verdict in self._verdicts_G
            ]
        )

    def _verdict_or_none(self, future: "Future[T]") -> T | None:
        """The result, None when we failed; a broken task ends the whole group with its error."""
        error = future.exception() if not future.cancelled() else InfrastructureError("grading was cancelled")
        if error is None:
            return future.result()
        if isinstance(error, InfrastructureError):
            self._grader.note_failure(error)
            self.error = self.error or error
        elif not self._done.done():
            self._done.set_exception(error)
        return None


def _isolation(sandbox: Sandbox) -> Isolation:
    return sandbox.isolation
