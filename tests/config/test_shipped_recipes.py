from pathlib import Path

import pytest

from outpace import reward
from outpace.config import load_recipe, plan_batches, shipped_recipes
from outpace.errors import ConfigError
from outpace.training.choice import choose_sampler
from outpace.training.evaluations import load_task_sets

NAMES = (
    "starter",
    "smollm2",
    "qwen2.5-coder-0.5b",
    "article",
    "qwen3-4b",
    "qwen3-4b-thinking",
    "gpt-oss-20b",
    "gpt-oss-20b-12gb",
)


def test_every_named_recipe_is_shipped() -> None:
    assert set(NAMES) <= set(shipped_recipes())


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_a_shipped_recipe_is_found_by_name_and_fits_together(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    plan_batches(recipe)
    choose_sampler(recipe)
    train, _ = load_task_sets(recipe)
    assert train
    with reward.build(recipe.rewards) as rewards:
        assert rewards.names
    assert recipe.departures() == []


@pytest.mark.parametrize("path", sorted(shipped_recipes().values()), ids=lambda path: path.stem)
def test_a_shipped_recipe_says_what_it_needs_and_what_was_measured(path: Path) -> None:
    comment = "\n".join(line for line in path.read_text().splitlines() if line.startswith("#"))
    assert "Needs:" in comment
    assert "Measured:" in comment


def test_the_article_recipe_has_the_articles_settings() -> None:
    recipe = load_recipe("article")
    assert (recipe.learning_rate, recipe.weight_decay, recipe.warmup_ratio) == (5e-5, 0.001, 0.1)
    assert (recipe.seed, recipe.max_steps, recipe.num_generations) == (3407, 100, 2)
    assert (recipe.max_completion_length, recipe.optim, recipe.temperature) == (1024, "adamw_8bit", 1.0)
    assert (recipe.rewards, recipe.tasks, recipe.static_check) == ("article", "linalg/matmul", "article")


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match="did you mean starter"):
        load_recipe("startr")
