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
        self._closed = False
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._abandoned: list[tuple[Zygote, int]] = []
        self._zygote: Zygote | None = None
        self._zygote = self._running()

    @property
    def isolation(self) -> Isolation:
        """The isolation in force; `clock` is `exact` only when the calling thread shares the children's core."""
        with self._lock:
            return self._running().isolation(self.settings)

    def open(self, source: str, entry_point: str, limits: Limits, *, consume_iterator: bool = False) -> ProcessInstance:
        """Load `source` in a new child; raises SandboxUnavailable when no child can be had."""
        return ProcessInstance(self, source, entry_point, limits, consume_iterator)

    def close(self) -> None:
        """End every child and helper process; the sandbox cannot be used again."""
        if os.getpid() != self._owner:
            return  # a copy made by fork: the zygote is not ours
        with self._lock:
            self._closed = True
            self._end_zygote()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_zygote", None) is not None and os.getpid() == self._owner:
            self._end_zygote()

    def fork(self, child_end: socket.socket) -> Zygote:
        """Have a child forked that serves on `child_end`; a zygote that has died is replaced."""
        with self._lock:
            zygote = self._running()
            while self._abandoned:
                self._reap(zygote, *self._abandoned.pop())
            try:
                zygote.fork(child_end)
            except OSError:
                self._end_zygote()
                zygote = self._running()
                zygote.fork(child_end)
            return zygote

    def reap(self, zygote: Zygote, pid: int) -> tuple[int, int, int]:
        """Wait status, CPU microseconds and peak memory of a killed child; raises SandboxUnavailable."""
        with self._lock:
            try:
                return zygote.reap(pid)
            except SandboxUnavailable:
                if zygote is self._zygote:
                    self._end_zygote()
                raise

    def give_up_on(self, zygote: Zygote) -> None:
        """End a zygote that does not answer; the next child comes from a new one."""
        with self._lock:
            if zygote is self._zygote:
                self._end_zygote()

    def abandon(self, zygote: Zygote, pid: int) -> None:
        """Note a killed child to be reaped later: for finalisers, which must neither wait nor lock."""
        self._abandoned.append((zygote, pid))

    def _reap(self, current: Zygote, zygote: Zygote, pid: int) -> None:
        if zygote is current:
            with contextlib.suppress(SandboxUnavailable):
                zygote.reap(pid)

    def _running(self) -> Zygote:
        if self._closed:
            raise SandboxUnavailable("this sandbox was closed; make a new one")
        if os.getpid() != self._owner:
            raise SandboxUnavailable("a sandbox cannot be used after a fork; make one in this process")
        if self._zygote is None:
            self._zygote = self._started()
        return self._zygote

    def _started(self) -> Zygote:
        zygote = Zygote(self.settings)
        lacking = sorted(REQUIRED - zygote.in_force)
        if not lacking or self.settings.allow_weak_isolation:
            return zygote
        zygote.end()
        why = "; ".join(f"{layer}: {zygote.missing.get(layer, 'switched off')}" for layer in lacking)
        raise SandboxUnavailable(
            f"isolation is too weak to run untrusted code ({why}): use a Linux kernel >= 5.13 with Landlock and "
            "seccomp, or accept it with allow_weak_isolation (--allow-weak-isolation)"
        )

    def _end_zygote(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.end()


def detect(settings: SandboxSettings | None = None) -> Isolation:
    """The isolation that this machine grants: starts a zygote, which tries each layer, and ends it again."""
    settings = settings or SandboxSettings()
    with ProcessSandbox(replace(settings, allow_weak_isolation=True)) as sandbox:
        return sandbox.isolation
