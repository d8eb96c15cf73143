"""Tasks whose tests are code: the check never shares a process with the candidate."""

from collections.abc import Iterator

import pytest

from outpace.errors import TaskError
from outpace.grade import GradeSettings, Submission
from outpace.grade.pipeline import check
from outpace.sandbox import ProcessSandbox, SandboxSettings
from outpace.schema import Outcome, Task, Verdict
from outpace.tasks import exact


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(SandboxSettings(allow_weak_isolation=True)) as running:
        yield running


def grade(sandbox: ProcessSandbox, body: str, test_code: str) -> Verdict:
    task = Task(id="test/f", prompt=(), entry_point="f", compare=exact, test_code=test_code)
    return check(sandbox, task, Submission(completion=f"```python\n{body}\n```"), GradeSettings())


ADD = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(2, 2) == 4\n"


@pytest.mark.parametrize(
    ("body", "test_code", "outcome", "passed", "total"),
    [
        ("def f(a, b):\n    return a + b", ADD, Outcome.CORRECT, 2, 2),
        ("def f(a, b):\n    return a * b", ADD, Outcome.WRONG, 1, 2),
        ("def f(a, b):\n    return a // 0", ADD, Outcome.CRASHED, 0, 2),
        ("def f(a):\n    return a", ADD, Outcome.CRASHED, 0, 2),
        (
            "def f(x):\n    if x < 0:\n        raise ValueError(x)\n    return x",
            "def check(candidate):\n    try:\n        candidate(-1)\n        ok = False\n"
            "    except ValueError:\n        ok = True\n    assert ok\n    assert candidate(1) == 1\n",
            Outcome.CORRECT,
            2,
            2,
        ),
        (
            "def f(xs):\n    return sorted(xs)",
            "import random\ndef check(candidate):\n    for n in range(60):\n"
            "        xs = [random.random() for _ in range(n)]\n        assert candidate(list(xs)) == sorted(xs)\n",
            Outcome.CORRECT,
            60,
            60,
        ),
        (
            "def f(s):\n    return s[::-1]",
            "def encode(s):\n    return s[::-1]\ndef check(candidate):\n    assert candidate(encode('abc')) == 'abc'\n",
            Outcome.CORRECT,
            1,
            1,
        ),
        ("def f():\n    return {1, 2}", "def check(c):\n    assert c() == {2, 1}\n", Outcome.CORRECT, 1, 1),
    ],
)
def test_asserts_are_counted_and_a_failing_one_does_not_stop_the_rest(
    sandbox: ProcessSandbox, body: str, test_code: str, outcome: Outcome, passed: int, total: int
) -> None:
    verdict = grade(sandbox, body, test_code)
    assert verdict.execution is not None
    assert (verdict.outcome, verdict.execution.tests_passed, verdict.execution.tests_total) == (outcome, passed, total)


@pytest.mark.parametrize(
    ("test_code", "message"),
    [
        ("def check(candidate):\n    candidate(1, 2)\n", "asserts nothing"),
        ("def check(candidate):\n    assert candidate(a=1, b=2) == 3\n", "keyword arguments"),
        ("def other(candidate):\n    pass\n", "failed before it called the candidate"),
    ],
)
def test_a_check_that_cannot_judge_is_an_error_of_the_task(
    sandbox: ProcessSandbox, test_code: str, message: str
) -> None:
    with pytest.raises(TaskError, match=message):
        grade(sandbox, "def f(a, b):\n    return a + b", test_code)


def test_a_candidate_cannot_forge_equality_for_the_check(sandbox: ProcessSandbox) -> None:
    forged = "class Any:\n    def __eq__(self, other):\n        return True\ndef f(a, b):\n    return Any()"
    verdict = grade(sandbox, forged, ADD)
    assert verdict.outcome is Outcome.WRONG
    assert verdict.reason == "output_type"


def test_a_candidate_that_hangs_is_a_timeout_of_the_candidate(sandbox: ProcessSandbox) -> None:
    verdict = grade(sandbox, "def f(a, b):\n    while True:\n        pass", ADD)
    assert verdict.outcome is Outcome.TIMEOUT
