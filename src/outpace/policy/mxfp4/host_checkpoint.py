"""Activations computed twice, with each layer's input waiting in host memory for its second time.

torch's checkpointing keeps those inputs on the GPU (6.6 MB a layer for a row of 1,152 tokens of gpt-oss-20b), with all
that a layer's own autograd functions hold on to. Here a layer runs without autograd, and its input travels over the bus
and back. Not covered: dropout, whose random numbers would differ the second time, and gradients of a layer's other
arguments.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer


def keep_on_host(model: nn.Module) -> int:
    """Let every layer of a transformers model whose activations are computed twice use this way.

    Returns:
        How many layers do.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, GradientCheckpointingLayer)]
    changed = [layer for layer in layers if layer.gradient_checkpointing]
    for layer in changed:
        layer._gradient_checkpointing_func = checkpoint
    return len(changed)


def checkpoint(function: Callable[..., Tensor], hidden: Tensor, *rest: Any) -> Tensor:
    """`function(hidden, *rest)`; its backward fetches `hidden` from the host and computes it once more.

    Args:
        function: a layer; parameters that it uses get their gradients.
        hidden: its first argument.
        rest: other arguments, which get none.
    """
    if not torch.is_grad_enabled():
        return function(hidden, *rest)
    entry = hidden if hidden.requires_grad else hidden.detach().requires_grad_()
    return _Twice.apply(entry, function, rest)  # type: ignore[no-untyped-call, no-any-return]


class _Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, function: Callable[..., Tensor], rest: tuple[Any, ...]) -> Tensor:
        ctx.function, ctx.rest, ctx.device = function, rest, hidden.device
        ctx.kept = torch.empty_like(hidden, device="cpu", pin_memory=hidden.is_cuda).copy_(hidden, non_blocking=True)
        kind = hidden.device.type
        ctx.autocast = (kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind))
        return function(hidden, *rest)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden = ctx.kept.to(ctx.device, non_blocking=True).requires_grad_()
        kind, dtype, is_enabled = ctx.autocast
        with torch.enable_grad(), torch.autocast(kind, dtype=dtype, enabled=is_enabled):
            result = ctx.function(hidden, *ctx.rest)
        torch.autograd.backward(result, grads[0])
        return hidden.grad, None, None
