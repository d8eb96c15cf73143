"""From raw nanoseconds to a ratio, an interval and a noise floor; pure arithmetic, no clock and no process.

Not covered: whether the readings can be believed (the sandbox's business) and what a ratio is worth (a reward's).

A process is priced by its least trial: noise only adds. Two exceptions keep untimed work from being free: when
the mean charge of its trials exceeds the least one by more than `spill_slack` times what the reference shows, the
mean counts (work was moved from one reading into another), and CPU spent on import and warm-up beyond `setup_allowance_ns` is spread over
the trials. A program is priced by its cheapest process, less what an empty call costs.

Axes: `_P` process pairs, `_T` trials, `_N` tests.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from outpace.schema import Timing
from outpace.timing.settings import TimingSettings

Reading = float | None
"""One charge in nanoseconds; None, NaN, infinite or below the floor: void."""

_WIDTH_OF_NULL = 0.1
"""Least share of the empty call's cost that is left after subtracting it: its own uncertainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReadings:
    """What the parent charged one process: its import, its warm-up call and its timed calls."""

    trials_ns: Sequence[Reading]
    load_ns: Reading = None
    warmup_ns: Reading = None


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
        null_ns: CPU cost of a call that does nothing, with arguments and result of the same size.
        trusted: False when the clock was not exact; the numbers are kept, but must not be paid for.

    Returns:
        Always finite. Without one usable reading on each side: ratio 1, the widest interval, not trusted.
    """
    settings = settings or TimingSettings()
    tolerated = settings.spill_slack * max((_spill(p.trials_ns, settings) for p in reference_P), default=1.0)
    prices_P = [_price(p, tolerated, settings) for p in candidate_P]
    least_P = [_least(p.trials_ns, settings) for p in reference_P]
    raw = {"candidate_ns_PT": _raw(candidate_P, settings), "reference_ns_PT": _raw(reference_P, settings)}
    voided = sum(len(p.trials_ns) for p in (*candidate_P, *reference_P)) - sum(
        len(ns_T) for ns_PT in raw.values() for ns_T in ns_PT
    )
    note = f"{voided} impossible readings voided" if voided else ""
    cost_P = sorted(_net(ns, null_ns, settings) for ns in prices_P if ns is not None)
    base_P = sorted(_net(ns, null_ns, settings) for ns in least_P if ns is not None)
    if not cost_P or not base_P:
        return unknown(settings, note or "no usable reading")
    half_width = _half_width(cost_P, base_P, settings)
    floor = max(settings.noise_floor, math.expm1(_gap(base_P)))
    ratio = base_P[0] / cost_P[0]
    return Timing(
        ratio=_clip(ratio, settings),
        low=_clip(ratio * math.exp(-half_width), settings),
        high=_clip(ratio * math.exp(half_width), settings),
        noise_floor=floor,
        trusted=trusted,
        note=note,
        **raw,
    )


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


def null_cost(readings_T: Sequence[Reading], settings: TimingSettings) -> float:
    """The least usable reading of an empty call; 0 when there is none."""
    return _least(readings_T, settings) or 0.0


def _usable(ns: Reading, settings: TimingSettings) -> bool:
    return ns is not None and math.isfinite(ns) and ns >= settings.floor_ns


def _least(trials_ns: Sequence[Reading], settings: TimingSettings) -> float | None:
    return min((ns for ns in trials_ns if ns is not None and _usable(ns, settings)), default=None)


def _spill(trials_ns: Sequence[Reading], settings: TimingSettings) -> float:
    """Mean charge over least charge of one process; 1 when nothing is usable."""
    ns_T = [ns for ns in trials_ns if ns is not None and _usable(ns, settings)]
    return sum(ns_T) / len(ns_T) / min(ns_T) if ns_T else 1.0


def _price(process: ProcessReadings, tolerated: float, settings: TimingSettings) -> float | None:
    least = _least(process.trials_ns, settings)
    if least is None:
        return None
    paid = least * max(1.0, _spill(process.trials_ns, settings) / tolerated)
    setup = _finite(process.load_ns) + max(0.0, _finite(process.warmup_ns) - least)
    return paid + max(0.0, setup - settings.setup_allowance_ns) / len(process.trials_ns)


def _finite(ns: Reading) -> float:
    return ns if ns is not None and math.isfinite(ns) else 0.0


def _net(ns: float, null_ns: float, settings: TimingSettings) -> float:
    return max(ns - null_ns, _WIDTH_OF_NULL * null_ns, float(settings.floor_ns))


def _gap(sorted_P: Sequence[float]) -> float:
    """How far the two cheapest processes disagree, in log units: how well the minimum is known."""
    return math.log(sorted_P[1] / sorted_P[0]) if len(sorted_P) > 1 else 0.0


def _half_width(cost_P: Sequence[float], base_P: Sequence[float], settings: TimingSettings) -> float:
    least = settings.min_half_width if min(len(cost_P), len(base_P)) > 1 else settings.single_half_width
    return max(least, settings.spread_weight * (_gap(cost_P) + _gap(base_P)))


def _clip(ratio: float, settings: TimingSettings) -> float:
    return min(max(ratio, 1.0 / settings.max_ratio), settings.max_ratio)


def _raw(readings_P: Sequence[ProcessReadings], settings: TimingSettings) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(round(ns) for ns in p.trials_ns if ns is not None and _usable(ns, settings)) for p in readings_P)
