"""From raw nanoseconds to a ratio, an interval and a noise floor; pure arithmetic, no clock and no process.

Not covered: whether the readings can be believed (the sandbox's business) and what a ratio is worth (a reward's).

A program is priced by the mean of the lowest third of its trials over all its processes, less what an empty call
costs: noise mostly adds, so the low trials say most, and a few of them scatter less than the least alone. How well
that is known follows from how far the middle trial lies above it. Trials at a calm pace are preferred; where one
side has few, both are priced by the median of their busy trials, scaled by their pace: programs do not all suffer
alike, so that a calm trial of one and a busy trial of the other compare badly. Nothing is free for being done at
another time: when the mean charge of a process exceeds its least one by more than `spill_slack` times what the
reference shows, the mean counts instead (work was moved from one reading into another), and the price is at least what
the first answer cost, import included, up to `first_slack` (work was moved before the first timed call).

Axes: `_P` process pairs, `_T` trials, `_N` tests.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from outpace.schema import Timing
from outpace.timing.settings import TimingSettings

Reading = float | None
"""One charge in nanoseconds; None, NaN, absurdly large or below the floor: void."""

Kind = Literal["calm", "busy", "even"]

_MOST_NS = 1e18
"""Thirty years: what exceeds it is no reading."""

_LEAST_PACE, _MOST_PACE = 0.1, 10.0
"""Paces beyond these count as these: a core is not that much faster or slower than at its best."""

_DOUBT_OF_NULL = 0.2
"""How uncertain the cost of an empty call is. Taking off less of it pulls a ratio towards 1, so the interval is that
of the smaller deduction; and no program is cheaper than this share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReadings:
    """What the parent charged one process: its import, its warm-up call and its timed calls."""

    trials_ns: Sequence[Reading]
    paces_T: Sequence[float] = ()
    """How much slower than at its best the core ran around each trial, 1.0 or more; empty: always at its best."""
    load_ns: Reading = None
    warmup_ns: Reading = None
    warmup_pace: float = 1.0


class _Process(NamedTuple):
    """What one process shows: its calm trials, the others scaled by their pace, and all of them so."""

    calm_ns: Sequence[float]
    busy_ns: Sequence[float]
    even_ns: Sequence[float]

    @property
    def mean_ns(self) -> float:
        return statistics.fmean(self.even_ns)

    @property
    def spill(self) -> float:
        """How far the mean exceeds the least."""
        return self.mean_ns / min(self.calm_ns or self.even_ns)


class Price(NamedTuple):
    """What one call of a program costs, and the half-width (log) within which that is known."""

    ns: float
    half_width: float


def estimate(
    candidate_P: Sequence[ProcessReadings],
    reference_P: Sequence[ProcessReadings],
    settings: TimingSettings | None = None,
    *,
    null_ns: float = 0.0,
    trusted: bool = True,
) -> Timing:
    """The timing of one candidate beside the reference that ran interleaved with it.

    Args:
        candidate_P: readings of the candidate, one entry per fresh process.
        reference_P: readings of the reference; entry p ran together with the candidate's entry p.
        settings: thresholds and bounds.
        null_ns: CPU cost of a call that does nothing, with arguments and result of the same size.
        trusted: False when the clock was not exact; the numbers are kept, but must not be paid for.

    Returns:
        Always finite. Without one usable reading on each side: ratio 1, the widest interval, not trusted.
    """
    settings = settings or TimingSettings()
    raw = {"candidate_ns_PT": _raw(candidate_P, settings), "reference_ns_PT": _raw(reference_P, settings)}
    note = _note(raw.values(), (*candidate_P, *reference_P))
    mine_P, base_P = (_shown(readings_P, settings) for readings_P in (candidate_P, reference_P))
    if not mine_P or not base_P:
        return unknown(settings, note or "no usable reading")
    tolerated = settings.spill_slack * max(1.0, *(process.spill for process in base_P))
    kind = _kind(mine_P, base_P)
    base_ns, cost_ns = _pooled(base_P, kind), _pooled(mine_P, kind, tolerated)
    least_width = settings.min_half_width if min(len(mine_P), len(base_P)) > 1 else settings.single_half_width
    if kind != "calm":
        least_width = max(least_width, settings.rough_half_width)
        note = "; ".join(filter(None, (note, "rarely at a calm pace")))
    first_ns = _first_answer_ns(candidate_P, reference_P, settings)

    def priced(null_ns: float) -> tuple[Price, Price]:
        cost, base = (_price([_net(ns, null_ns, settings) for ns in pool], kind) for pool in (cost_ns, base_ns))
        return cost._replace(ns=max(cost.ns, _net(first_ns, null_ns, settings))), base

    cost, base = priced(null_ns)
    ratio = base.ns / cost.ns
    cost, base = priced(null_ns * (1.0 - _DOUBT_OF_NULL))
    near, width = base.ns / cost.ns, max(least_width, math.hypot(cost.half_width, base.half_width))
    return Timing(
        ratio=_clip(ratio, settings),
        low=_clip(min(near * math.exp(-width), ratio * math.exp(-least_width)), settings),
        high=_clip(max(near * math.exp(width), ratio * math.exp(least_width)), settings),
        noise_floor=max(settings.noise_floor, math.expm1(base.half_width)),
        trusted=trusted,
        note=note,
        **raw,
    )


def _shown(readings_P: Sequence[ProcessReadings], settings: TimingSettings) -> list[_Process]:
    return [process for readings in readings_P if (process := _process(readings, settings))]


def _kind(*sides: Sequence[_Process]) -> Kind:
    """Which trials count: the calm ones where every side has enough of them, else the busy ones, else all.

    One trial among others is no measure, for its pace may have been misread; and where less than a third of the
    trials was calm, calm does not last as long as a call.
    """
    counts = [(sum(len(p.calm_ns) for p in side), sum(len(p.busy_ns) for p in side)) for side in sides]
    if all(calm >= max(min(2, calm + busy), (calm + busy) / 3) for calm, busy in counts):
        return "calm"
    return "busy" if all(busy >= min(2, calm + busy) for calm, busy in counts) else "even"


def _pooled(shown_P: Sequence[_Process], kind: Kind, tolerated: float = math.inf) -> Sequence[float]:
    """The trials of all processes that count; none is cheaper than its process's mean over the spill `tolerated`."""
    pool_ns: list[float] = []
    for process in shown_P:
        least_ns = process.mean_ns / tolerated
        pool_ns += [max(ns, least_ns) for ns in getattr(process, f"{kind}_ns")]
    return pool_ns


def _price(pool_ns: Sequence[float], kind: Kind) -> Price:
    """The mean of the lowest third, and about two standard errors of it; scaled trials err to both sides: their median.

    Its standard error is 0.75 / sqrt(m) of its distance to the median for the noise of real programs (docs/log.md; up
    to 1.3 for bell-shaped noise). At most the whole distance counts, so that a dearer trial never makes a program look
    faster by narrowing its interval.
    """
    if kind != "calm":
        return Price(statistics.median(pool_ns), 0.0)
    ordered = sorted(pool_ns)
    low_ns = statistics.fmean(ordered[: math.ceil(len(ordered) / 3)])
    return Price(low_ns, min(1.0, 1.5 / math.sqrt(len(ordered))) * math.log(statistics.median(ordered) / low_ns))


def unknown(settings: TimingSettings, note: str) -> Timing:
    """The timing when nothing could be measured: it earns nothing and says why."""
    return Timing(
        ratio=1.0,
        low=1.0 / settings.max_ratio,
        high=settings.max_ratio,
        noise_floor=settings.noise_floor,
        trusted=False,
        note=note,
    )


def estimate_over_tests(
    candidate_s_N: Sequence[float], reference_s_N: Sequence[float], settings: TimingSettings | None = None
) -> Timing:
    """One ratio for readings of N different tests, one each, in seconds: the median of the tests' ratios.

    For harnesses that time every test once. A void reading on either side voids its test, no test counts for more
    than `max_ratio`, and the interval spans the middle half of the tests, so that no single one can carry it.
    """
    settings = settings or TimingSettings()
    pairs_N = [
        (candidate_s * 1e9, reference_s * 1e9)
        for candidate_s, reference_s in zip(candidate_s_N, reference_s_N, strict=True)
        if _usable(candidate_s * 1e9, settings) and _usable(reference_s * 1e9, settings)
    ]
    if not pairs_N:
        return unknown(settings, "no usable reading")
    ratios_N = sorted(_clip(reference / candidate, settings) for candidate, reference in pairs_N)
    void = len(candidate_s_N) - len(pairs_N)
    quarter = len(ratios_N) // 4
    return Timing(
        ratio=statistics.median(ratios_N),
        low=ratios_N[quarter],
        high=ratios_N[-1 - quarter],
        noise_floor=settings.noise_floor,
        candidate_ns_PT=tuple((round(candidate),) for candidate, _ in pairs_N),
        reference_ns_PT=tuple((round(reference),) for _, reference in pairs_N),
        note=f"{void} impossible readings voided" if void else "",
    )


def price(readings_P: Sequence[ProcessReadings], settings: TimingSettings) -> Price | None:
    """What one call costs, nothing deducted; None when no trial is usable."""
    shown_P = _shown(readings_P, settings)
    if not shown_P:
        return None
    kind = _kind(shown_P)
    return _price(_pooled(shown_P, kind), kind)


def _process(readings: ProcessReadings, settings: TimingSettings) -> _Process | None:
    paces_T = readings.paces_T or (1.0,) * len(readings.trials_ns)
    trials = [
        (ns, min(max(_LEAST_PACE, pace), _MOST_PACE))
        for ns, pace in zip(readings.trials_ns, paces_T, strict=True)
        if ns is not None and _usable(ns, settings)
    ]
    if not trials:
        return None
    calm_ns: list[float] = []
    busy_ns: list[float] = []
    even_ns: list[float] = []
    for ns, pace in trials:
        is_calm = 1.0 / settings.calm_pace <= pace <= settings.calm_pace
        even_ns.append(ns / (max(pace, 1.0) if is_calm else pace))
        (calm_ns if is_calm else busy_ns).append(ns if is_calm else even_ns[-1])
    return _Process(calm_ns=calm_ns, busy_ns=busy_ns, even_ns=even_ns)


def _first_answer_ns(
    candidate_P: Sequence[ProcessReadings], reference_P: Sequence[ProcessReadings], settings: TimingSettings
) -> float:
    """The least that the candidate's price can be, from what its first answers cost, import included."""
    firsts_ns = [ns for p in candidate_P if (ns := _even_warmup(p)) is not None]
    loads_ns, reference_loads_ns = _finite(p.load_ns for p in candidate_P), _finite(p.load_ns for p in reference_P)
    import_ns = min(loads_ns, default=0.0) - max(reference_loads_ns, default=0.0) - settings.setup_allowance_ns
    first_ns = statistics.median_low(firsts_ns) if firsts_ns else 0.0
    return max(import_ns, 0.0) + first_ns / settings.first_slack


def _even_warmup(process: ProcessReadings) -> float | None:
    if process.warmup_ns is None or not math.isfinite(process.warmup_ns) or process.warmup_ns <= 0:
        return None
    return process.warmup_ns / max(process.warmup_pace, 1.0)


def _finite(readings: Iterable[Reading]) -> list[float]:
    return [ns for ns in readings if ns is not None and math.isfinite(ns)]


def _usable(ns: float, settings: TimingSettings) -> bool:
    return settings.floor_ns <= ns <= _MOST_NS


def _net(ns: float, null_ns: float, settings: TimingSettings) -> float:
    return max(ns - null_ns, _DOUBT_OF_NULL * null_ns, float(settings.floor_ns))


def _clip(ratio: float, settings: TimingSettings) -> float:
    return min(max(ratio, 1.0 / settings.max_ratio), settings.max_ratio)


def _raw(readings_P: Sequence[ProcessReadings], settings: TimingSettings) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(round(ns) for ns in p.trials_ns if ns is not None and _usable(ns, settings)) for p in readings_P)


def _note(kept: Iterable[tuple[tuple[int, ...], ...]], given: Sequence[ProcessReadings]) -> str:
    voided = sum(len(p.trials_ns) for p in given) - sum(len(ns_T) for ns_PT in kept for ns_T in ns_PT)
    return f"{voided} impossible readings voided" if voided else ""
