"""Activations computed twice, with what is needed for the second time waiting in host memory.

torch's checkpointing keeps each layer's input on the GPU (6.6 MB for a row of 1,152 tokens of gpt-oss-20b), with all
that the layer's own autograd functions hold on to. Here a layer runs without autograd, and its input travels over the
bus and back. gpt-oss's layers run in two parts, attention and experts, so that the activations of the one are not there
during the backward of the other. Not covered: dropout, whose random numbers would differ the second time, gradients of
a layer's other arguments, and router logits as outputs of the model (`output_router_logits`).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

_CACHES = ("cache", "past_key_values", "layer_past")
"""What transformers calls a layer's cache, by version; computing twice would write to it twice."""


def keep_on_host(model: nn.Module, tokens_at_once: int | None = None) -> int:
    """Let every layer of a transformers model whose activations are computed twice use this way.

    In evaluation, without gradients, and after `gradient_checkpointing_disable` a layer computes as its class does,
    cache included; after `gradient_checkpointing_enable` it uses this way again. No name and no weight changes.

    Args:
        model: of which `gradient_checkpointing_enable` was called; of another, nothing changes.
        tokens_at_once: most tokens whose experts are computed, and computed again, together; None: all. Layers other
            than gpt-oss's are computed as a whole.

    Returns:
        How many layers do.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, GradientCheckpointingLayer)]
    changed = [layer for layer in layers if layer.gradient_checkpointing]
    for layer in changed:
        own: Any = type(layer)
        if not issubclass(own, _OnHost):
            layer.__class__ = _on_host(own)
        layer.tokens_at_once = tokens_at_once
    return len(changed)


class _OnHost(nn.Module):
    """Comes before a layer's own class.

    It replaces the class, not the layer's checkpointing function: trainers switch checkpointing off and on again around
    sampling, which puts torch's function back. And hooks stay outside in all versions of transformers: before 5.24 its
    `__call__` computes them twice, too.
    """

    gradient_checkpointing: bool
    tokens_at_once: int | None = None
    __call__ = nn.Module.__call__

    def __init_subclass__(cls) -> None:
        """transformers' own would wrap `forward` in its checkpointing."""

    def forward(self, hidden_states: Tensor, *rest: Any, **options: Any) -> Any:
        """As the layer's; options are those of its class."""
        if not (self.gradient_checkpointing and self.training and torch.is_grad_enabled()):
            return super().forward(hidden_states, *rest, **options)
        options |= {name: None for name in _CACHES if name in options}
        if "use_cache" in options:
            options["use_cache"] = False
        return self._twice(hidden_states, *rest, **options)

    def _twice(self, hidden: Tensor, *rest: Any, **options: Any) -> Any:
        return checkpoint(partial(super().forward, **options), hidden, *rest)


class _InTwoParts(_OnHost):
    """A gpt-oss layer: attention, then experts, each with its residual connection."""

    self_attn: nn.Module
    mlp: nn.Module
    input_layernorm: nn.Module
    post_attention_layernorm: nn.Module

    def _twice(self, hidden: Tensor, *rest: Any, **options: Any) -> Any:
        if rest:  # by their place in a signature that is not ours to know
            return super()._twice(hidden, *rest, **options)
        hidden = checkpoint(partial(self._attend, **options), hidden)
        tokens = hidden.shape[:-1].numel()
        if self.tokens_at_once is None or tokens <= self.tokens_at_once:
            return checkpoint(self._serve, hidden)
        sizes = _equal(tokens, self.tokens_at_once)
        parts = torch.split(hidden.reshape(1, tokens, -1), sizes, dim=1)
        return torch.cat([checkpoint(self._serve, part) for part in parts], dim=1).view_as(hidden)

    def _attend(self, hidden: Tensor, **options: Any) -> Tensor:
        mixed: Tensor = self.self_attn(hidden_states=self.input_layernorm(hidden), **options)[0]
        return hidden + mixed

    def _serve(self, hidden: Tensor) -> Tensor:
        served: Tensor | tuple[Tensor, Tensor] = self.mlp(self.post_attention_layernorm(hidden))
        return hidden + (served[0] if isinstance(served, tuple) else served)


@cache
def _on_host(kind: Any) -> Any:
    """The class of layers of that `kind` that wait on the host."""
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssDecoderLayer

    way = _InTwoParts if issubclass(kind, GptOssDecoderLayer) else _OnHost
    return type(kind.__name__, (way, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _equal(total: int, most: int) -> list[int]:
    """As few parts of at most `most` as make up `total`, as equal as can be."""
    count = -(-total // most)
    return [total * (place + 1) // count - total * place // count for place in range(count)]


def checkpoint(function: Callable[..., Tensor], hidden: Tensor, *rest: Any) -> Tensor:
    """`function(hidden, *rest)`; its backward fetches `hidden` from the host and computes it once more.

    Args:
        function: a layer, or a part of one; parameters that it uses get their gradients.
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
