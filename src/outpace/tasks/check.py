"""Validate a task before anything is trained on it.

Read without running: the id, the ways of checking, the prompt (entry point, Python version, imports), whether the
reference stands alone. Run: inputs are plain, fresh and repeatable; the comparator is not blind; and, in children of
the sandbox that the caller passes in, the reference agrees with the oracle and takes the right time.

Not covered: whether the prompt is clear, and, for tasks whose tests are code, whether the reference passes them
(grade its `canonical_completion` for that).
"""

import ast
import copy
import random
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Args, Failure, Outcome, Purpose, Sandbox, Task
from outpace.source import Definition, find_entry_point
from outpace.tasks.compare import exact
from outpace.tasks.prompt import PYTHON_VERSION
from outpace.tasks.reading import functions_of, missing_names, tree_of

SEEDS = (1, 2, 3)
MIN_MS, AIM_MS, MAX_MS = 0.5, "1-20", 40.0
"""The aim, and the bounds that are reported: machines differ by a factor of two."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a task: a short code such as `timing_too_small`, and a sentence."""

    code: str
    message: str


def check(task: Task, sandbox: Sandbox | None = None) -> list[Finding]:
    """Everything found wrong with `task`; empty when it is fit for use.

    Args:
        task: The task to validate.
        sandbox: Runs the reference; None leaves out what needs that.

    Raises:
        InfrastructureError: The sandbox fails.
    """
    findings = [*_check_shape(task), *_check_prompt(task), *_check_reference(task), *_check_test_code(task)]
    calls = _Calls(task)
    findings += calls.check()
    if not findings and sandbox is not None and task.reference is not None and task.test_code is None:
        findings += _check_runs(task, task.reference, calls, sandbox)
    return findings


def _check_shape(task: Task) -> Iterable[Finding]:
    if "/" not in task.id.strip("/"):
        yield Finding("id", f"the id {task.id!r} is not of the form family/name")
    if not all(part.isidentifier() for part in task.entry_point.split(".")):
        yield Finding("entry_point", f"the entry point {task.entry_point!r} is no Python name")
    if task.split not in ("train", "heldout"):
        yield Finding("split", f"the split is {task.split!r}; use train or heldout")
    ways = [task.inputs is not None, bool(task.cases), task.test_code is not None]
    if sum(ways) != 1:
        yield Finding("tests", "it needs exactly one of inputs with an oracle, cases, or test code")
    elif (task.inputs is None) != (task.oracle is None):
        yield Finding("oracle", "inputs and oracle belong together; one is missing")
    if task.inputs is not None and task.reference is None:
        yield Finding("reference", "it has no reference, so speed cannot be measured")


def _check_prompt(task: Task) -> Iterable[Finding]:
    text = "\n".join(message.get("content", "") for message in task.prompt)
    if not re.search(rf"(?<![\w.]){re.escape(task.entry_point)}(?!\w)", text):
        yield Finding("prompt_entry_point", f"the prompt does not name the entry point {task.entry_point}")
    if not re.search(rf"{re.escape(PYTHON_VERSION)}(?!\d)", text):
        yield Finding("prompt_version", f"the prompt does not state the version that runs, {PYTHON_VERSION}")
    lower = text.lower()
    unnamed = [name for name in task.allowed_modules or () if not re.search(rf"\b{re.escape(name)}\b", text)]
    if unnamed:
        yield Finding("prompt_modules", f"the prompt does not name the allowed modules {', '.join(sorted(unnamed))}")
    elif "import" not in lower and "module" not in lower and "standard library" not in lower:
        yield Finding("prompt_modules", "the prompt does not say which imports are allowed")


def _check_reference(task: Task) -> Iterable[Finding]:
    if task.reference is None:
        return
    try:
        tree = tree_of(task.reference)
        missing = missing_names(task.reference)
    except TaskError as error:
        yield Finding("reference_syntax", f"the reference does not parse: {error}")
        return
    if find_entry_point(tree, task.entry_point) is Definition.ABSENT:
        yield Finding("reference_entry_point", f"the reference does not define {task.entry_point}")
    if missing:
        yield Finding("reference_names", f"the reference uses names that it does not define: {', '.join(missing)}")


def _check_test_code(task: Task) -> Iterable[Finding]:
    if task.test_code is None:
        return
    try:
        tree = tree_of(task.test_code)
    except TaskError as error:
        yield Finding("test_code_syntax", f"the test code does not parse: {error}")
        return
    if "check" not in functions_of(task.test_code):
        yield Finding("test_code_check", "the test code does not define check(candidate)")
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        yield Finding("test_code_asserts", "the test code has no assert")


class _Calls:
    """The calls of a task with what its oracle says, for every seed; making them shows what is wrong with them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.correctness: list[tuple[Args, Any]] = []
        self.timing: list[tuple[Args, Any]] = []

    def check(self) -> list[Finding]:
        """Make the calls and report on inputs, oracle and comparator."""
        task = self.task
        if task.inputs is None:
            self.correctness = [(case.args, case.expected) for case in task.cases]
            return list(self._check_compare())
        findings: list[Finding] = []
        for purpose, into in ((Purpose.CORRECTNESS, self.correctness), (Purpose.TIMING, self.timing)):
            made: list[list[Args]] = []
            for seed in SEEDS:
                calls, finding = self._make(seed, purpose)
                if finding is not None:
                    return [finding]
                made.append(calls)
            if all(exact(calls, made[0]) for calls in made[1:]):
                findings.append(Finding("inputs_fixed", f"the {purpose} inputs are the same for every seed"))
            try:
                into += [(args, self._expected(args)) for calls in made for args in calls]
            except Exception as error:
                return [Finding("oracle_fails", f"the oracle fails on its own {purpose} input: {error!r}")]
        return findings + list(self._check_compare())

    def _make(self, seed: int, purpose: Purpose) -> tuple[list[Args], Finding | None]:
        assert self.task.inputs is not None
        try:
            calls = list(self.task.inputs(random.Random(seed), purpose))
            again = list(self.task.inputs(random.Random(seed), purpose))
        except Exception as error:
            return [], Finding("inputs_fail", f"the {purpose} inputs cannot be made: {error!r}")
        if not calls:
            return [], Finding("inputs_empty", f"there are no {purpose} inputs")
        if purpose is Purpose.TIMING and len(calls) != 1:
            return [], Finding("inputs_count", f"the timing inputs are {len(calls)} calls; give one")
        if not all(type(args) is tuple and _is_plain(args) for args in calls):
            return [], Finding("inputs_type", f"the {purpose} inputs are not tuples of plain data")
        if not exact(calls, again):
            return [], Finding("inputs_random", f"the {purpose} inputs differ between two runs with one seed")
        return calls, None

    def _expected(self, args: Args) -> Any:
        assert self.task.oracle is not None
        return self.task.oracle(*copy.deepcopy(args))

    def _check_compare(self) -> Iterable[Finding]:
        if not all(self.task.compare(expected, expected, args) for args, expected in self.correctness):
            yield Finding("compare_refuses", "the comparator refuses an expected value itself")
        unlike = ({"not": "this"}, "not this", 0.123456789)
        for args, expected in self.correctness:
            if all(self.task.compare(wrong, expected, args) for wrong in unlike):
                yield Finding("compare_blind", "the comparator accepts anything")
                return


def _check_runs(task: Task, reference: str, calls: _Calls, sandbox: Sandbox) -> list[Finding]:
    """Run the reference in children: every answer is right, and a call at timing size takes the right time."""
    _, finding = _run(task, reference, calls.correctness, sandbox)
    if finding is not None or not task.is_timed:
        return [finding] if finding is not None else []
    ran_ns, finding = _run(task, reference, calls.timing * 2, sandbox)
    if finding is not None:
        return [finding]
    ms = statistics.median(ran_ns) / 1e6 if ran_ns else None
    if ms is not None and ms < MIN_MS:
        return [Finding("timing_too_small", f"the reference takes {ms:.2g} ms at timing size; aim at {AIM_MS} ms")]
    if ms is not None and ms > MAX_MS:
        return [Finding("timing_too_slow", f"the reference takes {ms:.3g} ms at timing size; aim at {AIM_MS} ms")]
    return []


def _run(
    task: Task, reference: str, calls: list[tuple[Args, Any]], sandbox: Sandbox
) -> tuple[list[int], Finding | None]:
    """The CPU time of each call in one child (none without a clock), and the first thing wrong."""
    instance = sandbox.open(reference, task.entry_point, task.limits, consume_iterator=task.returns_sequence)
    try:
        if instance.load_failure is not None:
            return [], Finding("reference_fails", f"the reference cannot be loaded: {_say(instance.load_failure)}")
        ran_ns: list[int] = []
        for args, expected in calls:
            result = instance.call(args)
            if result.failure is not None and result.failure.outcome is Outcome.TIMEOUT:
                return [], Finding("timing_too_slow", f"the reference reaches its time limit on {_shorten(args)}")
            if result.failure is not None:
                return [], Finding(
                    "reference_fails", f"the reference fails on {_shorten(args)}: {_say(result.failure)}"
                )
            if not task.compare(result.value, expected, args):
                return [], Finding("reference_wrong", f"reference and expected value differ for {_shorten(args)}")
            ran_ns += [] if result.cpu_ns is None else [result.cpu_ns]
        return ran_ns, None
    finally:
        instance.close()


def _is_plain(value: Any) -> bool:
    atoms: tuple[type, ...] = (type(None), bool, int, float, complex, str, bytes)
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            todo += [entry for pair in item.items() for entry in pair]
        elif type(item) in (list, tuple, set, frozenset):
            todo += item
        elif type(item) not in atoms:
            return False
    return True


def _say(failure: Failure) -> str:
    """Outcome, reason and the last line of the child's account."""
    lines = failure.detail.strip().splitlines()
    return " ".join([failure.outcome, failure.reason, *lines[-1:]])


def _shorten(args: Args, limit: int = 80) -> str:
    try:
        shown = repr(args)
    except (ValueError, RecursionError):  # an int of thousands of digits, or deep nesting
        return "an input"
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
