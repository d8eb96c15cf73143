"""LoRA on packed experts: what PEFT computes on unpacked ones, in PEFT's layout, with exact gradients."""

import pytest
import torch
from peft import LoraConfig, PeftModel
from tiny_gpt_oss import CPU, dense_twin, tiny_config, token_ids

from outpace.errors import ConfigError
from outpace.policy.mxfp4 import attach, attach_saved, census, is_packed, random_network
from outpace.policy.mxfp4.census import family_and_layer
from outpace.policy.quiet import quiet_transformers

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
EXPERTS = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]


def lora(**changes) -> LoraConfig:
    options = {"r": 3, "lora_alpha": 6, "target_modules": ATTENTION, "target_parameters": EXPERTS}
    return LoraConfig(task_type="CAUSAL_LM", **(options | changes))


def adapted(network, **changes):
    """With an adapter that changes something: B is not zero."""
    model = attach(network, lora(**changes))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


def in_peft(folder):
    """PEFT's own model of the same weights, unpacked, with the adapter of `folder`."""
    twin = dense_twin(random_network(tiny_config(), dtype=torch.float32, device=CPU))
    with quiet_transformers():
        return PeftModel.from_pretrained(twin, str(folder), is_trainable=True)


@pytest.mark.parametrize(
    "changes", [{}, {"target_parameters": EXPERTS[:1]}, {"target_parameters": EXPERTS[1:]}, {"use_rslora": True}]
)
def test_peft_loads_what_we_save_and_computes_the_same(tmp_path, network, changes):
    model = adapted(network, **changes)
    model.save_pretrained(tmp_path)
    ours, theirs = model(input_ids=token_ids()).logits, in_peft(tmp_path)(input_ids=token_ids()).logits
    assert torch.allclose(ours, theirs, atol=5e-6)
    with model.disable_adapter():
        assert not torch.allclose(model(input_ids=token_ids()).logits, ours, atol=1e-3)


def test_gradients_of_every_adapter_are_those_of_the_dense_layer(tmp_path, network):
    model = adapted(network)
    model.save_pretrained(tmp_path)
    dense = in_peft(tmp_path)
    for each in (model, dense):
        logits = each(input_ids=token_ids()).logits
        (logits * torch.sin(torch.arange(logits.numel()).view_as(logits))).sum().backward()
    ours = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
    theirs = {name: p.grad for name, p in dense.named_parameters() if p.requires_grad}
    assert ours.keys() == theirs.keys()
    for name, grad in ours.items():
        assert (grad - theirs[name]).norm() / theirs[name].norm() < 1e-5, name


def test_what_peft_saves_is_loaded_by_us(tmp_path, network):
    model = adapted(network)
    model.save_pretrained(tmp_path / "ours")
    in_peft(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    fresh = random_network(tiny_config(), dtype=torch.float32, device=CPU)
    loaded = attach_saved(fresh, str(tmp_path / "theirs"))
    assert torch.equal(loaded(input_ids=token_ids()).logits, model(input_ids=token_ids()).logits)


def test_a_saved_adapter_of_unknown_parameters_is_refused(tmp_path, network):
    adapted(network).save_pretrained(tmp_path)
    file = tmp_path / "adapter_config.json"
    file.write_text(file.read_text().replace("mlp.experts.down_proj", "mlp.experts.up"))
    with pytest.raises(ConfigError, match=r"mlp\.experts\.up"):
        attach_saved(random_network(tiny_config(), dtype=torch.float32, device=CPU), str(tmp_path))


def test_a_fresh_adapter_changes_nothing(network):
    before = network(input_ids=token_ids()).logits
    assert torch.equal(attach(network, lora())(input_ids=token_ids()).logits, before)


def test_experts_can_be_adapted_without_attention(network):
    model = attach(network, lora(target_modules=None))
    assert {family_and_layer(name, model)[0] for name, p in model.named_parameters() if p.requires_grad} == {
        "gate_up_proj",
        "down_proj",
    }


def test_dropout_on_experts_is_refused(network):
    with pytest.raises(ConfigError, match="lora_dropout=0"):
        attach(network, lora(lora_dropout=0.1))


def test_a_target_that_does_not_exist_is_named(network):
    with pytest.raises(ConfigError, match=r"mlp\.experts\.w1"):
        attach(network, lora(target_parameters=["mlp.experts.w1"]))


def test_the_census_counts_by_family_and_layer(network):
    model = attach(network, lora())
    counted = census(model)
    assert is_packed(model)
    assert counted.four_bit == 2 * 4 * (64 * 192 + 96 * 64)
    assert counted.trained_by_family["gate_up_proj"] == 2 * 4 * 3 * (64 + 192)
    assert counted.trained_by_family["down_proj"] == 2 * 4 * 3 * (96 + 64)
    assert set(counted.trained_places.values()) == {2}
    assert counted.trained == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert "147,456 weights in 4 bits" in counted.lines()[0]


def test_gradients_reach_every_family_of_every_layer(network):
    model = adapted(network)
    model(input_ids=token_ids()).logits.square().sum().backward()
    reached = {
        family_and_layer(name, model) for name, p in model.named_parameters() if p.grad is not None and p.grad.any()
    }
    families = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_up_proj", "down_proj")
    assert reached == {(family, layer) for family in families for layer in ("0", "1")}


def test_packed_weights_are_never_unpacked_into_what_is_kept(network):
    model, kept = adapted(network), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        model(input_ids=token_ids(1, 4)).logits.sum()
    assert max(kept) < 64 * 192  # one expert's matrix
