"""Attaches LoRA adapters and says what is trained, family by family, so that nothing is trained by name only."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from outpace.errors import ModelError
from outpace.policy.load import Policy
from outpace.policy.quiet import quiet_transformers

_FAMILIES = {
    "attention": ("attn", "attention"),
    "experts": ("experts",),
    "router": ("router", "mlp.gate."),
    "mlp": ("mlp", "feed_forward"),
    "embedding": ("embed", "lm_head", "wte"),
    "norm": ("norm", "ln_"),
}
"""Parameter families by what their names contain; the first that fits wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """How many parameters a model has and how many of them are trained, in all and by family."""

    total: int
    trained: int
    trained_by_family: dict[str, int]


def attach_lora(
    policy: Policy,
    *,
    r: int = 16,
    alpha: int | None = None,
    dropout: float = 0.0,
    targets: str | Sequence[str] = "all-linear",
    seed: int = 0,
) -> Policy:
    """Return the policy with a fresh LoRA adapter of rank `r` on `targets`; its base weights are frozen.

    The adapter changes nothing until it is trained (B starts at zero). It does not reach fused 3-D expert parameters.

    Raises:
        ModelError: no module is called as `targets` says, or the model carries an adapter already.
    """
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model

    if isinstance(policy.model, PeftModel):
        raise ModelError("The model carries a LoRA adapter already: load its base model instead.")
    config = LoraConfig(
        r=r,
        lora_alpha=2 * r if alpha is None else alpha,
        lora_dropout=dropout,
        target_modules=targets if isinstance(targets, str) else list(targets),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), quiet_transformers():
        torch.manual_seed(seed)
        try:
            network = get_peft_model(policy.model, config)
        except ValueError as error:
            raise ModelError(f"LoRA cannot be attached to {targets!r}: {str(error).splitlines()[0][:200]}") from error
    return replace(policy, model=network.eval())


def count_parameters(model: Any) -> ParameterCount:
    """Count all and trained parameters of a torch module; shared (tied) parameters count once."""
    total = 0
    trained: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        total += parameter.numel()
        if parameter.requires_grad:
            trained[family_of(name)] += parameter.numel()
    return ParameterCount(total=total, trained=trained.total(), trained_by_family=dict(trained))


def family_of(parameter_name: str) -> str:
    """Return the family of a parameter by its name: attention, experts, router, mlp, embedding, norm or other."""
    name = parameter_name.lower()
    for family, marks in _FAMILIES.items():
        if any(mark in name for mark in marks):
            return family
    return "other"
