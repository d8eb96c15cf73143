"""Against the real verl; it does not install beside our own pins, so CI skips this file."""

import asyncio
from pathlib import Path

import pytest

verl = pytest.importorskip("verl", reason="verl is not installed here")

EXAMPLE = Path(__file__).parents[2] / "examples" / "verl_reward.py"
ANSWER = "```python\nfrom itertools import accumulate\n\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n```"


class Characters:
    def decode(self, ids, skip_special_tokens=True):
        return "".join(chr(int(i)) for i in ids)


def test_verls_own_reward_manager_scores_with_the_example():
    import numpy
    import torch
    from omegaconf import OmegaConf
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn

    custom = {"path": str(EXAMPLE), "name": "compute_score"}
    config = OmegaConf.create({"reward": {"custom_reward_function": custom}})

    loaded = get_custom_reward_fn(config)

    async def score(text):
        ids = torch.tensor([[ord(c) for c in text]])
        row = {
            "data_source": "outpace",
            "reward_model": {"style": "rule", "ground_truth": "sequences/prefix_sums"},
            "extra_info": {"index": 0},
        }
        data = verl.DataProto.from_dict(
            tensors={"responses": ids, "attention_mask": torch.ones_like(ids)},
            non_tensors={key: numpy.array([value], dtype=object) for key, value in row.items()},
        )
        manager = NaiveRewardManager(config, Characters(), loaded)
        return (await manager.run_single(data))["reward_score"]

    try:
        assert asyncio.run(score(ANSWER)) > 4.0
        assert asyncio.run(score("no idea")) == 0.0
    finally:
        loaded.args[0].__globals__["grader"]().close()
