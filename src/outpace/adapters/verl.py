"""outpace's rewards in verl: a `compute_score` for `reward.custom_reward_function`.

verl scores each completion alone, in a thread, and wants a number, so group rewards see groups of one, speed is
measured for one program at a time, and a completion that we fail to grade raises instead of being left out.
Not covered: verl's own sandbox and reward models.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from outpace.adapters.scoring import Grades, Scorer
from outpace.errors import InfrastructureError
from outpace.reward import RewardSet
from outpace.schema import Task

DATA_SOURCE = "outpace"


class ComputeScore(Protocol):
    """verl's calling convention."""

    def __call__(
        self, data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **others: Any
    ) -> dict[str, float]:
        """The score of one completion under `score`, and whatever else verl is to log."""
        ...


def rows(tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Rows for verl's parquet files: the ground truth is the task's id, so no expected value leaves the grader."""
    return [
        {
            "data_source": DATA_SOURCE,
            "prompt": [dict(message) for message in task.prompt],
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": task.id},
            "extra_info": {"index": index, "split": task.split},
        }
        for index, task in enumerate(tasks)
    ]


def compute_score(
    grader: Grades, tasks: Sequence[Task], rewards: RewardSet | Mapping[str, Any] | str = "default"
) -> ComputeScore:
    """Make verl's `compute_score` for these tasks.

    Returns a function whose result holds `score` (the total) and every component; a component that is not known is
    NaN. It raises InfrastructureError for a completion that could not be graded, because verl cannot leave it out.
    """
    scorer = Scorer(grader, tasks, rewards)

    def score(
        data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **others: Any
    ) -> dict[str, float]:
        vector = scorer.score(ground_truth, solution_str)
        if vector.total is None:
            raise InfrastructureError(f"A completion of {ground_truth} could not be graded, and verl needs a number.")
        components = {name: math.nan if value is None else value for name, value in vector.components.items()}
        return {**components, "score": vector.total}

    return score
