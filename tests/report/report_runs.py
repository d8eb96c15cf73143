"""Small run folders with what a test wants to see in a report."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaluation_fakes import SETTINGS, graded

from outpace import evaluate as ev
from outpace.evaluate import Cost, GradedSample, summarise
from outpace.schema import Isolation, Outcome

COST = Cost(sampling_s=75.0, grading_s=0.5, peak_rss_bytes=1_500_000_000)
ISOLATION = Isolation(
    level="strict", layers=("landlock", "seccomp"), missing={"cgroup": "not delegated"}, clock="exact"
)


def samples(correct: int, speedup: float = 2.0, **facts: Any) -> list[GradedSample]:
    """Two tasks (one held out) with four samples each, of which the first `correct` are correct."""
    return [
        graded(
            Outcome.CORRECT if index < correct else Outcome.WRONG,
            task_id=task_id,
            split=split,
            index=index,
            speedup=speedup if index < correct else None,
            **facts,
        )
        for task_id, split in (("fake/a", "train"), ("fake/b", "heldout"))
        for index in range(4)
    ]


def save(folder: Path, name: str, found: Iterable[GradedSample]) -> None:
    ev.save(summarise(name, list(found), SETTINGS, COST, ISOLATION), folder, name)


def make_run(folder: Path, *, before: int | None = 1, after: int | None = 4, steps: int = 3, **facts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text("method: grpo\nmodel: starter\nmax_steps: 3\nrewards: {speed: 1.0}\n")
    (folder / "provenance.json").write_text('{"outpace": "0.1.0", "starts": [{"step": 0}], "gpu": null}')
    records = [{"step": step, "reward": step / 2, "components/speed/mean": 0.5} for step in range(1, steps + 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    if before is not None:
        save(folder, "before", samples(before, 1.0, **facts))
    if after is not None:
        save(folder, "after", samples(after, **facts))
    return folder
