"""A scoring process: pinned to one core, with a sandbox of its own, doing one job of its pool after another.

It is exec'd (`python -c`), never forked, and ends when its pool closes the channel or the pool's process dies.
Jobs are trusted code of ours: candidates run in the sandbox's children, never here.
"""

import contextlib
import os
import pickle
import select
import socket
import threading

import cloudpickle

from outpace.errors import OutpaceError, ScorerDied
from outpace.sandbox.process import ProcessSandbox
from outpace.sandbox.settings import SandboxSettings
from outpace.sandbox.stream import receive, send


def main(descriptor: int, parent_pid: int) -> None:
    """Serve jobs on `descriptor`: frames of `(function, arguments, keywords)`, answered by `(ok, value)`."""
    _end_with(parent_pid)
    channel = socket.socket(fileno=descriptor)
    settings: SandboxSettings = pickle.loads(receive(channel))  # noqa: S301 - from our own pool
    if settings.core is not None:
        os.sched_setaffinity(0, {settings.core})
    sandbox: ProcessSandbox | None = None
    try:
        sandbox = ProcessSandbox(settings)
        send(channel, cloudpickle.dumps((True, sandbox.isolation)))
        while True:
            send(channel, _do(receive(channel), sandbox))
    except (EOFError, ConnectionError):
        pass
    except OutpaceError as error:
        with contextlib.suppress(OSError):
            send(channel, cloudpickle.dumps((False, error)))
    finally:
        if sandbox is not None:
            sandbox.close()


def _do(packed: bytes, sandbox: ProcessSandbox) -> bytes:
    try:
        function, args, kwargs = pickle.loads(packed)  # noqa: S301 - from our own pool
        result = function(sandbox, *args, **kwargs)
        return cloudpickle.dumps((True, result))  # type: ignore[no-any-return]
    except Exception as error:
        return _packed_error(error)


def _packed_error(error: Exception) -> bytes:
    error.__traceback__ = None
    try:
        packed = cloudpickle.dumps((False, error))
        pickle.loads(packed)  # noqa: S301 - some exceptions pickle and do not unpickle
    except Exception:
        packed = cloudpickle.dumps((False, ScorerDied(f"a job failed: {type(error).__name__}: {error}")))
    return bytes(packed)


def _end_with(parent_pid: int) -> None:
    """End this process as soon as the pool's process has died, also in the middle of a job."""
    parent = os.pidfd_open(parent_pid)
    if os.getppid() != parent_pid:
        os._exit(1)

    def watch() -> None:
        poll = select.poll()
        poll.register(parent, select.POLLIN)
        poll.poll()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="outpace-parent-watch").start()
