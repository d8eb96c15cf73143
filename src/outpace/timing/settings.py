"""How speed is measured: one small frozen value. Nothing here measures."""

from dataclasses import dataclass

from outpace.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """Effort, thresholds and bounds of a measurement; raises ConfigError for values that make no sense.

    The defaults are calibrated by `outpace bench timing`: identical programs come out equal, and a candidate of
    1-3 ms costs less than 30 ms.
    """

    min_pairs: int = 2
    """Fresh process pairs every candidate gets; one pair cannot show the bias that each process has, and is enough only
    for a ratio so far from 1 that the bias does not matter."""
    max_pairs: int = 4
    """Fresh process pairs a candidate gets at most, when its verdict stays unclear."""
    trials: int = 3
    """Timed calls per process of the first pair at a calm pace, after one warm-up call."""
    later_trials: int = 2
    """The same for later pairs: fewer, since a verdict that is still unclear gets more calls anyway."""
    max_trials: int = 9
    """Timed calls per process at most, when few were calm or the verdict is unclear."""
    process_budget_ns: int = 60_000_000
    """A process that has used more CPU than this gets no further call (it has had a warm-up and a trial)."""
    group_budget_s: float = 5.0
    """After this much wall-clock time no further pair is started; the intervals stay as wide as they are."""
    max_together: int = 16
    """Candidates that share one schedule and its reference processes; larger groups are split."""

    calm_pace: float = 1.2
    """A trial is calm when the core ran at most this much slower than at its best, before and after it."""
    calm_wait_s: float = 0.1
    """Time that one measurement may spend waiting for calm moments."""

    clear_half_width: float = 0.0175
    """A candidate whose interval is wider than this (relative half-width) gets more calls, then another pair."""
    confirm_below: float = 0.15
    """A difference that counts, but is smaller than this, is confirmed by one pair more than `min_pairs`."""
    min_half_width: float = 0.015
    """No interval is narrower than this, however little the trials scatter."""
    single_half_width: float = 0.05
    """Half-width of the interval when there is only one process pair."""
    rough_half_width: float = 0.2
    """Half-width of the interval when a program rarely ran at a calm pace."""
    noise_floor: float = 0.02
    """Least relative difference that counts as one; raised to what the reference shows against itself."""

    floor_ns: int = 1_000
    """A reading below this is impossible (one call through the wire costs more) and is voided."""
    max_ratio: float = 1_000.0
    """Ratios are clipped to this and to its reciprocal."""
    spill_slack: float = 1.25
    """How far the mean charge of a process may exceed its least one, beyond what the reference shows, before the mean
    is paid for."""
    first_slack: float = 1.4
    """How much more than a later answer a first one may cost before it is paid for; usual is 1.1."""
    setup_allowance_ns: int = 1_000_000
    """CPU that an import may use beyond the reference's import before it is paid for with every answer."""

    evict_bytes: int = 0
    """Memory swept before every call so that it starts with cold caches; 0: warm. See `eviction_bytes()`."""

    def __post_init__(self) -> None:
        at_least_1 = ("min_pairs", "trials", "later_trials", "floor_ns", "max_together", "calm_pace")
        for name in at_least_1:
            if getattr(self, name) < 1:
                raise ConfigError(f"timing.{name} must be at least 1, got {getattr(self, name)!r}")
        if self.max_pairs < self.min_pairs:
            raise ConfigError(f"timing.max_pairs ({self.max_pairs}) must not be below min_pairs ({self.min_pairs})")
        if self.max_trials < max(self.trials, self.later_trials):
            raise ConfigError(
                f"timing.max_trials ({self.max_trials}) must not be below trials ({self.trials}) and later_trials "
                f"({self.later_trials})"
            )
        for name in ("max_ratio", "spill_slack", "first_slack"):
            if not getattr(self, name) > 1.0:
                raise ConfigError(f"timing.{name} must exceed 1, got {getattr(self, name)!r}")
        not_negative = (
            "process_budget_ns",
            "group_budget_s",
            "calm_wait_s",
            "clear_half_width",
            "confirm_below",
            "min_half_width",
            "single_half_width",
            "rough_half_width",
            "noise_floor",
            "setup_allowance_ns",
            "evict_bytes",
        )
        for name in not_negative:
            if not getattr(self, name) >= 0:
                raise ConfigError(f"timing.{name} must not be negative, got {getattr(self, name)!r}")
