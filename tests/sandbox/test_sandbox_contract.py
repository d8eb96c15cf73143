"""What every backend does, at every level of isolation: values, failures and their names."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from outpace.errors import SandboxUnavailable
from outpace.sandbox import Layer, ProcessSandbox, SandboxSettings
from outpace.schema import Instance, Limits, Sandbox

LEVELS = {
    "full": frozenset(),
    "in a container without namespaces": frozenset({Layer.NAMESPACES}),
    "limits only": frozenset(Layer) - {Layer.RLIMITS, Layer.USAGE_CHECK},
}


@pytest.fixture(params=sorted(LEVELS), scope="module")
def backend(request, start) -> Iterator[Sandbox]:
    """Every backend and level that must keep the contract."""
    return start(*LEVELS[request.param])


def test_it_is_what_the_schema_calls_a_sandbox(backend):
    instance = backend.open("def f(): return 1", "f", Limits())
    opened: Instance = instance
    assert opened.load_failure is None
    assert opened.load_cpu_ns is not None
    assert opened.close() is None
    assert opened.close() is None


PLAIN = [
    *(None, True, False, 0, -1, 2**31, -(2**70), 1.5, float("inf"), "", "é\ud800", b"\0", 1j),
    *([], [1, [2.0, "x"]], (), (1, (2,)), {}, {"a": {1: [2]}}, {1, 2}, frozenset({"x"})),
    [[float(i * j) for i in range(40)] for j in range(40)],
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:20])
def test_plain_values_go_in_and_come_out(run, backend, value):
    result = run(backend, "def f(x): return x", value)
    assert result.failure is None
    assert result.call.value == value
    assert type(result.call.value) is type(value)
    assert result.call.cpu_ns is not None


REPLIES = {
    "an array becomes a list": ("import array\ndef f(): return [array.array('d', [1, 2])]", [[1.0, 2.0]]),
    "the module is not main": ("def f(): return __name__ == '__main__'", False),
    "a main guard does not run": ("x = 1\nif __name__ == '__main__':\n    x = input()\ndef f(): return x", 1),
    "a dotted method": ("class f:\n    def __call__(self): return 3\nf = f()", 3),
    "the recursion limit may be raised": (
        "import sys\nsys.setrecursionlimit(20000)\ndef g(n): return n and 1 + g(n - 1)\ndef f(): return g(5000)",
        5000,
    ),
    "output goes nowhere": ("import sys\ndef f():\n    print('x'); sys.stderr.write('y'); return 1", 1),
    "dataclasses find their module": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
        "def f(): return P(1).x",
        1,
    ),
    "asserts hold": (
        "def f():\n    try:\n        assert False\n    except AssertionError:\n        return 'raised'",
        "raised",
    ),
    "warnings are silent": ("def f(): return 1 is 1  # SyntaxWarning", True),
}


@pytest.mark.parametrize("name", REPLIES)
def test_honest_programs_answer(run, backend, name):
    source, value = REPLIES[name]
    result = run(backend, source)
    assert (result.failure, result.call.value) == (None, value)


@pytest.mark.parametrize("expression", ["(x for x in [1, 2])", "map(abs, [1, 2])", "zip([1], [2])", "iter([3])"])
def test_an_iterator_becomes_a_list_where_the_task_says_so_and_is_refused_elsewhere(run, backend, expression):
    source = f"def f(): return {expression}"
    assert type(run(backend, source, consume=True).call.value) is list
    assert run(backend, source).verdict == ("wrong", "output_type")


FAILURES = {
    "raises": ("def f(): return 1 / 0", "crashed", "exception:ZeroDivisionError"),
    "raises at load": ("import math\nmath.nothing", "crashed", "exception:AttributeError"),
    "raises its own class": ("class Odd(Exception): pass\ndef f(): raise Odd('x')", "crashed", "exception:Odd"),
    "raises an exception whose text cannot be made": (
        "class Odd(Exception):\n    def __str__(self): raise ValueError\ndef f(): raise Odd",
        "crashed",
        "exception:Odd",
    ),
    "does not parse": ("def f(:", "syntax_error", "syntax_error"),
    "has a null byte": ("def f(): return 1\0", "syntax_error", "syntax_error"),
    "has a lone surrogate": ("x = '\udc80'\ndef f(): return 1", "syntax_error", "syntax_error"),
    "raises a syntax error of its own": ("def f(): raise SyntaxError('x')", "crashed", "exception:SyntaxError"),
    "has no entry point": ("def g(): return 1", "crashed", "no_entry_point"),
    "has an entry point that is no function": ("f = 3", "crashed", "no_entry_point"),
    "asks for input": ("def f(): return input()", "crashed", "exception:EOFError"),
    "asks for input at load": ("x = input()\ndef f(): return 1", "crashed", "exception:EOFError"),
    "leaves by sys.exit": ("import sys\ndef f(): sys.exit(0)", "crashed", "exit"),
    "leaves by exit": ("def f(): exit()", "crashed", "exit"),
    "leaves by os._exit": ("import os\ndef f(): os._exit(0)", "crashed", "exit"),
    "leaves at load": ("import os\nos._exit(0)", "crashed", "exit"),
    "dies by a signal": (
        "import sys\nsys.setrecursionlimit(10**8)\nclass C:\n    def __repr__(self): return repr([self])\n"
        "def f(): return repr(C())",
        "crashed",
        "signal:SIGSEGV",
    ),
    "returns a coroutine": ("async def f(): return 1", "wrong", "output_type"),
    "returns a list of its own class": ("class L(list): pass\ndef f(): return L([1])", "wrong", "output_type"),
    "returns a number of its own class": ("class F(float): pass\ndef f(): return [F(1)]", "wrong", "output_type"),
    "returns a decimal": ("from decimal import Decimal\ndef f(): return [[Decimal(1)]]", "wrong", "output_type"),
    "returns a fraction": ("from fractions import Fraction\ndef f(): return Fraction(1)", "wrong", "output_type"),
    "returns a bytearray": ("def f(): return bytearray(b'x')", "wrong", "output_type"),
    "returns a code object": ("def f(): return f.__code__", "wrong", "output_type"),
    "returns itself": ("def f():\n    x = []\n    x.append(x)\n    return x", "wrong", "output_type"),
    "returns too much": ("def f(): return 'x' * 20_000_000", "resource", "reply_size"),
    "needs too much memory": ("def f(): return len(bytearray(2**31))", "resource", "memory_limit"),
    "takes the wrong arguments": ("def f(x, y): return 1", "crashed", "exception:TypeError"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_its_outcome_and_reason(run, backend, name):
    source, outcome, reason = FAILURES[name]
    assert run(backend, source).verdict == (outcome, reason)


EATER = """
def f():
    while True:
        try:
            bytearray(2**31)
        except MemoryError:
            pass
"""


def test_memory_that_is_eaten_in_a_caught_loop_ends_as_time(run, backend):
    assert run(backend, EATER, limits=Limits(cpu_s=0.2)).verdict == ("timeout", "cpu_limit")


LOOPS = {
    "in a call": ("def f():\n    while True: pass", Limits(cpu_s=0.2), "cpu_limit"),
    "at load": ("while True: pass", Limits(import_cpu_s=0.1), "import_cpu_limit"),
    "asleep": ("import time\ndef f(): time.sleep(60)", Limits(wall_s=0.5), "wall_limit"),
    "asleep at load": ("import time\ntime.sleep(60)", Limits(wall_s=0.5), "wall_limit"),
    "in an endless iterator": ("import itertools\ndef f(): return itertools.repeat(1)", Limits(cpu_s=0.2), "cpu_limit"),
    "in a finaliser of its result": (
        "class Bomb(list):\n    def __del__(self):\n        while True: pass\ndef f():\n    Bomb()\n    return 1",
        Limits(cpu_s=0.2),
        "cpu_limit",
    ),
    "in a repr of its exception": (
        "class Odd(Exception):\n    def __str__(self):\n        while True: pass\ndef f(): raise Odd",
        Limits(cpu_s=0.2),
        "cpu_limit",
    ),
    "printing": ("def f():\n    while True: print('x' * 10000)", Limits(cpu_s=0.2), "cpu_limit"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_without_end_is_a_timeout(run, backend, name):
    source, limits, reason = LOOPS[name]
    result = run(backend, source, limits=limits, consume=True)
    assert result.verdict in {("timeout", reason), ("resource", "memory_limit")}
    assert result.verdict[1] == reason or "iterator" in name


TAMPERING = {
    "writes bytes that are no frame": "os.write(3, b'hello hello')",
    "writes a frame of an unknown kind": r"os.write(3, b'\0\0\0\0Z\x01\0\0\0')",
    "writes a frame that decodes to nothing": r"os.write(3, b'\x01\0\0\0V\x01\0\0\0x')",
    "writes an empty value": r"os.write(3, b'\0\0\0\0V\x01\0\0\0')",
    "answers a call that is to come": r"os.write(3, b'\x01\0\0\0V\x02\0\0\0T')",
    "answers twice": r"os.write(3, b'\x01\0\0\0V\x01\0\0\0T\x01\0\0\0V\x01\0\0\0T')",
    "announces a huge frame": r"os.write(3, b'\xff\xff\xff\xffV\x01\0\0\0')",
    "says that it is loaded, again": r"os.write(3, b'\0\0\0\0L\x01\0\0\0')",
}


@pytest.mark.parametrize("name", TAMPERING)
def test_writing_to_the_channel_is_tampering(run, start, name):
    source = f"import os\ndef f():\n    {TAMPERING[name]}\n    return 1"
    for level in (frozenset(), frozenset({Layer.NAMESPACES})):
        result = run(start(*level), source)
        assert result.verdict[0] == "tampering"
        assert result.call.value in (None, True)


ANSWERS_FOR_ITSELF = r"""
import os, struct
def f(x):
    os.write(3, struct.pack('<IBI', 1, ord('V'), x) + b'T')
    return 7
"""


def test_an_answer_that_a_candidate_writes_itself_is_only_an_answer_and_a_second_one_is_tampering(sandbox):
    instance = sandbox.open(ANSWERS_FOR_ITSELF, "f", Limits())
    first = instance.call((1,))
    assert first.value in (True, None)  # None when both replies arrived at once
    second = instance.call((2,))
    assert second.failure is not None
    assert (second.failure.outcome.value, second.failure.reason) == ("tampering", "unsolicited_bytes")
    instance.close()


def test_an_unasked_reply_after_the_last_call_passes_only_when_the_check_is_off(run, start, core):
    for without, expected in ((frozenset(), ("tampering", "unsolicited_bytes")), ({Layer.USAGE_CHECK}, None)):
        settings = SandboxSettings(core=core, without=frozenset(without), allow_weak_isolation=True)
        with ProcessSandbox(settings) as sandbox:
            instance = sandbox.open(ANSWERS_FOR_ITSELF, "f", Limits())
            result = instance.call((1,))
            threading.Event().wait(0.2)  # the child goes on to its own reply
            closing = instance.close()
            failure = result.failure or closing
            assert (failure and (failure.outcome.value, failure.reason)) == expected


def test_a_candidate_cannot_raise_an_error_of_ours(run, sandbox):
    source = "class SandboxUnavailable(Exception): pass\ndef f(): raise SandboxUnavailable('x')"
    assert run(sandbox, source).verdict == ("crashed", "exception:SandboxUnavailable")


def test_a_name_of_an_exception_is_text_and_nothing_else(run, sandbox):
    source = "E = type('a b: <script>', (Exception,), {})\ndef f(): raise E"
    assert run(sandbox, source).verdict[0] in {"tampering", "crashed"}


def test_a_method_of_a_solution_class_is_found_by_its_dotted_name(sandbox):
    with sandbox.open("class Solution:\n    def add(self, a, b): return a + b", "Solution.add", Limits()) as instance:
        assert instance.call((1, 2)).value == 3


def test_state_lives_from_call_to_call_and_not_from_child_to_child(sandbox):
    source = "calls = []\ndef f():\n    calls.append(1)\n    return len(calls)"
    for _ in range(2):
        with sandbox.open(source, "f", Limits()) as instance:
            assert [instance.call(()).value for _ in range(3)] == [1, 2, 3]


def test_arguments_are_private_copies(sandbox):
    rows = [[1.0]]
    with sandbox.open("def f(rows):\n    rows[0][0] = 9.0\n    return rows", "f", Limits()) as instance:
        assert instance.call((rows,)).value == [[9.0]]
    assert rows == [[1.0]]


def test_the_order_of_a_set_of_strings_is_the_same_in_every_child(sandbox):
    source = "def f(): return list({str(i) for i in range(50)})"
    orders = []
    for _ in range(2):
        with sandbox.open(source, "f", Limits()) as instance:
            orders.append(instance.call(()).value)
    assert orders[0] == orders[1]


def test_large_arguments_and_replies_pass(sandbox):
    value = [[float(i) for i in range(1000)] for _ in range(300)]
    with sandbox.open("def f(x): return x", "f", Limits()) as instance:
        assert instance.call((value,)).value == value


def test_a_failed_call_leaves_the_candidate_callable(sandbox):
    with sandbox.open("def f(x): return 1 // x", "f", Limits()) as instance:
        assert instance.call((0,)).failure is not None
        assert instance.call((1,)).value == 1


def test_a_source_that_is_too_long_never_reaches_a_child(sandbox):
    with sandbox.open("#" * 1001, "f", Limits(source_bytes=1000)) as instance:
        assert instance.load_failure is not None
        assert (instance.load_failure.outcome.value, instance.load_failure.reason) == ("resource", "source_size")
        assert instance.call(()).failure == instance.load_failure


def test_a_dead_child_repeats_its_failure(sandbox):
    with sandbox.open("import os\ndef f(): os._exit(0)", "f", Limits()) as instance:
        first = instance.call(()).failure
        assert first is not None
        assert instance.call(()).failure == first


def test_every_nanosecond_of_a_child_is_charged(core):
    with ProcessSandbox(SandboxSettings(core=core)) as sandbox:
        assert sandbox.isolation.clock == "exact"
        source = "x = sum(range(300_000))\ndef f(n): return sum(range(n))"
        instance = sandbox.open(source, "f", Limits())
        charged_ns = instance.load_cpu_ns + sum(instance.call((100_000,)).cpu_ns for _ in range(5))
        assert instance.close() is None
        assert instance.usage.cpu_ns >= charged_ns
        assert charged_ns > instance.usage.cpu_ns * 0.5


def test_work_after_a_reply_is_charged_or_caught(core):
    """The child is made to compute after it has answered: the next call pays, or the end shows it."""
    source = """
import os
real = os.write
def f(n):
    def write(descriptor, data):
        count = real(descriptor, data)
        sum(range(n))
        return count
    os.write = write
    return 1
"""
    with ProcessSandbox(SandboxSettings(core=core)) as sandbox:
        instance = sandbox.open(source, "f", Limits())
        instance.call((3_000_000,))
        second = instance.call((0,))
        assert second.cpu_ns > 10_000_000
        instance.close()
        lazy = sandbox.open(source, "f", Limits())
        lazy.call((100_000_000,))
        threading.Event().wait(0.2)
        closing = lazy.close()
        assert closing is not None
        assert closing.reason == "uncharged_cpu"


def test_the_clock_is_exact_only_on_a_shared_core(start):
    assert start().isolation.clock == "unpinned"


def test_it_works_from_threads_at_once(sandbox):
    results: list[int] = []

    def work(number: int) -> None:
        for _ in range(3):
            with sandbox.open("def f(x): return x * x", "f", Limits()) as instance:
                results.append(instance.call((number,)).value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(number * number for number in range(6) for _ in range(3))


def test_a_sandbox_made_in_a_thread_outlives_it():
    made: list[ProcessSandbox] = []
    thread = threading.Thread(target=lambda: made.append(ProcessSandbox()))
    thread.start()
    thread.join()
    with made[0] as sandbox, sandbox.open("def f(): return 1", "f", Limits()) as instance:
        assert instance.call(()).value == 1


def test_it_works_from_asyncio(sandbox, run):
    async def both() -> list[int]:
        calls = [asyncio.to_thread(run, sandbox, f"def f(): return {number}") for number in range(4)]
        return [result.call.value for result in await asyncio.gather(*calls)]

    assert asyncio.run(both()) == [0, 1, 2, 3]


def test_strict_mode_refuses_to_run_without_landlock_or_seccomp():
    for layer in (Layer.LANDLOCK, Layer.SECCOMP):
        with pytest.raises(SandboxUnavailable, match="allow_weak_isolation"):
            ProcessSandbox(SandboxSettings(without=frozenset({layer})))


def test_what_is_missing_is_reported(start):
    full, less, none = start(), start(Layer.NAMESPACES), start(*Layer)
    assert full.isolation.level in {"full", "strict"}
    assert less.isolation.level == "strict"
    assert less.isolation.missing["namespaces"] == "switched off"
    assert none.isolation.level == "none"
    assert none.isolation.layers == ()


def test_a_closed_sandbox_says_so():
    sandbox = ProcessSandbox()
    sandbox.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        sandbox.open("def f(): return 1", "f", Limits())
