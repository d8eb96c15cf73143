"""The one place where a prompt's wording is decided.

A prompt says what to write, gives one example, and states the rules that the grader holds to: Python version, allowed
imports, no threads or processes, one code block. It is kept near 100 words, because small models read it too.
"""

import sys
from collections.abc import Iterable

from outpace.errors import TaskError
from outpace.schema import Message, Task

READABLE_MODULES = ("math", "itertools", "functools", "operator", "collections", "heapq", "bisect", "re", "string")
"""The allowed modules that are worth naming; the full list is the static check's."""

PYTHON_VERSION = f"Python {sys.version_info.major}.{sys.version_info.minor}"
"""The version a candidate runs under: the running interpreter's."""


def imports_sentence(allowed_modules: Iterable[str] | None) -> str:
    """Say which imports are allowed; None means the default list of the static check."""
    if allowed_modules is None:
        return f"Allowed imports: {', '.join(READABLE_MODULES)} and similar standard-library modules."
    names = sorted(allowed_modules)
    return f"Allowed imports: {', '.join(names)}." if names else "Allowed imports: none."


def build_prompt(
    statement: str,
    signature: str,
    *,
    example: str | None = None,
    allowed_modules: Iterable[str] | None = None,
    is_timed: bool = True,
) -> tuple[Message, ...]:
    """Make the one user message of a task.

    Args:
        statement: What the function must return, with the types and sizes of its inputs.
        signature: Entry point, with parameters or without, such as `matmul(A, B)`.
        example: Shown as it is, on lines of its own; None leaves it out.
        allowed_modules: As in `Task.allowed_modules`.
        is_timed: Whether speed counts; only then does the prompt ask for it.
    """
    lines = [f"Write a Python function `{signature}`. {' '.join(statement.split())}"]
    if example is not None:
        lines.append(example)
    hurry = "Make it fast. " if is_timed else ""
    rules = f"{hurry}{PYTHON_VERSION}. {imports_sentence(allowed_modules)} No threads or processes."
    lines.append(f"{rules} Answer with the complete code in one ```python block.")
    return ({"role": "user", "content": "\n".join(lines)},)


def canonical_completion(task: Task) -> str:
    """The reference as a model would answer with it; raises TaskError when the task has none."""
    if task.reference is None:
        raise TaskError(f"task {task.id} has no reference")
    fence = "```" if "```" not in task.reference else "~~~~~~~~"
    return f"{fence}python\n{task.reference.rstrip()}\n{fence}\n"
