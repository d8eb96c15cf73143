"""`outpace bench sampler`: tokens per second of ours beside transformers' `generate` and continuous batching.

Every sampler gets the same policy, prompt and lengths in one process, in turn; ours keeps log-probabilities, the others
do not (in their favour). A sampler that cannot run here is reported with its reason, not left out. vLLM is not
measured: it wants a process and a copy of the weights of its own.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import torch

from outpace.policy import Policy, SamplingSettings, sample
from outpace.policy.merged import base_model
from outpace.policy.sampler import encode, forget

PROMPT = (
    {
        "role": "user",
        "content": "Write a Python function `matmul(A, B)` that multiplies two matrices given as lists of lists. "
        "Answer with the complete code in one ```python block.",
    },
)
SAMPLERS = ("group", "transformers", "continuous")
_TIMED_CALLS = 2  # after a first one; the quickest counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One sampler at one batch size; `tokens` and `wall_s` are of the quickest call after a first one."""

    sampler: str
    batch: int
    stops: bool
    """Whether end tokens end a row; if not, every row has the full length."""
    tokens: int | None = None
    wall_s: float | None = None
    first_call_s: float | None = None
    """The first call with its start-up (compilation, graph capture, allocation)."""
    peak_bytes: int | None = None
    """Peak GPU memory over what the model took before; None on a CPU."""
    note: str = ""

    @property
    def tokens_per_s(self) -> float | None:
        """Completion tokens per second of wall-clock time, or None when it did not run."""
        return None if self.tokens is None or not self.wall_s else self.tokens / self.wall_s


def bench_sampler(
    policy: Policy,
    *,
    batches: Sequence[int] = (8, 64, 256),
    max_new_tokens: int = 400,
    samplers: Sequence[str] = SAMPLERS,
    stops: Sequence[bool] = (False, True),
    settings: SamplingSettings | None = None,
    on_measured: Callable[[Measurement], None] | None = None,
) -> list[Measurement]:
    """Measure the samplers one after the other; `on_measured` hears of each measurement as it is done.

    Args:
        policy: the model, with or without an adapter.
        batches: completions of one prompt drawn together.
        max_new_tokens: longest completion.
        samplers: names out of `SAMPLERS`.
        stops: whether end tokens end rows, each in turn.
        settings: of our sampler; its length and batch are overridden.
        on_measured: called in this thread.
    """
    prompt = encode(policy, PROMPT)
    measured = []
    for batch, stop, name in product(batches, stops, samplers):
        own = replace(settings or SamplingSettings(), max_new_tokens=max_new_tokens, max_batch=batch)
        result = _measure(name, _Job(policy, prompt, batch, stop, own))
        measured.append(result)
        if on_measured is not None:
            on_measured(result)
    return measured


def as_json(measured: Sequence[Measurement]) -> list[Mapping[str, Any]]:
    """Plain dictionaries with `tokens_per_s` beside the fields."""
    return [{**asdict(one), "tokens_per_s": one.tokens_per_s} for one in measured]


@dataclass(frozen=True, slots=True)
class _Job:
    """One thing to time: `batch` completions of `prompt`."""

    policy: Policy
    prompt: tuple[int, ...]
    batch: int
    stop: bool
    settings: SamplingSettings


def _measure(name: str, job: _Job) -> Measurement:
    runners = {"group": _group, "transformers": _transformers, "continuous": _continuous}
    on_gpu = job.policy.device.type == "cuda"
    held = 0
    if on_gpu:
        forget(job.policy)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
    timed: list[tuple[float, int]] = []
    try:
        for call in range(1 + _TIMED_CALLS):
            start_s = time.perf_counter()
            tokens = runners[name](job, call)
            if on_gpu:
                torch.cuda.synchronize()
            timed.append((time.perf_counter() - start_s, tokens))
    except Exception as error:  # a sampler that fails here is a result, not the end of the benchmark
        return Measurement(sampler=name, batch=job.batch, stops=job.stop, note=f"{type(error).__name__}: {error}"[:200])
    best_s, tokens = max(timed[1:], key=lambda one: one[1] / one[0])
    return Measurement(
        sampler=name,
        batch=job.batch,
        stops=job.stop,
        tokens=tokens,
        wall_s=best_s,
        first_call_s=timed[0][0],
        peak_bytes=torch.cuda.max_memory_allocated() - held if on_gpu else None,
    )


def _group(job: _Job, seed: int) -> int:
    policy = job.policy if job.stop else replace(job.policy, eos_ids=())
    drawn = sample(policy, [job.prompt], job.settings, num_generations=job.batch, seed=seed)
    return sum(len(generation.completion_ids) for generation in drawn)


def _options(job: _Job, seed: int) -> dict[str, Any]:
    torch.manual_seed(seed)
    length = job.settings.max_new_tokens
    options = {"max_new_tokens": length, "do_sample": True, "temperature": job.settings.temperature}
    options |= {"top_k": 0, "top_p": 1.0, "repetition_penalty": 1.0, "pad_token_id": job.policy.pad_id}
    if not job.stop:
        options["min_new_tokens"] = length
    return {**options, "eos_token_id": list(job.policy.eos_ids)}


def _transformers(job: _Job, seed: int) -> int:
    ids = torch.tensor([job.prompt] * job.batch, device=job.policy.device)
    with torch.inference_mode():
        drawn = job.policy.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **_options(job, seed))
    completions = drawn[:, len(job.prompt) :]
    is_end = torch.isin(completions, torch.tensor(job.policy.eos_ids, device=completions.device))
    after_end = is_end.cumsum(dim=-1) - is_end.long() > 0
    return int((~after_end).sum()) if job.stop else completions.numel()


def _continuous(job: _Job, seed: int) -> int:
    from transformers import GenerationConfig

    config = GenerationConfig(**_options(job, seed))
    outputs = base_model(job.policy.model).generate_batch(
        inputs=[list(job.prompt)] * job.batch, generation_config=config, progress_bar=False
    )
    return sum(len(output.generated_tokens) for output in outputs.values())
