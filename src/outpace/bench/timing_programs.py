"""Programs whose true cost is known, for `outpace bench timing`: loops scaled to a length, and 32x32 products."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from operator import mul
from typing import Any

from outpace.schema import Args

BASE_LOOPS = 16_000
"""Loops of a program of 1.2-1.5 ms."""

KNOWN_RATIO = 1.25
"""How much faster than the reference `loop_program(1 / KNOWN_RATIO)` is."""

_LOOP = """
def work(xs):
    s = 0
    for i in range({loops}):
        s = (s * 31 + xs[i & 63]) % 1000003
    return sum(xs)
"""

NAIVE_PRODUCT = """
def matmul(A, B):
    C = [[0.0] * len(B[0]) for _ in A]
    for i in range(len(A)):
        for j in range(len(B[0])):
            s = 0.0
            for k in range(len(B)):
                s += A[i][k] * B[k][j]
            C[i][j] = s
    return C
"""

FAST_PRODUCT = """
from operator import mul
def matmul(A, B):
    columns = list(zip(*B))
    return [[sum(map(mul, row, column)) for column in columns] for row in A]
"""

ROW_PRODUCT = """
def matmul(A, B):
    C = []
    for row in A:
        line = [0.0] * len(B[0])
        for a, other in zip(row, B):
            line = [c + a * b for c, b in zip(line, other)]
        C.append(line)
    return C
"""

HOISTED_PRODUCT = """
def matmul(A, B):
    C = []
    for row in A:
        line = []
        for column in zip(*B):
            s = 0.0
            for a, b in zip(row, column):
                s += a * b
            line.append(s)
        C.append(line)
    return C
"""

GROUP_OF_8 = (NAIVE_PRODUCT, FAST_PRODUCT, ROW_PRODUCT, HOISTED_PRODUCT) * 2


@dataclass(frozen=True, slots=True)
class Workload:
    """What is timed: an entry point, its reference, fresh inputs, and the judge of its values; picklable."""

    entry_point: str
    reference: str
    make_args: Callable[[random.Random], Args]
    is_right: Callable[[Any, Args], bool]


def loop_program(factor: float = 1.0) -> str:
    """A program that costs `factor` times what the reference of `LOOPS` costs."""
    return _LOOP.format(loops=round(BASE_LOOPS * factor))


def _numbers(rng: random.Random) -> Args:
    return ([rng.randrange(1_000_000) for _ in range(64)],)


def _is_sum(value: Any, args: Args) -> bool:
    return bool(value == sum(args[0]))


def _matrices(rng: random.Random) -> Args:
    return tuple([[rng.random() for _ in range(32)] for _ in range(32)] for _ in range(2))


def _is_product(value: Any, args: Args) -> bool:
    """Freivalds' check: a wrong product survives it with probability 0, up to rounding, and it costs 3 n^2."""
    A, B = args
    x = [random.random() for _ in range(32)]
    through_B = [sum(map(mul, row, x)) for row in B]
    expected = [sum(map(mul, row, through_B)) for row in A]
    actual = [sum(map(mul, row, x)) for row in value]
    return all(abs(e - a) < 1e-6 for e, a in zip(expected, actual, strict=True))


LOOPS = Workload("work", loop_program(), _numbers, _is_sum)
PRODUCTS = Workload("matmul", NAIVE_PRODUCT, _matrices, _is_product)
