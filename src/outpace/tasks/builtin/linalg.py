"""Linear algebra on lists of lists."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103
# mypy: allow-untyped-defs, no-check-untyped-defs

import random
from operator import mul

from outpace.schema import Args, Purpose
from outpace.tasks.builtin.sequences import ints
from outpace.tasks.compare import close
from outpace.tasks.define import task

Matrix = list[list[float]]
IntMatrix = list[list[int]]


def normal_matrix(rng: random.Random, rows: int, columns: int) -> Matrix:
    """Standard normal entries, (rows, columns)."""
    return [[rng.gauss(0.0, 1.0) for _ in range(columns)] for _ in range(rows)]


def int_matrix(rng: random.Random, rows: int, columns: int, low: int = -9, high: int = 9) -> IntMatrix:
    """Uniform ints from low to high inclusive, (rows, columns)."""
    return [ints(rng, columns, low, high) for _ in range(rows)]


@task(
    "linalg/matmul",
    prompt="""A (m x k) and B (k x n) are non-empty lists of rows of floats, m, k, n up to 64. Return the matrix
    product A times B as a list of rows.""",
    example=([[1.0, 2.0], [3.0, 4.0]], [[5.0], [6.0]]),
    compare=close(atol=1e-5, rtol=1e-5),
    returns_sequence=True,
)
def matmul(A, B):
    result = []
    for i in range(len(A)):
        row = []
        for j in range(len(B[0])):
            total = 0.0
            for k in range(len(B)):
                total += A[i][k] * B[k][j]
            row.append(total)
        result.append(row)
    return result


@matmul.inputs
def matmul_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Rectangular shapes from 1 x 1 to 64 x 64; 32 x 32 for timing."""
    if purpose is Purpose.TIMING:
        return [(normal_matrix(rng, 32, 32), normal_matrix(rng, 32, 32))]
    shapes = [(1, 1, 1), (1, 5, 1), (5, 1, 4), (1, 7, 3), (6, 2, 1), (2, 2, 2), (3, 4, 5), (17, 9, 13), (64, 64, 64)]
    shapes += [(rng.randint(1, 20), rng.randint(1, 20), rng.randint(1, 20)) for _ in range(3)]
    return [(normal_matrix(rng, m, k), normal_matrix(rng, k, n)) for m, k, n in shapes]


@matmul.oracle
def matmul_oracle(A: Matrix, B: Matrix) -> Matrix:
    """Rows against columns."""
    columns = list(zip(*B, strict=True))
    return [[sum(map(mul, row, column)) for column in columns] for row in A]


@task(
    "linalg/transpose",
    prompt="""A is a non-empty list of rows of ints, up to 180 x 180. Return its transpose as a list of rows.""",
    example=([[1, 2, 3], [4, 5, 6]],),
    returns_sequence=True,
)
def transpose(A):
    result = []
    for j in range(len(A[0])):
        row = []
        for i in range(len(A)):
            row.append(A[i][j])
        result.append(row)
    return result


@transpose.inputs
def transpose_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Shapes from 1 x 1 up; 180 x 180 for timing."""
    if purpose is Purpose.TIMING:
        return [(int_matrix(rng, 180, 180),)]
    shapes = [(1, 1), (1, 6), (6, 1), (2, 2), (3, 5), (5, 3), (40, 30)]
    shapes += [(rng.randint(1, 20), rng.randint(1, 20)) for _ in range(3)]
    return [(int_matrix(rng, rows, columns),) for rows, columns in shapes]


@transpose.oracle
def transpose_oracle(A: IntMatrix) -> IntMatrix:
    """By zip."""
    return list(map(list, zip(*A, strict=True)))


@task(
    "linalg/gram_matrix",
    prompt="""A is a non-empty list of rows of ints, up to 40 x 40. Return the square matrix G, a list of rows,
    where G[i][j] is the dot product of row i and row j of A.""",
    example=([[1, 2], [3, 4]],),
    returns_sequence=True,
)
def gram_matrix(A):
    G = []
    for i in range(len(A)):
        row = []
        for j in range(len(A)):
            total = 0
            for k in range(len(A[0])):
                total += A[i][k] * A[j][k]
            row.append(total)
        G.append(row)
    return G


@gram_matrix.inputs
def gram_matrix_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Shapes from 1 x 1 up; 36 x 36 for timing."""
    if purpose is Purpose.TIMING:
        return [(int_matrix(rng, 36, 36),)]
    shapes = [(1, 1), (1, 6), (6, 1), (2, 2), (3, 5), (5, 3), (25, 40)]
    shapes += [(rng.randint(1, 15), rng.randint(1, 15)) for _ in range(3)]
    return [(int_matrix(rng, rows, columns),) for rows, columns in shapes]


@gram_matrix.oracle
def gram_matrix_oracle(A: IntMatrix) -> IntMatrix:
    """Upper half computed, lower half mirrored."""
    G = [[0] * len(A) for _ in A]
    for i, left in enumerate(A):
        for j in range(i, len(A)):
            G[i][j] = G[j][i] = sum(map(mul, left, A[j]))
    return G


@task(
    "linalg/matrix_power",
    prompt="""A is a square list of rows of ints, up to 5 x 5, n is an int from 0 to 120 and m is an int of at
    least 2. Return the n-th power of A with every entry modulo m (the identity matrix for n = 0).""",
    example=([[1, 1], [1, 0]], 5, 100),
    returns_sequence=True,
)
def matrix_power(A, n, m):
    size = len(A)
    result = [[1 if i == j else 0 for j in range(size)] for i in range(size)]
    for _ in range(n):
        product = []
        for i in range(size):
            row = []
            for j in range(size):
                total = 0
                for k in range(size):
                    total += result[i][k] * A[k][j]
                row.append(total % m)
            product.append(row)
        result = product
    return result


@matrix_power.inputs
def matrix_power_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Small matrices and exponents, with 0 and 1; 5 x 5 to the power of about 110 for timing."""
    if purpose is Purpose.TIMING:
        return [(int_matrix(rng, 5, 5, 0, 99), rng.randint(105, 115), rng.randint(1000, 9999))]
    cases: list[Args] = [
        ([[3]], 0, 2),
        ([[7]], 13, 10),
        ([[1, 1], [1, 0]], 30, 1000),
        ([[0, 0], [0, 0]], 3, 5),
        ([[-1, 2], [3, -4]], 1, 7),
        (int_matrix(rng, 4, 4), 0, 97),
        (int_matrix(rng, 5, 5), 120, 1009),
    ]
    for _ in range(4):
        size = rng.randint(1, 4)
        cases.append((int_matrix(rng, size, size), rng.randint(0, 40), rng.randint(2, 1000)))
    return cases


@matrix_power.oracle
def matrix_power_oracle(A: IntMatrix, n: int, m: int) -> IntMatrix:
    """By repeated squaring."""
    result = [[int(i == j) for j in range(len(A))] for i in range(len(A))]
    square = A
    while n:
        if n & 1:
            result = _times(result, square, m)
        square = _times(square, square, m)
        n >>= 1
    return result


def _times(A: IntMatrix, B: IntMatrix, m: int) -> IntMatrix:
    columns = list(zip(*B, strict=True))
    return [[sum(map(mul, row, column)) % m for column in columns] for row in A]


@task(
    "linalg/determinant",
    prompt="""A is a square list of rows of ints between -9 and 9, from 1 x 1 to 6 x 6. Return its determinant.""",
    example=([[1, 2], [3, 4]],),
    compare=close(atol=1e-6, rtol=1e-9),
    split="heldout",
)
def determinant(A):
    if len(A) == 1:
        return A[0][0]
    total = 0
    for column in range(len(A)):
        minor = [row[:column] + row[column + 1 :] for row in A[1:]]
        sign = -1 if column % 2 else 1
        total += sign * A[0][column] * determinant(minor)
    return total


@determinant.inputs
def determinant_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Sizes 1 to 6, with singular ones; 6 x 6 for timing."""
    if purpose is Purpose.TIMING:
        return [(int_matrix(rng, 6, 6),)]
    cases: list[Args] = [
        ([[5]],),
        ([[0]],),
        ([[0, 1], [1, 0]],),
        ([[1, 2], [2, 4]],),
        ([[0, 2, 1], [0, 0, 3], [4, 5, 6]],),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],),
        ([[0] * 4 for _ in range(4)],),
    ]
    return cases + [(int_matrix(rng, size, size),) for size in (2, 3, 4, 5, 6)]


@determinant.oracle
def determinant_oracle(A: IntMatrix) -> int:
    """Fraction-free elimination (Bareiss), exact in ints."""
    rows = [list(row) for row in A]
    sign, previous = 1, 1
    for k in range(len(rows) - 1):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            rows[k], rows[pivot], sign = rows[pivot], rows[k], -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // previous
        previous = rows[k][k]
    return sign * rows[-1][-1]
