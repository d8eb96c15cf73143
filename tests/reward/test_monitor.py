import pytest

from outpace.reward.monitor import Monitor, is_collapsed, statistics, variance_shares
from outpace.reward.rewardset import contributions
from outpace.schema import RewardVector


def group(*rows, weights=None):
    """Reward vectors whose totals are the weighted sums of their components."""
    weights = weights or dict.fromkeys(rows[0], 1.0)
    totals = [[s for s in shares.values() if s is not None] for shares in contributions(rows, weights)]
    return [RewardVector(row, sum(t) if t else None) for row, t in zip(rows, totals, strict=True)]


EVEN = {"a": 1.0, "b": 1.0}


def test_statistics_of_known_values_by_hand():
    figures = statistics([group({"a": 1.0, "b": 0.0}, {"a": 3.0, "b": None}), group({"a": 2.0, "b": 4.0})], EVEN)
    assert figures["reward/a/mean"] == 2.0
    assert figures["reward/a/std"] == 1.0
    assert figures["reward/b/mean"] == 2.0
    assert figures["reward/b/known"] == pytest.approx(2 / 3)
    assert figures["reward/mean"] == pytest.approx((1 + 3 + 6) / 3)
    assert figures["groups/no_signal"] == 0.5


def test_a_component_that_is_unknown_everywhere_has_no_mean_and_no_zero():
    figures = statistics([group({"a": 1.0, "b": None}, {"a": 2.0, "b": None})], EVEN)
    assert figures["reward/b/known"] == 0.0
    assert "reward/b/mean" not in figures


def test_the_variance_shares_add_up_to_one():
    shares = variance_shares([group({"a": 0.0, "b": 1.0}, {"a": 9.0, "b": 2.0}, {"a": 3.0, "b": 0.0})], EVEN)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["a"] == pytest.approx(6 / 7)


def test_nothing_varies_so_nothing_has_a_share():
    assert variance_shares([group({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0})], EVEN) == {}


def test_mixtures_that_add_up_to_one_total_are_a_collapse():
    mixed = group({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0})
    assert is_collapsed(mixed)
    assert not is_collapsed(group({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 0.0}))
    assert not is_collapsed(group({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 2.0}))
    assert statistics([mixed], EVEN)["groups/collapsed"] == 1.0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1.0}], "'a' is 1 for every sample"),
        ([{"a": 0.0, "b": 0.1}, {"a": 9.0, "b": 0.0}], "'a' makes up 101% of the variance"),
        ([{"a": 0.0, "b": None}, {"a": 9.0, "b": None}], "'b' is unknown for every sample"),
        ([{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}], "different mixtures of rewards add up to one total"),
    ],
)
def test_what_teaches_nothing_is_said_once_and_only_when_it_lasts(rows, words):
    monitor = Monitor(patience=3)
    said = [monitor.warnings([group(*rows)], EVEN) for _ in range(6)]
    assert said[:2] == [[], []]
    assert words in " ".join(said[2])
    assert said[3:] == [[], [], []]


def test_a_streak_that_breaks_starts_again():
    monitor = Monitor(patience=2)
    constant = [group({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1.0})]
    healthy = [group({"a": 1.0, "b": 0.0}, {"a": 2.0, "b": 1.0})]
    assert not any(monitor.warnings(groups, EVEN) for groups in (constant, healthy, constant, healthy))


def test_a_component_without_weight_is_not_warned_about():
    weights = {"a": 0.0, "b": 1.0}
    rows = [{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1.0}]
    assert Monitor(patience=1).warnings([group(*rows, weights=weights)], weights) == []
