"""The process engine: a warm zygote, and one fresh child per candidate.

The parent holds inputs, expected outputs and clocks; a child gets arguments and returns values. Whatever a child
writes, does or fails to do becomes a value or a `Failure`, never an exception; exceptions mean that we failed.

Not covered: whether values are right, and how fast is fast (`grade`, `timing`).
"""

import contextlib
import os
import socket
import threading
from dataclasses import replace
from types import TracebackType
from typing import Self

from outpace.errors import SandboxUnavailable
from outpace.sandbox.forkserver import Zygote
from outpace.sandbox.instance import ProcessInstance
from outpace.sandbox.settings import REQUIRED, SandboxSettings
from outpace.schema import Isolation, Limits


class ProcessSandbox:
    """Starts fresh children from a warm zygote; implements `outpace.schema.Sandbox`.

    May be used from several threads. Raises SandboxUnavailable when isolation at the asked level cannot be had.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._closed = False
        self._owner = os.getpid()
        self._start()

    @property
    def isolation(self) -> Isolation:
        """The isolation in force; `clock` is `exact` only when the calling thread shares the children's core."""
        return self._running().isolation(self.settings)

    def open(self, source: str, entry_point: str, limits: Limits, *, consume_iterator: bool = False) -> ProcessInstance:
        """Load `source` in a new child; raises SandboxUnavailable when no child can be had."""
        return ProcessInstance(self, source, entry_point, limits, consume_iterator)

    def close(self) -> None:
        """End every child and helper process; the sandbox cannot be used again."""
        with self._lock:
            self._closed = True
            if self._zygote is not None and os.getpid() == self._owner:
                self._zygote.end()
            self._zygote = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _running(self) -> Zygote:
        if self._closed:
            raise SandboxUnavailable("this sandbox was closed; make a new one")
        if os.getpid() != self._owner:
            raise SandboxUnavailable("a sandbox cannot be used after a fork; make one in this process")
        if self._zygote is None:
            raise SandboxUnavailable("the zygote died and could not be started again")
        return self._zygote

    def _start(self) -> Zygote:
        self._zygote = Zygote(self.settings)
        lacking = REQUIRED - self._zygote.in_force
        if lacking and not self.settings.allow_weak_isolation:
            why = "; ".join(f"{layer}: {self._zygote.missing.get(layer, 'switched off')}" for layer in sorted(lacking))
            self._zygote.end()
            self._zygote = None
            raise SandboxUnavailable(
                f"isolation is too weak to run untrusted code ({why}): use a Linux kernel >= 5.13 with Landlock and "
                "seccomp, or accept it with allow_weak_isolation (--allow-weak-isolation)"
            )
        return self._zygote

    def fork(self, child_end: socket.socket) -> Zygote:
        """Ask for a child that serves on `child_end`; a dead zygote is replaced once."""
        with self._lock:
            zygote = self._running()
            try:
                zygote.fork(child_end)
            except OSError:
                zygote.end()
                zygote = self._start()
                zygote.fork(child_end)
            return zygote

    def reap(self, zygote: Zygote, pid: int) -> tuple[int, int, int]:
        """Wait status, CPU microseconds and peak memory of a killed child."""
        with self._lock:
            return zygote.reap(pid)


def detect(settings: SandboxSettings | None = None) -> Isolation:
    """The isolation that this machine grants: starts a zygote, which tries each layer, and ends it again."""
    settings = settings or SandboxSettings()
    with ProcessSandbox(replace(settings, allow_weak_isolation=True)) as sandbox:
        return sandbox.isolation
