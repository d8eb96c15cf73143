"""Draws several hundred answers per built-in task from a teacher model: the raw material of the starter.

Every answer is kept as drawn, wrong and unfinished ones too; `mix.py` decides what is used. A part of the answers is
drawn with a hint appended to the prompt (`PLAN`), for more than one approach per task; the starter never sees hints.

usage: python distill/sample.py TEACHER prompts.json samples.jsonl.gz [--scale 1.0]
"""

import argparse
import gzip
import json
import time
from pathlib import Path

from outpace.policy import SamplingSettings, load, sample

SHORT = "Reply with the code block only: no comments, no docstring, no examples."
PLAN = (
    # hint, temperature, answers per task
    ("", 1.0, 120),
    (SHORT, 1.0, 160),
    (f"Prefer built-in functions and comprehensions to loops. {SHORT}", 1.0, 60),
    (f"Choose the algorithm with the lowest running time. {SHORT}", 1.0, 60),
    (f"Use plain loops. {SHORT}", 0.8, 30),
    (SHORT, 0.7, 80),
    ("", 0.7, 40),
)


def main() -> None:
    """Run the plan and write one line per answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teacher")
    parser.add_argument("prompts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the plan's numbers")
    parser.add_argument("--max-batch", type=int, default=512)
    parser.add_argument("--max-new-tokens", type=int, default=320)
    args = parser.parse_args()
    prompts = json.loads(args.prompts.read_text(encoding="utf-8"))
    teacher = load(args.teacher)
    start_s, tokens = time.perf_counter(), 0
    with gzip.open(args.out, "wt", encoding="utf-8") as out:
        for number, (hint, temperature, count) in enumerate(PLAN):
            settings = SamplingSettings(
                max_new_tokens=args.max_new_tokens, temperature=temperature, max_batch=args.max_batch
            )
            asked = [_with_hint(prompt["messages"], hint) for prompt in prompts]
            drawn = sample(teacher, asked, settings, num_generations=max(1, round(count * args.scale)), seed=number)
            for one in drawn:
                record = {
                    "task": prompts[one.prompt_index]["task"],
                    "hint": hint,
                    "temperature": temperature,
                    "finished": one.finished,
                    "tokens": len(one.completion_ids),
                    "text": one.text,
                }
                out.write(json.dumps(record) + "\n")
            tokens += sum(len(one.completion_ids) for one in drawn)
            spent_s = time.perf_counter() - start_s
            print(
                f"plan {number}: {len(drawn)} answers; {tokens} tokens, {tokens / spent_s:.0f} tok/s so far", flush=True
            )


def _with_hint(messages: list[dict[str, str]], hint: str) -> list[dict[str, str]]:
    return messages if not hint else [*messages[:-1], {**messages[-1], "content": f"{messages[-1]['content']} {hint}"}]


if __name__ == "__main__":
    main()
