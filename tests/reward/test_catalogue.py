"""What every reward of the catalogue keeps to, whatever it looks at."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.reward import Reward, build, known
from outpace.reward.catalogue import CATALOGUE
from outpace.schema import Outcome

from .graded import sample, timing

NEEDED = {
    "outcome": {"values": {"correct": 1.0}},
    "answer_format": {"pattern": ".*"},
    "length_tokens": {"bands": [[0, 1.0]]},
    "overlong": {"max_tokens": 10, "buffer_tokens": 5},
    "judge": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "among": "accuracy"},
}
SILENT = [name for name in CATALOGUE if name != "judge"]
"""Rewards that ask nobody."""


def made(name):
    return build({name: NEEDED.get(name, {})})


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_sample_that_we_failed_to_grade_is_unknown_to_every_reward(name):
    with made(name) as rewards:
        (part,) = rewards.parts
        assert isinstance(part.reward, Reward)
        assert part.reward.name == name
        assert part.reward([sample(None, completion_ids=(1, 2))]) == [None]


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("outcome", Outcome)
def test_every_reward_has_a_finite_value_or_none_for_every_outcome(name, outcome):
    with made(name) as rewards:
        (vector,) = rewards.score([sample(outcome, completion_ids=(1, 2, 3))])
        assert vector.total is None or -20 <= vector.total <= 20


samples = st.builds(
    lambda outcome, completion, ids, ratio: sample(
        outcome, completion=completion, completion_ids=ids, speed=timing(ratio) if outcome == "correct" else None
    ),
    st.sampled_from([*Outcome, None]),
    st.sampled_from(["", "x", "a b c. d?", "<think>a b</think>```\nx\n```", "<think>never ends", "```py\nx"]),
    st.none() | st.lists(st.integers(0, 3), max_size=40).map(tuple),
    st.floats(0.01, 100),
)


@pytest.mark.parametrize("name", SILENT)
@settings(max_examples=25)
@given(group=st.lists(samples, min_size=1, max_size=6), data=st.data())
def test_the_order_of_a_group_changes_no_reward(name, group, data):
    order = data.draw(st.permutations(range(len(group))))
    (part,) = made(name).parts
    straight = part.reward(group)
    assert part.reward([group[i] for i in order]) == [straight[i] for i in order]


def test_the_names_are_sorted_and_unique():
    assert list(known()) == sorted(set(known()))
