"""The bridge between a RewardSet and TRL's reward functions, without a trainer."""

from types import SimpleNamespace
from typing import Any

import pytest
from tiny import TASKS, RuleGrader

from outpace import reward
from outpace.errors import InfrastructureError
from outpace.extract import ReasoningMarkers
from outpace.schema import Outcome, Verdict
from outpace.testing import verdict
from outpace.training.completions import CompletionReader
from outpace.training.phases import PhaseClock
from outpace.training.rewards import RewardBridge, doubt_about

READER = CompletionReader(
    decode=lambda ids: "".join(chr(i) for i in ids), eos_ids=frozenset({1}), markers=ReasoningMarkers()
)


def judge(completion: str) -> Verdict | None:
    return {"g": verdict(Outcome.CORRECT, ratio=4.0), "w": verdict(Outcome.WRONG), "n": None}[completion[0]]


class Batch:
    """Two groups of two, scored by a bridge."""

    def __init__(self, rewards: Any, texts: list[str], *, separate: bool = False, stop_share: float = 0.9) -> None:
        self.grader = RuleGrader(judge)
        self.metrics: dict[str, float] = {}
        self.rows: list[dict[str, Any]] = []
        self.warned: list[str] = []
        self.bridge = RewardBridge(
            rewards=reward.build(rewards), grader=self.grader, tasks={task.id: task for task in TASKS}, reader=READER,
            num_generations=2, clock=PhaseClock(), separate=separate, stop_share=stop_share,
            save_rows=lambda step, rows: self.rows.extend(rows),
            warn=self.warned.append,
        )  # fmt: skip
        self.columns: dict[str, Any] = {
            "prompts": [[]] * len(texts),
            "completions": texts,
            "completion_ids": [[ord(c) for c in text] for text in texts],
            "task_id": ["fake/one"] * 2 + ["fake/two"] * 2,
            "trainer_state": SimpleNamespace(global_step=4),
            "log_metric": self.metrics.__setitem__,
        }

    def score(self) -> dict[str, list[float | None]]:
        return {function.__name__: function(**self.columns) for function in self.bridge.functions()}


def test_each_completion_is_graded_once_for_all_components() -> None:
    batch = Batch({"syntax": 1.0, "accuracy": 2.0, "speed": 1.0}, ["g1", "w1", "g2", "w2"])
    scores = batch.score()
    assert list(scores) == ["syntax", "accuracy", "speed"]
    assert sorted(batch.grader.graded) == ["g1", "g2", "w1", "w2"]


def test_the_functions_sum_to_the_reward_vectors_total_and_rows_are_kept() -> None:
    batch = Batch({"syntax": 1.0, "accuracy": 2.0, "speed": 0.5}, ["g1", "w1", "g2", "w2"])
    scores = batch.score()
    totals = [sum(value or 0.0 for value in column) for column in zip(*scores.values(), strict=True)]
    assert totals == pytest.approx([row["reward"] for row in batch.rows])
    assert {row["step"] for row in batch.rows} == {5}
    assert batch.bridge.weights() == [1.0, 1.0, 1.0]


def test_for_separate_normalisation_components_come_before_their_weights() -> None:
    batch = Batch({"accuracy": 2.0}, ["g1", "w1", "g2", "w2"], separate=True)
    together = Batch({"accuracy": 2.0}, ["g1", "w1", "g2", "w2"])
    assert [2 * value for value in batch.score()["accuracy"] if value is not None] == together.score()["accuracy"]
    assert batch.bridge.weights() == [2.0]


def test_what_we_failed_to_grade_is_none_in_every_component() -> None:
    scores = Batch({"syntax": 1.0, "accuracy": 1.0}, ["n1", "w1", "g2", "w2"]).score()
    assert scores["syntax"][0] is None
    assert scores["accuracy"][0] is None
    assert None not in scores["accuracy"][1:]


def test_a_batch_that_mostly_failed_stops_the_run() -> None:
    with pytest.raises(InfrastructureError, match="3 of 4 completions could not be graded"):
        Batch({"accuracy": 1.0}, ["n1", "n2", "n3", "w2"], stop_share=0.75).score()


def test_a_new_batch_is_graded_anew_even_when_its_texts_are_the_same() -> None:
    batch = Batch({"accuracy": 1.0}, ["g1", "w1", "g2", "w2"])
    batch.score()
    batch.columns["completion_ids"] = [list(ids) for ids in batch.columns["completion_ids"]]
    batch.score()
    assert len(batch.grader.graded) == 8


def test_figures_reach_the_trainers_log() -> None:
    batch = Batch({"accuracy": 1.0}, ["g1", "w1", "g2", "w2"])
    batch.score()
    assert batch.metrics["pass_rate"] == 0.5
    assert batch.metrics["speedup"] == 4.0
    assert "components/accuracy/mean" in batch.metrics
    assert batch.metrics["components/accuracy/variance_share"] == pytest.approx(1.0)
    assert batch.metrics["collapsed_groups"] == 0.0


def test_a_reward_that_does_not_vary_is_told_once() -> None:
    batch = Batch({"accuracy": 1.0, "syntax": 1.0}, ["g1", "w1", "g2", "w2"])
    for _ in range(12):
        batch.columns["completion_ids"] = [list(ids) for ids in batch.columns["completion_ids"]]
        batch.score()
    assert len([text for text in batch.warned if "'syntax' is 1 for every sample" in text]) == 1


def test_rewards_that_pay_a_refusal_more_than_a_right_program_are_doubted() -> None:
    assert doubt_about(reward.build({"accuracy": 1.0})) is None
    doubt = doubt_about(reward.build({"accuracy": -1.0}))
    assert doubt is not None
    assert "check its sign" in doubt
