"""The command line: exit codes, one sentence for every wrong input, JSON that programs can rely on."""

import json
import sys
from pathlib import Path

import pytest

from outpace.cli import main

RIGHT = (
    "```python\ndef prefix_sums(xs):\n    out, total = [], 0\n    for x in xs:\n"
    "        total += x\n        out.append(total)\n    return out\n```"
)
WEAK = "--allow-weak-isolation"


def outpace(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command as its entry point does, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["outpace", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def file_of(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


WRONG_INPUTS = [
    (["grade", "{tmp}/none.md", "--task", "linalg/matmul"], "there is no file"),
    (["grade", "{answer}", "--task", "linalg/matmull"], "linalg/matmul"),
    (["tasks", "show", "nothing/here"], "nothing/here"),
    (["tasks", "list", "{tmp}/none.jsonl"], "none.jsonl"),
    (["tasks", "check", "{empty}"], "empty"),
    (["train", "{tmp}/none.yaml"], "none.yaml"),
    (["train", "{broken}", "--dry-run"], "broken.yaml"),
    (["train", "starter", "learning_rat=1e-4", "--dry-run"], "learning_rate"),
    (["train", "starter", "max_steps=many", "--dry-run"], "max_steps"),
    (["train", "starter", "tasks=linalg/matmull", "--dry-run"], "linalg/matmul"),
    (["train", "starter", "rewards.acuracy=1", "--dry-run"], "accuracy"),
    (["train", "starter", "num_generations=1", "--dry-run"], "num_generations"),
    (["train", "starter", "model={tmp}", "--dry-run"], "{tmp}"),
    (["train", "starter", "output_dir={answer}"], "{answer}"),
    (["eval", "{tmp}", "--tasks", "linalg/matmul"], "{tmp}"),
    (["report", "{tmp}/none"], "none"),
    (["watch", "{tmp}/none"], "none"),
    (["audit", "--cases", "{tmp}/none.jsonl"], "none.jsonl"),
    (["audit", "--reward", "no.such:thing"], "no.such"),
    (["plan", "{tmp}/none.yaml"], "none.yaml"),
    (["bench", "sampler", "--sampler", "vlllm"], "vlllm"),
]


@pytest.mark.parametrize(("words", "named"), WRONG_INPUTS, ids=[" ".join(words) for words, _ in WRONG_INPUTS])
def test_a_wrong_input_is_one_sentence_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: list[str],
    named: str,
) -> None:
    places = {
        "tmp": str(tmp_path),
        "answer": file_of(tmp_path, "answer.md", RIGHT),
        "empty": file_of(tmp_path, "empty.jsonl", ""),
        "broken": file_of(tmp_path, "broken.yaml", "model: [starter\n"),
    }
    code = outpace(monkeypatch, *(word.format(**places) for word in words))
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 2
    assert len(said) == 1, said
    assert said[0].startswith("outpace: ")
    assert named.format(**places) in said[0]
    assert "Traceback" not in said[0]


def test_grade_prints_the_json_that_its_contract_names_and_exits_0_when_correct(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answer = file_of(tmp_path, "answer.md", RIGHT)
    code = outpace(monkeypatch, "grade", answer, "--task", "sequences/prefix_sums", "--json", WEAK)
    graded = json.loads(capsys.readouterr().out)
    assert code == 0
    assert graded["outcome"] == "correct"
    assert graded["tests"]["passed"] == graded["tests"]["total"] > 0
    assert {"ratio", "low", "high"} <= set(graded["timing"])
    assert graded["timing"]["low"] <= graded["timing"]["ratio"] <= graded["timing"]["high"]
    assert {"syntax", "security", "accuracy", "speed", "total"} == set(graded["rewards"])
    assert graded["isolation"]["level"] in {"full", "strict", "weak", "none"}


def test_grade_exits_1_when_the_program_is_wrong_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answer = file_of(tmp_path, "answer.md", RIGHT.replace("total += x", "total -= x"))
    code = outpace(monkeypatch, "grade", answer, "--task", "sequences/prefix_sums", "--json", WEAK)
    graded = json.loads(capsys.readouterr().out)
    assert code == 1
    assert (graded["outcome"], graded["reason"], graded["timing"]) == ("wrong", "wrong_value", None)


def test_a_python_file_needs_no_fence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = RIGHT.removeprefix("```python\n").removesuffix("```")
    code = outpace(
        monkeypatch,
        "grade",
        file_of(tmp_path, "answer.py", source),
        "--task",
        "sequences/prefix_sums",
        "--no-speed",
        WEAK,
    )
    assert code == 0
    assert "correct" in capsys.readouterr().out


def test_tasks_are_listed_as_json_with_matmul_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outpace(monkeypatch, "tasks", "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[0]["id"] == "linalg/matmul"
    assert {"train", "heldout"} == {task["split"] for task in listed}
    assert len(listed) >= 30


def test_every_command_explains_itself_with_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    commands = [
        *(["doctor"], ["grade"], ["audit"], ["train"], ["eval"], ["report"], ["watch"], ["plan"], ["export"]),
        *(["tasks", "list"], ["tasks", "show"], ["tasks", "check"]),
        *(["bench", name] for name in ("sandbox", "timing", "sampler", "step", "moe")),
    ]
    for command in commands:
        assert outpace(monkeypatch, *command, "--help") == 0
        shown = capsys.readouterr().out
        assert "Example:" in shown, command
        assert "--json" in shown, command
