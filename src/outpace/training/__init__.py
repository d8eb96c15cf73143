"""Training: a recipe and a run folder in, a policy that has learned out, by TRL's trainers and public hooks only.

    run          the product on one screen: load, evaluate, train, evaluate
    trainer      recipe -> TRL configuration and trainer      trl_seam    the one place that knows TRL's insides
    rollout      sampling whose completions are graded while others are still being written
    rewards      a RewardSet as TRL reward functions, one per component
    callbacks    what TRL calls: divergence, checkpoints, records      early_warnings   from logged figures, pure

Not here: sampling itself (`policy`), grading (`grade`), what an answer is worth (`reward`), reports (`report`).
"""

from typing import TYPE_CHECKING

from outpace.training.environment import prepare_environment

if TYPE_CHECKING:
    from rich.console import Console

    from outpace.config import Recipe
    from outpace.records import RunFolder
    from outpace.training.run import TrainResult

__all__ = ["dry_run", "prepare_environment", "train"]


def train(recipe: "Recipe", run_folder: "RunFolder", console: "Console") -> "TrainResult":
    """Train `recipe` in `run_folder`, resuming what is there; see `outpace.training.run.train`."""
    prepare_environment(small_card=recipe.card_GB is not None)
    from outpace.training.run import train as run

    return run(recipe, run_folder, console)


def dry_run(recipe: "Recipe", console: "Console") -> None:
    """Check everything that can be checked without weights and print what would happen."""
    from outpace.training.preview import preview

    preview(recipe, console)
