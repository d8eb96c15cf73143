"""Products of routed tokens with packed experts; only the packed weights are kept, they are unpacked as they are used.

P = tokens x top_k pairs (token, expert), sorted by expert; E experts. The weights are frozen: gradients flow to inputs
only, and the backward unpacks again. Two engines do the products: plain PyTorch here, Triton in `kernels`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from outpace.policy.mxfp4.packing import Packed, unpack


@dataclass(frozen=True)
class Routes:
    """Which expert serves which token, in the order in which experts are stored; made once a layer, without a sync."""

    expert_P: Tensor
    """Expert of each sorted pair."""
    token_P: Tensor
    """Token of each sorted pair."""
    place_P: Tensor
    """Where pair (token, k) stands among the sorted ones."""
    offsets: Tensor
    """(E + 1,) int32: expert e serves the sorted pairs from offsets[e] to offsets[e + 1]."""
    top_k: int

    @classmethod
    def of(cls, chosen: Tensor, experts: int) -> "Routes":
        """Sort the pairs of `chosen` (T, top_k), the experts of each token."""
        top_k = chosen.shape[1]
        expert_P, order = chosen.flatten().sort(stable=True)
        place_P = torch.empty_like(order)
        place_P[order] = torch.arange(order.numel(), device=order.device)
        edges = torch.arange(experts + 1, device=order.device, dtype=expert_P.dtype)
        offsets = torch.searchsorted(expert_P, edges).int()
        return cls(expert_P, order // top_k, place_P, offsets, top_k)

    @classmethod
    def dense(cls, rows: Tensor) -> "Routes":
        """Every one of `rows` (T, d) is served by the one matrix there is."""
        place = torch.arange(rows.shape[0], device=rows.device)
        offsets = torch.arange(2, device=rows.device, dtype=torch.int32) * rows.shape[0]
        return cls(torch.zeros_like(place), place, place, offsets, 1)

    @property
    def experts(self) -> int:
        """How many experts there are."""
        return self.offsets.numel() - 1

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.expert_P.numel()

    @cached_property
    def bounds(self) -> list[int]:
        """`offsets` on the host; this waits for the device, so only the plain path asks for it."""
        return [int(offset) for offset in self.offsets.tolist()]

    def gather(self, tokens: Tensor) -> Tensor:
        """Rows of `tokens` (T, d), one per sorted pair: (P, d)."""
        return tokens[self.token_P]

    def sum_back(self, pairs: Tensor) -> Tensor:
        """Sum sorted pairs (P, d) by token: (T, d). In a fixed order, so that repeating it changes no bit."""
        return pairs[self.place_P].unflatten(0, (-1, self.top_k)).sum(dim=1)


class Engine(Protocol):
    """Multiplies rows, sorted by expert, with each expert's unpacked matrix."""

    def forward(self, rows: Tensor, packed: Packed, routes: Routes, *, by_token: bool) -> Tensor:
        """rows (P, in), or (T, in) `by_token`, times the transposed matrices: (P, out)."""
        ...

    def backward(self, grads: Tensor, packed: Packed, routes: Routes) -> Tensor:
        """grads (P, out) times the matrices: (P, in)."""
        ...


class PlainEngine:
    """Plain PyTorch, one expert after another: for the CPU, and to check the kernels by."""

    def forward(self, rows: Tensor, packed: Packed, routes: Routes, *, by_token: bool) -> Tensor:
        """See `Engine`."""
        rows = routes.gather(rows) if by_token else rows
        return self._each(rows, packed, routes, packed.rows, transposed=True)

    def backward(self, grads: Tensor, packed: Packed, routes: Routes) -> Tensor:
        """See `Engine`."""
        return self._each(grads, packed, routes, packed.columns, transposed=False)

    def _each(self, rows: Tensor, packed: Packed, routes: Routes, width: int, *, transposed: bool) -> Tensor:
        out = rows.new_empty(routes.pairs, width)
        for expert in range(routes.experts):
            start, end = routes.bounds[expert], routes.bounds[expert + 1]
            if start < end:
                matrix = unpack(Packed(packed.blocks[expert], packed.scales[expert]), rows.dtype)
                out[start:end] = rows[start:end] @ (matrix.T if transposed else matrix)
        return out


class _Grouped(torch.autograd.Function):
    """Keeps nothing for the backward but the packed weights and the routes, both of which are there anyway."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, packed: Packed, routes: Routes, engine: Engine, by_token: bool) -> Tensor:
        ctx.packed, ctx.routes, ctx.engine, ctx.by_token = packed, routes, engine, by_token
        return engine.forward(rows, packed, routes, by_token=by_token)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        to_rows = ctx.engine.backward(grads[0].contiguous(), ctx.packed, ctx.routes)
        return (ctx.routes.sum_back(to_rows) if ctx.by_token else to_rows), None, None, None, None


def grouped_product(rows: Tensor, packed: Packed, routes: Routes, engine: Engine, *, by_token: bool) -> Tensor:
    """Multiply each sorted pair's row with its expert's matrix.

    Args:
        rows: (P, in) in the routes' order, or (T, in) when `by_token`.
        packed: E matrices (out, in).
        routes: who serves whom.
        engine: who computes.
        by_token: rows are tokens, to be gathered by the routes.

    Returns:
        (P, out), in the routes' order and in the type of `rows`.
    """
    return _Grouped.apply(rows, packed, routes, engine, by_token)  # type: ignore[no-untyped-call, no-any-return]


def pick_engine(device: torch.device) -> Engine:
    """Triton's kernels on a GPU that has Triton, plain PyTorch elsewhere."""
    if device.type == "cuda":
        from importlib.util import find_spec

        if find_spec("triton") is not None:
            from outpace.policy.mxfp4.kernels import TritonEngine

            return TritonEngine()
    return PlainEngine()
