"""Forecasts agree with what was measured on a GPU and with what autograd is seen to keep; fitting is honest."""

import pytest

from outpace.config import Recipe, load_recipe
from outpace.errors import ConfigError, ModelError
from outpace.policy.geometry import Geometry, geometry_of
from outpace.policy.plan import plan

GPT_OSS = {
    "model": "openai/gpt-oss-20b",
    "tasks": "builtin:train",
    "use_peft": True,
    "lora_r": 8,
    "lora_alpha": 16,
    "lora_target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "lora_target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
    "gradient_checkpointing": True,
    "optim": "adamw_host",
    "num_generations": 4,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 4,
    "max_prompt_length": 128,
    "max_completion_length": 1024,
}


def recipe(**changes) -> Recipe:
    return Recipe.model_validate(GPT_OSS | changes)


MEASURED_GB = {
    # completion tokens, rows drawn together -> peak reserved on an H200, LoRA r=8, in docs/log.md
    (256, 4): 12.33,
    (1024, 4): 12.62,
    (1024, 16): 13.03,
}
THROUGH_TRAIN_GB = 11.70
"""The same for `outpace train`, 1,024 tokens and 4 rows."""


@pytest.mark.parametrize(("tokens", "rows"), MEASURED_GB)
def test_the_forecast_is_within_ten_percent_of_measured_peaks(tokens, rows):
    # a card of 12.9 GB or more keeps attention in 4 bits only when asked to; the measured runs did
    planned = recipe(max_completion_length=tokens, gradient_accumulation_steps=rows)
    four_bit = plan(planned, memory_GB=12.87 if rows == 4 else 13.2)
    assert four_bit.peak_GB == pytest.approx(MEASURED_GB[tokens, rows], rel=0.1)


def test_the_forecast_is_within_ten_percent_of_what_training_took():
    assert plan(recipe(), memory_GB=12.4).peak_GB == pytest.approx(THROUGH_TRAIN_GB, rel=0.1)


def test_on_a_small_card_a_part_of_the_experts_work_is_there_at_a_time():
    shape = geometry_of("openai/gpt-oss-20b")
    small, large = (shape.recomputed_bytes(1152, 4, 8, size) for size in (1280, None))
    assert small < 0.8 * large
    assert shape.recomputed_bytes(1152, 1, 8, 1280) == shape.recomputed_bytes(1152, 1, 8, None), "one part is all"


def test_the_number_of_trained_weights_is_the_articles_for_attention_alone():
    attention_only = recipe(lora_r=4, lora_target_parameters=None)
    assert plan(attention_only).trained == 1_990_656


def test_the_number_of_packed_weights_is_that_of_the_checkpoint():
    shape = geometry_of("openai/gpt-oss-20b")
    assert shape.expert_weights == 24 * 32 * (5760 + 2880) * 2880
    assert 20.8e9 < shape.weights < 21.0e9


def test_without_a_card_nothing_is_changed():
    found = plan(recipe())
    assert (found.changes, found.fits, found.recipe) == ((), None, recipe())


def test_a_large_card_changes_nothing_either():
    assert plan(recipe(), memory_GB=80).changes == ()


def test_remedies_that_keep_the_update_come_before_those_that_change_it():
    planned = recipe(per_device_train_batch_size=4, gradient_accumulation_steps=1, optim="adamw_torch")
    found = plan(planned, memory_GB=12.6)
    assert found.fits
    assert found.recipe.per_device_train_batch_size * found.recipe.gradient_accumulation_steps == 4
    sentences = " ".join(found.changes)
    assert sentences.index("per_device_train_batch_size") < sentences.index("adamw_host")


@pytest.mark.parametrize("memory_GB", [11.8, 12.2, 12.6, 13, 14, 16, 24])
def test_a_fitted_recipe_fits_and_is_still_a_recipe(memory_GB):
    try:
        found = plan(recipe(num_generations=4), memory_GB=memory_GB)
    except ConfigError as error:
        assert "does not fit" in str(error)  # noqa: PT017  # either outcome is right, and each has its check
        return
    assert found.peak_GB <= memory_GB
    Recipe.model_validate(found.recipe.model_dump())
    assert found.recipe.num_generations >= 2


def test_a_larger_card_never_needs_more_remedies():
    changes = [len(plan(recipe(), memory_GB=size).changes) for size in (12.6, 13, 14, 16, 24)]
    assert changes == sorted(changes, reverse=True)


def test_more_work_never_takes_less_memory_or_time():
    small, long, wide = (plan(recipe(**c)) for c in ({}, {"max_completion_length": 2048}, {"lora_r": 32}))
    assert small.peak_GB < long.peak_GB
    assert small.peak_GB < wide.peak_GB
    assert small.step_s < long.step_s


def test_a_card_that_is_too_small_is_refused_with_a_remedy():
    with pytest.raises(ConfigError, match="larger card"):
        plan(recipe(), memory_GB=8)


def test_an_unknown_gpu_is_refused_with_the_names_of_known_ones():
    with pytest.raises(ConfigError, match="rtx3060"):
        plan(recipe(), gpu="abacus")


def test_a_config_without_sizes_is_refused(tmp_path):
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelError, match="num_hidden_layers"):
        geometry_of(str(tmp_path))


def test_a_plan_is_plain_data_and_a_table():
    import json

    from rich.console import Console

    found = plan(recipe(), memory_GB=16)
    assert json.loads(json.dumps(found.to_json()))["fits"] is True
    console = Console(record=True, width=120)
    console.print(found)
    assert "peak, as PyTorch reserves it" in console.export_text()


def saved_bytes(model, tokens: int) -> int:
    """Bytes that autograd keeps between forward and backward, weights aside."""
    import torch

    seen = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def keep(tensor):
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes(), tensor
        return tensor

    ids = torch.randint(0, 100, (1, tokens))
    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16),
    ):
        model(input_ids=ids, logits_to_keep=1)
    return sum(size for pointer, (size, _) in seen.items() if pointer not in own)


@pytest.mark.parametrize("rank", [8, None])
@pytest.mark.parametrize("hidden", [128, 256])
def test_activations_are_what_autograd_keeps_in_a_dense_model(hidden, rank):
    torch = pytest.importorskip("torch")
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from outpace.policy.quiet import quiet_transformers

    shape = Geometry(
        layers=3, hidden=hidden, intermediate=4 * hidden, heads=4, kv_heads=2, head_size=hidden // 4, vocab=128
    )
    config = Qwen2Config(
        num_hidden_layers=3,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=128,
    )
    model = Qwen2ForCausalLM(config).train()
    if rank:
        with quiet_transformers():
            model = get_peft_model(model.to(torch.bfloat16), LoraConfig(r=rank, target_modules="all-linear"))
    forecast = 256 * 3 * shape.activation_bytes(rank) + (0 if rank else 2 * shape.weights)
    assert forecast == pytest.approx(saved_bytes(model, 256), rel=0.1)


@pytest.mark.parametrize(("hidden", "inner"), [(64, 96), (128, 128)])
def test_activations_are_what_autograd_keeps_with_packed_experts(hidden, inner):
    torch = pytest.importorskip("torch")
    from peft import LoraConfig
    from transformers import GptOssConfig

    from outpace.policy.mxfp4 import Storage, attach, random_network

    config = GptOssConfig(
        num_hidden_layers=3,
        num_local_experts=4,
        num_experts_per_tok=2,
        vocab_size=128,
        hidden_size=hidden,
        intermediate_size=inner,
        head_dim=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        sliding_window=8,
        max_position_embeddings=512,
    )
    compact = Storage(attention="mxfp4", head="int8", embedding="host")
    network = random_network(config, dtype=torch.bfloat16, device=torch.device("cpu"), storage=compact)
    lora = LoraConfig(
        r=4,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
        target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
    )
    model = attach(network, lora, dtype=torch.bfloat16).train()
    shape = Geometry(
        layers=3, hidden=hidden, intermediate=inner, heads=4, kv_heads=2, head_size=16, vocab=128, experts=4, top_k=2
    )
    assert 256 * 3 * shape.activation_bytes(4) == pytest.approx(saved_bytes(model, 256), rel=0.1)


def test_the_lean_forward_keeps_what_is_forecast(monkeypatch):
    torch = pytest.importorskip("torch")
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from outpace.policy import lean_forward
    from outpace.policy.quiet import quiet_transformers

    class Norm(torch.autograd.Function):
        """As the GPU's fused norm: it keeps its input, where a CPU's keeps what it is made of."""

        @staticmethod
        def forward(ctx, x, weight, eps):
            ctx.save_for_backward(x, weight)
            return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    monkeypatch.setattr(lean_forward, "_norm", lambda x, norm: x if norm is None else Norm.apply(x, *norm))
    hidden = 256
    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 128}
    model = Qwen2ForCausalLM(Qwen2Config(hidden_size=hidden, intermediate_size=4 * hidden, **sizes)).train()
    with quiet_transformers():
        model = get_peft_model(model.to(torch.bfloat16), LoraConfig(r=8, target_modules="all-linear"))
    shape = Geometry(
        layers=3, hidden=hidden, intermediate=4 * hidden, heads=4, kv_heads=2, head_size=hidden // 4, vocab=128
    )
    tokens = 256
    with torch.autocast("cpu", torch.bfloat16), lean_forward.lean(model):
        kept = saved_bytes(model, tokens)
    mask = 2 * tokens**2 * 2
    assert kept == pytest.approx(tokens * 3 * shape.lean_bytes(8) + mask, rel=0.1)


def test_large_micro_batches_are_halved_before_activations_are_computed_twice():
    wide = load_recipe("qwen2.5-coder-0.5b")
    found = plan(wide, memory_GB=16)
    assert found.fits
    assert [change.split("=")[0] for change in found.changes] == ["per_device_train_batch_size"] * len(found.changes)
    assert "gradient_checkpointing=true" in " ".join(plan(wide, memory_GB=9).changes)
