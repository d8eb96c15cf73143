"""Data for SFT and DPO on the same tasks and budget: references, or the policy's own graded answers.

SFT learns from answers that are right; DPO from pairs of a right and a wrong answer to one task. The data is written
into the run folder once, so a resumed run learns from the same.
"""

import random
from collections.abc import Sequence
from typing import Any

from outpace.config import Recipe
from outpace.errors import ConfigError, TaskError
from outpace.evaluate import EvalSettings, SampleCompletions
from outpace.records import RunFolder, read_jsonl, write_jsonl
from outpace.schema import Outcome, Task, Verdict
from outpace.training.rewards import Grades

_FILE = "training-data.jsonl"


def training_data(
    recipe: Recipe, tasks: Sequence[Task], draw: SampleCompletions, grader: Grades, run: RunFolder
) -> list[dict[str, Any]]:
    """Rows for TRL's SFTTrainer (`prompt`, `completion`) or DPOTrainer (`prompt`, `chosen`, `rejected`).

    Raises:
        ConfigError: the policy's answers give no example to learn from.
        TaskError: a task has no reference to learn from.
    """
    path = run.path / _FILE
    rows = read_jsonl(path)
    if not rows:
        if recipe.method == "sft" and recipe.sft_source == "reference":
            rows = [_row(task, completion=_fenced(_reference(task))) for task in tasks]
        else:
            rows = _from_own_answers(recipe, tasks, draw, grader)
        random.Random(recipe.seed).shuffle(rows)
        write_jsonl(path, rows)
    return rows


def _from_own_answers(
    recipe: Recipe, tasks: Sequence[Task], draw: SampleCompletions, grader: Grades
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    settings = EvalSettings(
        samples_per_task=recipe.samples_per_task,
        temperature=recipe.temperature,
        max_completion_length=recipe.max_completion_length,
        k_values=(1,),
    )
    for number, task in enumerate(tasks):
        completions = draw([task], settings, recipe.seed + number)[0]
        texts = [completion if isinstance(completion, str) else completion.text for completion in completions]
        group = grader.open_group(task, len(texts))
        for index, text in enumerate(texts):
            group.add(index, text)
        verdicts = group.result()
        rows += _pairs(task, texts, verdicts) if recipe.method == "dpo" else _correct(task, texts, verdicts)
    if not rows:
        wanted = "a right and a wrong answer to one task" if recipe.method == "dpo" else "a right answer"
        raise ConfigError(
            f"{len(tasks) * recipe.samples_per_task} samples held not once {wanted}, so {recipe.method} has nothing to "
            "learn from: raise samples_per_task, choose easier tasks, or use sft_source=reference"
        )
    return rows


def _correct(task: Task, texts: Sequence[str], verdicts: Sequence[Verdict | None]) -> list[dict[str, Any]]:
    right = {t: None for t, v in zip(texts, verdicts, strict=True) if v is not None and v.outcome is Outcome.CORRECT}
    return [_row(task, completion=text) for text in right]


def _pairs(task: Task, texts: Sequence[str], verdicts: Sequence[Verdict | None]) -> list[dict[str, Any]]:
    right = [t for t, v in zip(texts, verdicts, strict=True) if v is not None and v.outcome is Outcome.CORRECT]
    wrong = [t for t, v in zip(texts, verdicts, strict=True) if v is not None and v.outcome is not Outcome.CORRECT]
    pairs = zip(dict.fromkeys(right), dict.fromkeys(wrong), strict=False)
    return [_row(task, chosen=chosen, rejected=rejected) for chosen, rejected in pairs]


def _row(task: Task, **answers: str) -> dict[str, Any]:
    row: dict[str, Any] = {"prompt": [dict(message) for message in task.prompt]}
    return row | {name: [{"role": "assistant", "content": text}] for name, text in answers.items()}


def _reference(task: Task) -> str:
    if task.reference is None:
        raise TaskError(f"task {task.id} has no reference to learn from: use sft_source=own_correct")
    return task.reference


def _fenced(source: str) -> str:
    return f"```python\n{source.strip()}\n```"
