"""The whole spine with nothing faked: the shipped starter, the real sandbox, a few dozen updates."""

import io
import statistics
from pathlib import Path

import pytest
from rich.console import Console

from outpace.config import load_recipe
from outpace.policy.locate import STARTER_FOLDER
from outpace.records import RunFolder
from outpace.training import train

_STEPS = 24
_TASKS = "sequences/remove_duplicates,sorting/kth_smallest,geometry/polygon_area,simulation/josephus"


@pytest.mark.train
@pytest.mark.timeout(900)
@pytest.mark.skipif(not STARTER_FOLDER.is_dir(), reason="the starter's weights are not in this checkout")
def test_the_mean_reward_of_the_starter_rises_beyond_noise(tmp_path: Path) -> None:
    changes = [f"tasks='{_TASKS}'", "learning_rate=2e-4", "eval_samples=0"]
    changes += [f"output_dir={tmp_path}", f"max_steps={_STEPS}", f"save_steps={_STEPS}"]
    recipe = load_recipe("starter", changes)
    run = RunFolder.create(tmp_path, recipe.name)
    result = train(recipe, run, Console(file=io.StringIO()))
    assert (result.status, result.steps) == ("finished", _STEPS)
    third = _STEPS // 3
    first, last = (
        [row["reward"] for step in steps for row in run.samples(step) if row["reward"] is not None]
        for steps in (range(1, third + 1), range(_STEPS - third + 1, _STEPS + 1))
    )
    gain = statistics.fmean(last) - statistics.fmean(first)
    noise = (statistics.variance(first) / len(first) + statistics.variance(last) / len(last)) ** 0.5
    assert gain > 2 * noise, f"gained {gain:.2f} with a standard error of {noise:.2f}"
