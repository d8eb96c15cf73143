"""outpace's rewards in verl: this file is its custom reward function.

    python examples/verl_reward.py data/outpace            # writes train.parquet and test.parquet
    python -m verl.trainer.main_ppo \\
        algorithm.adv_estimator=grpo \\
        data.train_files=data/outpace/train.parquet data.val_files=data/outpace/test.parquet \\
        reward.custom_reward_function.path=examples/verl_reward.py \\
        reward.custom_reward_function.name=compute_score \\
        actor_rollout_ref.model.path=MODEL ...

Each reward worker of verl starts scoring processes of its own, so keep `reward.num_workers` small.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

from outpace import tasks
from outpace.adapters import verl
from outpace.grade import Grader

REWARDS = "default"
"""A preset's name, or a mapping as in a recipe."""


@cache
def grader() -> Grader:
    """One for the process; its scoring processes end with it."""
    return Grader(workers=1)


@cache
def _score() -> verl.ComputeScore:
    return verl.compute_score(grader(), tasks.load("builtin"), REWARDS)


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> dict[str, float]:
    """What verl calls for each completion; the grader starts with the first one."""
    return _score()(data_source, solution_str, ground_truth, extra_info)


def main(folder: str) -> None:
    """Write the built-in tasks as verl's parquet files."""
    import pandas

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, spec in (("train", "builtin:train"), ("test", "builtin:heldout")):
        pandas.DataFrame(verl.rows(tasks.load(spec))).to_parquet(target / f"{name}.parquet")
        print(f"wrote {target / name}.parquet")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "data/outpace")
