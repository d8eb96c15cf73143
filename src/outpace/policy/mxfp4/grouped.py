"""Products of routed tokens with packed experts; only the packed weights are kept, they are unpacked as they are used.

P = tokens x top_k pairs (token, expert), sorted by expert; E experts. The weights are frozen: gradients flow to inputs
only, and the backward unpacks again. Two engines do the products: plain PyTorch here, Triton in `kernels`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor

from outpace.policy.mxfp4.packing import Packed, unpack

_TOKENS_AT_ONCE = 256
"""Tokens whose experts' results are gathered together: 6 MB at gpt-oss-20b's width."""


@dataclass(frozen=True)
class Routes:
    """Which expert serves which token, in the order in which experts are stored; made once a layer, without a sync."""

    expert_P: Tensor
    """Expert of each sorted pair."""
    token_P: Tensor
    """Token of each sorted pair."""
    order_P: Tensor
    """Which pair (token x top_k + k) each sorted one is."""
    place_P: Tensor
    """Where pair (token, k) stands among the sorted ones."""
    offsets: Tensor
    """(E + 1,) int32: expert e serves the sorted pairs from offsets[e] to offsets[e + 1]."""
    top_k: int
    _own: Tensor | None = field(default=None, repr=False)

    @classmethod
    def of(cls, chosen: Tensor, experts: int) -> "Routes":
        """Sort the pairs of `chosen` (T, top_k), the experts of each token."""
        top_k = chosen.shape[1]
        expert_P, order = chosen.flatten().sort(stable=True)
        place_P = torch.empty_like(order)
        place_P[order] = torch.arange(order.numel(), device=order.device)
        edges = torch.arange(experts + 1, device=order.device, dtype=expert_P.dtype)
        offsets = torch.searchsorted(expert_P, edges).int()
        return cls(expert_P, order // top_k, order, place_P, offsets, top_k)

    @classmethod
    @lru_cache(maxsize=64)
    def dense(cls, rows: int, device: torch.device) -> "Routes":
        """Every one of so many rows is served by the one matrix there is."""
        place = torch.arange(rows, device=device)
        offsets = torch.arange(2, device=device, dtype=torch.int32) * rows
        return cls(torch.zeros_like(place), place, place, place, offsets, 1)

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

    @cached_property
    def every(self) -> Tensor:
        """The numbers of the sorted pairs."""
        return torch.arange(self.pairs, device=self.expert_P.device)

    def is_own(self, dtype: torch.dtype) -> Tensor:
        """(P, E): 1 where the expert is the pair's, 0 elsewhere."""
        if self._own is None or self._own.dtype != dtype:
            names = torch.arange(self.experts, device=self.expert_P.device)
            object.__setattr__(self, "_own", (self.expert_P[:, None] == names).to(dtype))
        assert self._own is not None
        return self._own

    def gather(self, tokens: Tensor) -> Tensor:
        """Rows of `tokens` (T, d), one per sorted pair: (P, d)."""
        return tokens[self.token_P]

    def sum_back(self, pairs: Tensor) -> Tensor:
        """Sum sorted pairs (P, d) by token: (T, d). In a fixed order, so that repeating it changes no bit."""
        out = pairs.new_empty(self.pairs // self.top_k, pairs.shape[1])
        for part in _token_parts(self):
            out[part] = _by_token(pairs, self, part).sum(dim=1)
        return out


class Engine(Protocol):
    """Multiplies rows, sorted by expert, with each expert's unpacked matrix."""

    def forward(
        self, rows: Tensor, packed: Packed, routes: Routes, *, by_token: bool, bias: Tensor | None = None
    ) -> Tensor:
        """rows (P, in), or (T, in) `by_token`, times the transposed matrices, plus each expert's bias: (P, out)."""
        ...

    def backward(self, grads: Tensor, packed: Packed, routes: Routes) -> Tensor:
        """grads (P, out) times the matrices: (P, in)."""
        ...

    def swiglu(self, gate_up: Tensor, alpha: float, limit: float) -> Tensor:
        """gpt-oss's gate: (up + 1) x gate x sigmoid(alpha x gate), clamped, of columns in turn: (P, 2 I) -> (P, I)."""
        ...

    def swiglu_backward(self, gate_up: Tensor, grad: Tensor, alpha: float, limit: float) -> Tensor:
        """The gradient of `gate_up`; none flows through a clamped number."""
        ...


class PlainEngine:
    """Plain PyTorch, one expert after another: for the CPU, and to check the kernels by."""

    def forward(
        self, rows: Tensor, packed: Packed, routes: Routes, *, by_token: bool, bias: Tensor | None = None
    ) -> Tensor:
        """See `Engine`."""
        rows = routes.gather(rows) if by_token else rows
        out = self._each(rows, packed, routes, packed.rows, transposed=True)
        return out if bias is None else out.add_(bias.to(out.dtype)[routes.expert_P])

    def backward(self, grads: Tensor, packed: Packed, routes: Routes) -> Tensor:
        """See `Engine`."""
        return self._each(grads, packed, routes, packed.columns, transposed=False)

    def swiglu(self, gate_up: Tensor, alpha: float, limit: float) -> Tensor:
        """See `Engine`."""
        gate = gate_up[..., ::2].clamp(max=limit)
        up = gate_up[..., 1::2].clamp(-limit, limit)
        return (up + 1) * (gate * torch.sigmoid(gate * alpha))

    def swiglu_backward(self, gate_up: Tensor, grad: Tensor, alpha: float, limit: float) -> Tensor:
        """See `Engine`."""
        gate, up = gate_up[..., ::2], gate_up[..., 1::2]
        low = gate.clamp(max=limit)
        sigmoid = torch.sigmoid(low * alpha)
        slope = sigmoid * (1 + alpha * low * (1 - sigmoid))
        result = torch.empty_like(gate_up)
        result[..., ::2] = torch.where(gate <= limit, grad * (up.clamp(-limit, limit) + 1) * slope, 0)
        result[..., 1::2] = torch.where(up.abs() <= limit, grad * low * sigmoid, 0)
        return result

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
    def forward(
        ctx: Any, rows: Tensor, packed: Packed, routes: Routes, engine: Engine, by_token: bool, bias: Tensor | None
    ) -> Tensor:
        ctx.packed, ctx.routes, ctx.engine, ctx.by_token = packed, routes, engine, by_token
        return engine.forward(rows, packed, routes, by_token=by_token, bias=bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        to_rows = ctx.engine.backward(grads[0].contiguous(), ctx.packed, ctx.routes)
        return (ctx.routes.sum_back(to_rows) if ctx.by_token else to_rows), None, None, None, None, None


def grouped_product(
    rows: Tensor, packed: Packed, routes: Routes, engine: Engine, *, by_token: bool, bias: Tensor | None = None
) -> Tensor:
    """Multiply each sorted pair's row with its expert's matrix; the result is nobody else's and may be added to.

    Args:
        rows: (P, in) in the routes' order, or (T, in) when `by_token`.
        packed: E matrices (out, in).
        routes: who serves whom.
        engine: who computes.
        by_token: rows are tokens, to be gathered by the routes.
        bias: (E, out), or None.

    Returns:
        (P, out), in the routes' order and in the type of `rows`.
    """
    return _Grouped.apply(rows, packed, routes, engine, by_token, bias)  # type: ignore[no-untyped-call, no-any-return]


class _Combine(torch.autograd.Function):
    """Weights and sums each token's experts; keeps what they served, once, and gathers some tokens at a time."""

    @staticmethod
    def forward(ctx: Any, served: Tensor, weights: Tensor, routes: Routes) -> Tensor:
        ctx.save_for_backward(served, weights)
        ctx.routes = routes
        out = served.new_empty(weights.shape[0], served.shape[1])
        for part in _token_parts(routes):
            out[part] = torch.bmm(weights[part, None, :], _by_token(served, routes, part))[:, 0]
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        served, weights = ctx.saved_tensors
        routes = ctx.routes
        to_weights = torch.empty_like(weights)
        for part in _token_parts(routes):
            to_weights[part] = torch.bmm(_by_token(served, routes, part), grads[0][part, :, None])[:, :, 0]
        to_served = grads[0][routes.token_P].mul_(weights.flatten()[routes.order_P, None])
        return to_served, to_weights, None


def _token_parts(routes: Routes) -> Iterator[slice]:
    tokens = routes.pairs // routes.top_k
    for start in range(0, tokens, _TOKENS_AT_ONCE):
        yield slice(start, start + _TOKENS_AT_ONCE)


def _by_token(pairs: Tensor, routes: Routes, part: slice) -> Tensor:
    """Sorted pairs (P, d) of some tokens as (tokens, top_k, d)."""
    return pairs[routes.place_P.view(-1, routes.top_k)[part]]


def combine(served: Tensor, weights: Tensor, routes: Routes) -> Tensor:
    """Sum the sorted pairs (P, d) of each token by its routing weights (T, top_k): (T, d)."""
    return _Combine.apply(served, weights.to(served.dtype), routes)  # type: ignore[no-untyped-call, no-any-return]


def pick_engine(device: torch.device) -> Engine:
    """Triton's kernels on a GPU that has Triton, plain PyTorch elsewhere."""
    if device.type == "cuda":
        from importlib.util import find_spec

        if find_spec("triton") is not None:
            from outpace.policy.mxfp4.kernels import TritonEngine

            return TritonEngine()
    return PlainEngine()
