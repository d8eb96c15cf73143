"""Loads a policy: `starter`, `smollm2`, a local folder (a model or a PEFT adapter), a GGUF file or a hub id.

A gpt-oss checkpoint stays in its 4 bits (`outpace.policy.mxfp4`). Not covered: fetching packages. Local specs use no
network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outpace.errors import ModelError
from outpace.policy.convert_gguf import converted_folder
from outpace.policy.locate import Source, adapter_base, hub_answers, locate, weights_digest
from outpace.policy.quiet import quiet_transformers

if TYPE_CHECKING:
    import torch

_FALLBACK_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ':\\n' + message['content'] + '\\n\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:\\n' }}{% endif %}"
)
_UNUSED_PAD_TOKENS = ("<|endoftext|>", "<pad>", "[PAD]", "<|finetune_right_pad_id|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A model with its tokenizer and what is known about both; `model` is a transformers or PEFT model."""

    model: Any
    tokenizer: Any
    spec: str
    """What the user asked for; loading it again gives the same base model."""
    eos_ids: tuple[int, ...]
    """Every token that ends a completion."""
    pad_id: int
    architectures: tuple[str, ...] = ()
    folder: Path | None = None
    """The folder the weights were read from; None for a hub id."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """`spec`, `sha256` (or the hub's `commit`), `architecture`, `dtype`: strings for a run's record."""

    @property
    def device(self) -> "torch.device":
        """Where the weights lie."""
        device: torch.device = next(self.model.parameters()).device
        return device


def load(
    model: str,
    *,
    dtype: "str | torch.dtype | None" = None,
    device: "str | torch.device | None" = None,
    cache_dir: Path | None = None,
    card_GB: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """Load the policy named `model` in evaluation mode.

    Args:
        model: `starter`, `smollm2`, a folder, a `.gguf` file or a hub id.
        dtype: `float32`, `bfloat16` or `float16`; by default bfloat16 on a GPU and float32 on a CPU, where half
            precision is slower.
        device: by default the first GPU, else the CPU.
        cache_dir: where a converted GGUF is kept (default: `$OUTPACE_CACHE`, else the user's cache folder).
        card_GB: GPU memory to stay within, in 10^9 bytes, by default all there is; it decides how gpt-oss is kept.
        options: transformers' own loading options, such as `revision` or `quantization_config`; with a `device_map`
            among them the model stays where that puts it.

    Raises:
        ModelError: the model is missing, has no weights or cannot be read; the message names the remedy.
    """
    source, options = locate(model), options or {}
    target = _pick_device(device)
    kind = _pick_dtype(dtype, target)
    if source.hub_id is not None and not hub_answers():
        source = _from_hub_cache(source)
    if source.folder is not None and (base := adapter_base(source.folder)) is not None:
        below = load(base, dtype=kind, device=target, cache_dir=cache_dir, card_GB=card_GB, options=options)
        return _load_adapter(source, base, below)
    if source.gguf is not None:
        source = Source(spec=source.spec, folder=converted_folder(source.gguf, cache_dir))
    network, tokenizer = _read_packed(source, kind, target, card_GB) or _read(source, kind, options)
    placed = network if "device_map" in options else network.to(target)
    return _assemble(source, placed.eval(), tokenizer)


def _read_packed(
    source: Source, dtype: "torch.dtype", device: "torch.device", card_GB: float | None
) -> tuple[Any, Any] | None:
    """A gpt-oss model whose experts stay packed as in its checkpoint; None: the source is no such checkpoint."""
    from transformers import AutoTokenizer

    from outpace.policy.mxfp4 import build
    from outpace.policy.storage import Storage

    folder = build.packed_folder(str(source.folder or source.hub_id))
    if folder is None:
        return None
    with quiet_transformers():
        storage = None if card_GB is None else Storage.within(card_GB)
        network = build.load_network(folder, dtype=dtype, device=device, storage=storage)
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:  # see _read
            raise ModelError(_explain(source, error)) from error
    network.config._name_or_path = source.spec
    return network, tokenizer


def _read(source: Source, dtype: "torch.dtype", asked: Mapping[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = str(source.folder) if source.folder is not None else source.hub_id
    options: dict[str, Any] = {"local_files_only": source.folder is not None}
    shared = {name: asked[name] for name in ("revision", "trust_remote_code") if name in asked}
    with quiet_transformers():
        try:
            network = AutoModelForCausalLM.from_pretrained(place, dtype=dtype, **options, **asked)
            tokenizer = AutoTokenizer.from_pretrained(place, **options, **shared)
        except Exception as error:  # the many ways in which a folder can be damaged have no common type
            raise ModelError(_explain(source, error)) from error
    network.config._name_or_path = source.spec  # adapters record this as their base
    return network, tokenizer


def _from_hub_cache(source: Source) -> Source:
    """The snapshot that an earlier download left here; raises ModelError when there is none."""
    from huggingface_hub import try_to_load_from_cache

    assert source.hub_id is not None
    config = try_to_load_from_cache(source.hub_id, "config.json")
    if not isinstance(config, str):
        raise ModelError(_explain(source, OSError("the hub cannot be reached")))
    return Source(spec=source.spec, folder=Path(config).parent)


def _explain(source: Source, error: Exception) -> str:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
    if source.hub_id is not None:
        return (
            f"{source.spec} is no folder here and could not be had from the Hugging Face hub: "
            "check the name and the network, or download it and give its folder."
        )
    return f"{source.spec} could not be loaded ({reason}): check that config, tokenizer and weights belong together."


def _assemble(source: Source, network: Any, tokenizer: Any) -> Policy:
    eos_ids = _end_tokens(network, tokenizer)
    if not eos_ids:
        raise ModelError(
            f"{source.spec} names no end token: set eos_token_id in its generation_config.json or tokenizer."
        )
    pad_id = _ensure_pad(network, tokenizer, eos_ids)
    if getattr(tokenizer, "chat_template", None) is None:
        tokenizer.chat_template = _FALLBACK_CHAT_TEMPLATE
    tokenizer.padding_side = "left"
    architectures = tuple(network.config.architectures or (type(network).__name__,))
    provenance = {"spec": source.spec, "architecture": architectures[0], "dtype": str(network.dtype)}
    if (storage := getattr(network, "storage", None)) is not None:
        provenance["storage"] = storage.describe()
    if source.folder is not None:
        provenance["sha256"] = weights_digest(source.folder)
    elif commit := getattr(network.config, "_commit_hash", None):
        provenance["commit"] = str(commit)
    return Policy(
        model=network,
        tokenizer=tokenizer,
        spec=source.spec,
        eos_ids=eos_ids,
        pad_id=pad_id,
        architectures=architectures,
        folder=source.folder,
        provenance=provenance,
    )


def _load_adapter(source: Source, base: str, below: Policy) -> Policy:
    from peft import PeftModel

    from outpace.policy import mxfp4

    assert source.folder is not None
    try:
        if mxfp4.is_packed(below.model):
            network = mxfp4.attach_saved(below.model, str(source.folder))
            return _adapted(source, base, below, network)
        with quiet_transformers():
            network = PeftModel.from_pretrained(below.model, str(source.folder), is_trainable=True)
    except Exception as error:  # see _read
        raise ModelError(_explain(source, error)) from error
    return _adapted(source, base, below, network)


def _adapted(source: Source, base: str, below: Policy, network: Any) -> Policy:
    from dataclasses import replace

    assert source.folder is not None
    digest = weights_digest(source.folder)
    return replace(
        below,
        model=network.eval(),
        spec=source.spec,
        folder=source.folder,
        provenance={**below.provenance, "spec": source.spec, "base": base, "adapter_sha256": digest},
    )


def _end_tokens(network: Any, tokenizer: Any) -> tuple[int, ...]:
    """All end tokens: those of the generation config first, then the tokenizer's own."""
    found: dict[int, None] = {}
    for named in (
        getattr(network.generation_config, "eos_token_id", None),
        getattr(network.config, "eos_token_id", None),
        tokenizer.eos_token_id,
    ):
        for token in named if isinstance(named, list | tuple) else [named]:
            if token is not None:
                found[int(token)] = None
    return tuple(found)


def _ensure_pad(network: Any, tokenizer: Any, eos_ids: tuple[int, ...]) -> int:
    """Give the tokenizer a pad token when it has none: an unused special token, else the end token.

    Nothing of ours recognises padding by its id (masks do that), so sharing the end token hides no end.
    """
    if tokenizer.pad_token_id is None:
        vocabulary = tokenizer.get_vocab()
        unused = [name for name in _UNUSED_PAD_TOKENS if name in vocabulary and vocabulary[name] not in eos_ids]
        tokenizer.pad_token = unused[0] if unused else tokenizer.convert_ids_to_tokens(eos_ids[0])
    pad_id = int(tokenizer.pad_token_id)
    network.generation_config.pad_token_id = pad_id
    network.generation_config.eos_token_id = list(eos_ids)
    if network.config.pad_token_id is None:
        network.config.pad_token_id = pad_id
    return pad_id


def _pick_device(device: "str | torch.device | None") -> "torch.device":
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ModelError(f"There is no device {device!r}: use cpu, cuda or cuda:0.") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ModelError("The device cuda was asked for, but torch sees no GPU here: use device=cpu.")
    return chosen


def _pick_dtype(dtype: "str | torch.dtype | None", device: "torch.device") -> "torch.dtype":
    import torch

    if dtype is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if isinstance(dtype, torch.dtype):
        return dtype
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype not in known:
        raise ModelError(f"There is no dtype {dtype!r}: use {', '.join(known)}.")
    return known[dtype]
