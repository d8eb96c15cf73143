"""LoRA on packed experts, in activation space and in PEFT's own layout, so that PEFT loads and merges what is saved.

PEFT's `target_parameters` builds the whole change of every expert at every call; here the low-rank factors meet the
activations instead. Layout, as PEFT's ParamWrapper has it: A is (E x r, in) with expert-major rows, B is (out, r x E)
with rank-major columns; `down_proj` wraps `gate_up_proj`, which wraps the experts. Not covered: dropout, DoRA, biases.
"""

import copy
from typing import Any

import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the name that everyone gives it

from outpace.errors import ConfigError
from outpace.policy.mxfp4.experts import FAMILIES, PackedExperts
from outpace.policy.mxfp4.grouped import Routes
from outpace.policy.quiet import quiet_transformers


def is_packed(model: nn.Module) -> bool:
    """Whether the model has packed experts."""
    return any(isinstance(module, PackedExperts) for module in model.modules())


class ExpertLora(nn.Module, BaseTunerLayer):  # type: ignore[misc]  # PEFT is untyped
    """A low-rank change of one family of an expert layer; wraps the experts, or another such wrapper."""

    lora_A: nn.ModuleDict
    lora_B: nn.ModuleDict
    adapter_layer_names = ("lora_A", "lora_B")
    other_param_names = ("r", "lora_alpha", "scaling")
    cast_input_dtype_enabled = True

    def __init__(self, base_layer: nn.Module, family: str) -> None:
        super().__init__()
        self.base_layer, self.family = base_layer, family
        self.lora_A, self.lora_B = nn.ModuleDict(), nn.ModuleDict()
        self.r: dict[str, int] = {}
        self.lora_alpha: dict[str, float] = {}
        self.scaling: dict[str, float] = {}
        self._active_adapter: list[str] = []
        self.merged_adapters: list[str] = []

    @property
    def experts(self) -> PackedExperts:
        """The packed experts beneath."""
        base = self.base_layer
        while not isinstance(base, PackedExperts):
            base = base.base_layer  # type: ignore[assignment]
        return base

    @property
    def in_force(self) -> list[str]:
        """The active adapters that this layer has."""
        return [name for name in BaseTunerLayer.active_adapters.fget(self) if name in self.lora_A]

    def factors(self, name: str) -> tuple[Tensor, Tensor]:
        """A (E x r, in) and B (out, r x E) of an adapter."""
        down, up = self.lora_A[name].weight, self.lora_B[name].weight
        assert isinstance(down, Tensor) and isinstance(up, Tensor)  # noqa: PT018
        return down, up

    def add(self, name: str, config: Any, dtype: torch.dtype) -> None:
        """Add an adapter that changes nothing until it is trained: A is random, B is zero."""
        packed, experts = self.experts.packed(self.family), self.experts.num_experts
        device, rank = packed.blocks.device, config.r
        up = nn.Linear(rank * experts, packed.rows, bias=False)
        nn.init.zeros_(up.weight)
        self.lora_A[name] = nn.Linear(packed.columns, rank * experts, bias=False).to(device, dtype)
        self.lora_B[name] = up.to(device, dtype)
        self.r[name], self.lora_alpha[name] = rank, config.lora_alpha
        self.scaling[name] = config.lora_alpha / (rank**0.5 if config.use_rslora else rank)
        BaseTunerLayer.set_adapter(self, [name], inference_mode=config.inference_mode)

    def forward(
        self, hidden_states: Tensor, router_indices: Tensor, routing_weights: Tensor, adapters: Any = None
    ) -> Tensor:
        """See `PackedExperts.forward`."""
        adapters = dict(adapters or {})
        if not self._disable_adapters and self.in_force:
            adapters[self.family] = self._change
        result: Tensor = self.base_layer(hidden_states, router_indices, routing_weights, adapters)
        return result

    def _change(self, out: Tensor, rows: Tensor, routes: Routes, *, by_token: bool) -> Tensor:
        """Add what the adapters change to `out` (P, out), in place; rows are (T or P, in)."""
        for name in self.in_force:
            out = self._one(name, out, rows, routes, by_token=by_token)
        return out

    def _one(self, name: str, out: Tensor, rows: Tensor, routes: Routes, *, by_token: bool) -> Tensor:
        # Every expert's A meets every row, and a mask keeps the routed one: r x E columns are few, and two dense
        # products with exact gradients are faster than 2 E small ones.
        down, up = (factor.to(rows.dtype) for factor in self.factors(name))
        low = F.linear(rows, down).view(rows.shape[0], routes.experts, -1)
        row_P = routes.token_P if by_token else routes.every
        spread = low[row_P, routes.expert_P, :, None] * routes.is_own(low.dtype)[:, None, :]
        return out.addmm_(spread.reshape(routes.pairs, -1), up.T, alpha=self.scaling[name])

    def delta(self, name: str, expert: int) -> Tensor:
        """The change of one expert's matrix (out, in), in float32."""
        down, up = (factor.float() for factor in self.factors(name))
        rank = self.r[name]
        return (
            up[:, expert :: self.experts.num_experts] @ down[expert * rank : (expert + 1) * rank] * self.scaling[name]
        )


def families_of(config: Any) -> tuple[str, ...]:
    """The expert families that a LoraConfig's `target_parameters` name."""
    asked = config.target_parameters or ()
    found = {family for family in FAMILIES for name in asked if name.rpartition(".")[2] == family}
    unknown = [name for name in asked if name.rpartition(".")[2] not in FAMILIES]
    if unknown:
        raise ConfigError(
            f"LoRA was asked for on {', '.join(unknown)}, and packed experts have mlp.experts.gate_up_proj and "
            "mlp.experts.down_proj: name these."
        )
    return tuple(family for family in FAMILIES if family in found)


def attach(model: Any, config: Any, *, name: str = "default", dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
    """Wrap a packed model in a PeftModel with the adapters that a LoraConfig describes.

    `target_modules` are attached by PEFT, `target_parameters` by us; the result saves, loads, switches off and shows
    its adapters as PEFT's own do.

    Args:
        model: from `load_network`; it is changed.
        config: PEFT's LoraConfig.
        name: the adapter's name.
        dtype: of the adapters' weights; bfloat16 halves their memory, and wants an optimiser that keeps float32 ones
            (`HostAdamW`).
        seed: of the adapters' random halves.

    Raises:
        ConfigError: dropout or a parameter that is no expert family is asked for, or no module has a target's name.
    """
    families = families_of(config)
    if families and (config.lora_dropout or config.use_dora or config.bias != "none"):
        raise ConfigError("LoRA on packed experts has no dropout, no DoRA and no biases: set lora_dropout=0.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        wrapped = _attach_to_modules(model, config, name)
        if dtype != torch.float32:
            for key, parameter in model.named_parameters():
                if "lora_" in key:
                    parameter.data = parameter.data.to(dtype)
        for layer in model.model.layers:
            for family in families:
                wrapper = ExpertLora(layer.mlp.experts, family)
                wrapper.add(name, config, dtype)
                layer.mlp.experts = wrapper
    wrapped.peft_config[name].target_parameters = config.target_parameters
    return wrapped


def _attach_to_modules(model: Any, config: Any, name: str) -> Any:
    """The PeftModel with adapters on `target_modules` only."""
    from peft import get_peft_model

    for_modules = copy.copy(config)
    for_modules.target_parameters = None
    if not config.target_modules:
        for_modules.target_modules = ["q_proj"]  # PEFT wants one; it is taken off again below
    try:
        with quiet_transformers():
            wrapped = get_peft_model(model, for_modules, adapter_name=name)
    except ValueError as error:
        reason = (str(error).strip().splitlines() or ["unknown"])[0][:200]
        raise ConfigError(f"LoRA cannot be attached to {config.target_modules!r}: {reason}") from error
    if not config.target_modules:
        _take_off(model, "q_proj")
        for_modules.target_modules = None
    return wrapped


def _take_off(model: Any, target: str) -> None:
    for layer in model.model.layers:
        setattr(layer.self_attn, target, getattr(layer.self_attn, target).base_layer)


def attach_saved(model: Any, folder: str, *, trainable: bool = True) -> Any:
    """Wrap a packed model with the adapter that was saved in `folder`, by us or by PEFT.

    Raises:
        ConfigError: see `attach`; also when the saved weights lack or exceed what the configuration describes.
    """
    from peft import LoraConfig, load_peft_weights, set_peft_model_state_dict

    config = LoraConfig.from_pretrained(folder)
    config.inference_mode = not trainable
    wrapped = attach(model, config)
    try:
        result = set_peft_model_state_dict(wrapped, load_peft_weights(folder, device="cpu"))
    except RuntimeError as error:  # sizes that differ
        raise ConfigError(f"{folder} holds an adapter for a model of other sizes: load it on its own base.") from error
    lacking = [key for key in result.missing_keys if "lora_" in key]
    if lacking or result.unexpected_keys:
        culprit = (lacking or result.unexpected_keys)[0]
        raise ConfigError(f"{folder} holds an adapter of another shape ({culprit}): train it on this base model.")
    return wrapped
