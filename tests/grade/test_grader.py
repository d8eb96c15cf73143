"""The grader: scoring processes, groups that arrive one by one, and failures of ours that never become numbers."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace import tasks
from outpace.errors import InfrastructureError, TaskError
from outpace.grade import Grader, GradeSettings
from outpace.sandbox import SandboxSettings
from outpace.schema import Outcome, Sandbox, Verdict

RIGHT = "```python\nfrom itertools import accumulate\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n```"
WRONG = "```python\ndef prefix_sums(xs):\n    return xs\n```"
SETTINGS = GradeSettings(sandbox=SandboxSettings(allow_weak_isolation=True))


def outcomes(verdicts: list[Verdict | None]) -> list[Outcome | None]:
    return [None if verdict is None else verdict.outcome for verdict in verdicts]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=2, settings=SETTINGS) as running:
        yield running


def test_a_group_is_graded_in_order_and_its_correct_members_are_timed(grader: Grader) -> None:
    verdicts = grader.grade_group([RIGHT, WRONG, "prose", RIGHT], tasks.get("sequences/prefix_sums"))
    assert outcomes(verdicts) == [Outcome.CORRECT, Outcome.WRONG, Outcome.NO_CODE, Outcome.CORRECT]
    assert [verdict is not None and verdict.timing is not None for verdict in verdicts] == [True, False, False, True]


def test_completions_may_be_added_in_any_order_and_from_any_thread(grader: Grader) -> None:
    group = grader.open_group(tasks.get("sequences/prefix_sums"), 3)
    texts = {2: RIGHT, 0: WRONG, 1: "prose"}
    threads = [threading.Thread(target=group.add, args=item) for item in texts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes(group.result(30)) == [Outcome.WRONG, Outcome.NO_CODE, Outcome.CORRECT]


def test_a_group_refuses_to_be_read_before_it_is_complete_and_to_be_filled_twice(grader: Grader) -> None:
    group = grader.open_group(tasks.get("sequences/prefix_sums"), 2)
    group.add(0, "prose")
    with pytest.raises(ValueError, match="never added"):
        group.result()
    with pytest.raises(ValueError, match="added before"):
        group.add(0, "prose")
    group.add(1, "prose")
    assert outcomes(group.result(30)) == [Outcome.NO_CODE, Outcome.NO_CODE]


def test_a_broken_task_raises_instead_of_scoring_anybody(grader: Grader) -> None:
    from dataclasses import replace

    broken = replace(tasks.get("sequences/prefix_sums"), oracle=_broken_oracle)
    with pytest.raises(TaskError, match="oracle of task sequences/prefix_sums"):
        grader.grade_group([RIGHT, RIGHT], broken)


def _broken_oracle(xs: list[float]) -> list[float]:
    raise ZeroDivisionError


def test_a_scorer_that_dies_again_and_again_gives_none_and_is_counted() -> None:
    from dataclasses import replace

    task = replace(tasks.get("sequences/prefix_sums"), oracle=_kill_own_process)
    with Grader(workers=1, settings=SETTINGS) as grader:
        assert grader.grade_group([RIGHT, WRONG], task) == [None, None]
        assert sum(grader.failures.values()) == 2
        assert grader.first_failure
        with pytest.raises(InfrastructureError):
            grader.grade(RIGHT, task)
        assert grader.grade(WRONG, tasks.get("sequences/prefix_sums")).outcome is Outcome.WRONG


TEN_TIMES = """```python
def matmul(A, B):
    for _ in range(10):
        result = []
        for i in range(len(A)):
            row = []
            for j in range(len(B[0])):
                total = 0.0
                for k in range(len(B)):
                    total += A[i][k] * B[k][j]
                row.append(total)
            result.append(row)
    return result
```"""


def test_a_program_ten_times_slower_than_the_reference_is_right_and_timed_within_the_limits(grader: Grader) -> None:
    verdict = grader.grade(TEN_TIMES, tasks.get("linalg/matmul"))
    assert verdict.outcome is Outcome.CORRECT
    assert verdict.timing is not None
    assert 0.05 < verdict.timing.ratio < 0.2


LOOP = """```python
def prefix_sums(xs):
    total, sums = 0, []
    for x in xs:
        total += x
        sums.append(total)
    return sums
```"""


def test_spellings_of_one_program_share_one_measurement(grader: Grader) -> None:
    respelled = RIGHT.replace("xs", "values").replace("    return", "    # short\n    return")
    one, other, same = grader.grade_group([RIGHT, LOOP, respelled], tasks.get("sequences/prefix_sums"))
    assert one is not None
    assert other is not None
    assert same is not None
    assert one.timing is same.timing
    assert one.timing is not other.timing


def test_a_group_is_timed_in_parts_while_its_last_completion_is_awaited() -> None:
    settings = GradeSettings(sandbox=SandboxSettings(allow_weak_isolation=True), time_together=2)
    with Grader(workers=1, settings=settings) as grader:
        group = grader.open_group(tasks.get("sequences/prefix_sums"), 4)
        for index, completion in enumerate([RIGHT, LOOP, RIGHT]):
            group.add(index, completion)
        deadline_s = time.monotonic() + 30
        while group.timed_so_far < 2 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert group.timed_so_far == 2
        assert not group.done()
        group.add(3, RIGHT)
        verdicts = group.result(30)
    assert all(verdict is not None and verdict.timing is not None for verdict in verdicts)


def test_verdicts_are_handed_out_once_however_checks_and_timings_end() -> None:
    task, programs = tasks.get("sequences/prefix_sums"), [f"{LOOP[:-4]}\n# {n}\n```" for n in range(6)]
    programs = [
        program.replace("total, sums = 0, []", f"total, sums = {n} - {n}, []") for n, program in enumerate(programs)
    ]
    settings = GradeSettings(sandbox=SandboxSettings(allow_weak_isolation=True), time_together=1)
    with Grader(workers=2, settings=settings) as grader:
        for _ in range(5):
            verdicts = grader.grade_group([*programs, WRONG], task)
            assert outcomes(verdicts) == [Outcome.CORRECT] * 6 + [Outcome.WRONG]
        assert grader.failures.total() == 0


def test_the_grader_counts_idle_workers_and_asks_its_groups_when_a_job_ends(tmp_path: Path) -> None:
    task, paths = tasks.get("sequences/prefix_sums"), [tmp_path / "one", tmp_path / "other"]
    with Grader(workers=2, settings=SETTINGS) as grader:
        assert grader.idle_workers == 0, "asking starts no process"
        grader.isolation()
        assert grader.idle_workers == 2
        blockers = [grader.submit(_wait_for, str(paths[0]))]
        assert grader.idle_workers == 1
        group = grader.open_group(task, 3)
        group.add(0, RIGHT)
        _until(lambda: grader.idle_workers == 1)
        blockers.append(grader.submit(_wait_for, str(paths[1])))
        assert grader.idle_workers == 0
        group.add(1, LOOP)
        assert grader.idle_workers == 0, "more jobs than workers are not less than no idle worker"
        for path in paths:
            path.touch()
        _until(lambda: group.timed_so_far == 2)
        assert not group.done()
        group.add(2, WRONG)
        assert outcomes(group.result(30)) == [Outcome.CORRECT, Outcome.CORRECT, Outcome.WRONG]
        assert [blocker.result(30) for blocker in blockers] == [None, None]
        _until(lambda: grader.idle_workers == 2)
    assert grader.idle_workers == 0


def _wait_for(sandbox: Sandbox, path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.005)


def _until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert condition()


def test_the_grader_says_how_long_it_was_busy(grader: Grader) -> None:
    grader.isolation()  # starts the processes, should this test come first
    _until(lambda: grader.idle_workers == 2)  # an error of the task ends a group before its other checks end
    before_s = grader.busy_s
    assert grader.busy_s == before_s
    started_s = time.monotonic()
    grader.grade_group([RIGHT, WRONG], tasks.get("sequences/prefix_sums"))
    assert 0 < grader.busy_s - before_s <= time.monotonic() - started_s
    assert grader.busy_s == grader.busy_s


def _kill_own_process(xs: list[float]) -> list[float]:
    os.kill(os.getpid(), signal.SIGKILL)
    return xs


def test_closing_twice_is_harmless_and_leaves_no_process() -> None:
    grader = Grader(workers=1, settings=SETTINGS)
    pid = grader.pool.submit(_own_pid).result(30)
    grader.close()
    grader.close()
    assert not Path(f"/proc/{pid}").exists()


def test_closing_in_the_middle_of_a_group_starts_no_process_again() -> None:
    grader = Grader(workers=1, settings=SETTINGS)
    group = grader.open_group(tasks.get("sequences/prefix_sums"), 3)
    group.add(0, RIGHT)
    _until(lambda: grader.idle_workers == 1)
    for index in (1, 2):
        group.add(index, "```python\ndef prefix_sums(xs):\n    while True:\n        pass\n```")
    grader.close()
    assert grader._pool is None
    with pytest.raises(InfrastructureError, match="closed"):
        group.result(30)


def _own_pid(sandbox: Sandbox) -> int:
    return os.getpid()
