"""Compares the timing of two source trees in turns, so that both meet the same machine: precision, order and cost.

    git worktree add /tmp/before HEAD~10
    python benchmarks/timing_turns.py --rounds 14 /tmp/before/src src

A round takes each tree 6 to 20 seconds. Of the group of 8 it says the cost, and how often all of it was in order.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outpace.bench.timing import measure, variation
from outpace.bench.timing_programs import FAST_PRODUCT, GROUP_OF_8, KNOWN_RATIO, LOOPS, PRODUCTS, Workload, loop_program
from outpace.sandbox.pool import Pool

MEASUREMENTS = 10
"""Of each kind, in one round of one tree."""

KINDS: dict[str, tuple[Workload, Sequence[str]]] = {
    "known": (LOOPS, [loop_program(1 / KNOWN_RATIO)]),
    "equal": (LOOPS, [LOOPS.reference, LOOPS.reference]),
    "far": (PRODUCTS, [FAST_PRODUCT]),
    "group": (PRODUCTS, GROUP_OF_8),
}


def one_round() -> dict[str, list[Any]]:
    """For each kind what every measurement took, said and paid."""
    found: dict[str, list[Any]] = defaultdict(list)
    with Pool(workers=1) as pool:
        for _ in range(MEASUREMENTS):
            for kind, (workload, sources_G) in KINDS.items():
                start_s = time.perf_counter()
                measured_G = pool.submit(measure, workload, tuple(sources_G), random.random()).result()
                wall_ms = (time.perf_counter() - start_s) * 1e3
                found[kind].append([wall_ms, [m.ratio for m in measured_G], [m.paid for m in measured_G]])
    return found


def in_order(ratios_G: Sequence[float]) -> bool:
    """Whether both copies of each program lie above both of every slower one; `GROUP_OF_8` is slowest, fastest, ..."""
    by_speed = [(ratios_G[i], ratios_G[i + 4]) for i in (0, 2, 3, 1)]
    return all(max(slower) < min(faster) for slower, faster in itertools.pairwise(by_speed))


def line(found: dict[str, list[Any]]) -> str:
    """What one tree showed in all rounds."""
    known = [ratios_G[0] for _, ratios_G, _ in found["known"]]
    equal = [ratio for _, ratios_G, _ in found["equal"] for ratio in ratios_G]
    paid = [paid != 1.0 for _, _, paid_G in found["equal"] for paid in paid_G]
    group_ms = [wall_ms for wall_ms, _, _ in found["group"]]
    cost = {kind: statistics.median(wall_ms for wall_ms, _, _ in rows) for kind, rows in found.items()}
    return (
        f"cv {variation(known):.2%}, off by 8 % {sum(abs(r / KNOWN_RATIO - 1) > 0.08 for r in known)} of {len(known)}; "
        f"equal: off by 5 % {sum(abs(r - 1) > 0.05 for r in equal)}, paid {sum(paid)} of {len(paid)}; "
        f"group in order {sum(in_order(r) for _, r, _ in found['group'])} of {len(group_ms)}; "
        + ", ".join(f"{kind} {ms:.0f} ms" for kind, ms in cost.items())
        + f" (quietest quarter {statistics.quantiles(group_ms)[0]:.0f})"
    )


def main() -> None:
    """Run the trees in turns, each in a process of its own, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("trees", nargs="*", help="folders that hold the package outpace")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_round()))
        return
    found: dict[str, dict[str, list[Any]]] = {tree: defaultdict(list) for tree in options.trees}
    for _ in range(options.rounds):
        for tree, rows in found.items():
            ran = subprocess.run(
                [sys.executable, __file__, "--one"],
                env=os.environ | {"PYTHONPATH": str(Path(tree).resolve())},
                capture_output=True,
                text=True,
                check=True,
            )
            for kind, measured in json.loads(ran.stdout).items():
                rows[kind] += measured
    for tree, rows in found.items():
        print(f"{tree}: {line(rows)}")


if __name__ == "__main__":
    main()
