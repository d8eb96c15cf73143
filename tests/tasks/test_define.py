"""Tasks written as decorated Python functions."""

import inspect
import random
from typing import Any

import pytest

from outpace import tasks
from outpace.errors import TaskError
from outpace.schema import Args, Purpose
from outpace.tasks import exact, task
from outpace.tasks.define import TaskDefinition
from outpace.tasks.reading import missing_names

OUTSIDE = 3


def define(**changes: Any) -> TaskDefinition:
    settings: dict[str, Any] = {"task_id": "demo/double", "prompt": "Return twice x, an int.", **changes}

    @task(settings.pop("task_id"), **settings)
    def double(x):  # type: ignore[no-untyped-def]
        """Add it to itself."""
        return x + x

    @double.inputs
    def double_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
        return [(rng.randint(0, 9),)]

    @double.oracle
    def double_oracle(x: int) -> int:
        return 2 * x

    return double


def test_a_decorated_function_becomes_a_task() -> None:
    made = define(example=(4,), split="heldout", tags=["demo"], returns_sequence=True).build()
    assert (made.id, made.entry_point, made.split, made.tags) == ("demo/double", "double", "heldout", ("demo",))
    assert made.compare is exact
    assert made.returns_sequence
    assert made.is_timed
    assert made.oracle is not None
    assert made.oracle(4) == 8
    assert "Example: `double(4)` returns `8`." in made.prompt[0]["content"]


def test_the_reference_is_the_text_of_the_function_without_its_decorators() -> None:
    made = define().build()
    assert (
        made.reference
        == 'def double(x):  # type: ignore[no-untyped-def]\n    """Add it to itself."""\n    return x + x\n'
    )


def test_the_names_and_keywords_that_user_files_rely_on_stay() -> None:
    assert set(tasks.__all__) == {
        *("task", "exact", "close", "unordered", "custom"),
        *("load", "get", "check", "Finding", "canonical_completion"),
    }
    keywords = ["prompt", "compare", "example", "returns_sequence", "split", "tags", "allowed_modules", "limits"]
    assert list(inspect.signature(task).parameters) == ["task_id", *keywords]
    assert [*inspect.signature(tasks.close).parameters] == ["atol", "rtol"]


def test_the_decorated_name_stays_usable_as_a_function() -> None:
    assert define()(21) == 42


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_id": "double"}, "family/name"),
        ({"task_id": "Demo/x"}, "family/name"),
        ({"task_id": "demo/"}, "family/name"),
        ({"split": "test"}, "'train' or 'heldout'"),
        ({"compare": 3}, "comparator"),
        ({"example": [4]}, "tuple of arguments"),
        ({"tags": "demo"}, "lists of strings"),
        ({"allowed_modules": "math"}, "lists of strings"),
    ],
)
def test_a_bad_setting_is_refused_when_the_task_is_defined(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        define(**changes)


def test_an_example_that_the_oracle_cannot_answer_is_refused() -> None:
    with pytest.raises(TaskError, match="fails on the example"):
        define(example=("a", "b")).build()


@pytest.mark.parametrize("missing", ["inputs", "oracle"])
def test_a_task_without_inputs_or_oracle_is_refused(missing: str) -> None:
    @task("demo/f", prompt="Return x.")
    def f(x):  # type: ignore[no-untyped-def]
        return x

    if missing != "inputs":
        f.inputs(lambda rng, purpose: [(1,)])
    if missing != "oracle":
        f.oracle(lambda x: x)
    with pytest.raises(TaskError, match=f"@f.{missing}"):
        f.build()


def test_a_reference_that_leans_on_its_module_is_refused() -> None:
    with pytest.raises(TaskError, match="OUTSIDE"):

        @task("demo/f", prompt="Return x.")
        def f(x):  # type: ignore[no-untyped-def]
            return x + OUTSIDE


def test_a_lambda_or_a_class_is_no_reference() -> None:
    with pytest.raises(TaskError, match="plain function"):
        task("demo/f", prompt="Return x.")(lambda x: x)
    with pytest.raises(TaskError, match="plain function"):
        task("demo/f", prompt="Return x.")(int)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(x):\n    import math\n    return math.pi * x", []),
        ("import math\ndef f(x):\n    return [math.floor(y) for y in x]", []),
        ("def f(x):\n    return g(x)\ndef g(x):\n    return f(x - 1) if x else 0", []),
        ("def f(x):\n    def inner(y):\n        return x + y\n    return inner(1)", []),
        ("class A:\n    n = 1\n    def m(self):\n        return A.n\ndef f():\n    return A().m()", []),
        ("def f(x: Matrix) -> int:\n    return len(x)", ["Matrix"]),
        ("def f(x):\n    return np.sum(x) + helper(x)", ["helper", "np"]),
        ("@cache\ndef f(x):\n    return x", ["cache"]),
        ("def f(x, n=N):\n    return x", ["N"]),
        ("def f(x):\n    def g():\n        return lost\n    return g()", ["lost"]),
    ],
)
def test_names_from_outside_are_found(source: str, names: list[str]) -> None:
    assert missing_names(source) == names
