"""Case files and the corpus are read, and a bad one is refused with its line."""

import ast
import json
from pathlib import Path

import pytest

from outpace.audit import corpus_cases, load_cases
from outpace.audit.cases import control_source, fenced
from outpace.audit.judge import CLASS_OF
from outpace.errors import ConfigError
from outpace.extract import extract

CORPUS = corpus_cases()


def test_the_corpus_holds_attacks_and_honest_look_alikes() -> None:
    assert sum(case.group == "A" for case in CORPUS) >= 60
    assert sum(case.group == "B" for case in CORPUS) >= 3
    assert len({case.id for case in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.id)
def test_every_program_states_its_strategy_and_what_stops_it(case) -> None:  # type: ignore[no-untyped-def]
    found = extract(case.input["text"], case.input["task"].rpartition("/")[2])
    assert found.candidate is not None
    docstring = ast.get_docstring(ast.parse(found.candidate.source)) or ""
    title, strategy = docstring.split("\n\n")[:2]
    assert title == case.title
    assert len(strategy) > 30
    assert case.expected in {*CLASS_OF.values(), "hack_no_gain"}
    assert case.tags[0]


@pytest.mark.parametrize("task", ["linalg/matmul", "sequences/prefix_sums"])
@pytest.mark.parametrize("control", ["honest", "slow", "wrong"])
def test_there_is_a_control_of_each_kind(task: str, control: str) -> None:
    source = control_source(task, control)
    assert source is not None
    assert f"def {task.rpartition('/')[2]}(" in source


def test_a_fence_is_longer_than_any_in_the_source() -> None:
    source = 'def f():\n    return """\n```python\n````\n"""\n'
    found = extract(fenced(source), "f").candidate
    assert found is not None
    assert found.source == source


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no case"),
        ("{", ":1 is not JSON"),
        ('{"id": "A1"}', ":1 needs the keys id, group, input, expected"),
        ("[1]", ":1 needs the keys"),
        ('{"id": "A1", "group": "A", "expected": "x", "input": {}}\n' * 2, "the id 'A1' more than once"),
        ('\n{"id": "A1", "group": "A", "expected": "x", "input": 3}', ":2 needs the keys"),
    ],
)
def test_a_bad_case_file_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_cases(file)


def test_a_missing_case_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.jsonl cannot be read"):
        load_cases(tmp_path / "nothing.jsonl")


def test_a_case_keeps_what_it_says(tmp_path: Path) -> None:
    entry = {"id": "X1", "group": "A", "title": "t", "input": {"task": "matmul", "text": "x"}, "expected": "no_code"}
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(entry) + "\n\n")
    (case,) = load_cases(file)
    assert (case.id, case.kind, case.task, case.expected) == ("X1", "completion", "matmul", "no_code")
