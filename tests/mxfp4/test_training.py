"""A tiny gpt-oss learns on a CPU through the code that trains the real one: `outpace.training`, TRL, our sampler."""

import statistics
import sys
from pathlib import Path

import pytest
import torch
from tiny_gpt_oss import CPU, tiny_config, write_checkpoint

from outpace.policy.mxfp4 import is_packed, random_network
from outpace.policy.mxfp4.experts import FAMILIES

sys.path.append(str(Path(__file__).parents[1] / "training"))  # its tiny tasks, grader and tokenizer

from outpace.training import prepare_environment

prepare_environment()

KEYS = {
    "use_peft": True,
    "lora_r": 8,
    "lora_alpha": 32,
    "lora_target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "lora_target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
    "gradient_checkpointing": True,
    "per_device_train_batch_size": 32,
    "max_steps": 16,
    "save_steps": 16,
    "learning_rate": 2e-2,
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """The tiny model's folder with gpt-oss's weights and config in place of its own."""
    from tiny import LETTERS, save_model

    folder = save_model(tmp_path_factory.mktemp("gpt-oss") / "tiny")
    (folder / "model.safetensors").unlink()
    config = tiny_config(vocab_size=len(LETTERS) + 4)
    network = random_network(config, dtype=torch.float32, device=CPU)
    network.lm_head.weight.data *= 10  # a frozen head with small weights could never be sure of a token
    return write_checkpoint(folder, network, shards=2)


@pytest.mark.train
def test_its_reward_rises_and_every_family_is_trained(tmp_path, checkpoint):
    from runs import TinyRun

    run = TinyRun(checkpoint, tmp_path, **KEYS)
    assert run.train().steps == KEYS["max_steps"]
    assert run.policy is not None
    assert is_packed(run.policy.model)
    means = [statistics.fmean(row["reward"] for row in run.folder.samples(step)) for step in range(1, 17)]
    assert statistics.fmean(means[-4:]) > statistics.fmean(means[:4]) + 0.25  # two standard errors are 0.1
    assert "gate_up_proj" in run.printed
    assert "weights in 4 bits" in run.printed
    record = run.folder.read_json("provenance.json")
    assert record["policy"]["storage"].startswith("experts mxfp4")
    assert record["weights"]["kept"]["four_bit"] > 0
    assert set(record["weights"]["trained_by_family"]) == {"q_proj", "k_proj", "v_proj", "o_proj", *FAMILIES}
    assert record["weights"]["trained"] == sum(record["weights"]["trained_by_family"].values())
    trained = run.weights(KEYS["max_steps"])
    ups = {name: tensor for name, tensor in trained.items() if "lora_B" in name}
    assert len(ups) == 2 * 6
    assert all(bool(tensor.any()) for tensor in ups.values())


@pytest.mark.train
def test_layers_inputs_wait_on_the_host_in_every_update(tmp_path, checkpoint, monkeypatch):
    from runs import TinyRun

    from outpace.policy.mxfp4 import host_checkpoint

    parts, usual = [], host_checkpoint.checkpoint
    monkeypatch.setattr(
        host_checkpoint, "checkpoint", lambda function, *rest: parts.append(function) or usual(function, *rest)
    )
    TinyRun(checkpoint, tmp_path, **KEYS).train(max_steps=2)
    assert len(parts) >= 2 * 2 * 2, "two steps, two layers, two parts: what TRL does around sampling undoes nothing"


@pytest.mark.train
@pytest.mark.parametrize("optim", ["adamw_torch", "adamw_host"])
def test_a_stopped_run_goes_on_from_its_checkpoint(tmp_path, checkpoint, optim):
    from runs import TinyRun

    keys = KEYS | {"save_steps": 1, "optim": optim, "card_GB": 24.0}
    whole, parted = (TinyRun(checkpoint, tmp_path / name, **keys) for name in ("whole", "parted"))
    whole.train(max_steps=3)
    parted.train(max_steps=2)
    parted.train(max_steps=3)
    ours, theirs = parted.weights(3), whole.weights(3)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
