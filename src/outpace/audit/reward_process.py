"""A foreign reward behind a process boundary: it may hang, exit or be tampered with, the audit goes on.

This protects the audit from the reward, not the machine: a reward that executes completions without a sandbox does so
here too, with the rights of whoever runs the audit. It runs in an empty temporary folder.
"""

import contextlib
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import cloudpickle

from outpace.audit.reward_call import RewardFunction
from outpace.errors import RewardError
from outpace.schema import Task

_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); del sys.argv[1]; "
    "from outpace.audit.reward_worker import main; main(int(sys.argv[1]))"
)

LOAD_TIMEOUT_S = 180.0
"""A reward may import torch and load a judge."""


class RewardProcess:
    """Scores completions with one reward; a context manager that leaves no process behind.

    Args:
        reward: `package.module:function`, `file.py:function`, or a callable that can be pickled.
        timeout_s: for one call; a reward that takes longer is killed and started again. Loading it may take
            `LOAD_TIMEOUT_S`.
    """

    def __init__(self, reward: str | RewardFunction, *, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._packed = (pickle.dumps(reward) if isinstance(reward, str) else cloudpickle.dumps(reward)).hex()
        self._path = [os.getcwd(), *(entry or os.getcwd() for entry in sys.path)]  # noqa: PTH109 - plain text is sent
        self._folder = tempfile.TemporaryDirectory(prefix="outpace-audit-")
        self._process: subprocess.Popen[bytes] | None = None
        self._replies_fd: int | None = None
        self._buffer = b""
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def score(
        self, task: Task, completions_G: Sequence[str], style: str
    ) -> tuple[list[float | None] | None, str | None]:
        """The values `(G,)`, or None with what went wrong; the process is fresh again after it died or hung."""
        if self._process is None:
            self._start()
        request = {
            "prompt": [dict(message) for message in task.prompt],
            "completions": list(completions_G),
            "columns": {"task": task.id, "task_id": task.id, "entry_point": task.entry_point},
            "style": style,
        }
        try:
            reply = self._ask(json.dumps(request), self._timeout_s)
        except (OSError, EOFError, ValueError) as error:
            return None, self._end(error)
        if "values" in reply:
            return list(reply["values"]), None
        return None, f"the reward raised {reply.get('error')}"

    def restart(self) -> None:
        """Forget whatever the last call may have changed in the reward's process."""
        self._end(EOFError())
        self._start()

    def close(self) -> None:
        """End the process and remove its folder."""
        self._end(EOFError())
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        replies_fd, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-c", _BOOT, json.dumps(self._path), str(theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs],
                start_new_session=True,
                cwd=self._folder.name,
            )
        finally:
            os.close(theirs)
        self._replies_fd, self._buffer = replies_fd, b""
        try:
            problem = self._ask(self._packed, LOAD_TIMEOUT_S).get("error")
        except (OSError, EOFError, ValueError) as error:
            problem = self._end(error)
        if problem is not None:
            raise RewardError(str(problem))

    def _ask(self, line: str, timeout_s: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return self._read(timeout_s)

    def _read(self, timeout_s: float) -> dict[str, Any]:
        """One reply; the first line counts, whoever wrote it."""
        assert self._replies_fd is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._replies_fd], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(self._replies_fd, 65536)
            if not piece or len(self._buffer) > 2**20:
                raise EOFError
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply = json.loads(line)
        if not isinstance(reply, dict):
            raise ValueError(f"a reply of type {type(reply).__name__}")  # noqa: TRY004 - like any other bad line
        return reply

    def _end(self, error: Exception) -> str:
        """End the whole session of the process, and say in words why."""
        process, self._process = self._process, None
        what = f"the reward gave no answer within {self._timeout_s:g} s"
        if process is not None:
            if not isinstance(error, TimeoutError):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
                what = f"the reward's process ended with status {process.poll()}"
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        if self._replies_fd is not None:
            os.close(self._replies_fd)
            self._replies_fd = None
        return what
