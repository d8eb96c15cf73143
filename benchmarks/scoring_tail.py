"""How much of a step's scoring hides behind sampling: completions of matmul that end at times drawn from a log-normal.

    python benchmarks/scoring_tail.py
    PYTHONPATH=OTHER_TREE/src python benchmarks/scoring_tail.py     # the same step with another tree's code

No model runs: a thread hands the completions in when their times come, and then waits for the verdicts. A step holds
right programs of several speeds, wrong ones and one that never ends. `hidden` and `exposed` are the seconds that
training calls `score_hidden` and `score_exposed`. As in training on a GPU, sampling leaves the cores to scoring. Where
the work fills the cores for all of `--seconds`, no order of it hides much; other programs on the cores show too, so
compare trees in turns.
"""

import argparse
import random
import threading
import time

from outpace import tasks
from outpace.grade import Grader, GroupInFlight

RIGHT = (
    """
def matmul(A, B):
    result = []
    for i in range(len(A)):
        row = []
        for j in range(len(B[0])):
            total = NUMBER.0 - NUMBER.0
            for k in range(len(B)):
                total += A[i][k] * B[k][j]
            row.append(total)
        result.append(row)
    return result
""",
    """
def matmul(A, B):
    columns, zero = list(zip(*B)), NUMBER - NUMBER
    return [[sum((x * y for x, y in zip(row, column)), zero) for column in columns] for row in A]
""",
    """
from operator import mul
def matmul(A, B):
    columns, zero = list(zip(*B)), NUMBER - NUMBER
    return [[sum(map(mul, row, column), zero) for column in columns] for row in A]
""",
    """
def matmul(A, B):
    def entry(i, j):
        picked = [A[i][k] * B[k][j] for k in range(len(B))]
        return sum(sorted(picked), NUMBER - NUMBER)
    return [[entry(i, j) for j in range(len(B[0]))] for i in range(len(A))]
""",
)
WRONG = (
    "def matmul(A, B):\n    return [list(row) for row in B]",
    "def matmul(A, B):\n    return [[A[i][j] * B[i][j] for j in range(len(B[0]))] for i in range(len(A) + 1)]",
    "def matmul(A, B):\n    return [[0.0] * len(B[0]) for _ in A",
)
ENDLESS = "def matmul(A, B):\n    n = 0\n    while True:\n        n += 1"


def completions(rng: random.Random, options: argparse.Namespace) -> list[tuple[float, int, int, str]]:
    """When each one ends, its group, its place there and its text, in the order in which they end."""
    places = [(group, member) for group in range(options.groups) for member in range(options.size)]
    weights = [rng.lognormvariate(0.0, options.sigma) for _ in places]
    programs = [
        rng.choice(RIGHT).replace("NUMBER", str(number)) if rng.random() < options.right else rng.choice(WRONG)
        for number in range(len(places))
    ]
    early = sorted(range(len(places)), key=weights.__getitem__)[int(0.4 * len(places))]
    if options.endless:
        programs[early] = ENDLESS
    ends = [options.seconds * weight / max(weights) for weight in weights]
    return sorted(
        (end, *place, f"```python\n{program}\n```") for end, place, program in zip(ends, places, programs, strict=True)
    )


def hand_in(ended: list[tuple[float, int, int, str]], groups: list[GroupInFlight]) -> None:
    """Add each completion when its time has come."""
    start = time.monotonic()
    for end, group, member, text in ended:
        time.sleep(max(0.0, start + end - time.monotonic()))
        groups[group].add(member, text)


def step(grader: Grader, rng: random.Random, options: argparse.Namespace) -> tuple[float, float, int]:
    """Seconds of scoring that were hidden and that were waited for, and the programs timed before sampling ended."""
    ended, task = completions(rng, options), tasks.get("linalg/matmul")
    groups = [grader.open_group(task, options.size) for _ in range(options.groups)]
    busy_s = grader.busy_s
    sampling = threading.Thread(target=hand_in, args=(ended, groups))
    sampling.start()
    sampling.join()
    hidden_s, began, timed = grader.busy_s - busy_s, time.monotonic(), sum(group.timed_so_far for group in groups)
    verdicts = [verdict for group in groups for verdict in group.result()]
    exposed_s = time.monotonic() - began
    if None in verdicts:
        raise SystemExit(f"{verdicts.count(None)} completions were not graded: {grader.first_failure}")
    return hidden_s, exposed_s, timed


def main() -> None:
    """Print each step and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=None, help="one per core when left out")
    parser.add_argument("--seconds", type=float, default=6.0, help="until the last completion ends")
    parser.add_argument("--sigma", type=float, default=0.4, help="of the logarithm of a completion's length")
    parser.add_argument("--right", type=float, default=0.6, help="share of right programs")
    parser.add_argument("--no-endless", dest="endless", action="store_false", help="leave out the one that never ends")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, found = random.Random(options.seed), []
    with Grader(workers=options.workers) as grader:
        grader.isolation()  # starts the scoring processes
        for _ in range(options.steps):
            hidden_s, exposed_s, timed = step(grader, rng, options)
            found.append((hidden_s, exposed_s))
            print(f"hidden {hidden_s:5.2f} s, exposed {exposed_s:5.2f} s; {timed} programs timed before the end")
    hidden_s, exposed_s = (sum(column) for column in zip(*found, strict=True))
    share = hidden_s / (hidden_s + exposed_s)
    print(f"all: hidden {hidden_s:5.2f} s, exposed {exposed_s:5.2f} s, hidden share {share:.1%}")


if __name__ == "__main__":
    main()
