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
def test_a_task_is_drawn_with_all_its_samples(task_of: list[int], seed: int) -> None:
    _, task_N = np.unique(sorted(task_of), return_inverse=True)
    counts_BT = bootstrap.draw_tasks(task_N.max() + 1, 50, np.random.default_rng(seed))
    (counts,) = bootstrap.with_samples(counts_BT, task_N)
    assert (counts_BT.sum(axis=1) == task_N.max() + 1).all()
    assert all((counts[:, i] == counts_BT[:, task]).all() for i, task in enumerate(task_N))


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 1000))
def test_drawing_samples_leaves_each_task_its_number_of_them(task_of: list[int], seed: int) -> None:
    _, task_N = np.unique(sorted(task_of), return_inverse=True)
    (counts,) = bootstrap.draw_samples(task_N, 50, np.random.default_rng(seed))
    for task, size in enumerate(np.bincount(task_N)):
        assert (counts[:, task_N == task].sum(axis=1) == size).all()


def test_blocks_together_hold_all_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_BLOCK", 40)
    task_N, rng = np.array([0, 0, 1, 1]), np.random.default_rng(0)
    assert [len(block) for block in bootstrap.draw_samples(task_N, 25, rng)] == [10, 10, 5]
    whole = bootstrap.draw_tasks(2, 25, rng)
    assert np.array_equal(np.concatenate(list(bootstrap.with_samples(whole, task_N))), whole[:, task_N])


def test_samples_of_one_task_spread_as_a_binomial() -> None:
    (counts,) = bootstrap.draw_samples(np.zeros(10, dtype=np.int64), 400, np.random.default_rng(0))
    shares = bootstrap.weighted_mean(np.array([1.0] * 5 + [0.0] * 5), counts)
    assert shares.std() == pytest.approx(np.sqrt(0.25 / 10), rel=0.15)


@pytest.mark.parametrize(("freedom", "quantile"), [(3, 3.182), (5, 2.571), (11, 2.201), (36, 2.028), (1000, 1.962)])
def test_students_quantiles_match_the_tables(freedom: int, quantile: float) -> None:
    assert bootstrap.student_quantile(0.975, freedom) == pytest.approx(quantile, abs=0.004)


def test_few_tasks_leave_out_less_and_many_what_was_asked_for() -> None:
    tails = [bootstrap.expanded_tail(0.95, n, n - 1) for n in (4, 12, 40, 100_000)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(0.025, abs=1e-5)


def test_too_many_undefined_resamples_give_no_interval() -> None:
    assert bootstrap.percentile_interval(np.array([np.nan, np.nan, 1.0, 2.0]), 0.025) is None
    assert bootstrap.percentile_interval(np.array([np.nan, 2.0, 1.0, 2.0]), 0.025) is not None


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
