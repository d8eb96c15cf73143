"""100,000 executions, a tenth of them hostile: does anything grow, stay or get lost?

    python benchmarks/sandbox_soak.py [EXECUTIONS]

Prints what grew (descriptors, processes, memory, files in /tmp and /dev/shm) and how each program ended. In the
middle a child, a fork server and a scoring process are killed with SIGKILL. Exit code 1 when anything leaked, was
lost, or ended otherwise than expected.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from outpace.errors import SandboxUnavailable
from outpace.sandbox import ProcessSandbox
from outpace.sandbox.pool import Pool
from outpace.schema import Limits

HONEST = ("def f(x): return [x * y for y in range(20)]", "correct")
HOSTILE = (
    ("import os\ndef f(x):\n    while True: os.fork()", "forbidden"),
    ("def f(x): return bytearray(2**40)", "resource"),
    ("def f(x): return 'x' * 2_000_000", "resource"),
    ("import os\ndef f(x): os.write(3, b'\\xff' * 1000)", "tampering"),
    ("import os\ndef f(x): os._exit(0)", "crashed"),
    ("import _thread\ndef f(x): _thread.start_new_thread(print, ())", "forbidden"),
    ("def f(x): open('/tmp/planted', 'w')", "forbidden"),
    ("def f(x):\n    while True: print('x' * 10000)", "timeout"),
    ("import os\ndef f(x): os.memfd_create('x')", "forbidden"),
    ("def f(x): return type('L', (list,), {})()", "wrong"),
)
LIMITS = Limits(cpu_s=0.05, reply_bytes=2**20)
BATCH = 500


def batch(sandbox: ProcessSandbox, first: int, count: int) -> dict[str, int]:
    """Execute programs `first` to `first + count`; every tenth is hostile."""
    ended: Counter[str] = Counter()
    for number in range(first, first + count):
        source, expected = HOSTILE[number // 10 % len(HOSTILE)] if number % 10 == 0 else HONEST
        ended[_outcome(sandbox, source, expected)] += 1
    return dict(ended)


def _outcome(sandbox: ProcessSandbox, source: str, expected: str) -> str:
    instance = sandbox.open(source, "f", LIMITS)
    result = instance.call((3,))
    failure = result.failure or instance.close()
    instance.close()
    outcome = failure.outcome.value if failure else "correct"
    return outcome if outcome == expected else f"{outcome} instead of {expected}: {source!r}"


def lose_a_child(sandbox: ProcessSandbox) -> str:
    """Kill a child in the middle of its life."""
    instance = sandbox.open(HONEST[0], "f", LIMITS)
    os.kill(instance._pid, signal.SIGKILL)
    try:
        instance.call((3,))
    except SandboxUnavailable:
        return "reported as ours"
    return "blamed on the candidate"


def lose_the_fork_server(sandbox: ProcessSandbox) -> str:
    """Kill the fork server; the next execution needs a new one."""
    os.kill(processes_below(os.getpid())[0], signal.SIGKILL)
    for _ in range(2):
        with contextlib.suppress(SandboxUnavailable):  # the kill may arrive in the middle of this very execution
            return "replaced" if _outcome(sandbox, *HONEST) == "correct" else "lost"
    return "not replaced"


def processes_below(pid: int) -> list[int]:
    """All descendants, zombies included."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *processes_below(child)]
    return found


def state(pool: Pool) -> dict[str, Any]:
    """What could grow."""
    everyone = [os.getpid(), *processes_below(os.getpid())]
    return {
        "descriptors": sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in everyone),
        "processes": len(everyone),
        "memory_mb": round(sum(_rss_bytes(pid) for pid in everyone) / 2**20, 1),
        "files": sum(Path(folder, "planted").exists() for folder in ("/tmp", "/dev/shm")),
    }


def _rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def main(executions: int) -> int:
    """Run the soak; the exit code."""
    ended: Counter[str] = Counter()
    with Pool(workers=2, job_timeout_s=600.0) as pool:
        for future in [pool.submit(batch, first, BATCH) for first in (0, BATCH)]:
            ended.update(future.result())  # warm: buffers and allocators have their size
        before, began_s = state(pool), time.monotonic()
        futures = [pool.submit(batch, first, BATCH) for first in range(0, executions, BATCH)]
        for index, future in enumerate(futures):
            ended.update(future.result())
            if index == len(futures) // 2:
                kills = [pool.submit(lose_a_child).result(), pool.submit(lose_the_fork_server).result()]
                os.kill(processes_below(os.getpid())[0], signal.SIGKILL)  # a scoring process, in the middle of a batch
        after, wall_s = state(pool), time.monotonic() - began_s
    left = processes_below(os.getpid())
    grown = {key: round(after[key] - before[key], 1) for key in before}
    clean = (
        all(grown[key] <= 0 for key in ("descriptors", "processes", "files"))
        and grown["memory_mb"] < 20
        and not left
        and not any("instead" in outcome for outcome in ended)
        and sum(ended.values()) == executions + 2 * BATCH
        and kills == ["reported as ours", "replaced"]
    )
    report = {"executions": sum(ended.values()), "per_second": round(executions / wall_s, 1), "ended": dict(ended)}
    print(json.dumps(report | {"grown": grown, "killed": kills, "left_behind": left, "clean": clean}, indent=2))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
