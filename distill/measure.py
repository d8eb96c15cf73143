"""Measures a policy on the built-in tasks: outcomes, distinct right programs, speed-ups, length, tokens per second.

usage: python distill/measure.py MODEL measured.json [--samples 32] [--tasks builtin] [--speed]
"""

import argparse
import json
import statistics
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from outpace.grade import Grader, GradeSettings
from outpace.policy import Generation, SamplingSettings, load, sample
from outpace.schema import Outcome, Task, Verdict
from outpace.tasks import load as load_tasks


def main() -> None:
    """Sample, grade and write shares per task and over all tasks of a split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--tasks", default="builtin")
    parser.add_argument("--speed", action="store_true", help="time the right ones too")
    args = parser.parse_args()
    policy, tasks = load(args.model), load_tasks(args.tasks)
    start_s = time.perf_counter()
    drawn = sample(
        policy, [task.prompt for task in tasks], SamplingSettings(max_new_tokens=256), num_generations=args.samples
    )
    spent_s = time.perf_counter() - start_s
    tokens = sum(len(one.completion_ids) for one in drawn)
    print(f"{len(drawn)} completions, {tokens / len(drawn):.0f} tokens each, {tokens / spent_s:.0f} tok/s")
    groups: dict[int, list[Generation]] = defaultdict(list)
    for one in drawn:
        groups[one.prompt_index].append(one)
    rows = []
    with Grader(settings=GradeSettings(measure_speed=args.speed)) as grader:
        for index, task in enumerate(tasks):
            group = groups[index]
            verdicts = grader.grade_group([one.text for one in group], task, finished_G=[one.finished for one in group])
            rows.append(_row(task, group, verdicts))
            print(rows[-1], flush=True)
    for split in sorted({row["split"] for row in rows}):
        chosen = [row for row in rows if row["split"] == split]
        means = {
            key: round(statistics.mean(row[key] for row in chosen), 3) for key in ("parses", "compliant", "correct")
        }
        means["distinct_correct"] = statistics.mean(row["distinct_correct"] for row in chosen)
        print(split, len(chosen), "tasks", means)
    args.out.write_text(json.dumps({"tokens_per_s": tokens / spent_s, "tasks": rows}, indent=1), encoding="utf-8")


def _row(task: Task, group: list[Generation], verdicts: list[Verdict | None]) -> dict[str, Any]:
    known = [(one, verdict) for one, verdict in zip(group, verdicts, strict=True) if verdict is not None]
    right = [(one, verdict) for one, verdict in known if verdict.outcome is Outcome.CORRECT]
    ratios = [verdict.timing.ratio for _, verdict in right if verdict.timing is not None]
    count = max(1, len(known))
    return {
        "task": task.id,
        "split": task.split,
        "samples": len(known),
        "parses": sum(v.static is not None and v.static.parses for _, v in known) / count,
        "compliant": sum(v.static is not None and v.static.is_compliant for _, v in known) / count,
        "correct": len(right) / count,
        "distinct_correct": len({verdict.candidate.source for _, verdict in right if verdict.candidate}),
        "outcomes": dict(Counter(verdict.outcome.value for _, verdict in known)),
        "median_ratio": round(statistics.median(ratios), 2) if ratios else None,
        "best_ratio": round(max(ratios), 2) if ratios else None,
        "tokens": statistics.mean(len(one.completion_ids) for one in group),
    }


if __name__ == "__main__":
    main()
