"""Lists of numbers read from front to back."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, PLR1730
# mypy: allow-untyped-defs, no-check-untyped-defs

import random
from bisect import bisect_right, insort
from fractions import Fraction
from itertools import accumulate

from outpace.schema import Args, Purpose
from outpace.tasks.compare import close
from outpace.tasks.define import task


def ints(rng: random.Random, count: int, low: int = -100, high: int = 100) -> list[int]:
    """`count` uniform ints from low to high inclusive."""
    return rng.choices(range(low, high + 1), k=count)  # a third of randint's time; inputs are made for every trial


@task(
    "sequences/prefix_sums",
    prompt="""xs is a list of ints or floats, possibly empty, up to 1000 long. Return the list of its running
    totals: item i is xs[0] + ... + xs[i].""",
    example=([1, 2, 3],),
    returns_sequence=True,
)
def prefix_sums(xs):
    result = []
    for i in range(len(xs)):
        result.append(sum(xs[: i + 1]))
    return result


@prefix_sums.inputs
def prefix_sums_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, single, huge and mixed lists; floats are quarters, so that every order of summation is exact."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 1000, -1000, 1000),)]
    lists: list[list[int] | list[float]] = [
        [],
        [5],
        [1, 2, 3],
        [0, 0, 0, 0],
        [-1, 1, -1, 1],
        [0.5, 0.25, 2, -4],
        [10**40, 1, -(10**40)],
        ints(rng, 2),
        ints(rng, 10),
        ints(rng, 300),
        [rng.randint(-400, 400) / 4 for _ in range(40)],
        [rng.choice([rng.randint(-9, 9), rng.randint(-40, 40) / 4]) for _ in range(25)],
    ]
    return [(xs,) for xs in lists]


@prefix_sums.oracle
def prefix_sums_oracle(xs: list[float]) -> list[float]:
    """By accumulate."""
    return list(accumulate(xs))


@task(
    "sequences/max_subarray",
    prompt="""xs is a non-empty list of ints, up to 300 long. Return the largest sum of a non-empty run of
    neighbouring items.""",
    example=([2, -5, 3, 4, -1],),
)
def max_subarray(xs):
    best = xs[0]
    for i in range(len(xs)):
        total = 0
        for j in range(i, len(xs)):
            total += xs[j]
            if total > best:
                best = total
    return best


@max_subarray.inputs
def max_subarray_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """All negative, all positive, mixed; 300 long for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 300),)]
    lists = [[7], [-7], [-3, -1, -2], [1, 2, 3], [0, 0], [5, -9, 6], [-2, 0, -1], [4, -1, 4, -9, 8]]
    return [(xs,) for xs in [*lists, ints(rng, 10), ints(rng, 25), ints(rng, 120), ints(rng, 30, -9, 0)]]


@max_subarray.oracle
def max_subarray_oracle(xs: list[int]) -> int:
    """Kadane's scan."""
    run = best = xs[0]
    for x in xs[1:]:
        run = max(run, 0) + x
        best = max(best, run)
    return best


@task(
    "sequences/moving_average",
    prompt="""xs is a list of ints, up to 600 long, and k is an int with 1 <= k <= len(xs). Return the list of the
    averages of every k neighbouring items, from left to right.""",
    example=([1, 2, 3, 6], 2),
    compare=close(atol=1e-6, rtol=1e-9),
    returns_sequence=True,
)
def moving_average(xs, k):
    result = []
    for i in range(len(xs) - k + 1):
        total = 0
        for j in range(i, i + k):
            total += xs[j]
        result.append(total / k)
    return result


@moving_average.inputs
def moving_average_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Windows of 1, of all, and between; 600 items and a window near 60 for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 600, -1000, 1000), rng.randint(55, 65))]
    cases: list[Args] = [([4], 1), ([4, 7], 1), ([4, 7], 2), ([0, 0, 0], 2), ([-1, 1, -1, 1], 3)]
    for count, k in ((10, 1), (10, 10), (20, 3), (100, 7), (300, 200)):
        cases.append((ints(rng, count), k))
    return cases


@moving_average.oracle
def moving_average_oracle(xs: list[int], k: int) -> list[float]:
    """Differences of running totals, rounded once."""
    totals = [0, *accumulate(xs)]
    return [float(Fraction(totals[i + k] - totals[i], k)) for i in range(len(xs) - k + 1)]


@task(
    "sequences/remove_duplicates",
    prompt="""xs is a list of ints, possibly empty, up to 1000 long. Return a list of its different values, each
    once, in the order in which they first appear.""",
    example=([3, 1, 3, 2, 1],),
    returns_sequence=True,
)
def remove_duplicates(xs):
    result = []
    for x in xs:
        if x not in result:
            result.append(x)
    return result


@remove_duplicates.inputs
def remove_duplicates_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, all equal, all different, negative; 1000 items with about 600 values for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 1000, -400, 400),)]
    lists = [[], [1], [2, 2, 2], [1, 2, 3], [3, 2, 1, 2, 3], [0, -1, 0, -1], [5, 5, 4, 4, 5]]
    return [(xs,) for xs in [*lists, ints(rng, 20, 0, 5), ints(rng, 50, -20, 20), ints(rng, 300), ints(rng, 9, 0, 3)]]


@remove_duplicates.oracle
def remove_duplicates_oracle(xs: list[int]) -> list[int]:
    """By dict order."""
    return list(dict.fromkeys(xs))


@task(
    "sequences/count_inversions",
    prompt="""xs is a list of ints, possibly empty, up to 300 long. Return the number of pairs of positions i < j
    with xs[i] > xs[j].""",
    example=([3, 1, 2],),
    split="heldout",
)
def count_inversions(xs):
    count = 0
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] > xs[j]:
                count += 1
    return count


@count_inversions.inputs
def count_inversions_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, sorted, reversed, with equal items; 300 long for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 300, -1000, 1000),)]
    lists = [[], [1], [1, 2, 3], [3, 2, 1], [2, 2, 2], [2, 1, 2, 1], [0, -1]]
    return [(xs,) for xs in [*lists, ints(rng, 10), ints(rng, 60), ints(rng, 40, 0, 3), list(range(50, 0, -1))]]


@count_inversions.oracle
def count_inversions_oracle(xs: list[int]) -> int:
    """Insert into a sorted list, counting what is larger."""
    seen: list[int] = []
    count = 0
    for x in xs:
        count += len(seen) - bisect_right(seen, x)
        insort(seen, x)
    return count
