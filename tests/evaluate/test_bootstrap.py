import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.evaluate import bootstrap


def once(values: list[float]) -> np.ndarray:
    return np.ones((1, len(values)))


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_each_value_drawn_once_gives_the_plain_averages(values: list[float]) -> None:
    array = np.array(values)
    assert bootstrap.weighted_mean(array, once(values))[0] == pytest.approx(np.mean(values))
    assert bootstrap.weighted_median(array, once(values))[0] == pytest.approx(np.median(values))
    assert bootstrap.weighted_geometric_mean(array, once(values))[0] == pytest.approx(np.exp(np.mean(np.log(values))))


@given(st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 4)), min_size=1, max_size=12))
def test_a_count_is_a_repetition(pairs: list[tuple[float, int]]) -> None:
    values = np.array([value for value, _ in pairs])
    counts = np.array([[count for _, count in pairs]], dtype=float)
    repeated = np.repeat(values, counts[0].astype(int))
    mean, median = bootstrap.weighted_mean(values, counts)[0], bootstrap.weighted_median(values, counts)[0]
    if len(repeated):
        assert (mean, median) == (pytest.approx(repeated.mean()), pytest.approx(np.median(repeated)))
    else:
        assert np.isnan(mean)
        assert np.isnan(median)


def test_unknown_values_weigh_nothing() -> None:
    values = np.array([1.0, np.nan, 3.0])
    assert bootstrap.weighted_mean(values, np.array([[1.0, 5.0, 1.0]]))[0] == 2.0
    assert bootstrap.weighted_median(values, np.array([[1.0, 5.0, 1.0]]))[0] == 2.0


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 1000))
def test_a_task_drawn_m_times_gives_m_times_its_samples(task_of: list[int], seed: int) -> None:
    _, task_N = np.unique(sorted(task_of), return_inverse=True)
    sizes = np.bincount(task_N)
    (counts,) = bootstrap.sample_counts(task_N, 50, np.random.default_rng(seed))
    drawn = np.stack([counts[:, task_N == task].sum(axis=1) / size for task, size in enumerate(sizes)], axis=1)
    assert (drawn == drawn.round()).all()
    assert (drawn.sum(axis=1) == len(sizes)).all()


def test_blocks_together_hold_all_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_BLOCK", 40)
    blocks = list(bootstrap.sample_counts(np.array([0, 0, 1, 1]), 25, np.random.default_rng(0)))
    assert [len(block) for block in blocks] == [10, 10, 5]


def test_one_task_is_resampled_by_its_samples_alone() -> None:
    (counts,) = bootstrap.sample_counts(np.zeros(10, dtype=np.int64), 400, np.random.default_rng(0))
    shares = bootstrap.weighted_mean(np.array([1.0] * 5 + [0.0] * 5), counts)
    assert shares.std() == pytest.approx(np.sqrt(0.25 / 10), rel=0.15)


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        chance_T = rng.beta(2, 2, size=24)
        values = (rng.random((24, 8)) < chance_T[:, None]).astype(float).ravel()
        (counts,) = bootstrap.sample_counts(np.repeat(np.arange(24), 8), 300, rng)
        low, high = bootstrap.percentile_interval(bootstrap.weighted_mean(values, counts), 0.95)
        covered += low <= 0.5 <= high
    assert 0.91 <= covered / 200 <= 1.0


def test_too_many_undefined_resamples_give_no_interval() -> None:
    assert bootstrap.percentile_interval(np.array([np.nan, np.nan, 1.0, 2.0]), 0.95) is None
    assert bootstrap.percentile_interval(np.array([np.nan, 2.0, 1.0, 2.0]), 0.95) is not None


@pytest.mark.parametrize(("n", "reach"), [(1, 0.975), (8, 0.3694), (100, 0.0362)])
def test_no_success_of_n_leaves_room_for_some(n: int, reach: float) -> None:
    assert bootstrap.exact_interval_at_the_edge(0.0, n, 0.95) == (0.0, pytest.approx(reach, abs=1e-4))
    assert bootstrap.exact_interval_at_the_edge(1.0, n, 0.95) == (pytest.approx(1 - reach, abs=1e-4), 1.0)


def test_the_exact_interval_is_for_the_edges_only() -> None:
    with pytest.raises(ValueError, match="only the shares 0 and 1"):
        bootstrap.exact_interval_at_the_edge(0.5, 8, 0.95)


def test_combined_intervals_match_newcombes_published_example() -> None:
    # Newcombe (1998), table II, example (a): 56/70 - 48/80, Wilson intervals, 0.0524 to 0.3339.
    wilson_56_70, wilson_48_80 = (0.6914, 0.8, 0.8769), (0.4904, 0.6, 0.7003)
    low, high = bootstrap.combined_interval(wilson_48_80, wilson_56_70)
    assert (low, high) == (pytest.approx(0.0524, abs=5e-4), pytest.approx(0.3339, abs=5e-4))
