"""Small worlds that move step by step."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, SIM102
# mypy: allow-untyped-defs, no-check-untyped-defs

import math
import random

from outpace.schema import Args, Purpose
from outpace.tasks.builtin.sequences import ints
from outpace.tasks.define import task

Grid = list[list[int]]


def random_grid(rng: random.Random, rows: int, columns: int, values: tuple[int, ...] = (0, 1)) -> Grid:
    """Uniform choice of `values`, (rows, columns)."""
    return [rng.choices(values, k=columns) for _ in range(rows)]


@task(
    "simulation/game_of_life",
    prompt="""grid is a non-empty list of rows of 0 (dead) and 1 (alive), up to 40 x 40. Return the next generation
    of Conway's Game of Life as a list of rows. Cells have up to 8 neighbours; all outside the grid is dead.""",
    example=([[0, 1, 0], [0, 1, 0], [0, 1, 0]],),
    returns_sequence=True,
)
def game_of_life(grid):
    rows = len(grid)
    columns = len(grid[0])
    result = []
    for i in range(rows):
        row = []
        for j in range(columns):
            alive = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if (di != 0 or dj != 0) and 0 <= i + di < rows and 0 <= j + dj < columns:
                        alive += grid[i + di][j + dj]
            if alive == 3 or (alive == 2 and grid[i][j] == 1):
                row.append(1)
            else:
                row.append(0)
        result.append(row)
    return result


@game_of_life.inputs
def game_of_life_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """One cell, one row, blinker, block, all alive; 32 x 32 for timing."""
    if purpose is Purpose.TIMING:
        return [(random_grid(rng, 32, 32),)]
    grids = [[[1]], [[0, 1, 1, 1, 0]], [[1], [1], [1]], [[1, 1], [1, 1]], [[1] * 4] * 4, [[0, 0], [0, 0]]]
    shapes = [(3, 3), (5, 4), (4, 9), (12, 12), (20, 7)]
    return [([list(row) for row in g],) for g in [*grids, *(random_grid(rng, r, c) for r, c in shapes)]]


@game_of_life.oracle
def game_of_life_oracle(grid: Grid) -> Grid:
    """Rows padded, added in threes, then columns in threes."""
    blank = [0] * (len(grid[0]) + 2)
    padded = [blank, *([0, *row, 0] for row in grid), blank]
    heights = [[sum(triple) for triple in zip(*padded[i : i + 3], strict=True)] for i in range(len(grid))]
    sums = [[a + b + c for a, b, c in zip(h, h[1:], h[2:], strict=False)] for h in heights]  # with the cell itself
    return [
        [int(total == 3 or (total == 4 and cell == 1)) for total, cell in zip(*pair, strict=True)]
        for pair in zip(sums, grid, strict=True)
    ]


@task(
    "simulation/josephus",
    prompt="""n people numbered 1 to n stand in a circle. Counting starts at person 1; every k-th person counted
    leaves, and counting goes on with the next one. n is an int from 1 to 500 and k an int from 1 to 60. Return the
    number of the last person left.""",
    example=(5, 2),
)
def josephus(n, k):
    people = list(range(1, n + 1))
    while len(people) > 1:
        for _ in range(k - 1):
            people.append(people.pop(0))
        people.pop(0)
    return people[0]


@josephus.inputs
def josephus_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """One person, k = 1, k beyond n; n near 450 and k near 50 for timing."""
    if purpose is Purpose.TIMING:
        return [(rng.randint(400, 500), rng.randint(45, 55))]
    cases: list[Args] = [(1, 1), (1, 7), (2, 1), (2, 2), (5, 1), (7, 3), (6, 6), (4, 11), (41, 3)]
    return cases + [(rng.randint(3, 80), rng.randint(2, 20)) for _ in range(3)]


@josephus.oracle
def josephus_oracle(n: int, k: int) -> int:
    """The recurrence over the size of the circle."""
    place = 0
    for size in range(2, n + 1):
        place = (place + k) % size
    return place + 1


@task(
    "simulation/open_doors",
    prompt="""Doors numbered 1 to n are closed at first. For every step from 1 to n, each door whose number is a
    multiple of step is toggled (opened if closed, closed if open). n is an int from 0 to 250. Return the list of
    the numbers of the doors that are open at the end, smallest first.""",
    example=(5,),
    returns_sequence=True,
)
def open_doors(n):
    doors = [False] * (n + 1)
    for step in range(1, n + 1):
        for door in range(1, n + 1):
            if door % step == 0:
                doors[door] = not doors[door]
    result = []
    for door in range(1, n + 1):
        if doors[door]:
            result.append(door)
    return result


@open_doors.inputs
def open_doors_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """No doors, squares and numbers beside them; 200 to 250 for timing."""
    if purpose is Purpose.TIMING:
        return [(rng.randint(200, 250),)]
    return [(n,) for n in (0, 1, 2, 3, 4, 8, 9, 10, 99, 100, rng.randint(11, 60), rng.randint(60, 180))]


@open_doors.oracle
def open_doors_oracle(n: int) -> list[int]:
    """The squares: only they have an odd number of divisors."""
    return [root * root for root in range(1, math.isqrt(n) + 1)]


@task(
    "simulation/flood_fill",
    prompt="""grid is a non-empty list of rows of ints, up to 30 x 30. Return the grid, as a list of rows, in which
    the cell at (row, column), counted from 0, and all cells of the same value connected to it through sides have
    the value color.""",
    example=([[1, 1, 0], [0, 1, 2]], 0, 0, 7),
    returns_sequence=True,
)
def flood_fill(grid, row, column, color):
    old = grid[row][column]
    region = [(row, column)]
    for i, j in region:
        for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= a < len(grid) and 0 <= b < len(grid[0]):
                if grid[a][b] == old and (a, b) not in region:
                    region.append((a, b))
    result = []
    for i in range(len(grid)):
        new_row = []
        for j in range(len(grid[0])):
            new_row.append(color if (i, j) in region else grid[i][j])
        result.append(new_row)
    return result


@flood_fill.inputs
def flood_fill_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """One cell, the same colour again, no neighbours, all one region; a region of about 100 cells for timing."""
    if purpose is Purpose.TIMING:
        grid = [[0] * 14 for _ in range(14)]
        for i, j in rng.sample([(i, j) for i in range(14) for j in range(14)], 40):
            grid[i][j] = 1
        grid[7][7] = 0
        return [(grid, 7, 7, rng.randint(2, 9))]
    cases: list[Args] = [
        ([[3]], 0, 0, 5),
        ([[3]], 0, 0, 3),
        ([[1, 0], [0, 1]], 0, 0, 2),
        ([[1, 1], [1, 1]], 1, 0, 1),
        ([[0, 0, 0]], 0, 2, 4),
        ([[1, 2, 1], [1, 1, 1]], 0, 0, 2),
    ]
    for rows, columns in ((3, 3), (4, 6), (8, 5), (10, 10)):
        grid = random_grid(rng, rows, columns, (0, 0, 1))
        cases.append((grid, rng.randrange(rows), rng.randrange(columns), rng.randint(0, 3)))
    return cases


@flood_fill.oracle
def flood_fill_oracle(grid: Grid, row: int, column: int, color: int) -> Grid:
    """Depth-first, colouring a copy on the way."""
    result = [list(line) for line in grid]
    old = grid[row][column]
    stack = [(row, column)]
    while stack and old != color:
        i, j = stack.pop()
        if 0 <= i < len(result) and 0 <= j < len(result[0]) and result[i][j] == old:
            result[i][j] = color
            stack += [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
    return result


@task(
    "simulation/cellular_automaton",
    prompt="""cells is a list of 0 and 1, from 1 to 120 long, rule an int from 0 to 255 and steps an int from 0 to
    60. In each step every cell becomes bit number 4 * left + 2 * self + right of rule; beyond the ends are zeros.
    Return the list of the final cells.""",
    example=([0, 0, 1, 0, 0], 90, 1),
    returns_sequence=True,
    split="heldout",
)
def cellular_automaton(cells, rule, steps):
    for _ in range(steps):
        following = []
        for i in range(len(cells)):
            left = cells[i - 1] if i > 0 else 0
            right = cells[i + 1] if i < len(cells) - 1 else 0
            number = 4 * left + 2 * cells[i] + right
            following.append((rule >> number) & 1)
        cells = following
    return cells


@cellular_automaton.inputs
def cellular_automaton_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """One cell, no steps, rules 0 and 255; 120 cells and 60 steps for timing."""
    if purpose is Purpose.TIMING:
        return [(ints(rng, 120, 0, 1), rng.choice((30, 45, 73, 90, 105, 110, 150)), 60)]
    cases: list[Args] = [([1], 2, 1), ([0], 1, 3), ([1, 0, 1], 30, 0), ([0, 1, 1], 0, 2), ([0, 1, 0, 0], 255, 1)]
    for count, steps in ((5, 3), (10, 7), (30, 20), (60, 5)):
        cases.append((ints(rng, count, 0, 1), rng.randint(0, 255), steps))
    return cases


@cellular_automaton.oracle
def cellular_automaton_oracle(cells: list[int], rule: int, steps: int) -> list[int]:
    """All cells as bits of one int, all eight patterns at once; cell 0 is the highest bit."""
    width = len(cells)
    everything = (1 << width) - 1
    state = sum(cell << (width - 1 - i) for i, cell in enumerate(cells))
    for _ in range(steps):
        left, right = state >> 1, (state << 1) & everything
        following = 0
        for number in range(8):
            if rule >> number & 1:
                parts = [bits if number & bit else ~bits for bits, bit in ((left, 4), (state, 2), (right, 1))]
                following |= parts[0] & parts[1] & parts[2] & everything
        state = following
    return [state >> (width - 1 - i) & 1 for i in range(width)]
