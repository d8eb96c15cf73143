"""A GGUF file becomes a folder of safetensors once; later loads read the folder.

A model that transformers loads from GGUF directly counts as quantised: the Trainer refuses it and it cannot be saved.
Not covered: architectures that transformers cannot read from GGUF, and keeping the quantised size (weights are
written in bfloat16).
"""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from outpace.errors import ModelError
from outpace.policy.locate import cache_folder

_CONTROL_TOKEN = 3  # the GGUF token type of control tokens such as <|im_end|>
_FORMAT = "1"  # part of the cache key: raise it when the conversion changes


def converted_folder(gguf: Path, cache_dir: Path | None = None) -> Path:
    """Return the safetensors folder made from `gguf`, converting it at the first call; raises ModelError."""
    root = cache_folder(cache_dir)
    target = root / f"{gguf.stem}-{_fingerprint(gguf)}"
    if (target / "config.json").is_file():
        return target
    try:
        root.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{gguf.stem}-", dir=root))
    except OSError as error:
        raise ModelError(
            f"The converted model cannot be kept in {root} ({error.strerror}): set OUTPACE_CACHE to a writable folder."
        ) from error
    try:
        _convert(gguf, scratch)
        _move_into_place(scratch, target)
    except OSError as error:
        raise ModelError(f"{gguf.name} could not be converted into {root}: {error}.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _fingerprint(gguf: Path) -> str:
    """Name a GGUF file's contents by its size and its first and last MiB: quick, and different files differ there."""
    size = gguf.stat().st_size
    with gguf.open("rb") as stream:
        head = stream.read(2**20)
        stream.seek(max(0, size - 2**20))
        tail = stream.read()
    return hashlib.sha256(f"{_FORMAT} {size} ".encode() + head + tail).hexdigest()[:12]


def _move_into_place(scratch: Path, target: Path) -> None:
    try:
        scratch.replace(target)
    except OSError:
        if not (target / "config.json").is_file():  # another process may have finished first
            raise


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from outpace.policy.quiet import quiet_transformers

    source: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    with quiet_transformers():
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **source)
            model = AutoModelForCausalLM.from_pretrained(
                str(gguf.parent), dtype=torch.bfloat16, **source, **_dequantize()
            )
        except Exception as error:  # a damaged file fails in the reader in many ways
            raise ModelError(f"{gguf.name} cannot be read as a GGUF model: {_first_line(error)}") from error
        _mark_control_tokens(tokenizer, gguf)
        # Saved as loaded, the model would still claim to be quantised and Trainer would refuse it.
        for holder in (model.config, model):
            for name in ("quantization_config", "hf_quantizer", "is_quantized", "quantization_method"):
                if name in vars(holder):
                    delattr(holder, name)
        model.config.architectures = [type(model).__name__]
        model.generation_config.eos_token_id = tokenizer.eos_token_id
        model.generation_config.pad_token_id = tokenizer.pad_token_id
        tokenizer.clean_up_tokenization_spaces = False
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _dequantize() -> dict[str, Any]:
    """Keyword arguments that make transformers hand out plain weights; older releases always do."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _mark_control_tokens(tokenizer: Any, gguf: Path) -> None:
    """Make every control token of the file a special token, so that text can never be split across one."""
    from gguf import GGUFReader

    fields = GGUFReader(str(gguf)).fields
    types, tokens = fields.get("tokenizer.ggml.token_type"), fields.get("tokenizer.ggml.tokens")
    if types is None or tokens is None:
        return
    control = [token for token, kind in zip(tokens.contents(), types.contents(), strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens({"additional_special_tokens": control})


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
