"""Forecasts a recipe's peak GPU memory and step time from the model's configuration, and fits a recipe to a card.

No weight is read and no GPU asked. The formulas and what they were held against are in docs/gpt-oss.md. Not covered:
several GPUs, vLLM's memory (it takes the share it is given), SFT and DPO data.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from outpace.config import Recipe
from outpace.errors import ConfigError
from outpace.policy.geometry import Geometry, geometry_of
from outpace.policy.memory_forecast import (
    is_checkpointed,
    rows_of_an_update,
    sampling_bytes,
    tokens_of_a_row,
    training_bytes,
    training_state,
    weight_bytes,
)
from outpace.policy.storage import Storage

if TYPE_CHECKING:
    from rich.table import Table

GB = 1e9
_RESERVED = 1.02
"""What the allocator holds over what is in use, with expandable segments; measured 1.01 to 1.03."""
_CONTEXT_GB = 0.15
"""Workspaces of cuBLAS and of captured graphs. CUDA's context, about 0.5 GB, comes on top."""
_SHORTEST, _FEWEST = 128, 2
_LARGE = 16
"""Rows of a micro-batch below which each pass is too small to fill a GPU."""
GPUS = {
    "h200": (4800, 790), "h100": (3350, 790), "a100": (2039, 312), "l4": (300, 121), "t4": (320, 65),
    "rtx4090": (1008, 165), "rtx3090": (936, 71), "rtx4070": (504, 58), "rtx3060": (360, 51),
}  # fmt: skip
"""Memory bandwidth in GB/s and dense 16-bit TFLOP/s, by the makers' data sheets."""


_SHOWN = (
    "model",
    "num_generations",
    "max_prompt_length",
    "max_completion_length",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "optim",
)
"""Keys of the recipe that a plan shows: those that decide about memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A forecast; memory in GB (10^9 bytes) as PyTorch reserves it, times in seconds."""

    recipe: Recipe
    """The recipe that was planned, changed where a card asked for it."""
    storage: str
    parts_GB: dict[str, float]
    """Weights, trained ones and moments stay; of sampling and training, gradients included, one is there at a time."""
    peak_GB: float
    memory_GB: float | None
    """The card's memory that was asked for; None: none was."""
    changes: tuple[str, ...]
    """What was changed to fit, one sentence each."""
    trained: int
    sampling_s: float
    training_s: float
    gpu: str

    @property
    def fits(self) -> bool | None:
        """Whether the peak is within the card; None when none was named."""
        return None if self.memory_GB is None else self.peak_GB <= self.memory_GB

    @property
    def step_s(self) -> float:
        """One update, rewards left out."""
        return self.sampling_s + self.training_s

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        keys = (
            "num_generations",
            "max_completion_length",
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
        )
        plain["recipe"] = {key: getattr(self.recipe, key) for key in (*keys, "gradient_checkpointing", "optim")}
        hours = self.step_s * self.recipe.max_steps / 3600
        return plain | {"fits": self.fits, "step_s": self.step_s, "run_hours": hours, "changes": list(self.changes)}

    def __rich__(self) -> "Table":
        """A table for the terminal."""
        from rich.table import Table

        table = Table(title=f"{self.recipe.model}: forecast for one {self.gpu}", title_justify="left")
        table.add_column("")
        table.add_column("", justify="right")
        for name, amount in self.parts_GB.items():
            table.add_row(name, f"{amount:.2f} GB")
        room = "" if self.memory_GB is None else f" of {self.memory_GB:g} GB" + ("" if self.fits else ": does not fit")
        table.add_row("peak, as PyTorch reserves it", f"{self.peak_GB:.2f} GB{room}")
        table.add_row("kept as", self.storage)
        table.add_row("trained weights", f"{self.trained:,}")
        table.add_row("sampling", f"{self.sampling_s:.1f} s per step")
        table.add_row("training", f"{self.training_s:.1f} s per step")
        table.add_row("all steps, rewards left out", f"{self.step_s * self.recipe.max_steps / 3600:.1f} h")
        for change in self.changes:
            table.add_row("changed", change)
        return table


def plan(recipe: Recipe, *, memory_GB: float | None = None, gpu: str = "h200") -> Plan:
    """Forecast a recipe, and fit it to a card when `memory_GB` says how large that is.

    gpt-oss is kept as it will be on a card of that size (`Storage.within`). To fit, the cheapest remedies come first:
    activations are computed twice, micro-batches shrink with the update unchanged, moments move to the host; then
    completions get shorter and generations fewer, which changes what is learnt and is said so.

    Args:
        recipe: what is to be run.
        memory_GB: the card's memory in 10^9 bytes.
        gpu: whose speed the times are for, one of `GPUS`.

    Raises:
        ConfigError: the GPU is unknown, or nothing fits the card.
        ModelError: the model's configuration is not to be had without its weights.
    """
    if gpu not in GPUS:
        raise ConfigError(f"There is no GPU {gpu!r} in the table: use one of {', '.join(GPUS)}.")
    shape = geometry_of(recipe.model)
    storage = Storage.within(memory_GB) if shape.is_packed else Storage()
    if memory_GB is None:
        return _forecast(recipe, shape, storage, None, (), gpu)
    found = None
    for candidate, changes in _remedies(recipe, shape, storage):
        found = _forecast(candidate, shape, storage, memory_GB, changes, gpu)
        if found.fits:
            return found
    assert found is not None
    raise ConfigError(
        f"{recipe.model} does not fit {memory_GB:g} GB: with every remedy its peak is {found.peak_GB:.1f} GB; use a "
        "larger card or a smaller model."
    )


def _remedies(recipe: Recipe, shape: Geometry, storage: Storage) -> Iterator[tuple[Recipe, tuple[str, ...]]]:
    """The recipe as it is, then with one remedy after another, each on top of those before."""
    changes = [] if storage.is_exact else [f"for a card of this size: {storage.describe()}"]
    yield recipe, tuple(changes)
    for smaller, sentence in _smaller_recipes(recipe, shape):
        changes.append(sentence)
        yield smaller, tuple(changes)


def _smaller_recipes(recipe: Recipe, shape: Geometry) -> Iterator[tuple[Recipe, str]]:
    # where micro-batches are large, smaller ones cost less than computing activations twice
    for smaller, sentence in _smaller_micro_batches(recipe, least=_LARGE):
        recipe = smaller
        yield recipe, sentence
    if not is_checkpointed(recipe, shape):
        recipe = recipe.model_copy(update={"gradient_checkpointing": True})
        yield recipe, "gradient_checkpointing=true: activations are computed twice, updates stay the same"
    for smaller, sentence in _smaller_micro_batches(recipe, least=1):
        recipe = smaller
        yield recipe, sentence
    if recipe.use_peft and recipe.optim != "adamw_host" and shape.is_packed:
        recipe = recipe.model_copy(update={"optim": "adamw_host"})
        yield recipe, "optim=adamw_host: float32 weights and moments of the adapters live on the host"
    while recipe.max_completion_length // 2 >= _SHORTEST * 4:
        recipe = recipe.model_copy(update={"max_completion_length": recipe.max_completion_length // 2})
        yield recipe, f"max_completion_length={recipe.max_completion_length}: longer answers are cut off"
    while recipe.num_generations // 2 >= _FEWEST:
        half = recipe.num_generations // 2
        recipe = recipe.model_copy(update={"num_generations": half})
        yield recipe, f"num_generations={half}: smaller groups make noisier advantages"
    while recipe.max_completion_length // 2 >= _SHORTEST:
        recipe = recipe.model_copy(update={"max_completion_length": recipe.max_completion_length // 2})
        yield recipe, f"max_completion_length={recipe.max_completion_length}: longer answers are cut off"


def _smaller_micro_batches(recipe: Recipe, least: int) -> Iterator[tuple[Recipe, str]]:
    size, rounds = recipe.per_device_train_batch_size, recipe.gradient_accumulation_steps
    while size % 2 == 0 and size // 2 >= least:
        size, rounds = size // 2, rounds * 2
        update = {"per_device_train_batch_size": size, "gradient_accumulation_steps": rounds}
        recipe = recipe.model_copy(update=update)
        yield recipe, f"per_device_train_batch_size={size}, gradient_accumulation_steps={rounds}: updates stay the same"


def _forecast(
    recipe: Recipe, shape: Geometry, storage: Storage, memory_GB: float | None, changes: tuple[str, ...], gpu: str
) -> Plan:
    trained = shape.adapter_weights(recipe) if recipe.use_peft else shape.weights
    weights = weight_bytes(recipe, shape, storage)
    state, gradients = training_state(recipe, trained)
    sampling, training = sampling_bytes(recipe, shape), gradients + training_bytes(recipe, shape, storage)
    parts = {
        "weights": weights / GB,
        "trained weights, moments": state / GB,
        "while sampling": sampling / GB,
        "while training": training / GB,
    }
    peak = (weights + state + max(sampling, training)) * _RESERVED / GB + _CONTEXT_GB
    return Plan(
        recipe=recipe,
        storage=storage.describe() if shape.is_packed else "as the recipe's dtype says",
        parts_GB=parts,
        peak_GB=peak,
        memory_GB=memory_GB,
        changes=changes,
        trained=trained,
        sampling_s=_sampling_s(recipe, shape, weights, gpu),
        training_s=_training_s(recipe, shape, gpu),
        gpu=gpu,
    )


def _sampling_s(recipe: Recipe, shape: Geometry, weight_bytes: float, gpu: str) -> float:
    """Every step reads the weights and costs a little per layer and per row; fitted to an H200."""
    bandwidth = GPUS[gpu][0] * GB
    rows = min(rows_of_an_update(recipe), 256)
    read = weight_bytes
    if shape.experts:
        touched = 1 - (1 - shape.top_k / shape.experts) ** rows
        read -= shape.expert_weights * 4.25 / 8 * (1 - touched)
    read += rows * tokens_of_a_row(recipe) * shape.cache_bytes_per_token
    per_layer_s, per_row_s = (0.45e-3, 0.25e-3) if shape.experts else (0.14e-3, 0.02e-3)
    step = read / (0.25 * bandwidth) + per_layer_s * shape.layers + per_row_s * rows
    return step * recipe.max_completion_length * -(-rows_of_an_update(recipe) // 256)


def _training_s(recipe: Recipe, shape: Geometry, gpu: str) -> float:
    """Forward, forward again where activations are dropped, and backward."""
    passes = (3 if is_checkpointed(recipe, shape) else 2) + (0 if recipe.use_peft else 1)
    operations = 2 * shape.active_weights * rows_of_an_update(recipe) * tokens_of_a_row(recipe) * passes
    share = 0.065 if shape.experts else 0.2
    return operations / (share * GPUS[gpu][1] * 1e12)
