"""Points in the plane, as (x, y) pairs."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, PLR1730
# mypy: allow-untyped-defs, no-check-untyped-defs

import math
import random
from itertools import pairwise

from outpace.schema import Args, Purpose
from outpace.tasks.builtin.sequences import ints
from outpace.tasks.compare import close
from outpace.tasks.define import task

Points = list[tuple[int, int]]


def int_points(rng: random.Random, count: int, reach: int = 1000) -> Points:
    """`count` points with coordinates from -reach to reach; points may repeat."""
    return list(zip(ints(rng, count, -reach, reach), ints(rng, count, -reach, reach), strict=True))


@task(
    "geometry/closest_pair",
    prompt="""points is a list of at least two (x, y) pairs of ints, up to 100. Return the smallest distance
    between two of them, as a float.""",
    example=([(0, 0), (3, 4), (10, 0)],),
    compare=close(atol=1e-6, rtol=1e-9),
)
def closest_pair(points):
    best = float("inf")
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            dx = points[i][0] - points[j][0]
            dy = points[i][1] - points[j][1]
            distance = (dx**2 + dy**2) ** 0.5
            if distance < best:
                best = distance
    return best


@closest_pair.inputs
def closest_pair_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Two points, equal points, points on a line; 100 points for timing."""
    if purpose is Purpose.TIMING:
        return [(int_points(rng, 100, 10**6),)]
    lists = [[(0, 0), (3, 4)], [(1, 1), (1, 1)], [(0, 0), (5, 0), (9, 0)], [(-7, 2), (4, -4), (0, 1)]]
    return [(points,) for points in [*lists, *(int_points(rng, count) for count in (3, 5, 10, 30, 60, 80))]]


@closest_pair.oracle
def closest_pair_oracle(points: Points) -> float:
    """Sorted by x, compared until x alone is too far."""
    ordered = sorted(points)
    best = math.inf
    for i, p in enumerate(ordered):
        for q in ordered[i + 1 :]:
            if q[0] - p[0] >= best:
                break
            best = min(best, math.dist(p, q))
    return best


@task(
    "geometry/farthest_pair",
    prompt="""points is a list of at least two (x, y) pairs of ints, up to 100. Return the largest distance between
    two of them, as a float.""",
    example=([(0, 0), (3, 4), (1, 1)],),
    compare=close(atol=1e-6, rtol=1e-9),
    split="heldout",
)
def farthest_pair(points):
    best = 0.0
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            dx = points[i][0] - points[j][0]
            dy = points[i][1] - points[j][1]
            distance = (dx**2 + dy**2) ** 0.5
            if distance > best:
                best = distance
    return best


@farthest_pair.inputs
def farthest_pair_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Two points, equal points, points on a line; 100 points for timing."""
    if purpose is Purpose.TIMING:
        return [(int_points(rng, 100, 10**6),)]
    lists = [[(0, 0), (3, 4)], [(1, 1), (1, 1)], [(0, 0), (5, 0), (9, 0)], [(-7, 2), (4, -4), (0, 1)]]
    return [(points,) for points in [*lists, *(int_points(rng, count) for count in (3, 5, 10, 30, 60, 80))]]


@farthest_pair.oracle
def farthest_pair_oracle(points: Points) -> float:
    """Between corners of the convex hull only, which hold the two."""
    corners = _hull(points)
    return max(math.dist(p, q) for p in corners for q in corners)


@task(
    "geometry/polygon_area",
    prompt="""points is the list of the (x, y) corners, ints, of a polygon whose sides do not cross, in order
    around it, 3 to 6000 of them. Return its area, as a float of at least 0.""",
    example=([(0, 0), (4, 0), (4, 3)],),
    compare=close(atol=1e-6, rtol=1e-9),
)
def polygon_area(points):
    area = 0
    for i in range(len(points)):
        j = (i + 1) % len(points)
        area += points[i][0] * points[j][1]
        area -= points[j][0] * points[i][1]
    return abs(area) / 2


def _star(rng: random.Random, corners: int) -> Points:
    """A polygon around a centre, corners by angle, clockwise or not."""
    centre_x, centre_y = rng.randint(-500, 500), rng.randint(-500, 500)
    points = []
    for i, distance in enumerate(ints(rng, corners, 2000, 4000)):
        angle, radius = math.tau * i / corners, distance * corners
        points.append((centre_x + round(radius * math.cos(angle)), centre_y + round(radius * math.sin(angle))))
    return points[:: rng.choice((1, -1))]


@polygon_area.inputs
def polygon_area_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Both directions, flat ones, far from the origin; 6000 corners for timing."""
    if purpose is Purpose.TIMING:
        return [(_star(rng, 6000),)]
    lists = [
        [(0, 0), (1, 0), (1, 1), (0, 1)],
        [(0, 0), (0, 1), (1, 1), (1, 0)],
        [(0, 0), (1, 1), (2, 2)],
        [(10, 10), (13, 10), (10, 14)],
        [(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],
        [(-5, -5), (-1, -5), (-1, -2), (-3, -2), (-3, 0), (-5, 0)],
    ]
    return [(points,) for points in [*lists, *(_star(rng, corners) for corners in (3, 4, 7, 50, 300))]]


@polygon_area.oracle
def polygon_area_oracle(points: Points) -> float:
    """Triangles fanned out from the first corner."""
    x0, y0 = points[0]
    doubled = 0
    for (x1, y1), (x2, y2) in pairwise(points[1:]):
        doubled += (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    return abs(doubled) / 2


@task(
    "geometry/manhattan_sum",
    prompt="""points is a list of (x, y) pairs of ints, possibly empty, up to 150. Return the sum of |dx| + |dy|
    over all pairs of points, each pair counted once.""",
    example=([(0, 0), (1, 2), (3, 0)],),
)
def manhattan_sum(points):
    total = 0
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            total += abs(points[i][0] - points[j][0])
            total += abs(points[i][1] - points[j][1])
    return total


@manhattan_sum.inputs
def manhattan_sum_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, one point, equal points; 150 points for timing."""
    if purpose is Purpose.TIMING:
        return [(int_points(rng, 150, 10**4),)]
    lists: list[Points] = [[], [(3, 4)], [(1, 1), (1, 1)], [(0, 0), (-3, 4)], [(0, 5), (0, -5), (0, 1)]]
    return [(points,) for points in [*lists, *(int_points(rng, count) for count in (3, 6, 15, 40, 80))]]


@manhattan_sum.oracle
def manhattan_sum_oracle(points: Points) -> int:
    """Each sorted coordinate counts once for every smaller one and against every larger one."""
    total = 0
    for axis in (0, 1):
        ordered = sorted(point[axis] for point in points)
        total += sum(value * (2 * place - len(ordered) + 1) for place, value in enumerate(ordered))
    return total


@task(
    "geometry/convex_hull",
    prompt="""points is a list of different (x, y) pairs of ints, up to 200, not all on one line. Return the
    corners of their convex hull as a list of pairs, counterclockwise, starting with the smallest pair, without
    points that lie inside a side.""",
    example=([(0, 0), (2, 0), (1, 1), (2, 2), (0, 2), (1, 0)],),
    returns_sequence=True,
    split="heldout",
)
def convex_hull(points):
    start = min(points)
    hull = []
    current = start
    while True:
        hull.append(current)
        following = points[0] if points[0] != current else points[1]
        for p in points:
            turn = (following[0] - current[0]) * (p[1] - current[1]) - (following[1] - current[1]) * (p[0] - current[0])
            near = (following[0] - current[0]) ** 2 + (following[1] - current[1]) ** 2
            far = (p[0] - current[0]) ** 2 + (p[1] - current[1]) ** 2
            if turn < 0 or (turn == 0 and far > near):
                following = p
        current = following
        if current == start:
            return hull


def _different(points: Points) -> Points:
    return list(dict.fromkeys(points))


@convex_hull.inputs
def convex_hull_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Triangles, squares with points on their sides, grids; 200 points in a disc for timing."""
    if purpose is Purpose.TIMING:
        angles = [(rng.random() * math.tau, 10**6 * math.sqrt(rng.random())) for _ in range(200)]
        return [(_different([(round(r * math.cos(a)), round(r * math.sin(a))) for a, r in angles]),)]
    lists = [
        [(0, 0), (1, 0), (0, 1)],
        [(5, 5), (0, 0), (5, 0), (0, 5), (2, 2)],
        [(x, y) for x in range(4) for y in range(3)],
        [(0, 0), (2, 0), (4, 0), (4, 4), (3, 3)],
        [(-3, 0), (0, -3), (3, 0), (0, 3), (0, 0), (1, 1)],
    ]
    drawn = [[*int_points(rng, count, 10), (20, 0), (-20, 1), (0, 20)] for count in (3, 8, 20, 60)]
    return [(_different(rng.sample(points, len(points))),) for points in [*lists, *drawn]]


@convex_hull.oracle
def convex_hull_oracle(points: Points) -> Points:
    """Andrew's monotone chain."""
    return _hull(points)


def _hull(points: Points) -> Points:
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    return _half(ordered)[:-1] + _half(ordered[::-1])[:-1]


def _half(ordered: Points) -> Points:
    chain: Points = []
    for x, y in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], (x, y)) <= 0:
            chain.pop()
        chain.append((x, y))
    return chain


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
