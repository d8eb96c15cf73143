import itertools
import random

import pytest
from simulated_machine import Program, SimulatedMachine, counter_inputs, is_echo

from outpace.errors import InfrastructureError
from outpace.schema import Failure, Outcome, Timing
from outpace.timing import TimingSettings, measure_group
from outpace.timing.lane import Lane
from outpace.timing.pace import Pacer

QUIET = {"process_bias": 0.0, "trial_noise": 0.0}


def measure(machine, programs, *, reference=None, judge=is_echo, settings=None, seed=0, **options):
    return measure_group(
        [machine.opener(program) for program in programs],
        machine.opener(reference or Program(), "reference"),
        counter_inputs(),
        judge,
        settings,
        rng=random.Random(seed),
        pacer=machine.pacer(),
        **options,
    )


def test_every_process_of_a_pair_gets_the_same_inputs_and_no_input_comes_twice():
    machine = SimulatedMachine(**QUIET)
    measure(machine, [Program(), Program()])
    seen = {}
    for number, args in machine.events("call candidate") + machine.events("call reference"):
        seen.setdefault(number, []).append(args)
    assert sorted(map(tuple, seen.values())) == [((0,), (1,), (2,), (3,))] * 3 + [((4,), (5,), (6,))] * 3


def test_each_candidate_answers_before_the_reference_gets_the_same_input():
    machine = SimulatedMachine()
    measure(machine, [Program() for _ in range(4)])
    answered = set()
    for event, number, args in machine.log:
        if event == "call reference":
            assert sum(1 for _, what in answered if what == args) == 4
        elif event == "call candidate":
            answered.add((number, args))


def test_values_are_judged_when_every_process_of_the_pair_has_ended():
    machine = SimulatedMachine()

    def judge(value, args):
        assert not any(instance.is_open for instance in machine.opened)
        return is_echo(value, args)

    assert isinstance(measure(machine, [Program()], judge=judge)[0], Timing)


def test_the_judge_gets_the_values_of_one_input_in_a_row():
    inputs = []

    def judge(value, args):
        if not inputs or inputs[-1] != args:
            inputs.append(args)
        return True

    measure(SimulatedMachine(**QUIET), [Program() for _ in range(3)], judge=judge)
    assert inputs == sorted(set(inputs))


def test_the_order_of_the_programs_in_a_round_varies():
    machine = SimulatedMachine()
    measure(machine, [Program() for _ in range(4)], settings=TimingSettings(min_pairs=4))
    first = [number for number, args in machine.events("call candidate") if args == (1,)]
    assert first != sorted(first)


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        (Program(fails_at_call=2), Outcome.CRASHED),
        (Program(answer=lambda args: -1), Outcome.WRONG),
        (Program(answer=lambda args: args[0] if args[0] != 2 else -1), Outcome.WRONG),
        (Program(load_failure=Failure(outcome=Outcome.TIMEOUT, reason="import_cpu_limit")), Outcome.TIMEOUT),
        (Program(close_failure=Failure(outcome=Outcome.TAMPERING, reason="usage")), Outcome.TAMPERING),
        (
            Program(fails_at_call=1, close_failure=Failure(outcome=Outcome.TAMPERING, reason="usage")),
            Outcome.TAMPERING,
        ),
    ],
)
def test_any_failure_in_the_timed_phase_voids_the_timing_and_leaves_the_others_alone(program, outcome):
    failed, fine = measure(SimulatedMachine(), [program, Program()])
    assert isinstance(failed, Failure)
    assert failed.outcome == outcome
    assert isinstance(fine, Timing)
    assert fine.bound_nearest_1 == 1.0


def test_a_candidate_that_turns_wrong_only_in_a_late_process_is_voided():
    late = Program(answer=lambda args: args[0] if args[0] < 4 else -1)
    (result,) = measure(SimulatedMachine(), [late])
    assert isinstance(result, Failure)
    assert result.reason == "wrong_while_timed"


def test_every_process_is_closed_when_we_fail():
    machine = SimulatedMachine()
    with pytest.raises(InfrastructureError, match="reference failed"):
        measure(machine, [Program(), Program()], reference=Program(fails_at_call=1))
    assert machine.opened
    assert not any(instance.is_open for instance in machine.opened)


def test_every_process_is_closed_when_one_cannot_be_opened():
    machine = SimulatedMachine()

    def refuse():
        raise InfrastructureError("no more processes")

    with pytest.raises(InfrastructureError, match="no more processes"):
        measure_group(
            [machine.opener(Program()), refuse], machine.opener(Program(), "reference"), counter_inputs(), is_echo
        )
    assert not any(instance.is_open for instance in machine.opened)


def test_a_reference_that_is_wrong_is_our_failure():
    with pytest.raises(InfrastructureError, match="wrong_while_timed"):
        measure(SimulatedMachine(), [Program()], reference=Program(answer=lambda args: None))


def pairs(result):
    return len(result.candidate_ns_PT)


def test_a_clear_verdict_takes_two_pairs_and_a_ratio_far_from_1_a_single_one():
    programs = [Program(true_ns=1.6e6), Program(true_ns=1e6), Program(true_ns=4e6)]
    assert [pairs(t) for t in measure(SimulatedMachine(), programs)] == [2, 1, 1]


def test_far_programs_that_are_too_close_to_be_ordered_get_another_pair():
    programs = [Program(true_ns=1e6), Program(true_ns=1.06e6)]
    assert [pairs(t) for t in measure(SimulatedMachine(), programs)] == [2, 2]


def test_a_small_difference_is_confirmed_by_a_third_pair_where_the_group_shows_no_larger_one():
    (result,) = measure(SimulatedMachine(**QUIET), [Program(true_ns=2e6 / 1.1)])
    assert pairs(result) == 3
    assert result.bound_nearest_1 > 1.05


def test_a_small_difference_that_is_not_confirmed_earns_less_than_it_shows():
    small, _ = measure(SimulatedMachine(**QUIET), [Program(true_ns=2e6 / 1.1), Program(true_ns=2e5)])
    assert pairs(small) == 2
    assert small.ratio == pytest.approx(1.1, rel=0.01)
    assert small.low == pytest.approx(1.1 / 1.05, rel=0.01)


def test_less_effort_goes_into_a_group_whose_speeds_differ_widely():
    spent = []
    for others in ([2.1e6, 1.9e6, 2e6], [4e5, 8e6, 2e5]):
        results = [
            measure(SimulatedMachine(seed=seed, trial_noise=0.05), [Program(true_ns=ns) for ns in (1.8e6, *others)])[0]
            for seed in range(30)
        ]
        spent.append(sum(map(trials, results)))
    alike, different = spent
    assert different < 0.8 * alike


def test_a_noisy_machine_gets_more_pairs_up_to_the_bound():
    settings = TimingSettings(max_pairs=4)
    spent = [
        pairs(measure(SimulatedMachine(seed=s, process_bias=0.15), [Program()], settings=settings)[0])
        for s in range(20)
    ]
    assert max(spent) == 4
    assert sum(spent) / 20 > 2.5


def trials(result):
    return sum(len(ns_T) for ns_T in result.candidate_ns_PT)


def test_effort_goes_to_the_candidates_that_are_too_close_to_be_ordered():
    close, clear = 0, 0
    for seed in range(30):
        machine = SimulatedMachine(seed=seed, trial_noise=0.06)
        near, far, apart = measure(machine, [Program(true_ns=2e6), Program(true_ns=2.1e6), Program(true_ns=8e6)])
        close += trials(near) + trials(far)
        clear += 2 * trials(apart)
    assert close > 1.2 * clear


def test_no_pair_is_started_once_the_group_budget_is_used():
    settings = TimingSettings(group_budget_s=0.0)
    (result,) = measure(SimulatedMachine(process_bias=0.2), [Program()], settings=settings)
    assert pairs(result) == 1
    assert result.high / result.low > 1.09


def test_a_slow_candidate_gets_fewer_trials_but_at_least_one():
    settings = TimingSettings(trials=5, later_trials=5, process_budget_ns=60_000_000)
    slow, quick = measure(SimulatedMachine(**QUIET), [Program(true_ns=5e8), Program()], settings=settings)
    assert {len(ns_T) for ns_T in slow.candidate_ns_PT} == {1}
    assert {len(ns_T) for ns_T in quick.candidate_ns_PT} == {5}


def test_a_large_group_is_split_and_keeps_its_order():
    costs = [1e6 * (1.1**k) for k in range(7)]
    machine = SimulatedMachine(**QUIET)
    results = measure(machine, [Program(true_ns=c) for c in costs], settings=TimingSettings(max_together=3))
    ratios = [t.ratio for t in results]
    assert ratios == sorted(ratios, reverse=True)


def test_nothing_is_opened_for_an_empty_group():
    machine = SimulatedMachine()
    assert measure(machine, []) == []
    assert machine.opened == []


def test_the_cost_of_the_wire_is_taken_off_both_sides():
    machine = SimulatedMachine(**QUIET)
    (with_null,) = measure(machine, [Program(true_ns=1e5)], open_null=machine.null_opener())
    (without,) = measure(machine, [Program(true_ns=1e5)])
    assert with_null.ratio == pytest.approx(20.0, rel=1e-3)
    assert without.ratio < 15.0


def test_the_cost_of_the_wire_is_taken_off_also_when_there_is_one_pair_only():
    machine = SimulatedMachine(**QUIET)
    one_pair = TimingSettings(min_pairs=1, max_pairs=1)
    (result,) = measure(machine, [Program(true_ns=1e6)], open_null=machine.null_opener(), settings=one_pair)
    assert result.ratio == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("clock", ["unpinned", "none"])
def test_an_inexact_clock_is_never_trusted(clock):
    (result,) = measure(SimulatedMachine(), [Program(true_ns=1e6)], clock=clock)
    assert not result.trusted


def test_without_a_clock_nothing_is_earned():
    (result,) = measure(SimulatedMachine(), [Program(has_clock=False)])
    assert not result.trusted
    assert result.bound_nearest_1 == 1.0
    assert result.note


def test_busy_moments_are_waited_out_within_a_budget():
    settings = TimingSettings(calm_wait_s=0.05)
    machine = SimulatedMachine(busy_share=0.5)
    measure(machine, [Program() for _ in range(4)], settings=settings)
    assert 0.0 < machine.waited_s <= 0.05 + 1e-9


def test_a_machine_that_is_always_busy_is_not_waited_for():
    machine = SimulatedMachine(busy_share=1.0)
    (result,) = measure(machine, [Program(true_ns=1.6e6)])
    assert machine.waited_s == 0.0
    assert pairs(result) == 2
    assert result.high / result.low < 1.05


def test_a_program_that_only_ran_in_busy_moments_gets_a_wide_interval():
    machine = SimulatedMachine(**QUIET)
    settings = TimingSettings(calm_wait_s=0.0, max_pairs=2)
    paces = itertools.cycle([1.0] * 1 + [2.0] * 11)
    pacer = Pacer(lambda: round(30_000 * next(paces)), machine.sleep)
    (result,) = measure_group(
        [machine.opener(Program())], machine.opener(Program()), counter_inputs(), is_echo, settings, pacer=pacer
    )
    assert result.high / result.low > 1.4
    assert result.bound_nearest_1 == 1.0


def test_a_core_that_is_busy_most_of_the_time_gets_one_pair_more_and_rarely_another():
    results = [measure(SimulatedMachine(seed=seed, busy_share=0.85), [Program()])[0] for seed in range(20)]
    rough = [result for result in results if "rarely" in result.note]
    assert len(rough) > 5
    assert sum(pairs(result) == 3 for result in rough) > 0.7 * len(rough)


def test_a_measurement_goes_on_while_two_processes_of_one_program_disagree():
    machine = SimulatedMachine(**QUIET)
    bad_luck = iter([False, True])

    def open_candidate():
        return machine.opener(Program(true_ns=2e6 if next(bad_luck, False) else 1.6e6))()

    (result,) = measure_group(
        [open_candidate],
        machine.opener(Program(), "reference"),
        counter_inputs(),
        is_echo,
        pacer=machine.pacer(),
    )
    assert pairs(result) == 3
    assert result.ratio == pytest.approx(2e6 / 1.6e6, rel=0.02)


def test_trials_are_repeated_until_enough_were_calm_but_not_for_ever():
    settings = TimingSettings(trials=2, max_trials=5, calm_wait_s=0.0)
    numbers = {
        len(ns_T)
        for seed in range(20)
        for ns_T in measure(SimulatedMachine(seed=seed, busy_share=0.5), [Program()], settings=settings)[
            0
        ].candidate_ns_PT
    }
    assert min(numbers) == 2
    assert max(numbers) == 5


def test_a_process_of_the_last_pair_is_called_again_while_its_verdict_is_unclear():
    settings = TimingSettings(max_pairs=2, max_trials=8)
    steady = Program(true_ns=8e6)
    erratic = Program(extra_ns=lambda call: 3e5 * (call % 2))
    first, second = measure(SimulatedMachine(**QUIET), [steady, erratic], settings=settings)
    assert [len(ns_T) for ns_T in first.candidate_ns_PT] == [3]
    assert [len(ns_T) for ns_T in second.candidate_ns_PT] == [3, 8]


@pytest.mark.parametrize(
    ("paces", "warmup", "trial"), [((2, 1, 2), 1.0, 2.0), ((2, 2, 1), 2.0, 2.0), ((1, 1, 1), 1.0, 1.0)]
)
def test_a_first_answer_is_busy_when_both_ends_were_and_a_trial_when_one_was(paces, warmup, trial):
    pacer = Pacer(lambda: 30_000)
    pacer.read()
    lane = Lane(SimulatedMachine(**QUIET).opener(Program())(), pacer, TimingSettings(), trials=3)
    before, between, after = (30_000 * pace for pace in paces)
    readings = iter([between, after])
    pacer.read = lambda: next(readings)
    lane.run(0, (0,), before)
    lane.run(1, (1,), between)
    assert (lane.readings().warmup_pace, lane.readings().paces_T) == (warmup, (trial,))


def test_raw_readings_are_kept_pair_by_pair():
    (result,) = measure(SimulatedMachine(**QUIET), [Program()], settings=TimingSettings(trials=4, later_trials=3))
    assert [len(ns_T) for ns_T in result.candidate_ns_PT] == [4, 3]
    assert [len(ns_T) for ns_T in result.reference_ns_PT] == [4, 3]


NOISY = {"process_bias": 0.01, "trial_noise": 0.02, "burst_chance": 0.2}
BESIDE_A_NEIGHBOUR = {"process_bias": 0.005, "trial_noise": 0.02, "busy_share": 0.5}
MACHINES = pytest.mark.parametrize("noise", [{}, NOISY, BESIDE_A_NEIGHBOUR], ids=["quiet", "noisy", "neighbour"])


@MACHINES
def test_identical_programs_are_called_equal(noise):
    results = [t for seed in range(40) for t in measure(SimulatedMachine(seed=seed, **noise), [Program()] * 5)]
    assert sum(t.bound_nearest_1 != 1.0 for t in results) <= len(results) * 0.005
    assert sum(abs(t.ratio - 1.0) > 0.05 for t in results) <= len(results) * 0.005


@MACHINES
@pytest.mark.parametrize(("apart", "share"), [(1.05, 0.95), (1.10, 0.99), (1.25, 1.0)])
def test_a_group_is_ranked_right(noise, apart, share):
    right = 0
    for seed in range(100):
        slower, faster = measure(
            SimulatedMachine(seed=seed, **noise), [Program(true_ns=2e6 * apart), Program(true_ns=2e6)]
        )
        right += faster.ratio > slower.ratio
    assert right >= 100 * share


def test_a_machine_that_drifts_ranks_a_group_as_a_steady_one_does():
    machine = SimulatedMachine()

    def drift():
        machine.speed *= 0.98
        return (machine.speed,)

    results = measure_group(
        [machine.opener(Program(true_ns=c)) for c in (2e6, 1.8e6, 1e6)],
        machine.opener(Program(), "reference"),
        drift,
        is_echo,
        rng=random.Random(1),
        pacer=machine.pacer(),
    )
    same, faster, fastest = (t.ratio for t in results)
    assert same == pytest.approx(1.0, rel=0.03)
    assert faster == pytest.approx(1 / 0.9, rel=0.03)
    assert fastest == pytest.approx(2.0, rel=0.05)
