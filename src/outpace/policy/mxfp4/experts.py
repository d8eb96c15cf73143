"""gpt-oss's experts with packed weights and an adapter in activation space; stands where transformers has GptOssExperts.

Not covered: a gradient for biases, router or packed weights, which are frozen.
"""

from typing import Any

import torch
from torch import Tensor, nn

from outpace.policy.mxfp4.grouped import Engine, PlainEngine, Routes, grouped_product
from outpace.policy.mxfp4.packing import BLOCK, Packed

FAMILIES = ("gate_up_proj", "down_proj")
"""The two fused matrices of an expert layer, named as in the checkpoint."""


class ClampedSwiglu(torch.autograd.Function):
    """gpt-oss's gate: (up + 1) x gate x sigmoid(alpha x gate), both clamped; even columns are gates, odd ones ups.

    Keeps its input only: (P, 2 I) -> (P, I).
    """

    @staticmethod
    def forward(ctx: Any, gate_up: Tensor, alpha: float, limit: float) -> Tensor:
        """Return the gated activations."""
        ctx.save_for_backward(gate_up)
        ctx.alpha, ctx.limit = alpha, limit
        gate = gate_up[..., ::2].clamp(max=limit)
        up = gate_up[..., 1::2].clamp(-limit, limit)
        return (up + 1) * (gate * torch.sigmoid(gate * alpha))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the input; none flows through a clamped number."""
        (gate_up,) = ctx.saved_tensors
        grad, alpha, limit = grads[0], ctx.alpha, ctx.limit
        gate, up = gate_up[..., ::2], gate_up[..., 1::2]
        clamped_gate = gate.clamp(max=limit)
        sigmoid = torch.sigmoid(clamped_gate * alpha)
        slope = sigmoid * (1 + alpha * clamped_gate * (1 - sigmoid))
        result = torch.empty_like(gate_up)
        result[..., ::2] = torch.where(gate <= limit, grad * (up.clamp(-limit, limit) + 1) * slope, 0)
        result[..., 1::2] = torch.where(up.abs() <= limit, grad * clamped_gate * sigmoid, 0)
        return result, None, None


class PackedExperts(nn.Module):
    """The experts of one layer; see the module docstring."""

    def __init__(self, *, experts: int, hidden: int, intermediate: int, alpha: float, limit: float) -> None:
        super().__init__()
        self.num_experts, self.hidden_size, self.intermediate_size = experts, hidden, intermediate
        self.alpha, self.limit = alpha, limit
        self.engine: Engine = PlainEngine()
        for name, rows, columns in (
            ("gate_up_proj", 2 * intermediate, hidden),
            ("down_proj", hidden, intermediate),
        ):
            self.register_buffer(
                f"{name}_blocks", torch.empty(experts, rows, columns // BLOCK, BLOCK // 2, dtype=torch.uint8)
            )
            self.register_buffer(f"{name}_scales", torch.empty(experts, rows, columns // BLOCK, dtype=torch.uint8))
            self.register_buffer(f"{name}_bias", torch.empty(experts, rows))

    def packed(self, family: str) -> Packed:
        """The packed matrices `gate_up_proj` or `down_proj`."""
        return Packed(self.get_buffer(f"{family}_blocks"), self.get_buffer(f"{family}_scales"))

    def bias(self, family: str) -> Tensor:
        """The biases (E, out)."""
        return self.get_buffer(f"{family}_bias")

    def forward(
        self, hidden_states: Tensor, router_indices: Tensor, routing_weights: Tensor, adapters: Any = None
    ) -> Tensor:
        """Serve each token by its experts.

        Args:
            hidden_states: (T, hidden).
            router_indices: (T, top_k).
            routing_weights: (T, top_k).
            adapters: family -> adapter of that family's product; absent: none.

        Returns:
            (T, hidden).
        """
        adapters = adapters or {}
        routes = Routes.of(router_indices, self.num_experts)
        gate_up = self._product("gate_up_proj", hidden_states, routes, adapters, by_token=True)
        gated: Tensor = ClampedSwiglu.apply(gate_up, self.alpha, self.limit)  # type: ignore[no-untyped-call]
        served = self._product("down_proj", gated, routes, adapters, by_token=False)
        by_token = served[routes.place_P].unflatten(0, (-1, routes.top_k))
        # as one small product per token: no (T, top_k, hidden) tensor is kept twice
        return torch.bmm(routing_weights.to(served.dtype)[:, None, :], by_token)[:, 0]

    def _product(
        self, family: str, rows: Tensor, routes: Routes, adapters: Any, *, by_token: bool
    ) -> Tensor:
        bias = self.bias(family).to(rows.dtype)[routes.expert_P]
        out = grouped_product(rows, self.packed(family), routes, self.engine, by_token=by_token) + bias
        adapter = adapters.get(family)
        return out if adapter is None else out + adapter(rows, routes, by_token=by_token)
