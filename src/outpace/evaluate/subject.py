"""What a person names when they say "evaluate this": a model, or a run, whose newest checkpoint is meant."""

from dataclasses import dataclass
from pathlib import Path

from outpace.errors import RunFolderError
from outpace.records import RunFolder
from outpace.records.checkpoints import list_checkpoints, what_is_wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model to load, and the run it belongs to, if any."""

    model: str
    """A spec that `outpace.policy.load` takes."""
    run: RunFolder | None = None


def subject(named: str) -> Subject:
    """The model that `named` means: a run folder stands for its newest usable checkpoint.

    Raises:
        RunFolderError: it is a run folder without a usable checkpoint.
    """
    if not (Path(named) / "recipe.yaml").is_file():
        return Subject(model=named)
    run = RunFolder.open(named)
    for checkpoint in reversed(list_checkpoints(run.path)):  # read only: the run may still be training
        if what_is_wrong(checkpoint.path) is None:
            return Subject(model=str(checkpoint.path), run=run)
    raise RunFolderError(f"{named} has no checkpoint to load yet: let it train until its first save_steps")
