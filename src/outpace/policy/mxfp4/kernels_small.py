"""Small Triton kernels: gpt-oss's gate, 8-bit products of few rows, and rows of a table in host memory.

Imported only where a GPU is used (or Triton's interpreter, in the tests).
"""

import os
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


def product_type(dtype: torch.dtype) -> Any:
    """The type that numbers are multiplied in: their own, but Triton's interpreter multiplies no bfloat16."""
    own = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}[dtype]
    return tl.float32 if os.environ.get("TRITON_INTERPRET") == "1" else own


def int8_product(x: Tensor, codes: Tensor, scale: Tensor) -> Tensor:
    """x (..., in) times 8-bit `codes` (out, in), scaled by row: (..., out); for few rows, as in decoding."""
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    count, depth, width = rows.shape[0], rows.shape[1], codes.shape[0]
    out = rows.new_empty(count, width)
    pairs = max(16, triton.next_power_of_2(count))
    _int8_kernel[(triton.cdiv(width, 64),)](
        rows,
        codes,
        scale,
        out,
        count,
        width,
        depth,
        ROWS=pairs,
        WIDE=64,
        DEEP=128,
        KIND=product_type(rows.dtype),
        num_warps=4,
        num_stages=4,
    )
    return out.view(*x.shape[:-1], width)


@triton.jit  # type: ignore[untyped-decorator]
def _int8_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    rows_ptr, codes_ptr, scale_ptr, out_ptr, count,
    width: tl.constexpr, depth: tl.constexpr,
    ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """WIDE columns of rows times codes, transposed."""
    row, column = tl.arange(0, ROWS), tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    is_row, is_column = row < count, column < width
    codes_ptr += column.to(tl.int64)[:, None] * depth
    total = tl.zeros((ROWS, WIDE), dtype=tl.float32)
    for first in range(0, depth, DEEP):
        place = first + tl.arange(0, DEEP)
        is_place = (place < depth)[None, :]
        left = tl.load(rows_ptr + row[:, None] * depth + place[None, :], mask=is_row[:, None] & is_place, other=0)
        right = tl.load(codes_ptr + place[None, :], mask=is_column[:, None] & is_place, other=0)
        total = tl.dot(left.to(KIND), tl.trans(right.to(KIND)), total, input_precision="ieee")
    scale = tl.load(scale_ptr + column, mask=is_column, other=0).to(tl.float32)
    target = out_ptr + row[:, None] * width + column[None, :]
    tl.store(target, (total * scale[None, :]).to(out_ptr.dtype.element_ty), mask=is_row[:, None] & is_column[None, :])


def gather_from_host(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a pinned host `table` (V, d), read over the bus by the GPU: ids (...) -> (..., d) on their device."""
    flat = ids.reshape(-1)
    out = torch.empty(flat.numel(), table.shape[1], dtype=table.dtype, device=ids.device)
    if flat.numel():
        _gather_kernel[(flat.numel(),)](table, flat, out, table.shape[1], WIDE=triton.next_power_of_2(table.shape[1]))
    return out.view(*ids.shape, -1)


@triton.jit  # type: ignore[untyped-decorator]
def _gather_kernel(table_ptr, ids_ptr, out_ptr, width, WIDE: tl.constexpr):  # type: ignore[no-untyped-def]
    """One row."""
    place = tl.arange(0, WIDE)
    source = tl.load(ids_ptr + tl.program_id(0)).to(tl.int64) * width
    row = tl.load(table_ptr + source + place, mask=place < width)
    tl.store(out_ptr + tl.program_id(0).to(tl.int64) * width + place, row, mask=place < width)


def clamped_swiglu(gate_up: Tensor, alpha: float, limit: float) -> Tensor:
    """gpt-oss's gate in one pass: (P, 2 I) with gates in even columns -> (P, I)."""
    gate_up = gate_up.contiguous()
    out = gate_up.new_empty(*gate_up.shape[:-1], gate_up.shape[-1] // 2)
    grid = (triton.cdiv(out.numel(), 1024),)
    _swiglu_kernel[grid](gate_up, gate_up, out, out.numel(), alpha, limit, BACK=False, WIDE=1024)
    return out


def clamped_swiglu_backward(gate_up: Tensor, grad: Tensor, alpha: float, limit: float) -> Tensor:
    """The gradient of `gate_up`, given that of the result."""
    out = torch.empty_like(gate_up)
    grid = (triton.cdiv(grad.numel(), 1024),)
    _swiglu_kernel[grid](gate_up, grad.contiguous(), out, grad.numel(), alpha, limit, BACK=True, WIDE=1024)
    return out


@triton.jit  # type: ignore[untyped-decorator]
def _swiglu_kernel(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  # a kernel's arguments
    gate_up_ptr, grad_ptr, out_ptr, count, alpha, limit, BACK: tl.constexpr, WIDE: tl.constexpr
):
    """WIDE results, or the gradients of as many pairs of columns."""
    place = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    mask = place < count
    gate = tl.load(gate_up_ptr + 2 * place, mask=mask, other=0).to(tl.float32)
    up = tl.load(gate_up_ptr + 2 * place + 1, mask=mask, other=0).to(tl.float32)
    low = tl.minimum(gate, limit)
    raised = tl.minimum(tl.maximum(up, -limit), limit) + 1
    sigmoid = 1 / (1 + tl.exp(-alpha * low))
    kind = out_ptr.dtype.element_ty
    if BACK:
        grad = tl.load(grad_ptr + place, mask=mask, other=0).to(tl.float32)
        to_gate = grad * raised * sigmoid * (1 + alpha * low * (1 - sigmoid))
        to_up = grad * low * sigmoid
        tl.store(out_ptr + 2 * place, tl.where(gate <= limit, to_gate, 0).to(kind), mask=mask)
        tl.store(out_ptr + 2 * place + 1, tl.where(tl.abs(up) <= limit, to_up, 0).to(kind), mask=mask)
    else:
        tl.store(out_ptr + place, (raised * low * sigmoid).to(kind), mask=mask)
