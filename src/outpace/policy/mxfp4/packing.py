"""MXFP4: 32 numbers of 4 bits (E2M1) that share one power of two (E8M0), as in the OCP Microscaling specification 1.0.

Layout, as in the checkpoints: `blocks` (..., rows, columns / 32, 16) uint8, the lower half of a byte first, and
`scales` (..., rows, columns / 32) uint8 with bias 127. Not covered: other element types of that specification.
"""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from outpace.errors import ModelError

BLOCK = 32
"""Numbers that share a scale."""
LEVELS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitudes that three bits name; the fourth bit is the sign."""
_BIAS = 127
_BOUNDS = tuple((low + high) / 2 for low, high in pairwise(LEVELS))


class Packed(NamedTuple):
    """A matrix, or a stack of them, in MXFP4."""

    blocks: Tensor
    """(..., rows, columns / 32, 16) uint8."""
    scales: Tensor
    """(..., rows, columns / 32) uint8."""

    @property
    def rows(self) -> int:
        """Rows of each matrix: output features."""
        return int(self.blocks.shape[-3])

    @property
    def columns(self) -> int:
        """Columns of each matrix: input features."""
        return int(self.blocks.shape[-2]) * BLOCK

    @property
    def weights(self) -> int:
        """How many numbers are packed."""
        return self.blocks.numel() * 2


def unpack(packed: Packed, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the numbers, (..., rows, columns); exact in every float type that holds the scale's range."""
    table = torch.tensor([*LEVELS, *(-level for level in LEVELS)], dtype=dtype, device=packed.blocks.device)
    codes = torch.stack((packed.blocks & 0xF, packed.blocks >> 4), dim=-1).flatten(-2)
    exponent = packed.scales.to(torch.int32) - _BIAS
    return torch.ldexp(table[codes.int()], exponent[..., None]).to(dtype).flatten(-2)


def pack(weights: Tensor) -> Packed:
    """Round (..., rows, columns) to MXFP4: each number to its nearest level, ties to the even code.

    The scale of a block is the power of two, of the two that can be best, with the smaller squared error: one clips the
    largest number to 6, the other leaves room above it.

    Raises:
        ModelError: the columns are no multiple of 32, or a number is not finite.
    """
    if weights.shape[-1] % BLOCK:
        raise ModelError(f"MXFP4 packs 32 columns at a time, and this matrix has {weights.shape[-1]}: pad its columns.")
    numbers = weights.float().reshape(*weights.shape[:-1], -1, BLOCK)
    if not bool(torch.isfinite(numbers).all()):
        raise ModelError("A weight is NaN or infinite, which MXFP4 cannot hold: go back to an earlier checkpoint.")
    largest = numbers.abs().amax(dim=-1).clamp_min(2.0**-126)
    tight = torch.floor(torch.log2(largest)) - 2  # 4 <= largest / 2**tight < 8, and 6 is the top level
    tight = tight.clamp(-_BIAS, _BIAS)
    wide = (tight + 1).clamp(-_BIAS, _BIAS)
    tight_codes, tight_error = _round(numbers, tight)
    wide_codes, wide_error = _round(numbers, wide)
    is_wide = wide_error < tight_error
    codes = torch.where(is_wide[..., None], wide_codes, tight_codes)
    exponent = torch.where(is_wide, wide, tight)
    blocks = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return Packed(blocks.contiguous(), (exponent + _BIAS).to(torch.uint8).contiguous())


def _round(numbers: Tensor, exponent: Tensor) -> tuple[Tensor, Tensor]:
    """Codes (..., 32) uint8 under a scale, and each block's squared error."""
    scaled = torch.ldexp(numbers, -exponent[..., None].int())
    bounds = torch.tensor(_BOUNDS, device=numbers.device)
    magnitude = scaled.abs()
    above = torch.bucketize(magnitude, bounds)  # the lower level on a tie
    is_tie = magnitude == bounds[above.clamp(max=len(_BOUNDS) - 1)]
    code = above + (is_tie & (above % 2 == 1)).long()
    levels = torch.tensor(LEVELS, device=numbers.device)
    error = (levels[code] - magnitude).square().sum(dim=-1) * torch.exp2(2 * exponent)
    return (code + 8 * (scaled < 0)).to(torch.uint8), error


def check_packed(name: str, packed: Packed, experts: int, rows: int, columns: int) -> None:
    """Raise ModelError, naming the tensor, unless `packed` is a stack of `experts` matrices of that size."""
    want_blocks, want_scales = (experts, rows, columns // BLOCK, 16), (experts, rows, columns // BLOCK)
    for part, tensor, want in (("blocks", packed.blocks, want_blocks), ("scales", packed.scales, want_scales)):
        if tuple(tensor.shape) != want or tensor.dtype != torch.uint8:
            raise ModelError(
                f"{name}_{part} is {tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}, and the model's "
                f"config needs {want} uint8: check that config.json and the weights belong together."
            )
