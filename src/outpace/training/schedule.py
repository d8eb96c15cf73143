"""Which prompt is asked when: the whole run's order, made once from the seed.

Every task is asked once before any is asked again. A longer run begins with the order of a shorter one, so a run may
be extended; a resumed run skips what was asked. TRL's own shuffling is off.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

from outpace.config import BatchPlan, Recipe
from outpace.errors import TaskError
from outpace.schema import Message, Task

PromptKey = tuple[tuple[str, str], ...]


def prompt_order(tasks: Sequence[Task], groups: int, seed: int) -> list[Task]:
    """The tasks of `groups` groups in the order asked: shuffled passes over all tasks."""
    source = random.Random(seed)
    order: list[Task] = []
    while len(order) < groups:
        order += source.sample(list(tasks), len(tasks))
    return order[:groups]


def training_rows(tasks: Sequence[Task], recipe: Recipe, plan: BatchPlan) -> list[dict[str, Any]]:
    """One row per group of the whole run: the prompt and the task's id, in order."""
    micro_batches = recipe.max_steps * recipe.gradient_accumulation_steps
    rounds = recipe.steps_per_generation or recipe.gradient_accumulation_steps
    generations = math.ceil(micro_batches / (rounds * recipe.num_iterations))
    order = prompt_order(tasks, generations * plan.groups_per_generation, recipe.seed)
    return [{"prompt": [dict(message) for message in task.prompt], "task_id": task.id} for task in order]


def prompt_key(prompt: Sequence[Message]) -> PromptKey:
    """A prompt as a dictionary key, whatever order its messages' keys have."""
    return tuple((str(message["role"]), str(message["content"])) for message in prompt)


def by_prompt(tasks: Sequence[Task]) -> dict[PromptKey, Task]:
    """Tasks by their prompt; raises TaskError when two tasks ask the same, for answers could not be told apart."""
    found: dict[PromptKey, Task] = {}
    for task in tasks:
        other = found.setdefault(prompt_key(task.prompt), task)
        if other is not task:
            raise TaskError(f"tasks {other.id} and {task.id} have the same prompt: change one, or leave one out")
    return found
