"""From a completion to a verdict, with the real sandbox."""

import random
from collections.abc import Iterator

import pytest

from outpace import tasks
from outpace.errors import TaskError
from outpace.grade import GradeSettings, Submission
from outpace.grade.pipeline import check, time_programs, with_timing
from outpace.sandbox import ProcessSandbox, SandboxSettings
from outpace.schema import Args, Failure, Limits, Outcome, Purpose, Task, Timing, Verdict
from outpace.tasks import exact
from outpace.timing import TimingSettings

DOUBLE = "```python\ndef double(x):\n    return x + x\n```\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(SandboxSettings(allow_weak_isolation=True)) as running:
        yield running


def numbers(rng: random.Random, purpose: Purpose) -> list[Args]:
    return [(rng.randrange(10**6),) for _ in range(5 if purpose is Purpose.CORRECTNESS else 1)]


def double_task(**changes: object) -> Task:
    given: dict[str, object] = {
        "id": "test/double",
        "prompt": ({"role": "user", "content": "double"},),
        "entry_point": "double",
        "compare": exact,
        "inputs": numbers,
        "oracle": lambda x: 2 * x,
        "reference": "def double(x):\n    return 2 * x\n",
    }
    return Task(**{**given, **changes})  # type: ignore[arg-type]


CASES = [
    (DOUBLE, Outcome.CORRECT, None),
    ("no code at all", Outcome.NO_CODE, "no_fence"),
    ("```python\ndef twice(x):\n    return 2 * x\n```", Outcome.NO_CODE, "no_entry_point"),
    ("```python\ndef double(x):\n    return 2 *\n```", Outcome.SYNTAX_ERROR, "syntax"),
    ("```python\nimport subprocess\ndef double(x):\n    return 2 * x\n```", Outcome.FORBIDDEN, "module:subprocess"),
    ("```python\ndef double(x):\n    return 2 * x + 1\n```", Outcome.WRONG, "wrong_value"),
    ("```python\ndef double(x):\n    return {'a': object()}\n```", Outcome.WRONG, "output_type"),
    ("```python\ndef double(x):\n    raise KeyError(x)\n```", Outcome.CRASHED, "exception:KeyError"),
    ("```python\ndef double(x):\n    while True:\n        pass\n```", Outcome.TIMEOUT, None),
]


@pytest.mark.parametrize(("completion", "outcome", "reason"), CASES)
def test_each_kind_of_completion_gets_its_outcome(
    sandbox: ProcessSandbox, completion: str, outcome: Outcome, reason: str | None
) -> None:
    task = double_task(limits=Limits(wall_s=2.0, cpu_s=0.5))
    verdict = check(sandbox, task, Submission(completion=completion), GradeSettings())
    assert verdict.outcome is outcome
    if reason is not None:
        assert verdict.reason == reason


def test_one_crash_costs_its_own_test_and_no_other(sandbox: ProcessSandbox) -> None:
    task = double_task(inputs=lambda rng, purpose: [(1,), (0,), (2,), (3,)])
    completion = "```python\ndef double(x):\n    return 2 * x if 1 / x else 0\n```"
    verdict = check(sandbox, task, Submission(completion=completion), GradeSettings())
    assert verdict.outcome is Outcome.CRASHED
    assert verdict.share_passed == 0.75


def test_a_task_without_tests_is_an_error_and_never_a_pass(sandbox: ProcessSandbox) -> None:
    for broken in (double_task(inputs=None, oracle=None), double_task(inputs=lambda rng, purpose: [])):
        with pytest.raises(TaskError, match="test"):
            check(sandbox, broken, Submission(completion=DOUBLE), GradeSettings())


def test_a_failing_oracle_is_the_task_s_fault_not_the_candidate_s(sandbox: ProcessSandbox) -> None:
    task = double_task(oracle=lambda x: 1 // 0)
    with pytest.raises(TaskError, match="oracle of task test/double"):
        check(sandbox, task, Submission(completion=DOUBLE), GradeSettings())


def test_hidden_inputs_differ_between_verdicts_unless_a_seed_is_given(sandbox: ProcessSandbox) -> None:
    seen: list[int] = []

    def remember(x: int) -> int:
        seen.append(x)
        return 2 * x

    task = double_task(oracle=remember)
    for settings in (GradeSettings(), GradeSettings(), GradeSettings(seed=5), GradeSettings(seed=5)):
        check(sandbox, task, Submission(completion=DOUBLE), settings)
    first, second, third, fourth = (seen[i : i + 5] for i in range(0, 20, 5))
    assert first != second
    assert third == fourth


def test_the_answer_that_was_split_off_is_graded_instead_of_the_whole_completion(sandbox: ProcessSandbox) -> None:
    draft = "thinking ```python\ndef double(x):\n    return x\n```\n"
    verdict = check(sandbox, double_task(), Submission(completion=draft, answer=DOUBLE), GradeSettings())
    assert verdict.outcome is Outcome.CORRECT


def test_a_generator_counts_where_the_task_returns_a_sequence_and_nowhere_else(sandbox: ProcessSandbox) -> None:
    completion = "```python\ndef double(x):\n    yield 2 * x\n```"
    for returns_sequence, outcome in ((True, Outcome.CORRECT), (False, Outcome.WRONG)):
        task = double_task(oracle=lambda x: [2 * x], returns_sequence=returns_sequence)
        assert check(sandbox, task, Submission(completion=completion), GradeSettings()).outcome is outcome


def test_the_memory_that_a_program_took_is_reported(sandbox: ProcessSandbox) -> None:
    def peak(body: str) -> int:
        verdict = check(sandbox, double_task(), Submission(completion=DOUBLE.replace("x + x", body)), GradeSettings())
        assert verdict.execution is not None
        assert verdict.execution.max_rss_bytes is not None
        return verdict.execution.max_rss_bytes

    assert peak("len(b'x' * 100_000_000) and x + x") > peak("x + x") + 80_000_000


def source_of(verdict: Verdict) -> str:
    assert verdict.candidate is not None
    return verdict.candidate.source


def test_a_program_that_is_right_only_until_it_is_timed_loses_its_verdict(sandbox: ProcessSandbox) -> None:
    task = double_task()
    seldom = "```python\nn = 0\ndef double(x):\n    global n\n    n += 1\n    return 2 * x if n == 1 else 0\n```"
    once = double_task(inputs=lambda rng, purpose: [(rng.randrange(10**6),)])
    verdict = check(sandbox, once, Submission(completion=seldom), GradeSettings())
    assert verdict.outcome is Outcome.CORRECT
    timed = with_timing(verdict, time_programs(sandbox, task, [source_of(verdict)], GradeSettings())[0])
    assert timed.outcome is Outcome.WRONG
    assert timed.timing is None


def test_replaying_an_old_answer_pays_only_when_inputs_are_repeated_and_timing_is_credulous(
    sandbox: ProcessSandbox,
) -> None:
    matmul = tasks.get("linalg/matmul")
    body = "    cols = list(zip(*B))\n    {}[[sum(x * y for x, y in zip(r, c)) for c in cols] for r in A]\n"
    replay = (
        "```python\n_memo = {}\ndef matmul(A, B):\n    key = len(A)\n    if key in _memo and key == 32:\n"
        "        return _memo[key]\n" + body.format("_memo[key] = ") + "    return _memo[key]\n```\n"
    )
    verdict = check(sandbox, matmul, Submission(completion=replay), GradeSettings())
    assert verdict.outcome is Outcome.CORRECT
    (on,) = time_programs(sandbox, matmul, [source_of(verdict)], GradeSettings())
    assert isinstance(on, Failure)
    assert on.outcome is Outcome.WRONG
    credulous = TimingSettings(spill_slack=1e9, first_slack=1e9, setup_allowance_ns=10**12)
    careless = GradeSettings(fresh_inputs=False, timing=credulous)
    (off,) = time_programs(sandbox, matmul, [source_of(verdict)], careless)
    assert isinstance(off, Timing)
    assert off.ratio > 5.0


def test_switched_off_defences_are_named() -> None:
    assert GradeSettings().switched_off() == {}
    assert GradeSettings(enforce_static=False).switched_off() == {"enforce_static": False}
