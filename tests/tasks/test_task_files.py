"""Tasks from users' files: what is read, and what is refused in one sentence."""

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from outpace.errors import TaskError
from outpace.schema import Case, Purpose
from outpace.tasks import close, exact, get, load

EXAMPLES = Path(__file__).parents[2] / "examples"
ROW: dict[str, Any] = {
    "id": "demo/add",
    "prompt": "a and b are ints. Return their sum.",
    "entry_point": "add",
    "cases": [{"args": [1, 2], "expected": 3}],
}
PYTHON = """
from outpace.tasks import task

@task("demo/twice", prompt="x is an int. Return twice x.")
def twice(x):
    return x + x

@twice.inputs
def twice_inputs(rng, purpose):
    return [(rng.randint(0, limit()),)]

def limit():
    return 9

@twice.oracle
def twice_oracle(x):
    return 2 * x
"""


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_jsonl_row_becomes_a_task(tmp_path: Path) -> None:
    row = {
        **ROW,
        "compare": {"close": {"atol": 0.1}},
        "split": "heldout",
        "tags": ["easy"],
        "allowed_modules": ["math"],
        "returns_sequence": True,
        "limits": {"cpu_s": 1.5},
        "reference": "def add(a, b):\n    return a + b\n",
    }
    (task,) = load(write(tmp_path, "tasks.jsonl", lines(row)))
    assert task.cases == (Case(args=(1, 2), expected=3),)
    assert task.compare == close(atol=0.1)
    assert (task.split, task.tags, task.allowed_modules) == ("heldout", ("easy",), frozenset({"math"}))
    assert (task.returns_sequence, task.limits.cpu_s, task.is_timed) == (True, 1.5, False)
    text = task.prompt[0]["content"]
    assert "`add`" in text
    assert "Allowed imports: math." in text


def test_a_list_of_messages_is_used_as_it_is(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write add(a, b)."}]
    (task,) = load(write(tmp_path, "tasks.jsonl", lines({**ROW, "prompt": messages})))
    assert list(task.prompt) == messages
    assert task.compare == exact


def test_blank_lines_and_line_separators_inside_strings_do_no_harm(tmp_path: Path) -> None:
    text = "\n" + json.dumps({**ROW, "prompt": "a\u2028b. Return the sum."}, ensure_ascii=False) + "\r\n\n"
    assert len(load(write(tmp_path, "tasks.jsonl", text))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n  \n", "is empty"),
        (lines(ROW) + "{oops\n", "line 2: not valid JSON"),
        ("[" * 100_000, "line 1: not valid JSON"),
        (lines([1]), "line 1: a task must be a JSON object"),
        (lines({**ROW, "id": ""}), "'id' is missing"),
        (lines({key: ROW[key] for key in ("id", "prompt", "cases")}), "'entry_point' is missing"),
        (lines({**ROW, "cases": []}), "either 'cases'"),
        (lines({**ROW, "test_code": "def check(c):\n    assert c(1)"}), "not both"),
        (lines({**ROW, "entrypoint": "add"}), "did you mean 'entry_point'"),
        (lines({**ROW, "cases": "x"}), "'cases' has the wrong type"),
        (lines({**ROW, "cases": [[1, 2]]}), "a case must be"),
        (lines({**ROW, "cases": [{"args": 1, "expected": 2}]}), "a case must be"),
        (lines({**ROW, "compare": "exakt"}), "unknown comparator"),
        (lines({**ROW, "compare": {"close": {"atol": -1}}}), "atol"),
        (lines({**ROW, "split": "test"}), "train or heldout"),
        (lines({**ROW, "tags": [1]}), "list of strings"),
        (lines({**ROW, "limits": {"cpu": 1}}), "'limits' takes numbers for wall_s"),
        (lines({**ROW, "limits": {"cpu_s": "1"}}), "'limits' takes numbers for wall_s"),
        (lines({**ROW, "limits": {"cpu_s": 0}}), "positive"),
        (lines({**ROW, "prompt": ["x"]}), "a prompt must be"),
        (lines({**ROW, "prompt": []}), "'prompt' is missing"),
        (lines(ROW, ROW), "'demo/add' is there twice"),
    ],
)
def test_a_bad_jsonl_file_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "tasks.jsonl", text)
    with pytest.raises(TaskError, match=message) as raised:
        load(path)
    assert path in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["none.jsonl", "none.py"])
def test_a_missing_file_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskError, match="there is no task file"):
        load(str(tmp_path / name))


@pytest.mark.parametrize("name", ["folder.jsonl", "folder.py"])
def test_a_folder_or_bytes_in_place_of_a_file_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(TaskError, match="cannot be read"):
        load(str(tmp_path / name))
    (tmp_path / f"bytes_{name}").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match="cannot be read"):
        load(str(tmp_path / f"bytes_{name}"))


def test_a_python_file_defines_tasks(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.py", PYTHON)
    (task,) = load(path)
    assert task.id == "demo/twice"
    assert task.reference == "def twice(x):\n    return x + x\n"
    assert get(f"{path}#demo/twice").entry_point == "twice"
    with pytest.raises(TaskError, match="did you mean 'demo/twice'"):
        get(f"{path}#demo/twise")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no task"),
        ("", "defines no task"),
        ("def f(:\n", "line 1"),
        ("\n\nimport no_such_module_here\n", "line 3: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "line 1: SystemExit"),
        (PYTHON + PYTHON.replace("twice", "again").replace("demo/again", "demo/twice"), "there twice"),
        (PYTHON.replace("@twice.oracle", ""), "it has no oracle"),
        (PYTHON.replace("return x + x", "return limit()"), "limit from outside itself"),
        (PYTHON.replace("demo/twice", "twice"), "family/name"),
    ],
)
def test_a_bad_python_file_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "mine.py", text)
    with pytest.raises(TaskError, match=message) as raised:
        load(path)
    assert "\n" not in str(raised.value)


def test_two_files_may_not_claim_one_id(tmp_path: Path) -> None:
    first = write(tmp_path, "first.jsonl", lines(ROW))
    second = write(tmp_path, "second.jsonl", lines({**ROW, "entry_point": "plus"}))
    with pytest.raises(TaskError, match="taken by another task"):
        load(f"{first},{second}")
    assert len(load(f"{first},{first}")) == 1


def test_a_task_of_a_python_file_reaches_a_process_that_cannot_import_the_file(tmp_path: Path) -> None:
    (task,) = load(write(tmp_path, "mine.py", PYTHON))
    program = (
        "import pickle, random, sys; task = pickle.load(sys.stdin.buffer); from outpace.schema import Purpose\n"
        "(args,), = [task.inputs(random.Random(3), Purpose.TIMING)]; print(args[0], task.oracle(*args))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=cloudpickle.dumps(task), capture_output=True, check=True
    )
    assert task.inputs is not None
    ((x,),) = task.inputs(random.Random(3), Purpose.TIMING)
    assert done.stdout.split() == [str(x).encode(), str(2 * x).encode()]


def test_every_built_in_task_pickles() -> None:
    for task in load("builtin"):
        again = pickle.loads(pickle.dumps(task))
        assert again.reference == task.reference
        assert again.inputs is task.inputs


@pytest.mark.parametrize("name", ["tasks_statistics.py", "tasks_cases.jsonl"])
def test_the_example_files_load(name: str) -> None:
    tasks = load(str(EXAMPLES / name))
    assert len(tasks) >= 2
    assert {task.split for task in tasks} == {"train", "heldout"}
