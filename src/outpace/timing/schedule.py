"""The schedule of a measurement: who runs when, on which inputs, and when enough is known.

A *pair* is one fresh process of the reference and one of each candidate that is still in question. In every round of
a pair all of them answer the same few fresh inputs, side by side: the candidates in random order, then the reference,
so that no candidate runs when its answer already exists. A program answers its inputs of a round in a row, because the
first call after another process has run finds cold caches. Values are judged when every process of the pair has ended.
Rounds are added while few trials were calm, and, once there are enough pairs, rounds and then pairs while a verdict is
unclear: its interval is wide for what depends on it, two processes of one program disagree, or two candidates are too
close to be ordered. Less depends on it far from 1, and in a group whose speeds differ widely, since advantages are
relative to the group's spread.

Not covered: pinning and clocks (the sandbox's), and running two measurements on one core (the pool's).
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from outpace.errors import InfrastructureError
from outpace.schema import Args, Failure, Instance, Timing
from outpace.timing.caches import sweeper
from outpace.timing.estimate import estimate, price
from outpace.timing.lane import Judge, Lane
from outpace.timing.pace import Pacer, pacer_of_this_thread
from outpace.timing.settings import TimingSettings

_T = TypeVar("_T")
Open = Callable[[], Instance]
"""Opens one program in a fresh process."""

_LATER_CALLS = 3
"""Calls in a row of each round after the first; the first of them warms the caches."""

_SLACK_WHEN_FAR = 0.1
"""A ratio far from 1 need not be known as well: the interval may be this share of its logarithm."""

_SLACK_WHEN_EQUAL = 1.7
"""An interval around 1 may be this much wider: inside the noise nothing is earned, whatever the ratio is."""

_SLACK_IN_SPREAD, _MOST_SLACK_IN_SPREAD = 0.1, 0.05
"""An interval may be this share of the standard deviation of the group's log-ratios wide, up to a limit."""


def null_source(entry_point: str) -> str:
    """Source of a program that does nothing: it keeps the argument of its first call and returns that ever after.

    Told a value of the reference once, it makes calls that cost what the wire costs for such arguments and results.
    """
    return f"kept = []\ndef {entry_point}(*args):\n    if not kept:\n        kept.append(args[0])\n    return kept[0]\n"


def measure_group(  # noqa: PLR0913 - every collaborator is passed in, none is looked up
    open_candidate_G: Sequence[Open],
    open_reference: Open,
    next_args: Callable[[], Args],
    judge: Judge,
    settings: TimingSettings | None = None,
    *,
    open_null: Open | None = None,
    clock: str = "exact",
    rng: random.Random | None = None,
    pacer: Pacer | None = None,
) -> list[Timing | Failure]:
    """Time the candidates of one group beside the reference, interleaved on the same fresh inputs.

    Args:
        open_candidate_G: opens candidate g; all should have passed their tests.
        open_reference: opens the trusted baseline.
        next_args: makes fresh arguments; called once for each call of a round, which all programs then answer.
        judge: says whether a value is right; it gets the values of one input in a row, so it may keep its last
            expected value.
        settings: effort and thresholds.
        open_null: opens `null_source(...)`; None: calls are priced with what the wire costs.
        clock: `Isolation.clock`; anything but `exact` makes every timing untrusted.
        rng: order of the programs in a round.
        pacer: tells calm moments from busy ones; the default times a loop on the calling thread's core,
            and remembers the best pace from one measurement to the next.

    Returns:
        For each candidate its timing, or the failure (also a wrong value) that voids it.

    Raises:
        InfrastructureError: no process could be had, or the reference failed.
    """
    settings = settings or TimingSettings()
    results: list[Timing | Failure] = []
    for start in range(0, len(open_candidate_G), settings.max_together):
        together = open_candidate_G[start : start + settings.max_together]
        race = _Race(
            together, open_reference, open_null, settings, rng or random.Random(), pacer or pacer_of_this_thread()
        )
        results += race.run(next_args, judge, is_trusted=clock == "exact")
    return results


class _Race:
    """The state of one measurement: what every candidate and the reference have shown so far."""

    def __init__(
        self,
        open_candidate_G: Sequence[Open],
        open_reference: Open,
        open_null: Open | None,
        settings: TimingSettings,
        rng: random.Random,
        pacer: Pacer,
    ) -> None:
        self._open_G, self._open_reference, self._open_null = open_candidate_G, open_reference, open_null
        self._settings, self._rng, self._pacer = settings, rng, pacer
        self._sweep = sweeper(settings.evict_bytes)
        self._pairs_G: list[list[tuple[Lane, Lane]]] = [[] for _ in open_candidate_G]
        """For each candidate the lanes of its pairs: its own and the reference's."""
        self._failure_G: list[Failure | None] = [None] * len(open_candidate_G)
        self._null: Lane | None = None
        self._is_trusted = True
        self._known: dict[int, Timing] = {}
        """Timings of the candidates that have not failed, from all readings so far; empty: to be estimated anew."""

    def run(self, next_args: Callable[[], Args], judge: Judge, *, is_trusted: bool) -> list[Timing | Failure]:
        """Add pairs until every verdict is clear or the effort is used up."""
        self._is_trusted = is_trusted
        self._pacer.begin(self._settings)
        give_up_s = time.monotonic() + self._settings.group_budget_s
        entrants = list(range(len(self._open_G)))
        while entrants:
            self._run_pair(entrants, next_args, judge)
            entrants = self._short_of_pairs() if time.monotonic() < give_up_s else []
        return [failure or self._verdict(g) for g, failure in enumerate(self._failure_G)]

    def _verdict(self, g: int) -> Timing:
        """The final timing; a small difference that was never confirmed gets the interval of a lone pair."""
        timing = self._timings()[g]
        if not self._is_unconfirmed(g, timing):
            return timing
        margin = math.exp(max(self._settings.single_half_width - _half_width(timing), 0.0))
        return replace(timing, low=timing.low / margin, high=timing.high * margin)

    def _run_pair(self, entrants: Sequence[int], next_args: Callable[[], Args], judge: Judge) -> None:
        """One fresh process of everybody: a warm-up and the trials, then the judgement of all values."""
        inputs: list[Args] = []
        trials = self._settings.later_trials if any(self._pairs_G) else self._settings.trials
        with ExitStack() as processes:
            reference = self._start(self._open_reference, trials, processes)
            null = self._start(self._open_null, trials, processes) if self._open_null and self._null is None else None
            lane_G = {g: self._start(self._open_G[g], trials, processes) for g in self._shuffled(entrants)}
            for g, lane in lane_G.items():
                self._pairs_G[g].append((lane, reference))
            lanes = list(lane_G.values())
            while not inputs or lanes or reference.wants_more():
                fresh = [next_args() for _ in range(_LATER_CALLS if inputs else 1 + trials)]
                for lane in (*self._shuffled(lanes), reference):
                    self._run_calls(lane, len(inputs), fresh)
                _require(reference)
                if null and not inputs:
                    self._run_calls(null, 0, [(reference.last_value,), *fresh])
                inputs += fresh
                lanes = [lane for g, lane in lane_G.items() if lane.wants_more(is_unclear=self._is_last_and_unclear(g))]
        for turn, args in enumerate(inputs):
            for lane in (*lane_G.values(), reference):
                lane.judge(judge, turn, args)
        _require(reference)
        if null:
            self._null, self._known = null, {}
        for g, lane in lane_G.items():
            self._failure_G[g] = lane.failure

    def _run_calls(self, lane: Lane, turn: int, args_T: Sequence[Args]) -> None:
        self._known = {}
        pace_ns: int | None = None
        for offset, args in enumerate(args_T):
            if not lane.is_spent():
                self._sweep()
                pace_ns = lane.run(turn + offset, args, self._pacer.wait_for_calm(pace_ns))

    def _start(self, open_program: Open, trials: int, processes: ExitStack) -> Lane:
        lane = Lane(open_program(), self._pacer, self._settings, trials)
        processes.callback(lane.close)
        return lane

    def _shuffled(self, items: Sequence[_T]) -> list[_T]:
        return self._rng.sample(items, len(items))

    def _timings(self) -> dict[int, Timing]:
        """Timings of the candidates that have not failed, from all readings so far."""
        if not self._known:
            null = self._null and price([self._null.readings()], self._settings)
            self._known = {
                g: estimate(
                    [mine.readings() for mine, _ in pairs],
                    [reference.readings() for _, reference in pairs],
                    self._settings,
                    null_ns=null.ns if null else 0.0,
                    trusted=self._is_trusted,
                )
                for g, pairs in enumerate(self._pairs_G)
                if self._failure_G[g] is None
            }
        return {g: timing for g, timing in self._known.items() if self._failure_G[g] is None}

    def _short_of_pairs(self) -> list[int]:
        """Candidates that deserve another pair of processes."""
        return [g for g, timing in self._timings().items() if self._is_short_of_pairs(g, timing)]

    def _is_short_of_pairs(self, g: int, timing: Timing) -> bool:
        pairs, is_unclear = len(self._pairs_G[g]), self._is_unclear(g)
        if pairs < self._settings.min_pairs:
            return is_unclear or _half_width(timing) > _SLACK_WHEN_FAR * _log(timing)
        is_doubtful = self._is_unconfirmed(g, timing) and self._spread() < self._settings.confirm_below
        return pairs < self._settings.max_pairs and (is_unclear or is_doubtful)

    def _is_last_and_unclear(self, g: int) -> bool:
        """Whether a candidate's verdict is still unclear though it is in the last pair of those that all get."""
        return len(self._pairs_G[g]) >= self._settings.min_pairs and self._is_unclear(g)

    def _is_unconfirmed(self, g: int, timing: Timing) -> bool:
        """Whether a small difference that counts rests on the fewest processes: all may have been slow by bad luck."""
        is_small = _log(timing) < self._settings.confirm_below
        return is_small and timing.bound_nearest_1 != 1.0 and len(self._pairs_G[g]) <= self._settings.min_pairs

    def _is_unclear(self, g: int) -> bool:
        timing_G, settings = self._timings(), self._settings
        if g not in timing_G:
            return False
        width, apart = _half_width(timing_G[g]), _log(timing_G[g])
        if width > 0.99 * settings.rough_half_width and len(self._pairs_G[g]) > settings.min_pairs:
            return False  # the core is busy most of the time: more calls would only be more of the same
        clear = settings.clear_half_width * (_SLACK_WHEN_EQUAL if apart < settings.noise_floor else 1.0)
        in_spread = min(_SLACK_IN_SPREAD * self._spread(), _MOST_SLACK_IN_SPREAD)
        if max(width, _disagreement(timing_G[g]) / 2) > max(clear, _SLACK_WHEN_FAR * apart, in_spread):
            return True
        return any(  # two candidates that differ by less than twice the noise earn the same anyway
            max(2 * settings.noise_floor, in_spread)
            < abs(math.log(timing_G[g].ratio / theirs.ratio))
            < math.hypot(width, _half_width(theirs))
            for other, theirs in timing_G.items()
            if other != g
        )

    def _spread(self) -> float:
        """Standard deviation of the log-ratios, by which a group's advantages are divided; 0 for one candidate."""
        logs = [math.log(timing.ratio) for timing in self._timings().values()]
        mean = statistics.fmean(logs)
        return math.sqrt(statistics.fmean((log - mean) ** 2 for log in logs))  # pstdev is exact, and ten times as slow


def _log(timing: Timing) -> float:
    return abs(math.log(timing.ratio))


def _disagreement(timing: Timing) -> float:
    """How far the two cheapest processes of a side lie apart (log): one of them may have met a busy core unseen."""
    lows = [sorted(min(ns_T) for ns_T in ns_PT if ns_T) for ns_PT in (timing.candidate_ns_PT, timing.reference_ns_PT)]
    return max((math.log(low[1] / low[0]) for low in lows if len(low) > 1), default=0.0)


def _half_width(timing: Timing) -> float:
    return math.log(timing.high / timing.low) / 2


def _require(reference: Lane) -> None:
    """The reference is trusted code: when it fails, we failed."""
    if reference.failure is not None:
        what = reference.failure
        raise InfrastructureError(f"the task's reference failed while it was timed: {what.outcome}, {what.reason}")
