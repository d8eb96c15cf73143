"""From a recipe's `rewards` to a `RewardSet`: names, presets, options, dotted paths.

It checks everything that can be checked without calling a reward; `RewardSet.check` and `probe` do the rest.
"""

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

from outpace.errors import RewardError
from outpace.reward.base import Reward, nearest
from outpace.reward.catalogue import lookup
from outpace.reward.executed import Accuracy, Speed
from outpace.reward.part import GENERAL_KEYS, Entry, Part, read_entry
from outpace.reward.rewardset import RewardSet
from outpace.reward.user_code import load_user_reward

_log = logging.getLogger("outpace.reward")

PRESETS: dict[str, dict[str, Any]] = {
    "default": {"syntax": 1.0, "security": 1.0, "accuracy": 1.0, "speed": 1.0},
    "article": {"article_security": 1.0, "article_accuracy": 1.0, "article_speed": 1.0},
    "article_text": {
        "article_security": 1.0,
        "article_accuracy": 1.0,
        "article_speed": {"weight": 1.0, "formula": "text"},
    },
}
"""Named sets of rewards; a preset's name with a weight stands for its entries, each times that weight."""

DEFAULT = PRESETS["default"]
"""What a recipe without `rewards` gets, and what `outpace grade` shows."""


def build(config: Mapping[str, Any] | str = "default") -> RewardSet:
    """Make the rewards of a recipe.

    Args:
        config: A preset's name, or a mapping from a name to a weight or to `{weight, gate, ...options}`.
            A name is a reward of the catalogue, a preset, or a dotted path to your own code (`package.module.name`).

    Raises:
        RewardError: An unknown name, an unknown or unfit option, or a callable with the wrong signature.
    """
    if isinstance(config, str):
        config = {config: 1.0}
    if not isinstance(config, Mapping):
        raise RewardError(f"rewards must be a preset's name or a mapping of names to weights, got {config!r}.")
    parts: dict[str, Part] = {}
    for entry in (entry for name, value in config.items() for entry in _expand(name, value)):
        if entry.name in parts:
            raise RewardError(f"The reward {entry.name!r} is given twice; keep one of them.")
        parts[entry.name] = _part(entry)
    rewards = RewardSet(tuple(parts.values()))
    _warn_if_wrong_pays(rewards)
    return rewards


def _expand(name: Any, value: Any) -> list[Entry]:
    if not isinstance(name, str):
        raise RewardError(f"A reward's name must be text, got {name!r}.")
    if name not in PRESETS:
        return [read_entry(name, value)]
    entry = read_entry(name, value)
    if entry.options or entry.gate or len(entry.weight.points) != 1:
        raise RewardError(f"The preset {name!r} takes only a weight; list its rewards to give them options.")
    factor = entry.weight.points[0][1]
    return [read_entry(inner, settings, factor) for inner, settings in PRESETS[name].items()]


def _part(entry: Entry) -> Part:
    reward: Reward
    if "." in entry.reward_name or ":" in entry.reward_name:
        reward = load_user_reward(entry.reward_name, entry.options)
    else:
        reward = _make(entry.name, lookup(entry.reward_name), entry.options)
    return Part(name=entry.name, reward=reward, weight=entry.weight, gate=entry.gate, low=entry.low, high=entry.high)


def _make(name: str, cls: type[Any], options: Mapping[str, Any]) -> Reward:
    from pydantic import TypeAdapter, ValidationError

    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    for option in options:
        if option not in fields:
            raise RewardError(
                f"rewards.{name} has no option {option!r}{nearest(option, [*fields, *GENERAL_KEYS])}; "
                f"its options are {', '.join(fields) or 'none of its own'}."
            )
    try:
        reward: Reward = TypeAdapter(cls).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["rewards", name, *map(str, first["loc"])])
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise RewardError(f"{where}: {message}.") from error
    return reward


def _warn_if_wrong_pays(rewards: RewardSet) -> None:
    """Say so when a slow correct program would earn less than one that fails its last test."""
    weights = rewards.weights()
    accuracy = next((part for part in rewards.parts if isinstance(part.reward, Accuracy)), None)
    for part in rewards.parts:
        if not isinstance(part.reward, Speed):
            continue
        gain = 0.0
        if accuracy is not None and isinstance(accuracy.reward, Accuracy):
            gain = weights[accuracy.name] * (accuracy.reward.full - accuracy.reward.partial)
        if gain + weights[part.name] * part.reward.low < 0:
            _log.warning(
                "A slow correct program can earn less than a wrong one: raise the weight of accuracy or set "
                "rewards.%s.low nearer to 0.",
                part.name,
            )
