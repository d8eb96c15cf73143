"""One entry of a recipe's `rewards`: a reward with its weight, gate and bounds.

The general keys are `weight`, `schedule` (`{step: factor}` on the weight, with straight lines between), `gate`, `clip`,
`cap` and `reward` (the name in the catalogue, when the entry itself is called something else). All others are the
reward's own options.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outpace.errors import RewardError
from outpace.reward.base import STAGES, Reward, Value, nearest

Gate = str | tuple[str, float]
"""A stage that the sample must have passed, or another component's name with the least value it must have."""

GENERAL_KEYS = ("weight", "schedule", "gate", "clip", "cap", "reward")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A weight over training steps: straight lines between `points`, constant before the first and after the last."""

    points: tuple[tuple[int, float], ...]

    def at(self, step: int | None) -> float:
        """The weight at `step`; None asks for the last one, which is what evaluation uses."""
        if step is None:
            return self.points[-1][1]
        before = self.points[0]
        for point in self.points:
            if step < point[0]:
                if step <= before[0]:
                    return before[1]
                share = (step - before[0]) / (point[0] - before[0])
                return before[1] + share * (point[1] - before[1])
            before = point
        return before[1]

    @property
    def is_zero(self) -> bool:
        """Whether the weight is 0 at every step."""
        return all(weight == 0 for _, weight in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A named component of a `RewardSet`; `name` is its key in recipes, metrics and `RewardVector.components`."""

    name: str
    reward: Reward
    weight: Schedule
    gate: Gate | None = None
    low: float = -math.inf
    high: float = math.inf

    def bound(self, value: Value) -> Value:
        """The value within `low`..`high`; None stays None, and what is not finite becomes None."""
        if value is None or not math.isfinite(value):
            return None
        return min(max(float(value), self.low), self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recipe's entry taken apart, before its reward is made."""

    name: str
    reward_name: str
    weight: Schedule
    gate: Gate | None
    low: float
    high: float
    options: dict[str, Any]


def read_entry(name: str, value: Any, factor: float = 1.0) -> Entry:
    """Take `rewards.<name>` apart; `factor` multiplies its weight. Raises RewardError that says what is wrong."""
    settings = value if isinstance(value, Mapping) else {"weight": _number(name, value)}
    if wrong := [key for key in settings if not isinstance(key, str)]:
        raise RewardError(f"rewards.{name}: option names must be text, got {wrong[0]!r}.")
    low, high = _bounds(name, settings)
    return Entry(
        name=name,
        reward_name=str(settings.get("reward", name)),
        weight=_schedule(name, settings, factor),
        gate=_gate(name, settings.get("gate")),
        low=low,
        high=high,
        options={key: option for key, option in settings.items() if key not in GENERAL_KEYS},
    )


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RewardError(f"rewards.{name} must be a finite number, got {value!r}.")
    return float(value)


def _schedule(name: str, settings: Mapping[str, Any], factor: float) -> Schedule:
    weight = factor * _number(f"{name}.weight", settings.get("weight", 1.0))
    schedule = settings.get("schedule", {0: 1.0})
    where = f"rewards.{name}.schedule"
    if not isinstance(schedule, Mapping) or not schedule:
        raise RewardError(f"{where} must be {{step: factor}} with at least one step, got {schedule!r}.")
    try:
        steps = {int(step): at for step, at in schedule.items()}
    except (TypeError, ValueError) as error:
        raise RewardError(f"{where}: steps must be whole numbers, got {list(schedule)!r}.") from error
    return Schedule(tuple((step, weight * _number(f"{name}.schedule", steps[step])) for step in sorted(steps)))


def _bounds(name: str, settings: Mapping[str, Any]) -> tuple[float, float]:
    low, high = -math.inf, math.inf
    clip = settings.get("clip")
    if isinstance(clip, list | tuple) and len(clip) == 2:
        low, high = (_number(f"{name}.clip", bound) for bound in clip)
    elif clip is not None:
        high = _number(f"{name}.clip", clip)
        low = -high
    if settings.get("cap") is not None:
        high = min(high, _number(f"{name}.cap", settings["cap"]))
    if low > high:
        raise RewardError(f"rewards.{name}: the lower bound {low} is above the upper bound {high}.")
    return low, high


def _gate(name: str, value: Any) -> Gate | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value not in STAGES:
            raise RewardError(
                f"rewards.{name}.gate {value!r} is not a stage{nearest(value, STAGES)}; "
                f"use {', '.join(STAGES)} or {{component: least value}}."
            )
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        ((component, least),) = value.items()
        return str(component), _number(f"{name}.gate", least)
    raise RewardError(f"rewards.{name}.gate must be a stage or {{component: least value}}, got {value!r}.")
