"""Triton kernels for one decode step of a Llama-shaped model, and the layer that is made of them.

A small model's step is bound by how many kernels it starts, so what lies between two matrix products is one kernel:
rotation and cache writes, attention, the gate. Each row attends to its own positions only, whose number is read on the
GPU: no mask is built, and a captured CUDA graph serves every length. Residuals are added by the products themselves.
Imported only where a GPU is used (or Triton's interpreter, in the tests). Not covered: sliding windows, sinks, prefill.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name that everyone gives it

from outpace.policy.mxfp4.kernels_small import product_type

if TYPE_CHECKING:
    from outpace.policy.lean_decode import Layer

_PROGRAMS = 264  # two for each multiprocessor of an H200; fewer rows than that share out their positions
_PER_SPLIT = 512  # positions of the cache for which another program (and a second kernel) pays
_MOST_SPLITS = 16
_TILE_BYTES = 16384  # keys that a program holds at a time


@dataclass(frozen=True, slots=True)
class Turn:
    """What all layers of one step share: each row's position and the rotation there, cosines and sines (B, D)."""

    position_B: Tensor
    cos_BD: Tensor
    sin_BD: Tensor


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """How attention is shared out: programs per row and head, positions per turn of a program's loop."""

    splits: int
    wide: int
    warps: int = 4
    stages: int = 3

    @classmethod
    def of(cls, keys: Tensor) -> "AttentionTile":
        """Choose by the shape of the cache alone, as a captured graph must."""
        rows, heads, positions, size = keys.shape
        most = min(_PROGRAMS // (rows * heads), positions // _PER_SPLIT, _MOST_SPLITS)
        splits = 1 << (max(most, 1).bit_length() - 1)
        return cls(splits, max(16, _TILE_BYTES // (_padded(size) * keys.element_size())))


def _padded(size: int, least: int = 16) -> int:
    padded: int = triton.next_power_of_2(size)
    return max(least, padded)


def layer_step(x: Tensor, layer: "Layer", keys: Tensor, values: Tensor, turn: Turn) -> Tensor:
    """One layer on x (B, d), in place: keys and values (B, H, T, D) are written at each row's position."""
    assert layer.qkv_joined
    assert layer.gate_up_joined
    normed = F.rms_norm(x, (x.shape[-1],), *layer.norms[0])
    q, k, v = torch.split(F.linear(normed, *layer.qkv_joined), [weight.shape[0] for weight, _ in layer.qkv], dim=1)
    rotate_and_store(q, (k, v), (keys, values), turn, layer.qk_norms)
    _add_product(x, attend(q, keys, values, turn.position_B, layer.scaling), layer.out)
    normed = F.rms_norm(x, (x.shape[-1],), *layer.norms[1])
    return _add_product(x, silu_mul(F.linear(normed, *layer.gate_up_joined)), layer.down)


def _add_product(x: Tensor, rows: Tensor, weights: tuple[Tensor, Tensor | None]) -> Tensor:
    """Add the linear layer to x in place (into another tensor, `addmm` would copy x first)."""
    x.addmm_(rows, weights[0].t())
    return x if weights[1] is None else x.add_(weights[1])


def rotate_and_store(
    q: Tensor,
    new: tuple[Tensor, Tensor],
    cache: tuple[Tensor, Tensor],
    turn: Turn,
    norms: list[tuple[Tensor, float]] | None = None,
) -> None:
    """Rotate q (B, Hq D) in place; write the rotated key and the value, (B, H D) each, into the cache (B, H, T, D).

    `norms` are weights (D,) and epsilons of rms norms that each head of q and k goes through first.
    """
    (k, v), (keys, values) = new, cache
    rows, heads, positions, size = keys.shape
    _check_layout(keys, values)
    (q_norm, q_eps), (k_norm, k_eps) = norms or [(q, 0.0), (k, 0.0)]
    _rotate_kernel[(rows, heads)](
        q, k, v, keys, values, turn.position_B, turn.cos_BD, turn.sin_BD, q_norm, k_norm, q_eps, k_eps,
        q.stride(0), k.stride(0), v.stride(0), *keys.stride()[:3], positions,
        GROUP=q.shape[1] // (heads * size), SIZE=size, HAS_NORM=norms is not None,
        MEMBERS=_padded(q.shape[1] // (heads * size), 1), HALF=_padded(size // 2, 1), num_warps=1,
    )  # fmt: skip


def _check_layout(keys: Tensor, values: Tensor) -> None:
    assert keys.stride() == values.stride()
    assert keys.stride(-1) == 1


@triton.jit  # type: ignore[untyped-decorator]
def _halves(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    x_ptr, place, mask, norm_ptr, half, eps, SIZE: tl.constexpr, HAS_NORM: tl.constexpr
):
    """First and second half of heads at `place` (M, D / 2), normed, in float32."""
    first = tl.load(x_ptr + place, mask=mask, other=0).to(tl.float32)
    second = tl.load(x_ptr + place + SIZE // 2, mask=mask, other=0).to(tl.float32)
    if HAS_NORM:
        kind = x_ptr.dtype.element_ty
        squares = tl.sum(first * first, 1) + tl.sum(second * second, 1)
        scale = tl.rsqrt(squares / SIZE + eps)[:, None]
        is_half = half < SIZE // 2
        left = tl.load(norm_ptr + half, mask=is_half, other=0).to(tl.float32)[None, :]
        right = tl.load(norm_ptr + half + SIZE // 2, mask=is_half, other=0).to(tl.float32)[None, :]
        # rounded as a norm of its own would leave it
        first = (first * scale * left).to(kind).to(tl.float32)
        second = (second * scale * right).to(kind).to(tl.float32)
    return first, second


@triton.jit  # type: ignore[untyped-decorator]
def _rotate_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, position_ptr, cos_ptr, sin_ptr, q_norm_ptr, k_norm_ptr, q_eps, k_eps,
    q_stride, k_stride, v_stride, row_stride, head_stride, place_stride, positions,
    GROUP: tl.constexpr, SIZE: tl.constexpr, HAS_NORM: tl.constexpr, MEMBERS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """One key-value head of one row, and the query heads that share it.

    A thread owns an element of the first half together with its partner in the second, so nothing is read after it has
    been overwritten.
    """
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    member, half = tl.arange(0, MEMBERS), tl.arange(0, HALF)
    is_half = half < SIZE // 2
    angle = row * SIZE + half
    cos_first = tl.load(cos_ptr + angle, mask=is_half, other=0).to(tl.float32)[None, :]
    cos_second = tl.load(cos_ptr + angle + SIZE // 2, mask=is_half, other=0).to(tl.float32)[None, :]
    sin_first = tl.load(sin_ptr + angle, mask=is_half, other=0).to(tl.float32)[None, :]
    sin_second = tl.load(sin_ptr + angle + SIZE // 2, mask=is_half, other=0).to(tl.float32)[None, :]
    kind = keys_ptr.dtype.element_ty

    place = row * q_stride + (head * GROUP + member[:, None]) * SIZE + half[None, :]
    mask = (member < GROUP)[:, None] & is_half[None, :]
    first, second = _halves(q_ptr, place, mask, q_norm_ptr, half, q_eps, SIZE, HAS_NORM)
    tl.store(q_ptr + place, (first * cos_first - second * sin_first).to(kind), mask=mask)
    tl.store(q_ptr + place + SIZE // 2, (second * cos_second + first * sin_second).to(kind), mask=mask)

    mask = is_half[None, :]
    at = tl.minimum(tl.load(position_ptr + row), positions - 1)
    target = row * row_stride + head.to(tl.int64) * head_stride + at * place_stride + half[None, :]
    place = row * k_stride + head * SIZE + half[None, :]
    first, second = _halves(k_ptr, place, mask, k_norm_ptr, half, k_eps, SIZE, HAS_NORM)
    tl.store(keys_ptr + target, (first * cos_first - second * sin_first).to(kind), mask=mask)
    tl.store(keys_ptr + target + SIZE // 2, (second * cos_second + first * sin_second).to(kind), mask=mask)
    place = row * v_stride + head * SIZE + half[None, :]
    tl.store(values_ptr + target, tl.load(v_ptr + place, mask=mask), mask=mask)
    tl.store(values_ptr + target + SIZE // 2, tl.load(v_ptr + place + SIZE // 2, mask=mask), mask=mask)


def attend(
    q: Tensor, keys: Tensor, values: Tensor, position_B: Tensor, scaling: float, tile: AttentionTile | None = None
) -> Tensor:
    """Attention of q (B, Hq D) to the positions 0 to position_B of keys and values (B, H, T, D): (B, Hq D).

    Rows of q may lie apart. Softmax in float32. `tile` is for measurements and tests; None chooses.
    """
    rows, heads, positions, size = keys.shape
    _check_layout(keys, values)
    assert q.stride(1) == 1
    tile = tile or AttentionTile.of(keys)
    group = q.shape[1] // (heads * size)
    mixed, partial, sums = q.new_empty(q.shape), q, q
    if tile.splits > 1:
        partial = q.new_empty(rows, group * heads, tile.splits, size, dtype=torch.float32)
        sums = q.new_empty(2, rows, group * heads, tile.splits, dtype=torch.float32)
    _attend_kernel[(rows, heads, tile.splits)](
        q, keys, values, position_B, mixed if tile.splits == 1 else partial, sums[0], sums[-1],
        scaling * 1.4426950408889634, q.stride(0), *keys.stride()[:3], positions,
        GROUP=group, SIZE=size, SPLITS=tile.splits, MEMBERS=_padded(group), DEEP=_padded(size), WIDE=tile.wide,
        KIND=product_type(q.dtype), num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    if tile.splits > 1:
        _combine_kernel[(rows * heads * group,)](
            partial, sums[0], sums[1], mixed, SIZE=size, SPLITS=tile.splits, DEEP=_padded(size), num_warps=2
        )
    return mixed


@triton.jit  # type: ignore[untyped-decorator]
def _attend_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    q_ptr, keys_ptr, values_ptr, position_ptr, out_ptr, top_ptr, sum_ptr,
    scale, q_stride, row_stride, head_stride, place_stride, positions,
    GROUP: tl.constexpr, SIZE: tl.constexpr, SPLITS: tl.constexpr, MEMBERS: tl.constexpr, DEEP: tl.constexpr,
    WIDE: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The query heads of one key-value head of one row, over all its positions or over one of SPLITS equal shares.

    `scale` holds the factor log2(e): powers of two are quicker than those of e.
    """
    row, head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    length = tl.minimum(tl.load(position_ptr + row), positions - 1).to(tl.int32) + 1
    share = (length + SPLITS - 1) // SPLITS
    begin = split * share
    end = tl.minimum(begin + share, length)
    member, column = tl.arange(0, MEMBERS), tl.arange(0, DEEP)
    is_column = (column < SIZE)[None, :]
    is_mine = (member < GROUP)[:, None] & is_column
    first_head = (row * tl.num_programs(1) + head) * GROUP
    mine = row * q_stride + (head * GROUP + member)[:, None] * SIZE + column[None, :]
    q = tl.load(q_ptr + mine, mask=is_mine, other=0).to(KIND)
    keys_ptr += row * row_stride + head.to(tl.int64) * head_stride
    values_ptr += row * row_stride + head.to(tl.int64) * head_stride
    top = tl.full((MEMBERS,), float("-inf"), tl.float32)
    total = tl.zeros((MEMBERS,), tl.float32)
    mixed = tl.zeros((MEMBERS, DEEP), tl.float32)
    for start in range(begin, end, WIDE):
        at = start + tl.arange(0, WIDE)
        mask = (at < end)[:, None] & is_column
        place = at.to(tl.int64)[:, None] * place_stride + column[None, :]
        key = tl.load(keys_ptr + place, mask=mask, other=0).to(KIND)
        scores = tl.dot(q, tl.trans(key), input_precision="ieee") * scale
        scores = tl.where((at < end)[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(top - higher)
        total = total * fade + tl.sum(weights, 1)
        value = tl.load(values_ptr + place, mask=mask, other=0).to(KIND)
        mixed = tl.dot(weights.to(KIND), value, mixed * fade[:, None], input_precision="ieee")
        top = higher
    slot = (first_head + member) * SPLITS + split
    if SPLITS == 1:
        mixed = mixed / total[:, None]
    else:
        tl.store(top_ptr + slot, top, mask=member < GROUP)
        tl.store(sum_ptr + slot, total, mask=member < GROUP)
    tl.store(out_ptr + slot[:, None] * SIZE + column[None, :], mixed.to(out_ptr.dtype.element_ty), mask=is_mine)


@triton.jit  # type: ignore[untyped-decorator]
def _combine_kernel(  # type: ignore[no-untyped-def]
    partial_ptr, top_ptr, sum_ptr, out_ptr, SIZE: tl.constexpr, SPLITS: tl.constexpr, DEEP: tl.constexpr
):
    """One query head of one row: its shares, each by its weight. A share without positions weighs nothing."""
    first = tl.program_id(0).to(tl.int64) * SPLITS
    split, column = tl.arange(0, SPLITS), tl.arange(0, DEEP)
    top = tl.load(top_ptr + first + split)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(sum_ptr + first + split), 0)
    is_column = (column < SIZE)[None, :]
    place = (first + split)[:, None] * SIZE + column[None, :]
    mixed = tl.sum(weight[:, None] * tl.load(partial_ptr + place, mask=is_column, other=0), 0) / total
    target = out_ptr + tl.program_id(0).to(tl.int64) * SIZE + column
    tl.store(target, mixed.to(out_ptr.dtype.element_ty), mask=column < SIZE)


def silu_mul(gate_up: Tensor) -> Tensor:
    """silu(gate) * up in one pass: gate and up side by side (B, 2 I) -> (B, I)."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = gate_up.new_empty(rows, width)
    _silu_mul_kernel[(rows, triton.cdiv(width, 1024))](gate_up, out, gate_up.stride(0), width, WIDE=1024)
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _silu_mul_kernel(gate_up_ptr, out_ptr, stride, width, WIDE: tl.constexpr):  # type: ignore[no-untyped-def]
    """WIDE products of one row."""
    row, place = tl.program_id(0).to(tl.int64), tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    mask = place < width
    gate_ptr = gate_up_ptr + row * stride + place
    gate = tl.load(gate_ptr, mask=mask, other=0).to(tl.float32)
    up = tl.load(gate_ptr + width, mask=mask, other=0).to(tl.float32)
    result = (gate / (1 + tl.exp(-gate)) * up).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * width + place, result, mask=mask)
