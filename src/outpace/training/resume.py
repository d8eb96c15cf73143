"""Whether a run folder may be taken up with this recipe: only what does not change the training may differ."""

from typing import Any

from outpace.config import Recipe, dump_recipe, load_recipe
from outpace.errors import ConfigError, RunFolderError
from outpace.records import RunFolder, list_checkpoints

_MAY_DIFFER = frozenset(
    {"name", "output_dir", "max_steps", "save_steps", "save_total_limit", "logging_steps", "report_to", "workers"}
    | {"allow_weak_isolation", "stop_infrastructure_share"}
)


def refuse_other_recipe(run: RunFolder, recipe: Recipe) -> None:
    """Write the resolved recipe into a new run; refuse another recipe in one that has begun.

    Raises:
        RunFolderError: the run was begun with other settings; names the first and both values.
    """
    path = run.path / "recipe.yaml"
    has_begun = bool(list_checkpoints(run.path)) or (run.path / "evaluation-before.json").exists()
    if path.is_file() and has_begun:
        try:
            earlier = load_recipe(path)
        except ConfigError as error:
            raise RunFolderError(f"{path} cannot be read any more ({error}): start again with --fresh") from error
        changed = changes(earlier, recipe)
        if changed:
            key, (before, now) = next(iter(changed.items()))
            more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            raise RunFolderError(
                f"{run.path} was begun with {key}={before!r} and this command says {now!r}{more}: use --fresh to start "
                "over, or name=... for another run"
            )
    run.write_text("recipe.yaml", dump_recipe(recipe))


def changes(earlier: Recipe, now: Recipe) -> dict[str, tuple[Any, Any]]:
    """Keys whose difference changes the training, with both values."""
    before, after = earlier.model_dump(), now.model_dump()
    return {
        key: (before[key], after[key])
        for key in before
        if key not in _MAY_DIFFER and not key.startswith("warn_") and before[key] != after[key]
    }
