"""Scoring processes: pinned, replaced when they die or hang, and never left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
import sandbox_jobs as jobs

from outpace.errors import ConfigError, ScorerDied, TaskError
from outpace.sandbox.pool import Pool, cores

HERE = str(Path(__file__).parent)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=2) as running:
        yield running


def test_jobs_run_beside_a_sandbox_and_return_what_they_return(pool):
    futures = [pool.submit(jobs.double, number) for number in range(8)]
    assert [future.result() for future in futures] == [2 * number for number in range(8)]


def test_a_scorer_is_pinned_and_its_clock_exact(pool):
    _, affinity, clock = pool.submit(jobs.whereabouts).result()
    assert len(affinity) == 1
    assert clock == "exact"
    assert pool.isolation.clock == "exact"


def test_a_job_can_be_sent_to_a_given_scorer(pool):
    pids = [{pool.submit_to(worker, jobs.whereabouts).result()[0] for _ in range(3)} for worker in (0, 1)]
    assert [len(found) for found in pids] == [1, 1]
    assert pids[0] != pids[1]


def test_a_job_that_may_wait_begins_after_those_that_may_not(tmp_path):
    ended: list[str] = []
    with Pool(workers=1) as pool:
        first = pool.submit(jobs.wait_for_file, str(tmp_path / "go"))
        for name in ("late", "later"):
            pool.submit_later(jobs.double, 1).add_done_callback(lambda _, name=name: ended.append(name))
        for name in ("soon", "next"):
            pool.submit(jobs.double, 1).add_done_callback(lambda _, name=name: ended.append(name))
        last = pool.submit_later(jobs.double, 1)
        (tmp_path / "go").touch()
        assert (first.result(30), last.result(30)) == ("there", 2)
    assert ended == ["soon", "next", "late", "later"]


def test_functions_of_a_notebook_can_be_sent(pool):
    factor = 3
    assert pool.submit(lambda sandbox, x: x * factor, 5).result() == 15


def test_an_error_of_a_job_is_raised_here(pool):
    with pytest.raises(TaskError, match="no such task"):
        pool.submit(jobs.refuse).result()


def test_an_error_that_does_not_pickle_is_told_as_text(pool):
    with pytest.raises(ScorerDied, match="cannot be made again"):
        pool.submit(jobs.fail_oddly).result()


def test_what_cannot_be_sent_is_refused_with_its_name(pool):
    with pytest.raises(ConfigError, match="double cannot be sent"):
        pool.submit(jobs.double, threading.Lock())


def test_a_scorer_that_dies_is_replaced_and_its_call_retried_once(pool, tmp_path):
    assert pool.submit(jobs.die_the_first_time, str(tmp_path / "marker")).result() == "second try"
    assert pool.submit(jobs.double, 2).result() == 4


def test_a_call_that_kills_its_scorer_twice_is_ours_and_said_so(pool):
    with pytest.raises(ScorerDied, match="died with a call in flight"):
        pool.submit(jobs.die).result()
    assert pool.submit(jobs.double, 2).result() == 4


def test_an_unavailable_sandbox_is_tried_twice(pool, tmp_path):
    assert pool.submit(jobs.fail_the_first_time, str(tmp_path / "marker")).result() == "second try"


def test_a_killed_zygote_is_replaced_inside_its_scorer(pool):
    assert pool.submit(jobs.kill_the_zygote).result() == 8


def test_a_hung_job_gives_its_slot_back():
    with Pool(workers=1, job_timeout_s=1.0) as pool:
        hung = pool.submit(jobs.hang)
        after = pool.submit(jobs.double, 3)
        with pytest.raises(ScorerDied, match="no answer within"):
            hung.result()
        assert after.result() == 6


def test_it_works_from_asyncio(pool):
    async def both() -> list[int]:
        return await asyncio.gather(*(asyncio.wrap_future(pool.submit(jobs.double, n)) for n in range(4)))

    assert asyncio.run(both()) == [0, 2, 4, 6]


def test_one_core_can_hold_several_scorers():
    with Pool(workers=2, cores_used=[min(os.sched_getaffinity(0))]) as pool:
        assert [pool.submit_to(worker, jobs.double, 1).result() for worker in (0, 1)] == [2, 2]


def test_closing_ends_jobs_in_flight_and_cancels_those_that_wait(tmp_path):
    pool = Pool(workers=1)
    busy = pool.submit(jobs.hang_in_a_candidate, str(tmp_path / "running"))
    waiting = pool.submit(jobs.double, 1)
    wait_for((tmp_path / "running").exists)
    pool.close()
    with pytest.raises(ScorerDied):
        busy.result()
    with pytest.raises(CancelledError):
        waiting.result()
    with pytest.raises(ScorerDied, match="closed"):
        pool.submit(jobs.double, 1)


@pytest.mark.parametrize("workers", [0, -1])
def test_a_pool_without_workers_is_refused(workers):
    with pytest.raises(ConfigError, match="at least 1 worker"):
        Pool(workers=workers)


def test_ranks_of_one_machine_share_its_cores(monkeypatch):
    mine = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    shares = []
    for rank in ("0", "1"):
        monkeypatch.setenv("LOCAL_RANK", rank)
        shares.append(cores())
    if len(mine) > 1:
        assert sorted(shares[0] + shares[1]) == mine
    else:
        assert shares == [mine, mine]


PARENT = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
import sandbox_jobs as jobs
from outpace.sandbox.pool import Pool
pool = Pool(workers=2)
markers = [sys.argv[1] + str(worker) for worker in (0, 1)]
for worker in (0, 1):
    pool.submit_to(worker, jobs.hang_in_a_candidate, markers[worker])
while not all(map(os.path.exists, markers)):
    time.sleep(0.01)
print("running", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("end", ["time.sleep(600)", "sys.exit(0)", "raise KeyboardInterrupt"])
def test_nothing_is_left_when_the_pools_process_ends_in_mid_run(tmp_path, end):
    """Killed, left without closing, or interrupted, each time with candidates running."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT + end, str(tmp_path / "running"), HERE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "running\n"
    everyone = descendants(parent.pid)
    assert len(everyone) >= 6  # two scorers, each with a fork server and a candidate at least
    if "sleep" in end:
        parent.send_signal(signal.SIGKILL)
    parent.communicate("go\n")
    wait_for(lambda: not any(map(is_alive, everyone)))


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    except OSError:
        pass
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition) -> None:
    """Until it holds; the test's own timeout is the bound."""
    while not condition():
        time.sleep(0.02)
