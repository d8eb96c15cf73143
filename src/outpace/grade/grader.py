"""`Grader`: completions in, verdicts out, on one pinned scoring process per core.

A verdict of None means that we failed to grade (after one retry); it is counted in `failures` and must never
become a number. Candidates never run in the calling process, and no scoring process is forked from it.
"""

import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from outpace.errors import InfrastructureError, ScorerDied
from outpace.grade.group import GroupInFlight
from outpace.grade.pipeline import Submission
from outpace.grade.settings import GradeSettings
from outpace.sandbox.pool import Pool
from outpace.schema import Isolation, Sandbox, Task, Verdict

P = ParamSpec("P")
R = TypeVar("R")


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
        self._busy = _BusyClock()
        self._workers = workers
        self._pool: Pool | None = None
        self._groups: weakref.WeakSet[GroupInFlight] = weakref.WeakSet()
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
        group.add_all(
            [
                Submission(
                    completion=completion,
                    finished=True if finished_G is None else finished_G[index],
                    answer=None if answers_G is None else answers_G[index],
                )
                for index, completion in enumerate(completions_G)
            ]
        )
        return group.result()

    def open_group(self, task: Task, size: int) -> GroupInFlight:
        """Start a group whose completions arrive one by one; each is checked as soon as it is added."""
        group = GroupInFlight(self, task, size)
        with self._lock:
            self._groups.add(group)
        return group

    def submit(self, job: Callable[Concatenate[Sandbox, P], R], *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Run one of our own functions in a scoring process, beside its sandbox."""
        return self._watched(self.pool.submit, job, *args, **kwargs)

    def submit_later(self, job: Callable[Concatenate[Sandbox, P], R], *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """The same for a long job: it is begun only when no job of `submit` waits.

        Starts no processes, since what follows on a check must not outlive `close`: raises ScorerDied without any.
        """
        pool = self._pool
        if pool is None:
            raise ScorerDied("the grader was closed while completions were being graded")
        return self._watched(pool.submit_later, job, *args, **kwargs)

    @property
    def idle_workers(self) -> int:
        """Scoring processes without a job, those included that will take a waiting one; 0 while there is no pool.

        Not a reservation: whoever else asks at the same moment hears the same.
        """
        pool = self._pool  # not the property: asking starts no processes
        return 0 if pool is None else max(0, len(pool) - self._busy.jobs)

    @property
    def busy_s(self) -> float:
        """Seconds so far in which at least one completion was being graded."""
        return self._busy.read_s()

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

    def _watched(self, submit: Callable[P, "Future[R]"], *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        self._busy.began()
        try:
            future = submit(*args, **kwargs)
        except BaseException:
            self._busy.ended()
            raise
        future.add_done_callback(self._job_ended)
        return future

    def _job_ended(self, _: "Future[Any]") -> None:
        self._busy.ended()
        with self._lock:
            groups = list(self._groups)
        for group in groups:
            group.ask_again()

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


class _BusyClock:
    """How many jobs are in flight, and the seconds in which at least one was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.jobs = 0
        self._since_s = self._total_s = 0.0

    def began(self) -> None:
        """A job is in flight from now on."""
        with self._lock:
            self._since_s = time.monotonic() if self.jobs == 0 else self._since_s
            self.jobs += 1

    def ended(self) -> None:
        """A job has ended."""
        with self._lock:
            self.jobs -= 1
            self._total_s += time.monotonic() - self._since_s if self.jobs == 0 else 0.0

    def read_s(self) -> float:
        """The total so far."""
        with self._lock:
            return self._total_s + (time.monotonic() - self._since_s if self.jobs else 0.0)


def _isolation(sandbox: Sandbox) -> Isolation:
    return sandbox.isolation
