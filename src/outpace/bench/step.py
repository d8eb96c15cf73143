"""`outpace bench step`: a whole GRPO step by phases, with our sampler and with others, in one run.

Each sampler trains the same recipe from the same weights in a process state of its own turn; the first step is left
out, for it compiles, captures and allocates. Not covered: learning.
"""

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from outpace.config import Recipe, plan_batches
from outpace.errors import ConfigError, InfrastructureError
from outpace.records import RunFolder
from outpace.training import train

SAMPLERS = ("group", "transformers")


def run(recipe: Recipe, *, steps: int = 4, samplers: Sequence[str] = SAMPLERS) -> dict[str, Any]:
    """Train `steps` updates with each sampler and compare.

    Returns:
        By sampler the median seconds of a step and of its phases, `completion_tokens`, the median of the steps' mean
        lengths, `tokens_per_s` of sampling, `hidden_share`, the part of scoring time that passed while completions
        were still being drawn, and `reserved_GB`, the most GPU memory (None without a GPU); and `ratio`, how many
        times as long a step takes with the last sampler as with the first.

    Raises:
        ConfigError: a sampler is not installed, or none is named.
    """
    unknown = sorted({*samplers} - {*SAMPLERS, "vllm"})
    if unknown or not samplers:
        raise ConfigError(f"no sampler is called {', '.join(unknown) or 'nothing'}: name group, transformers or vllm")
    figures: dict[str, Any] = {name: _train(recipe, name, steps) for name in samplers}
    first, last = figures[samplers[0]], figures[samplers[-1]]
    return {**figures, "ratio": last["step_s"] / first["step_s"], "model": recipe.model, "steps": steps}


def _train(recipe: Recipe, sampler: str, steps: int) -> dict[str, Any]:
    changes = {"sampler": sampler, "max_steps": steps + 1, "eval_samples": 0, "save_steps": steps + 1, "report_to": []}
    with tempfile.TemporaryDirectory(prefix="outpace-bench-") as folder:
        changed = Recipe.model_validate({**recipe.model_dump(), **changes, "output_dir": folder, "name": sampler})
        run_folder = RunFolder.create(folder, sampler)
        result = train(changed, run_folder, Console(quiet=True))
        if result.status != "finished":
            raise InfrastructureError(f"the run with sampler {sampler} was interrupted after {result.steps} steps")
        sampled = plan_batches(changed).completions_per_generation
        return _summary(RunFolder(Path(folder) / sampler).metrics(), sampled)


def _summary(records: Sequence[dict[str, Any]], completions: int) -> dict[str, Any]:
    """Medians over the steps after the first, each of which sampled that many completions."""
    later = [record for record in records if "seconds/step" in record][1:]
    names = sorted({key for record in later for key in record if key.startswith("seconds/")})
    seconds = {
        f"{name.removeprefix('seconds/')}_s": statistics.median(record.get(name, 0.0) for record in later)
        for name in names
    }
    rates = [
        record["completions/mean_length"] * completions / record["seconds/sample"]
        for record in later
        if record.get("seconds/sample")
    ]
    hidden, exposed = seconds.get("score_hidden_s", 0.0), seconds.get("score_exposed_s", 0.0)
    return {
        **seconds,
        "completion_tokens": statistics.median(record["completions/mean_length"] for record in later),
        "tokens_per_s": statistics.median(rates) if rates else None,
        "hidden_share": hidden / (hidden + exposed) if hidden + exposed else None,
        "reserved_GB": max(
            (record["memory/reserved_GB"] for record in records if "memory/reserved_GB" in record), default=None
        ),
    }
