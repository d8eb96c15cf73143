"""The sampler's memory: a static key-value cache and the state of every row, in slots that rows take and leave.

Shapes: B slots, L layers, H key-value heads, T positions, D head size. `_B` names per-slot tensors. Rows that are alive
sit in any slot below `active`; `compact` moves them to the front so that a smaller batch can go on.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShape:
    """Geometry of the key-value cache of one model."""

    layers: int
    heads: int
    head_size: int
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, network: Any) -> "CacheShape":
        """Read the geometry from a transformers model."""
        config = network.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        parameter = next(network.parameters())
        return cls(
            layers=config.num_hidden_layers,
            heads=heads,
            head_size=head_size,
            dtype=network.dtype,
            device=parameter.device,
        )


class Slots:
    """State of up to `size` rows; every tensor keeps its address for the life of the object."""

    def __init__(self, shape: CacheShape, *, size: int, positions: int, max_new: int) -> None:
        device = shape.device
        self.shape, self.size, self.positions, self.max_new = shape, size, positions, max_new
        # Zeros, not empty memory: a masked position still enters a product, and 0 x NaN would be NaN.
        cache = (size, shape.heads, positions, shape.head_size)
        self.keys = [torch.zeros(cache, dtype=shape.dtype, device=device) for _ in range(shape.layers)]
        self.values = [torch.zeros(cache, dtype=shape.dtype, device=device) for _ in range(shape.layers)]
        self.token_B = torch.zeros(size, dtype=torch.long, device=device)
        self.position_B = torch.zeros(size, dtype=torch.long, device=device)
        self.count_B = torch.zeros(size, dtype=torch.long, device=device)
        self.alive_B = torch.zeros(size, dtype=torch.bool, device=device)
        self.ended_B = torch.zeros(size, dtype=torch.bool, device=device)
        self.broken = torch.zeros((), dtype=torch.bool, device=device)
        # One column more than needed: where rows that have ended write.
        self.tokens_BN = torch.zeros(size, max_new + 1, dtype=torch.long, device=device)
        self.logprobs_BN = torch.zeros(size, max_new + 1, dtype=torch.float32, device=device)
        self.uniforms_BN = torch.zeros(size, max_new, dtype=torch.float64, device=device)

    def per_row(self) -> list[Tensor]:
        """Every tensor with one entry per slot, the cache aside."""
        state = [self.token_B, self.position_B, self.count_B, self.alive_B, self.ended_B]
        return [*state, self.tokens_BN, self.logprobs_BN, self.uniforms_BN]

    def fits(self, shape: CacheShape, *, size: int, positions: int, max_new: int) -> bool:
        """Whether these slots can serve such a call as they are."""
        is_large_enough = self.size >= size and self.positions >= positions
        return self.shape == shape and is_large_enough and self.max_new == max_new

    def admit(self, slots: Tensor, prompt: "PromptCache", uniforms_RN: Tensor) -> None:
        """Put one row per entry of `slots` (R,) at the end of `prompt`; `uniforms_RN` are the rows' random numbers."""
        length = prompt.length
        for layer in range(self.shape.layers):
            if length > 1:
                self.keys[layer][slots, :, : length - 1] = prompt.keys[layer]
                self.values[layer][slots, :, : length - 1] = prompt.values[layer]
        self.token_B[slots] = prompt.last_token
        self.position_B[slots] = length - 1
        self.count_B[slots] = 0
        self.ended_B[slots] = False
        self.alive_B[slots] = True
        self.uniforms_BN[slots] = uniforms_RN

    def compact(self, keep: Tensor) -> None:
        """Move the rows in slots `keep` (K,) to slots 0 to K - 1, in that order; all other rows are lost."""
        count = keep.shape[0]
        for tensor in [*self.per_row(), *self.keys, *self.values]:
            tensor[:count] = tensor[keep]
        self.alive_B[count:] = False


@dataclass(slots=True, kw_only=True)
class PromptCache:
    """What is kept of one prompt: keys and values of all its tokens but the last, per layer (H, T, D)."""

    keys: list[Tensor]
    values: list[Tensor]
    last_token: int
    length: int
