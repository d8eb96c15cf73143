"""How much GPU memory a step took, what running out of it looks like, and the answer: smaller micro-batches."""

import gc

import torch

from outpace.config import Recipe
from outpace.evaluate.memory import peak_cuda_bytes

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
    """Let go of what nobody uses, on the host and on the GPU.

    cuBLAS's workspaces are among it, which captured graphs write to: graphs that will be replayed must not be there.
    """
    gc.collect()
    if torch.cuda.is_available():
        # every stream that ever multiplied, those of a capture included, keeps a workspace of 8 to 32 MB
        if hasattr(torch._C, "_cuda_clearCublasWorkspaces"):
            torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def peak_memory() -> dict[str, float]:
    """Most memory in use on this process's GPU since `reset_cuda_peak`, in 10^9 bytes; empty without a GPU.

    `memory/allocated_GB` is what tensors took, `memory/reserved_GB` what the card must have free for it. CUDA's own
    context (0.3 to 0.5 GB) is in neither.
    """
    reserved_bytes = peak_cuda_bytes()
    if reserved_bytes is None:
        return {}
    return {
        "memory/allocated_GB": torch.cuda.max_memory_allocated() / 1e9,
        "memory/reserved_GB": reserved_bytes / 1e9,
    }
