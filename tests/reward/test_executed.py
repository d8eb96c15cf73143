import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import RewardError
from outpace.reward import build
from outpace.schema import Outcome

from .graded import UNTIMED, sample, timing

NAN, INF = math.nan, math.inf


def scores(**entry):
    return build(entry).score


def components(one, config="default"):
    return dict(build(config).score([one])[0].components)


@pytest.mark.parametrize(
    ("one", "expected", "total"),
    [
        (sample(Outcome.NO_CODE), (0, 0, 0, 0), 0),
        (sample(Outcome.SYNTAX_ERROR), (0, 0, 0, 0), 0),
        (sample(Outcome.FORBIDDEN), (1, -2, 0, 0), -1),
        (sample(Outcome.TAMPERING, passed=10), (1, -2, 0, 0), -1),
        (sample(Outcome.CRASHED), (1, 1, 0, 0), 2),
        (sample(Outcome.TIMEOUT, passed=3), (1, 1, 0.3, 0), 2.3),
        (sample(Outcome.RESOURCE, passed=5), (1, 1, 0.5, 0), 2.5),
        (sample(Outcome.WRONG, passed=9), (1, 1, 0.9, 0), 2.9),
        (sample(Outcome.WRONG, passed=9, speed=timing(8.0)), (1, 1, 0.9, 0), 2.9),
        (sample(Outcome.CORRECT), (1, 1, 2, 0), 4),
        (sample(Outcome.CORRECT, speed=timing(2.0, 4.0)), (1, 1, 2, 1), 5),
        (sample(Outcome.CORRECT, speed=timing(0.5, 2.0)), (1, 1, 2, 0), 4),
        (sample(Outcome.CORRECT, speed=timing(1.02, 1.04, floor=0.05)), (1, 1, 2, 0), 4),
        (sample(Outcome.CORRECT, speed=timing(0.25, 0.5)), (1, 1, 2, -1), 3),
        (sample(Outcome.CORRECT, speed=timing(0.001)), (1, 1, 2, -1), 3),
        (sample(Outcome.CORRECT, speed=timing(400.0)), (1, 1, 2, 4), 8),
        (sample(Outcome.CORRECT, speed=timing(4.0, trusted=False)), (1, 1, 2, 0), 4),
        (sample(Outcome.CORRECT, speed=timing(0.5, trusted=False)), (1, 1, 2, -1), 3),
        (sample(Outcome.CORRECT, task=UNTIMED), (1, 1, 2, None), 4),
        (sample(None), (None, None, None, None), None),
    ],
)
def test_the_default_rewards_of_each_outcome(one, expected, total):
    vector = build().score([one])[0]
    assert tuple(vector.components[name] for name in ("syntax", "security", "accuracy", "speed")) == expected
    assert vector.total == (total if total is None else pytest.approx(total))


@pytest.mark.parametrize("ratio", [0.0, -1e-9, NAN, INF, -INF])
def test_a_ratio_that_no_clock_can_have_measured_pays_nothing_and_stays_finite(ratio):
    assert components(sample(speed=timing(ratio)))["speed"] <= 0.0
    assert math.isfinite(components(sample(speed=timing(ratio)))["speed"])


graded = st.builds(
    lambda outcome, passed, low, width, trusted: sample(
        outcome,
        passed=10 if outcome is Outcome.CORRECT else passed,
        speed=timing(low, low * width, trusted=trusted) if outcome is Outcome.CORRECT else None,
    ),
    st.sampled_from([*Outcome, None]),
    st.integers(0, 9),
    st.floats(0.001, 1000),
    st.floats(1, 2),
    st.booleans(),
)


@given(passed=st.integers(1, 10), low=st.floats(0.001, 1000), other=st.floats(0.001, 1000))
def test_the_reward_never_rises_when_a_test_is_lost(passed, low, other):
    better = sample(Outcome.CORRECT if passed == 10 else Outcome.WRONG, passed=passed, speed=timing(low))
    worse = sample(Outcome.WRONG, passed=passed - 1, speed=timing(other))
    rewards = build()
    assert rewards.score([worse])[0].total < rewards.score([better])[0].total


@given(low=st.floats(0.001, 1000), width=st.floats(1, 3), factor=st.floats(1, 100))
def test_a_slower_candidate_never_earns_more(low, width, factor):
    fast = sample(speed=timing(low, low * width))
    slow = sample(speed=timing(low / factor, low * width / factor))
    rewards = build()
    assert rewards.score([slow])[0].total <= rewards.score([fast])[0].total


@given(group=st.lists(graded, min_size=1, max_size=8), data=st.data())
def test_permuting_the_samples_permutes_the_rewards(group, data):
    order = data.draw(st.permutations(range(len(group))))
    rewards = build()
    straight = rewards.score(group)
    assert rewards.score([group[i] for i in order]) == [straight[i] for i in order]


@given(group=st.lists(graded, min_size=1, max_size=8))
def test_every_component_stays_in_its_documented_range(group):
    ranges = {"syntax": (0, 1), "security": (-2, 1), "accuracy": (0, 2), "speed": (-1, 4)}
    for one, vector in zip(group, build().score(group), strict=True):
        if one.verdict is None:
            assert vector.total is None
            assert set(vector.components.values()) == {None}
            continue
        for name, (low, high) in ranges.items():
            assert low <= vector.components[name] <= high


def test_cheating_earns_less_than_saying_nothing_and_that_less_than_trying():
    cheat, nothing, attempt = build().score([sample(Outcome.FORBIDDEN), sample(Outcome.NO_CODE), sample(Outcome.WRONG)])
    assert cheat.total < nothing.total < attempt.total


def test_one_cheat_does_not_drown_the_differences_between_honest_programs():
    from outpace.reward.advantages import sum_then_normalize

    honest = [sample(speed=timing(1.0)), sample(speed=timing(4.0)), sample(Outcome.WRONG, passed=5)]
    group = [*honest * 5, sample(Outcome.FORBIDDEN)]

    def gap(config):
        rows = [vector.components for vector in build(config).score(group)]
        advantages = sum_then_normalize(rows, build(config).weights())
        return advantages[1] - advantages[2]

    assert gap("default") > 1.5
    assert gap("default") > gap("article")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"security": {"penalty": -20}}, "rewards.security: security.credit must not be negative"),
        ({"security": {"penalty": 1}}, "security.penalty must lie between"),
        ({"accuracy": {"partial": 3}}, "accuracy.partial must lie between 0 and accuracy.full"),
        ({"speed": {"low": 1}}, "speed.low must not be above 0"),
        ({"speed": {"low": "slow"}}, "rewards.speed.low: Input should be a valid number"),
        ({"outcome": 1.0}, "rewards.outcome.values: Field required"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_sentence(entry, words):
    with pytest.raises(RewardError, match=words) as caught:
        build(entry)
    assert "\n" not in str(caught.value)


def test_the_outcome_table_pays_what_it_lists():
    rewards = build({"outcome": {"values": {"correct": 1.0, "forbidden": -1.0}, "other": -0.1}})
    outcomes = [Outcome.CORRECT, Outcome.FORBIDDEN, Outcome.WRONG]
    assert [vector.total for vector in rewards.score([sample(o) for o in outcomes])] == [1.0, -1.0, -0.1]


def test_weights_that_let_a_wrong_program_earn_more_than_a_slow_one_are_reported(caplog):
    build({"accuracy": 1.0, "speed": 1.0})
    assert not caplog.records
    build({"accuracy": 0.5, "speed": 1.0})
    assert "can earn less than a wrong one" in caplog.text
