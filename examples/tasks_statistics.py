"""Tasks of your own in a Python file: decorate a slow, correct reference, then add inputs and an oracle.

    outpace tasks check examples/tasks_statistics.py
    outpace train recipes/starter.yaml tasks=examples/tasks_statistics.py

The reference's text runs in a child process, so its imports go inside it. `inputs` and `oracle` run in yours.
"""

# A reference is written as a beginner would write it:
# ruff: noqa: D103, PLR1730
import random
import statistics

from outpace.schema import Args, Purpose
from outpace.tasks import close, task


@task(
    "statistics/median",
    prompt="""xs is a non-empty list of ints, up to 200 long. Return its median as a float: the middle item of the
    sorted list, or the mean of the two middle ones.""",
    example=([4, 1, 3, 2],),
    compare=close(atol=1e-9),
)
def median(xs):
    rest = list(xs)
    ordered = []
    while rest:
        smallest = rest[0]
        for x in rest:
            if x < smallest:
                smallest = x
        rest.remove(smallest)
        ordered.append(smallest)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return (ordered[middle - 1] + ordered[middle]) / 2


@median.inputs
def median_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Edge cases first, then random lists; for timing one call of the size that is timed."""
    if purpose is Purpose.TIMING:
        return [([rng.randint(-1000, 1000) for _ in range(200)],)]
    lists = [[5], [1, 2], [2, 1, 3], [7, 7, 7, 7], [-1, -2]]
    lists += [[rng.randint(-50, 50) for _ in range(count)] for count in (3, 10, 11, 60)]
    return [(xs,) for xs in lists]


@median.oracle
def median_oracle(xs: list[int]) -> float:
    """By the standard library, another way than the reference's."""
    return float(statistics.median(xs))


@task(
    "statistics/mode_count",
    prompt="""xs is a list of ints, possibly empty, up to 300 long. Return how often its most frequent value appears,
    0 for the empty list.""",
    example=([3, 1, 3],),
    allowed_modules=["collections", "itertools"],
    split="heldout",
)
def mode_count(xs):
    best = 0
    for x in xs:
        count = 0
        for y in xs:
            if x == y:
                count += 1
        best = max(best, count)
    return best


@mode_count.inputs
def mode_count_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, all equal, all different; 300 long for timing."""
    if purpose is Purpose.TIMING:
        return [([rng.randint(0, 60) for _ in range(300)],)]
    lists: list[list[int]] = [[], [1], [2, 2], [1, 2, 3], [0, -1, 0]]
    lists += [[rng.randint(0, 9) for _ in range(count)] for count in (5, 20, 80)]
    return [(xs,) for xs in lists]


@mode_count.oracle
def mode_count_oracle(xs: list[int]) -> int:
    """By counting each different value once."""
    return max(map(xs.count, set(xs)), default=0)
