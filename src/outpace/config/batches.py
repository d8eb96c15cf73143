"""The arithmetic of batches: whole groups on every process, checkpoints on generation boundaries.

Pure integers; nothing here reads the environment or knows a device.
"""

import math
from dataclasses import dataclass

from outpace.config.recipe import ONLINE_METHODS, Recipe
from outpace.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """How many completions, groups and prompts one round of sampling and one update take."""

    processes: int
    completions_per_generation: int
    """Over all processes."""
    groups_per_generation: int
    completions_per_update: int
    updates_per_generation: int
    """Optimiser updates between two generation boundaries; checkpoints lie on multiples of it."""


def plan_batches(recipe: Recipe, processes: int = 1) -> BatchPlan:
    """Work out the batches of `recipe` on `processes` processes.

    Raises:
        ConfigError: groups do not fit; the message states the numbers and the nearest values that do.
    """
    accumulation = recipe.gradient_accumulation_steps
    per_update = recipe.per_device_train_batch_size * processes * accumulation
    if recipe.method not in ONLINE_METHODS:
        return BatchPlan(
            processes=processes,
            completions_per_generation=per_update,
            groups_per_generation=per_update,
            completions_per_update=per_update,
            updates_per_generation=1,
        )
    rounds = recipe.steps_per_generation or accumulation
    local = recipe.per_device_train_batch_size * rounds
    if local % recipe.num_generations:
        raise ConfigError(_misfit(recipe, processes, rounds))
    micro_batches = rounds * recipe.num_iterations
    updates = micro_batches // math.gcd(accumulation, micro_batches)
    if recipe.save_steps % updates:
        below = recipe.save_steps // updates * updates
        nearest = f"{below} or {below + updates}" if below else str(updates)
        raise ConfigError(
            f"save_steps={recipe.save_steps} would save in the middle of a generation, which lasts {updates} updates, "
            f"and such a checkpoint does not resume exactly: use save_steps={nearest}"
        )
    return BatchPlan(
        processes=processes,
        completions_per_generation=local * processes,
        groups_per_generation=local * processes // recipe.num_generations,
        completions_per_update=per_update,
        updates_per_generation=updates,
    )


def _misfit(recipe: Recipe, processes: int, rounds: int) -> str:
    size, group = recipe.per_device_train_batch_size, recipe.num_generations
    local = size * rounds
    divisors = [number for number in range(2, local + 1) if local % number == 0]
    nearest = sorted(divisors, key=lambda number: (abs(number - group), number))[:2]
    step = group // math.gcd(group, rounds)
    sizes = sorted({max(step, size // step * step), -(-size // step) * step})
    remedy = f"per_device_train_batch_size={' or '.join(map(str, sizes))}"
    if nearest:
        remedy = f"num_generations={' or '.join(map(str, sorted(nearest)))}, or {remedy}"
    return (
        f"num_generations={group} does not divide the {local} completions that each of {processes} "
        f"{'process' if processes == 1 else 'processes'} samples at a time (per_device_train_batch_size={size} x "
        f"steps_per_generation={rounds}), and a group must be whole on one process: use {remedy}"
    )
