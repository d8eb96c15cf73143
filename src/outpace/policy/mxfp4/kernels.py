"""Triton kernels for products with packed experts, forward and back.

One pair of kernels serves decoding and training; only tile sizes differ. A tile belongs to one expert: every program
finds its expert from the routes' offsets, so nothing waits for the host and a step can be captured as a CUDA graph.
A byte holds an even and an odd column, so even and odd columns are multiplied apart and never interleaved in registers.
Imported only where a GPU is used (or Triton's interpreter, in the tests). Not covered: autotuning at run time.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from outpace.policy.mxfp4.grouped import Routes
from outpace.policy.mxfp4.kernels_small import clamped_swiglu, clamped_swiglu_backward, product_type
from outpace.policy.mxfp4.packing import Packed


@dataclass(frozen=True, slots=True)
class Tile:
    """Sizes of one program's work: pairs, the side that is written, the side that is summed over."""

    pairs: int
    wide: int
    deep: int
    warps: int
    stages: int


ONE = Tile(16, 64, 128, 4, 3)
"""One token: few experts, so many narrow programs."""
FEW = Tile(16, 128, 64, 4, 4)
"""Decoding: the weights are read once and decide the time."""
MANY = Tile(128, 128, 64, 4, 3)
"""Prompts and training. All three are the quickest of those that `benchmarks/moe_h200.py` tries on an H200."""


class TritonEngine:
    """The kernels below behind `grouped.Engine`; `tile` fixes the sizes (for measurements), None chooses them."""

    def __init__(self, tile: Tile | None = None) -> None:
        self.tile = tile

    def _tile(self, routes: Routes) -> Tile:
        if self.tile is not None:
            return self.tile
        if routes.pairs <= 8:
            return ONE
        return FEW if routes.pairs <= 16 * routes.experts else MANY

    def forward(
        self, rows: Tensor, packed: Packed, routes: Routes, *, by_token: bool, bias: Tensor | None = None
    ) -> Tensor:
        """See `grouped.Engine`."""
        rows = rows.contiguous()
        tile, width, depth = self._tile(routes), packed.rows, packed.columns
        out = rows.new_empty(routes.pairs, width)
        grid = (triton.cdiv(width, tile.wide), _most_tiles(routes, tile))
        _forward_kernel[grid](
            _as_words(rows), packed.blocks, packed.scales, out, routes.offsets, routes.token_P,
            out if bias is None else bias, routes.experts, width, depth,
            **_options(rows, routes, tile), BY_TOKEN=by_token, HAS_BIAS=bias is not None,
        )  # fmt: skip
        return out

    def backward(self, grads: Tensor, packed: Packed, routes: Routes) -> Tensor:
        """See `grouped.Engine`."""
        tile, width, depth = self._tile(routes), packed.rows, packed.columns
        out = grads.new_empty(routes.pairs, depth)
        grid = (triton.cdiv(depth, tile.wide), _most_tiles(routes, tile))
        _backward_kernel[grid](
            grads, packed.blocks, packed.scales, _as_words(out), routes.offsets,
            routes.experts, width, depth, **_options(grads, routes, tile),
        )  # fmt: skip
        return out

    def swiglu(self, gate_up: Tensor, alpha: float, limit: float) -> Tensor:
        """See `grouped.Engine`."""
        return clamped_swiglu(gate_up, alpha, limit)

    def swiglu_backward(self, gate_up: Tensor, grad: Tensor, alpha: float, limit: float) -> Tensor:
        """See `grouped.Engine`."""
        return clamped_swiglu_backward(gate_up, grad, alpha, limit)


def _options(rows: Tensor, routes: Routes, tile: Tile) -> dict[str, Any]:
    return {
        "EXPERTS": triton.next_power_of_2(routes.experts),
        "PAIRS": tile.pairs,
        "WIDE": tile.wide,
        "DEEP": tile.deep,
        "IS_WORDS": rows.dtype == torch.bfloat16,
        "KIND": product_type(rows.dtype),
        "num_warps": tile.warps,
        "num_stages": tile.stages,
    }


def _most_tiles(routes: Routes, tile: Tile) -> int:
    """At most so many tiles, whatever the routes are: each expert can leave one unfilled."""
    return routes.pairs // tile.pairs + min(routes.experts, routes.pairs)


def _as_words(rows: Tensor) -> Tensor:
    """Two bfloat16 columns as one 32-bit word, so that they are moved together; other types as they are."""
    return rows.view(torch.int32) if rows.dtype == torch.bfloat16 else rows


@triton.jit  # type: ignore[untyped-decorator]
def _find_tile(offsets_ptr, experts, EXPERTS: tl.constexpr, PAIRS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The expert of this program's tile, and the pairs that it serves; expert == experts: there is no such tile."""
    tile = tl.program_id(1)
    names = tl.arange(0, EXPERTS)
    is_real = names < experts
    first = tl.load(offsets_ptr + names, mask=is_real, other=0)
    last = tl.load(offsets_ptr + names + 1, mask=is_real, other=0)
    tiles = (last - first + PAIRS - 1) // PAIRS
    edges = tl.cumsum(tiles, 0)
    expert = tl.sum(((edges <= tile) & is_real).to(tl.int32), 0)
    is_mine = names == expert
    start = tl.sum(tl.where(is_mine, first + (tile - edges + tiles) * PAIRS, 0), 0)
    end = tl.sum(tl.where(is_mine, last, 0), 0)
    return expert, start, end


@triton.jit  # type: ignore[untyped-decorator]
def _values(codes, scale, dtype: tl.constexpr):  # type: ignore[no-untyped-def]
    """Four-bit codes as numbers: their bits, put where a float32 has exponent and mantissa, lack a factor of 2**126.

    The code 1 (for 0.5) becomes a denormal number there, which the multiplication makes a normal one.
    """
    wide = codes.to(tl.int32)
    bits = ((wide & 8) << 28) | ((wide & 7) << 22)
    return (bits.to(tl.float32, bitcast=True) * 8.507059173023462e37 * scale).to(dtype)


@triton.jit
def _load_matrix(blocks_ptr, scales_ptr, row, half, depth, mask):  # type: ignore[no-untyped-def]
    """Bytes and scales of rows (R,) and byte columns (C,) of one matrix: (R, C) each."""
    byte = tl.load(blocks_ptr + row[:, None] * (depth // 2) + half[None, :], mask=mask, other=0)
    # one load per scale, spread over its 16 bytes: a load per byte takes 10 to 60 % longer
    group = tl.min(half, 0) // 16 + tl.arange(0, half.shape[0] // 16)
    is_group = (group < depth // 32)[None, :] & (tl.max(mask.to(tl.int32), 1) > 0)[:, None]
    power = tl.load(scales_ptr + row[:, None] * (depth // 32) + group[None, :], mask=is_group, other=0)
    power = tl.broadcast_to(power[:, :, None], (row.shape[0], half.shape[0] // 16, 16))
    power = tl.reshape(power, (row.shape[0], half.shape[0]))
    return byte, (power.to(tl.int32) << 23).to(tl.float32, bitcast=True)


@triton.jit  # type: ignore[untyped-decorator]
def _forward_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    rows_ptr, blocks_ptr, scales_ptr, out_ptr, offsets_ptr, token_ptr, bias_ptr, experts,
    width: tl.constexpr, depth: tl.constexpr,
    EXPERTS: tl.constexpr, PAIRS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
    IS_WORDS: tl.constexpr, KIND: tl.constexpr, BY_TOKEN: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """out[p, n] = bias[n] + sum over k of rows[p, k] * matrix[n, k], for one expert's pairs and WIDE columns n."""
    expert, start, end = _find_tile(offsets_ptr, experts, EXPERTS, PAIRS)
    if expert >= experts:
        return
    pair = start + tl.arange(0, PAIRS)
    is_pair = pair < end
    source = tl.load(token_ptr + pair, mask=is_pair, other=0) if BY_TOKEN else pair
    source = source.to(tl.int64)
    column = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    is_column = column < width
    blocks_ptr += expert.to(tl.int64) * width * (depth // 2)
    scales_ptr += expert.to(tl.int64) * width * (depth // 32)
    total = tl.zeros((PAIRS, WIDE), dtype=tl.float32)
    for first in range(0, depth // 2, DEEP // 2):
        half = first + tl.arange(0, DEEP // 2)
        is_half = half < depth // 2
        byte, scale = _load_matrix(blocks_ptr, scales_ptr, column, half, depth, is_column[:, None] & is_half[None, :])
        mask = is_pair[:, None] & is_half[None, :]
        if IS_WORDS:
            word = tl.load(rows_ptr + source[:, None] * (depth // 2) + half[None, :], mask=mask, other=0)
            even = (word & 0xFFFF).to(tl.uint16).to(tl.bfloat16, bitcast=True)
            odd = ((word >> 16) & 0xFFFF).to(tl.uint16).to(tl.bfloat16, bitcast=True)
        else:
            place = rows_ptr + source[:, None] * depth + half[None, :] * 2
            even = tl.load(place, mask=mask, other=0)
            odd = tl.load(place + 1, mask=mask, other=0)
        total = tl.dot(even.to(KIND), tl.trans(_values(byte & 0xF, scale, KIND)), total, input_precision="ieee")
        total = tl.dot(odd.to(KIND), tl.trans(_values(byte >> 4, scale, KIND)), total, input_precision="ieee")
    if HAS_BIAS:
        bias = tl.load(bias_ptr + expert * width + column, mask=is_column, other=0)
        total += bias.to(tl.float32)[None, :]
    place = out_ptr + pair[:, None].to(tl.int64) * width + column[None, :]
    tl.store(place, total.to(out_ptr.dtype.element_ty), mask=is_pair[:, None] & is_column[None, :])


@triton.jit  # type: ignore[untyped-decorator]
def _backward_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    grads_ptr, blocks_ptr, scales_ptr, out_ptr, offsets_ptr, experts,
    width: tl.constexpr, depth: tl.constexpr,
    EXPERTS: tl.constexpr, PAIRS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
    IS_WORDS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """out[p, k] = sum over n of grads[p, n] * matrix[n, k], for one expert's pairs and WIDE columns k."""
    expert, start, end = _find_tile(offsets_ptr, experts, EXPERTS, PAIRS)
    if expert >= experts:
        return
    pair = start + tl.arange(0, PAIRS)
    is_pair = pair < end
    half = tl.program_id(0) * (WIDE // 2) + tl.arange(0, WIDE // 2)
    is_half = half < depth // 2
    blocks_ptr += expert.to(tl.int64) * width * (depth // 2)
    scales_ptr += expert.to(tl.int64) * width * (depth // 32)
    even = tl.zeros((PAIRS, WIDE // 2), dtype=tl.float32)
    odd = tl.zeros((PAIRS, WIDE // 2), dtype=tl.float32)
    for first in range(0, width, DEEP):
        row = first + tl.arange(0, DEEP)
        is_row = row < width
        byte, scale = _load_matrix(blocks_ptr, scales_ptr, row, half, depth, is_row[:, None] & is_half[None, :])
        grad = tl.load(
            grads_ptr + pair[:, None].to(tl.int64) * width + row[None, :],
            mask=is_pair[:, None] & is_row[None, :],
            other=0,
        )
        even = tl.dot(grad.to(KIND), _values(byte & 0xF, scale, KIND), even, input_precision="ieee")
        odd = tl.dot(grad.to(KIND), _values(byte >> 4, scale, KIND), odd, input_precision="ieee")
    mask = is_pair[:, None] & is_half[None, :]
    if IS_WORDS:
        low = even.to(tl.bfloat16).to(tl.uint16, bitcast=True).to(tl.int32)
        high = odd.to(tl.bfloat16).to(tl.uint16, bitcast=True).to(tl.int32)
        place = out_ptr + pair[:, None].to(tl.int64) * (depth // 2) + half[None, :]
        tl.store(place, low | (high << 16), mask=mask)
    else:
        place = out_ptr + pair[:, None].to(tl.int64) * depth + half[None, :] * 2
        tl.store(place, even.to(out_ptr.dtype.element_ty), mask=mask)
        tl.store(place + 1, odd.to(out_ptr.dtype.element_ty), mask=mask)
