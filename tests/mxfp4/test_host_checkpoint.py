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


@pytest.mark.parametrize("model", [torch.float32, torch.bfloat16], ids=str, indirect=True)
def test_logits_and_gradients_are_those_of_a_model_that_keeps_everything(model):
    ids = torch.randint(2, 128, (2, 20))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=model.dtype == torch.bfloat16):
        kept_logits, kept = gradients(model, ids)
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        assert keep_on_host(model) == 2, "both layers"
        logits, found = gradients(model, ids)
    assert torch.equal(logits, kept_logits)
    assert set(found) == set(kept)
    assert len(found) == 2 * 2 * 4
    for name, gradient in found.items():
        assert torch.allclose(gradient, kept[name], atol=1e-6), name
        assert gradient.any(), name


def test_nothing_of_a_layer_but_its_input_is_kept(model):
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    keep_on_host(model)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda x: x):
        model.get_base_model().model(input_ids=torch.randint(2, 128, (2, 20)), use_cache=False)
    assert sum(shape.numel() for shape in kept) <= 3 * 2 * 20 * 64, "what the last norm needs"


def test_without_gradients_and_without_recomputing_nothing_changes(model):
    assert keep_on_host(model) == 0
    with torch.no_grad():
        assert checkpoint(lambda hidden, other: hidden * other, torch.ones(2), 3).tolist() == [3, 3]


def test_an_input_that_needs_no_gradient_still_lets_parameters_have_theirs():
    layer = torch.nn.Linear(3, 3)
    checkpoint(layer, torch.ones(1, 3)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1, 1]] * 3
