"""`outpace bench timing`: how precise, how cheap and how steady speed ratios are, ours beside the article's harness.

Programs of known cost are measured on a quiet machine, beside one busy neighbour and beside two; both harnesses
take turns within one run. What is quiet is the caller's business: `load_at_start` says what else was running.
"""

import math
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

from outpace.bench.article import SWEEP_BYTES, ArticleHarness
from outpace.bench.neighbours import busy_neighbours
from outpace.bench.timing_programs import (
    FAST_PRODUCT,
    GROUP_OF_8,
    KNOWN_RATIO,
    LOOPS,
    PRODUCTS,
    Workload,
    loop_program,
)
from outpace.sandbox.pool import Pool
from outpace.schema import Limits, Sandbox, Timing
from outpace.timing import measure_group, null_source

APART = {"5pct": 1.05, "10pct": 1.10, "25pct": 1.25}
"""How much slower the slower program of a pair is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How often each thing is measured in each phase."""

    ours: int = 100
    article: int = 10
    groups: int = 20
    sweep_bytes: int = SWEEP_BYTES


QUICK = Effort(ours=25, article=3, groups=5)


class Measured(NamedTuple):
    """What a harness says of one program, 1.0 being as fast as the reference; None: it failed."""

    ratio: float | None
    paid: float | None
    """The ratio that a reward is made of; the article's pays for the plain ratio."""


class Harness(Protocol):
    """Whatever turns sources into speed ratios."""

    def measure(self, workload: Workload, sources_G: Sequence[str]) -> list[Measured]:
        """The speed of each source over the workload's reference."""
        ...


@dataclass(slots=True)
class Sample:
    """What one harness showed in one phase."""

    known: list[float] = field(default_factory=list)
    """Ratios of a program that is `KNOWN_RATIO` times as fast as the reference."""
    product: list[float] = field(default_factory=list)
    """Ratios of one fast 32x32 product over the naive one."""
    same: list[Measured] = field(default_factory=list)
    """Programs that are identical to the reference."""
    right_5pct: list[bool] = field(default_factory=list)
    right_10pct: list[bool] = field(default_factory=list)
    right_25pct: list[bool] = field(default_factory=list)
    cost_ms: list[float] = field(default_factory=list)
    group_ms: list[float] = field(default_factory=list)

    def __add__(self, other: "Sample") -> "Sample":
        return Sample(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Ours:
    """The product: a pinned scoring process with its own sandbox."""

    def __init__(self, pool: Pool, rng: random.Random) -> None:
        self._pool, self._rng = pool, rng

    def measure(self, workload: Workload, sources_G: Sequence[str]) -> list[Measured]:
        """The speed of the sources, measured together."""
        return self._pool.submit(measure, workload, tuple(sources_G), self._rng.random()).result()


class Article:
    """The article's harness; it times each workload's reference once, when the run starts."""

    def __init__(self, rng: random.Random, sweep_bytes: int) -> None:
        self._harness = {
            workload.entry_point: ArticleHarness(
                workload.reference, workload.entry_point, workload.make_args(rng), sweep_bytes
            )
            for workload in (LOOPS, PRODUCTS)
        }

    def measure(self, workload: Workload, sources_G: Sequence[str]) -> list[Measured]:
        """The speed of the sources, one after the other."""
        ratios_G = [self._harness[workload.entry_point].ratio(source) for source in sources_G]
        return [Measured(ratio, ratio) for ratio in ratios_G]


def measure(sandbox: Sandbox, workload: Workload, sources_G: Sequence[str], seed: float) -> list[Measured]:
    """The product's own measurement, in a scoring process."""
    rng = random.Random(seed)

    def opener(source: str) -> Callable[[], Any]:
        return lambda: sandbox.open(source, workload.entry_point, Limits())

    results = measure_group(
        [opener(source) for source in sources_G],
        opener(workload.reference),
        lambda: workload.make_args(rng),
        workload.is_right,
        open_null=opener(null_source(workload.entry_point)),
        clock=sandbox.isolation.clock,
        rng=rng,
    )
    return [
        Measured(result.ratio, result.bound_nearest_1) if isinstance(result, Timing) else Measured(None, None)
        for result in results
    ]


def run(
    effort: Effort | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda progress: None,
) -> dict[str, Any]:
    """Measure both harnesses, quiet and loaded; `on_progress` is told how far it is.

    Returns:
        `{"outpace": {...}, "article": {...}, "machine": {...}}`. `cv_*` is the coefficient of variation of the ratio of
        a program of known speed, and `bias` how far its median is from the truth, quiet; `ordering_*` the share of
        pairs ordered right, `false_speedup` the share of identical programs called more than 5 % apart (or failed),
        and `false_credit` the share of them that a reward would pay for or punish, all over all phases; `drift` is
        the largest relative change of the median ratio beside busy neighbours; `cost_ms` the median wall-clock time
        of one candidate alone, quiet.
    """
    effort = effort or (QUICK if quick else Effort())
    rng = random.Random(seed)
    load_at_start = os.getloadavg()[0]
    cores = sorted(os.sched_getaffinity(0))
    with Pool(workers=1) as pool:
        harnesses: dict[str, Harness] = {"outpace": Ours(pool, rng), "article": Article(rng, effort.sweep_bytes)}
        phases = {
            count: _phase(harnesses, effort, [cores[i % len(cores)] for i in range(count)], on_progress)
            for count in (0, 1, 2)
        }
    report: dict[str, Any] = {
        name: summary({count: phase[name] for count, phase in phases.items()}) for name in harnesses
    }
    report["machine"] = {"cores": len(cores), "load_at_start": load_at_start}
    return report


def summary(phases: dict[int, Sample]) -> dict[str, float]:
    """The figures of one harness from its samples with 0, 1 and 2 busy neighbours."""
    quiet, loaded = phases[0], phases[2]
    every = phases[0] + phases[1] + phases[2]
    middle = statistics.median(quiet.known)
    drift = {count: abs(statistics.median(phases[count].known) / middle - 1.0) for count in (1, 2)}
    return {
        "cv_quiet": variation(quiet.known),
        "cv_loaded": variation(loaded.known),
        "cv_product_quiet": variation(quiet.product),
        "cv_product_loaded": variation(loaded.product),
        "bias": middle / KNOWN_RATIO - 1.0,
        "false_speedup": statistics.mean(m.ratio is None or abs(m.ratio - 1.0) > 0.05 for m in every.same),
        "false_credit": statistics.mean(m.paid != 1.0 for m in every.same),
        **{f"ordering_{name}": statistics.mean(getattr(every, f"right_{name}")) for name in APART},
        "drift": max(drift.values()),
        "drift_1_neighbour": drift[1],
        "drift_2_neighbours": drift[2],
        "cost_ms": statistics.median(quiet.cost_ms),
        "cost_loaded_ms": statistics.median(loaded.cost_ms),
        "group_of_8_ms": statistics.median(quiet.group_ms),
        "measured": len(every.same),
    }


def variation(ratios: Sequence[float]) -> float:
    """Coefficient of variation: standard deviation over mean."""
    return statistics.stdev(ratios) / statistics.mean(ratios)


def _phase(
    harnesses: dict[str, Harness], effort: Effort, busy_cores: Sequence[int], on_progress: Callable[[str], None]
) -> dict[str, Sample]:
    """Both harnesses in turns, beside burners on `busy_cores`."""
    samples = {name: Sample() for name in harnesses}
    every = max(1, effort.ours // effort.article)
    with busy_neighbours(busy_cores):
        for turn in range(effort.ours):
            on_progress(f"{len(busy_cores)} busy neighbours, turn {turn + 1} of {effort.ours}")
            _probe(harnesses["outpace"], samples["outpace"])
            if turn % every == 0:
                _probe(harnesses["article"], samples["article"])
            if turn < effort.groups:
                samples["outpace"].group_ms.append(_timed(harnesses["outpace"], PRODUCTS, GROUP_OF_8)[1])
        samples["article"].group_ms.append(_timed(harnesses["article"], PRODUCTS, GROUP_OF_8)[1])
    return samples


def _probe(harness: Harness, sample: Sample) -> None:
    known, cost_ms = _timed(harness, LOOPS, [loop_program(1 / KNOWN_RATIO)])
    sample.known += [m.ratio for m in known if m.ratio is not None]
    sample.cost_ms.append(cost_ms)
    sample.product += [m.ratio for m in harness.measure(PRODUCTS, [FAST_PRODUCT]) if m.ratio is not None]
    sample.same += harness.measure(LOOPS, [LOOPS.reference, LOOPS.reference])
    for name, factor in APART.items():
        slower, faster = harness.measure(LOOPS, [loop_program(factor), loop_program()])
        getattr(sample, f"right_{name}").append((faster.ratio or 0.0) > (slower.ratio or math.inf))


def _timed(harness: Harness, workload: Workload, sources_G: Sequence[str]) -> tuple[list[Measured], float]:
    start_s = time.perf_counter()
    measured_G = harness.measure(workload, sources_G)
    return measured_G, (time.perf_counter() - start_s) * 1e3
