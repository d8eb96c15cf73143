"""The pure parts: order of prompts, figures, phases, warnings, what is read from token ids."""

import io
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tiny import TASKS, make_task

from outpace.config import Recipe, plan_batches
from outpace.errors import ConfigError, TaskError, UserError
from outpace.extract import ReasoningMarkers
from outpace.schema import Outcome, RewardVector
from outpace.testing import sample, verdict
from outpace.training.choice import choose_sampler
from outpace.training.completions import CompletionReader
from outpace.training.early_warnings import EarlyWarnings
from outpace.training.evaluations import load_task_sets
from outpace.training.facts import batch_facts
from outpace.training.memory import free_memory, is_out_of_memory, peak_memory, with_smaller_batches
from outpace.training.phases import PhaseClock
from outpace.training.preview import preview
from outpace.training.progress import RunProgress, columns
from outpace.training.resume import changes
from outpace.training.schedule import by_prompt, prompt_order, training_rows


def a_recipe(**keys: Any) -> Recipe:
    return Recipe.model_validate({"model": "m", "tasks": "t", **keys})


@given(passes=st.integers(1, 5), seed=st.integers(0, 1000), extra=st.integers(0, 2))
def test_every_task_is_asked_once_before_any_is_asked_again(passes: int, seed: int, extra: int) -> None:
    order = prompt_order(TASKS, passes * 3 + extra, seed)
    for start in range(0, passes * 3, 3):
        assert {task.id for task in order[start : start + 3]} == {task.id for task in TASKS}
    assert order[: passes * 3] == prompt_order(TASKS, passes * 3, seed)


@given(steps=st.integers(1, 20), accumulation=st.integers(1, 4), rounds=st.integers(1, 4), iterations=st.integers(1, 3))
def test_the_schedule_holds_enough_groups_for_every_update(
    steps: int, accumulation: int, rounds: int, iterations: int
) -> None:
    recipe = a_recipe(
        max_steps=steps, gradient_accumulation_steps=accumulation, steps_per_generation=rounds,
        num_iterations=iterations, per_device_train_batch_size=8, num_generations=4, save_steps=720,
    )  # fmt: skip
    plan = plan_batches(recipe)
    rows = training_rows(TASKS, recipe, plan)
    micro_batches = len(rows) // plan.groups_per_generation * rounds * iterations
    assert len(rows) % plan.groups_per_generation == 0
    assert micro_batches >= steps * accumulation > micro_batches - rounds * iterations


def test_two_tasks_with_one_prompt_are_refused() -> None:
    with pytest.raises(TaskError, match="fake/x and fake/y have the same prompt"):
        by_prompt([make_task("x", "same"), make_task("y", "same")])


def test_tasks_are_labelled_by_what_they_are_used_for() -> None:
    sets = {"a": TASKS, "b": [make_task("four", "d"), TASKS[0]]}
    train, heldout = load_task_sets(a_recipe(tasks="a", eval_tasks="b"), sets.__getitem__)
    assert {task.split for task in train} == {"train"}
    assert [(task.id, task.split) for task in heldout] == [("fake/four", "heldout")]
    with pytest.raises(TaskError, match="is trained on"):
        load_task_sets(a_recipe(tasks="a", eval_tasks="a"), sets.__getitem__)


class Characters:
    """Ids are code points; 1 and 2 end a text, as in models with several end tokens."""

    reader = CompletionReader(
        decode=lambda ids: "".join(chr(i) for i in ids if i > 31), eos_ids=frozenset({1, 2}), markers=ReasoningMarkers()
    )


@pytest.mark.parametrize(
    ("ids", "finished"), [([97, 1], True), ([97, 2], True), ([97, 98], False), ([], False), ([1, 97], False)]
)
def test_every_end_token_counts_as_an_end_and_only_at_the_end(ids: list[int], finished: bool) -> None:
    assert Characters.reader.read(TASKS[0], ids).finished is finished


def test_what_the_sampler_says_about_the_end_wins() -> None:
    assert Characters.reader.read(TASKS[0], [97, 0], finished=True).finished is True


def test_reasoning_that_the_prompt_opened_is_split_off_by_ids() -> None:
    reader = CompletionReader(
        decode=Characters.reader.decode, eos_ids=frozenset({1}), markers=ReasoningMarkers(think=5, end_think=6)
    )
    done = reader.read(TASKS[0], [97, 98, 6, 99, 1], prompt_ids=[40, 5])
    assert (done.answer, done.reasoning_ids) == ("c", (97, 98))
    cut_off = reader.read(TASKS[0], [97, 98], prompt_ids=[40, 5])
    assert (cut_off.answer, cut_off.reasoning_ids) == ("", (97, 98))
    plain = reader.read(TASKS[0], [97, 98, 1], prompt_ids=[5, 40, 6])
    assert (plain.answer, plain.reasoning_ids) == ("ab", None)


def vectors(*totals: float | None) -> list[RewardVector]:
    return [RewardVector({"accuracy": total}, total) for total in totals]


def test_figures_of_a_batch_by_hand() -> None:
    task = TASKS[0]
    groups = [
        [
            sample(task, verdict(Outcome.CORRECT, ratio=2.0, source="a")),
            sample(task, verdict(Outcome.WRONG, source="b")),
        ],
        [sample(task, verdict(Outcome.FORBIDDEN, source="c"), finished=False), sample(task, None, completion="x")],
    ]
    facts = batch_facts(groups, [vectors(1.0, 0.0), vectors(-1.0, None)])
    assert facts["not_graded"] == 0.25
    assert facts["truncated"] == 0.25
    assert facts["equal_groups"] == 0.5
    assert facts["pass_rate"] == pytest.approx(1 / 3)
    assert facts["compliant"] == pytest.approx(2 / 3)
    assert facts["speedup"] == 2.0
    assert facts["distinct"] == 1.0
    assert facts["components/accuracy/mean"] == 0.0


def test_a_figure_without_a_value_is_left_out() -> None:
    facts = batch_facts([[sample(TASKS[0], None), sample(TASKS[0], None)]], [vectors(None, None)])
    assert facts == {"not_graded": 1.0, "truncated": 0.0, "equal_groups": 1.0, "distinct": 0.5}


def test_the_phases_of_a_step_add_up() -> None:
    times = iter([0.0, 1.0, 4.0, 6.0, 7.0, 10.0])
    clock = PhaseClock(lambda: next(times))
    clock.step_began()  # 0
    began = clock.now  # 1
    clock.sampled(began, graded_s=2.0)  # 4
    scoring = clock.scoring_began()  # 6
    clock.scored(scoring)  # 7
    assert clock.take() == {  # 10
        "seconds/sample": 3.0,
        "seconds/score_hidden": 2.0,
        "seconds/score_exposed": 1.0,
        "seconds/logprobs": 2.0,
        "seconds/update": 3.0,
        "seconds/step": 10.0,
    }


def test_a_step_without_sampling_is_all_update() -> None:
    times = iter([0.0, 5.0])
    clock = PhaseClock(lambda: next(times))
    clock.step_began()
    assert clock.take() == {"seconds/update": 5.0, "seconds/step": 5.0}


def warnings_of(records: list[dict[str, Any]], **keys: Any) -> list[str]:
    watch = EarlyWarnings(a_recipe(**keys))
    return [text for step, record in enumerate(records, start=1) for text in watch.observe(step, record)]


HEALTHY = {"truncated": 0.1, "equal_groups": 0.2, "pass_rate": 0.5, "kl": 0.1, "entropy": 1.0,
           "completions/mean_length": 100.0, "components/accuracy/std": 0.4, "not_graded": 0.0}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"truncated": 1.0}, "all completions were truncated at 256 tokens: raise max_completion_length"),
        ({"truncated": 0.95}, "95% of completions are truncated at 256 tokens"),
        ({"equal_groups": 1.0}, "100% of groups have equal rewards"),
        ({"outcome/no_code": 0.95}, "95% of completions hold no code"),
        ({"kl": 50.0}, "raise beta or lower learning_rate"),
        ({"entropy": 0.001}, "hardly differ any more"),
        ({"entropy": 9.0}, "the policy is becoming random"),
        ({"completions/mean_length": 900.0}, "9.0 times as long"),
        ({"completions/mean_length": 10.0}, "0.1 times as long"),
        ({"not_graded": 0.25}, "25% of completions could not be graded by us"),
    ],
)
def test_each_sign_of_trouble_is_told_once_with_a_remedy(change: dict[str, float], said: str) -> None:
    told = warnings_of([HEALTHY] * 6 + [HEALTHY | change] * 22, max_completion_length=256)
    assert len(told) == 1
    assert said in told[0]


def test_a_healthy_run_and_missing_figures_give_no_warning() -> None:
    assert warnings_of([HEALTHY] * 60) == []
    assert warnings_of([{"kl": None, "entropy": None}] * 60) == []


def test_without_a_gpu_there_is_no_peak_to_tell() -> None:
    assert peak_memory() == {}


def test_the_peak_of_a_step_is_told_in_10_to_the_9_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_so in ("is_available", "is_initialized"):
        monkeypatch.setattr(torch.cuda, is_so, lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 11_500_000_000)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 12_000_000_000)
    assert peak_memory() == {"memory/allocated_GB": 11.5, "memory/reserved_GB": 12.0}


def test_freeing_memory_takes_cublas_workspaces_before_the_cache_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("cache"))
    clear = "_cuda_clearCublasWorkspaces"
    monkeypatch.setattr(torch._C, clear, lambda: done.append("workspaces"), raising=False)
    free_memory()
    monkeypatch.delattr(torch._C, clear)
    free_memory()
    assert done == ["workspaces", "cache", "cache"]


def test_memory_errors_are_told_from_other_errors() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(
        RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate")
    )
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))


@pytest.mark.parametrize(
    ("objective", "possible"), [("grpo", True), ("dapo", True), ("dr_grpo", True), ("bnpo", False)]
)
def test_micro_batches_shrink_only_where_the_gradient_stays_the_same(objective: str, possible: bool) -> None:
    recipe = a_recipe(objective=objective, per_device_train_batch_size=8, steps_per_generation=2)
    smaller = with_smaller_batches(recipe)
    assert (smaller is not None) is possible
    if smaller is not None:
        assert (smaller.per_device_train_batch_size, smaller.gradient_accumulation_steps) == (4, 2)
        assert smaller.steps_per_generation == 4
        assert plan_batches(smaller).completions_per_generation == plan_batches(recipe).completions_per_generation


def test_the_choice_of_sampler_says_why() -> None:
    assert choose_sampler(a_recipe()).name == "group"
    assert choose_sampler(a_recipe(method="rloo")).name == "transformers"
    assert choose_sampler(a_recipe(sampler="transformers")).why == "asked for"
    with pytest.raises(ConfigError, match="needs method=grpo"):
        choose_sampler(a_recipe(method="rloo", sampler="group"))


def test_sharded_weights_are_not_sampled_by_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3")
    assert choose_sampler(a_recipe()).name == "transformers"


def test_only_settings_that_change_training_count_as_changes() -> None:
    assert changes(a_recipe(), a_recipe(max_steps=7, workers=3, warn_kl=1.0)) == {}
    assert changes(a_recipe(), a_recipe(beta=0.5)) == {"beta": (0.0, 0.5)}


def test_a_line_of_progress_leaves_out_what_has_no_value() -> None:
    row = columns(
        3, {"reward": 0.5, "kl": None, "entropy": math.nan, "rewards/speed/mean": 0.25, "seconds/sample": 1.0}
    )
    assert row == {"step": "3", "reward": "+0.50", "speed": "+0.25", "of which": "sample 1.0"}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_shown_on_a_terminal_and_in_a_file(is_terminal: bool) -> None:
    file = io.StringIO()
    with RunProgress(Console(file=file, width=120, force_terminal=is_terminal)) as progress:
        progress.begin("training", 0, 3)
        for step in (1, 2, 3):
            progress.step(step, {"reward": 0.5, "pass_rate": 0.25, "seconds/step": 2.0})
        progress.warn("something is odd")
    shown = file.getvalue()
    assert "25%" in shown
    assert "something is odd" in shown


def dry(recipe: Recipe) -> str:
    console = Console(file=io.StringIO(), width=200)
    preview(recipe, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_dry_run_says_what_would_happen_and_writes_nothing(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("not read")
    before = sorted(tmp_path.iterdir())
    keys = {"model": str(tmp_path), "output_dir": str(tmp_path), "tasks": "linalg/matmul"}
    said = dry(a_recipe(**keys, eval_tasks="sequences/prefix_sums", per_device_train_batch_size=16))
    assert "1 tasks to train on, 1 held out" in said
    assert "sampler group" in said
    assert "2 prompts x 8 completions" in said
    assert "GRPO by the textbook objective, exactly" in said
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"tasks": "linalg/matmull"},
        {"rewards": {"spead": 1.0}},
        {"model": "./nowhere"},
        {"num_generations": 5},
        {"sampler": "vllm"},
    ],
    ids=str,
)
def test_a_dry_run_refuses_what_training_would_refuse(tmp_path: Path, wrong: dict[str, Any]) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("not read")
    with pytest.raises(UserError):
        dry(a_recipe(**{"model": str(tmp_path), "tasks": "linalg/matmul"} | wrong))
