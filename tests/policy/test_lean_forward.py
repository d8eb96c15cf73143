"""The lean forward computes what transformers and PEFT compute, forward and backward, and steps aside elsewhere."""

import warnings

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from outpace.policy.lean_forward import lean

SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
MODELS = [
    (LlamaForCausalLM, LlamaConfig), (Qwen2ForCausalLM, Qwen2Config), (Qwen3ForCausalLM, Qwen3Config)
]  # fmt: skip
by_name = pytest.mark.parametrize(("kind", "config"), MODELS, ids=lambda value: value.__name__)


def network(kind=LlamaForCausalLM, config=LlamaConfig, **changes):
    torch.manual_seed(0)
    return kind(config(**SIZES | changes)).train()


def lora(model, **options):
    options = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers by a name that it will drop
        model = get_peft_model(model, LoraConfig(**options))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model.train()


def batch():
    ids = torch.randint(1, 64, (3, 12))
    mask = torch.ones_like(ids)
    mask[0, :5] = 0  # a short prompt, padded on the left
    mask[1, 9:] = 0  # a short completion, padded on the right
    return {"input_ids": ids, "attention_mask": mask}


def computed(model, given):
    """Logits where there are tokens, and every gradient of a sum of them."""
    model.zero_grad()
    weights = torch.linspace(-1, 1, 64)
    logits = model(**given, use_cache=False).logits * given["attention_mask"][..., None]
    (logits.float().log_softmax(-1) * weights).sum().backward()
    return logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same(model, given):
    logits, grads = computed(model, given)
    with lean(model) as is_lean:
        assert is_lean
        found, ours = computed(model, given)
    assert torch.allclose(found, logits, atol=1e-5)
    assert set(ours) == set(grads)
    for name, gradient in grads.items():
        assert torch.allclose(ours[name], gradient, atol=2e-4, rtol=1e-4), name


@by_name
@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "v_proj"], ["down_proj", "o_proj"]], ids=str)
def test_logits_and_gradients_of_adapters_are_those_of_transformers_and_peft(kind, config, targets):
    assert_same(lora(network(kind, config), target_modules=targets, lora_alpha=16), batch())


@by_name
def test_logits_and_gradients_of_all_weights_are_those_of_transformers(kind, config):
    assert_same(network(kind, config), batch())


def test_without_a_mask_every_earlier_token_is_seen():
    model, given = lora(network()), batch()
    given["attention_mask"] = torch.ones_like(given["attention_mask"])
    logits, _ = computed(model, given)
    with lean(model):
        found = model(input_ids=given["input_ids"], use_cache=False).logits
    assert torch.allclose(found, logits, atol=1e-5)


def test_with_adapters_switched_off_the_base_model_is_computed():
    model, given = lora(network()), batch()
    with torch.no_grad(), model.disable_adapter():
        base = model(**given).logits
        with lean(model) as is_lean:
            assert is_lean
            found = model(**given).logits
    is_token = given["attention_mask"].bool()
    assert torch.allclose(found[is_token], base[is_token], atol=1e-5)


def test_in_bfloat16_it_differs_by_rounding_only():
    model, given = lora(network()), batch()
    exact, _ = computed(model, given)
    for name, parameter in model.named_parameters():
        if "lora_" not in name:
            parameter.data = parameter.data.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16), lean(model) as is_lean:
        assert is_lean
        found, grads = computed(model, given)
    assert (found - exact).abs().max() < 0.05 * exact.std()
    assert all(gradient.dtype == torch.float32 for gradient in grads.values())


def test_less_is_kept_for_the_backward():
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 8, "num_key_value_heads": 1}
    model = lora(network(Qwen2ForCausalLM, Qwen2Config, **sizes))
    given = {"input_ids": torch.randint(1, 64, (4, 32)), "attention_mask": torch.ones(4, 32, dtype=torch.long)}

    def kept_bytes():
        sizes = {}

        def note(tensor):
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            model.get_base_model().model(**given, use_cache=False)
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        return sum(size for place, size in sizes.items() if place not in weights)

    usual = kept_bytes()
    with lean(model):
        ours = kept_bytes()
    assert ours < 0.9 * usual


def assert_left_alone(model):
    with lean(model) as is_lean:
        assert not is_lean
        assert "forward" not in vars(getattr(model, "get_base_model", lambda: model)().model)


def test_what_it_does_not_cover_is_left_to_transformers():
    checkpointed = lora(network())
    for module in checkpointed.modules():
        if hasattr(module, "gradient_checkpointing"):
            module.gradient_checkpointing = True
    eager = lora(network())
    eager.get_base_model().config._attn_implementation = "eager"
    for model in (
        checkpointed,
        eager,
        lora(network(), lora_dropout=0.1),
        lora(network(Qwen2ForCausalLM, Qwen2Config), target_modules=["q_proj"], lora_bias=True),
        network(attention_dropout=0.1),
        lora(network(), use_dora=True),
        network(MistralForCausalLM, MistralConfig, sliding_window=4),
    ):
        assert_left_alone(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # float32 weights would have to be cast in every product
        assert_left_alone(network())
    watched = network()
    watched.model.layers[1].mlp.register_forward_hook(lambda *_: None)
    assert_left_alone(watched)
    spread = network()
    own = spread.model.forward
    spread.model.forward = own
    with lean(spread) as is_lean:
        assert not is_lean
        assert spread.model.forward is own


def test_afterwards_the_model_computes_as_before():
    model, given = lora(network()), batch()
    before = model(**given).logits
    with pytest.raises(RuntimeError, match="broke"), lean(model):
        raise RuntimeError("broke")
    assert torch.equal(model(**given).logits, before)
    assert "forward" not in vars(model.get_base_model().model)
