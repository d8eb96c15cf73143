"""From a gpt-oss checkpoint to a transformers model with packed experts, without unpacking them on the way.

The model is made without memory, its large layers are exchanged for ours, and every tensor is read straight to the
device. Not covered: other mixtures of experts, several GPUs.
"""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from outpace.errors import ModelError
from outpace.policy.mxfp4 import attention
from outpace.policy.mxfp4.compact import ROWS_AT_ONCE, HostEmbedding, Int8Linear, PackedLinear, _FrozenLinear
from outpace.policy.mxfp4.experts import PackedExperts
from outpace.policy.mxfp4.grouped import Engine, pick_engine
from outpace.policy.mxfp4.packing import BLOCK
from outpace.policy.mxfp4.read import Checkpoint, RandomWeights, Weights
from outpace.policy.storage import Storage

_LINEAR: dict[str, type[_FrozenLinear]] = {"int8": Int8Linear, "mxfp4": PackedLinear}


def packed_folder(place: str) -> Path | None:
    """The folder of a gpt-oss checkpoint in MXFP4 (downloaded first when `place` is a hub id); None: another model.

    Raises:
        ModelError: it is one, and its files could not be had.
    """
    folder = Path(place)
    config = folder / "config.json"
    if not folder.is_dir():
        from huggingface_hub import hf_hub_download

        try:
            config = Path(hf_hub_download(place, "config.json"))
        except Exception:  # whatever is wrong with the hub, the general loader says it better
            return None
    try:
        facts = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_packed = (facts.get("quantization_config") or {}).get("quant_method") == "mxfp4"
    if facts.get("model_type") != "gpt_oss" or not is_packed:
        return None
    return folder if folder.is_dir() else _download(place)


def _download(place: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(place, allow_patterns=["*.json", "*.jinja", "*.safetensors"], ignore_patterns=["*/*"])
        )
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise ModelError(
            f"{place} could not be downloaded ({reason}): check the network and the free space."
        ) from error


def load_network(folder: Path, *, dtype: torch.dtype, device: torch.device, storage: Storage | None = None) -> Any:
    """Read a gpt-oss checkpoint in the hub's layout.

    Args:
        folder: config.json and safetensors files, with an index when there are several.
        dtype: of everything that is neither packed nor in 8 bits, and of the computation.
        device: where the tensors go.
        storage: how attention, head and embedding are kept; None: chosen by the device's memory.

    Returns:
        A transformers GptOssForCausalLM, frozen, in evaluation mode.

    Raises:
        ModelError: a file or tensor is missing, damaged or of another shape or type.
    """
    from transformers import AutoConfig, GenerationConfig

    config = AutoConfig.from_pretrained(str(folder))
    with Checkpoint(folder, device) as weights:
        network = assemble(config, weights, dtype=dtype, device=device, storage=storage or for_device(device))
    if (folder / "generation_config.json").is_file():
        network.generation_config = GenerationConfig.from_pretrained(str(folder))
    return network


def random_network(
    config: Any, *, dtype: torch.dtype, device: torch.device, storage: Storage | None = None, seed: int = 0
) -> Any:
    """A model of that geometry with random packed weights: real work and real memory, and no sense."""
    weights = RandomWeights(device, seed)
    return assemble(config, weights, dtype=dtype, device=device, storage=storage or for_device(device))


def for_device(device: torch.device) -> Storage:
    """The storage for a device: everything exact on a CPU, by its memory on a GPU."""
    if device.type != "cuda":
        return Storage()
    return Storage.within(torch.cuda.get_device_properties(device).total_memory / 1e9)


def assemble(config: Any, weights: Weights, *, dtype: torch.dtype, device: torch.device, storage: Storage) -> Any:
    """Make the model and fill it from `weights`; see `load_network`."""
    from transformers import GptOssForCausalLM

    _check_geometry(config)
    attention.register()
    config = copy.deepcopy(config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # trainers refuse what they hold for quantised
    config.dtype = dtype
    with torch.device("meta"):
        network = GptOssForCausalLM(config)
        _exchange(network, config, storage)
    network.config._attn_implementation = attention.NAME
    network.model.rotary_emb = type(network.model.rotary_emb)(config=config).to(device)
    if storage.embedding == "host":
        network.model.embed_tokens = HostEmbedding(_host_table(config, weights, dtype), device)
    network.storage = storage
    _fill(network, config, weights, dtype, device)
    set_engine(network, pick_engine(device))
    network.requires_grad_(False)
    return network.eval()


def set_engine(network: nn.Module, engine: Engine) -> None:
    """Let `engine` compute every product with packed weights."""
    for module in network.modules():
        if isinstance(module, PackedExperts | PackedLinear):
            module.engine = engine


def _check_geometry(config: Any) -> None:
    for name in ("hidden_size", "intermediate_size"):
        if getattr(config, name) % BLOCK:
            raise ModelError(
                f"{name} is {getattr(config, name)}, and MXFP4 packs {BLOCK} at a time: check config.json."
            )


def _exchange(network: Any, config: Any, storage: Storage) -> None:
    """Put our layers where transformers' would take too much memory."""
    for layer in network.model.layers:
        layer.mlp.experts = PackedExperts(
            experts=config.num_local_experts,
            hidden=config.hidden_size,
            intermediate=config.intermediate_size,
            alpha=getattr(config, "swiglu_alpha", 1.702),
            limit=getattr(config, "swiglu_limit", 7.0),
        )
        if storage.attention != "full":
            for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
                plain = getattr(layer.self_attn, name)
                kind = _LINEAR[storage.attention]
                compact = kind(plain.in_features, plain.out_features, bias=plain.bias is not None)
                setattr(layer.self_attn, name, compact)
    if storage.head != "full":
        network.lm_head = Int8Linear(config.hidden_size, config.vocab_size, bias=False)


def _host_table(config: Any, weights: Weights, dtype: torch.dtype) -> torch.Tensor:
    """The embedding's rows in host memory; on their way the device holds a few thousand of them."""
    shape = (config.vocab_size, config.hidden_size)
    table = torch.empty(shape, dtype=dtype)
    for start in range(0, shape[0], ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, shape[0])
        table[start:end] = weights.rows("model.embed_tokens.weight", shape, start, end)
    return table


def _fill(network: Any, config: Any, weights: Weights, dtype: torch.dtype, device: torch.device) -> None:
    """Read every tensor that the model has, layer by layer."""
    is_tied = config.tie_word_embeddings
    for path, module in network.named_modules():
        if module is network.model.rotary_emb:
            continue
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                source = "model.embed_tokens.weight" if is_tied and path == "lm_head" else f"{path}.{name}"
                tensor = weights.tensor(source, tuple(parameter.shape), dtype)
                module._parameters[name] = nn.Parameter(tensor, requires_grad=False)
        if isinstance(module, _FrozenLinear):
            _fill_compact(path, module, weights, dtype, device)
            continue
        for name, buffer in list(module._buffers.items()):
            if buffer is not None:
                kind = torch.uint8 if buffer.dtype == torch.uint8 else dtype
                module._buffers[name] = weights.tensor(f"{path}.{name}", tuple(buffer.shape), kind)


def _fill_compact(path: str, module: _FrozenLinear, weights: Weights, dtype: torch.dtype, device: torch.device) -> None:
    for name, buffer in list(module._buffers.items()):
        assert buffer is not None
        kind = dtype if buffer.is_floating_point() else buffer.dtype
        module._buffers[name] = torch.empty(buffer.shape, dtype=kind, device=device)
    shape = (module.out_features, module.in_features)
    module.fill(lambda start, end: weights.rows(f"{path}.weight", shape, start, end))
