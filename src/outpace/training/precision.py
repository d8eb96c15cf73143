"""Which number formats a run computes in: bfloat16 where the device supports it, float32 on a CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from outpace.config import Recipe
from outpace.errors import ConfigError
from outpace.training.environment import local_rank

_CHECKPOINTING_ABOVE = 2_000_000_000
"""Parameters from which activations are worth computing twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Device, format of the weights, and mixed precision of the trainer."""

    device: str
    dtype: str
    bf16: bool
    fp16: bool


def choose_precision(recipe: Recipe) -> Precision:
    """Resolve the recipe's `auto` values on this machine.

    Raises:
        ConfigError: the recipe asks for what the device cannot do.
    """
    import torch

    if not torch.cuda.is_available():
        if recipe.fp16:
            raise ConfigError("fp16=true needs a GPU: leave it out, and this CPU trains in float32")
        on_cpu = "float32" if recipe.dtype == "auto" else recipe.dtype
        return Precision(device="cpu", dtype=on_cpu, bf16=bool(recipe.bf16), fp16=False)
    supported = torch.cuda.is_bf16_supported()
    if recipe.bf16 and not supported:
        raise ConfigError("bf16=true is not supported by this GPU: set fp16=true, or leave both out")
    bf16 = supported and not recipe.fp16 if recipe.bf16 is None else recipe.bf16
    dtype: str = recipe.dtype
    if dtype == "auto":
        # weights that are all trained need float32: an update at lr 1e-6 is lost in bfloat16's 8 bits
        dtype = "float32" if not recipe.use_peft else "bfloat16" if supported else "float16"
    return Precision(device=f"cuda:{local_rank()}", dtype=dtype, bf16=bf16, fp16=recipe.fp16)


@contextmanager
def sound_attention() -> Iterator[None]:
    """Inside, attention on a GPU is never cuDNN's, whose gradients are NaN now and then; nothing on a CPU.

    With a mask, and a length of 64 beyond a multiple of 128, the backward of cuDNN's kernel overflows (torch 2.11 to
    2.13 on Hopper, pytorch/pytorch issue 196678). It also plans anew for each shape, a millisecond or more a call.
    """
    import torch

    was = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was)


def checkpoint_activations(recipe: Recipe, model: Any) -> bool:
    """Whether activations are recomputed in the backward pass instead of kept."""
    if recipe.gradient_checkpointing is not None:
        return recipe.gradient_checkpointing
    size: int = sum(parameter.numel() for parameter in model.parameters())
    return size > _CHECKPOINTING_ABOVE


def loading_options(recipe: Recipe, precision: Precision) -> dict[str, Any]:
    """Arguments of `from_pretrained` that the recipe asks for beyond the number format; empty for most recipes.

    Raises:
        ConfigError: 4-bit weights without bitsandbytes.
    """
    options: dict[str, Any] = {}
    if recipe.model_revision is not None:
        options["revision"] = recipe.model_revision
    if recipe.trust_remote_code:
        options["trust_remote_code"] = True
    if recipe.attn_implementation is not None:
        options["attn_implementation"] = recipe.attn_implementation
    if recipe.load_in_4bit:
        if find_spec("bitsandbytes") is None:
            raise ConfigError("load_in_4bit=true needs bitsandbytes: run `python -m pip install 'outpace[gpu]'`")
        from transformers import BitsAndBytesConfig

        options["device_map"] = {"": precision.device}
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=precision.dtype
        )
    return options
