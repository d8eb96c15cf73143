"""LoRA from a recipe's keys, and proof that it trains what was asked: names that match nothing, families without a
gradient and adapters in name only are errors, not log lines.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from outpace.config import Recipe
from outpace.errors import ConfigError, TrainingDiverged
from outpace.policy import mxfp4
from outpace.policy.lora import count_parameters, family_of
from outpace.policy.mxfp4.census import family_and_layer

HOST_ADAMW = "adamw_host"
"""The `optim` that keeps float32 weights and moments on the host."""
_WAIT = 5
"""Updates with a gradient somewhere after which every family must have had one."""


def lora_config(recipe: Recipe) -> Any | None:
    """PEFT's LoraConfig for the recipe; None when every weight is trained."""
    if not recipe.use_peft:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=recipe.lora_r,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules=recipe.lora_target_modules or None,
        target_parameters=recipe.lora_target_parameters,
        modules_to_save=recipe.lora_modules_to_save,
        use_rslora=recipe.use_rslora,
        task_type="CAUSAL_LM",
    )


def adapt(recipe: Recipe, model: Any) -> tuple[Any, Any | None]:
    """The model to hand to TRL and the LoraConfig that TRL is to attach; packed experts are adapted here, by ours.

    Raises:
        ConfigError: the adapters cannot be had on this model.
    """
    config = lora_config(recipe)
    if config is None or hasattr(model, "peft_config"):
        return model, None
    if not mxfp4.is_packed(model):
        return model, config
    if recipe.beta:
        raise ConfigError(
            "beta above 0 is not supported on packed experts: leave it at 0, or use an unpacked checkpoint"
        )
    import torch

    kept = torch.bfloat16 if recipe.optim == HOST_ADAMW and model.dtype != torch.float32 else torch.float32
    return mxfp4.attach(model, config, dtype=kept, seed=recipe.seed), None


def weight_counts(model: Any) -> dict[str, Any]:
    """Numbers of weights for a run's record: all, trained, by family; if packed, also how the others are kept."""
    counts = count_parameters(model)
    if not mxfp4.is_packed(model):
        return {"all": counts.total, "trained": counts.trained, "trained_by_family": dict(counts.trained_by_family)}
    census = asdict(mxfp4.census(model))
    kept = {name: census.pop(name) for name in ("four_bit", "eight_bit", "on_host", "other")}
    return {"all": sum(kept.values()) + counts.trained, "trained": counts.trained, "kept": kept, **census}


def describe_trained(model: Any) -> list[str]:
    """How weights are kept and what is trained, by family: the lines that open a run."""
    if mxfp4.is_packed(model):
        return mxfp4.census(model).lines()
    counts = count_parameters(model)
    parts = ", ".join(f"{name} {number:,}" for name, number in counts.trained_by_family.items())
    return [f"trained: {counts.trained:,} of {counts.total:,} weights ({parts or 'none'})"]


def family_in(model: Any) -> Callable[[str], str]:
    """From a parameter's name to its family: in a packed model, each projection of each layer is one of its own."""
    if not mxfp4.is_packed(model):
        return family_of
    return lambda name: " of layer ".join(family_and_layer(name, model))


def check_targets(recipe: Recipe, model: Any) -> dict[str, int]:
    """Adapted places by requested name.

    Raises:
        ConfigError: a requested name matches nothing in this model; PEFT passes over such names in silence.
    """
    if not recipe.use_peft:
        return {}
    adapted = [name for name, module in model.named_modules() if hasattr(module, "lora_A")]
    requested = recipe.lora_target_modules
    names = [] if isinstance(requested, str) else list(requested)
    counts = {name: sum(_is_named(path, name) for path in adapted) for name in names}
    parameters = recipe.lora_target_parameters or []
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    counts |= {name: sum(_holds_parameter(path, name) for path in trained) for name in parameters}
    missing = [name for name, number in counts.items() if number == 0]
    if missing:
        raise ConfigError(
            f"LoRA was asked for on {', '.join(missing)}, and this model has no place of that name, so it would not be "
            f"trained: its linear layers are called {', '.join(_linear_names(model))}"
        )
    if not trained:
        raise ConfigError("no weight would be trained: check use_peft and lora_target_modules")
    return counts


class GradientReach:
    """Watches the first updates until each family of trained parameters has had a gradient that is not zero."""

    def __init__(self, trained: Iterable[str], family: Callable[[str], str] = family_of) -> None:
        self._family = family
        self._waiting = Counter(family(name) for name in trained)
        self._updates = 0
        self.reached: set[str] = set()

    def observe(self, named: Sequence[tuple[str, Any]]) -> None:
        """Look at one update's gradients; raises TrainingDiverged when a family has none while others have."""
        if not self._waiting:
            return
        with_gradient = {self._family(name) for name, grad in named if bool(grad.any())}
        if not with_gradient:
            return  # every group had equal rewards: this update says nothing
        self._updates += 1
        self.reached |= with_gradient
        for family in with_gradient:
            self._waiting.pop(family, None)
        if self._waiting and self._updates >= _WAIT:
            raise TrainingDiverged(
                f"after {self._updates} updates no gradient has reached {', '.join(sorted(self._waiting))} "
                f"({self._waiting.total()} trained tensors): these adapters are not attached to what the model computes"
            )


def _is_named(path: str, name: str) -> bool:
    return path == name or path.endswith(f".{name}")


def _holds_parameter(path: str, name: str) -> bool:
    """PEFT wraps a target parameter's module; the trained tensors' paths hold the module's path."""
    return f".{name.rpartition('.')[0]}." in path


def _linear_names(model: Any) -> list[str]:
    import torch

    names = {
        path.removesuffix(".base_layer").rpartition(".")[2]
        for path, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and "lora_" not in path
    }
    return sorted(names - {"lm_head"})
