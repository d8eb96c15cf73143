import os
import random
from pathlib import Path

import pytest

from outpace.bench import timing_programs as programs
from outpace.bench.article import ArticleHarness
from outpace.bench.neighbours import busy_neighbours
from outpace.bench.timing import Measured, Sample, measure, summary, variation

LINES = [programs.LOOPS.reference, programs.loop_program(1 / programs.KNOWN_RATIO), programs.loop_program(1.25)]


def run(source, entry_point, args):
    namespace = {}
    exec(source, namespace)
    return namespace[entry_point](*args)


@pytest.mark.parametrize("source", LINES)
def test_every_loop_program_is_right(source):
    args = programs.LOOPS.make_args(random.Random(0))
    assert programs.LOOPS.is_right(run(source, "work", args), args)


@pytest.mark.parametrize("source", set(programs.GROUP_OF_8))
def test_every_product_is_right_and_a_wrong_one_is_found_out(source):
    args = programs.PRODUCTS.make_args(random.Random(0))
    value = run(source, "matmul", args)
    assert programs.PRODUCTS.is_right(value, args)
    value[3][4] += 0.01
    assert not programs.PRODUCTS.is_right(value, args)


def test_loops_are_scaled_exactly():
    assert f"range({programs.BASE_LOOPS * 5 // 4})" in programs.loop_program(1.25)
    assert f"range({programs.BASE_LOOPS * 4 // 5})" in programs.loop_program(1 / programs.KNOWN_RATIO)


def test_the_product_measures_known_programs_in_its_own_sandbox(sandbox):
    same, faster = measure(sandbox, programs.LOOPS, [programs.LOOPS.reference, programs.loop_program(0.25)], 0.5)
    assert same.ratio is not None
    assert faster.ratio > 2 * same.ratio


def test_a_program_that_fails_has_no_ratio(sandbox):
    assert measure(sandbox, programs.LOOPS, ["def work(xs):\n    return None\n"], 0.5) == [Measured(None, None)]


def test_the_article_harness_tells_a_slow_program_from_a_fast_one():
    args = programs.LOOPS.make_args(random.Random(0))
    harness = ArticleHarness(programs.loop_program(0.2), "work", args, sweep_bytes=2**20)
    assert harness.ratio(programs.loop_program(5.0)) < 1.0


def children():
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_busy_neighbours_end_with_their_context_also_after_an_error():
    before, during = children(), set()

    def fail_beside_two():
        with busy_neighbours([min(os.sched_getaffinity(0))] * 2):
            during.update(children() - before)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_beside_two()
    assert len(during) == 2
    assert children() == before


def sample(known, same, right):
    return Sample(
        known=known,
        product=known,
        same=[Measured(r, r) for r in same],
        right_5pct=right,
        right_10pct=right,
        right_25pct=right,
        cost_ms=[20.0],
        group_ms=[100.0],
    )


def test_the_summary_counts_what_it_says():
    quiet = sample([1.25, 1.25, 1.25], [1.0, 1.0], [True, True])
    one = sample([1.25, 1.35, 1.45], [1.0, 1.06], [True, True])
    two = sample([1.15, 1.25, 1.35], [1.0, None], [True, False])
    figures = summary({0: quiet, 1: one, 2: two})
    assert figures["cv_quiet"] == 0.0
    assert figures["cv_loaded"] == pytest.approx(0.1 / 1.25)
    assert figures["bias"] == pytest.approx(0.0)
    assert figures["false_speedup"] == pytest.approx(2 / 6)
    assert figures["false_credit"] == pytest.approx(2 / 6)
    assert figures["ordering_5pct"] == pytest.approx(5 / 6)
    assert figures["drift"] == figures["drift_1_neighbour"] == pytest.approx(0.1 / 1.25)
    assert figures["drift_2_neighbours"] == pytest.approx(0.0)
    assert (figures["cost_ms"], figures["group_of_8_ms"]) == (20.0, 100.0)


def test_variation_is_relative():
    assert variation([1.0, 2.0, 3.0]) == pytest.approx(variation([10.0, 20.0, 30.0])) == pytest.approx(0.5)


def test_the_article_harness_writes_to_its_whole_buffer_before_every_call():
    args = programs.LOOPS.make_args(random.Random(0))
    harness = ArticleHarness(programs.loop_program(0.01), "work", args, sweep_bytes=2**16)
    before = harness._buffer.copy()
    harness.median_s(programs.loop_program(0.01))
    assert (harness._buffer != before).all()
