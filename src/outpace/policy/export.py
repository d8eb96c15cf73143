"""Writes a trained policy as a plain model folder that transformers, vLLM and others load; adapters are merged."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from outpace.errors import ModelError
from outpace.policy.load import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    folder: Path
    size_bytes: int
    merged_adapter: bool
    rounding: str | None = None
    """What packing merged experts into 4 bits cost, in a sentence; None where nothing was packed."""


def export(
    policy: Policy,
    folder: Path | str,
    *,
    overwrite: bool = False,
    experts: Literal["bfloat16", "mxfp4"] = "bfloat16",
    say: Callable[[str], None] = lambda line: None,
) -> Exported:
    """Merge adapters, if any, and save weights, tokenizer, chat template and end tokens under `folder`.

    The policy's own model is used up: its adapters are gone afterwards (packed experts keep theirs).

    Args:
        policy: what was trained.
        folder: where to; it must be empty or absent.
        overwrite: empty it first.
        experts: how packed experts are written; other models ignore it.
        say: hears what packing cost.

    Raises:
        ModelError: the folder has something in it and `overwrite` is not asked for.
    """
    from outpace.policy import mxfp4

    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        if not overwrite:
            raise ModelError(f"{target} is not empty: choose another folder, or pass --overwrite")
        shutil.rmtree(target)
    has_adapter = hasattr(policy.model, "merge_and_unload")
    rounding = None
    if mxfp4.is_packed(policy.model):
        rounding = mxfp4.export_packed(policy.model, target, experts=experts, say=say)
    else:
        model = policy.model.merge_and_unload() if has_adapter else policy.model
        model.save_pretrained(target)
    policy.tokenizer.save_pretrained(target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return Exported(
        folder=target, size_bytes=size, merged_adapter=has_adapter, rounding=rounding.describe() if rounding else None
    )
