"""Jobs that the pool's tests send to scoring processes."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from outpace.errors import SandboxUnavailable, TaskError
from outpace.sandbox import ProcessSandbox
from outpace.schema import Limits


def double(sandbox: ProcessSandbox, number: int) -> int:
    with sandbox.open("def f(x): return 2 * x", "f", Limits()) as instance:
        return instance.call((number,)).value


def whereabouts(sandbox: ProcessSandbox) -> tuple[int, set[int], str]:
    return os.getpid(), os.sched_getaffinity(0), sandbox.isolation.clock


def die(sandbox: ProcessSandbox) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_the_first_time(sandbox: ProcessSandbox, marker: str) -> str:
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "second try"


def fail_the_first_time(sandbox: ProcessSandbox, marker: str) -> str:
    if not Path(marker).exists():
        Path(marker).touch()
        raise SandboxUnavailable("not this time")
    return "second try"


def wait_for_file(sandbox: ProcessSandbox, path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.005)
    return "there"


def hang(sandbox: ProcessSandbox) -> None:
    time.sleep(600)


def hang_in_a_candidate(sandbox: ProcessSandbox, marker: str) -> None:
    instance = sandbox.open("def f():\n    while True: pass", "f", Limits(cpu_s=500.0, wall_s=500.0))
    Path(marker).touch()
    instance.call(())


def refuse(sandbox: ProcessSandbox) -> None:
    raise TaskError("no such task")


class Unpicklable(Exception):
    def __init__(self, first: Any, second: Any) -> None:
        super().__init__("cannot be made again from its text")


def fail_oddly(sandbox: ProcessSandbox) -> None:
    raise Unpicklable(1, 2)


def kill_the_zygote(sandbox: ProcessSandbox) -> int:
    """Kill -9 in the middle of a call, then go on."""
    instance = sandbox.open("def f(): return 1", "f", Limits())
    os.kill(sandbox._zygote.process.pid, signal.SIGKILL)
    try:
        instance.call(())
        instance.close()
    except SandboxUnavailable:
        pass
    return double(sandbox, 4)
