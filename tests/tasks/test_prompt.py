"""The one prompt builder."""

import sys

import pytest

from outpace.schema import Task
from outpace.tasks import canonical_completion, exact, load
from outpace.tasks.prompt import build_prompt


def test_a_prompt_is_one_user_message_with_every_rule() -> None:
    (message,) = build_prompt("xs is a list\n    of ints.", "f(xs)", example="Example: `f([])` returns `[]`.")
    assert message["role"] == "user"
    text = message["content"]
    assert text.startswith("Write a Python function `f(xs)`. xs is a list of ints.\nExample: `f([])` returns `[]`.\n")
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in text
    assert "Allowed imports: math, " in text
    assert "No threads or processes." in text
    assert "Make it fast." in text
    assert "one ```python block" in text


def test_an_untimed_task_does_not_ask_for_speed() -> None:
    assert "fast" not in build_prompt("Return 1.", "f()", is_timed=False)[0]["content"]


@pytest.mark.parametrize(
    ("modules", "sentence"),
    [({"re", "math"}, "Allowed imports: math, re."), (frozenset(), "Allowed imports: none.")],
)
def test_a_task_s_own_modules_are_named(modules: set[str], sentence: str) -> None:
    assert sentence in build_prompt("Return 1.", "f()", allowed_modules=modules)[0]["content"]


def test_built_in_prompts_are_short_enough_for_small_models() -> None:
    lengths = {task.id: len(task.prompt[0]["content"].split()) for task in load("builtin")}
    assert {task_id: words for task_id, words in lengths.items() if words > 115} == {}


def test_the_canonical_completion_fences_the_reference() -> None:
    task = Task(id="demo/f", prompt=(), entry_point="f", compare=exact, reference="def f():\n    return 1\n")
    assert canonical_completion(task) == "```python\ndef f():\n    return 1\n```\n"


def test_a_reference_that_holds_a_fence_gets_another_fence() -> None:
    task = Task(
        id="demo/f", prompt=(), entry_point="f", compare=exact, reference='def f():\n    return """\n```\n"""\n'
    )
    assert canonical_completion(task).startswith("~~~~~~~~python\n")
