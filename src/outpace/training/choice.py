"""Which sampler a run uses, and why; decided before anything is loaded."""

import os
from dataclasses import dataclass
from importlib.util import find_spec

from outpace.config import Recipe
from outpace.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SamplerChoice:
    """`group` (ours, from the policy's own weights), `vllm` or `transformers` (both run by TRL), and the reason."""

    name: str
    why: str


def choose_sampler(recipe: Recipe) -> SamplerChoice:
    """Resolve `sampler: auto`.

    Raises:
        ConfigError: the recipe asks for what is not installed or cannot be had with its method.
    """
    if recipe.method == "rloo" and recipe.sampler in ("auto", "group"):
        if recipe.sampler == "group":
            raise ConfigError("sampler=group needs method=grpo, for RLOO's trainer has no hook for it: use auto")
        return SamplerChoice("transformers", "RLOO's trainer has no hook for our sampler")
    if recipe.sampler == "vllm":
        if find_spec("vllm") is None:
            raise ConfigError(
                "sampler=vllm needs vLLM: run `python -m pip install 'outpace[vllm]'`, or use sampler=auto"
            )
        return SamplerChoice("vllm", "asked for")
    if recipe.sampler == "transformers":
        return SamplerChoice("transformers", "asked for")
    if _weights_are_sharded():
        if recipe.sampler == "group":
            raise ConfigError("sampler=group needs whole weights on each GPU, and they are sharded here: use auto")
        return SamplerChoice("transformers", "weights are sharded over GPUs")
    if recipe.sampler == "group":
        return SamplerChoice("group", "asked for")
    return SamplerChoice("group", "the policy's own weights, no second copy, and grading begins while it samples")


def _weights_are_sharded() -> bool:
    is_fsdp = os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true")
    return is_fsdp or os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3"
