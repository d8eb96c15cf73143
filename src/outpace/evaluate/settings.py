"""What an evaluation is asked to do, and what it takes completions from. Nothing here samples or grades."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from outpace.errors import ConfigError
from outpace.schema import Task, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSettings:
    """How many samples are drawn, how, and how the intervals are made; refuses nonsense when built."""

    samples_per_task: int = 8
    temperature: float = 1.0
    """0 is greedy; every sample of a task is then the same, and pass@k says nothing beyond pass@1."""
    max_completion_length: int = 512
    """Tokens."""
    seed: int = 3407
    k_values: tuple[int, ...] = (1, 4)
    """The k of pass@k; 1 is always measured."""
    batch_size: int = 64
    """Completions per call of the sampler, rounded to whole tasks (at least one)."""
    resamples: int = 2000
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("samples_per_task", "max_completion_length", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"evaluation needs {name} of at least 1, got {getattr(self, name)!r}")
        if not self.temperature >= 0:
            raise ConfigError(f"evaluation needs a temperature of 0 or more, got {self.temperature!r}")
        if self.resamples < 100:
            raise ConfigError(f"evaluation needs at least 100 resamples for an interval, got {self.resamples!r}")
        if not 0.5 <= self.confidence < 1:
            raise ConfigError(f"confidence must be between 0.5 and 1, such as 0.95, got {self.confidence!r}")
        for k in self.k_values:
            if not 1 <= k <= self.samples_per_task:
                raise ConfigError(
                    f"pass@{k} needs at least {k} samples per task, and samples_per_task is {self.samples_per_task}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One text that a model wrote for a task."""

    text: str
    finished: bool = True
    """Ended by itself, not by the length limit."""
    tokens: int | None = None
    """Length in tokens; None: not known."""
    answer: str | None = None
    """The text without its reasoning, when that was split off by token ids."""


class SampleCompletions(Protocol):
    """Where completions come from: a policy, a plain `generate`, a server, a stored list."""

    def __call__(
        self, tasks: Sequence[Task], settings: EvalSettings, seed: int
    ) -> Sequence[Sequence[Completion | str]]:
        """Return `settings.samples_per_task` completions for each of `tasks`, in their order.

        The same seed on the same tasks must give the same samples from the same model; a `str` is a finished
        completion of unknown length.
        """
        ...


class GroupInFlight(Protocol):
    """Completions of one task that are being graded."""

    def add(self, index: int, completion: str, *, finished: bool = True, answer: str | None = None) -> None:
        """Start to grade completion `index` of the group."""
        ...

    def result(self) -> list[Verdict | None]:
        """Wait for all; None stands where we failed, also after a retry."""
        ...


class Grades(Protocol):
    """The part of `outpace.grade.Grader` that an evaluation uses."""

    def open_group(self, task: Task, size: int) -> GroupInFlight:
        """Open a group of `size` completions of one task."""
        ...


Progress = Callable[[int, int], None]
"""Called with (samples graded, samples in all)."""
