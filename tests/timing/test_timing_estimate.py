import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from outpace.errors import ConfigError
from outpace.timing import ProcessReadings, TimingSettings, estimate, estimate_over_tests

READING = st.integers(200_000, 50_000_000)
TRIALS = st.lists(READING, min_size=1, max_size=4)
PROCESSES = st.lists(TRIALS, min_size=1, max_size=4)
ODD = st.one_of(st.none(), st.floats(), st.integers(-(10**12), 10**12), st.just(5e-324), st.just(0))
MS = 1_000_000
PATIENT = effort(deadline=None)


def processes(ns_PT, **options):
    return [ProcessReadings(trials_ns=tuple(ns_T), **options) for ns_T in ns_PT]


def timed(candidate_PT, reference_PT, **options):
    return estimate(processes(candidate_PT), processes(reference_PT), **options)


@PATIENT
@given(PROCESSES, PROCESSES, st.floats(1.0, 20.0), st.integers(0, 100_000))
def test_a_slower_candidate_never_earns_more(candidate, reference, slowdown, null_ns):
    before = timed(candidate, reference, null_ns=null_ns)
    after = timed([[ns * slowdown for ns in ns_T] for ns_T in candidate], reference, null_ns=null_ns)
    assert after.ratio <= before.ratio * (1 + 1e-9)
    assert after.low <= before.low * (1 + 1e-9)
    assert after.bound_nearest_1 <= before.bound_nearest_1 * (1 + 1e-9)


@PATIENT
@given(PROCESSES, PROCESSES, st.data())
def test_one_slower_reading_never_earns_more(candidate, reference, data):
    before = timed(candidate, reference)
    p = data.draw(st.integers(0, len(candidate) - 1))
    t = data.draw(st.integers(0, len(candidate[p]) - 1))
    candidate[p][t] += data.draw(st.integers(0, 10 * MS))
    after = timed(candidate, reference)
    assert after.ratio <= before.ratio * (1 + 1e-9)
    assert after.low <= before.low * (1 + 1e-9)
    assert max(after.bound_nearest_1, 1.0) <= max(before.bound_nearest_1, 1.0) * (1 + 1e-9)


@PATIENT
@given(PROCESSES, PROCESSES, st.integers(0, 100_000), st.sampled_from([2, 3, 8, 64]))
def test_a_faster_machine_changes_nothing(candidate, reference, null_ns, speed):
    here = timed(candidate, reference, null_ns=null_ns)
    there = timed(
        [[ns * speed for ns in ns_T] for ns_T in candidate],
        [[ns * speed for ns in ns_T] for ns_T in reference],
        null_ns=null_ns * speed,
    )
    assert (there.ratio, there.low, there.high) == pytest.approx((here.ratio, here.low, here.high))
    assert there.noise_floor == pytest.approx(here.noise_floor)


@PATIENT
@given(TRIALS, TRIALS, TRIALS, TRIALS, st.randoms())
def test_the_order_of_processes_and_trials_changes_nothing(c1, c2, r1, r2, rng):
    before = timed([c1, c2], [r1, r2])
    c1, c2, r1, r2 = (rng.sample(ns_T, len(ns_T)) for ns_T in (c1, c2, r1, r2))
    after = timed([c2, c1], [r2, r1])
    assert (after.ratio, after.low, after.high) == pytest.approx((before.ratio, before.low, before.high))


@PATIENT
@given(PROCESSES, PROCESSES)
def test_the_interval_holds_the_ratio_and_is_never_a_point(candidate, reference):
    t = timed(candidate, reference)
    assert t.low < t.ratio < t.high


@PATIENT
@given(st.floats(0.981, 1.019), PROCESSES)
def test_a_difference_inside_the_noise_earns_nothing(factor, reference):
    t = timed([[ns * factor for ns in ns_T] for ns_T in reference], reference)
    assert t.bound_nearest_1 == 1.0


@PATIENT
@given(st.floats(1.0, 1.25))
def test_a_reference_that_scatters_raises_the_noise_floor(apart):
    floor = timed([[2 * MS], [2 * MS]], [[2 * MS], [2 * MS * apart]]).noise_floor
    assert floor == pytest.approx(max(TimingSettings().noise_floor, (apart - 1) / 2))


@PATIENT
@given(st.lists(st.lists(ODD, max_size=3), max_size=3), st.lists(st.lists(ODD, max_size=3), max_size=3), ODD, ODD)
@example([[1000.0, 1e220], [1e308, 1e308]], [[1e222, 1000]], None, 1e308)
def test_any_reading_whatever_gives_finite_numbers_inside_the_documented_range(candidate, reference, load, warmup):
    settings = TimingSettings()
    t = estimate(processes(candidate, load_ns=load, warmup_ns=warmup), processes(reference), settings)
    for number in (t.ratio, t.low, t.high, t.bound_nearest_1):
        assert 1 / settings.max_ratio <= number <= settings.max_ratio
    assert math.isfinite(t.noise_floor)


@pytest.mark.parametrize("impossible", [0, -5, 5e-324, math.nan, math.inf, -math.inf, None, 999])
def test_an_impossible_reading_is_voided_and_earns_nothing(impossible):
    honest = timed([[2 * MS, 2 * MS], [2 * MS, 2 * MS]], [[4 * MS], [4 * MS]])
    forged = timed([[2 * MS, impossible], [2 * MS, 2 * MS]], [[4 * MS], [4 * MS]])
    assert (forged.ratio, forged.low, forged.high) == (honest.ratio, honest.low, honest.high)
    assert "1 impossible" in forged.note


@pytest.mark.parametrize("empty", [[], [[]], [[0, math.nan]]])
def test_without_a_usable_reading_nothing_is_earned_and_nothing_is_trusted(empty):
    for t in (timed(empty, [[MS]]), timed([[MS]], empty)):
        assert t.bound_nearest_1 == 1.0
        assert not t.trusted
        assert t.note


def test_more_agreement_between_processes_gives_a_narrower_interval():
    agreeing = timed([[MS], [MS]], [[MS], [MS]])
    single = timed([[MS]], [[MS]])
    scattered = timed([[MS], [1.2 * MS]], [[MS], [1.1 * MS]])
    widths = [t.high / t.low for t in (agreeing, single, scattered)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3


@pytest.mark.parametrize("scatter", [0.0, 0.02, 0.04])
def test_more_scatter_within_processes_gives_a_wider_interval_and_more_trials_a_narrower_one(scatter):
    def width(trials, scatter):
        ns_T = [2 * MS * (1 + scatter * t / (trials - 1)) for t in range(trials)]
        t = timed([ns_T] * 2, [ns_T] * 2)
        return t.high / t.low

    assert width(4, scatter) <= width(4, scatter + 0.02)
    assert width(12, scatter) <= width(4, scatter)
    assert width(4, 0.08) > width(12, 0.08)


def test_a_program_that_costs_little_more_than_the_wire_gets_a_wide_interval():
    t = timed([[65_000]] * 2, [[2 * MS]] * 2, null_ns=60_000)
    assert t.ratio == pytest.approx((2 * MS - 60_000) / 12_000)
    assert t.low < 2 * MS / 16_000 < t.ratio


def test_doubt_about_the_cost_of_the_wire_does_not_part_identical_programs():
    t = timed([[100_000]] * 2, [[100_000]] * 2, null_ns=60_000)
    assert (t.ratio, t.bound_nearest_1) == (1.0, 1.0)
    assert t.high / t.low < 1.05


@PATIENT
@given(st.integers(0, 10), st.integers(1, 20))
def test_work_moved_from_one_reading_into_another_is_paid_for(cheap_at, moved_ms):
    honest = timed([[2 * MS] * 3] * 2, [[4 * MS] * 3] * 2)
    trials = [(2 + moved_ms) * MS] * 3
    trials[cheap_at % 3] = 1.9 * MS
    assert timed([trials] * 2, [[4 * MS] * 3] * 2).low <= honest.low * 1.06


def test_the_reference_pays_for_its_import_and_warm_up_as_little_as_the_candidate():
    plain = timed([[2 * MS] * 2] * 2, [[4 * MS] * 2] * 2)
    usual = estimate(
        processes([[2 * MS] * 2] * 2, load_ns=1.8 * MS, warmup_ns=2.5 * MS),
        processes([[4 * MS] * 2] * 2, load_ns=1 * MS, warmup_ns=5 * MS),
    )
    assert usual == plain


@PATIENT
@given(st.floats(0.0, 0.999))
def test_work_moved_to_the_import_earns_no_more_than_the_allowance(moved):
    reference = processes([[50 * MS] * 2] * 2, load_ns=MS, warmup_ns=55 * MS)
    left_ns = 25 * MS * (1 - moved)
    table = processes([[left_ns + 10_000] * 2] * 2, load_ns=MS + 25 * MS * moved, warmup_ns=left_ns + 10_000)
    honest = estimate(processes([[25 * MS] * 2] * 2, load_ns=MS, warmup_ns=27.5 * MS), reference)
    assert estimate(table, reference).ratio <= honest.ratio * 25 / 23 * 1.4


def test_work_moved_to_the_import_or_the_warm_up_is_paid_for():
    reference = processes([[50 * MS] * 2] * 2, load_ns=MS, warmup_ns=50 * MS)
    at_import = processes([[MS] * 2] * 2, load_ns=27 * MS, warmup_ns=MS)
    at_warmup = processes([[MS] * 2] * 2, load_ns=MS, warmup_ns=25 * MS)
    assert estimate(at_import, reference).ratio == pytest.approx(50 / 25.7, rel=0.01)
    assert estimate(at_warmup, reference).ratio == pytest.approx(50 / 25 * 1.4, rel=0.01)


def at_pace(ns_PT, paces_T):
    return [ProcessReadings(trials_ns=ns_T, paces_T=paces_T) for ns_T in ns_PT]


def test_trials_at_a_busy_pace_do_not_count_where_there_are_calm_ones():
    reference = at_pace([[4 * MS, 4 * MS]] * 2, (1.0, 1.0))
    calm = estimate(at_pace([[2 * MS, 2 * MS]] * 2, (1.0, 1.0)), reference)
    mixed = estimate(at_pace([[3.6 * MS, 2 * MS]] * 2, (1.8, 1.0)), reference)
    assert (mixed.ratio, mixed.low, mixed.high) == (calm.ratio, calm.low, calm.high)


def test_without_a_calm_trial_the_pace_is_divided_out_and_the_interval_is_wide():
    reference = at_pace([[4 * MS, 4 * MS]] * 2, (1.0, 1.0))
    t = estimate(at_pace([[3.6 * MS, 3.6 * MS]] * 2, (1.8, 1.8)), reference)
    assert t.ratio == pytest.approx(2.0)
    assert t.high / t.low > 1.4
    assert t.note == "rarely at a calm pace"


def test_a_single_calm_trial_among_busy_ones_is_no_measure():
    reference = at_pace([[4 * MS, 4 * MS]] * 2, (1.0, 1.0))
    odd = estimate(at_pace([[1 * MS, 3.6 * MS]], (1.0, 1.8)) + at_pace([[3.6 * MS, 3.6 * MS]], (1.8, 1.8)), reference)
    assert odd.note == "rarely at a calm pace"
    assert odd.high / odd.low > 1.4


@PATIENT
@given(PROCESSES, PROCESSES, st.lists(st.floats(), min_size=40, max_size=40))
@example([[200_000.0]], [[200_000.0]], [5e-324, *[0.0] * 39])
@example([[200_000.0]], [[200_000.0]], [math.nan, math.inf, *[-math.inf] * 38])
def test_any_paces_whatever_give_finite_numbers_and_a_slower_program_earns_no_more(candidate, reference, paces):
    def paced(ns_PT, factor=1.0):
        ends = itertools.cycle(paces)
        return [
            ProcessReadings(trials_ns=tuple(ns * factor for ns in ns_T), paces_T=tuple(next(ends) for _ in ns_T))
            for ns_T in ns_PT
        ]

    t = estimate(paced(candidate), paced(reference))
    slower = estimate(paced(candidate, 1.5), paced(reference))
    assert 0.001 <= t.low <= t.ratio <= t.high <= 1000.0
    assert slower.ratio <= t.ratio * (1 + 1e-9)
    assert slower.bound_nearest_1 <= t.bound_nearest_1 * (1 + 1e-9)


def test_busy_trials_are_compared_with_busy_trials_when_one_side_was_rarely_calm():
    suffers = 1.6  # while its pace says 1.8
    often = at_pace([[2 * MS] * 3 + [2 * suffers * MS] * 3], (1.0,) * 3 + (1.8,) * 3)
    rarely = at_pace([[2 * MS] + [2 * suffers * MS] * 5], (1.0,) + (1.8,) * 5)
    for candidate, reference in ((often, rarely), (rarely, often)):
        t = estimate(candidate, reference)
        assert t.ratio == pytest.approx(1.0)
        assert t.note == "rarely at a calm pace"


def test_one_busy_trial_whose_pace_was_misread_does_not_make_a_program_fast():
    steady = at_pace([[3.6 * MS] * 7], (1.8,) * 7)
    misread = at_pace([[3.6 * MS] * 6 + [2 * MS]], (1.8,) * 7)
    assert estimate(misread, steady).ratio == pytest.approx(1.0)


def test_a_trial_far_faster_than_the_best_pace_is_not_taken_for_a_calm_one():
    steady = at_pace([[3.6 * MS] * 4], (1.0,) * 4)
    lucky = at_pace([[3.6 * MS] * 3 + [2 * MS]], (1.0,) * 3 + (0.6,))
    assert estimate(lucky, steady).ratio == pytest.approx(1.0)


def test_a_spill_is_paid_for_also_in_a_trial_at_a_busy_pace():
    reference = at_pace([[4 * MS] * 3] * 2, (1.0, 1.0, 1.0))
    honest = estimate(at_pace([[2 * MS] * 3] * 2, (1.0, 1.0, 1.0)), reference)
    spilled = estimate(at_pace([[1.8 * MS, 20 * MS, 20 * MS]] * 2, (1.0, 1.8, 1.8)), reference)
    assert spilled.ratio < honest.ratio / 2


def test_case_a004_one_zero_sample_does_not_collapse_the_aggregate():
    t = estimate_over_tests([0.0, 0.021, 0.02, 0.022], [0.024, 0.024, 0.025, 0.024])
    honest = estimate_over_tests([0.021, 0.02, 0.022], [0.024, 0.025, 0.024])
    assert t.ratio == honest.ratio == pytest.approx(0.024 / 0.021)
    assert t.bound_nearest_1 <= honest.ratio


@pytest.mark.parametrize(
    ("candidate_s", "reference_s"), [(0.0, 0.02), (0.0, 0.0), (-1e-09, 0.02), (math.nan, 0.02), (0.02, math.inf)]
)
def test_case_c005_no_pair_of_readings_gives_an_infinite_ratio(candidate_s, reference_s):
    t = estimate_over_tests([candidate_s], [reference_s])
    assert t.bound_nearest_1 == 1.0
    assert math.isfinite(t.high)


@PATIENT
@given(st.integers(0, 3), st.floats(1e-9, 1e-4))
def test_no_single_test_can_carry_the_ratio_over_tests(at, tiny_s):
    candidate = [0.02, 0.021, 0.019, 0.02]
    candidate[at] = tiny_s
    assert estimate_over_tests(candidate, [0.02] * 4).ratio <= 0.02 / 0.019


@PATIENT
@given(st.lists(st.tuples(st.floats(1e-4, 1.0), st.floats(1e-4, 1.0)), min_size=1, max_size=9), st.randoms())
def test_the_order_of_tests_changes_nothing(pairs_N, rng):
    mixed = rng.sample(pairs_N, len(pairs_N))
    one, other = (estimate_over_tests([c for c, _ in p], [r for _, r in p]) for p in (pairs_N, mixed))
    assert (one.ratio, one.low, one.high) == (other.ratio, other.low, other.high)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_pairs": 0}, "min_pairs must be at least 1"),
        ({"max_pairs": 1}, "must not be below min_pairs"),
        ({"max_trials": 1}, "must not be below trials"),
        ({"calm_pace": 0.9}, "calm_pace must be at least 1"),
        ({"max_ratio": 1.0}, "must exceed 1"),
        ({"spill_slack": math.nan}, "must exceed 1"),
        ({"noise_floor": -0.1}, "must not be negative"),
        ({"evict_bytes": -1}, "must not be negative"),
    ],
)
def test_settings_refuse_nonsense(options, message):
    with pytest.raises(ConfigError, match=message):
        TimingSettings(**options)


def test_the_interval_covers_the_truth_for_every_split_of_a_plausible_sample():
    readings = [[2.00 * MS, 2.01 * MS], [2.01 * MS, 2.05 * MS], [2.02 * MS, 2.03 * MS]]
    for reference in itertools.permutations(readings, 2):
        for candidate in itertools.permutations(readings, 2):
            t = timed([[ns / 1.5 for ns in ns_T] for ns_T in candidate], reference)
            assert t.low <= 1.5 <= t.high
