"""Graphs as neighbour lists, edge lists or weight matrices."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103, PLR1730
# mypy: allow-untyped-defs, no-check-untyped-defs

import heapq
import math
import random
from collections import deque

from outpace.schema import Args, Purpose
from outpace.tasks.define import task

Edges = list[tuple[int, int]]


def random_edges(rng: random.Random, n: int, count: int) -> Edges:
    """`count` pairs of different nodes below n; pairs may repeat."""
    return [tuple(rng.sample(range(n), 2)) for _ in range(count)] if n > 1 else []  # type: ignore[misc]


def neighbour_lists(n: int, edges: Edges) -> list[list[int]]:
    """Undirected neighbour lists, each sorted and without repeats."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    return [sorted(row) for row in neighbours]


@task(
    "graphs/bfs_distances",
    prompt="""graph is a list where graph[i] is the list of the neighbours of node i, up to 250 nodes; start is a
    node. Return a list with the number of edges on a shortest path from start to each node, -1 for nodes out of
    reach.""",
    example=([[1], [0, 2], [1], []], 0),
    returns_sequence=True,
)
def bfs_distances(graph, start):
    n = len(graph)
    distances = [-1] * n
    distances[start] = 0
    for step in range(n):
        for node in range(n):
            if distances[node] == step:
                for neighbour in graph[node]:
                    if distances[neighbour] == -1:
                        distances[neighbour] = step + 1
    return distances


@bfs_distances.inputs
def bfs_distances_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Single node, path, unreachable parts, directed edges; 250 nodes for timing."""
    if purpose is Purpose.TIMING:
        return [(neighbour_lists(250, random_edges(rng, 250, 320)), rng.randrange(250))]
    cases: list[Args] = [([[]], 0), ([[], []], 1), ([[1], []], 1), ([[1], [2], [0]], 2), ([[1, 2], [3], [3], []], 0)]
    cases.append((neighbour_lists(30, [(i, i + 1) for i in range(29)]), 3))
    for n, count in ((5, 4), (12, 15), (40, 30), (60, 150)):
        cases.append((neighbour_lists(n, random_edges(rng, n, count)), rng.randrange(n)))
    return cases


@bfs_distances.oracle
def bfs_distances_oracle(graph: list[list[int]], start: int) -> list[int]:
    """Breadth-first with a queue."""
    distances = [-1] * len(graph)
    distances[start] = 0
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for neighbour in graph[node]:
            if distances[neighbour] < 0:
                distances[neighbour] = distances[node] + 1
                queue.append(neighbour)
    return distances


@task(
    "graphs/count_components",
    prompt="""A graph has nodes 0 to n-1 (n up to 300); edges is a list of (a, b) pairs that join nodes in both
    directions, up to 300. Return the number of connected components; a node without edges is one.""",
    example=(5, [(0, 1), (1, 2), (3, 4)]),
)
def count_components(n, edges):
    labels = list(range(n))
    for a, b in edges:
        if labels[a] != labels[b]:
            old = labels[a]
            new = labels[b]
            for i in range(n):
                if labels[i] == old:
                    labels[i] = new
    return len(set(labels))


@count_components.inputs
def count_components_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """No nodes, no edges, self-loops, repeats; 300 nodes and edges for timing."""
    if purpose is Purpose.TIMING:
        return [(300, random_edges(rng, 300, 300))]
    cases: list[Args] = [(0, []), (1, []), (4, []), (2, [(0, 1), (1, 0), (0, 1)]), (3, [(1, 1), (2, 0)])]
    cases.append((6, [(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)]))
    cases += [(n, random_edges(rng, n, count)) for n, count in ((8, 4), (20, 15), (60, 40), (100, 150))]
    return cases


@count_components.oracle
def count_components_oracle(n: int, edges: Edges) -> int:
    """Depth-first from every node not seen yet."""
    neighbours = neighbour_lists(n, edges)
    seen: set[int] = set()
    count = 0
    for node in range(n):
        count += node not in seen
        stack = [node]
        while stack:
            current = stack.pop()
            if current not in seen:
                seen.add(current)
                stack.extend(neighbours[current])
    return count


@task(
    "graphs/dijkstra",
    prompt="""graph is a list where graph[i] is the list of (neighbour, weight) pairs of node i, weights ints of at
    least 1, up to 180 nodes; start is a node. Return a list with the length of a shortest path from start to each
    node, -1 for nodes out of reach.""",
    example=([[(1, 4), (2, 1)], [], [(1, 2)], []], 0),
    returns_sequence=True,
)
def dijkstra(graph, start):
    n = len(graph)
    distances = [float("inf")] * n
    distances[start] = 0
    done = [False] * n
    for _ in range(n):
        nearest = -1
        for node in range(n):
            if not done[node] and (nearest == -1 or distances[node] < distances[nearest]):
                nearest = node
        done[nearest] = True
        for neighbour, weight in graph[nearest]:
            if distances[nearest] + weight < distances[neighbour]:
                distances[neighbour] = distances[nearest] + weight
    return [-1 if d == float("inf") else d for d in distances]


def _weighted(rng: random.Random, n: int, count: int) -> list[list[tuple[int, int]]]:
    graph: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, b in random_edges(rng, n, count):
        graph[a].append((b, rng.randint(1, 50)))
    return graph


@dijkstra.inputs
def dijkstra_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Single node, unreachable, a detour that is shorter, parallel edges; 180 nodes for timing."""
    if purpose is Purpose.TIMING:
        return [(_weighted(rng, 180, 480), rng.randrange(180))]
    cases: list[Args] = [
        ([[]], 0),
        ([[], [(0, 3)]], 0),
        ([[(1, 9), (2, 1)], [], [(1, 2)]], 0),
        ([[(1, 5), (1, 2)], [(0, 1)]], 0),
        ([[(1, 1)], [(2, 1)], [(3, 1)], [(0, 1)]], 2),
    ]
    return cases + [
        (_weighted(rng, n, count), rng.randrange(n)) for n, count in ((5, 8), (12, 30), (40, 60), (60, 300))
    ]


@dijkstra.oracle
def dijkstra_oracle(graph: list[list[tuple[int, int]]], start: int) -> list[int]:
    """With a heap."""
    distances = [-1] * len(graph)
    heap = [(0, start)]
    while heap:
        distance, node = heapq.heappop(heap)
        if distances[node] < 0:
            distances[node] = distance
            for neighbour, weight in graph[node]:
                if distances[neighbour] < 0:
                    heapq.heappush(heap, (distance + weight, neighbour))
    return distances


@task(
    "graphs/topological_order",
    prompt="""A directed graph without cycles has nodes 0 to n-1 (n up to 50); edges is a list of (a, b) pairs,
    each meaning that a comes before b. Return a list of all nodes in such an order: of the nodes that may come
    next, always take the smallest.""",
    example=(4, [(3, 1), (1, 0)]),
    returns_sequence=True,
)
def topological_order(n, edges):
    order = []
    while len(order) < n:
        for node in range(n):
            if node in order:
                continue
            ready = True
            for a, b in edges:
                if b == node and a not in order:
                    ready = False
            if ready:
                order.append(node)
                break
    return order


def _ordered_edges(rng: random.Random, n: int, count: int) -> Edges:
    rank = rng.sample(range(n), n)
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in random_edges(rng, n, count)]


@topological_order.inputs
def topological_order_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """No nodes, no edges, a chain backwards, repeats; 40 nodes for timing."""
    if purpose is Purpose.TIMING:
        return [(40, _ordered_edges(rng, 40, 120))]
    cases: list[Args] = [(0, []), (1, []), (3, []), (3, [(2, 1), (1, 0)]), (4, [(0, 3), (0, 3), (3, 1)])]
    cases += [(n, _ordered_edges(rng, n, count)) for n, count in ((5, 4), (8, 12), (20, 20), (25, 60))]
    return cases


@topological_order.oracle
def topological_order_oracle(n: int, edges: Edges) -> list[int]:
    """Kahn's method with a heap."""
    waiting_for = [0] * n
    after: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        after[a].append(b)
        waiting_for[b] += 1
    heap = [node for node in range(n) if not waiting_for[node]]
    order = []
    while heap:
        node = heapq.heappop(heap)
        order.append(node)
        for other in after[node]:
            waiting_for[other] -= 1
            if not waiting_for[other]:
                heapq.heappush(heap, other)
    return order


@task(
    "graphs/floyd_warshall",
    prompt="""W is a square list of rows, up to 24 x 24: W[i][j] is the length (an int of at least 1) of the edge
    from i to j, float('inf') without an edge, 0 where i = j. Return the matrix of shortest path lengths as a list
    of rows, float('inf') without a path.""",
    example=([[0, 5, 1], [2, 0, 9], [9, 3, 0]],),
    returns_sequence=True,
    split="heldout",
)
def floyd_warshall(W):
    n = len(W)
    D = [row[:] for row in W]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if D[i][k] + D[k][j] < D[i][j]:
                    D[i][j] = D[i][k] + D[k][j]
    return D


def _weights(rng: random.Random, n: int, density: float) -> list[list[float]]:
    rows = [[rng.randint(1, 99) if rng.random() < density else math.inf for _ in range(n)] for _ in range(n)]
    for i in range(n):
        rows[i][i] = 0
    return rows


@floyd_warshall.inputs
def floyd_warshall_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """One node, no edges, one way only; 24 x 24 for timing."""
    if purpose is Purpose.TIMING:
        return [(_weights(rng, 24, 0.3),)]
    inf = math.inf
    cases: list[Args] = [
        ([[0]],),
        ([[0, inf], [inf, 0]],),
        ([[0, 3], [inf, 0]],),
        ([[0, 1, 9], [inf, 0, 2], [4, inf, 0]],),
    ]
    return cases + [(_weights(rng, n, density),) for n, density in ((4, 0.5), (8, 0.3), (12, 0.15), (20, 0.9))]


@floyd_warshall.oracle
def floyd_warshall_oracle(W: list[list[float]]) -> list[list[float]]:
    """Dijkstra from every node."""
    graph = [[(j, w) for j, w in enumerate(row) if j != i and w < math.inf] for i, row in enumerate(W)]
    found = [dijkstra_oracle(graph, start) for start in range(len(W))]
    return [[math.inf if d < 0 else d for d in row] for row in found]
