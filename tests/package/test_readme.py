"""What the readme shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first fenced block of a language; a line of four backticks inside a string is not a fence."""
    match = re.search(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert match is not None, language
    return match[1]


def test_the_python_of_the_first_screen_prints_what_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "shown.py"
    program.write_text(block("python"), encoding="utf-8")
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == block("text")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_link_of_the_readme_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_every_recipe_that_the_readme_names_is_shipped() -> None:
    named = set(re.findall(r"recipes/[a-z0-9.-]+\.yaml", README))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
