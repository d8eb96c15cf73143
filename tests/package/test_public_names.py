"""What users import: frozen names, instant import, no torch."""

import dataclasses
import subprocess
import sys

import pytest

import outpace
from outpace import schema


def test_public_names_are_these_and_each_can_be_had() -> None:
    assert outpace.__all__ == ["GradeSettings", "Grader", "Outcome", "Sample", "Task", "Verdict", "__version__"]
    for name in outpace.__all__:
        assert getattr(outpace, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Grade'"):
        outpace.Grade  # noqa: B018 - the access is the test


@pytest.mark.parametrize("module", ["outpace", "outpace.grade", "outpace.tasks", "outpace.reward", "outpace.cli.app"])
def test_the_core_imports_no_torch_and_no_trainer(module: str) -> None:
    heavy = ("torch", "transformers", "trl", "peft", "datasets", "openai")
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_import_outpace_loads_nothing_but_itself() -> None:
    code = "import sys, outpace; print(sorted(name for name in sys.modules if name.startswith('outpace')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['outpace', 'outpace.version']"


def test_the_package_runs_as_a_module_as_the_command_does() -> None:
    command = [sys.executable, "-m", "outpace", "tasks", "check", "no-such-set"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.startswith("outpace: ")


def test_the_fields_of_a_verdict_keep_their_names_and_order() -> None:
    names = [field.name for field in dataclasses.fields(schema.Verdict)]
    assert names == [
        "task_id",
        "outcome",
        "reason",
        "detail",
        "candidate",
        "static",
        "execution",
        "timing",
        "isolation",
        "program",
    ]


def test_outcomes_are_these_nine_worst_first() -> None:
    assert [outcome.value for outcome in schema.Outcome] == [
        "no_code",
        "syntax_error",
        "forbidden",
        "crashed",
        "timeout",
        "resource",
        "wrong",
        "tampering",
        "correct",
    ]
