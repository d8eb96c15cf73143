"""Counts what is packed, what is plain and what is trained, by family and layer: the proof that opens a run.

Not covered: whether gradients arrive (`outpace.training.adapters` watches that with these families).
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from outpace.policy.mxfp4.compact import HostEmbedding, Int8Linear, PackedLinear
from outpace.policy.mxfp4.experts import FAMILIES, PackedExperts

_LAYER = re.compile(r"\blayers\.(\d+)\.")
_PLACES = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Numbers of weights by how they are kept, and trained ones by family."""

    four_bit: int
    eight_bit: int
    on_host: int
    other: int
    """Not adapters, and neither packed nor in 8 bits: norms, routers, biases, and what `Storage` keeps exact."""
    trained_by_family: dict[str, int]
    trained_places: dict[str, int]
    """Family -> layers in which it is trained."""

    @property
    def trained(self) -> int:
        """All trained weights."""
        return sum(self.trained_by_family.values())

    def lines(self) -> list[str]:
        """What to print at a run's start."""
        kept = f"{self.four_bit:,} weights in 4 bits, {self.eight_bit:,} in 8, {self.other:,} exact"
        kept += f", {self.on_host:,} on the host" if self.on_host else ""
        parts = [
            f"{family} {count:,} in {self.trained_places[family]} layers"
            for family, count in self.trained_by_family.items()
        ]
        return [kept, f"trained: {self.trained:,} ({', '.join(parts) or 'none'})"]


def census(model: Any) -> Census:
    """Count a model's weights; adapters count as trained when they want a gradient."""
    four = eight = host = 0
    for module in model.modules():
        if isinstance(module, PackedExperts):
            four += sum(module.packed(family).weights for family in FAMILIES)
        elif isinstance(module, PackedLinear):
            four += module.packed.weights
        elif isinstance(module, Int8Linear):
            eight += module.codes.numel()
        elif isinstance(module, HostEmbedding):
            host += module.table.numel()
    trained: Counter[str] = Counter()
    layers: dict[str, set[str]] = {}
    other = sum(m.bias(family).numel() for m in model.modules() if isinstance(m, PackedExperts) for family in FAMILIES)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            family, layer = family_and_layer(name, model)
            trained[family] += parameter.numel()
            layers.setdefault(family, set()).add(layer)
        elif "lora_" not in name:
            other += parameter.numel()
    return Census(
        four_bit=four,
        eight_bit=eight,
        on_host=host,
        other=other,
        trained_by_family=dict(trained),
        trained_places={family: len(found) for family, found in layers.items()},
    )


def family_and_layer(name: str, model: Any = None) -> tuple[str, str]:
    """The family (`q_proj`, ..., `gate_up_proj`, `down_proj`, `other`) and the layer of an adapter's parameter.

    An expert adapter's name does not say its family, so the model is asked.
    """
    match = _LAYER.search(name)
    layer = match[1] if match else ""
    for place in _PLACES:
        if f".{place}." in name:
            return place, layer
    if ".experts." in name and model is not None:
        owner = model.get_submodule(name.partition(".lora_")[0])
        return str(owner.family), layer
    return "other", layer
