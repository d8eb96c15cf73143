"""A tiny gpt-oss: two layers, four experts, with a checkpoint written in the hub's layout."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import GptOssConfig, GptOssForCausalLM

CPU = torch.device("cpu")


def tiny_config(**changes) -> GptOssConfig:
    """Every part of the real geometry, small: more experts than a token uses, a window shorter than the text."""
    facts = {
        "num_hidden_layers": 2,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "vocab_size": 128,
        "hidden_size": 64,
        "intermediate_size": 96,
        "head_dim": 16,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "sliding_window": 8,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "max_position_embeddings": 512,
    }
    return GptOssConfig(**(facts | changes))


def dense_twin(network):
    """transformers' own model with the same weights, unpacked by transformers' own function."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    tensors = {name: tensor for name, tensor in network.state_dict().items() if ".experts." not in name}
    for index, layer in enumerate(network.model.layers):
        experts = layer.mlp.experts
        for family in ("gate_up_proj", "down_proj"):
            packed = experts.packed(family)
            dense = convert_moe_packed_tensors(packed.blocks, packed.scales, dtype=torch.float32)
            tensors[f"model.layers.{index}.mlp.experts.{family}"] = dense
            tensors[f"model.layers.{index}.mlp.experts.{family}_bias"] = experts.bias(family)
    twin = GptOssForCausalLM(tiny_config()).eval()
    twin.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()})
    twin.config._attn_implementation = "eager"
    return twin


def write_checkpoint(folder: Path, network, *, shards: int = 1) -> Path:
    """Write what the hub holds for gpt-oss: packed experts, an index when sharded, and a config that says mxfp4."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous().clone() for name, tensor in network.state_dict().items()}
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
    else:
        names, place = sorted(tensors), {}
        for shard in range(shards):
            file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
            part = {name: tensors[name] for name in names[shard::shards]}
            save_file(part, folder / file)
            place |= dict.fromkeys(part, file)
        index = {"metadata": {"total_size": 0}, "weight_map": place}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    facts = network.config.to_dict() | {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": []}}
    facts |= {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"}
    (folder / "config.json").write_text(json.dumps(facts, default=str))
    return folder


def token_ids(rows: int = 2, columns: int = 20):
    return torch.randint(2, 128, (rows, columns), generator=torch.Generator().manual_seed(3))
