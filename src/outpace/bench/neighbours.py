"""Busy neighbours: processes that keep a core and its caches busy, and never outlive the benchmark."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

_BURN = """
import os, sys
core, parent = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {core})
table = list(range(200_000))
print("busy", flush=True)
while os.getppid() == parent:
    for _ in range(20):
        sum(table)
"""


@contextmanager
def busy_neighbours(cores: Sequence[int]) -> Iterator[None]:
    """One burner pinned to each of `cores` (a core may be named twice) while the context lasts."""
    with ExitStack() as burners:
        for core in cores:
            command = [sys.executable, "-I", "-S", "-c", _BURN, str(core), str(os.getpid())]
            burner = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own program
            burners.callback(_end, burner)
            assert burner.stdout is not None
            burner.stdout.readline()
        yield


def _end(burner: "subprocess.Popen[bytes]") -> None:
    burner.kill()
    burner.wait()
    if burner.stdout is not None:
        burner.stdout.close()
