"""A model's sizes from its config.json, without its weights: what memory and time are forecast from.

Covered: Llama-shaped models (Llama, Qwen, Mistral, SmolLM) and gpt-oss. Not covered: other mixtures of experts, and
models with state other than keys and values.
"""

import json
from dataclasses import dataclass
from typing import Any

from outpace.config import Recipe
from outpace.errors import ModelError
from outpace.policy.locate import locate
from outpace.policy.storage import SCORES_AT_ONCE

_KNOWN: dict[str, dict[str, Any]] = {
    "openai/gpt-oss-20b": {
        "model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880, "intermediate_size": 2880,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
        "num_local_experts": 32, "num_experts_per_tok": 4, "quantization_config": {"quant_method": "mxfp4"},
    },
    "smollm2": {
        "num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
        "num_key_value_heads": 3, "vocab_size": 49152, "tie_word_embeddings": True,
    },
    "Qwen/Qwen2.5-Coder-0.5B-Instruct": {
        "num_hidden_layers": 24, "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
    },
    "Qwen/Qwen3-4B": {
        "num_hidden_layers": 36, "hidden_size": 2560, "intermediate_size": 9728, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True,
    },
}  # fmt: skip
"""Models of the shipped recipes, so that they can be planned before anything is downloaded."""
_SAME = {"Qwen/Qwen3-4B-Thinking-2507": "Qwen/Qwen3-4B", "Qwen/Qwen3-4B-Instruct-2507": "Qwen/Qwen3-4B"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Sizes of one model."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocab: int
    is_tied: bool = False
    experts: int = 0
    """0: no mixture of experts."""
    top_k: int = 0
    is_packed: bool = False
    """Experts are in MXFP4."""

    @property
    def attention_shapes(self) -> dict[str, tuple[int, int]]:
        """(in, out) of the attention's linear layers."""
        q, kv = self.heads * self.head_size, self.kv_heads * self.head_size
        return {
            "q_proj": (self.hidden, q),
            "k_proj": (self.hidden, kv),
            "v_proj": (self.hidden, kv),
            "o_proj": (q, self.hidden),
        }

    @property
    def mlp_shapes(self) -> dict[str, tuple[int, int]]:
        """(in, out) of the linear layers of a dense model's MLP, or of one expert's fused ones."""
        if self.experts:
            return {"gate_up_proj": (self.hidden, 2 * self.intermediate), "down_proj": (self.intermediate, self.hidden)}
        inner = self.intermediate
        return {"gate_proj": (self.hidden, inner), "up_proj": (self.hidden, inner), "down_proj": (inner, self.hidden)}

    @property
    def attention_weights(self) -> int:
        """Weights of all attention layers."""
        return self.layers * sum(a * b for a, b in self.attention_shapes.values())

    @property
    def expert_weights(self) -> int:
        """Weights of all experts; 0 in a dense model."""
        return self.layers * self.experts * sum(a * b for a, b in self.mlp_shapes.values()) if self.experts else 0

    @property
    def embedding_weights(self) -> int:
        """Weights of the embedding."""
        return self.vocab * self.hidden

    @property
    def head_weights(self) -> int:
        """Weights of the head, where it is not the embedding."""
        return 0 if self.is_tied else self.vocab * self.hidden

    @property
    def small_weights(self) -> int:
        """Norms, routers and the experts' biases."""
        per_layer = 2 * self.hidden + self.experts * (self.hidden + 1 + 2 * self.intermediate + self.hidden)
        return self.layers * per_layer + self.hidden

    @property
    def mlp_weights(self) -> int:
        """Weights of a dense model's MLPs."""
        return 0 if self.experts else self.layers * sum(a * b for a, b in self.mlp_shapes.values())

    @property
    def weights(self) -> int:
        """All weights."""
        inner = self.attention_weights + self.expert_weights + self.mlp_weights + self.small_weights
        return inner + self.embedding_weights + self.head_weights

    @property
    def active_weights(self) -> int:
        """Weights that one token meets."""
        experts = self.expert_weights * self.top_k // self.experts if self.experts else 0
        return self.attention_weights + experts + self.mlp_weights + self.embedding_weights

    @property
    def cache_bytes_per_token(self) -> int:
        """Keys and values of one token in 16 bits."""
        return self.layers * 2 * self.kv_heads * self.head_size * 2

    def adapter_weights(self, recipe: Recipe) -> int:
        """Weights of the recipe's LoRA adapters."""
        shapes = dict(self.attention_shapes) | ({} if self.experts else self.mlp_shapes)
        asked = recipe.lora_target_modules
        names = list(shapes) if isinstance(asked, str) else [name for name in shapes if name in asked]
        per_layer = sum(sum(shapes[name]) for name in names)
        for parameter in recipe.lora_target_parameters or ():
            per_layer += self.experts * sum(self.mlp_shapes.get(parameter.rpartition(".")[2], (0, 0)))
        return self.layers * recipe.lora_r * per_layer

    def activation_bytes(self, rank: int | None) -> float:
        """Bytes per token that one layer keeps for its backward under mixed precision; `rank` None: no adapters.

        Counted term by term from what autograd saves; `tests/plan` counts it again.
        """
        q, kv = self.heads * self.head_size, self.kv_heads * self.head_size
        norms = (
            8 * self.hidden if rank else 20 * self.hidden
        )  # inputs in float32; without adapters the residual stream too
        low = 14 * (rank or 0) + 8 * self.heads
        if self.experts:
            pairs = 2 * self.top_k * (3 * self.intermediate + self.hidden) + 24 * self.top_k
            return (
                2 * (4 * self.hidden + 5 * q + 2 * kv)
                + pairs
                + norms
                + low
                + 2 * self.top_k * (rank or 0) * self.experts * 2
            )
        return 2 * (5 * self.hidden + 3 * q + 2 * kv + 4 * self.intermediate) + norms + low

    def lean_bytes(self, rank: int) -> float:
        """Bytes per token that a layer keeps for its backward in the lean forward, all linear layers adapted."""
        q, kv = self.heads * self.head_size, self.kv_heads * self.head_size
        return 2 * (4 * self.hidden + 3 * q + 2 * kv + 2 * self.intermediate) + 14 * rank + 4 * self.heads

    def attention_work(self, tokens: int, rows: int = 1) -> float:
        """Bytes of one attention layer's passing tensors: scores of some query heads, where sinks need them.

        Args:
            tokens: of a row.
            rows: of a micro-batch.
        """
        if not self.experts:
            return 0
        group = self.heads // self.kv_heads
        at_once = max(1, SCORES_AT_ONCE // (rows * tokens**2))
        return min(at_once if at_once < group else at_once // group * group, self.heads) * rows * tokens**2 * 10

    def recomputed_bytes(self, tokens: int, rows: int, rank: int, tokens_at_once: int | None) -> float:
        """Most bytes there at a time in the backward of a layer of packed experts that is computed twice, in two parts.

        Counted from what is allocated, in the larger of the parts, with its input and the gradients on their way.

        Args:
            tokens: of a row.
            rows: of a micro-batch.
            rank: of the adapters; 0: none.
            tokens_at_once: see `Storage`.
        """
        q, kv, total = self.heads * self.head_size, self.kv_heads * self.head_size, rows * tokens
        attention = total * (10 * self.hidden + 10 * q + 8 * kv + 14 * rank + 8 * self.heads)
        # in the backward of the second product, or of the gate
        widest = max(4 * self.intermediate + self.hidden, 5 * self.intermediate)
        per_pair = 2 * widest + 4 * rank * self.experts + 24
        together = total if tokens_at_once is None else -(-total // -(-total // tokens_at_once))
        to_adapters = 2 * self.experts * rank * 3 * (self.hidden + self.intermediate)
        experts = together * (self.top_k * per_pair + 10 * self.hidden) + to_adapters
        return total * 4 * self.hidden + max(attention + self.attention_work(tokens, rows), experts)


def geometry_of(model: str) -> Geometry:
    """Read a model's sizes from its folder, from the table of shipped models or from the hub's cache.

    Raises:
        ModelError: its configuration cannot be had, or is of a kind that is not covered.
    """
    facts = _KNOWN.get(_SAME.get(model, model)) or _read(model)
    try:
        return Geometry(
            layers=facts["num_hidden_layers"],
            hidden=facts["hidden_size"],
            intermediate=facts["intermediate_size"],
            heads=facts["num_attention_heads"],
            kv_heads=facts.get("num_key_value_heads") or facts["num_attention_heads"],
            head_size=facts.get("head_dim") or facts["hidden_size"] // facts["num_attention_heads"],
            vocab=facts["vocab_size"],
            is_tied=bool(facts.get("tie_word_embeddings", False)),
            experts=facts.get("num_local_experts") or 0,
            top_k=facts.get("num_experts_per_tok") or 0,
            is_packed=(facts.get("quantization_config") or {}).get("quant_method") == "mxfp4",
        )
    except KeyError as error:
        raise ModelError(f"{model} has no {error.args[0]} in its config, so its memory cannot be forecast.") from error


def _read(model: str) -> dict[str, Any]:
    source = locate(model)
    if source.folder is not None:
        file = source.folder / "config.json"
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return facts
    if source.hub_id is not None:
        from huggingface_hub import hf_hub_download

        try:
            with open(hf_hub_download(source.hub_id, "config.json"), encoding="utf-8") as stream:  # noqa: PTH123
                return dict(json.load(stream))
        except Exception as error:
            raise ModelError(
                f"The config of {model} could not be had from the hub: download it and give its folder."
            ) from error
    raise ModelError(f"{model} is a GGUF file, whose sizes are known only once it is converted: load it once.")
