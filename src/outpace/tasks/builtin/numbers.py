"""Number theory."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, SIM108
# mypy: allow-untyped-defs, no-check-untyped-defs

import math
import random
from functools import cache
from itertools import combinations

from outpace.schema import Args, Purpose
from outpace.tasks.builtin.sequences import ints
from outpace.tasks.define import task


def is_prime(n: int) -> bool:
    """By trial division; n is small here."""
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


@task(
    "numbers/fibonacci_mod",
    prompt="""n is an int from 0 to 20 and m is an int of at least 2. Return the n-th Fibonacci number modulo m,
    where the 0th is 0, the 1st is 1, and each later one is the sum of the two before it.""",
    example=(10, 7),
)
def fibonacci_mod(n, m):
    if n < 2:
        return n
    return (fibonacci_mod(n - 1, m) + fibonacci_mod(n - 2, m)) % m


@fibonacci_mod.inputs
def fibonacci_mod_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """The first few n, small and large m; n = 20 for timing."""
    if purpose is Purpose.TIMING:
        return [(20, rng.randint(2, 10**6))]
    cases: list[Args] = [(0, 2), (1, 2), (2, 2), (3, 10), (5, 5), (10, 100), (12, 144), (15, 3)]
    return cases + [(n, rng.randint(2, 500)) for n in (7, 13, 17, 19)]


@fibonacci_mod.oracle
def fibonacci_mod_oracle(n: int, m: int) -> int:
    """Two values in a loop."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a % m


@task(
    "numbers/count_primes",
    prompt="""n is an int from 0 to 1000. Return how many prime numbers there are from 2 up to and including n.""",
    example=(11,),
)
def count_primes(n):
    count = 0
    for number in range(2, n + 1):
        prime = True
        for divisor in range(2, number):
            if number % divisor == 0:
                prime = False
                break
        if prime:
            count += 1
    return count


@count_primes.inputs
def count_primes_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """0, 1, 2, primes and squares of primes; 800 to 1000 for timing."""
    if purpose is Purpose.TIMING:
        return [(rng.randint(800, 1000),)]
    return [
        (n,) for n in (0, 1, 2, 3, 4, 25, 29, 49, 100, rng.randint(5, 60), rng.randint(60, 400), rng.randint(400, 900))
    ]


@count_primes.oracle
def count_primes_oracle(n: int) -> int:
    """The sieve of Eratosthenes."""
    sieve = bytearray([0, 0] + [1] * max(n - 1, 0))
    for p in range(2, math.isqrt(n) + 1):
        if sieve[p]:
            sieve[p * p :: p] = bytes(len(range(p * p, len(sieve), p)))
    return sum(sieve[: n + 1])


@task(
    "numbers/divisors",
    prompt="""n is an int from 1 to 60000. Return the list of all positive ints that divide n, smallest first.""",
    example=(12,),
    returns_sequence=True,
)
def divisors(n):
    result = []
    for d in range(1, n + 1):
        if n % d == 0:
            result.append(d)
    return result


@divisors.inputs
def divisors_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """1, primes, squares, highly composite numbers; 50000 to 60000 for timing."""
    if purpose is Purpose.TIMING:
        return [(rng.randint(50000, 60000),)]
    return [(n,) for n in (1, 2, 3, 4, 36, 49, 97, 360, 1024, rng.randint(5, 100), rng.randint(100, 5000), 5040)]


@divisors.oracle
def divisors_oracle(n: int) -> list[int]:
    """Pairs up to the square root."""
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


@task(
    "numbers/prime_factors",
    prompt="""n is an int from 1 to 50000. Return the list of the prime factors of n, smallest first, each as often
    as it divides n; the empty list for 1.""",
    example=(60,),
    returns_sequence=True,
    split="heldout",
)
def prime_factors(n):
    factors = []
    divisor = 2
    while n > 1:
        if n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        else:
            divisor += 1
    return factors


@prime_factors.inputs
def prime_factors_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """1, primes, powers, products; a prime between 40000 and 50000 for timing."""
    if purpose is Purpose.TIMING:
        return [(next(n for n in range(rng.randint(40000, 49900), 50000) if is_prime(n)),)]
    return [(n,) for n in (1, 2, 3, 4, 12, 49, 97, 1024, 2310, 9409, rng.randint(2, 99), rng.randint(100, 9999))]


@prime_factors.oracle
def prime_factors_oracle(n: int) -> list[int]:
    """Two, then odd divisors up to the square root of what is left."""
    factors = []
    for divisor in (2, *range(3, math.isqrt(n) + 1, 2)):
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
    return factors + [n] * (n > 1)


@task(
    "numbers/collatz_longest",
    prompt="""The Collatz sequence of a number goes on with n // 2 if n is even and 3 * n + 1 if it is odd, until
    it reaches 1. limit is an int from 1 to 500. Return the start from 1 to limit whose sequence is longest, the
    smallest such start if several are.""",
    example=(10,),
)
def collatz_longest(limit):
    best_start = 1
    best_steps = 0
    for start in range(1, limit + 1):
        n = start
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        if steps > best_steps:
            best_steps = steps
            best_start = start
    return best_start


@collatz_longest.inputs
def collatz_longest_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """The first few limits and some at random; 400 to 500 for timing."""
    if purpose is Purpose.TIMING:
        return [(rng.randint(400, 500),)]
    return [(n,) for n in (1, 2, 3, 4, 9, 13, 27, 97, rng.randint(5, 30), rng.randint(30, 120), rng.randint(120, 300))]


@cache
def _collatz_steps(n: int) -> int:
    return 0 if n == 1 else 1 + _collatz_steps(3 * n + 1 if n % 2 else n // 2)


@collatz_longest.oracle
def collatz_longest_oracle(limit: int) -> int:
    """With the steps of every number remembered."""
    return max(range(1, limit + 1), key=_collatz_steps)


@task(
    "numbers/count_coprime_pairs",
    prompt="""xs is a list of ints of at least 1, possibly empty, up to 100 long. Return the number of pairs of
    positions i < j for which the greatest common divisor of xs[i] and xs[j] is 1.""",
    example=([2, 3, 4, 9],),
)
def count_coprime_pairs(xs):
    count = 0
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            a = xs[i]
            b = xs[j]
            while b:
                a, b = b, a % b
            if a == 1:
                count += 1
    return count


@count_coprime_pairs.inputs
def count_coprime_pairs_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, ones, equal numbers, primes; 100 numbers below 10000 for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 100, 1, 10000),)]
    lists = [[], [1], [1, 1], [2, 2], [2, 3, 5, 7], [4, 6, 8], [6, 35, 10, 21]]
    return [(xs,) for xs in [*lists, ints(rng, 5, 1, 10), ints(rng, 20, 1, 30), ints(rng, 40, 1, 1000)]]


@count_coprime_pairs.oracle
def count_coprime_pairs_oracle(xs: list[int]) -> int:
    """By math.gcd."""
    return sum(math.gcd(a, b) == 1 for a, b in combinations(xs, 2))
