"""docs/rewards.md says what the code does: every name, every option, every snippet."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from outpace.reward import PRESETS, build
from outpace.reward.catalogue import CATALOGUE
from outpace.reward.part import GENERAL_KEYS

from .graded import sample

PAGE = Path(__file__).parents[2] / "docs" / "rewards.md"
TEXT = PAGE.read_text(encoding="utf-8")
RECIPES = PAGE.parents[1] / "recipes"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_every_reward_preset_and_key_is_documented():
    named = {word for code in re.findall(r"`([^`\n]+)`", TEXT) for word in re.findall(r"\w+", code)}
    assert {*CATALOGUE, *PRESETS, *GENERAL_KEYS} <= named


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_option_of_every_reward_is_documented(name):
    options = {field.name for field in dataclasses.fields(CATALOGUE[name])} - {"usd_per_million_out", "api_key_env"}
    table = TEXT.partition("## All rewards")[2].splitlines()
    row = next((line for line in table if line.startswith("|") and f"`{name}`" in line), "")
    where = TEXT if name == "judge" else row
    assert {option for option in options if not re.search(rf"\b{option}\b", where)} == set()


def test_the_first_snippet_is_a_recipe_that_builds(monkeypatch):
    entries = yaml.safe_load(blocks("yaml")[0])["rewards"]
    entries["tests_own"] = {"reward": f"{__name__}.half", "weight": entries.pop("my_package.my_reward")}
    assert build(entries).names == ("syntax", "speed", "fence", "tests_own")


def half(group):
    return [0.5 for _ in group]


def test_the_snippets_of_user_code_run():
    code = next(block for block in blocks("python") if "def my_reward" in block)
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    one = sample(completion="x" * 500)
    assert names["my_reward"]([one]) == [0.5]
    assert names["trl_style"]([], ["x"], verdict=[one.verdict]) == [1.0]


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_rewards_of_every_shipped_recipe_build(recipe):
    build(yaml.safe_load(recipe.read_text(encoding="utf-8")).get("rewards", "default")).close()
