"""What we rely on in TRL and transformers without their promise; a failure here says that they have moved."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import trl
from runs import TinyRun
from tiny import recipe, save_model
from transformers import LlamaConfig, LlamaForCausalLM, TrainerCallback
from trl.trainer import utils

from outpace.config import Recipe
from outpace.errors import ConfigError, TrainingDiverged
from outpace.policy import load
from outpace.policy.mxfp4.compact import Int8Linear
from outpace.training.adapters import GradientReach, check_targets, lora_config
from outpace.training.precision import Precision, sound_attention
from outpace.training.settings import TEXTBOOK, config_arguments
from outpace.training.trl_seam import (
    LOGPS,
    _tiles_that_fit,
    config_class,
    loadable_again,
    quiet_libraries,
    trainer_class,
)


@pytest.fixture(autouse=True)
def _without_notices_of_renamed_settings() -> Iterator[None]:
    with quiet_libraries():
        yield


CPU = Precision(device="cpu", dtype="float32", bf16=False, fp16=False)


def test_grpo_still_takes_a_rollout_function() -> None:
    assert "rollout_func" in inspect.signature(trl.GRPOTrainer.__init__).parameters
    assert inspect.isfunction(trl.GRPOTrainer.create_model_card)


@pytest.mark.parametrize("trainer", [trl.GRPOTrainer, trl.RLOOTrainer])
def test_log_probabilities_are_still_computed_where_we_cut_the_padding_off(trainer: type) -> None:
    names = list(inspect.signature(getattr(trainer, LOGPS)).parameters)[:8]
    assert names == [
        "self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy",
        "compute_aux_loss",
    ]  # fmt: skip
    assert LOGPS in inspect.getsource(trainer._compute_loss)


def test_an_8_bit_head_is_read_in_small_tiles_and_others_in_the_usual_ones() -> None:
    usual = utils._CHUNKED_LOGPROB_CHUNK_SIZE
    assert "_CHUNKED_LOGPROB_CHUNK_SIZE" in inspect.getsource(utils.add_fused_lm_head)
    network = LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )
    with _tiles_that_fit(network):
        assert usual == utils._CHUNKED_LOGPROB_CHUNK_SIZE
    network.lm_head = Int8Linear(32, 64, bias=False)
    with _tiles_that_fit(network):
        assert usual > utils._CHUNKED_LOGPROB_CHUNK_SIZE
    assert usual == utils._CHUNKED_LOGPROB_CHUNK_SIZE


def test_cudnn_attention_is_off_inside_and_as_it_was_outside() -> None:
    was = torch.backends.cuda.cudnn_sdp_enabled()
    with sound_attention():
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() == was


@pytest.mark.parametrize("name", ["on_step_begin", "on_pre_optimizer_step", "on_step_end", "on_log", "on_save"])
def test_the_callback_events_that_we_use_exist(name: str) -> None:
    assert callable(getattr(TrainerCallback, name))


@pytest.mark.parametrize("method", ["grpo", "rloo", "sft", "dpo"])
def test_every_argument_that_a_recipe_sets_is_known_to_its_configuration_class(method: str, tmp_path: Path) -> None:
    keys = {"beta": 0.1} if method == "dpo" else {}
    given = recipe(tmp_path, tmp_path, method=method, warmup_ratio=0.1, **keys)
    arguments = config_arguments(given, tmp_path, CPU, checkpointing=False, sampler="group", weights=[1.0])
    built = config_class(method)(**arguments)
    for name, value in arguments.items():
        if value is not None and name not in ("report_to", "optim", "lr_scheduler_type", "save_strategy"):
            assert getattr(built, name) == value, name
    assert built.warmup_steps == 1


def test_the_textbook_objective_is_configured_exactly(tmp_path: Path) -> None:
    arguments = config_arguments(
        recipe(tmp_path, tmp_path, beta=0.05), tmp_path, CPU, checkpointing=False, sampler="group", weights=[1.0]
    )
    wanted = {
        "loss_type": "grpo", "scale_rewards": "group", "beta": 0.05, "epsilon": 0.2, "num_iterations": 1,
        "importance_sampling_level": "token", "use_bias_correction_kl": False, "temperature": 1.0, "top_p": 1.0,
        "vllm_importance_sampling_correction": False, "mask_truncated_completions": False, "top_k": 0,
        "router_aux_loss_coef": 0.0, "entropy_coef": 0.0, "multi_objective_aggregation": "sum_then_normalize",
    }  # fmt: skip
    built = trl.GRPOConfig(**arguments)
    assert {name: getattr(built, name) for name in wanted} == wanted
    assert (built.epsilon_high, built.delta, built.off_policy_mask_threshold) == (None, None, None)
    assert built.top_entropy_quantile == 1.0
    assert TEXTBOOK.items() <= arguments.items()


def test_other_objectives_keep_trls_own_settings(tmp_path: Path) -> None:
    arguments = config_arguments(
        recipe(tmp_path, tmp_path, objective="dapo"), tmp_path, CPU, checkpointing=False, sampler="group", weights=[1.0]
    )
    assert arguments["loss_type"] == "dapo"
    assert "use_bias_correction_kl" not in arguments


def test_the_reference_model_can_be_loaded_again(tmp_path: Path) -> None:
    policy = load(str(save_model(tmp_path / "model")), dtype="float32")
    policy.model.config.name_or_path = "starter"
    with loadable_again(policy):
        assert policy.model.config._name_or_path == str(tmp_path / "model")
    assert policy.model.config.name_or_path == "starter"


def test_trainers_write_no_model_card(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=1)
    run.train()
    assert not list(run.folder.path.rglob("README.md"))
    assert trainer_class("grpo") is trainer_class("grpo")
    assert issubclass(trainer_class("grpo"), trl.GRPOTrainer)


def lora(model: Path, **keys: Any) -> tuple[Recipe, Any]:
    from peft import get_peft_model

    given = recipe(model, model.parent, use_peft=True, **keys)
    return given, get_peft_model(load(str(model), dtype="float32").model, lora_config(given))


def test_lora_on_a_name_that_matches_nothing_is_refused(model_folder: Path) -> None:
    given, model = lora(model_folder, lora_target_modules=["q_proj", "gate_up_proj"])
    with pytest.raises(ConfigError, match=r"asked for on gate_up_proj, .* called down_proj, gate_proj, k_proj"):
        check_targets(given, model)


def test_adapted_places_are_counted_by_name(model_folder: Path) -> None:
    given, model = lora(model_folder, lora_target_modules=["q_proj", "up_proj"])
    assert check_targets(given, model) == {"q_proj": 2, "up_proj": 2}


def gradients(**values: float) -> list[tuple[str, torch.Tensor]]:
    names = {"attention": "layers.0.self_attn.q_proj.lora_B", "experts": "layers.0.mlp.experts.lora_B"}
    return [(names[key], torch.full((2, 2), value)) for key, value in values.items()]


def test_a_family_that_no_gradient_reaches_is_told_after_a_few_updates() -> None:
    reach = GradientReach(name for name, _ in gradients(attention=0, experts=0))
    reach.observe(gradients(attention=0.0, experts=0.0))
    for _ in range(4):
        reach.observe(gradients(attention=1.0, experts=0.0))
    with pytest.raises(TrainingDiverged, match="no gradient has reached experts"):
        reach.observe(gradients(attention=1.0, experts=0.0))


def test_families_that_were_reached_are_not_asked_again() -> None:
    reach = GradientReach(name for name, _ in gradients(attention=0, experts=0))
    reach.observe(gradients(attention=1.0, experts=1.0))
    for _ in range(9):
        reach.observe(gradients(attention=1.0, experts=0.0))
    assert reach.reached == {"attention", "experts"}


@pytest.mark.parametrize("keys", [
    {"method": "sft", "samples_per_task": 40},
    {"method": "sft", "sft_source": "reference"},
    {"method": "dpo", "beta": 0.1, "samples_per_task": 40, "use_peft": True},
    {"objective": "dapo", "scale_rewards": "none"},
    {"multi_objective_aggregation": "normalize_then_sum", "rewards": {"accuracy": 1.0, "syntax": 0.5}},
    {"sampler": "transformers"},
], ids=lambda keys: " ".join(map(str, keys.values())))  # fmt: skip
def test_every_method_trains_to_its_last_step(model_folder: Path, tmp_path: Path, keys: dict[str, Any]) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=2, **keys)
    assert run.train().status == "finished"
    assert [record["step"] for record in run.folder.metrics()] == [1, 2]


def test_sft_without_a_single_right_answer_says_what_to_do(model_folder: Path, tmp_path: Path) -> None:
    from outpace.schema import Outcome
    from outpace.testing import verdict

    run = TinyRun(model_folder, tmp_path, max_steps=1, method="sft", samples_per_task=2)
    with pytest.raises(ConfigError, match="6 samples held not once a right answer"):
        run.train(lambda text: verdict(Outcome.WRONG))
