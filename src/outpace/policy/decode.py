"""One decode step, in two ways: by the model's own forward (any causal LM), and lean for Llama-shaped models.

A decoder gets the tokens and positions of B rows, writes their keys and values into the slots, returns logits (B, V).
The lean way is in `lean_decode`. Both are checked against a full forward in the tests.
"""

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from outpace.policy.lean_decode import LeanDecoder
from outpace.policy.slots import PromptCache, Slots

_LLAMA_SHAPED = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "MistralForCausalLM")
_STATIC_ROPES = ("default", "linear", "llama3", "yarn")


class Decoder(Protocol):
    """Runs one token of every row through the model."""

    def __call__(self, slots: Slots, rows: int, reach: int) -> Tensor:
        """Return logits (rows, V) for the tokens in the first `rows` slots; no row's position reaches `reach`."""
        ...


def pick_decoder(network: Any, *, is_merged: bool, compiled: bool = False) -> Decoder:
    """Return the lean decoder when the model is Llama-shaped and its adapters are merged, else the general one."""
    if is_merged and is_llama_shaped(network):
        return LeanDecoder(network, compiled=compiled)
    return ModelDecoder(network)


def is_llama_shaped(network: Any) -> bool:
    """Whether a transformers model computes what Llama computes: full attention, plain rotary positions, SiLU."""
    if type(network).__name__ not in _LLAMA_SHAPED:
        return False
    config = network.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    has_window = type(network).__name__ == "MistralForCausalLM" and config.sliding_window is not None
    return kinds == {"full_attention"} and rope in _STATIC_ROPES and config.hidden_act == "silu" and not has_window


def is_open_llama(network: Any) -> bool:
    """Whether such a model attends by SDPA and computes no activation twice, so that training may stand in for it."""
    is_checkpointed = network.training and any(getattr(m, "gradient_checkpointing", False) for m in network.modules())
    return is_llama_shaped(network) and network.config._attn_implementation == "sdpa" and not is_checkpointed


class KeptKeys(Cache):  # type: ignore[misc]  # transformers publishes no types
    """Hands a prompt's keys and values through and keeps them, by layer."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """transformers' interface: what attention is to see of a layer."""
        self.kept[layer_idx] = (key_states, value_states)
        return key_states, value_states


class _SlotWriter(Cache):  # type: ignore[misc]  # as above
    """Writes each row's key and value at the row's own position and hands out the whole slots."""

    def __init__(self, slots: Slots, rows: int, reach: int) -> None:
        super().__init__(layers=[])
        self.slots, self.rows, self.reach = slots, rows, reach
        self.index = torch.arange(rows, device=slots.token_B.device)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        keys, values = self.slots.keys[layer_idx][: self.rows], self.slots.values[layer_idx][: self.rows]
        at = self.slots.position_B[: self.rows]
        keys[self.index, :, at] = key_states[:, :, 0]
        values[self.index, :, at] = value_states[:, :, 0]
        return keys[:, :, : self.reach], values[:, :, : self.reach]


@cache
def cache_argument(forward: Any) -> str:
    """What a transformers model calls its cache: `cache` from 5.20 on, `past_key_values` before."""
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"


def _masks(network: Any, is_seen: Tensor, distance: Tensor) -> Any:
    """Additive masks from `is_seen`; per layer type where the model has sliding windows.

    Both arguments broadcast to (B, 1, Q, T); `distance` says how many positions a key lies behind its query.
    """
    config = network.config.get_text_config()
    zero = torch.zeros((), dtype=network.dtype, device=is_seen.device)
    low = torch.finfo(network.dtype).min
    full = torch.where(is_seen, zero, low)
    kinds, window = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    if window is None or (kinds is not None and "sliding_attention" not in kinds):
        return full
    sliding = torch.where(is_seen & (distance < window), zero, low)
    return sliding if kinds is None else {"full_attention": full, "sliding_attention": sliding}


def prefill(network: Any, prompts: Sequence[Sequence[int]]) -> list[PromptCache]:
    """Run prompts through the model together, padded on the right, and keep their keys and values.

    The last token of each is left to the first decode step.
    """
    longest = max(len(prompt) for prompt in prompts)
    recorder = KeptKeys()
    device = next(network.parameters()).device
    if longest > 1:
        ids = torch.zeros(len(prompts), longest - 1, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt) - 1] = torch.tensor(prompt[:-1], dtype=torch.long)
        place = torch.arange(longest - 1, device=device)
        distance = (place[:, None] - place[None, :])[None, None]
        network(
            input_ids=ids.to(device),
            position_ids=place[None, :],
            attention_mask=_masks(network, distance >= 0, distance),
            use_cache=True,
            logits_to_keep=1,
            **{cache_argument(type(network).forward): recorder},
        )
    layers = range(len(recorder.kept))
    return [
        PromptCache(
            keys=[recorder.kept[layer][0][row, :, : len(prompt) - 1].clone() for layer in layers],
            values=[recorder.kept[layer][1][row, :, : len(prompt) - 1].clone() for layer in layers],
            last_token=int(prompt[-1]),
            length=len(prompt),
        )
        for row, prompt in enumerate(prompts)
    ]


class ModelDecoder:
    """Decodes by the model's own forward: any transformers causal LM, adapters merged or not."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def __call__(self, slots: Slots, rows: int, reach: int) -> Tensor:
        """See `Decoder`."""
        position_B = slots.position_B[:rows]
        place = torch.arange(reach, device=position_B.device)
        distance = position_B[:, None, None, None] - place
        output = self.network(
            input_ids=slots.token_B[:rows, None],
            position_ids=position_B[:, None],
            attention_mask=_masks(self.network, distance >= 0, distance),
            use_cache=True,
            logits_to_keep=1,
            **{cache_argument(type(self.network).forward): _SlotWriter(slots, rows, reach)},
        )
        logits: Tensor = output.logits[:, -1]
        return logits
