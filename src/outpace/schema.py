"""The nouns: frozen values that the stages hand to each other.

Facts only. How a fact is found is a stage's business, what it is worth is a reward's. Nothing here runs code,
opens a file or imports another module of outpace but `errors`.

Axes: `_G` runs over the completions of one group, `_N` over tests, `_P` over process pairs, `_T` over trials.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

Message = Mapping[str, str]
"""One chat message: `{"role": ..., "content": ...}`."""

Args = tuple[Any, ...]
"""Positional arguments of one call: plain data of the types the wire carries."""


class Outcome(StrEnum):
    """What became of one completion, worst first; exactly one holds."""

    NO_CODE = "no_code"
    """No code block that defines the entry point was found."""
    SYNTAX_ERROR = "syntax_error"
    """The chosen source does not parse."""
    FORBIDDEN = "forbidden"
    """The static check refused the source, or the kernel refused what it tried."""
    CRASHED = "crashed"
    """It raised, exited or died by a signal of its own making."""
    TIMEOUT = "timeout"
    """It used up its wall-clock or CPU limit."""
    RESOURCE = "resource"
    """It hit the memory, output or file limit."""
    WRONG = "wrong"
    """It returned a value that is not the expected one, or a value of a type that is not accepted."""
    TAMPERING = "tampering"
    """It wrote to our channel, or its clocks and resource usage do not agree."""
    CORRECT = "correct"
    """Every hidden test passed."""


class Purpose(StrEnum):
    """What a batch of inputs is for."""

    CORRECTNESS = "correctness"
    """Many calls: edge cases first, then seeded random inputs of small size."""
    TIMING = "timing"
    """One call at the size that is timed; fresh values each time it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one candidate instance (one process): its import and all its calls together."""

    wall_s: float = 10.0
    cpu_s: float = 3.0
    import_cpu_s: float = 0.25
    memory_bytes: int = 512 * 2**20
    reply_bytes: int = 16 * 2**20
    source_bytes: int = 64 * 2**10

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"limits.{name} must be positive, got {getattr(self, name)!r}")


class Comparator(Protocol):
    """Says whether an actual value is the expected one; never raises on odd values, never runs their code."""

    def __call__(self, actual: Any, expected: Any, args: Args) -> bool:
        """True when `actual` counts as `expected` for a call with `args`."""
        ...


InputGenerator = Callable[[random.Random, Purpose], Sequence[Args]]
"""Makes the arguments of calls from a seeded generator: a list for correctness, a list of one for timing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One fixed call and its expected value (tasks that list their tests instead of generating them)."""

    args: Args
    expected: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One programming problem: what is asked, how an answer is checked, and what it is timed against.

    Exactly one way of checking holds: `inputs` with `oracle`, or `cases`, or `test_code`.
    `oracle` and `inputs` are trusted code and run in a scoring process; `reference` and `test_code` are source
    text and run in children, like a candidate.
    """

    id: str
    prompt: tuple[Message, ...]
    entry_point: str
    compare: Comparator
    inputs: InputGenerator | None = None
    oracle: Callable[..., Any] | None = None
    cases: tuple[Case, ...] = ()
    test_code: str | None = None
    adapter: str | None = None
    """Source that runs after a candidate's own in its child and defines `adapted_entry`, which is called in place of
    the entry point: it makes, from plain data, arguments that the wire does not carry. Only with `test_code`."""
    reference: str | None = None
    """Source of the honest baseline that speed is measured against (1-20 ms at timing size); None: not timed."""
    returns_sequence: bool = False
    """True: an iterator that is returned is consumed into a list inside the timed region."""
    allowed_modules: frozenset[str] | None = None
    """None: the default allow-list of `static_check`."""
    limits: Limits = field(default_factory=Limits)
    tags: tuple[str, ...] = ()
    split: str = "train"

    @property
    def family(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def is_timed(self) -> bool:
        """Whether speed can be measured: it needs generated inputs and a reference."""
        return self.inputs is not None and self.reference is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The source chosen from a completion; every later stage sees this very text and no other."""

    source: str
    where: str
    """For a reader: `block 2 of 3, lines 5-12`."""
    discarded: tuple[str, ...] = ()
    """Other code blocks of the completion that were not chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What was found in a completion: a candidate, or the reason why there is none."""

    candidate: Candidate | None
    reason: str | None = None
    """`empty`, `no_fence`, `unclosed_fence`, `no_entry_point`, `placeholder`, `no_final_channel`,
    `unfinished_thinking`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing the static check refuses: a reason code such as `module:ctypes`, and where it stands."""

    reason: str
    line: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticReport:
    """What reading the source showed, without running it."""

    parses: bool
    syntax_error: str | None = None
    defines_entry_point: bool = False
    violations: tuple[Violation, ...] = ()

    @property
    def is_compliant(self) -> bool:
        """Parses, and nothing in it is refused."""
        return self.parses and not self.violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The isolation in force for an execution: which layers are on, which are missing and why."""

    level: str
    """`full` (every layer), `strict` (at least Landlock and seccomp), `weak` (less), `none`."""
    layers: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    clock: str = "none"
    """`exact` (child and reader share one core), `unpinned` or `none`; only `exact` may pay for speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call or a load gave no value; the candidate's doing, never ours."""

    outcome: Outcome
    reason: str
    """`exception:ValueError`, `signal:SIGSEGV`, `cpu_limit`, `wall_limit`, `memory_limit`, `output_type`, ..."""
    detail: str = ""
    """Last lines of the child's traceback, as text it claims; shown to people, never judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """One call in a child: a value or a failure, with the CPU time that the parent charged for it."""

    value: Any = None
    failure: Failure | None = None
    cpu_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One candidate process from load to exit."""

    tests_passed: int = 0
    tests_total: int = 0
    failure: Failure | None = None
    """The first failure, if any."""
    cpu_ns: int | None = None
    max_rss_bytes: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How fast the candidate is beside the reference: `ratio` > 1 means faster than the reference."""

    ratio: float
    low: float
    high: float
    noise_floor: float
    """Relative difference that identical programs can show here; a bound inside it is no difference."""
    candidate_ns_PT: tuple[tuple[int, ...], ...] = ()
    reference_ns_PT: tuple[tuple[int, ...], ...] = ()
    trusted: bool = True
    note: str = ""

    @property
    def bound_nearest_1(self) -> float:
        """The end of the interval nearest to 1, and 1 when the interval (or the noise floor) holds 1."""
        if self.low > 1.0 + self.noise_floor:
            return self.low
        if self.high < 1.0 / (1.0 + self.noise_floor):
            return self.high
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything known about one completion; facts only, no reward."""

    task_id: str
    outcome: Outcome
    reason: str | None = None
    detail: str = ""
    candidate: Candidate | None = None
    static: StaticReport | None = None
    execution: Execution | None = None
    timing: Timing | None = None
    isolation: Isolation | None = None
    program: str | None = None
    """Fingerprint of a correct program: equal for spellings of the same one."""

    @property
    def share_passed(self) -> float:
        """Share of hidden tests passed, 0.0 to 1.0; 0.0 when none ran."""
        if self.execution is None or self.execution.tests_total == 0:
            return 0.0
        return self.execution.tests_passed / self.execution.tests_total


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One completion of a group with what was found out about it: the input of every reward.

    `verdict` is None when we failed to grade it; every reward must then return None for it.
    """

    task: Task
    completion: str
    completion_ids: tuple[int, ...] | None = None
    finished: bool = True
    """The completion ended by itself (an end token), not by the length limit."""
    answer: str | None = None
    """The completion without its reasoning, when that was split off by token ids; None: split the text."""
    reasoning_ids: tuple[int, ...] | None = None
    """Token ids of the reasoning; None when ids are unknown or no reasoning was found."""
    reasoning: str | None = None
    """Text of the reasoning, where the caller split it off; with `answer` None it was cut off."""
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class RewardVector:
    """Named reward components of one sample; None means "not known", never zero."""

    components: Mapping[str, float | None]
    total: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one child used from fork to exit, as the kernel tells."""

    cpu_ns: int
    max_rss_bytes: int
    """Peak of its resident memory; some 10 MiB of it are the interpreter's, shared with the fork server."""
    wall_s: float


class Instance(Protocol):
    """A candidate loaded in a fresh child; the parent judges, the child only computes."""

    load_failure: Failure | None
    """Set when the source could not be loaded; calls then return this failure."""
    load_cpu_ns: int | None
    usage: Usage | None
    """Set by `close`."""

    def call(self, args: Args) -> CallResult:
        """Call the entry point with a private copy of `args`; raises InfrastructureError only when we fail."""
        ...

    def close(self) -> Failure | None:
        """End the child and all it started; returns TAMPERING when usage and charges disagree, else None."""
        ...


class Sandbox(Protocol):
    """Starts fresh children for untrusted source; every backend passes the same contract suite."""

    @property
    def isolation(self) -> Isolation:
        """The isolation in force for every child that this sandbox opens."""
        ...

    def open(self, source: str, entry_point: str, limits: Limits, *, consume_iterator: bool = False) -> Instance:
        """Load `source` in a new child; raises SandboxUnavailable when no child can be had."""
        ...

    def close(self) -> None:
        """End every child and helper process; the sandbox cannot be used again."""
        ...
