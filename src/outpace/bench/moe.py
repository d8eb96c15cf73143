"""How much memory gpt-oss takes in 4 bits, how fast it samples, and how long a training step takes, on this GPU.

Random weights of the true geometry do the same work as trained ones. Not covered: whether learning succeeds, and the
time of rewards.
"""

import gc
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outpace.errors import ModelError

FLOOR_ALL_EXPERTS_MS, FLOOR_BATCH_1_MS = 2.4, 0.45
"""Reading the experts once on an H200: all of them, and the four that one token uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeSettings:
    """What is measured; the defaults are gpt-oss-20b with groups of four, 128 prompt and 1,024 completion tokens."""

    layers: int = 24
    batches: tuple[int, ...] = (1, 4, 8, 16)
    group: int = 4
    prompt_tokens: int = 128
    completion_tokens: int = 1024
    rank: int = 8
    memory_GB: float = 12.0
    """Attention, head and embedding are stored as for a card of that size."""
    plain: bool = True
    """Also the plain PyTorch path, whose group decodes `plain_tokens` tokens."""
    plain_tokens: int = 16
    seed: int = 0


def run(settings: MoeSettings | None = None) -> dict[str, Any]:
    """Measure on the GPU at hand.

    Returns:
        `weights_GB`, `sampling` (batch -> tok/s, ms per step), `step` (seconds; peak allocated and reserved GB,
        nvidia-smi's MB), `plain` (the same by plain PyTorch), `floors`, `trained`, `settings`.

    Raises:
        ModelError: there is no GPU.
    """
    import torch

    if not torch.cuda.is_available():
        raise ModelError("`outpace bench moe` measures a GPU, and torch sees none here: run it on a machine with one.")
    settings = settings or MoeSettings()
    policy, counted = build(settings)
    result: dict[str, Any] = {
        "weights_GB": torch.cuda.memory_allocated() / 1e9,
        "four_bit_weights": counted.four_bit,
        "trained_by_family": counted.trained_by_family,
        "sampling": {},
    }
    for batch in settings.batches:
        result["sampling"][batch] = time_sampling(policy, settings, batch, settings.completion_tokens)
    _release(policy)
    result["step"] = time_step(policy, settings)
    if settings.plain:
        result["plain"] = _plain(policy, settings)
    result["floors"] = {"all_experts_ms": FLOOR_ALL_EXPERTS_MS, "batch_1_ms": FLOOR_BATCH_1_MS}
    result["settings"] = {name: getattr(settings, name) for name in MoeSettings.__slots__}
    return result


def geometry(layers: int) -> Any:
    """gpt-oss-20b's configuration, with as many layers as asked."""
    from transformers import GptOssConfig

    return GptOssConfig(
        num_hidden_layers=layers,
        num_local_experts=32,
        eos_token_id=200002,
        pad_token_id=199999,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 150000.0,
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
    )


class _Words:
    """Stands in for a tokenizer: random weights write nothing worth reading."""

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """No text."""
        return ""


def build(settings: MoeSettings) -> tuple[Any, Any]:
    """A policy of random weights with LoRA on attention and experts, and its census."""
    import torch
    from peft import LoraConfig

    from outpace.policy import Policy
    from outpace.policy.mxfp4 import Storage, attach, census, random_network
    from outpace.policy.mxfp4.host_checkpoint import keep_on_host

    network = random_network(
        geometry(settings.layers),
        dtype=torch.bfloat16,
        device=torch.device("cuda"),
        storage=Storage.within(settings.memory_GB),
        seed=settings.seed,
    )
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=2 * settings.rank,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
        target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
        task_type="CAUSAL_LM",
    )
    model = attach(network, config, dtype=torch.bfloat16)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.002)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    keep_on_host(model, network.storage.tokens_at_once)
    policy = Policy(model=model, tokenizer=_Words(), spec="gpt-oss-20b geometry", eos_ids=(200002,), pad_id=199999)
    return policy, census(model)


def time_sampling(policy: Any, settings: MoeSettings, batch: int, tokens: int) -> dict[str, float]:
    """Sample one group of `batch` completions, the capture of its graph included; a short call before compiles."""
    import torch

    from outpace.policy import SamplingSettings, sample

    prompt = list(range(1000, 1000 + settings.prompt_tokens))
    how = SamplingSettings(max_new_tokens=tokens, max_batch=batch)
    torch.cuda.reset_peak_memory_stats()
    sample(policy, [prompt], SamplingSettings(max_new_tokens=16, max_batch=batch), num_generations=batch, seed=1)
    torch.cuda.synchronize()
    began = time.perf_counter()
    drawn = sample(policy, [prompt], how, num_generations=batch, seed=2)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    count = sum(len(generation.completion_ids) for generation in drawn)
    return {
        "tokens_per_s": count / seconds,
        "ms_per_step": 1000 * seconds / max(len(generation.completion_ids) for generation in drawn),
        "peak_allocated_GB": torch.cuda.max_memory_allocated() / 1e9,
        "peak_reserved_GB": torch.cuda.max_memory_reserved() / 1e9,
    }


def time_step(policy: Any, settings: MoeSettings, repeats: int = 2) -> dict[str, float]:
    """A whole step: sample a group, one forward and backward per row, one update; the last of `repeats` counts."""
    import torch

    from outpace.policy import SamplingSettings, sample
    from outpace.policy.mxfp4.host_adam import HostAdamW

    prompt = list(range(1000, 1000 + settings.prompt_tokens))
    how = SamplingSettings(max_new_tokens=settings.completion_tokens, max_batch=settings.group)
    optimizer = HostAdamW([p for p in policy.model.parameters() if p.requires_grad], lr=5e-5)
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    figures: dict[str, float] = {}
    for repeat in range(repeats):
        began = time.perf_counter()
        drawn = sample(policy, [prompt], how, num_generations=settings.group, seed=10 + repeat)
        _release(policy)
        sampled = time.perf_counter()
        for index, generation in enumerate(drawn):
            row = torch.tensor([*generation.prompt_ids, *generation.completion_ids], device="cuda")
            train_on(policy.model, row, len(generation.prompt_ids), advantage=1.0 if index % 2 else -1.0)
        torch.cuda.synchronize()
        trained = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        ended = time.perf_counter()
        figures = {
            "sampling_s": sampled - began,
            "backward_s": trained - sampled,
            "update_s": ended - trained,
            "seconds": ended - began,
        }
    figures |= {
        "peak_allocated_GB": torch.cuda.max_memory_allocated() / 1e9,
        "peak_reserved_GB": torch.cuda.max_memory_reserved() / 1e9,
    }
    used = _driver_memory()
    return figures if used is None else figures | {"nvidia_smi_MB": used}


def train_on(model: Any, row: Any, prompt_tokens: int, advantage: float) -> None:
    """Forward and backward of one row's policy-gradient loss, with chunked log-probabilities."""
    import torch

    from outpace.policy.mxfp4.scoring import token_logprobs

    model.train()
    network = model.get_base_model()
    hidden = network.model(input_ids=row[None, :-1], use_cache=False).last_hidden_state[0, prompt_tokens - 1 :]
    logprobs = token_logprobs(hidden, network.lm_head.weight, row[prompt_tokens:])
    loss = -(advantage * torch.exp(logprobs - logprobs.detach())).mean()
    loss.backward()  # type: ignore[no-untyped-call]


def _plain(policy: Any, settings: MoeSettings) -> dict[str, Any]:
    """The same work by plain PyTorch: sampling without graphs, a training row as before."""
    import torch

    from outpace.policy.mxfp4.build import set_engine
    from outpace.policy.mxfp4.grouped import PlainEngine, pick_engine

    network = policy.model.get_base_model()
    set_engine(network, PlainEngine())
    policy.model.zero_grad()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    result: dict[str, Any] = {}
    for batch in (1, 8):
        result[f"tokens_per_s_batch_{batch}"] = _plain_sampling(network, batch, settings.plain_tokens)
    row = torch.randint(0, 200000, (settings.prompt_tokens + settings.completion_tokens,), device="cuda")
    for _ in range(2):
        began = time.perf_counter()
        train_on(policy.model, row, settings.prompt_tokens, 1.0)
        torch.cuda.synchronize()
        result["row_backward_s"] = time.perf_counter() - began
    result["peak_reserved_GB"] = torch.cuda.max_memory_reserved() / 1e9
    policy.model.zero_grad()
    set_engine(network, pick_engine(torch.device("cuda")))
    return result


def _plain_sampling(network: Any, batch: int, tokens: int) -> float:
    """Tokens per second with one ordinary forward per token, not captured."""
    import torch

    from outpace.policy.decode import ModelDecoder
    from outpace.policy.engine import build_slots

    network.eval()
    slots = build_slots(network, size=batch, positions=1152, max_new=tokens)
    decode = ModelDecoder(network)
    began = 0.0
    with torch.inference_mode():
        for step in range(tokens + 2):
            if step == 2:
                torch.cuda.synchronize()
                began = time.perf_counter()
            slots.token_B.copy_(decode(slots, batch, slots.positions).argmax(dim=-1))
            slots.position_B.add_(1)
        torch.cuda.synchronize()
    return batch * tokens / (time.perf_counter() - began)


def _release(policy: Any) -> None:
    """Give the sampler's slots and graphs back: a training step has more use for the memory."""
    import torch

    from outpace.policy.sampler import forget

    forget(policy)
    gc.collect()
    torch.cuda.empty_cache()


def _driver_memory() -> float | None:
    """What the driver says is used on the first GPU; None where it cannot be asked."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout  # noqa: S603
        return float(printed.split()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
