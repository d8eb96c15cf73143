import pytest

from outpace.errors import RewardError
from outpace.reward import PRESETS, build, known
from outpace.schema import Outcome

from .graded import sample, timing


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "rewards is empty"),
        ("acuracy", "no reward named 'acuracy' .did you mean 'accuracy'"),
        ({"speed": {"hihg": 2}}, "rewards.speed has no option 'hihg' .did you mean 'high'"),
        ({"speed": "fast"}, "rewards.speed must be a finite number, got 'fast'"),
        ({"speed": True}, "must be a finite number, got True"),
        ({"speed": float("nan")}, "must be a finite number"),
        ({"speed": {"gate": "acuracy"}}, "rewards.speed.gate 'acuracy' is not a stage .did you mean 'accuracy'"),
        ({"speed": {"gate": {"nothing": 1}}}, "names 'nothing', which is not another component"),
        ({"speed": {"gate": {"speed": 1}}}, "not another component"),
        ({"speed": {"gate": 3}}, "gate must be a stage or"),
        ({"speed": {"clip": [2, 1]}}, "lower bound 2.0 is above"),
        ({"speed": {"weight": {0: 1}}}, "rewards.speed.weight must be a finite number"),
        ({"speed": {"schedule": {}}}, "schedule must be .step: factor. with at least one step"),
        ({"speed": {"schedule": {"soon": 1}}}, "steps must be whole numbers"),
        ({"speed": {"schedule": {0: "much"}}}, "rewards.speed.schedule must be a finite number"),
        ({"speed": {1: 2}}, "option names must be text"),
        ({3: 1.0}, "name must be text"),
        ({"default": 1.0, "speed": 2.0}, "'speed' is given twice"),
        ({"default": {"gate": "syntax"}}, "takes only a weight"),
        (7, "must be a preset's name or a mapping"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_sentence_that_names_the_remedy(config, words):
    with pytest.raises(RewardError, match=words) as caught:
        build(config)
    assert "\n" not in str(caught.value)


def test_every_preset_builds_and_every_name_is_known():
    for name, entries in PRESETS.items():
        assert build(name).names == tuple(entries)
        assert set(entries) <= set(known())


def test_a_presets_weight_multiplies_its_entries():
    assert build({"article": 0.5}).weights() == {
        "article_security": 0.5,
        "article_accuracy": 0.5,
        "article_speed": 0.5,
    }


def test_the_total_is_the_weighted_sum_of_the_components():
    vector = build({"accuracy": 0.5, "speed": 2.0}).score([sample(speed=timing(4.0))])[0]
    assert dict(vector.components) == {"accuracy": 2.0, "speed": 2.0}
    assert vector.total == 0.5 * 2.0 + 2.0 * 2.0


def test_clip_and_cap_bound_a_component_before_its_weight():
    group = [sample(speed=timing(16.0)), sample(speed=timing(0.01))]
    clipped = build({"speed": {"clip": 0.5, "weight": 3.0}}).score(group)
    assert [v.components["speed"] for v in clipped] == [0.5, -0.5]
    assert [v.total for v in clipped] == [1.5, -1.5]
    capped = build({"speed": {"cap": 2.0}}).score(group)
    assert [v.components["speed"] for v in capped] == [2.0, -1.0]
    between = build({"speed": {"clip": [0, 3]}}).score(group)
    assert [v.components["speed"] for v in between] == [3.0, 0.0]


def test_a_shut_gate_holds_back_gains_but_not_penalties():
    values = {"correct": 1.0, "wrong": 1.0, "forbidden": -1.0}
    rewards = build({"outcome": {"values": values, "gate": "accuracy"}})
    outcomes = (Outcome.CORRECT, Outcome.WRONG, Outcome.FORBIDDEN)
    assert [v.total for v in rewards.score([sample(o) for o in outcomes])] == [1.0, 0.0, -1.0]


def test_a_gate_can_ask_for_the_value_of_another_component():
    rewards = build({"accuracy": 1.0, "bonus": {"reward": "syntax", "gate": {"accuracy": 2.0}}})
    right, wrong = rewards.score([sample(), sample(Outcome.WRONG, passed=9)])
    assert right.components["bonus"] == 1.0
    assert wrong.components["bonus"] == 0.0


def test_a_curriculum_moves_a_weight_in_straight_lines_over_the_steps():
    rewards = build({"accuracy": 1.0, "speed": {"schedule": {10: 0.0, 30: 1.0}}})
    assert [rewards.weights(step)["speed"] for step in (0, 10, 20, 30, 99)] == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert rewards.weights()["speed"] == 1.0
    group = [sample(speed=timing(4.0))]
    assert rewards.score(group, step=0)[0].total == 2.0
    assert rewards.score(group, step=20)[0].total == 3.0
    assert rewards.score(group)[0].total == 4.0


class Sometimes:
    """A reward that knows nothing of some samples."""

    name = "sometimes"

    def __call__(self, group):
        return [None if one.completion == "?" else float(one.completion) for one in group]


def test_a_component_unknown_for_one_sample_counts_there_as_the_groups_mean():
    rewards = build({"accuracy": 1.0, f"{__name__}.Sometimes": 1.0})
    vectors = rewards.score([sample(completion=text) for text in ("1", "?", "3")])
    assert [v.total for v in vectors] == [3.0, 4.0, 5.0]
    assert vectors[1].components[f"{__name__}.Sometimes"] is None


def test_a_sample_of_which_nothing_is_known_has_no_total():
    rewards = build({f"{__name__}.Sometimes": 1.0})
    assert [v.total for v in rewards.score([sample(completion="1"), sample(completion="?")])] == [1.0, None]


def test_an_empty_group_has_no_rewards():
    assert build().score([]) == []
