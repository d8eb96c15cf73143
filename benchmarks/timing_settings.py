"""Compares settings of the timing in turns, so that they meet the same machine: precision, order and cost of each.

    python benchmarks/timing_settings.py --repeats 50 "" "trials=3" "min_pairs=3, clear_half_width=0.03"

Each argument is a list of keyword arguments of `TimingSettings`; an empty one stands for the defaults.
"""

import argparse
import random
import statistics
import time
from typing import Any

from outpace.bench.timing import variation
from outpace.bench.timing_programs import KNOWN_RATIO, LOOPS, loop_program
from outpace.sandbox.pool import Pool
from outpace.schema import Limits, Sandbox, Timing
from outpace.timing import TimingSettings, measure_group, null_source


def measure(sandbox: Sandbox, sources_G: list[str], settings: TimingSettings, seed: float) -> list[Timing]:
    """Timings of loop programs, in a scoring process; a failure of theirs is left out."""
    rng = random.Random(seed)

    def opener(source: str) -> Any:
        return lambda: sandbox.open(source, "work", Limits())

    results = measure_group(
        [opener(source) for source in sources_G],
        opener(LOOPS.reference),
        lambda: LOOPS.make_args(rng),
        LOOPS.is_right,
        settings,
        open_null=opener(null_source("work")),
        clock=sandbox.isolation.clock,
        rng=rng,
    )
    return [result for result in results if isinstance(result, Timing)]


def main() -> None:
    """Print one line per list of settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("settings", nargs="*", default=[""])
    options = parser.parse_args()
    variants = {text: eval(f"TimingSettings({text})", {"TimingSettings": TimingSettings}) for text in options.settings}
    known: dict[str, list[Timing]] = {text: [] for text in variants}
    same: dict[str, list[Timing]] = {text: [] for text in variants}
    right: dict[str, list[bool]] = {text: [] for text in variants}
    cost_ms: dict[str, list[float]] = {text: [] for text in variants}
    with Pool(workers=1) as pool:
        for turn in range(options.repeats):
            for text, settings in variants.items():
                start_s = time.perf_counter()
                known[text] += pool.submit(measure, [loop_program(1 / KNOWN_RATIO)], settings, turn).result()
                cost_ms[text].append((time.perf_counter() - start_s) * 1e3)
                same[text] += pool.submit(measure, [LOOPS.reference], settings, turn).result()
                pair = pool.submit(measure, [loop_program(1.05), loop_program()], settings, turn).result()
                right[text].append(len(pair) == 2 and pair[1].ratio > pair[0].ratio)
    for text in variants:
        print(
            f"{text or 'defaults':40} cv {variation([t.ratio for t in known[text]]):6.2%}"
            f"  off by 5 % {statistics.mean(abs(t.ratio - 1) > 0.05 for t in same[text]):6.2%}"
            f"  paid {statistics.mean(t.bound_nearest_1 != 1.0 for t in same[text]):6.2%}"
            f"  5 % apart in order {statistics.mean(right[text]):6.1%}"
            f"  pairs {statistics.mean(len(t.candidate_ns_PT) for t in known[text]):.1f}"
            f"  {statistics.median(cost_ms[text]):.0f} ms"
        )


if __name__ == "__main__":
    main()
