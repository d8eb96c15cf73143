import dataclasses

import pytest
from evaluation_fakes import SETTINGS, evaluation, graded, many

from outpace.evaluate import Comparison, compare
from outpace.schema import Outcome


def compared(before: float, after: float, **options: int) -> Comparison:
    return compare(
        evaluation(many(before, **options), label="before"),
        evaluation(many(after, speedup=3.0, **options), label="after"),
    )


def test_a_model_beside_itself_differs_in_nothing() -> None:
    same = evaluation(many(0.5))
    for name, row in compare(same, same).overall.items():
        assert (row.difference, row.judgement) == (0.0, "unclear"), name


def test_a_gain_beyond_noise_is_clear_and_its_interval_holds_it() -> None:
    row = compared(0.25, 0.75).overall["pass@1"]
    assert row.difference == pytest.approx(0.5)
    assert row.low is not None
    assert row.high is not None
    assert 0 < row.low <= 0.5 <= row.high
    assert row.judgement == "better"


def test_a_loss_is_called_worse() -> None:
    assert compared(0.75, 0.25).overall["pass@1"].judgement == "worse"


def test_a_higher_share_of_cut_offs_is_worse_and_a_new_length_is_only_a_change() -> None:
    before = evaluation([graded(index=i, tokens=20 + i) for i in range(20)])
    after = evaluation([graded(index=i, tokens=90 + i, finished=i % 2 == 0) for i in range(20)])
    rows = compare(before, after).overall
    assert rows["cut_off"].judgement == "worse"
    assert rows["tokens"].judgement == "changed"


def test_one_sample_on_each_side_is_never_clear() -> None:
    before, after = evaluation([graded(Outcome.WRONG)]), evaluation([graded(speedup=3.0)])
    assert all(not row.is_clear for row in compare(before, after).overall.values())


def test_four_right_against_four_wrong_is_clear() -> None:
    row = compared(0.0, 1.0, tasks=1).overall["pass@1"]
    assert row.low == pytest.approx(0.148, abs=1e-3)
    assert row.is_clear


def test_pairing_makes_an_equal_gain_on_unequal_tasks_clear() -> None:
    # Tasks range from never to mostly solved; each gains one sample in eight.
    def samples(gain: int) -> list:
        return [
            graded(Outcome.CORRECT if i < number + gain else Outcome.WRONG, task_id=f"fake/{number}", index=i)
            for number in range(7)
            for i in range(8)
        ]

    row = compare(evaluation(samples(0)), evaluation(samples(1))).overall["pass@1"]
    assert row.is_clear
    assert row.before.high is not None
    assert row.after.low is not None
    assert row.before.high > row.after.low


def test_splits_and_tasks_are_compared_apart() -> None:
    comparison = compared(0.25, 0.75)
    assert list(comparison.by_split) == ["train", "heldout"]
    assert list(comparison.by_task) == [f"fake/{number}" for number in range(6)]
    assert comparison.by_split["heldout"]["pass@1"].after.tasks == 3


def test_only_what_both_sides_have_is_compared_and_the_notes_say_so() -> None:
    comparison = compare(evaluation(many(0.5, tasks=6)), evaluation(many(0.5, tasks=3)))
    assert comparison.overall["pass@1"].before.tasks == 3
    assert comparison.notes == ("only the 12 samples that both sides have are compared (before: 24, after: 12)",)


def test_what_weakens_a_comparison_is_noted() -> None:
    before = evaluation(many(0.5), label="before")
    samples = many(0.5)
    samples[0] = dataclasses.replace(samples[0], outcome=None)
    samples[1] = dataclasses.replace(samples[1], untrusted_timing=True, speedup=None, speedup_bound=None)
    after = evaluation(samples, dataclasses.replace(SETTINGS, seed=1), label="after")
    assert compare(before, after).notes == (
        "seed differs: 3407 before, 1 after",
        "after: 1 samples could not be graded by us and are left out",
        "after: the timing of 1 correct samples is not trusted and counts for no measure of speed",
    )


def test_nothing_in_common_is_a_clear_error() -> None:
    other = evaluation([graded(task_id="other/task")])
    with pytest.raises(ValueError, match="share no task"):
        compare(evaluation(many(0.5)), other)


def test_a_comparison_is_plain_data() -> None:
    data = compared(0.25, 0.75).to_dict()
    assert data["overall"]["pass@1"]["judgement"] == "better"
    assert data["by_task"]["fake/0"]["pass@1"]["after"]["value"] == 0.75
