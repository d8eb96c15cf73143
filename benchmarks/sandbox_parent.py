"""Executions per second as the calling process grows: ours beside human-eval's harness, which forks the caller.

    python benchmarks/sandbox_parent.py --gigabytes 0 1 10 --torch

A trainer holds gigabytes. The scoring processes are exec'd, so its size costs them nothing; a harness that forks copies
the caller's page tables for every program. One core each; memory is what `malloc` gives, and really touched.
"""

import argparse
import json
import os
from pathlib import Path

from outpace.bench.sandbox import human_eval, turn
from outpace.sandbox.pool import Pool

_HOST = None
"""`human_eval` runs in this process and needs no sandbox."""


def per_second(spent_ns: list[int]) -> float:
    """Rate of executions that took so long."""
    return round(len(spent_ns) / (sum(spent_ns) / 1e9), 1)


def theirs(seconds: float) -> list[int]:
    """Nanoseconds of each execution by the harness, forked from this very process."""
    return turn(_HOST, "human_eval", seconds)  # type: ignore[arg-type]


def main() -> None:
    """Print one JSON line per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[0.0, 1.0, 4.0])
    parser.add_argument("--torch", action="store_true", help="Import torch first, as a trainer does.")
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    if options.torch:
        import torch  # noqa: F401 - only its presence counts
    human_eval(_HOST)  # type: ignore[arg-type]
    held = bytearray()
    with Pool(workers=1) as pool:
        for gigabytes in sorted(options.gigabytes):
            held = bytearray(b"x") * int(gigabytes * 1e9)
            ours = per_second(pool.submit(turn, "outpace", options.seconds).result())
            other = per_second(theirs(options.seconds))
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            row = {"parent_GB": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e9, 2), "outpace": ours}
            row |= {"human_eval": other, "ratio": round(ours / other, 1)}
            print(json.dumps(row), flush=True)
    del held


if __name__ == "__main__":
    main()
