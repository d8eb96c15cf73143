"""What running out of memory looks like, and how it is answered: smaller micro-batches, the same update."""

import gc
import sys

from outpace.config import Recipe

_SIGNS = ("out of memory", "not enough memory", "cannot allocate memory", "can't allocate memory")

_SAME_GRADIENT = frozenset({"grpo", "dapo", "dr_grpo"})
"""Objectives whose gradient does not depend on how a batch is cut into micro-batches."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the host."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def with_smaller_batches(recipe: Recipe) -> Recipe | None:
    """The recipe with half the micro-batch and twice the accumulation; None where that would change the update.

    The completions of a generation, the groups and the gradient stay the same.
    """
    size = recipe.per_device_train_batch_size
    if size % 2 or (recipe.method == "grpo" and recipe.objective not in _SAME_GRADIENT):
        return None
    rounds = recipe.steps_per_generation
    return recipe.model_copy(
        update={
            "per_device_train_batch_size": size // 2,
            "gradient_accumulation_steps": recipe.gradient_accumulation_steps * 2,
            "steps_per_generation": None if rounds is None else rounds * 2,
        }
    )


def free_memory() -> None:
    """Let go of what nobody uses, on the host and on the GPU."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
