"""How many bytes a recipe takes on the GPU: weights, what is trained, sampling, training.

The formulas and what they were held against are in docs/gpt-oss.md. Not covered: several GPUs, vLLM's memory, and the
data of SFT and DPO.
"""

from outpace.config import Recipe
from outpace.policy.geometry import Geometry
from outpace.policy.storage import Storage

_DRAW_BYTES = 100
"""Per row and vocabulary entry while a token is drawn: logits, weights and sums in several precisions."""
_SCORE_COLUMNS = {"full": 32768, "int8": 8192}
"""Columns of logits that are computed together, by how the head is kept."""

_BYTES = {"full": 2.0, "int8": 1.0, "mxfp4": 4.25 / 8}
"""Bytes per weight, scales included where they count."""


def _float_bytes(recipe: Recipe) -> int:
    """Bytes of a weight outside the packed ones: whole models are trained in float32."""
    if recipe.dtype == "auto":
        return 2 if recipe.use_peft else 4
    return 4 if recipe.dtype == "float32" else 2


def weight_bytes(recipe: Recipe, shape: Geometry, storage: Storage) -> float:
    """Bytes of the model's own weights as they are kept on the GPU."""
    if not shape.is_packed:
        return shape.weights * _float_bytes(recipe)
    experts = shape.expert_weights * _BYTES["mxfp4"]
    attention = shape.attention_weights * _BYTES[storage.attention]
    head = shape.head_weights * _BYTES[storage.head]
    embedding = shape.embedding_weights * 2 if storage.embedding == "device" else 0
    return experts + attention + head + embedding + shape.small_weights * 2


def training_state(recipe: Recipe, trained: int) -> tuple[int, int]:
    """Bytes of adapters and moments, and of gradients; a wholly trained model's weights are counted as weights."""
    own = 4 if recipe.use_peft else 0
    if recipe.optim == "adamw_host":
        return trained * 2, trained * 2
    moments = 2 if "8bit" in recipe.optim else 8
    return trained * (own + moments), trained * 4


def tokens_of_a_row(recipe: Recipe) -> int:
    """Tokens of one row: the prompt's limit, or 256 where the recipe has none, and the completion's."""
    return (recipe.max_prompt_length or 256) + recipe.max_completion_length


def rows_of_an_update(recipe: Recipe) -> int:
    """Completions drawn for one update on one GPU."""
    rounds = recipe.steps_per_generation or recipe.gradient_accumulation_steps
    return recipe.per_device_train_batch_size * rounds


def sampling_bytes(recipe: Recipe, shape: Geometry) -> float:
    """Bytes of keys and values of the rows drawn together, and of a draw."""
    rows = min(rows_of_an_update(recipe), 256)
    cache = rows * -(-tokens_of_a_row(recipe) // 64) * 64 * shape.cache_bytes_per_token
    return cache + rows * shape.vocab * _DRAW_BYTES


def is_checkpointed(recipe: Recipe, shape: Geometry) -> bool:
    """Whether activations are computed twice: as the recipe says, else by the model's size."""
    return shape.weights > 2e9 if recipe.gradient_checkpointing is None else recipe.gradient_checkpointing


def training_bytes(recipe: Recipe, shape: Geometry, storage: Storage) -> float:
    """Activations that the backward needs, and the largest passing tensors."""
    rows, rank = recipe.per_device_train_batch_size, recipe.lora_r if recipe.use_peft else None
    tokens = rows * tokens_of_a_row(recipe)
    per_layer = tokens * shape.activation_bytes(rank)
    in_layer = shape.attention_work(tokens_of_a_row(recipe), rows)
    if not is_checkpointed(recipe, shape):
        kept = _lean_bytes(recipe, shape) if _is_lean(recipe, shape) else per_layer * shape.layers
    elif shape.is_packed:  # layers' inputs wait on the host
        kept, in_layer = 0.0, shape.recomputed_bytes(tokens_of_a_row(recipe), rows, rank or 0, storage.tokens_at_once)
    else:
        kept, in_layer = float(tokens * shape.hidden * 2 * shape.layers), in_layer + 1.5 * per_layer
    # a tile of logits, and the rows of an 8-bit head that it is made from, unpacked and scaled
    columns, copies = _SCORE_COLUMNS[storage.head], 2 if storage.head == "int8" else 1
    in_head = min(tokens, 4096) * columns * 2 + copies * columns * shape.hidden * 2 + tokens * shape.hidden * 4
    casts = 0 if recipe.use_peft else 2 * shape.weights  # mixed precision casts float32 weights once a step
    return kept + max(in_layer, in_head) + casts


def _is_lean(recipe: Recipe, shape: Geometry) -> bool:
    """Whether log-probabilities are computed by the lean forward, from prompts that are computed once."""
    is_plain = recipe.use_peft and not recipe.lora_dropout and not recipe.load_in_4bit
    return recipe.method in ("grpo", "rloo") and is_plain and not shape.experts


def _lean_bytes(recipe: Recipe, shape: Geometry) -> float:
    """Activations of a micro-batch's distinct prompts and of its completions, and the keys that these share."""
    rows, prompt = recipe.per_device_train_batch_size, recipe.max_prompt_length or 256
    completion = 1 + recipe.max_completion_length
    prompts = min(
        rows, -(-rows_of_an_update(recipe) // recipe.num_generations)
    )  # rows are shuffled among micro-batches
    kept = (rows * completion + prompts * prompt) * shape.lean_bytes(recipe.lora_r)
    joined = rows * prompt * 4 * shape.kv_heads * shape.head_size
    mask = 2 * rows * (shape.heads // shape.kv_heads) * completion * (prompt + completion)
    return shape.layers * (kept + joined) + mask
