"""Rewards: what a group of graded samples is worth.

`build` makes a `RewardSet` from a recipe's `rewards`; `RewardSet.score` gives one `RewardVector` per sample.
Each file holds one kind: `executed` (syntax, security, accuracy, speed), `article` (the seed's numbers), `thinking`,
`shape` (format and length), `variety` (repetition, diversity), `judge` (an LLM's opinion), `user_code` (yours).
Not here: running anything (`grade`), and the trainer's loss.
"""

from outpace.reward.base import PerSample, Reward
from outpace.reward.build import DEFAULT, PRESETS, build
from outpace.reward.catalogue import known
from outpace.reward.rewardset import RewardSet

__all__ = ["DEFAULT", "PRESETS", "PerSample", "Reward", "RewardSet", "build", "known"]
