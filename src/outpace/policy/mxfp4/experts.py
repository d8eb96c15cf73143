"""gpt-oss's experts with packed weights and adapters in activation space, in the place of transformers' own.

Not covered: a gradient for biases, router or packed weights, which are frozen.
"""

from typing import Any

import torch
from torch import Tensor, nn

from outpace.policy.mxfp4.grouped import Engine, PlainEngine, Routes, combine, grouped_product
from outpace.policy.mxfp4.packing import BLOCK, Packed

FAMILIES = ("gate_up_proj", "down_proj")
"""The two fused matrices of an expert layer, named as in the checkpoint."""


class _ClampedSwiglu(torch.autograd.Function):
    """The engine's gate; keeps its input only."""

    @staticmethod
    def forward(ctx: Any, gate_up: Tensor, alpha: float, limit: float, engine: Engine) -> Tensor:
        ctx.save_for_backward(gate_up)
        ctx.shape, ctx.engine = (alpha, limit), engine
        return engine.swiglu(gate_up, alpha, limit)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (gate_up,) = ctx.saved_tensors
        return ctx.engine.swiglu_backward(gate_up, grads[0], *ctx.shape), None, None, None


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
            adapters: family -> what adds the change of that family's product to it; absent: none.

        Returns:
            (T, hidden).
        """
        adapters = adapters or {}
        routes = Routes.of(router_indices, self.num_experts)
        gate_up = self._product("gate_up_proj", hidden_states, routes, adapters, by_token=True)
        gated: Tensor = _ClampedSwiglu.apply(gate_up, self.alpha, self.limit, self.engine)  # type: ignore[no-untyped-call]
        served = self._product("down_proj", gated, routes, adapters, by_token=False)
        return combine(served, routing_weights, routes)

    def _product(self, family: str, rows: Tensor, routes: Routes, adapters: Any, *, by_token: bool) -> Tensor:
        packed, bias = self.packed(family), self.bias(family)
        out = grouped_product(rows, packed, routes, self.engine, by_token=by_token, bias=bias)
        adapter = adapters.get(family)
        return out if adapter is None else adapter(out, rows, routes, by_token=by_token)
