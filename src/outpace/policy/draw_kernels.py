"""Two Triton kernels that draw a token per row from logits as they are, without a filter.

The first reads the logits once, by blocks; the second needs one block per row again. Orders of summation are fixed, so
a row's token depends on its logits and its uniform number alone, as in `draw`, with which it agrees but where rounding
decides on the edge between two tokens. Sums within a block are in float32, over blocks in float64.
Imported only where a GPU is used (or Triton's interpreter, in the tests). Not covered: greedy choice and filters.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_WIDE = 4096  # tokens per block


def draw_unfiltered(
    logits: Tensor, uniforms: Tensor, temperature: float, *, wide: int = _WIDE
) -> tuple[Tensor, Tensor, Tensor]:
    """`draw.draw` for a temperature above 0 and no filter; `wide` (a power of two) is for tests."""
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    rows, width = logits.shape
    blocks = triton.cdiv(width, wide)
    tops, sums = logits.new_empty(2, rows, blocks, dtype=torch.float32)
    token = logits.new_empty(rows, dtype=torch.long)
    logprob = logits.new_empty(rows, dtype=torch.float32)
    is_finite = logits.new_empty(rows, dtype=torch.bool)
    shape = (logits.stride(0), width)
    options = {"IS_SCALED": temperature != 1.0, "WIDE": wide, "num_warps": 8}
    _block_kernel[(rows, blocks)](logits, tops, sums, *shape, temperature, **options)
    _choose_kernel[(rows,)](
        logits, tops, sums, uniforms.contiguous(), token, logprob, is_finite, *shape, blocks, temperature,
        BLOCKS=triton.next_power_of_2(blocks), **options,
    )  # fmt: skip
    return token, logprob, is_finite


@triton.jit  # type: ignore[untyped-decorator]
def _block(logits_ptr, place, width, temperature, IS_SCALED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Logits at `place` over temperature, in float32; minus infinity beyond the vocabulary."""
    scaled = tl.load(logits_ptr + place, mask=place < width, other=float("-inf")).to(tl.float32)
    return tl.div_rn(scaled, temperature) if IS_SCALED else scaled


@triton.jit
def _weights(scaled, top):  # type: ignore[no-untyped-def]
    """exp(scaled - top); a block in which every token is impossible has the top minus infinity and weighs nothing."""
    return tl.exp(scaled - tl.where(top == float("-inf"), 0.0, top))


@triton.jit  # type: ignore[untyped-decorator]
def _block_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    logits_ptr, top_ptr, sum_ptr, stride, width, temperature, IS_SCALED: tl.constexpr, WIDE: tl.constexpr
):
    """The largest logit of one block of one row, and the sum of weights relative to it."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    place = block * WIDE + tl.arange(0, WIDE)
    scaled = _block(logits_ptr + row * stride, place, width, temperature, IS_SCALED)
    top = tl.max(scaled, 0)
    slot = row * tl.num_programs(1) + block
    tl.store(top_ptr + slot, top)
    tl.store(sum_ptr + slot, tl.sum(_weights(scaled, top), 0))


@triton.jit  # type: ignore[untyped-decorator]
def _first_above(weights, target, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """The first place whose cumulative sum exceeds `target`, and the sum before it.

    Only places that weigh something count, since a parallel sum may rise by rounding elsewhere; where rounding leaves
    no sum above the target, the last such place.
    """
    place = tl.arange(0, COUNT)
    sums = tl.cumsum(weights, 0)
    is_possible = weights > 0
    first = tl.min(tl.where(is_possible & (sums > target), place, COUNT), 0)
    last = tl.max(tl.where(is_possible, place, 0), 0)
    found = tl.where(first < COUNT, first, last)
    return found, tl.sum(tl.where(place == found, sums - weights, 0.0), 0)


@triton.jit  # type: ignore[untyped-decorator]
def _choose_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    logits_ptr, top_ptr, sum_ptr, uniform_ptr, token_ptr, logprob_ptr, finite_ptr,
    stride, width, blocks, temperature,
    IS_SCALED: tl.constexpr, WIDE: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """One row: the block in which the uniform number falls, then the token in it."""
    row, block = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCKS)
    tops = tl.load(top_ptr + row * blocks + block, mask=block < blocks, other=float("-inf"))
    sums = tl.load(sum_ptr + row * blocks + block, mask=block < blocks, other=0)
    top = tl.max(tops, 0)
    shares = tl.exp(tops - top)
    weights = sums.to(tl.float64) * shares.to(tl.float64)
    total = tl.sum(weights, 0)
    target = tl.load(uniform_ptr + row) * total
    chosen, before = _first_above(weights, target, BLOCKS)
    block_top = tl.sum(tl.where(block == chosen, tops, 0.0), 0)
    share = tl.sum(tl.where(block == chosen, shares, 0.0), 0)

    place = chosen * WIDE + tl.arange(0, WIDE)
    scaled = _block(logits_ptr + row * stride, place, width, temperature, IS_SCALED)
    inside = _weights(scaled, block_top).to(tl.float64)
    found, _ = _first_above(inside, (target - before) / share.to(tl.float64), WIDE)
    logit = tl.sum(tl.where(tl.arange(0, WIDE) == found, scaled, 0.0), 0)
    tl.store(token_ptr + row, tl.minimum(chosen * WIDE + found, width - 1).to(tl.int64))
    tl.store(logprob_ptr + row, logit - top - tl.log(total.to(tl.float32)))
    tl.store(finite_ptr + row, total < float("inf"))
