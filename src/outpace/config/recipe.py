"""The keys of a recipe: TRL's names where TRL has one, a few of ours besides.

Every field states its unit and its default; a key that is not here is an error. What a key is worth is decided in
`training`: this module only refuses values that cannot mean anything.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]

ONLINE_METHODS = ("grpo", "rloo")
"""Methods that sample from the policy while they train it."""


class Recipe(BaseModel):
    """Everything a run is told; frozen, and complete once built: defaults are filled in."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=())

    # where the run lives, and how it is repeated
    name: str = Field("", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^$")
    """Folder under `output_dir`; empty: the recipe file's name."""
    output_dir: str = "runs"
    seed: Count = 3407
    report_to: list[Literal["tensorboard", "wandb", "mlflow", "trackio"]] = []
    """Trackers besides the run folder, which always has everything."""

    # the policy, and what of it is trained
    model: str = Field(min_length=1)
    """`starter`, `smollm2`, a hub id, a local folder or a GGUF file."""
    model_revision: str | None = None
    trust_remote_code: bool = False
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto`: bfloat16 where the device computes in it, float32 on a CPU."""
    attn_implementation: str | None = None
    load_in_4bit: bool = False
    card_GB: Annotated[float, Field(gt=0.0)] | None = None
    """GPU memory to stay within, in 10^9 bytes; None: what the card has. Decides how gpt-oss is kept."""
    chat_template_kwargs: dict[str, Any] = {}

    use_peft: bool = False
    """False trains every weight."""
    lora_r: Positive = 16
    lora_alpha: Positive = 32
    lora_dropout: Share = 0.0
    lora_target_modules: str | list[str] = "all-linear"
    lora_target_parameters: list[str] | None = None
    """Fused parameters, such as `mlp.experts.gate_up_proj` of a mixture of experts."""
    lora_modules_to_save: list[str] | None = None
    use_rslora: bool = False

    reasoning: Literal["auto", "none"] = "auto"
    """`auto`: reasoning is split off by the tokenizer's own markers before the answer is judged."""
    reasoning_end_token: str | None = None
    """End-of-thinking token, when the tokenizer has one that is not known by name."""

    # what is asked, what is rewarded, how answers are run
    tasks: str | list[str]
    eval_tasks: str | list[str] | None = None
    """Tasks evaluated beside `tasks` and never trained on; None: the held-out set when `tasks` are built-in ones."""
    max_prompt_length: Positive | None = None
    """Tasks whose prompt has more tokens are left out, and counted; nothing is truncated."""
    rewards: str | dict[str, float | dict[str, Any]] = {"syntax": 1.0, "security": 1.0, "accuracy": 1.0, "speed": 1.0}
    """A preset's name, or reward name (or dotted path) to weight, or to `{weight: ..., option: ...}`."""
    static_check: Literal["default", "article"] = "default"
    """Rules about what source may use; `article` is the plain "standard library only" of the article."""
    workers: Positive | None = None
    """Scoring processes; None: one per core that is free for it."""
    allow_weak_isolation: bool = False

    # how completions are drawn
    sampler: Literal["auto", "group", "vllm", "transformers"] = "auto"
    num_generations: int = 8
    """G, the completions of one group (one prompt)."""
    max_completion_length: Positive = 512
    temperature: Annotated[float, Field(gt=0.0)] = 1.0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    top_k: Count = 0
    """0 keeps every token."""
    min_p: Share | None = None
    vllm_mode: Literal["colocate", "server"] = "colocate"
    vllm_gpu_memory_utilization: Share = 0.3
    vllm_server_base_url: str | None = None

    # the objective and the optimiser
    method: Literal["grpo", "rloo", "sft", "dpo"] = "grpo"
    objective: Literal["grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"] = "grpo"
    """`grpo` is the textbook objective exactly; the others are TRL's loss types with TRL's own settings."""
    beta: NonNegative = 0.0
    """Weight of the KL term (GRPO, RLOO) or DPO's beta; 0 keeps no reference model."""
    epsilon: Annotated[float, Field(gt=0.0)] = 0.2
    epsilon_high: Annotated[float, Field(gt=0.0)] | None = None
    scale_rewards: Literal["group", "batch", "none"] = "group"
    multi_objective_aggregation: Literal["sum_then_normalize", "normalize_then_sum"] = "sum_then_normalize"
    importance_sampling_level: Literal["token", "sequence"] = "token"
    mask_truncated_completions: bool = False
    num_iterations: Positive = 1

    max_steps: Positive = 100
    learning_rate: Annotated[float, Field(gt=0.0, lt=1.0)] = 1e-5
    lr_scheduler_type: Literal["constant", "constant_with_warmup", "linear", "cosine"] = "constant_with_warmup"
    warmup_ratio: Share = 0.0
    """Share of `max_steps` over which the learning rate rises."""
    weight_decay: NonNegative = 0.0
    adam_beta1: Share = 0.9
    adam_beta2: Share = 0.99
    max_grad_norm: NonNegative = 1.0
    optim: str = "adamw_torch"
    per_device_train_batch_size: Positive = 8
    gradient_accumulation_steps: Positive = 1
    steps_per_generation: Positive | None = None
    """Micro-batches that one round of sampling feeds; None: `gradient_accumulation_steps`."""
    gradient_checkpointing: bool | None = None
    """None: on for models above 2 billion parameters, off below."""
    bf16: bool | None = None
    """None: mixed precision in bfloat16 where the device supports it."""
    fp16: bool = False

    samples_per_task: Positive = 16
    """SFT and DPO: completions drawn per task before training."""
    sft_source: Literal["own_correct", "reference"] = "own_correct"
    """SFT learns from the policy's own correct answers, or from each task's reference."""

    # checkpoints, evaluation, early warnings
    save_steps: Positive = 20
    save_total_limit: Annotated[int, Field(ge=2)] = 2
    """Checkpoints kept; at least two, so that a damaged newest one leaves one to resume from."""
    logging_steps: Positive = 1

    eval_samples: Count = 8
    """Completions per task in the evaluations before and after; 0 leaves them out."""
    eval_temperature: Annotated[float, Field(gt=0.0)] | None = None
    """None: `temperature`."""
    eval_max_completion_length: Positive | None = None
    """None: `max_completion_length`."""

    warn_truncated_share: Share = 0.9
    warn_equal_groups_share: Share = 0.9
    warn_kl: Annotated[float, Field(gt=0.0)] = 10.0
    """Nats per token."""
    warn_entropy_low: NonNegative = 0.01
    """Nats per token."""
    warn_entropy_factor: Annotated[float, Field(gt=1.0)] = 3.0
    """Times the entropy of the first steps."""
    warn_length_factor: Annotated[float, Field(gt=1.0)] = 3.0
    """Times, or one part in, the mean length of the first steps."""
    stop_infrastructure_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    """Training stops when our own failures void at least this share of a batch."""

    @model_validator(mode="after")
    def _check_each_pair(self) -> "Recipe":
        """Refuse values that contradict each other; messages are shown to the user as they are."""
        if self.method in ONLINE_METHODS and self.num_generations < 2:
            raise ValueError(
                f"num_generations={self.num_generations} leaves no group to compare with, so every advantage is 0: "
                "use at least 2"
            )
        if self.bf16 and self.fp16:
            raise ValueError("bf16 and fp16 are both true: choose one")
        if self.load_in_4bit and not self.use_peft:
            raise ValueError("load_in_4bit=true freezes the weights, so nothing would be trained: set use_peft=true")
        if self.use_peft and not self.lora_target_modules and not self.lora_target_parameters:
            raise ValueError("use_peft=true with empty lora_target_modules trains nothing: name some, or all-linear")
        if not self.rewards and self.method in ONLINE_METHODS:
            raise ValueError("rewards is empty, so there is nothing to learn: name at least one, such as accuracy: 1.0")
        if isinstance(self.rewards, dict):
            for name, value in self.rewards.items():
                _check_weight(name, value)
        if self.method == "dpo" and self.beta == 0.0:
            raise ValueError("method=dpo needs beta above 0, such as beta=0.1")
        return self

    def departures(self) -> list[str]:
        """Settings by which `objective: grpo` differs from the textbook objective; empty: it is exact."""
        if self.method != "grpo" or self.objective != "grpo":
            return []
        textbook: dict[str, Any] = {
            "scale_rewards": "group",
            "importance_sampling_level": "token",
            "mask_truncated_completions": False,
            "multi_objective_aggregation": "sum_then_normalize",
            "top_p": 1.0,
            "top_k": 0,
            "min_p": None,
            "epsilon_high": None,
        }
        return [f"{key}={getattr(self, key)}" for key, value in textbook.items() if getattr(self, key) != value]


def _check_weight(name: str, value: float | dict[str, Any]) -> None:
    weight = value.get("weight", 1.0) if isinstance(value, dict) else value
    if isinstance(weight, dict):
        return  # a weight that changes over the steps; `reward` reads it
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise ValueError(f"rewards.{name}: the weight must be a finite number, got {weight!r}")
