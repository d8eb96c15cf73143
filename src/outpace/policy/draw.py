"""Turns logits into tokens: one uniform number per token, drawn ahead and owned by its row.

A row's numbers depend on the seed and on the row alone, so neither the batch a row shares, nor the order in which rows
finish, nor the device changes what it draws. A token of zero probability is never chosen: the cumulative sum does not
rise at it (exponential or Gumbel noise can be exactly 0 and then pick it).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from outpace.errors import ConfigError
from outpace.policy.kernel_check import KERNEL_TYPES, runs_kernels

_BLOCK = 256  # tokens per block of the two-level search over the vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """How completions are drawn; the defaults draw from the policy itself, as policy gradients assume.

    `temperature` 0 takes the likeliest token. Filters apply in the order top-k, top-p, min-p, as in transformers;
    penalties that a model's generation config may name are not applied.
    """

    max_new_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0: no limit."""
    min_p: float = 0.0
    max_batch: int | None = None
    """Rows decoded together; None: 256 on a GPU, 128 on a CPU. More rows than this take the places of finished ones."""
    compile: bool = False
    """Compile the decode step on a GPU: about 20 s at the first call, then faster steps."""

    def __post_init__(self) -> None:
        checks = {
            "max_new_tokens": self.max_new_tokens >= 1,
            "temperature": self.temperature >= 0,
            "top_p": 0 < self.top_p <= 1,
            "top_k": self.top_k >= 0,
            "min_p": 0 <= self.min_p <= 1,
            "max_batch": self.max_batch is None or self.max_batch >= 1,
        }
        for name, is_fine in checks.items():
            if not is_fine:
                raise ConfigError(
                    f"sampling.{name} cannot be {getattr(self, name)!r}: see the limits in docs/sampler.md."
                )

    @property
    def is_unfiltered(self) -> bool:
        """Whether tokens are drawn, not chosen greedily, and from the whole vocabulary."""
        return self.temperature > 0 and self.top_k == 0 and self.top_p == 1.0 and self.min_p == 0.0


def row_uniforms(
    seed: int, rows: Sequence[tuple[int, int]], count: int
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Uniform numbers in [0, 1) for rows named (prompt index, index in group): shape (rows, count), float64.

    splitmix64 (Steele, Lea, Flood 2014) over a key made of the seed and the row.
    """
    with np.errstate(over="ignore"):
        names = np.array(rows, dtype=np.uint64).reshape(-1, 2)
        key = _mix(np.full(len(names), seed % 2**64, dtype=np.uint64))
        key = _mix(_mix(key ^ names[:, 0]) ^ names[:, 1])
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = _mix(key[:, None] + steps[None, :])
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]") -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw(logits: Tensor, uniforms: Tensor, settings: SamplingSettings) -> tuple[Tensor, Tensor, Tensor]:
    """Choose one token per row.

    Args:
        logits: (B, V), any float type.
        uniforms: (B,) float64 in [0, 1).
        settings: temperature and filters.

    Returns:
        Tokens (B,), their log-probabilities (B,) float32 under softmax(logits / temperature) before any filter (what a
        trainer computes), and whether each row's distribution was finite (B,); where it was not, the token is void.
    """
    if settings.is_unfiltered and logits.dtype in KERNEL_TYPES and runs_kernels(logits.device):
        from outpace.policy.draw_kernels import draw_unfiltered

        return draw_unfiltered(logits, uniforms, settings.temperature)
    scaled = logits.float()
    if settings.temperature not in (0.0, 1.0):
        scaled = scaled / settings.temperature
    top, greedy = scaled.max(dim=-1)
    weights = torch.exp(scaled - top[:, None])
    block_sums = _block_sums(weights)
    total = block_sums.sum(dim=-1)
    is_finite = torch.isfinite(total)
    if settings.temperature == 0.0:
        token = greedy
    else:
        kept = _filtered(weights, settings)
        token = _search(kept, block_sums if kept is weights else _block_sums(kept), uniforms)
    chosen = scaled.gather(-1, token[:, None])[:, 0]
    return token, chosen - top - torch.log(total).float(), is_finite


def _filtered(weights: Tensor, settings: SamplingSettings) -> Tensor:
    """Weights (B, V), the largest being 1, with those that a filter drops set to 0."""
    if 0 < settings.top_k < weights.shape[-1]:
        smallest_kept = weights.topk(settings.top_k, dim=-1).values[:, -1:]
        weights = weights.masked_fill(weights < smallest_kept, 0.0)
    if settings.top_p < 1.0:
        ordered, order = weights.sort(dim=-1, descending=True)
        before = ordered.double().cumsum(dim=-1) - ordered
        is_dropped = before >= settings.top_p * ordered.double().sum(dim=-1, keepdim=True)
        is_dropped[:, 0] = False
        weights = weights.masked_fill(torch.zeros_like(is_dropped).scatter(-1, order, is_dropped), 0.0)
    if settings.min_p > 0.0:
        weights = weights.masked_fill(weights < settings.min_p, 0.0)
    return weights


def _blocks(weights: Tensor) -> Tensor:
    """(B, V) as (B, V / 256 rounded up, 256), padded with zeros."""
    missing = -weights.shape[-1] % _BLOCK
    if missing:
        weights = torch.nn.functional.pad(weights, (0, missing))
    return weights.view(weights.shape[0], -1, _BLOCK)


def _block_sums(weights: Tensor) -> Tensor:
    return _blocks(weights).sum(dim=-1, dtype=torch.float64)


def _search(weights: Tensor, block_sums: Tensor, uniforms: Tensor) -> Tensor:
    """Invert the cumulative sum, over blocks, then within one: the first token whose sum exceeds the target."""
    below = block_sums.cumsum(dim=-1)
    target = _less_than(uniforms * below[:, -1], below[:, -1])[:, None]
    block = torch.searchsorted(below, target, right=True).clamp_(max=below.shape[-1] - 1)
    inside = _blocks(weights).gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0].double().cumsum(dim=-1)
    rest = target - (below.gather(-1, block) - block_sums.gather(-1, block))
    rest = _less_than(rest, inside[:, -1:]).clamp_(min=0.0)
    place = torch.searchsorted(inside, rest, right=True).clamp_(max=_BLOCK - 1)
    return (block * _BLOCK + place)[:, 0].clamp_(max=weights.shape[-1] - 1)


def _less_than(value: Tensor, bound: Tensor) -> Tensor:
    """`value`, or the next number below `bound` where rounding had reached it."""
    return torch.minimum(value, torch.nextafter(bound, torch.zeros_like(bound)))
