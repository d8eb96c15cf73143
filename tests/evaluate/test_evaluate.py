import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from evaluation_fakes import SETTINGS, evaluation, many, task

from outpace import evaluate as ev
from outpace.errors import RunFolderError
from outpace.evaluate import Completion, EvalSettings, Evaluation, memory, stored
from outpace.evaluate.evaluation import FORMAT
from outpace.schema import Outcome, Task
from outpace.testing import ScriptedGrader, verdict

FOUR = EvalSettings(samples_per_task=4, batch_size=8, resamples=100)
GRADER = ScriptedGrader(
    {
        "right": verdict(Outcome.CORRECT, ratio=2.0),
        "wrong": verdict(Outcome.WRONG, passed=3),
        "nothing": verdict(Outcome.NO_CODE, reason="no_fence"),
        "ours": None,
    }
)
ANSWERS: list[Completion | str] = [Completion(text="right", tokens=7), "wrong", "nothing", "ours"]


def test_stored_completions_become_an_evaluation() -> None:
    found = ev.evaluate(stored({"fake/identity": ANSWERS}), [task()], GRADER, FOUR, label="replayed")
    assert [s.outcome for s in found.samples] == [Outcome.CORRECT, Outcome.WRONG, Outcome.NO_CODE, None]
    assert found.overall["pass@1"].value == pytest.approx(1 / 3)
    assert found.overall["faster_1.5x"].value == pytest.approx(1 / 3)
    assert found.overall["tokens"].value == 7
    assert found.infra_failures == 1
    assert (found.samples[1].tests_passed, found.samples[1].tests_total) == (3, 10)
    assert found.isolation is not None
    assert found.label == "replayed"


def test_the_sampler_is_asked_for_whole_tasks_with_the_same_seeds_each_time() -> None:
    asked: list[tuple[list[str], int]] = []

    def sampler(tasks: Sequence[Task], settings: EvalSettings, seed: int) -> list[list[Completion | str]]:
        asked.append(([task.id for task in tasks], seed))
        return [list(ANSWERS) for _ in tasks]

    tasks = [task(f"fake/{number}") for number in range(5)]
    seen: list[tuple[int, int]] = []
    ev.evaluate(sampler, tasks, GRADER, FOUR, progress=lambda done, total: seen.append((done, total)))
    ev.evaluate(sampler, tasks, GRADER, FOUR)
    assert asked[:3] == [(["fake/0", "fake/1"], 3407), (["fake/2", "fake/3"], 3408), (["fake/4"], 3409)]
    assert asked[3:] == asked[:3]
    assert seen == [(8, 20), (16, 20), (20, 20)]


def test_train_and_held_out_tasks_are_measured_apart() -> None:
    completions = {"fake/a": ["right"] * 4, "fake/b": ["wrong"] * 4}
    found = ev.evaluate(stored(completions), [task("fake/b", "heldout"), task("fake/a")], GRADER, FOUR)
    assert list(found.by_split) == ["train", "heldout"]
    assert found.by_split["train"]["pass@1"].value == 1.0
    assert found.by_split["heldout"]["pass@1"].value == 0.0
    assert found.by_task["fake/b"]["pass@1"].samples == 4


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "no task to evaluate on"),
        ([task(), task()], "listed twice"),
        ([task("fake/other")], "0 stored completions"),
    ],
)
def test_tasks_that_cannot_be_evaluated_are_refused(tasks: list[Task], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ev.evaluate(stored({"fake/identity": ANSWERS}), tasks, GRADER, FOUR)


def test_a_sampler_that_returns_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match=r"groups of \[1\] completions for 1 tasks; it must return 4"):
        ev.evaluate(lambda tasks, settings, seed: [["right"]], [task()], GRADER, FOUR)


def test_json_there_and_back_changes_nothing() -> None:
    found = ev.evaluate(stored({"fake/identity": ANSWERS}), [task()], GRADER, FOUR)
    assert Evaluation.from_json(found.to_json()) == found


def test_an_evaluation_is_kept_in_a_run_folder(tmp_path: Path) -> None:
    found = ev.evaluate(stored({"fake/identity": ["\ud800", "```", "", "right"]}), [task()], GRADER, FOUR)
    path = ev.save(found, tmp_path, "before")
    ev.save(evaluation(many(0.5)), tmp_path, "after")
    assert ev.read(path) == found
    assert ev.names(tmp_path) == ["before", "after"]
    lines = (tmp_path / "samples" / "evaluation-before.jsonl").read_text().splitlines()
    assert [json.loads(line)["index"] for line in lines] == [0, 1, 2, 3]


def test_what_is_no_evaluation_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for text in ("{}", "[]", json.dumps({**evaluation(many(0.5)).summary(), "format": FORMAT + 1})):
        (tmp_path / "evaluation-x.json").write_text(text)
        with pytest.raises(RunFolderError, match="not a stored evaluation"):
            ev.read(tmp_path / "evaluation-x.json")
        with pytest.raises(RunFolderError, match="not a stored evaluation"):
            Evaluation.from_json(text)
    with pytest.raises(RunFolderError, match="cannot be read"):
        ev.read(tmp_path / "evaluation-missing.json")


def test_the_summary_names_each_measure_with_its_interval_and_its_samples() -> None:
    summary = evaluation(many(0.5), SETTINGS).summary()
    measure = summary["measures"]["pass@1"]
    assert (measure["value"], measure["samples"], measure["tasks"]) == (0.5, 24, 6)
    assert measure["low"] < 0.5 < measure["high"]
    assert "samples" not in summary
    assert json.loads(json.dumps(summary)) is not None


def test_peak_memory_is_known_without_torch() -> None:
    assert memory.peak_rss_bytes() > 2**20
    assert memory.peak_cuda_bytes() is None
    memory.reset_cuda_peak()
