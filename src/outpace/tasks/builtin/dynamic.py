"""Dynamic programming."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, PLR1730, SIM114
# mypy: allow-untyped-defs, no-check-untyped-defs

import random
from bisect import bisect_left

from outpace.schema import Args, Purpose
from outpace.tasks.builtin.sequences import ints
from outpace.tasks.builtin.strings import letters
from outpace.tasks.define import task


@task(
    "dynamic/longest_common_subsequence",
    prompt="""a and b are strings, possibly empty, up to 90 characters. Return the length of the longest string
    that can be made from each of them by leaving out characters.""",
    example=("abcde", "badge"),
)
def longest_common_subsequence(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[len(a)][len(b)]


def _string_pairs(rng: random.Random) -> list[Args]:
    pairs = [
        ("", ""),
        ("", "ab"),
        ("ab", ""),
        ("a", "a"),
        ("a", "b"),
        ("abc", "abc"),
        ("abc", "cba"),
        ("kitten", "sitting"),
    ]
    sizes = [(5, 6), (12, 9), (30, 30), (60, 40)]
    return [*pairs, *((letters(rng, m, "abcd"), letters(rng, n, "abcd")) for m, n in sizes)]


@longest_common_subsequence.inputs
def longest_common_subsequence_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, equal, disjoint; 90 characters each for timing."""
    if purpose is Purpose.TIMING:
        return [(letters(rng, 90, "abcdef"), letters(rng, 90, "abcdef"))]
    return _string_pairs(rng)


@longest_common_subsequence.oracle
def longest_common_subsequence_oracle(a: str, b: str) -> int:
    """One bit per character of `b`, one row per character of `a`."""
    where = {char: sum(1 << j for j, other in enumerate(b) if other == char) for char in set(a)}
    everything = (1 << len(b)) - 1
    row = everything
    for char in a:
        match = row & where[char]
        row = ((row + match) | (row - match)) & everything
    return len(b) - row.bit_count()


@task(
    "dynamic/edit_distance",
    prompt="""a and b are strings, possibly empty, up to 80 characters. Return the smallest number of
    single-character insertions, deletions and replacements that turn a into b.""",
    example=("kitten", "sitting"),
    split="heldout",
)
def edit_distance(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            if i == 0:
                table[i][j] = j
            elif j == 0:
                table[i][j] = i
            elif a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1]
            else:
                table[i][j] = 1 + min(table[i - 1][j], table[i][j - 1], table[i - 1][j - 1])
    return table[len(a)][len(b)]


@edit_distance.inputs
def edit_distance_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, equal, disjoint; 80 characters each for timing."""
    if purpose is Purpose.TIMING:
        return [(letters(rng, 80, "abcdef"), letters(rng, 80, "abcdef"))]
    return _string_pairs(rng)


@edit_distance.oracle
def edit_distance_oracle(a: str, b: str) -> int:
    """Two rows."""
    above = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        row = [i]
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
        above = row
    return above[-1]


@task(
    "dynamic/knapsack",
    prompt="""weights and values are lists of ints of at least 1, of the same length, up to 30; capacity is an int
    from 0 to 300. Choose items, each at most once, with total weight at most capacity. Return the largest total
    value.""",
    example=([2, 3, 4], [3, 4, 6], 6),
)
def knapsack(weights, values, capacity):
    n = len(weights)
    table = [[0] * (capacity + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for c in range(capacity + 1):
            table[i][c] = table[i - 1][c]
            if weights[i - 1] <= c:
                taken = table[i - 1][c - weights[i - 1]] + values[i - 1]
                if taken > table[i][c]:
                    table[i][c] = taken
    return table[n][capacity]


@knapsack.inputs
def knapsack_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """No items, no room, all fit, none fits; 30 items and capacity 300 for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 30, 1, 60), ints(rng, 30, 1, 100), 300)]
    cases: list[Args] = [([], [], 5), ([3], [4], 0), ([3], [4], 3), ([3], [4], 2), ([1, 1, 1], [1, 5, 3], 2)]
    cases += [([5, 4, 3], [10, 6, 5], 7), ([1, 2], [9, 9], 100)]
    for n, capacity in ((4, 10), (8, 30), (15, 60), (20, 200)):
        cases.append((ints(rng, n, 1, 20), ints(rng, n, 1, 50), capacity))
    return cases


@knapsack.oracle
def knapsack_oracle(weights: list[int], values: list[int], capacity: int) -> int:
    """Only the pairs (weight, value) that nothing lighter beats."""
    best = {0: 0}
    for weight, value in zip(weights, values, strict=True):
        for used, worth in list(best.items()):
            if used + weight <= capacity:
                best[used + weight] = max(best.get(used + weight, 0), worth + value)
        front: dict[int, int] = {}
        for used in sorted(best):
            if not front or best[used] > next(reversed(front.values())):
                front[used] = best[used]
        best = front
    return max(best.values())


@task(
    "dynamic/coin_change",
    prompt="""coins is a non-empty list of different ints of at least 1, up to 6, and amount is an int from 0 to
    2000. Every coin may be used any number of times. Return the smallest number of coins that add up to amount, -1
    if there is no way.""",
    example=([1, 4, 5], 8),
)
def coin_change(coins, amount):
    best = [0] + [amount + 1] * amount
    for total in range(1, amount + 1):
        for coin in coins:
            if coin <= total:
                best[total] = min(best[total], best[total - coin] + 1)
    return best[amount] if best[amount] <= amount else -1


@coin_change.inputs
def coin_change_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Amount 0, no way, greedy fails; about 1900 with five coins for timing."""
    if purpose is Purpose.TIMING:
        return [(rng.sample(range(5, 60), 5), rng.randint(1800, 2000))]
    cases: list[Args] = [([2], 0), ([2], 3), ([1], 7), ([5, 10], 3), ([1, 3, 4], 6), ([9, 6, 1], 12), ([7, 3], 5)]
    for high, amount in ((9, 20), (12, 50), (40, 300), (60, 600)):
        cases.append((rng.sample(range(2, high), 4), amount))
    return cases


@coin_change.oracle
def coin_change_oracle(coins: list[int], amount: int) -> int:
    """Bit a of `reach` says that amount a can be made with the coins used so far."""
    reach, seen, used = 1, 1, 0
    everything = (1 << (amount + 1)) - 1
    while not reach >> amount & 1:
        further = 0
        for coin in coins:
            further |= reach << coin
        reach = further & everything & ~seen
        if not reach:
            return -1
        seen |= reach
        used += 1
    return used


@task(
    "dynamic/subset_sum",
    prompt="""xs is a list of ints of at least 1, possibly empty, up to 30 long, and target is an int from 0 to
    600. Return True if some of the items, each used at most once, add up to exactly target, else False. No items
    add up to 0.""",
    example=([3, 34, 4, 12, 5, 2], 9),
)
def subset_sum(xs, target):
    table = [[False] * (target + 1) for _ in range(len(xs) + 1)]
    table[0][0] = True
    for i in range(1, len(xs) + 1):
        for total in range(target + 1):
            if table[i - 1][total]:
                table[i][total] = True
            elif total >= xs[i - 1] and table[i - 1][total - xs[i - 1]]:
                table[i][total] = True
    return table[len(xs)][target]


@subset_sum.inputs
def subset_sum_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Target 0, empty, parity in the way; 30 even items and an odd target near 600 for timing."""
    if purpose is Purpose.TIMING:
        return [([2 * x for x in ints(rng, 30, 20, 60)], rng.randrange(561, 600, 2))]
    cases: list[Args] = [
        ([], 0),
        ([], 3),
        ([5], 5),
        ([5], 0),
        ([2, 4, 6], 7),
        ([1, 1, 1], 3),
        ([1, 2, 5], 9),
        ([8, 3], 11),
    ]
    for n, target in ((4, 15), (8, 60), (12, 150), (14, 201)):
        cases.append((ints(rng, n, 1, 40), target))
    return [*cases, ([2 * x for x in ints(rng, 15, 1, 20)], 99)]


@subset_sum.oracle
def subset_sum_oracle(xs: list[int], target: int) -> bool:
    """Bit t of `reach` says that t can be made."""
    reach = 1
    for x in xs:
        reach |= reach << x
    return bool(reach >> target & 1)


@task(
    "dynamic/longest_increasing_subsequence",
    prompt="""xs is a list of ints, possibly empty, up to 220 long. Return the length of the longest strictly
    increasing list that can be made from xs by leaving out items.""",
    example=([3, 1, 2, 2, 5],),
    split="heldout",
)
def longest_increasing_subsequence(xs):
    lengths = []
    for i in range(len(xs)):
        best = 1
        for j in range(i):
            if xs[j] < xs[i] and lengths[j] + 1 > best:
                best = lengths[j] + 1
        lengths.append(best)
    return max(lengths) if lengths else 0


@longest_increasing_subsequence.inputs
def longest_increasing_subsequence_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, equal, rising, falling; 220 long for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 220, -1000, 1000),)]
    lists = [[], [4], [2, 2, 2], [1, 2, 3], [3, 2, 1], [10, 9, 2, 5, 3, 7, 101, 18], [0, -1, 0, 1]]
    return [(xs,) for xs in [*lists, ints(rng, 10), ints(rng, 30, 0, 9), ints(rng, 80), ints(rng, 100)]]


@longest_increasing_subsequence.oracle
def longest_increasing_subsequence_oracle(xs: list[int]) -> int:
    """Smallest end of a run of every length, by bisection."""
    ends: list[int] = []
    for x in xs:
        place = bisect_left(ends, x)
        ends[place : place + 1] = [x]
    return len(ends)
