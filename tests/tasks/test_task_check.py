"""`tasks check`: what is wrong with a task is found, and only that."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outpace.schema import Args, CallResult, Case, Failure, Isolation, Limits, Outcome, Task
from outpace.tasks import check, custom, get, load
from outpace.tasks.check import SEEDS
from outpace.tasks.prompt import PYTHON_VERSION

EXAMPLES = Path(__file__).parents[2] / "examples"
GOOD = get("linalg/matmul")


class TrustedInstance:
    """Runs a reference in this process; its clock says what the test wants."""

    load_failure: Failure | None = None
    load_cpu_ns: int | None = 0

    def __init__(self, source: str, entry_point: str, cpu_ns: int | None) -> None:
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        self._function: Callable[..., Any] = namespace[entry_point]
        self._cpu_ns = cpu_ns

    def call(self, args: Args) -> CallResult:
        try:
            return CallResult(value=self._function(*args), cpu_ns=self._cpu_ns)
        except TimeoutError:
            return CallResult(failure=Failure(outcome=Outcome.TIMEOUT, reason="cpu_limit"))
        except Exception as error:
            reason = f"exception:{type(error).__name__}"
            return CallResult(failure=Failure(outcome=Outcome.CRASHED, reason=reason, detail=str(error)))

    def close(self) -> Failure | None:
        return None


class TrustedSandbox:
    """No sandbox at all, for references that the test itself wrote."""

    isolation = Isolation(level="none")

    def __init__(self, cpu_ns: int | None = 2_000_000) -> None:
        self.cpu_ns = cpu_ns

    def open(self, source: str, entry_point: str, limits: Limits, *, consume_iterator: bool = False) -> TrustedInstance:
        return TrustedInstance(source, entry_point, self.cpu_ns)

    def close(self) -> None:
        pass


def codes(task: Task, cpu_ns: int | None = 2_000_000) -> set[str]:
    return {finding.code for finding in check(task, TrustedSandbox(cpu_ns))}


def said(text: str) -> tuple[dict[str, str], ...]:
    return ({"role": "user", "content": text},)


def reference(body: str) -> str:
    return f"def matmul(A, B):\n    {body}\n"


def test_a_good_task_has_no_findings() -> None:
    assert check(GOOD, TrustedSandbox()) == []


@pytest.mark.parametrize("name", ["tasks_statistics.py", "tasks_cases.jsonl"])
def test_the_example_files_have_no_findings(name: str) -> None:
    for task in load(str(EXAMPLES / name)):
        assert check(task, TrustedSandbox()) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"id": "matmul"}, "id"),
        ({"entry_point": "mat mul"}, "entry_point"),
        ({"split": "test"}, "split"),
        ({"inputs": None, "oracle": None}, "tests"),
        ({"test_code": "def check(c):\n    assert c"}, "tests"),
        ({"oracle": None}, "oracle"),
        ({"reference": None}, "reference"),
        ({"prompt": said(f"Write matmul2(A, B). {PYTHON_VERSION}, imports: math.")}, "prompt_entry_point"),
        ({"prompt": said("Write matmul(A, B). Python 3, imports: math.")}, "prompt_version"),
        ({"prompt": said(f"Write matmul(A, B) in {PYTHON_VERSION}.")}, "prompt_modules"),
        ({"allowed_modules": frozenset({"zlib"})}, "prompt_modules"),
        ({"prompt": ()}, "prompt_entry_point"),
        ({"reference": "def matmul(A, B:\n"}, "reference_syntax"),
        ({"reference": "def other(A, B):\n    return A\n"}, "reference_entry_point"),
        ({"reference": reference("return np.dot(A, B)")}, "reference_names"),
        ({"inputs": lambda rng, purpose: []}, "inputs_empty"),
        ({"inputs": lambda rng, purpose: 1 / 0}, "inputs_fail"),
        ({"inputs": lambda rng, purpose: [([[1.0]], [[2.0]])]}, "inputs_fixed"),
        ({"inputs": lambda rng, purpose: [([[rng.random()]], [[2.0]])] * 2}, "inputs_count"),
        ({"inputs": lambda rng, purpose: [[[[rng.random()]], [[2.0]]]]}, "inputs_type"),
        ({"inputs": lambda rng, purpose: [([[rng]], [[2.0]])]}, "inputs_type"),
        ({"inputs": lambda rng, purpose: [([[id(object()) + FRESH.pop()]], [[2.0]])]}, "inputs_random"),
        ({"oracle": lambda A, B: A.no_such_thing}, "oracle_fails"),
        ({"compare": custom(lambda actual, expected, args: True)}, "compare_blind"),
        ({"compare": custom(lambda actual, expected, args: False)}, "compare_refuses"),
        ({"reference": reference("return [[0.0]]")}, "reference_wrong"),
        ({"reference": reference("return A.no_such_thing")}, "reference_fails"),
        ({"reference": reference("raise TimeoutError")}, "timing_too_slow"),
    ],
)
def test_what_is_wrong_is_found(changes: dict[str, Any], code: str) -> None:
    FRESH[:] = range(0, 10**9, 10**6)
    assert code in codes(replace(GOOD, **changes))


FRESH: list[int] = []
"""Numbers that the generator above takes away, so that no two runs see the same."""


@pytest.mark.parametrize(
    ("cpu_ns", "expected"),
    [
        (10_000, {"timing_too_small"}),
        (499_000, {"timing_too_small"}),
        (1_000_000, set()),
        (20_000_000, set()),
        (41_000_000, {"timing_too_slow"}),
        (None, set()),
    ],
)
def test_the_timing_size_must_be_neither_too_small_nor_too_slow(cpu_ns: int | None, expected: set[str]) -> None:
    assert codes(GOOD, cpu_ns) == expected


def test_inputs_are_made_for_every_seed() -> None:
    seen = []

    def spy(rng: Any, purpose: Any) -> Any:
        seen.append(rng.random())
        return [([[rng.random()]], [[1.0]])]

    check(replace(GOOD, inputs=spy))
    assert len(set(seen)) == len(SEEDS)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cases": (Case(args=(1, 2), expected=4),)}, "reference_wrong"),
        ({"cases": (Case(args=(1, "a"), expected=4),)}, "reference_fails"),
    ],
)
def test_listed_cases_are_run_against_the_reference(changes: dict[str, Any], code: str) -> None:
    add = get(f"{EXAMPLES / 'tasks_cases.jsonl'}#demo/add")
    assert codes(add) == set()
    assert code in codes(replace(add, **changes))


@pytest.mark.parametrize(
    ("test_code", "code"),
    [
        ("def check(c:\n", "test_code_syntax"),
        ("def test(c):\n    assert c(1)\n", "test_code_check"),
        ("def check(c):\n    c(1)\n", "test_code_asserts"),
    ],
)
def test_test_code_must_define_a_check_that_asserts(test_code: str, code: str) -> None:
    task = get(f"{EXAMPLES / 'tasks_cases.jsonl'}#demo/primes_below")
    assert code in codes(replace(task, test_code=test_code))


def test_every_message_is_one_sentence_for_people() -> None:
    broken = replace(GOOD, prompt=(), reference=reference("return np"), split="x", id="y")
    for finding in check(broken):
        assert finding.message
        assert "\n" not in finding.message
