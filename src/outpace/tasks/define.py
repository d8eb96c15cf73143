"""Define a task by decorating its reference: the way built-in tasks and users' Python files are written.

    @task("linalg/trace", prompt="Return the sum of the diagonal of A, a square list of lists of ints.")
    def trace(A):
        total = 0
        for i in range(len(A)):
            total += A[i][i]
        return total

    @trace.inputs
    def trace_inputs(rng, purpose): ...      # a list of argument tuples

    @trace.oracle
    def trace_oracle(A): ...                 # a correct answer by another way

The reference's source is taken as text and runs in a child, so it must stand alone: imports go inside it.
`inputs` and `oracle` are trusted code, run in a scoring process, and may use anything.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Args, Comparator, InputGenerator, Limits, Task
from outpace.tasks.compare import exact
from outpace.tasks.prompt import build_prompt
from outpace.tasks.reading import missing_names, tree_of

_ID = re.compile(r"[a-z0-9_]+(/[A-Za-z0-9_.-]+)+")


class TaskDefinition:
    """A task under construction: the decorated reference, waiting for its `inputs` and `oracle`.

    Calling it calls the reference, so that the name stays usable as a function.
    """

    def __init__(self, function: Callable[..., Any], task_id: str, statement: str, **settings: Any) -> None:
        self.id = task_id
        self.function = function
        self.statement = statement
        self.settings = settings
        self.source = _reference_source(function, task_id)
        self._inputs: InputGenerator | None = None
        self._oracle: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        """Run the reference in this process."""
        return self.function(*args)

    def inputs(self, generator: InputGenerator) -> InputGenerator:
        """Register `generator(rng, purpose)`, which returns a list of argument tuples (one for timing)."""
        self._inputs = generator
        return generator

    def oracle(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the function that gives the expected value."""
        self._oracle = function
        return function

    def build(self) -> Task:
        """The finished task; raises TaskError when `inputs` or `oracle` is missing."""
        for name, value in (("inputs", self._inputs), ("oracle", self._oracle)):
            if value is None:
                raise TaskError(
                    f"task {self.id}: it has no {name}; decorate a function with @{self.function.__name__}.{name}"
                )
        settings = dict(self.settings)
        example = settings.pop("example")
        signature = f"{self.function.__name__}({', '.join(inspect.signature(self.function).parameters)})"
        return Task(
            id=self.id,
            prompt=build_prompt(
                self.statement,
                signature,
                example=None if example is None else self._example_line(example),
                allowed_modules=settings["allowed_modules"],
            ),
            entry_point=self.function.__name__,
            inputs=self._inputs,
            oracle=self._oracle,
            reference=self.source,
            **settings,
        )

    def _example_line(self, args: Args) -> str:
        assert self._oracle is not None
        call = f"{self.function.__name__}({', '.join(map(repr, args))})"
        try:
            return f"Example: `{call}` returns `{self._oracle(*args)!r}`."
        except Exception as error:
            raise TaskError(f"task {self.id}: its oracle fails on the example {call}: {error!r}") from error


def task(  # noqa: PLR0913 -- one keyword per field of a task, so that a definition reads as a form
    task_id: str,
    *,
    prompt: str,
    compare: Comparator = exact,
    example: Args | None = None,
    returns_sequence: bool = False,
    split: str = "train",
    tags: Iterable[str] = (),
    allowed_modules: Iterable[str] | None = None,
    limits: Limits | None = None,
) -> Callable[[Callable[..., Any]], TaskDefinition]:
    """Turn the reference function below it into a task; its name is the entry point.

    Args:
        task_id: `family/name`.
        prompt: What to return, with input types and sizes; version, imports and format are added.
        compare: When an answer counts as right; `exact` by default.
        example: Arguments of a call that the prompt shows with the oracle's answer.
        returns_sequence: Accept an iterator, read into a list inside the timed region.
        split: `train` or `heldout`.
        tags: Words to filter by.
        allowed_modules: Imports allowed instead of the default list.
        limits: Bounds on one child.

    Raises:
        TaskError: The id, split or comparator cannot be used, or the reference does not stand alone.
    """
    if not _ID.fullmatch(task_id):
        raise TaskError(f"task id {task_id!r} is not of the form family/name (small letters, digits and _)")
    if split not in ("train", "heldout"):
        raise TaskError(f"task {task_id}: split must be 'train' or 'heldout', got {split!r}")
    if example is not None and type(example) is not tuple:
        raise TaskError(f"task {task_id}: example must be a tuple of arguments such as ([1, 2],), got {example!r}")
    if isinstance(tags, str) or isinstance(allowed_modules, str):
        raise TaskError(f"task {task_id}: tags and allowed_modules must be lists of strings")
    if not callable(compare):
        raise TaskError(f"task {task_id}: compare must be a comparator such as exact or close(), got {compare!r}")

    def decorate(function: Callable[..., Any]) -> TaskDefinition:
        return TaskDefinition(
            function,
            task_id,
            prompt,
            compare=compare,
            example=example,
            returns_sequence=returns_sequence,
            split=split,
            tags=tuple(tags),
            allowed_modules=None if allowed_modules is None else frozenset(allowed_modules),
            limits=limits or Limits(),
        )

    return decorate


def _reference_source(function: Callable[..., Any], task_id: str) -> str:
    """The text of `function` without its decorators."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise TaskError(f"task {task_id}: @task must decorate a plain function (def)")
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        name = function.__name__
        raise TaskError(f"task {task_id}: the source of {name} cannot be read; put it in a file") from error
    definition = tree_of(text).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TaskError(f"task {task_id}: @task must decorate a plain function (def), not a coroutine or class")
    source = "\n".join(text.splitlines()[definition.lineno - 1 :]) + "\n"
    if missing := missing_names(source):
        raise TaskError(
            f"task {task_id}: the reference {function.__name__} uses {', '.join(missing)} from outside itself; "
            "put imports and helpers inside the function"
        )
    return source
