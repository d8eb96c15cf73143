"""Mixes the starter's training set: the teacher's answers as they came, and more of the right ones.

Whole answers of at most 800 characters, right or wrong, 380 per task at random; then right ones (judged, repaired or
written by hand) until about `--right` of a task's answers are right, a teacher's one at most `--repeat` times. Without
this a model of 5 M parameters, which blurs what it copies, would be right too seldom to learn from its own samples.

usage: python distill/mix.py prompts.json samples.jsonl.gz judged.jsonl selected.jsonl.gz
"""

import argparse
import gzip
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from trim import trim
from written import programs, renamed

MAX_CHARS = 800
NATURAL = 380  # answers per task as they came


def main() -> None:
    """Write one line per training answer: task, text, origin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("judged", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    parser.add_argument("--right", type=float, default=0.45)
    parser.add_argument("--repeat", type=int, default=6)
    args = parser.parse_args()
    rng = random.Random(0)
    entry_points = {p["task"]: p["entry_point"] for p in json.loads(args.prompts.read_text(encoding="utf-8"))}
    drawn = _drawn(args.samples, entry_points)
    judged: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in args.judged:
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            judged[record["task"]].append(record)
    by_hand = programs()
    with gzip.open(args.out, "wt", encoding="utf-8") as out:
        for task in entry_points:
            chosen, note = _mix(drawn[task], judged[task], by_hand.get(task, []), args.right, args.repeat, rng)
            for text, origin in chosen:
                out.write(json.dumps({"task": task, "text": text, "origin": origin}) + "\n")
            print(f"{task}: {note}")


def _drawn(samples: Path, entry_points: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    with gzip.open(samples, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            text = trim(record["text"], entry_points[record["task"]])
            if (record["finished"] or text.endswith("```")) and len(text) <= MAX_CHARS:
                found[record["task"]][text] = None
    return {task: list(texts) for task, texts in found.items()}


def _mix(
    drawn: list[str],
    judged: list[dict[str, Any]],
    by_hand: list[str],
    right_share: float,
    repeat: int,
    rng: random.Random,
) -> tuple[list[tuple[str, str]], str]:
    right = [(r["text"], r["origin"]) for r in judged if r["outcome"] == "correct"]
    share_drawn = sum(1 for r in judged if r["outcome"] == "correct" and r["origin"] == "drawn")
    share_drawn /= max(1, sum(1 for r in judged if r["origin"] == "drawn"))
    natural = [(text, "drawn") for text in rng.sample(drawn, min(len(drawn), NATURAL))]
    wanted = max(60, round((right_share - share_drawn) / (1 - right_share) * len(natural)))
    written = [(f"```python\n{renamed(source, rng)}\n```", "written") for source in by_hand for _ in range(150)]
    rng.shuffle(written)
    rng.shuffle(right)
    from_teacher = (right * repeat)[: round(wanted * 0.6)]
    extra = from_teacher + written[: wanted - len(from_teacher)]
    kinds = {text for text, origin in extra if origin == "written"}
    note = (
        f"{len(natural)} drawn ({share_drawn:.0%} right), +{len(from_teacher)} right ones repeated "
        f"({len(set(from_teacher))} distinct), +{len(extra) - len(from_teacher)} written ({len(kinds)} distinct)"
    )
    return natural + extra, note


if __name__ == "__main__":
    main()
