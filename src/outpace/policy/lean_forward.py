"""A Llama-shaped model's hidden states for training, LoRA included, by few and large operations.

transformers' and PEFT's modules start about 200 kernels a layer, forward and backward, and keep copies of keys for each
query head; a small model's update then waits for Python. Here the projections that share an input are one autograd
function, whose backward adds into one gradient; the gate is computed again instead of kept; the query heads that share
a key act as its queries. Not covered: dropout, adapters other than one plain LoRA on frozen weights, and activations
computed twice; `lean` then leaves the model alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name that everyone gives it
from transformers.modeling_outputs import BaseModelOutputWithPast

from outpace.policy.decode import is_open_llama
from outpace.policy.lean_decode import rotate, signed
from outpace.policy.merged import adapted_layers, base_model, can_merge

_PROJECTIONS = (("self_attn", ("q_proj", "k_proj", "v_proj", "o_proj")), ("mlp", ("gate_proj", "up_proj", "down_proj")))


@contextmanager
def lean(model: Any) -> Iterator[bool]:
    """Inside, a transformers model's backbone computes the lean way; yields whether it does.

    Args:
        model: the model as trained, PEFT's wrapper included.
    """
    network = base_model(model)
    if not _is_covered(model, network):
        yield False
        return
    backbone = network.model
    backbone.forward = _Backbone(backbone).forward
    try:
        yield True
    finally:
        del backbone.forward  # the class's own is beneath


def _is_covered(model: Any, network: Any) -> bool:
    if not is_open_llama(network) or not can_merge(model):
        return False
    if "forward" in vars(network.model) or any(map(_is_watched, network.model.layers.modules())):
        return False  # somebody else stands in for it, as when a model is spread over devices, or looks at its layers
    if network.training and network.config.attention_dropout:
        return False
    device = network.device.type
    computed_in = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else network.dtype
    is_one_type = all(p.dtype == computed_in for name, p in network.named_parameters() if "lora_" not in name)
    return is_one_type and all(map(_is_plain, adapted_layers(model)))


def _is_watched(module: Any) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def _is_plain(layer: Any) -> bool:
    if layer.disable_adapters:
        return True
    names = [name for name in layer.active_adapters if name in layer.lora_A]
    has_dropout = layer.training and any(getattr(layer.lora_dropout[name], "p", 0.0) for name in names)
    return len(names) <= 1 and not has_dropout and not layer.base_layer.weight.requires_grad


@dataclass(frozen=True, slots=True)
class _Linear:
    """One projection: its weight (out, in) and bias, and its adapter as (r, in) and (out, r), scaled, or None."""

    weight: Tensor
    bias: Tensor | None
    adapter: tuple[Tensor, Tensor] | None

    @classmethod
    def of(cls, module: Any) -> "_Linear":
        base = getattr(module, "base_layer", module)
        adapter = None
        if base is not module and not module.disable_adapters:
            for name in module.active_adapters:
                if name in module.lora_A:
                    down, up = module.lora_A[name].weight, module.lora_B[name].weight
                    # once for all passes of a batch; autograd carries the gradients on in the adapter's own type
                    adapter = (down.to(base.weight.dtype), (up * module.scaling[name]).to(base.weight.dtype))
        return cls(base.weight, base.bias, adapter)


class _Layer:
    """One layer's projections, norms and sizes."""

    def __init__(self, layer: Any) -> None:
        for part, names in _PROJECTIONS:
            for name in names:
                setattr(self, name, _Linear.of(getattr(getattr(layer, part), name)))
        self.norms = [(n.weight, n.variance_epsilon) for n in (layer.input_layernorm, layer.post_attention_layernorm)]
        attention = layer.self_attn
        self.head_norms = (
            [(n.weight, n.variance_epsilon) for n in (attention.q_norm, attention.k_norm)]
            if hasattr(attention, "q_norm")
            else [None, None]
        )
        self.size, self.scaling, self.index = attention.head_dim, attention.scaling, attention.layer_idx


class _Backbone:
    """The forward that stands in for the backbone's."""

    def __init__(self, backbone: Any) -> None:
        self.embed, self.rotary, self.norm = backbone.embed_tokens, backbone.rotary_emb, backbone.norm
        self.layers = [_Layer(layer) for layer in backbone.layers]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        cache: Any = None,
        past_key_values: Any = None,
        **_: Any,
    ) -> BaseModelOutputWithPast:
        """transformers' interface; masks are (B, T), 1 at tokens, or (B or 1, 1, T, K), true where a key is seen."""
        cache = past_key_values if cache is None else cache
        with torch.autocast(input_ids.device.type, enabled=False):
            x = self.embed(input_ids)
            place = torch.arange(input_ids.shape[1], device=x.device)
            seen = _seen(attention_mask, place)
            angles = self.rotary(x, place[None] if position_ids is None else position_ids)
            cos, sin = (angle[:, :, None] for angle in angles)
            turn = (cos, signed(sin))
            mask = torch.zeros(seen.shape, dtype=x.dtype, device=x.device).masked_fill_(~seen, float("-inf"))
            first = self.layers[0]
            group = first.q_proj.weight.shape[0] // first.k_proj.weight.shape[0]  # type: ignore[attr-defined]
            # one row of the mask for each query that a key-value head serves
            mask = mask[:, :, None].expand(-1, -1, group, -1, -1).flatten(2, 3)
            for layer in self.layers:
                x = _layer(x, layer, mask, turn, cache)
            return BaseModelOutputWithPast(last_hidden_state=_norm(x, (self.norm.weight, self.norm.variance_epsilon)))


def _seen(mask: Tensor | None, place: Tensor) -> Tensor:
    """(B or 1, 1, T, K) bool. A query at padding sees itself: a row that sees nothing has no softmax."""
    causal = (place[:, None] >= place)[None, None]
    if mask is None:
        return causal
    if mask.ndim == 4:
        return mask
    return (causal & mask.bool()[:, None, None]) | torch.eye(len(place), dtype=torch.bool, device=place.device)


def _norm(x: Tensor, norm: tuple[Tensor, float] | None) -> Tensor:
    return x if norm is None else F.rms_norm(x, (x.shape[-1],), norm[0], norm[1])


def _layer(x: Tensor, layer: Any, mask: Tensor, turn: tuple[Tensor, Tensor], cache: Any) -> Tensor:
    """x (B, T, d) -> (B, T, d)."""
    batch, tokens, _ = x.shape
    q, k, v = (
        y.view(batch, tokens, -1, layer.size)
        for y in _project(_norm(x, layer.norms[0]), (layer.q_proj, layer.k_proj, layer.v_proj))
    )
    q, k = (_Rotate.apply(_norm(y, norm), *turn) for y, norm in zip((q, k), layer.head_norms, strict=True))  # type: ignore[no-untyped-call]
    keys, values = k.transpose(1, 2), v.transpose(1, 2)
    if cache is not None:
        keys, values = cache.update(keys, values, layer.index)
    heads = keys.shape[1]
    grouped = q.view(batch, tokens, heads, -1, layer.size).permute(0, 2, 3, 1, 4).flatten(2, 3)
    mixed = F.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask, scale=layer.scaling)
    mixed = mixed.view(batch, heads, -1, tokens, layer.size).permute(0, 3, 1, 2, 4).reshape(batch, tokens, -1)
    x = x + _project(mixed, (layer.o_proj,))[0]
    gate, up = _project(_norm(x, layer.norms[1]), (layer.gate_proj, layer.up_proj))
    return x + _gated(gate, up, layer.down_proj)


class _Rotate(torch.autograd.Function):
    """Rotary embedding of x (B, T, heads, D); the backward turns back, so nothing but the angles is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, signed_sin)
        return rotate(x, cos, signed_sin)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return rotate(grads[0], *ctx.saved_tensors, back=True), None, None


def _project(x: Tensor, linears: tuple[_Linear, ...]) -> list[Tensor]:
    """Several linear layers of one input."""
    if any(linear.adapter is None for linear in linears):
        return [_plainly(x, linear) for linear in linears]
    rows = x.flatten(0, 1)
    found = _Projections.apply(rows, *(part for linear in linears for part in _parts(linear)))  # type: ignore[no-untyped-call]
    return [out.view(*x.shape[:2], -1) for out in found]


def _plainly(x: Tensor, linear: _Linear) -> Tensor:
    out = F.linear(x, linear.weight, linear.bias)
    return out if linear.adapter is None else out + F.linear(F.linear(x, linear.adapter[0]), linear.adapter[1])


def _parts(linear: _Linear) -> tuple[Tensor | None, ...]:
    assert linear.adapter is not None
    return (linear.weight, linear.bias, *linear.adapter)


class _Projections(torch.autograd.Function):
    """Linear layers of one input x (N, in), each with its adapter; weights and biases are frozen."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        weights, biases, downs, ups = (parts[i::4] for i in range(4))
        lows = [x @ down.T for down in downs]
        out = [
            F.linear(x, weight, bias).addmm_(low, up.T)
            for weight, bias, low, up in zip(weights, biases, lows, ups, strict=True)
        ]
        ctx.save_for_backward(x, *weights, *downs, *ups, *lows)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, *saved = ctx.saved_tensors
        count = len(saved) // 4
        found: list[Tensor | None] = []
        to_x: Tensor | None = None
        for place, grad in enumerate(grads):
            weight, down, up, low = saved[place::count]
            to_low = grad @ up
            to_x = grad @ weight if to_x is None else to_x.addmm_(grad, weight)
            to_x.addmm_(to_low, down)
            found += [None, None, to_low.T @ x, grad.T @ low]
        return to_x, *found


def _gated(gate: Tensor, up: Tensor, down: _Linear) -> Tensor:
    """The down projection of silu(gate) up."""
    if down.adapter is None:
        return _plainly(F.silu(gate) * up, down)
    found: Tensor = _GatedDown.apply(gate.flatten(0, 1), up.flatten(0, 1), *_parts(down))  # type: ignore[no-untyped-call]
    return found.view(*gate.shape[:2], -1)


class _GatedDown(torch.autograd.Function):
    """silu(gate) up (N, in) through a linear layer with an adapter; the product is computed again, not kept."""

    @staticmethod
    def forward(
        ctx: Any, gate: Tensor, up: Tensor, weight: Tensor, bias: Tensor | None, lower: Tensor, upper: Tensor
    ) -> Tensor:
        product = F.silu(gate).mul_(up)
        low = product @ lower.T
        ctx.save_for_backward(gate, up, weight, lower, upper, low)
        return F.linear(product, weight, bias).addmm_(low, upper.T)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gate, up, weight, lower, upper, low = ctx.saved_tensors
        (grad,) = grads
        opened = F.silu(gate)
        to_low = grad @ upper
        to_product = (grad @ weight).addmm_(to_low, lower)
        to_lower, to_upper = to_low.T @ (opened * up), grad.T @ low
        to_gate = torch.ops.aten.silu_backward(to_product * up, gate)
        return to_gate, opened.mul_(to_product), None, None, to_lower, to_upper
