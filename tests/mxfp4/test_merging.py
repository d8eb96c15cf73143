"""A trained gpt-oss is written for others to load: in bfloat16, or packed again with the loss told."""

import pytest
import torch
from test_adapters import adapted
from tiny_gpt_oss import CPU, token_ids
from transformers import AutoModelForCausalLM

from outpace.policy.mxfp4 import export_packed, load_network
from outpace.policy.quiet import quiet_transformers


def difference(got, want) -> float:
    return float((got - want).norm() / want.norm())


def test_transformers_loads_the_merged_model_and_computes_the_same(tmp_path, network):
    model = adapted(network)
    assert export_packed(model, tmp_path) is None
    with quiet_transformers():
        merged = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager")
    want = model(input_ids=token_ids()).logits
    by_token = (merged(input_ids=token_ids()).logits - want).norm(dim=-1) / want.norm(dim=-1)
    assert by_token.median() < 0.02  # weights were rounded to bfloat16


def test_a_model_without_adapters_is_packed_without_loss(tmp_path, network):
    rounding = export_packed(network, tmp_path, experts="mxfp4")
    assert rounding is not None
    assert (rounding.of_weights, rounding.of_change) == (0.0, None)
    again = load_network(tmp_path, dtype=torch.float32, device=CPU)
    experts = [each.model.layers[1].mlp.experts.packed("down_proj").blocks for each in (network, again)]
    assert torch.equal(*experts)


def test_packing_a_merged_model_tells_what_is_lost(tmp_path, network):
    lines = []
    rounding = export_packed(adapted(network), tmp_path, experts="mxfp4", say=lines.append)
    assert rounding is not None
    assert 0 < rounding.of_weights < 0.13
    assert rounding.of_change is not None
    assert "of their size" in lines[0]
    assert "times what training changed" in lines[0]


def test_exporting_leaves_the_model_as_it_was(tmp_path, network):
    model = adapted(network)
    before = model(input_ids=token_ids()).logits
    export_packed(model, tmp_path)
    assert torch.equal(model(input_ids=token_ids()).logits, before)


@pytest.mark.parametrize("storage", ["int8", "mxfp4"])
def test_compact_layers_are_written_as_what_was_trained_with(tmp_path, config, storage):
    from outpace.policy.mxfp4 import Storage, random_network

    compact = Storage(attention=storage, head="int8", embedding="host")
    network = random_network(config, dtype=torch.float32, device=CPU, storage=compact)
    export_packed(network, tmp_path, experts="mxfp4")
    again = load_network(tmp_path, dtype=torch.float32, device=CPU)
    assert difference(again(input_ids=token_ids()).logits, network(input_ids=token_ids()).logits) < 0.2
