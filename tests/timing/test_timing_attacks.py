import random

import pytest
from timing_attacks import ATTACKS, HONEST, PREPARABLE, PREPARED

from outpace.schema import Failure, Limits, Timing
from outpace.timing import measure_group, null_source


def right_answer(xs):
    s = 0
    for i in range(12000):
        s = (s * 31 + xs[i & 63]) % 1000003
    return s


def measure(sandbox, sources, reference, judge):
    rng = random.Random(0)

    def opener(source):
        return lambda: sandbox.open(source, "work", Limits())

    return measure_group(
        [opener(source) for source in sources],
        opener(reference),
        lambda: ([rng.randrange(10**6) for _ in range(64)],),
        judge,
        open_null=opener(null_source("work")),
        clock=sandbox.isolation.clock,
        rng=rng,
    )


def holds_mostly(claim):
    """Whether a claim about one measurement holds in most of three: on a busy machine one in a hundred is off."""
    return claim() or (claim() and claim())


def test_an_honest_program_is_timed_by_an_exact_clock(sandbox):
    (honest,) = measure(sandbox, [HONEST], HONEST, lambda value, args: value == right_answer(*args))
    assert isinstance(honest, Timing)
    assert honest.trusted


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_earns_more_than_honest_work(sandbox, name):
    def earns_no_more():
        attack, honest = measure(
            sandbox, [HONEST + ATTACKS[name], HONEST], HONEST, lambda value, args: value == right_answer(*args)
        )
        assert isinstance(honest, Timing)
        return isinstance(attack, Failure) or attack.low <= honest.high * (1 + honest.noise_floor)

    assert holds_mostly(earns_no_more)


WRONG_WHILE_TIMED = [
    "returns the answer of the call before",
    "is right only until it is timed",
    "raises once it is timed",
]


@pytest.mark.parametrize("name", WRONG_WHILE_TIMED)
def test_a_wrong_answer_or_an_exception_while_timed_voids_the_timing(sandbox, name):
    (attack,) = measure(sandbox, [HONEST + ATTACKS[name]], HONEST, lambda value, args: value == right_answer(*args))
    assert isinstance(attack, Failure)


@pytest.mark.parametrize("when", PREPARED)
def test_preparing_the_answer_at_another_time_earns_next_to_nothing(sandbox, when):
    honest = PREPARABLE + PREPARED["never: the honest way"]
    (result,) = measure(sandbox, [PREPARABLE + PREPARED[when]], honest, lambda value, args: True)
    assert isinstance(result, Timing)
    assert result.low <= 1.8


def test_many_honest_imports_cost_nothing(sandbox):
    imports = "import decimal, unicodedata, json, re, random, copy, string, dataclasses, enum\n"

    def is_no_slower():
        many, none = measure(
            sandbox, [imports + HONEST, HONEST], HONEST, lambda value, args: value == right_answer(*args)
        )
        return many.high * (1 + many.noise_floor) >= none.low

    assert holds_mostly(is_no_slower)
