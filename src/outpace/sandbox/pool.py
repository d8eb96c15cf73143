"""Scoring processes, one per core, that run our functions beside their own sandbox.

    with Pool(workers=2) as pool:
        future = pool.submit(grade_one, completion)     # calls grade_one(sandbox, completion) in a scorer

A scorer is exec'd and pinned; one that dies or hangs is replaced and its call is retried once, then `ScorerDied`.
Closing the pool, Ctrl-C, and `kill -9` of this process all leave nothing running. Futures are
`concurrent.futures.Future`, so `asyncio.wrap_future` takes them.

Not covered: what a job does (it is our own code, trusted), and memory that it leaks in its scorer.
"""

import atexit
import contextlib
import os
import pickle
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import cloudpickle

from outpace.errors import ConfigError, InfrastructureError, SandboxUnavailable, ScorerDied
from outpace.sandbox.settings import SandboxSettings
from outpace.sandbox.stream import receive, send
from outpace.schema import Isolation

P = ParamSpec("P")
R = TypeVar("R")

_BOOT = (
    "import sys, pickle; sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[3])); "
    "from outpace.sandbox.scorer import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)
_TRIES = 2


def cores() -> list[int]:
    """The cores that this process may use; under a launcher of several ranks, this rank's share of them."""
    mine = sorted(os.sched_getaffinity(0))
    rank, ranks = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return mine[rank % ranks :: ranks] or [mine[rank % len(mine)]]


@dataclass(slots=True)
class _Job:
    packed: bytes
    worker: int | None
    may_wait: bool = False
    future: Future[Any] = field(default_factory=Future)


class Pool:
    """Pinned scoring processes; `submit` from any thread. Raises SandboxUnavailable when none can be started."""

    def __init__(
        self,
        workers: int | None = None,
        settings: SandboxSettings | None = None,
        *,
        job_timeout_s: float = 120.0,
        cores_used: Sequence[int] | None = None,
    ) -> None:
        available = list(cores_used) if cores_used is not None else cores()
        count = len(available) if workers is None else workers
        if count < 1 or not available:
            raise ConfigError(f"a pool needs at least 1 worker and 1 core, got {count} and {len(available)}")
        self._owner = os.getpid()
        self._board = _Board()
        base = settings or SandboxSettings()
        self._workers = [
            _Worker(index, self._board, replace(base, core=available[index % len(available)]), job_timeout_s)
            for index in range(count)
        ]
        try:
            self.isolation: Isolation = next(iter([worker.ready.result() for worker in self._workers]))
        except BaseException:
            self.close()
            raise
        atexit.register(_close_if_alive, weakref.ref(self))

    def __len__(self) -> int:
        return len(self._workers)

    def submit(self, function: Callable[Concatenate[Any, P], R], /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Run `function(sandbox, *args)` in any scorer; the future raises what it raises, or ScorerDied."""
        return self._put(_Job(_packed(function, args, kwargs), None))

    def submit_later(
        self, function: Callable[Concatenate[Any, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> "Future[R]":
        """Like `submit`, for long jobs: one is begun only when no job of the other two kinds waits for that scorer."""
        return self._put(_Job(_packed(function, args, kwargs), None, may_wait=True))

    def submit_to(
        self, worker: int, function: Callable[Concatenate[Any, P], R], /, *args: P.args, **kwargs: P.kwargs
    ) -> "Future[R]":
        """Run `function(sandbox, *args)` in one given scorer (its number, modulo their count)."""
        return self._put(_Job(_packed(function, args, kwargs), worker % len(self._workers)))

    def close(self) -> None:
        """End every scorer; jobs that have not finished fail with ScorerDied."""
        if os.getpid() != self._owner:
            return
        self._board.close()
        for worker in self._workers:
            worker.end()

    def __del__(self) -> None:
        if getattr(self, "_board", None) is not None and os.getpid() == self._owner:
            self._board.close()  # each worker's thread then ends its process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, job: _Job) -> "Future[Any]":
        if os.getpid() != self._owner:
            raise ScorerDied("a pool cannot be used after a fork; make one in this process")
        self._board.put(job)
        return job.future


def _packed(function: Any, args: Any, kwargs: Any) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps((function, args, kwargs))
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise ConfigError(
            f"{name} cannot be sent to a scoring process ({error}): it and its arguments must pickle, so keep "
            "locks, files and models out of them"
        ) from error
    return packed


class _Board:
    """The jobs that wait, and who may take which."""

    def __init__(self) -> None:
        self._queues: tuple[deque[_Job], deque[_Job]] = deque(), deque()
        """Those that are taken first, and those that may wait."""
        self._changed = threading.Condition()
        self.closed = False

    def put(self, job: _Job) -> None:
        with self._changed:
            if self.closed:
                raise ScorerDied("the pool is closed; make a new one")
            self._queues[job.may_wait].append(job)
            self._changed.notify_all()

    def take(self, worker: int) -> _Job | None:
        """The oldest job for this worker, one that may wait only if there is no other; None when the pool closes."""
        with self._changed:
            while not self.closed:
                for jobs in self._queues:
                    if job := next((job for job in jobs if job.worker in (None, worker)), None):
                        jobs.remove(job)
                        return job
                self._changed.wait()
            return None

    def close(self) -> None:
        with self._changed:
            self.closed = True
            left = [job for jobs in self._queues for job in jobs]
            for jobs in self._queues:
                jobs.clear()
            self._changed.notify_all()
        for job in left:
            job.future.cancel()


class _Worker:
    """One scorer and the thread that feeds it."""

    def __init__(self, index: int, board: _Board, settings: SandboxSettings, job_timeout_s: float) -> None:
        self.index, self._board, self._settings, self._job_timeout_s = index, board, settings, job_timeout_s
        self.ready: Future[Isolation] = Future()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._thread = threading.Thread(target=self._feed, daemon=True, name=f"outpace-scorer-{index}")
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The scorer's process id, None while there is none."""
        return self._process.pid if self._process is not None else None

    def end(self) -> None:
        """Stop feeding and end the process, also in the middle of a job."""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=10)
        self._stop()

    def _feed(self) -> None:
        try:
            self.ready.set_result(self._start())
        except Exception as error:
            self.ready.set_exception(error)
            return
        while (job := self._board.take(self.index)) is not None:
            if job.future.set_running_or_notify_cancel():
                self._finish(job)
        self._stop()

    def _finish(self, job: _Job) -> None:
        error: BaseException = ScorerDied("a scorer died")
        for _ in range(_TRIES):
            if self._board.closed:
                error = ScorerDied("the pool was closed while a call was in flight")
                break
            try:
                ok, value = self._do(job.packed)
            except InfrastructureError as failed:
                error = failed
                continue
            if ok:
                job.future.set_result(value)
                return
            error = value
            if not isinstance(value, SandboxUnavailable):
                break
        job.future.set_exception(error)

    def _do(self, packed: bytes) -> tuple[bool, Any]:
        if self._process is None:
            self._start()
        try:
            return self._ask(packed)
        except (OSError, EOFError) as error:
            self._stop()
            what = f"gave no answer within {self._job_timeout_s} s" if isinstance(error, TimeoutError) else "died"
            raise ScorerDied(f"scoring process {self.index} {what} with a call in flight") from error

    def _ask(self, message: bytes) -> tuple[bool, Any]:
        assert self._channel is not None
        send(self._channel, message)
        ok, value = pickle.loads(receive(self._channel))  # noqa: S301 - from our own scorer
        return ok, value

    def _start(self) -> Isolation:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [
                    sys.executable,
                    "-P",
                    "-c",
                    _BOOT,
                    str(theirs.fileno()),
                    str(os.getpid()),
                    pickle.dumps(sys.path).hex(),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self._channel = ours
        ours.settimeout(self._settings.start_timeout_s + 20)
        try:
            ok, isolation = self._ask(pickle.dumps(self._settings))
        except (OSError, EOFError) as error:
            self._stop()
            raise SandboxUnavailable("a scoring process could not be started") from error
        if not ok:
            self._stop()
            raise isolation
        ours.settimeout(self._job_timeout_s)
        return isolation  # type: ignore[no-any-return]

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=0.5)
            self._process.kill()
            self._process.wait()
            self._process = None


def _close_if_alive(pool: "weakref.ref[Pool]") -> None:
    living = pool()
    if living is not None:
        living.close()
