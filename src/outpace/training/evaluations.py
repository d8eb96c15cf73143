"""The evaluations before and after: once each, on the same tasks and seeds, kept in the run folder."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from outpace import tasks as task_sets
from outpace.config import Recipe
from outpace.errors import TaskError
from outpace.evaluate import EvalSettings, Evaluation, read
from outpace.records import RunFolder
from outpace.schema import Task


def load_task_sets(recipe: Recipe, load: Callable[[str], list[Task]] = task_sets.load) -> tuple[list[Task], list[Task]]:
    """The tasks to train on and the tasks to evaluate beside them, each under the split that it plays here.

    Raises:
        TaskError: a spec names nothing, or every evaluation task is also trained on.
    """
    train = _load(recipe.tasks, load)
    trained = {task.id for task in train}
    spec = recipe.eval_tasks
    if spec is None:
        names = [recipe.tasks] if isinstance(recipe.tasks, str) else recipe.tasks
        spec = "builtin:heldout" if all(name.startswith("builtin") for name in names) else None
    heldout = [] if spec is None else [task for task in _load(spec, load) if task.id not in trained]
    if spec is not None and recipe.eval_tasks is not None and not heldout:
        raise TaskError(f"every task of eval_tasks ({spec}) is trained on: name others, or leave eval_tasks out")
    return [replace(task, split="train") for task in train], [replace(task, split="heldout") for task in heldout]


def eval_settings(recipe: Recipe) -> EvalSettings:
    """What both evaluations of a run are asked to do."""
    samples = recipe.eval_samples
    return EvalSettings(
        samples_per_task=samples,
        temperature=recipe.temperature if recipe.eval_temperature is None else recipe.eval_temperature,
        max_completion_length=recipe.eval_max_completion_length or recipe.max_completion_length,
        seed=recipe.seed,
        k_values=tuple(k for k in (1, 4, 8) if k <= samples),
    )


def stored(run: RunFolder, name: str) -> Evaluation | None:
    """An evaluation that the run folder has already."""
    path = run.path / f"evaluation-{name}.json"
    return read(path) if path.is_file() else None


def _load(spec: str | Sequence[str], load: Callable[[str], list[Task]]) -> list[Task]:
    found: dict[str, Task] = {}
    for part in [spec] if isinstance(spec, str) else spec:
        for task in load(part):
            found.setdefault(task.id, task)
    if not found:
        raise TaskError(f"{spec!r} names no task: try builtin, linalg/matmul or a task file")
    return list(found.values())
