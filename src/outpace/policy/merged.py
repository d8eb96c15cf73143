"""Plain weights while sampling: LoRA is folded into the base weights inside a block and taken out exactly after it.

Unmerged, every adapted layer costs several more small kernels per token; subtracting a merged delta again would let
bfloat16 weights drift. So the originals are kept (in host memory when the model is on a GPU, so the GPU holds one copy)
and copied back bit for bit. Not covered: adapters other than plain LoRA on linear layers; those run unmerged.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn


@dataclass(slots=True)
class _Original:
    saved: Tensor
    version: int


_ORIGINALS: "WeakKeyDictionary[nn.Module, _Original]" = WeakKeyDictionary()
"""Base layer -> its untouched weight; valid while the weight's version counter stands where we left it."""


def base_model(model: Any) -> Any:
    """The transformers model itself, without PEFT's wrapper (its adapted layers stay in place)."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def adapted_layers(model: nn.Module) -> list[Any]:
    """Every layer that carries an adapter."""
    return [module for module in model.modules() if hasattr(module, "base_layer") and hasattr(module, "lora_A")]


def can_merge(model: nn.Module) -> bool:
    """Whether every active adapter is plain LoRA on a floating-point linear layer (true when there is none)."""
    return all(_is_plain(layer) for layer in adapted_layers(model))


def _is_plain(layer: Any) -> bool:
    base = layer.base_layer
    if type(base) is not nn.Linear or not base.weight.is_floating_point() or layer.merged:
        return False
    variants = getattr(layer, "lora_variant", {})
    has_bias = any(getattr(layer, "lora_bias", {}).get(name, False) for name in layer.active_adapters)
    return not any(name in variants for name in layer.active_adapters) and not has_bias


@contextmanager
def merged(model: Any) -> Iterator[None]:
    """Fold the active adapters into the base weights inside the block; the weights are restored bit for bit.

    Storage addresses do not change, so captured CUDA graphs stay valid.
    """
    layers = [layer for layer in adapted_layers(model) if not layer.disable_adapters]
    if not layers:
        yield
        return
    with torch.no_grad():
        for layer in layers:
            _fold_in(layer)
    try:
        with model.disable_adapter():
            yield
    finally:
        with torch.no_grad():
            for layer in layers:
                _restore(layer.base_layer)


def _fold_in(layer: Any) -> None:
    weight = layer.base_layer.weight
    known = _ORIGINALS.get(layer.base_layer)
    if known is None or known.version != weight._version or known.saved.shape != weight.shape:
        saved = torch.empty_like(weight, device="cpu", pin_memory=weight.is_cuda)
        saved.copy_(weight)
        _ORIGINALS[layer.base_layer] = _Original(saved, weight._version)
    total = weight.float()
    for name in layer.active_adapters:
        if name in layer.lora_A:
            total = total + layer.get_delta_weight(name).float()
    weight.copy_(total)


def _restore(base: nn.Linear) -> None:
    original = _ORIGINALS[base]
    base.weight.copy_(original.saved, non_blocking=True)
    original.version = base.weight._version
