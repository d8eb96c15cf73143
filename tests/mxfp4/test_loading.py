"""A checkpoint in the hub's layout becomes a model that computes what transformers computes from unpacked weights."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_gpt_oss import CPU, dense_twin, token_ids, write_checkpoint

from outpace.errors import ModelError
from outpace.policy.mxfp4 import Storage, load_network
from outpace.policy.mxfp4.build import packed_folder


def load(folder, **options):
    return load_network(folder, dtype=torch.float32, device=CPU, **options)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_loaded_checkpoint_computes_what_transformers_computes(tmp_path, network, shards):
    folder = write_checkpoint(tmp_path, network, shards=shards)
    ours, theirs = load(folder)(input_ids=token_ids()).logits, dense_twin(network)(input_ids=token_ids()).logits
    assert torch.allclose(ours, theirs, atol=2e-6)


def test_padding_is_masked_as_in_transformers(network):
    ids, mask = token_ids(), torch.ones(2, 20, dtype=torch.long)
    mask[0, :6] = 0
    ours = network(input_ids=ids, attention_mask=mask).logits
    theirs = dense_twin(network)(input_ids=ids, attention_mask=mask).logits
    assert torch.allclose(ours[mask.bool()], theirs[mask.bool()], atol=2e-6)


def test_experts_stay_bytes(tmp_path, network):
    experts = load(write_checkpoint(tmp_path, network)).model.layers[0].mlp.experts
    assert experts.packed("gate_up_proj").blocks.dtype == torch.uint8
    assert not list(experts.parameters())


def test_a_checkpoint_in_mxfp4_is_recognised_and_others_are_not(tmp_path, network):
    folder = write_checkpoint(tmp_path / "packed", network)
    assert packed_folder(str(folder)) == folder
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    assert packed_folder(str(tmp_path)) is None


def test_policies_load_it_with_its_tokenizer(tmp_path, network):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    from outpace.policy import SamplingSettings, sample
    from outpace.policy import load as load_policy

    folder = write_checkpoint(tmp_path, network)
    words = {f"w{index}": index for index in range(128)}
    inner = Tokenizer(models.WordLevel(words, unk_token="w2"))
    PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="w1", pad_token="w0").save_pretrained(folder)
    policy = load_policy(str(folder), device="cpu")
    drawn = sample(policy, [[5, 6, 7]], SamplingSettings(max_new_tokens=12), num_generations=2)
    row = torch.tensor([[*drawn[0].prompt_ids, *drawn[0].completion_ids]])
    logprobs = torch.log_softmax(dense_twin(network)(input_ids=row).logits[0, 2:-1], dim=-1)
    expected = logprobs.gather(-1, row[0, 3:, None])[:, 0]
    assert torch.allclose(torch.tensor(drawn[0].logprobs), expected, atol=1e-5)


def damage(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


GATE_UP = "model.layers.1.mlp.experts.gate_up_proj"
DAMAGES = {
    "shape": (lambda t: t.update({f"{GATE_UP}_blocks": t[f"{GATE_UP}_blocks"][:3].clone()}), "_blocks is .*needs"),
    "type": (lambda t: t.update({f"{GATE_UP}_scales": t[f"{GATE_UP}_scales"].float()}), "_scales is .*U8"),
    "absent": (lambda t: t.pop("model.layers.0.self_attn.sinks"), "no tensor model.layers.0.self_attn.sinks"),
    "unpacked": (
        lambda t: (t.pop(f"{GATE_UP}_blocks"), t.update({GATE_UP: torch.zeros(4, 64, 192)})),
        "is not packed in MXFP4",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_tensor_that_does_not_fit_is_named(tmp_path, network, kind):
    change, sentence = DAMAGES[kind]
    folder = write_checkpoint(tmp_path, network)
    damage(folder, change)
    with pytest.raises(ModelError, match=sentence):
        load(folder)


def test_a_missing_shard_is_named(tmp_path, network):
    folder = write_checkpoint(tmp_path, network, shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelError, match="lacks 1 of its 3 weight files, model-00002"):
        load(folder)


def test_a_truncated_file_is_named(tmp_path, network):
    folder = write_checkpoint(tmp_path, network)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="is damaged"):
        load(folder)


def test_a_geometry_that_cannot_be_packed_is_refused(network, tmp_path):
    folder = write_checkpoint(tmp_path, network)
    facts = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(facts | {"hidden_size": 60}))
    with pytest.raises(ModelError, match="hidden_size is 60"):
        load(folder)


@pytest.mark.parametrize(("attention", "limit"), [("int8", 0.02), ("mxfp4", 0.3)])
def test_compact_storage_changes_the_logits_little(tmp_path, network, attention, limit):
    folder = write_checkpoint(tmp_path, network)
    exact = load(folder)(input_ids=token_ids()).logits
    compact = load(folder, storage=Storage(attention=attention, head="int8", embedding="host"))
    difference = compact(input_ids=token_ids()).logits - exact
    # the median over tokens: a few are routed to other experts, which changes all of their logits
    assert (difference.norm(dim=-1) / exact.norm(dim=-1)).median() < limit


def test_a_large_card_keeps_everything_exact_and_a_small_one_does_not():
    assert Storage.within(None) == Storage.within(24) == Storage()
    assert Storage.within(16).attention == "int8"
    assert Storage.within(12) == Storage(attention="mxfp4", head="int8", embedding="host")
