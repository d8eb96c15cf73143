"""What happens inside a call of a millisecond: the program times pieces of itself, in the sandbox, on a pinned core.

    python benchmarks/timing_bursts.py

A burst is a piece that takes 1.15 times the calm level or more. Calls of processes that the parent would call calm from
readings at both ends have them too. The scatter of calls without any burst bounds how precise a ratio can be.
"""

import argparse
import random
import statistics

from outpace.sandbox.pool import Pool
from outpace.schema import Limits, Sandbox

SOURCE = """
import time
def work(xs):
    clock, s, pieces_ns = time.perf_counter_ns, 0, []
    for _ in range(53):
        start_ns = clock()
        for i in range(300):
            s = (s * 31 + xs[i & 63]) % 1000003
        pieces_ns.append(clock() - start_ns)
    return pieces_ns
"""
CALLS = 8
Call = tuple[int, list[int]]
"""The CPU time that the parent charged, and the pieces that the program saw, in nanoseconds."""


def calls_of_one_process(sandbox: Sandbox, seed: int) -> list[Call]:
    """All calls but the first."""
    rng = random.Random(seed)
    instance = sandbox.open(SOURCE, "work", Limits())
    results = [instance.call(([rng.randrange(1_000_000) for _ in range(64)],)) for _ in range(CALLS)]
    instance.close()
    return [(result.cpu_ns, result.value) for result in results[1:] if result.cpu_ns is not None and result.value]


def main() -> None:
    """Print how many calls met bursts, how much they cost, and how the others scatter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=160)
    options = parser.parse_args()
    with Pool(workers=1) as pool:
        processes = [pool.submit(calls_of_one_process, seed).result() for seed in range(options.processes)]
    calls = [call for process in processes for call in process]
    calm_ns = statistics.quantiles(statistics.median(pieces) for _, pieces in calls)[0]

    def excess_ns(call: Call) -> float:
        return sum(piece - calm_ns for piece in call[1] if piece > 1.15 * calm_ns)

    level = [call for call in calls if statistics.median(call[1]) < 1.15 * calm_ns]
    quarters = statistics.quantiles([excess_ns(call) / 1e3 for call in level], n=20)
    print(f"{len(calls)} calls, {len(level) / len(calls):.0%} of them at the calm level for the most part; of these:")
    print(
        f"without a burst {sum(excess_ns(call) == 0 for call in level) / len(level):.0%}; excess of a call, us: ",
        end="",
    )
    print(f"median {quarters[9]:.0f}, upper quarter {quarters[14]:.0f}, upper tenth {quarters[17]:.0f}")
    clean = [[ns for ns, pieces in process if excess_ns((ns, pieces)) == 0] for process in processes]
    clean = [calls_ns for calls_ns in clean if len(calls_ns) > 2]
    within = [statistics.variance(calls_ns) / statistics.fmean(calls_ns) ** 2 for calls_ns in clean]
    means_ns = [statistics.fmean(calls_ns) for calls_ns in clean]
    print(
        f"calls without a burst scatter by {statistics.fmean(within) ** 0.5:.1%} within a process, and the means of ",
        end="",
    )
    print(f"{len(clean)} processes by {statistics.stdev(means_ns) / statistics.fmean(means_ns):.1%}, drift included")


if __name__ == "__main__":
    main()
