"""A layer whose input waits on the host computes the same, forward and backward, as one that keeps everything."""

import pytest
import torch
from peft import LoraConfig
from tiny_gpt_oss import CPU, tiny_config

from outpace.policy.mxfp4 import attach, random_network
from outpace.policy.mxfp4.host_checkpoint import checkpoint, keep_on_host
from outpace.training.trl_seam import quiet_libraries


@pytest.fixture(autouse=True)
def _without_notices_of_renamed_settings():
    with quiet_libraries():
        yield


@pytest.fixture
def model(request):
    dtype = getattr(request, "param", torch.float32)
    network = random_network(tiny_config(), dtype=dtype, device=CPU)
    config = LoraConfig(
        r=4,
        target_modules=["q_proj", "o_proj"],
        target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
        task_type="CAUSAL_LM",
    )
    model = attach(network, config, dtype=dtype)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    return model.train()


def gradients(model, ids):
    model.zero_grad()
    logits = model(input_ids=ids, use_cache=False).logits
    logits.log_softmax(-1)[..., 7].sum().backward()
    return logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}


def recompute(model):
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def calls(model, name):
    """Counts the calls of a part of the first layer, and how many tokens each had."""
    seen = []
    part = getattr(model.get_base_model().model.layers[0], name)
    part.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append((args or (kwargs["hidden_states"],))[0].shape[:-1].numel()),
        with_kwargs=True,
    )
    return seen


@pytest.mark.parametrize("model", [torch.float32, torch.bfloat16], ids=str, indirect=True)
@pytest.mark.parametrize("tokens_at_once", [None, 40, 16, 7])
def test_logits_and_gradients_are_those_of_a_model_that_keeps_everything(model, tokens_at_once):
    ids = torch.randint(2, 128, (2, 20))
    is_narrow = model.dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_narrow):
        kept_logits, kept = gradients(model, ids)
        recompute(model)
        assert keep_on_host(model, tokens_at_once) == 2, "both layers"
        logits, found = gradients(model, ids)
    is_whole = tokens_at_once in (None, 40)
    assert torch.allclose(logits, kept_logits, rtol=0, atol=0 if is_whole else (0.02 if is_narrow else 1e-5))
    assert set(found) == set(kept)
    assert len(found) == 2 * 2 * 4
    for name, gradient in found.items():
        # parts of a sum are rounded on their own; in bfloat16 to 1/256 of the largest
        share = 1e-6 if is_whole else (0.02 if is_narrow else 1e-5)
        assert (gradient - kept[name]).abs().max() <= 1e-6 + share * kept[name].abs().max(), name
        assert gradient.any(), name


@pytest.mark.parametrize(("tokens_at_once", "sizes"), [(None, [40]), (40, [40]), (20, [20, 20]), (16, [13, 13, 14])])
def test_each_part_is_computed_twice_and_experts_a_few_tokens_at_a_time(model, tokens_at_once, sizes):
    recompute(model)
    keep_on_host(model, tokens_at_once)
    attention, experts = calls(model, "self_attn"), calls(model, "mlp")
    gradients(model, torch.randint(2, 128, (2, 20)))
    assert attention == [40, 40]
    assert sorted(experts[: len(sizes)]) == sorted(experts[len(sizes) :]) == sizes


@pytest.mark.parametrize("tokens_at_once", [None, 16])
def test_nothing_of_a_layer_but_its_inputs_is_kept(model, tokens_at_once):
    recompute(model)
    keep_on_host(model, tokens_at_once)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda x: x):
        model.get_base_model().model(input_ids=torch.randint(2, 128, (2, 20)), use_cache=False)
    assert sum(shape.numel() for shape in kept) <= 3 * 2 * 20 * 64, "what the last norm needs"


@pytest.mark.parametrize("tokens_at_once", [None, 5])
def test_evaluation_after_training_uses_the_cache_as_before(model, tokens_at_once):
    ids, options = torch.randint(2, 128, (2, 6)), {"max_new_tokens": 12, "do_sample": False}
    before = model.eval().generate(input_ids=ids, **options)
    recompute(model.train())
    keep_on_host(model, tokens_at_once)
    gradients(model, ids)
    model.eval()
    seen = calls(model, "self_attn")
    assert torch.equal(model.generate(input_ids=ids, **options), before)
    assert seen == [12] + [2] * (len(seen) - 1), "one token a row after the prompts"


def test_a_cache_is_not_written_to_while_activations_are_computed_twice(model):
    recompute(model)
    keep_on_host(model)
    ids = torch.randint(2, 128, (2, 20))
    expected = model(input_ids=ids, use_cache=False).logits
    assert torch.allclose(model(input_ids=ids, use_cache=True).logits, expected)


def test_trainers_may_switch_it_off_and_on_again(model):
    from trl.models.utils import disable_gradient_checkpointing

    recompute(model)
    names = list(model.state_dict())
    keep_on_host(model, 16)
    assert list(model.state_dict()) == names
    seen, ids = calls(model, "mlp"), torch.randint(2, 128, (2, 20))
    with disable_gradient_checkpointing(model, {"use_reentrant": False}):
        gradients(model, ids)
    assert seen == [40], "the layer's own way"
    gradients(model, ids)
    assert sorted(seen[1:]) == [13, 13, 13, 13, 14, 14], "ours, not torch's around it"


def test_hooks_of_a_layer_run_once(model):
    recompute(model)
    keep_on_host(model)
    seen = []
    model.get_base_model().model.layers[0].register_forward_hook(lambda *_: seen.append(1))
    gradients(model, torch.randint(2, 128, (2, 20)))
    assert seen == [1]


def test_layers_of_other_models_wait_on_the_host_as_a_whole():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=128,
    )
    dense = LlamaForCausalLM(config).train()
    ids = torch.randint(2, 128, (2, 20))
    kept_logits, kept = gradients(dense, ids)
    recompute(dense)
    assert keep_on_host(dense, 16) == 2
    seen = []
    dense.model.layers[0].mlp.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[:-1].numel()))
    logits, found = gradients(dense, ids)
    assert torch.equal(logits, kept_logits)
    assert all(torch.allclose(found[name], kept[name], atol=1e-6) for name in kept)
    assert seen == [40, 40]


def test_without_gradients_and_without_recomputing_nothing_changes(model):
    kind = type(model.get_base_model().model.layers[0])
    assert keep_on_host(model) == 0
    assert type(model.get_base_model().model.layers[0]) is kind
    with torch.no_grad():
        assert checkpoint(lambda hidden, other: hidden * other, torch.ones(2), 3).tolist() == [3, 3]


def test_an_input_that_needs_no_gradient_still_lets_parameters_have_theirs():
    layer = torch.nn.Linear(3, 3)
    checkpoint(layer, torch.ones(1, 3)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1, 1]] * 3
