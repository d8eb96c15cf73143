from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.config import Recipe, dump_recipe, load_recipe, plan_batches
from outpace.errors import ConfigError

MINIMAL = "model: starter\ntasks: builtin:train\n"


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_minimal_recipe_takes_its_name_from_the_file(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, MINIMAL, "my run.yaml"))
    assert (recipe.name, recipe.model, recipe.method, recipe.objective) == ("my-run", "starter", "grpo", "grpo")


def test_overrides_are_yaml_and_win_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL + "max_steps: 7\nlearning_rate: 5e-5\n")
    recipe = load_recipe(
        path, ["max_steps=3", "learning_rate=1e-6", "lora_target_modules=[q_proj, v_proj]", "bf16=false"]
    )
    assert (recipe.max_steps, recipe.learning_rate) == (3, 1e-6)
    assert recipe.lora_target_modules == ["q_proj", "v_proj"]
    assert recipe.bf16 is False


def test_scientific_notation_without_a_point_is_a_number(tmp_path: Path) -> None:
    assert load_recipe(write(tmp_path, MINIMAL + "learning_rate: 5e-5\n")).learning_rate == 5e-5


def test_a_dotted_override_reaches_one_reward(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, MINIMAL + "rewards: {accuracy: 1.0, speed: 1.0}\n"), ["rewards.speed=0.25"])
    assert recipe.rewards == {"accuracy": 1.0, "speed": 0.25}


def test_a_dotted_override_does_not_change_the_default_of_other_recipes(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL)
    assert load_recipe(path, ["rewards.speed=0.25"]).rewards["speed"] == 0.25
    assert load_recipe(path).rewards["speed"] == 1.0


def test_a_dumped_recipe_reads_back_equal(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, MINIMAL + "learning_rate: 1.0e-7\nreport_to: [tensorboard]\n"), ["name=other"])
    assert load_recipe(write(tmp_path, dump_recipe(recipe), "again.yaml")) == recipe


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(MINIMAL + "learnin_rate: 1.0\n", "did you mean learning_rate?", id="unknown key"),
        pytest.param(MINIMAL + "zzzz: 1\n", "unknown key 'zzzz'", id="unlike any key"),
        pytest.param(MINIMAL + "max_steps: many\n", "max_steps must be a valid integer, got 'many' (text)", id="type"),
        pytest.param(MINIMAL + "max_steps: true\n", "max_steps must be a valid integer", id="bool is no number"),
        pytest.param(MINIMAL + "max_steps: 0\n", "max_steps must be greater than 0", id="range"),
        pytest.param(MINIMAL + "method: ppo\n", "method must be 'grpo', 'rloo', 'sft' or 'dpo'", id="choice"),
        pytest.param(MINIMAL + "learning_rate: .nan\n", "learning_rate must be a finite number", id="nan"),
        pytest.param("tasks: builtin\n", "the key 'model' is missing", id="missing"),
        pytest.param("model: [a\ntasks: b\n", "line 2", id="bad yaml says the line"),
        pytest.param(MINIMAL + "model: other\n", "key 'model' given twice", id="twice"),
        pytest.param("- a\n- b\n", "holds a list", id="a list"),
        pytest.param("", "holds nothing", id="empty"),
        pytest.param("just text", "holds text", id="text"),
        pytest.param(MINIMAL + "3: 4\n", "the key 3 is not a name", id="key type"),
        pytest.param("[" * 3000, "YAML", id="nesting bomb"),
        pytest.param(MINIMAL + "rewards: {speed: .inf}\n", "finite", id="infinite weight"),
        pytest.param(MINIMAL + "rewards: {speed: {weight: big}}\n", "the weight must be a finite number", id="weight"),
        pytest.param(MINIMAL + "rewards: {}\n", "nothing to learn", id="no reward"),
        pytest.param(MINIMAL + "num_generations: 1\n", "every advantage is 0: use at least 2", id="group of one"),
        pytest.param(MINIMAL + "bf16: true\nfp16: true\n", "choose one", id="two precisions"),
        pytest.param(MINIMAL + "load_in_4bit: true\n", "use_peft=true", id="4 bits without adapters"),
        pytest.param(MINIMAL + "name: ../up\n", "name must match pattern", id="name is no path"),
        pytest.param(
            MINIMAL + "save_total_limit: 1\n", "save_total_limit must be greater than or equal to 2", id="one"
        ),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(write(tmp_path, text))
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    assert "pydantic" not in message.lower()


@pytest.mark.parametrize("word", ["max_steps", "=3", "max_steps=[", "model.x=1", "nonsense=1", "max_steps=1.5"])
def test_a_wrong_override_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(write(tmp_path, MINIMAL), [word])
    assert "\n" not in str(caught.value)


def test_a_missing_file_a_folder_and_a_binary_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "no.yaml", tmp_path, tmp_path / "binary.yaml", "no-such-recipe"):
        with pytest.raises(ConfigError):
            load_recipe(path)


def test_rewards_may_be_a_preset_or_change_over_the_steps(tmp_path: Path) -> None:
    assert load_recipe(write(tmp_path, MINIMAL + "rewards: article\n")).rewards == "article"
    text = MINIMAL + "rewards: {speed: {weight: {0: 0.0, 50: 1.0}}}\n"
    assert load_recipe(write(tmp_path, text)).rewards == {"speed": {"weight": {0: 0.0, 50: 1.0}}}


def test_departures_from_the_textbook_objective_are_listed() -> None:
    exact = Recipe(model="m", tasks="builtin")
    assert exact.departures() == []
    changed = exact.model_copy(update={"scale_rewards": "none", "top_p": 0.9})
    assert changed.departures() == ["scale_rewards=none", "top_p=0.9"]
    assert exact.model_copy(update={"objective": "dapo", "top_p": 0.9}).departures() == []


def batch(**keys: object) -> Recipe:
    return Recipe.model_validate({"model": "m", "tasks": "t", **keys})


def test_seven_processes_of_one_cannot_hold_a_group_of_eight_and_the_message_states_the_numbers() -> None:
    with pytest.raises(ConfigError) as caught:
        plan_batches(batch(per_device_train_batch_size=1, num_generations=8), processes=7)
    assert "num_generations=8" in str(caught.value)
    assert "7 processes" in str(caught.value)
    assert "per_device_train_batch_size=1" in str(caught.value)
    assert "use per_device_train_batch_size=8" in str(caught.value)


def test_nearest_group_sizes_are_offered() -> None:
    with pytest.raises(ConfigError, match="num_generations=4 or 6, or per_device_train_batch_size=10 or 15"):
        plan_batches(batch(per_device_train_batch_size=12, num_generations=5))


@given(
    size=st.integers(1, 24),
    group=st.integers(2, 16),
    accumulation=st.integers(1, 6),
    rounds=st.none() | st.integers(1, 6),
    iterations=st.integers(1, 3),
    save=st.integers(1, 40),
)
def test_every_accepted_batch_holds_whole_groups_and_saves_on_generation_boundaries(
    size: int, group: int, accumulation: int, rounds: int | None, iterations: int, save: int
) -> None:
    recipe = batch(
        per_device_train_batch_size=size,
        num_generations=group,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=rounds,
        num_iterations=iterations,
        save_steps=save,
    )
    try:
        plan = plan_batches(recipe)
    except ConfigError:
        return
    assert plan.completions_per_generation == plan.groups_per_generation * group
    assert save * accumulation % ((rounds or accumulation) * iterations) == 0


@given(size=st.integers(1, 24), group=st.integers(2, 16), rounds=st.integers(1, 4))
def test_the_batch_sizes_that_a_refusal_offers_are_accepted(size: int, group: int, rounds: int) -> None:
    recipe = batch(
        per_device_train_batch_size=size, num_generations=group, gradient_accumulation_steps=rounds, save_steps=1
    )
    try:
        plan_batches(recipe)
    except ConfigError as error:
        offered = str(error).rpartition("per_device_train_batch_size=")[2]
        for number in offered.split(" or "):
            plan_batches(recipe.model_copy(update={"per_device_train_batch_size": int(number)}))
