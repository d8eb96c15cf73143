"""The starter ships inside the package, answers the built-in prompts and draws many different programs."""

import ast
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from outpace.policy import SamplingSettings, load, sample  # noqa: E402
from outpace.policy.locate import STARTER_FOLDER  # noqa: E402
from outpace.tasks import get  # noqa: E402


@pytest.fixture(scope="module")
def starter():
    return load("starter")


def test_the_shipped_folder_is_small():
    assert sum(file.stat().st_size for file in Path(STARTER_FOLDER).iterdir()) <= 12 * 10**6


def test_it_is_a_model_of_about_five_million_parameters(starter):
    assert 5e6 <= starter.model.num_parameters() <= 10e6
    assert starter.eos_ids == (2,)
    assert starter.pad_id not in starter.eos_ids


def test_text_survives_its_tokenizer(starter):
    text = "Zoë's `f(x)`:\n\n```python\ndef f(x):\n\treturn x ** 2 != 10\n```\n"
    assert starter.tokenizer.decode(starter.tokenizer(text)["input_ids"]) == text


def test_its_template_marks_what_the_assistant_wrote(starter):
    messages = [{"role": "user", "content": "f"}, {"role": "assistant", "content": "def f(): pass"}]
    encoded = starter.tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
    marked = [token for token, mark in zip(encoded["input_ids"], encoded["assistant_masks"], strict=True) if mark]
    assert starter.tokenizer.decode(marked) == "def f(): pass<|im_end|>"


def test_it_answers_with_programs_of_many_kinds(starter):
    task = get("sequences/prefix_sums")
    drawn = sample(starter, [task.prompt], SamplingSettings(max_new_tokens=128), num_generations=32, seed=0)
    programs = {generation.text for generation in drawn if _parses(generation.text)}
    assert len(programs) >= 8
    assert sum(f"def {task.entry_point}(" in program for program in programs) >= 0.7 * len(programs)


def _parses(completion: str) -> bool:
    code = completion.partition("```python\n")[2].partition("```")[0]
    try:
        return bool(ast.parse(code).body)
    except SyntaxError:
        return False
