"""Layers in little memory: 8-bit and 4-bit linear layers, and an embedding that stays on the host. All frozen.

They are `nn.Linear`s to whoever asks, so PEFT adapts them as it adapts others. Not covered: merging an adapter into
them (`merge` writes from unpacked weights) and training them.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from outpace.policy.mxfp4.grouped import Engine, PlainEngine, Routes, grouped_product
from outpace.policy.mxfp4.packing import BLOCK, Packed, pack, unpack

Rows = Callable[[int, int], Tensor]
"""Reads rows [start, end) of a weight, so that a large one is never whole in memory."""
ROWS_AT_ONCE = 8192
"""Rows of a large weight that are unpacked together."""


class _FrozenLinear(nn.Linear):
    """What 8-bit and 4-bit layers share: sizes and a bias, but no weight parameter.

    Abstract: each kind has its own `_fill_rows` and `unpacked`.
    """

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        nn.Module.__init__(self)  # not Linear's, which makes the weight
        self.in_features, self.out_features = in_features, out_features
        own = nn.Parameter(torch.empty(out_features), requires_grad=False) if bias else None
        self.register_parameter("bias", own)

    def fill(self, read: Rows) -> None:
        """Take the weight over, some rows at a time."""
        for start in range(0, self.out_features, ROWS_AT_ONCE):
            end = min(start + ROWS_AT_ONCE, self.out_features)
            self._fill_rows(start, end, read(start, end))

    def _fill_rows(self, start: int, end: int, rows: Tensor) -> None:
        raise NotImplementedError

    def unpacked(self, dtype: torch.dtype) -> Tensor:
        """The weight (out, in) in a float type."""
        raise NotImplementedError

    def _plus_bias(self, product: Tensor) -> Tensor:
        return product if self.bias is None else product + self.bias.to(product.dtype)


class Int8Weight(Tensor):
    """8-bit codes (out, in) that read as floats row by row: a slice of rows is what those rows stand for.

    So code that multiplies with `weight[start:end]` (TRL's chunked log-probabilities) needs no copy of the whole.
    """

    scale: Tensor

    @staticmethod
    def over(codes: Tensor, scale: Tensor) -> "Int8Weight":
        """A view of `codes` that knows their `scale` (out,)."""
        weight = codes.as_subclass(Int8Weight)
        weight.scale = scale
        return weight

    def __getitem__(self, rows: Any) -> Tensor:
        codes, scale = self.as_subclass(Tensor), self.scale
        return codes[rows].to(scale.dtype).mul_(scale[rows][..., None])


class Int8Linear(_FrozenLinear):
    """Weights in 8 bits with one scale per row: about 0.7 % of the weights' size in rounding."""

    codes: Tensor
    scale: Tensor

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.register_buffer("codes", torch.empty(out_features, in_features, dtype=torch.int8))
        self.register_buffer("scale", torch.empty(out_features))

    @property
    def weight(self) -> Int8Weight:  # type: ignore[override]
        """The codes, reading as floats row by row."""
        return Int8Weight.over(self.codes, self.scale)

    def _fill_rows(self, start: int, end: int, rows: Tensor) -> None:
        scale = rows.abs().amax(dim=1).float().clamp_min(1e-30) / 127
        self.scale[start:end] = scale
        self.codes[start:end] = (rows.float() / self.scale[start:end].float()[:, None]).round().clamp(-127, 127)

    def unpacked(self, dtype: torch.dtype) -> Tensor:
        """See `_FrozenLinear`."""
        return self.codes.to(dtype) * self.scale.to(dtype)[:, None]

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        product: Tensor = _Int8Product.apply(input, self.codes, self.scale)  # type: ignore[no-untyped-call]
        return self._plus_bias(product)


class _Int8Product(torch.autograd.Function):
    """x W^T with W unpacked some rows at a time; nothing is kept but the codes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, codes: Tensor, scale: Tensor) -> Tensor:
        ctx.codes, ctx.scale = codes, scale
        if x.is_cuda and x.shape[:-1].numel() <= _FEW_ROWS and (kernel := _int8_kernel()) is not None:
            return kernel(x, codes, scale)
        out = x.new_empty(*x.shape[:-1], codes.shape[0])
        for start in range(0, codes.shape[0], ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            out[..., part] = (x @ codes[part].to(x.dtype).T) * scale[part].to(x.dtype)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scaled = grads[0] * ctx.scale.to(grads[0].dtype)
        total: Tensor | None = None
        for start in range(0, ctx.codes.shape[0], ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            product = scaled[..., part] @ ctx.codes[part].to(scaled.dtype)
            total = product if total is None else total + product
        return total, None, None


_FEW_ROWS = 32
"""Rows up to which reading the weight once, in 8 bits, decides the time."""


def _int8_kernel() -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    from importlib.util import find_spec

    if find_spec("triton") is None:
        return None
    from outpace.policy.mxfp4.kernels_small import int8_product

    return int8_product


class PackedLinear(_FrozenLinear):
    """Weights in MXFP4, rounded here: about 11 % of the weights' size in rounding, at half the memory of 8 bits."""

    blocks: Tensor
    scales: Tensor

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        shape = (1, out_features, in_features // BLOCK)
        self.register_buffer("blocks", torch.empty(*shape, BLOCK // 2, dtype=torch.uint8))
        self.register_buffer("scales", torch.empty(shape, dtype=torch.uint8))
        self.engine: Engine = PlainEngine()

    @property
    def packed(self) -> Packed:
        """The weight as a stack of one matrix."""
        return Packed(self.blocks, self.scales)

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The packed bytes: what PEFT asks for the device."""
        return self.scales

    def _fill_rows(self, start: int, end: int, rows: Tensor) -> None:
        self.blocks[0, start:end], self.scales[0, start:end] = pack(rows)

    def unpacked(self, dtype: torch.dtype) -> Tensor:
        """See `_FrozenLinear`."""
        return unpack(self.packed, dtype)[0]

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        rows = input.reshape(-1, self.in_features)
        routes = Routes.dense(rows.shape[0], rows.device)
        bias = None if self.bias is None else self.bias[None]
        product = grouped_product(rows, self.packed, routes, self.engine, by_token=False, bias=bias)
        return product.view(*input.shape[:-1], self.out_features)


class HostEmbedding(nn.Module):
    """An embedding whose table stays in host memory; only the rows asked for travel.

    On a GPU the table is pinned and a kernel reads it in place, so that a captured graph can do it too.
    """

    def __init__(self, table: Tensor, device: torch.device) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = table.shape
        # no parameter and no buffer, so that moving the model leaves it where it is
        self.table = table.pin_memory() if device.type == "cuda" else table
        self.padding_idx = None

    @property
    def weight(self) -> Tensor:
        """The table (V, d), on the host."""
        return self.table

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (...) -> rows (..., d) on the ids' device."""
        if not ids.is_cuda:
            return nn.functional.embedding(ids, self.table)
        from outpace.policy.mxfp4.kernels_small import gather_from_host

        return gather_from_host(self.table, ids)
