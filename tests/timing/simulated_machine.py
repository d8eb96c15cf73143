"""A machine that exists only as numbers: programs with a known cost, processes with a bias, trials with noise."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from outpace.schema import Args, CallResult, Failure
from outpace.timing.pace import Pacer

NULL_NS = 43_000


def echo(args: Args) -> Any:
    return args[0]


@dataclass(kw_only=True)
class Program:
    true_ns: float = 2_000_000
    answer: Callable[[Args], Any] = echo
    load_ns: int | None = 300_000
    load_failure: Failure | None = None
    close_failure: Failure | None = None
    fails_at_call: int | None = None
    has_clock: bool = True
    extra_ns: Callable[[int], float] = lambda call: 0.0
    """Work beyond the answer that is charged in a given call (0 is the warm-up)."""


@dataclass(kw_only=True)
class SimulatedMachine:
    """Noise as measured on a small machine: a bias per process, and per trial a one-sided exponential.

    With a `busy_share`, another program comes and goes on the other half of the core: while it runs, everything
    here takes `busy_slowdown` times the CPU time.
    """

    seed: int = 0
    speed: float = 1.0
    process_bias: float = 0.002
    trial_noise: float = 0.004
    burst_chance: float = 0.0
    burst: float = 0.3
    busy_share: float = 0.0
    busy_slowdown: float = 1.8
    busy_dwell_s: float = 0.02
    log: list[tuple[str, int, Any]] = field(default_factory=list)
    """(event, instance number, args or None) in order of occurrence."""

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.opened: list[SimulatedInstance] = []
        self.waited_s = 0.0
        self._busy = self.rng.random() < self.busy_share
        self._flips_in_s = 0.0

    def opener(self, program: Program, name: str = "candidate") -> "Callable[[], SimulatedInstance]":
        def open_instance() -> SimulatedInstance:
            instance = SimulatedInstance(self, program, name, len(self.opened))
            self.opened.append(instance)
            return instance

        return open_instance

    def null_opener(self) -> "Callable[[], SimulatedInstance]":
        return self.opener(Program(true_ns=0.0), "null")

    def slowdown(self, true_ns: float) -> float:
        """How much longer something takes that starts now; time passes."""
        self._pass(true_ns / 1e9)
        return self.busy_slowdown if self._busy else 1.0

    def read_pace(self) -> int:
        return round(30_000 * self.slowdown(30_000) * (1 + 0.05 * self.rng.random()) / self.speed)

    def sleep(self, duration_s: float) -> None:
        self.waited_s += duration_s
        self._pass(duration_s)

    def pacer(self) -> Pacer:
        return Pacer(self.read_pace, self.sleep, lambda: 0.0)

    def _pass(self, duration_s: float) -> None:
        self._flips_in_s -= duration_s
        while self._flips_in_s < 0 and 0.0 < self.busy_share < 1.0:
            self._busy = not self._busy
            share = self.busy_share if self._busy else 1.0 - self.busy_share
            self._flips_in_s += self.rng.expovariate(1.0) * self.busy_dwell_s * 2 * share

    def events(self, name: str) -> Sequence[tuple[int, Any]]:
        return [(number, args) for event, number, args in self.log if event == name]


class SimulatedInstance:
    def __init__(self, machine: SimulatedMachine, program: Program, name: str, number: int) -> None:
        self.load_failure = program.load_failure
        self.load_cpu_ns = program.load_ns
        self.is_open = True
        self.name = name
        self._machine, self._program, self._number = machine, program, number
        self._bias = machine.rng.gauss(0.0, machine.process_bias)
        self._calls = 0

    def call(self, args: Args) -> CallResult:
        assert self.is_open
        self._machine.log.append((f"call {self.name}", self._number, args))
        if self.load_failure is not None:
            return CallResult(failure=self.load_failure)
        call, self._calls = self._calls, self._calls + 1
        if call == self._program.fails_at_call:
            return CallResult(failure=Failure(outcome="crashed", reason="exception:ValueError"))
        return CallResult(value=self._program.answer(args), cpu_ns=self._charge(call))

    def close(self) -> Failure | None:
        assert self.is_open
        self.is_open = False
        self._machine.log.append((f"close {self.name}", self._number, None))
        return self._program.close_failure

    def _charge(self, call: int) -> int | None:
        machine, program = self._machine, self._program
        if not program.has_clock:
            return None
        warm = 1.12 if call == 0 else 1.0
        noise = machine.rng.expovariate(1.0) * machine.trial_noise
        if machine.rng.random() < machine.burst_chance:
            noise += machine.rng.random() * machine.burst
        true_ns = NULL_NS + program.true_ns * (1.0 + self._bias) + program.extra_ns(call)
        return round(true_ns * warm * (1.0 + noise) * machine.slowdown(true_ns) / machine.speed)


def counter_inputs() -> Callable[[], Args]:
    """Fresh inputs: (0,), (1,), (2,), ..."""
    count = iter(range(10**9))
    return lambda: (next(count),)


def is_echo(value: Any, args: Args) -> bool:
    return bool(value == args[0])
