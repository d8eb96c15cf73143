"""What a run's numbers come from, written before the first of them; and the run's lock."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from outpace.config import Recipe
from outpace.grade import Grader
from outpace.policy import Policy, count_parameters
from outpace.records import RunFolder, describe_machine, list_checkpoints
from outpace.training.choice import SamplerChoice
from outpace.training.environment import processes, rank
from outpace.training.precision import Precision


@contextmanager
def held(run: RunFolder, *, is_main: bool) -> Iterator[None]:
    """Hold the run's lock in the process that writes; the others write only samples of their own."""
    if is_main:
        with run.lock():
            yield
    else:
        yield


def write(
    run: RunFolder, recipe: Recipe, policy: Policy, grader: Grader, precision: Precision, sampler: SamplerChoice
) -> None:
    """Write `provenance.json`; each start and resume is added to `starts`."""
    if rank() != 0:
        return
    earlier = run.read_json("provenance.json") or {}
    known = list_checkpoints(run.path)
    start = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "from_step": known[-1].step if known else 0,
        "command": sys.argv,
    }
    run.write_json(
        "provenance.json",
        {
            **describe_machine(),
            "accelerators": accelerators(),
            "seed": recipe.seed,
            "processes": processes(),
            "policy": dict(policy.provenance),
            "parameters": count_parameters(policy.model).total,
            "precision": asdict(precision),
            "sampler": asdict(sampler),
            "departures_from_textbook": recipe.departures(),
            "isolation": asdict(grader.isolation()),
            "defences_off": dict(grader.settings.switched_off()),
            "starts": [*earlier.get("starts", []), start],
        },
    )


def add_weights(run: RunFolder, counts: dict[str, Any]) -> None:
    """Add how many weights there are, how they are kept and which are trained: known when adapters are attached."""
    run.write_json("provenance.json", {**(run.read_json("provenance.json") or {}), "weights": counts})


def accelerators() -> list[dict[str, Any]]:
    """Name and memory of every GPU that torch sees."""
    import torch

    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return [{"name": gpu.name, "memory_bytes": gpu.total_memory} for gpu in found]
