"""Group sampling: several completions of each prompt from the policy's own weights, with their log-probabilities.

Each distinct prompt is prefilled once; rows then share batches whatever their prompts. LoRA adapters are folded into
the weights while sampling. Not covered: beam search, penalties, encoder-decoder models, and models whose layers keep
a state other than keys and values (Mamba and the like).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from outpace.errors import ConfigError
from outpace.policy.decode import pick_decoder
from outpace.policy.draw import SamplingSettings
from outpace.policy.engine import Done, Engine, Row, build_slots
from outpace.policy.load import Policy
from outpace.policy.merged import base_model, can_merge, merged

__all__ = ["Generation", "SamplingSettings", "encode", "forget", "sample"]

Prompt = Sequence[int] | Sequence[Mapping[str, str]] | str
"""Token ids, chat messages (the tokenizer's template is applied) or plain text."""

_LATEST: list[Engine] = []
"""The engine of the model sampled last (at most one): slots and graphs that a training run needs again each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One completion of a prompt, as drawn."""

    prompt_index: int
    member: int
    """Which of the prompt's completions this is, from 0."""
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    """With the end token, when one was drawn."""
    logprobs: tuple[float, ...]
    """Log-probability of each completion token at the sampling temperature, before filters (at 1 when greedy)."""
    finished: bool
    """An end token was drawn; False: cut off by the length limit."""
    text: str
    """The completion decoded without special tokens."""


def sample(
    policy: Policy,
    prompts: Sequence[Prompt],
    settings: SamplingSettings | None = None,
    *,
    num_generations: int = 1,
    seed: int = 0,
    on_finish: Callable[[Generation], None] | None = None,
) -> list[Generation]:
    """Draw `num_generations` completions of each prompt.

    The same seed, prompts and weights give the same completions whatever `max_batch` is, up to rounding in logits.

    Args:
        policy: the model with its tokenizer; it is put into evaluation mode meanwhile.
        prompts: ids, chat messages or text, one per group; equal prompts are prefilled once.
        settings: length, temperature, filters, batch.
        num_generations: completions per prompt.
        seed: names the stream of random numbers.
        on_finish: called in this thread with each completion as soon as it ends.

    Returns:
        All completions, prompt by prompt, members in order.

    Raises:
        ConfigError: a prompt is empty or too long for the model.
        TrainingDiverged: the logits are not finite.
    """
    settings = settings or SamplingSettings()
    ids = [encode(policy, prompt) for prompt in prompts]
    network = base_model(policy.model)
    _check_lengths(network, ids, settings)
    distinct: dict[tuple[int, ...], int] = {}
    for prompt_ids in ids:
        distinct.setdefault(prompt_ids, len(distinct))
    # A row is named by its distinct prompt and how often that prompt came up, so equal prompts draw different numbers.
    rows: list[Row] = []
    owner: dict[Row, tuple[int, int]] = {}
    seen = [0] * len(distinct)
    for index, prompt_ids in enumerate(ids):
        for member in range(num_generations):
            row = Row(distinct[prompt_ids], seen[distinct[prompt_ids]])
            seen[distinct[prompt_ids]] += 1
            rows.append(row)
            owner[row] = (index, member)
    found: dict[tuple[int, int], Generation] = {}

    def keep(done: Done) -> None:
        index, member = owner[done.row]
        generation = _generation(policy, index, member, ids[index], done)
        found[index, member] = generation
        if on_finish is not None:
            on_finish(generation)

    if rows:
        _draw(policy, network, list(distinct), rows, settings, seed, keep)
    return [found[index, member] for index in range(len(ids)) for member in range(num_generations)]


def encode(policy: Policy, prompt: Prompt) -> tuple[int, ...]:
    """Return the token ids of a prompt given as ids, chat messages or text."""
    if isinstance(prompt, str):
        ids = policy.tokenizer(prompt)["input_ids"]
    elif len(prompt) > 0 and isinstance(prompt[0], Mapping):
        ids = policy.tokenizer.apply_chat_template(
            [dict(message) for message in prompt if isinstance(message, Mapping)],
            add_generation_prompt=True,
            return_dict=True,
        )["input_ids"]
    else:
        ids = prompt
    return tuple(int(token) for token in ids)


def forget(policy: Policy) -> None:
    """Free the slots and graphs kept for a policy; the next call to `sample` makes them again."""
    if _LATEST and _LATEST[0].network is base_model(policy.model):
        _LATEST.clear()


def _draw(
    policy: Policy,
    network: Any,
    prompts: list[tuple[int, ...]],
    rows: list[Row],
    settings: SamplingSettings,
    seed: int,
    on_done: Callable[[Done], None],
) -> None:
    folds = can_merge(policy.model)
    was_training = policy.model.training
    policy.model.eval()
    weights: AbstractContextManager[None] = merged(policy.model) if folds else nullcontext()
    device_type = policy.device.type
    try:
        with torch.inference_mode(), torch.autocast(device_type, enabled=False), weights:
            engine = _engine(policy, network, folds, prompts, len(rows), settings)
            engine.run(prompts, rows, seed, on_done)
    finally:
        policy.model.train(was_training)


def _engine(
    policy: Policy,
    network: Any,
    folds: bool,
    prompts: list[tuple[int, ...]],
    rows: int,
    settings: SamplingSettings,
) -> Engine:
    size = min(rows, settings.max_batch or (256 if policy.device.type == "cuda" else 128))
    longest = max(map(len, prompts))
    need = {"size": size, "positions": longest + settings.max_new_tokens, "max_new": settings.max_new_tokens}
    for known in _LATEST:
        is_same = known.network is network and known.stamp == _addresses(network) and known.eos_ids == policy.eos_ids
        if is_same and known.settings == settings and known.slots.fits(known.slots.shape, **need):
            return known
    _LATEST.clear()  # before the next slots are made, so that both never exist together
    decoder = pick_decoder(network, is_merged=folds, compiled=settings.compile and policy.device.type == "cuda")
    engine = Engine(
        network=network,
        decoder=decoder,
        slots=build_slots(network, **need),
        settings=settings,
        eos_ids=policy.eos_ids,
        stamp=_addresses(network),  # the decoder may have moved some
    )
    _LATEST.append(engine)
    return engine


def _addresses(network: Any) -> tuple[int, ...]:
    return tuple(parameter.data_ptr() for parameter in network.parameters())


def _check_lengths(network: Any, ids: list[tuple[int, ...]], settings: SamplingSettings) -> None:
    limit = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    for index, prompt_ids in enumerate(ids):
        if not prompt_ids:
            raise ConfigError(f"Prompt {index} is empty: give at least one token.")
        if limit is not None and len(prompt_ids) + settings.max_new_tokens > limit:
            raise ConfigError(
                f"Prompt {index} has {len(prompt_ids)} tokens, and {settings.max_new_tokens} more do not fit the "
                f"model's {limit} positions: shorten the prompt or lower max_new_tokens."
            )


def _generation(policy: Policy, index: int, member: int, prompt_ids: tuple[int, ...], done: Done) -> Generation:
    return Generation(
        prompt_index=index,
        member=member,
        prompt_ids=prompt_ids,
        completion_ids=tuple(done.ids),
        logprobs=tuple(done.logprobs),
        finished=done.ended,
        text=policy.tokenizer.decode(done.ids, skip_special_tokens=True),
    )
