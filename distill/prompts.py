"""Writes the built-in tasks' prompts to a JSON file, so that sampling can run where tasks are not loaded.

usage: python distill/prompts.py prompts.json
"""

import json
import sys
from pathlib import Path

from outpace.tasks import load


def main(out: Path) -> None:
    """Write one record per built-in task: id, split, entry point and messages."""
    records = [
        {
            "task": task.id,
            "split": task.split,
            "entry_point": task.entry_point,
            "messages": [dict(m) for m in task.prompt],
        }
        for task in load("builtin")
    ]
    out.write_text(json.dumps(records, indent=1), encoding="utf-8")
    print(f"{len(records)} prompts -> {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
