"""Hands a group's correct programs to `timing`, with fresh inputs for every repetition and a judge for every output."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from outpace.errors import TaskError
from outpace.grade.settings import GradeSettings
from outpace.schema import Args, Failure, Instance, Limits, Purpose, Sandbox, Task, Timing
from outpace.timing import measure_group, null_source


def time_group(
    sandbox: Sandbox, task: Task, sources_G: Sequence[str], rng: random.Random, settings: GradeSettings
) -> list[Timing | Failure]:
    """One `Timing` per source, or the failure that voids it; raises TaskError when the task cannot be timed."""
    if not sources_G:
        return []
    if task.inputs is None or task.reference is None or task.oracle is None:
        raise TaskError(f"task {task.id} cannot be timed: it needs inputs, an oracle and a reference")
    return measure_group(
        [_opener(sandbox, task, source, task.limits) for source in sources_G],
        _opener(sandbox, task, task.reference, Limits(import_cpu_s=2.0, wall_s=60.0, cpu_s=30.0)),
        _fresh(task, rng) if settings.fresh_inputs else _repeated(task, rng),
        _Judge(task) if settings.verify_timed else lambda value, args: True,
        settings.timing,
        open_null=_opener(sandbox, task, null_source(task.entry_point), task.limits),
        clock=sandbox.isolation.clock,
    )


def _opener(sandbox: Sandbox, task: Task, source: str, limits: Limits) -> Callable[[], Instance]:
    return partial(sandbox.open, source, task.entry_point, limits, consume_iterator=task.returns_sequence)


def _fresh(task: Task, rng: random.Random) -> Callable[[], Args]:
    assert task.inputs is not None
    inputs = task.inputs

    def next_args() -> Args:
        made = inputs(rng, Purpose.TIMING)
        if len(made) != 1:
            raise TaskError(f"task {task.id} made {len(made)} inputs for timing: it must make exactly one")
        return made[0]

    return next_args


def _repeated(task: Task, rng: random.Random) -> Callable[[], Args]:
    args = _fresh(task, rng)()
    return lambda: args


class _Judge:
    """Judges timed values; the expected value of an input is computed once for all programs that got it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._args: Args | None = None
        self._expected: Any = None

    def __call__(self, value: Any, args: Args) -> bool:
        if args is not self._args:
            self._args, self._expected = args, self._expect(args)
        return self._task.compare(value, self._expected, args)

    def _expect(self, args: Args) -> Any:
        assert self._task.oracle is not None
        try:
            return self._task.oracle(*args)
        except Exception as error:
            raise TaskError(f"the oracle of task {self._task.id} failed on its timing input: {error!r}") from error
