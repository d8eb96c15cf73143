"""One sandbox per combination of layers, shared by the tests of a session; every test gets fresh children anyway."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from outpace.sandbox import Layer, ProcessSandbox, SandboxSettings
from outpace.schema import CallResult, Failure, Limits

LIMITS = Limits(wall_s=20.0, cpu_s=2.0)
Starter = Callable[..., ProcessSandbox]


@pytest.fixture(scope="session")
def start() -> Iterator[Starter]:
    """`start(Layer.X, ...)` is a running sandbox without those layers, kept until the last test has ended."""
    running: dict[frozenset[Layer], ProcessSandbox] = {}

    def get(*without: Layer) -> ProcessSandbox:
        key = frozenset(without)
        if key not in running:
            running[key] = ProcessSandbox(SandboxSettings(without=key, allow_weak_isolation=True))
        return running[key]

    yield get
    for sandbox in running.values():
        sandbox.close()


@pytest.fixture(scope="session")
def sandbox(start: Starter) -> ProcessSandbox:
    return start()


class Run:
    """One candidate, one call, one close: what each of them said."""

    def __init__(self, sandbox: Any, source: str, *args: Any, limits: Limits = LIMITS, consume: bool = False) -> None:
        instance = sandbox.open(source, "f", limits, consume_iterator=consume)
        self.load_failure: Failure | None = instance.load_failure
        self.load_cpu_ns: int | None = instance.load_cpu_ns
        self.call: CallResult = instance.call(args)
        self.closing: Failure | None = instance.close()
        self.usage = instance.usage

    @property
    def failure(self) -> Failure | None:
        return self.call.failure or self.closing

    @property
    def verdict(self) -> tuple[str, str] | None:
        """`(outcome, reason)` of the first failure."""
        return None if self.failure is None else (self.failure.outcome.value, self.failure.reason)


@pytest.fixture(scope="session")
def run() -> type[Run]:
    return Run


@pytest.fixture
def core() -> Iterator[int]:
    """This thread pinned to one core for the test."""
    before = os.sched_getaffinity(0)
    one = min(before)
    os.sched_setaffinity(0, {one})
    yield one
    os.sched_setaffinity(0, before)
