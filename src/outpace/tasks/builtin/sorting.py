"""Sorting and searching."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, PLW2901, SIM102
# mypy: allow-untyped-defs, no-check-untyped-defs

import heapq
import random
from bisect import bisect_left

from outpace.schema import Args, Purpose
from outpace.tasks.builtin.sequences import ints
from outpace.tasks.define import task


@task(
    "sorting/sort_list",
    prompt="""xs is a list of ints, possibly empty, up to 200 long. Return a list of its items in ascending order.""",
    example=([3, 1, 2],),
    returns_sequence=True,
)
def sort_list(xs):
    result = list(xs)
    for i in range(len(result)):
        for j in range(len(result) - 1 - i):
            if result[j] > result[j + 1]:
                result[j], result[j + 1] = result[j + 1], result[j]
    return result


@sort_list.inputs
def sort_list_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, sorted, reversed, repeats; 200 long for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 200, -10000, 10000),)]
    lists = [[], [1], [2, 1], [1, 2, 3], [3, 2, 1], [5, 5, 5], [0, -1, 0, -1], [10**20, 3, -(10**20)]]
    return [(xs,) for xs in [*lists, ints(rng, 10), ints(rng, 40, 0, 5), ints(rng, 100)]]


@sort_list.oracle
def sort_list_oracle(xs: list[int]) -> list[int]:
    """By sorted."""
    return sorted(xs)


@task(
    "sorting/kth_smallest",
    prompt="""xs is a list of ints, up to 300 long, and k is an int with 1 <= k <= len(xs). Return the k-th
    smallest item, counting repeated items each time (k = 1 gives the minimum).""",
    example=([7, 2, 9, 2], 3),
)
def kth_smallest(xs, k):
    rest = list(xs)
    smallest = None
    for _ in range(k):
        position = 0
        for i in range(len(rest)):
            if rest[i] < rest[position]:
                position = i
        smallest = rest.pop(position)
    return smallest


@kth_smallest.inputs
def kth_smallest_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """First, last, middle, repeats; 300 items and k near 250 for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 300, -10000, 10000), rng.randint(245, 255))]
    cases: list[Args] = [([4], 1), ([2, 1], 1), ([2, 1], 2), ([5, 5, 5], 2), ([3, 1, 2, 1], 2), ([0, -5, 5], 3)]
    for count, k in ((10, 1), (10, 10), (30, 7), (80, 40), (120, 100)):
        cases.append((ints(rng, count), k))
    return cases


@kth_smallest.oracle
def kth_smallest_oracle(xs: list[int], k: int) -> int:
    """The end of the k smallest."""
    return heapq.nsmallest(k, xs)[-1]


@task(
    "sorting/two_sum",
    prompt="""xs is a list of ints, possibly empty, up to 220 long, and target is an int. Return the positions [i,
    j], i < j, with xs[i] + xs[j] == target: of several such pairs the one with the smallest i, then the smallest j.
    Return [-1, -1] if there is none.""",
    example=([5, 2, 7, 4], 9),
    returns_sequence=True,
)
def two_sum(xs, target):
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] + xs[j] == target:
                return [i, j]
    return [-1, -1]


@two_sum.inputs
def two_sum_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """None, one, several pairs, a value with itself; 220 items whose only pair comes last for timing."""
    if purpose is Purpose.TIMING:
        xs = [2 * x for x in ints(rng, 218, -5000, 5000)]
        last = 2 * rng.randint(-5000, 5000) + 1
        return [([*xs, last, 20001], last + 20001 if rng.random() < 0.5 else 99999)]
    cases: list[Args] = [([], 0), ([3], 6), ([3, 3], 6), ([1, 2, 3], 7), ([3, 2, 4], 6), ([1, 5, 5, 1], 6)]
    cases += [([0, 0, 0], 0), ([4, 1, 3, 2], 5), ([-3, 4, 3, 90], 0)]
    return cases + [(ints(rng, count, -20, 20), rng.randint(-30, 30)) for count in (8, 20, 60)]


@two_sum.oracle
def two_sum_oracle(xs: list[int], target: int) -> list[int]:
    """The first and the second place of every value, looked up."""
    places: dict[int, list[int]] = {}
    for place, x in enumerate(xs):
        places.setdefault(x, []).append(place)
    for i, x in enumerate(xs):
        later = [j for j in places.get(target - x, []) if j > i]
        if later:
            return [i, later[0]]
    return [-1, -1]


@task(
    "sorting/merge_intervals",
    prompt="""intervals is a list of (start, end) pairs of ints with start <= end, possibly empty, up to 200. Merge
    those that overlap or share an end point. Return the list of the merged [start, end] pairs in ascending order.""",
    example=([(8, 9), (1, 3), (3, 5)],),
    returns_sequence=True,
)
def merge_intervals(intervals):
    merged = []
    for start, end in intervals:
        separate = []
        for other in merged:
            if other[0] <= end and start <= other[1]:
                start = min(start, other[0])
                end = max(end, other[1])
            else:
                separate.append(other)
        separate.append([start, end])
        merged = separate
    return sorted(merged)


def _intervals(rng: random.Random, count: int, reach: int, longest: int) -> list[tuple[int, int]]:
    starts = ints(rng, count, -reach, reach)
    return [(start, start + rng.randint(0, longest)) for start in starts]


@merge_intervals.inputs
def merge_intervals_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, touching, nested, apart, points; 200 mostly apart for timing."""
    if purpose is Purpose.TIMING:
        return [(_intervals(rng, 200, 100000, 200),)]
    lists: list[list[tuple[int, int]]] = [
        [],
        [(1, 2)],
        [(1, 2), (2, 3)],
        [(1, 2), (3, 4)],
        [(1, 9), (3, 4)],
        [(5, 6), (1, 2), (2, 5)],
        [(0, 0), (0, 0)],
        [(-5, -1), (-3, 2), (4, 4)],
    ]
    return [(pairs,) for pairs in [*lists, *(_intervals(rng, count, 50, 9) for count in (5, 12, 40))]]


@merge_intervals.oracle
def merge_intervals_oracle(intervals: list[tuple[int, int]]) -> list[list[int]]:
    """Sorted once, merged in one pass."""
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@task(
    "sorting/search_all",
    prompt="""xs is a list of different ints in ascending order, up to 400 long; queries is a list of ints, up to
    100. Return a list with the position in xs of each query, -1 for those that are not there.""",
    example=([2, 5, 8], [8, 3, 2]),
    returns_sequence=True,
    split="heldout",
)
def search_all(xs, queries):
    result = []
    for query in queries:
        position = -1
        for i in range(len(xs)):
            if xs[i] == query:
                position = i
                break
        result.append(position)
    return result


@search_all.inputs
def search_all_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Nothing to search, nothing asked, ends, misses; 400 items and 100 queries, mostly misses, for timing."""
    if purpose is Purpose.TIMING:
        return [(sorted(rng.sample(range(1000), 400)), ints(rng, 100, 0, 1999))]
    cases: list[Args] = [
        ([], [1]),
        ([1], []),
        ([4], [4, 5]),
        ([1, 3, 5], [1, 5, 3]),
        ([1, 3], [0, 2, 4]),
        ([7], [7, 7]),
    ]
    for count, asked in ((10, 5), (50, 30), (200, 60)):
        cases.append((sorted(rng.sample(range(-300, 300), count)), ints(rng, asked, -300, 300)))
    return cases


@search_all.oracle
def search_all_oracle(xs: list[int], queries: list[int]) -> list[int]:
    """By bisection."""
    places = [bisect_left(xs, query) for query in queries]
    return [
        place if place < len(xs) and xs[place] == query else -1 for place, query in zip(places, queries, strict=True)
    ]


@task(
    "sorting/merge_sorted_lists",
    prompt="""lists is a list of up to 20 lists of ints, each in ascending order, some perhaps empty, up to 1000
    ints in all. Return one ascending list of all their items.""",
    example=([[1, 4], [], [2, 4, 6]],),
    returns_sequence=True,
    split="heldout",
)
def merge_sorted_lists(lists):
    positions = [0] * len(lists)
    result = []
    while True:
        best = -1
        for i in range(len(lists)):
            if positions[i] < len(lists[i]):
                if best == -1 or lists[i][positions[i]] < lists[best][positions[best]]:
                    best = i
        if best == -1:
            return result
        result.append(lists[best][positions[best]])
        positions[best] += 1


@merge_sorted_lists.inputs
def merge_sorted_lists_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """No lists, empty lists, repeats; 20 lists of 50 for timing."""
    if purpose is Purpose.TIMING:
        return [([sorted(ints(rng, 50, -10000, 10000)) for _ in range(20)],)]
    cases: list[Args] = [
        ([],),
        ([[]],),
        ([[], []],),
        ([[1]],),
        ([[2, 2], [2]],),
        ([[4, 5], [1, 2]],),
        ([[-1, 7], [], [0]],),
    ]
    for lists, longest in ((2, 5), (4, 10), (8, 20)):
        cases.append(([sorted(ints(rng, rng.randint(0, longest))) for _ in range(lists)],))
    return cases


@merge_sorted_lists.oracle
def merge_sorted_lists_oracle(lists: list[list[int]]) -> list[int]:
    """By heapq.merge."""
    return list(heapq.merge(*lists))
