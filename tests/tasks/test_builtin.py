"""The built-in tasks: right, repeatable, fresh, and as the case file wants them."""

import copy
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from outpace import tasks
from outpace.schema import Purpose, Task
from outpace.tasks.catalogue import FAMILIES
from outpace.tasks.prompt import canonical_completion

BUILTIN = tasks.load("builtin")
DOCS = Path(__file__).parents[2] / "docs" / "tasks.md"


def function_of(source: str, name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace[name]


def passes(task: Task, function: Any, seed: int = 0) -> bool:
    """Whether a trusted function is right on every correctness input; each call gets a copy."""
    assert task.inputs is not None
    assert task.oracle is not None
    for args in task.inputs(random.Random(seed), Purpose.CORRECTNESS):
        result = function(*copy.deepcopy(args))
        if task.returns_sequence and hasattr(result, "__next__"):
            result = list(result)
        if not task.compare(result, task.oracle(*copy.deepcopy(args)), args):
            return False
    return True


def test_matmul_is_first_and_every_family_has_tasks_of_both_splits() -> None:
    assert BUILTIN[0].id == "linalg/matmul"
    assert len(BUILTIN) >= 36
    counts = Counter((task.family, task.split) for task in BUILTIN)
    assert {family for family, _ in counts} == set(FAMILIES)
    assert all(counts[family, split] > 0 for family in FAMILIES for split in ("train", "heldout"))
    assert 0.2 <= sum(task.split == "heldout" for task in BUILTIN) / len(BUILTIN) <= 0.3


def test_ids_and_entry_points_are_unique_and_agree() -> None:
    assert len({task.id for task in BUILTIN}) == len(BUILTIN)
    assert all(task.entry_point == task.id.partition("/")[2] for task in BUILTIN)


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.id)
def test_the_reference_agrees_with_the_oracle_at_every_size(task: Task) -> None:
    assert task.reference is not None
    assert task.inputs is not None
    assert task.oracle is not None
    reference = function_of(task.reference, task.entry_point)
    assert all(passes(task, reference, seed) for seed in range(4))
    (args,) = task.inputs(random.Random(5), Purpose.TIMING)
    assert task.compare(reference(*copy.deepcopy(args)), task.oracle(*copy.deepcopy(args)), args)


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.id)
def test_nothing_is_wrong_that_can_be_seen_without_running_the_reference(task: Task) -> None:
    assert tasks.check(task) == []
    assert task.inputs is not None
    assert 8 <= len(task.inputs(random.Random(0), Purpose.CORRECTNESS)) <= 14


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.id)
def test_a_constant_or_an_echo_of_the_input_is_never_right(task: Task) -> None:
    assert not passes(task, lambda *args: args[0])
    assert not any(passes(task, lambda *args, value=value: value) for value in (None, 0, 1, [], "", True, {}))


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.id)
def test_a_program_that_never_ends_costs_a_second_and_a_right_one_may_be_thirty_times_slower(task: Task) -> None:
    assert task.limits.cpu_s == 1.0
    assert task.limits.wall_s >= 5 * task.limits.cpu_s
    assert task.inputs is not None
    reference = function_of(task.reference or "", task.entry_point)
    needed_s = []
    for purpose in (Purpose.CORRECTNESS, Purpose.CORRECTNESS, Purpose.TIMING, Purpose.TIMING):
        calls = task.inputs(random.Random(0), purpose)
        start_s = time.process_time()
        for args in calls:
            reference(*args)
        needed_s.append(time.process_time() - start_s)
    assert 30 * min(needed_s[:2]) <= task.limits.cpu_s
    assert 2 * 30 * min(needed_s[2:]) <= task.limits.cpu_s, "a warm-up and a trial"


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.id)
def test_timing_inputs_are_rarely_the_same_twice(task: Task) -> None:
    assert task.inputs is not None
    drawn = {repr(task.inputs(random.Random(seed), Purpose.TIMING)) for seed in range(40)}
    assert len(drawn) >= 20, "a cache of earlier answers would pay"


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.id)
def test_the_oracle_leaves_its_arguments_alone(task: Task) -> None:
    assert task.inputs is not None
    assert task.oracle is not None
    for args in task.inputs(random.Random(2), Purpose.CORRECTNESS):
        before = copy.deepcopy(args)
        task.oracle(*args)
        assert args == before


HONEST = {
    "rows as tuples": """
def matmul(A, B):
    columns = tuple(zip(*B))
    return tuple(tuple(sum(x * y for x, y in zip(row, column)) for column in columns) for row in A)
""",
    "another order of summation": """
from math import fsum
def matmul(A, B):
    columns = list(zip(*B))
    return [[fsum(x * y for x, y in zip(row, column)) for column in columns] for row in A]
""",
    "float32": """
from array import array
def matmul(A, B):
    columns = [array("f", column) for column in zip(*B)]
    total = array("f", [0.0])
    result = []
    for row in A:
        result.append([])
        for column in columns:
            total[0] = 0.0
            for x, y in zip(row, column):
                total[0] += x * y
            result[-1].append(total[0])
    return result
""",
    "arguments as scratch space": """
def matmul(A, B):
    B[:] = [list(column) for column in zip(*B)]
    return [[sum(x * y for x, y in zip(row, column)) for column in B] for row in A]
""",
    "ints where floats are whole": """
def prefix_sums(xs):
    out, s = [], 0
    for x in xs:
        s += x
        out.append(int(s) if s == int(s) else s)
    return out
""",
    "in place": """
def prefix_sums(xs):
    for i in range(1, len(xs)):
        xs[i] += xs[i - 1]
    return xs
""",
    "a generator": """
def prefix_sums(xs):
    s = 0
    for x in xs:
        s += x
        yield s
""",
    "an iterator of tuples": """
def transpose(A):
    return zip(*A)
""",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST.keys())
def test_honest_variants_are_right(source: str) -> None:
    name = source.partition("def ")[2].partition("(")[0]
    (task,) = [task for task in BUILTIN if task.entry_point == name]
    assert all(passes(task, function_of(source, name), seed) for seed in range(3))


@pytest.mark.parametrize(
    ("task_id", "source"),
    [
        ("linalg/matmul", "def f(A, B):\n    return []"),
        ("linalg/matmul", "def f(A, B):\n    return [[0.0] * len(B[0]) for _ in A]"),
        ("linalg/matmul", "def f(A, B):\n    return [[sum(map(int, r))] for r in A]"),
        ("sequences/prefix_sums", "def f(xs):\n    if xs == [1, 2, 3]:\n        return [1, 3, 6]\n    return xs"),
    ],
)
def test_shortcuts_are_wrong(task_id: str, source: str) -> None:
    assert not passes(tasks.get(task_id), function_of(source, "f"))


def test_recursion_over_the_longest_list_stays_moderate() -> None:
    task = tasks.get("sequences/prefix_sums")
    assert task.inputs is not None
    both = [task.inputs(random.Random(0), purpose) for purpose in Purpose]
    assert max(len(args[0]) for calls in both for args in calls) <= 2000


def test_matmul_inputs_are_standard_normal_and_never_empty() -> None:
    task = tasks.get("linalg/matmul")
    assert task.inputs is not None
    calls = task.inputs(random.Random(0), Purpose.CORRECTNESS)
    assert all(A and A[0] and len(A[0]) == len(B) and B[0] for A, B in calls)
    assert any(len(A) == len(B) == len(B[0]) == 64 for A, B in calls)
    entries = [x for A, B in calls for row in (*A, *B) for x in row]
    mean = sum(entries) / len(entries)
    assert abs(mean) < 0.05
    assert abs(sum((x - mean) ** 2 for x in entries) / len(entries) - 1.0) < 0.05
    ((A, B),) = task.inputs(random.Random(0), Purpose.TIMING)
    assert (len(A), len(B), len(B[0])) == (32, 32, 32)


def test_every_task_answers_its_own_prompt() -> None:
    assert all(f"def {task.entry_point}(" in canonical_completion(task) for task in BUILTIN)


def test_the_guide_lists_every_task() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [task.id for task in BUILTIN if f"`{task.id}`" not in text] == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("buildin", "did you mean 'builtin'"),
        ("matmul", "did you mean 'linalg/matmul'"),
        ("linalg/matmull", "did you mean 'linalg/matmul'"),
        ("builtin:heldut", "did you mean 'heldout'"),
        ("mbpp", "mbpp:PATH"),
        ("builtin,,linalg", "empty part"),
        ("", "empty part"),
        ("nothing-like-it", "unknown task spec"),
    ],
)
def test_an_unknown_spec_is_one_sentence_with_the_nearest_name(spec: str, message: str) -> None:
    with pytest.raises(tasks.catalogue.TaskError, match=message) as raised:
        tasks.load(spec)
    assert "\n" not in str(raised.value)


def test_specs_join_and_repeat_without_doubles() -> None:
    assert [task.id for task in tasks.load("linalg/matmul, linalg:train,linalg/matmul")][:1] == ["linalg/matmul"]
    assert len(tasks.load("linalg,linalg:heldout")) == len(tasks.load("linalg"))
    assert len(tasks.load("builtin:train,builtin:heldout")) == len(BUILTIN)
    with pytest.raises(tasks.catalogue.TaskError, match="names"):
        tasks.get("linalg")
