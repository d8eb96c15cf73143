"""Writes a trained gpt-oss as a plain checkpoint: adapters merged, experts in bfloat16 or in MXFP4 again.

One layer's experts are unpacked at a time, and written as a shard of their own, so that it needs little memory. Not
covered: reading a checkpoint whose attention was rounded back to what it was (adapters are merged into what was
trained with).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from outpace.policy.mxfp4.adapters import ExpertLora
from outpace.policy.mxfp4.compact import HostEmbedding, _FrozenLinear
from outpace.policy.mxfp4.experts import FAMILIES, PackedExperts
from outpace.policy.mxfp4.packing import Packed, pack, unpack

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """What packing merged experts into MXFP4 cost, over all layers, as shares of Euclidean norms."""

    of_weights: float
    """Rounding error against the merged weights; 0 for a layer that no adapter changed."""
    of_change: float | None
    """Rounding error against what the adapters changed: above 1, more is lost than learnt; None: nothing changed."""

    def describe(self) -> str:
        """One sentence for the user."""
        text = f"packing moved the merged expert weights by {self.of_weights:.2%} of their size"
        if self.of_change is None:
            return f"{text}; no adapter had changed them"
        return f"{text}, {self.of_change:.2f} times what training changed"


def export_packed(
    model: Any, folder: Path, *, experts: Literal["bfloat16", "mxfp4"] = "bfloat16", say: Say = lambda line: None
) -> Rounding | None:
    """Write the model with its active adapters merged, in the hub's layout, for transformers and others to load.

    Args:
        model: from `load_network`, with or without `attach`; it is left as it is.
        folder: made where it is missing.
        experts: how the experts are written.
        say: hears what packing cost.

    Returns:
        What packing cost; None when experts are written in bfloat16.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    network = model.get_base_model() if hasattr(model, "get_base_model") else model
    layers = network.config.num_hidden_layers
    place: dict[str, str] = {}
    sums = {"weights": 0.0, "error": 0.0, "change": 0.0}
    with torch.no_grad():
        for number in range(layers + 1):
            prefix = f"model.layers.{number}." if number < layers else ""
            tensors = _layer(network, prefix, experts, sums) if prefix else _rest(network)
            file = f"model-{number + 1:05d}-of-{layers + 1:05d}.safetensors"
            save_file(
                {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, folder / file, {"format": "pt"}
            )
            place |= dict.fromkeys(tensors, file)
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    index = {"metadata": {"total_size": size}, "weight_map": place}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")
    _write_config(network, folder, is_packed=experts == "mxfp4")
    if experts != "mxfp4":
        return None
    of_change = (sums["error"] / sums["change"]) ** 0.5 if sums["change"] else None
    rounding = Rounding(of_weights=(sums["error"] / max(sums["weights"], 1e-30)) ** 0.5, of_change=of_change)
    say(rounding.describe())
    return rounding


def _write_config(network: Any, folder: Path, *, is_packed: bool) -> None:
    network.config.save_pretrained(folder)
    file = folder / "config.json"
    facts = json.loads(file.read_text(encoding="utf-8")) | {"architectures": ["GptOssForCausalLM"]}
    facts["dtype"] = "bfloat16"
    if is_packed:
        facts["quantization_config"] = {"quant_method": "mxfp4"}
    file.write_text(json.dumps(facts, indent=2), encoding="utf-8")
    if network.generation_config is not None:
        network.generation_config.save_pretrained(folder)


def _rest(network: Any) -> dict[str, Tensor]:
    """Everything outside the layers."""
    embedding = network.model.embed_tokens
    table = embedding.table if isinstance(embedding, HostEmbedding) else embedding.weight
    tensors = {"model.embed_tokens.weight": table, "model.norm.weight": network.model.norm.weight}
    tensors["lm_head.weight"] = _merged_linear(network.lm_head)
    return {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}


def _layer(network: Any, prefix: str, kind: str, sums: dict[str, float]) -> dict[str, Tensor]:
    """One layer's tensors by their names in the checkpoint."""
    layer = network.get_submodule(prefix.removesuffix("."))
    tensors: dict[str, Tensor] = {"self_attn.sinks": layer.self_attn.sinks}
    for name in ("input_layernorm", "post_attention_layernorm"):
        tensors[f"{name}.weight"] = getattr(layer, name).weight
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        module = getattr(layer.self_attn, name)
        tensors[f"self_attn.{name}.weight"] = _merged_linear(module)
        bias = getattr(module, "base_layer", module).bias
        if bias is not None:
            tensors[f"self_attn.{name}.bias"] = bias
    tensors |= {f"mlp.router.{name}": parameter for name, parameter in layer.mlp.router.named_parameters()}
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    for family in FAMILIES:
        tensors |= _experts(layer.mlp.experts, family, kind, sums)
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _experts(module: nn.Module, family: str, kind: str, sums: dict[str, float]) -> dict[str, Tensor]:
    wrapper = next((part for part in module.modules() if isinstance(part, ExpertLora) and part.family == family), None)
    base = module if isinstance(module, PackedExperts) else module.get_base_layer()  # type: ignore[operator]
    assert isinstance(base, PackedExperts)
    packed = base.packed(family)
    name = f"mlp.experts.{family}"
    tensors = {f"{name}_bias": base.bias(family).to(torch.bfloat16)}
    merged = [_merged_expert(packed, wrapper, expert, sums) for expert in range(base.num_experts)]
    if kind == "bfloat16":
        tensors[name] = torch.stack([matrix.T.to(torch.bfloat16) for matrix in merged])
        return tensors
    again = [_repacked(packed, wrapper, expert, matrix, sums) for expert, matrix in enumerate(merged)]
    tensors[f"{name}_blocks"] = torch.stack([part.blocks for part in again])
    tensors[f"{name}_scales"] = torch.stack([part.scales for part in again])
    return tensors


def _merged_expert(packed: Packed, wrapper: ExpertLora | None, expert: int, sums: dict[str, float]) -> Tensor:
    matrix = unpack(Packed(packed.blocks[expert], packed.scales[expert]))
    if wrapper is not None:
        for name in wrapper.in_force:
            change = wrapper.delta(name, expert)
            sums["change"] += float(change.square().sum())
            matrix = matrix + change
    sums["weights"] += float(matrix.square().sum())
    return matrix


def _repacked(
    packed: Packed, wrapper: ExpertLora | None, expert: int, matrix: Tensor, sums: dict[str, float]
) -> Packed:
    """Packed anew where an adapter changed it, else the checkpoint's own bytes."""
    own = Packed(packed.blocks[expert], packed.scales[expert])
    if wrapper is None:
        return own
    again = pack(matrix)
    sums["error"] += float((unpack(again) - matrix).square().sum())
    return again


def _merged_linear(module: Any) -> Tensor:
    """A linear layer's weight with its active adapters, in float32."""
    base = getattr(module, "base_layer", module)
    weight: Tensor = base.unpacked(torch.float32) if isinstance(base, _FrozenLinear) else base.weight.float()
    if base is module:
        return weight
    for name in module.active_adapters:
        if name in module.lora_A:
            change = module.lora_B[name].weight.float() @ module.lora_A[name].weight.float()
            weight = weight + change * module.scaling[name]
    return weight
