"""Each distinct prompt of a batch runs through the model once, and all completions that follow it attend to it.

TRL computes a group's prompt again for each of its completions, forward and backward; with completions about as long as
their prompt that is half of an update. Here the keys and values of the prompts (all tokens but the last) are computed
first, and gradients of all completions flow back into them. The numbers are those of separate rows, up to rounding.
Not covered: models that are not shaped like Llama, attention other than SDPA, and activations that are computed twice
(checkpointing drops caches); there rows stay whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Self

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from outpace.policy.decode import KeptKeys, cache_argument, is_open_llama
from outpace.policy.merged import base_model


@dataclass(frozen=True, slots=True, eq=False)
class SharedPrompts:
    """The distinct prompts of a batch, with what the model keeps of them."""

    network: Any = field(repr=False)
    prompt_R: list[int]
    """Which of the prompts each row follows."""
    length_P: Tensor
    """Tokens of each prompt but its last."""
    kept: dict[int, tuple[Tensor, Tensor]] = field(repr=False)
    """Layer -> keys and values (P, heads, longest, head size)."""

    @classmethod
    def of(cls, model: Any, input_ids: Tensor, attention_mask: Tensor, prompt_columns: int) -> Self | None:
        """Run the prompts through the model, with gradients where they are on; None: sharing does not pay or fit.

        Args:
            model: without the wrappers of distributed training.
            input_ids: (R, columns), prompts padded on the left.
            attention_mask: the same shape, 0 at padding.
            prompt_columns: how many of the first columns belong to prompts.
        """
        network = base_model(model)
        if not is_open_llama(network):
            return None
        rows = zip(input_ids[:, :prompt_columns].tolist(), attention_mask[:, :prompt_columns].tolist(), strict=True)
        prompts = [tuple(i for i, is_token in zip(ids, mask, strict=True) if is_token) for ids, mask in rows]
        number = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        longest = max(map(len, number)) - 1
        if 2 * len(number) > len(prompts) or longest < 1 or not all(number):
            return None
        ids = torch.zeros(len(number), longest, dtype=input_ids.dtype)
        for prompt, place in number.items():
            ids[place, : len(prompt) - 1] = torch.tensor(prompt[:-1])
        device = input_ids.device
        place_L = torch.arange(longest, device=device)
        kept = KeptKeys()
        network.model(
            input_ids=ids.to(device),
            position_ids=place_L[None],
            attention_mask=(place_L[:, None] >= place_L)[None, None],
            use_cache=True,
            **{cache_argument(type(network.model).forward): kept},
        )
        length_P = torch.tensor([len(prompt) - 1 for prompt in number], device=device)
        return cls(network, [number[prompt] for prompt in prompts], length_P, kept.kept)

    def before(self, model: Any, rows: Sequence[int]) -> Callable[..., Any]:
        """The model as it continues these rows' prompts.

        Args:
            model: what is called in the end; takes transformers' arguments.
            rows: rows of the batch, in the order of their prompts.

        Returns:
            What takes `input_ids` and `attention_mask` (rows, 1 + completion columns), beginning with each prompt's
            last token, and further arguments for the model.
        """
        prompts = [self.prompt_R[row] for row in rows]
        runs = [(prompt, len(list(same))) for prompt, same in groupby(prompts)]

        def continued(input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Any:
            columns = input_ids.shape[1]
            length_R = self.length_P[torch.tensor(prompts, device=input_ids.device)]
            place = torch.arange(columns, device=input_ids.device)
            longest = self.kept[0][0].shape[2]
            is_prompt = torch.arange(longest, device=input_ids.device) < length_R[:, None]
            seen = torch.cat(
                (
                    is_prompt[:, None, :].expand(-1, columns, -1),
                    (place[:, None] >= place)[None].expand(len(prompts), -1, -1),
                ),
                dim=2,
            )
            return model(
                input_ids=input_ids,
                position_ids=length_R[:, None] + place,
                attention_mask=seen[:, None],
                **{cache_argument(type(self.network.model).forward): _After(self.kept, runs)},
                **options,
            )

        return continued


class _After(Cache):  # type: ignore[misc]  # transformers publishes no types
    """Puts each row's prompt before its own keys and values."""

    def __init__(self, kept: dict[int, tuple[Tensor, Tensor]], runs: Sequence[tuple[int, int]]) -> None:
        super().__init__(layers=[])
        self.kept, self.runs = kept, runs

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        keys, values = self.kept[layer_idx]
        return self._joined(keys, key_states), self._joined(values, value_states)

    def _joined(self, prompts: Tensor, own: Tensor) -> Tensor:
        # expanded, not indexed: the backward then sums in a fixed order
        rows = [prompts[place].expand(count, -1, -1, -1) for place, count in self.runs]
        return torch.cat((torch.cat(rows), own), dim=2)
