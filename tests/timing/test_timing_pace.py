from outpace.timing import TimingSettings
from outpace.timing.pace import Pacer, pacer_of_this_thread, spin_ns


class Clock:
    """Paces from a list, the last one for ever; time that passes only by sleeping."""

    def __init__(self, *paces_ns):
        self.paces_ns, self.now_s = list(paces_ns), 0.0

    def read(self):
        return self.paces_ns.pop(0) if len(self.paces_ns) > 1 else self.paces_ns[0]

    def sleep(self, duration_s):
        self.now_s += duration_s

    def pacer(self, **options):
        pacer = Pacer(self.read, self.sleep, lambda: self.now_s)
        pacer.begin(TimingSettings(**options))
        return pacer


def test_the_first_reading_is_calm_for_want_of_a_better_one():
    assert Clock(50).pacer().wait_for_calm(None) == 50


def test_it_waits_until_the_pace_is_near_the_best_one():
    clock = Clock(30, 50, 50, 50, 50, 31)
    pacer = clock.pacer()
    assert pacer.read() == 30
    assert pacer.wait_for_calm(50) == 31
    assert clock.now_s > 0


def test_a_calm_reading_made_just_before_is_not_repeated():
    clock = Clock(30, 99)
    pacer = clock.pacer()
    pacer.read()
    assert pacer.wait_for_calm(31) == 31


def test_a_lone_slow_reading_is_taken_again():
    pacer = Clock(30, 80, 30).pacer()
    pacer.read()
    assert pacer.read() == 30


def test_it_waits_no_longer_than_a_measurement_may():
    clock = Clock(*[30] * 5, 50)
    pacer = clock.pacer(calm_wait_s=0.01)
    for _ in range(5):
        pacer.read()
    assert not pacer.is_calm(pacer.wait_for_calm(None))
    assert 0.009 < clock.now_s < 0.011
    pacer.begin(TimingSettings(calm_wait_s=0.01))
    pacer.wait_for_calm(None)
    assert 0.019 < clock.now_s < 0.021


def test_a_best_pace_that_is_not_seen_for_seconds_is_forgotten():
    clock = Clock(30, 50)
    pacer = clock.pacer(calm_wait_s=0.0)
    pacer.read()
    clock.now_s += 1.0
    assert not pacer.is_calm(pacer.read())
    clock.now_s += 3.0
    assert pacer.is_calm(pacer.read())


def test_a_lone_fast_reading_is_no_measure_of_the_best_pace():
    pacer = Clock(20, *[30] * 40).pacer()
    for _ in range(41):
        pacer.read()
    assert pacer.best_ns == 30
    assert pacer.is_calm(31)


def test_the_fixed_loop_costs_cpu_time_and_each_thread_has_one_pacer():
    assert spin_ns() > 0
    assert pacer_of_this_thread() is pacer_of_this_thread()
