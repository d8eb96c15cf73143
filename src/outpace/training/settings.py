"""A recipe's keys as arguments of TRL's configuration classes; nothing here imports TRL."""

import math
from pathlib import Path
from typing import Any

from outpace.config import Recipe
from outpace.training.adapters import HOST_ADAMW
from outpace.training.precision import Precision

TEXTBOOK = {
    "loss_type": "grpo",
    "use_bias_correction_kl": False,
    "vllm_importance_sampling_correction": False,
    "router_aux_loss_coef": 0.0,
    "entropy_coef": 0.0,
}
"""With token-level ratios, rewards scaled by group and no sampling filters: the textbook GRPO objective."""


def config_arguments(
    recipe: Recipe, output_dir: Path, precision: Precision, *, checkpointing: bool, sampler: str, weights: list[float]
) -> dict[str, Any]:
    """Arguments for the configuration class of `recipe.method`."""
    shared = _shared(recipe, output_dir, precision, checkpointing)
    match recipe.method:
        case "grpo":
            return shared | _sampling(recipe, sampler, weights) | _grpo(recipe)
        case "rloo":
            return shared | _sampling(recipe, sampler, weights) | {"num_iterations": recipe.num_iterations}
        case "sft":
            return shared | {"max_length": None, "loss_type": "nll", "packing": False}
        case "dpo":
            return shared | {"max_length": None, "beta": recipe.beta}


def _shared(recipe: Recipe, output_dir: Path, precision: Precision, checkpointing: bool) -> dict[str, Any]:
    return {
        "output_dir": str(output_dir),
        "seed": recipe.seed,
        "max_steps": recipe.max_steps,
        "learning_rate": recipe.learning_rate,
        "lr_scheduler_type": recipe.lr_scheduler_type,
        "warmup_steps": math.ceil(recipe.warmup_ratio * recipe.max_steps),
        "weight_decay": recipe.weight_decay,
        "adam_beta1": recipe.adam_beta1,
        "adam_beta2": recipe.adam_beta2,
        "max_grad_norm": recipe.max_grad_norm,
        "optim": "adamw_torch" if recipe.optim == HOST_ADAMW else recipe.optim,  # ours is handed over, not named
        "per_device_train_batch_size": recipe.per_device_train_batch_size,
        "gradient_accumulation_steps": recipe.gradient_accumulation_steps,
        "gradient_checkpointing": checkpointing,
        "gradient_checkpointing_kwargs": {"use_reentrant": False} if checkpointing else None,
        "bf16": precision.bf16,
        "fp16": precision.fp16,
        "save_strategy": "steps",
        "save_steps": recipe.save_steps,
        "save_total_limit": recipe.save_total_limit,
        "logging_steps": recipe.logging_steps,
        "logging_nan_inf_filter": False,  # the filter writes an average where the loss was NaN
        "report_to": recipe.report_to or "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": precision.device != "cpu",
        "ddp_find_unused_parameters": False,
        "use_cpu": precision.device == "cpu",
    }


def _sampling(recipe: Recipe, sampler: str, weights: list[float]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "num_generations": recipe.num_generations,
        "max_completion_length": recipe.max_completion_length,
        "steps_per_generation": recipe.steps_per_generation,
        "temperature": recipe.temperature,
        "top_p": recipe.top_p,
        "top_k": recipe.top_k,
        "min_p": recipe.min_p,
        "chat_template_kwargs": recipe.chat_template_kwargs or None,
        "beta": recipe.beta,
        "epsilon": recipe.epsilon,
        "epsilon_high": recipe.epsilon_high,
        "mask_truncated_completions": recipe.mask_truncated_completions,
        "reward_weights": weights,
        "shuffle_dataset": False,  # the order of prompts is ours: schedule.py
        "remove_unused_columns": False,
        "disable_dropout": True,
    }
    if sampler == "vllm":
        arguments |= {
            "use_vllm": True,
            "vllm_mode": recipe.vllm_mode,
            "vllm_gpu_memory_utilization": recipe.vllm_gpu_memory_utilization,
            "vllm_server_base_url": recipe.vllm_server_base_url,
        }
    return arguments


def _grpo(recipe: Recipe) -> dict[str, Any]:
    shape = {
        "scale_rewards": recipe.scale_rewards,
        "multi_objective_aggregation": recipe.multi_objective_aggregation,
        "importance_sampling_level": recipe.importance_sampling_level,
        "num_iterations": recipe.num_iterations,
    }
    return shape | (TEXTBOOK if recipe.objective == "grpo" else {"loss_type": recipe.objective})
