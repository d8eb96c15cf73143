"""Reads tensors of a checkpoint in safetensors files, whole or some rows at a time, straight to the device.

What is asked for must be there in the right shape and type: the sentence of the error names tensor and file. Not
covered: other formats (`outpace.policy.convert_gguf`) and downloading.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from outpace.errors import ModelError

_INDEX = "model.safetensors.index.json"


class Weights(Protocol):
    """Where a model's tensors come from."""

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """The tensor in that shape; floats are converted to `dtype`, bytes must be bytes."""
        ...

    def rows(self, name: str, shape: tuple[int, ...], start: int, end: int) -> Tensor:
        """Rows [start, end) of a float tensor."""
        ...


class Checkpoint:
    """A folder of safetensors files, one or many with an index; use it as a context, since files stay open."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        self._folder, self._device = folder, device
        self._files: dict[str, Any] = {}
        self._stack = ExitStack()
        self._place = self._find()

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.clear()
        self._stack.close()

    def __contains__(self, name: str) -> bool:
        return name in self._place

    def names(self) -> Iterator[str]:
        """Every tensor's name."""
        return iter(self._place)

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See `Weights`."""
        self._check(name, shape, is_bytes=dtype == torch.uint8)
        tensor: Tensor = self._open(name).get_tensor(name)
        return tensor.to(dtype)

    def rows(self, name: str, shape: tuple[int, ...], start: int, end: int) -> Tensor:
        """See `Weights`."""
        self._check(name, shape, is_bytes=False)
        part: Tensor = self._open(name).get_slice(name)[start:end]
        return part

    def _find(self) -> dict[str, str]:
        """Tensor name -> file name."""
        index = self._folder / _INDEX
        if index.is_file():
            try:
                place = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
            except (ValueError, KeyError, TypeError) as error:
                raise ModelError(f"{index} names no files for its tensors: download it again.") from error
            missing = sorted(name for name in set(place.values()) if not (self._folder / name).is_file())
            if missing:
                raise ModelError(
                    f"{self._folder} lacks {len(missing)} of its {len(set(place.values()))} weight files, "
                    f"{missing[0]} first: download them again."
                )
            return place
        found: dict[str, str] = {}
        for file in sorted(self._folder.glob("*.safetensors")):
            found |= dict.fromkeys(self._file(file.name).keys(), file.name)
        return found

    def _file(self, name: str) -> Any:
        from safetensors import SafetensorError, safe_open

        if name not in self._files:
            try:
                opened = safe_open(self._folder / name, framework="pt", device=str(self._device))
                self._files[name] = self._stack.enter_context(opened)
            except (SafetensorError, OSError) as error:
                raise ModelError(f"{self._folder / name} is damaged ({error}): download it again.") from error
        return self._files[name]

    def _open(self, name: str) -> Any:
        from safetensors import SafetensorError

        file = self._file(self._place[name])
        try:
            file.get_slice(name)
        except SafetensorError as error:
            raise ModelError(
                f"{self._folder / self._place[name]} does not hold {name}, though the index says so: download it again."
            ) from error
        return file

    def _check(self, name: str, shape: tuple[int, ...], *, is_bytes: bool) -> None:
        if name not in self._place:
            raise ModelError(self._absent(name))
        part = self._open(name).get_slice(name)
        kind, found = str(part.get_dtype()), tuple(part.get_shape())
        wanted = "U8" if is_bytes else "a float type (BF16, F16, F32)"
        is_right_kind = kind == "U8" if is_bytes else kind in ("BF16", "F16", "F32", "F64")
        if found != shape or not is_right_kind:
            raise ModelError(
                f"{name} is {found} {kind}, and config.json needs {shape} in {wanted}: "
                "check that config and weights belong together."
            )

    def _absent(self, name: str) -> str:
        plain = name.removesuffix("_blocks").removesuffix("_scales")
        if plain != name and plain in self._place:
            return (
                f"{plain} is not packed in MXFP4: load this checkpoint without quantization_config in its config.json."
            )
        return f"{self._folder} has no tensor {name}: its weights are incomplete or belong to another model."


class RandomWeights:
    """Numbers of the size that trained weights have, for measuring memory and speed without a checkpoint."""

    def __init__(self, device: torch.device, seed: int = 0) -> None:
        self._device = device
        self._generator = torch.Generator(device=device).manual_seed(seed)

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See `Weights`."""
        if dtype != torch.uint8:
            return self._normal(shape).to(dtype) if not name.endswith("norm.weight") else self._ones(shape, dtype)
        if name.endswith("_scales"):
            return torch.full(shape, 120, dtype=dtype, device=self._device)  # 2**-7: codes are about 3 in the mean
        return torch.randint(0, 256, shape, dtype=dtype, device=self._device, generator=self._generator)

    def rows(self, name: str, shape: tuple[int, ...], start: int, end: int) -> Tensor:
        """See `Weights`."""
        return self._normal((end - start, *shape[1:]))

    def _normal(self, shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, device=self._device, generator=self._generator) * 0.02

    def _ones(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.ones(shape, dtype=dtype, device=self._device)
