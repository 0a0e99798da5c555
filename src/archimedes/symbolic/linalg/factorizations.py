"""Triangular factorizations of traced matrices: Gaussian elimination, cholesky and qr.

Elimination, with partial pivoting, is unrolled into scalar operations. Their order is that of the
``Solve`` region, so that both give the same bits: in each column the first row of largest magnitude
becomes the pivot row, rows below subtract factor * pivot row, and back substitution subtracts the
known unknowns in ascending order. Pivoting is done by selects, which vanish where the comparison is
between literals.

Legend: A = L L^T (Cholesky); A = Q R (Householder), Q with orthonormal columns, R upper triangular.
Signs are LAPACK's: the diagonal of R has the sign opposite to the element it replaces, and a column
with nothing below its diagonal is left alone.

There is a step for each column, which works on the whole matrix, with zeros (or what was there)
outside the part that the column concerns. For a small matrix the steps are unrolled, and these
zeros are literals, which drop out. For a large one the steps are a scan: three times the operations
of the shortest way, in straight loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph, origins
from archimedes.graph.regions import Solve
from archimedes.symbolic.core.array_scans import scan_rows, unroll_rows
from archimedes.symbolic.core.conversion import floats, lift, wrap
from archimedes.symbolic.core.loop_nests import elementwise, loop_rules
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg import matrices, matrix_functions
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call

QRResult = type(np.linalg.qr(np.eye(1)))

# ---- Gaussian elimination ----------------------------------------------------------------------

_DIV = CODES["div"]


#: Largest matrix whose solution is unrolled; a larger one is a ``Solve`` region, unless constant.
UNROLLED = 4
#: In generated C, with loops from so few elements on, also where matrix and right-hand sides have
#: this many elements together.
SHORT_CODE, LONG_SYSTEM = 16, 32

Rows = list[list[int]]


def _bring_pivot(e: Emit, work: Rows, k: int) -> int:
    """Swap the pivot row into place ``k`` and return the node that says whether rows moved."""
    value = e.g.value
    best = e("abs", work[k][k])
    better: dict[int, int] = {}
    for row in range(k + 1, len(work)):
        if value.get(work[row][k]) == 0:
            continue  # a literal zero is never larger
        size = e("abs", work[row][k])
        better[row] = e("lt", best, size)
        best = e.where(better[row], size, best)
    moved = e.g.const(False, B8)
    chosen: dict[int, int] = {}
    for row in reversed(better):
        chosen[row] = e("and", better[row], e("not", moved))
        moved = e("or", moved, better[row])
    first = work[k]
    pivot = list(first)
    for row, test in better.items():
        pivot = [e.where(test, mine, old) for mine, old in zip(work[row], pivot)]
    for row, test in chosen.items():
        work[row] = [e.where(test, old, mine) for old, mine in zip(first, work[row])]
    work[k] = pivot
    return moved


def eliminate(e: Emit, work: Rows, *, guard: bool = False) -> int:
    """Bring rows (matrix and right-hand sides) to upper triangular form in place.

    Returns the node that is true where an odd number of rows moved. With ``guard`` a zero
    pivot eliminates nothing, as in LAPACK, so that a singular matrix has a zero on the diagonal
    instead of nan; without it a singular system gives inf or nan.
    """
    n = len(work)
    odd = e.g.const(False, B8)
    for k in range(n):
        moved = _bring_pivot(e, work, k)
        odd = moved if odd in e.g.value else e("xor", odd, moved)
        pivot = work[k][k]
        for row in range(k + 1, n):
            factor = e.div(work[row][k], pivot)
            if guard:
                factor = e.where(e("eq", pivot, e.c(0.0)), e.c(0.0), factor)
            for column in range(k + 1, len(work[k])):
                product = e.mul(factor, work[k][column])
                work[row][column] = e.sub(work[row][column], product)
    return odd


def _back_substitute(e: Emit, work: Rows) -> Rows:
    n = len(work)
    x = [row[n:] for row in work]
    for k in reversed(range(n)):
        for c in range(len(x[k])):
            for j in range(k + 1, n):
                x[k][c] = e.sub(x[k][c], e.mul(work[k][j], x[j][c]))
            x[k][c] = e.div(x[k][c], work[k][k])
    return x


def rows_of(*arrays: Any) -> tuple[Emit, Rows]:
    """Return the ids of arrays side by side, row by row, and what emits nodes of their dtype."""
    trace = current_trace()
    ids = np.concatenate([trace.ids_of(a) for a in arrays], axis=1)
    return Emit(trace.graph, arrays[0].code), ids.tolist()


def solve_unrolled(a: Traced, b: Traced) -> Traced:
    """Solve ``a @ x = b`` for traced (n, n) and (n, m) arrays, all in scalar operations."""
    if origins.kind is not None:  # a check of the program looks at the system as a whole
        return _solve_in_region(a, b)[0]
    e, work = rows_of(a, b)
    eliminate(e, work)
    return wrap(np.array(_back_substitute(e, work), dtype=np.int64).reshape(b.shape), a.code)


def _solve_in_region(a: Traced, b: Traced) -> tuple[Traced]:
    """Solve by a ``Solve`` region: of blocks, or of elements."""
    trace, (n, columns) = current_trace(), b.shape
    layout = matrix_functions.Blocks if matrices.is_large(a) else matrix_functions.Layout
    inputs = layout(a.code, (a.shape, b.shape)).ids(trace, [a, b])
    region = Solve(inputs, n, columns, a.code, blocks=layout is matrix_functions.Blocks)
    outs = trace.graph.region(region).tolist()
    return (layout(a.code, (b.shape,)).arrays(trace, outs)[0],)


def divide(b: Traced, pivot: Traced) -> Traced:
    """Return b / pivot; literal zeros stay so, as they do where elimination skips them."""
    trace = current_trace()

    def quotient(g: Graph, x: int, y: int) -> int:
        return x if g.value.get(x) == 0 else g.emit(_DIV, x, y)

    operands = [trace.elements_of(x) for x in (b, pivot)]
    (ids,) = elementwise(trace.graph, operands, [b.code] * 2, b.shape, quotient)
    return wrap(ids, b.code, trace)


def solve_dense(a: Traced, b: Traced) -> Traced:
    """Solve for a matrix taken as one block: unrolled where small or constant, else a region."""
    n = len(a)
    if n == 1:
        return divide(b, a[0, 0])
    if matrices.is_large(a):
        return call(_SOLUTION, a, b)[0]
    if n <= matrices.CONSTANT and None not in matrices.values_of(a):
        return solve_unrolled(a, b)
    if n <= UNROLLED and not _is_long_system(n, b.shape[1]):
        return call(_SOLUTION, a, b)[0]
    return _solve_in_region(a, b)[0]


def _is_long_system(n: int, columns: int) -> bool:
    """Return whether a small system is too long to be written out, in C that is to be short."""
    rules = loop_rules()
    return rules.sparse and rules.elements <= SHORT_CODE and n * (n + columns) >= LONG_SYSTEM


# ---- derivatives in closed form ----------------------------------------------------------------


def _solve_columns(a: Traced, blocks: list[Any]) -> list[Any]:
    """Solve for several right-hand sides with one elimination."""
    width = blocks[0].shape[1]
    x = solve_dense(a, np.concatenate(blocks, axis=1))
    return [x[:, k * width : (k + 1) * width] for k in range(len(blocks))]


def _solution_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """A dX = dB - dA X."""
    (a, _), (x,) = operands, results
    return [[dx] for dx in _solve_columns(a, [db - da @ x for da, db in rows])]


def _solution_pull(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """A^T L = Xbar; Bbar = L; Abar = -L X^T."""
    (a, _), (x,) = operands, results
    return [[-(bar @ x.T), bar] for bar in _solve_columns(a.T, [row[0] for row in rows])]


def _inverse_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """dX = -X dA X."""
    (x,) = results
    return [[-((x @ da) @ x)] for (da,) in rows]


def _inverse_pull(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """Abar = -X^T Xbar X^T."""
    (x,) = results
    return [[-((x.T @ bar) @ x.T)] for (bar,) in rows]


def _inverse_body(a: Traced) -> tuple[Traced]:
    eye = lift(np.eye(len(a), dtype=a.dtype))
    return (solve_unrolled(a, eye),) if len(a) <= UNROLLED else _solve_in_region(a, eye)


_SOLUTION = MatrixFunction(
    "solve",
    lambda a, b: (solve_unrolled(a, b),),
    _solution_push,
    _solution_pull,
    loop_body=_solve_in_region,
)
_INVERSE = MatrixFunction(
    "inv", _inverse_body, _inverse_push, _inverse_pull, loop_body=_inverse_body
)


def invert(a: Traced) -> Traced:
    """Return the inverse of a matrix taken as one block."""
    return call(_INVERSE, a)[0]


# ---- cholesky ----------------------------------------------------------------------------------


def _factorize_positive(a: Traced) -> tuple[Traced]:
    """Column by column (Golub, Van Loan, Matrix Computations, 4th ed., 4.2.5)."""
    i = np.arange(len(a))
    take_steps = scan_rows if matrices.is_large(a) else unroll_rows

    def step(carry: list[Traced], row: list[Traced]) -> tuple[list[Traced], list[Traced]]:
        (lower,), (j,) = carry, row
        rest = a[:, j] - lower @ lower[j]
        root = np.sqrt(rest[j])
        below = np.where(i > j, divide(rest, root), np.where(i == j, root, 0.0))
        return [np.where(i == j, below.astype(a.dtype)[:, None], lower)], []

    (lower,), _ = take_steps(step, [np.zeros_like(a)], [lift(i)])
    return (lower,)


def _cholesky_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """L^-1 dL is the lower triangle of L^-1 dA L^-T, with half its diagonal.

    (Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527, 2016.)
    """
    (lower,) = results
    tangents = []
    for (da,) in rows:
        change = np.tril(da) + np.tril(da, -1).T
        inside = np.linalg.solve(lower, np.linalg.solve(lower, change).T)
        half = np.tril(inside, -1) + np.diag(0.5 * np.diagonal(inside))
        tangents.append([lower @ half])
    return tangents


_CHOLESKY = MatrixFunction(
    "cholesky", _factorize_positive, _cholesky_push, loop_body=_factorize_positive, inline=True
)


@implements(np.linalg.cholesky)
def _cholesky(a: Operand, /, *, upper: bool = False) -> Traced:
    """Factorise; reads one triangle only, and gives nan where ``a`` is not positive definite."""
    lower = matrices.over_square(lambda x: call(_CHOLESKY, x)[0], lift(a).mT if upper else a)
    return lower.mT if upper else lower


# ---- qr ----------------------------------------------------------------------------------------


def householder(a: Traced, columns: int) -> tuple[Traced, Traced]:
    """Factorize a (m, n) matrix; returns the first ``columns`` columns of Q, and R (columns, n).

    Squares of the elements must neither overflow nor underflow: see ``power_of_two``. The
    reflector I - tau v v^T of a column takes what is below its diagonal to zero, as LAPACK's larfg;
    where that is zero already, tau is zero. The divisors are guarded, so that derivatives are
    finite there too.
    """
    m, n = a.shape
    i, c = np.arange(m), np.arange(n)
    count = min(m - 1, n)
    take_steps = scan_rows if count and matrices.is_large(a) else unroll_rows

    def reflect(carry: list[Traced], row: list[Traced]) -> tuple[list[Traced], list[Traced]]:
        (r,), (j,) = carry, row
        column = r[:, j]
        alpha, tail = column[j], np.where(i > j, column, 0.0).astype(a.dtype)
        below = tail @ tail
        flat = below == 0
        length = np.sqrt(np.where(flat, 1.0, alpha * alpha + below).astype(a.dtype))
        beta = -np.copysign(length, alpha)
        tau = np.where(flat, 0.0, (beta - alpha) / beta).astype(a.dtype)
        scale = np.where(flat, 0.0, 1.0 / (alpha - beta)).astype(a.dtype)
        v = np.where(i == j, 1.0, tail * scale).astype(a.dtype)
        head = np.where(i < j, column, np.where(i == j, np.where(flat, alpha, beta), 0.0))
        rest = r - (tau * v)[:, None] * (v @ r)
        return [np.where(c == j, head.astype(a.dtype)[:, None], rest)], [v, tau]

    def back(carry: list[Traced], row: list[Traced]) -> tuple[list[Traced], list[Traced]]:
        (q,), (v, tau) = carry, row
        return [q - (tau * v)[:, None] * (v @ q)], []

    (r,), rows = take_steps(reflect, [a], [lift(np.arange(count))])
    start = lift(np.eye(m, columns, dtype=a.dtype))
    (q,), _ = take_steps(back, [start], [x[::-1] for x in rows])
    return q, r[:columns]


def factorize_scaled(a: Traced, columns: int) -> tuple[Any, Any]:
    """Factorise a matrix of any magnitude, as ``householder`` does."""
    if len(a) == 1:
        return householder(a, columns)  # nothing to square
    scaled, scale = matrices.power_of_two(a)
    q, r = householder(scaled, columns)
    return q, r * scale


def _tall_push(operands: Arrays, results: Arrays, rows: Changes) -> Changes:
    """Q^T dA R^-1 = Q^T dQ + dR R^-1: the first antisymmetric, the second upper triangular.

    (Walter, Lehmann, Lamour, Optimization Methods and Software 27(2), 2012.)
    """
    q, r = results
    inverse = np.linalg.inv(r)
    tangents = []
    for (da,) in rows:
        change = da @ inverse
        inside = q.T @ change
        lower = np.tril(inside, -1)
        turn = lower - lower.T
        dq = q @ turn
        if q.shape[0] != q.shape[1]:
            dq = dq + (change - q @ inside)
        tangents.append([dq, np.triu((inside - turn) @ r)])
    return tangents


def _tall(a: Traced) -> tuple[Any, Any]:
    return factorize_scaled(a, a.shape[1])


_TALL = MatrixFunction("qr", _tall, _tall_push, loop_body=_tall)


def _factorize_reduced(a: Traced) -> tuple[Any, Any]:
    m, n = a.shape
    if m >= n:
        return call(_TALL, a)
    q, r = call(_TALL, a[:, :m])
    return q, np.concatenate([r, q.T @ a[:, m:]], axis=1)


def _factorize_complete(a: Traced) -> tuple[Any, Any]:
    # The columns beyond A's own are a basis of what is left: the algorithm decides which, so
    # its own derivative is the right one.
    m, n = a.shape
    return factorize_scaled(a, m) if m > n else _factorize_reduced(a)


@implements(np.linalg.qr)
def _qr(a: Operand, mode: str = "reduced") -> Traced:
    """Factorise into Q R; derivatives need independent (leading) columns."""
    (a,) = floats(a)
    matrices.check_stacked(a)
    if mode == "r":
        return matrices.over_stack(_factorize_reduced, (2,), a)[1]
    if mode not in _MODES:
        if mode == "raw":
            raise trace_error("np.linalg.qr(mode='raw') cannot be traced", "Use mode='reduced'.")
        raise ValueError(f"Unrecognized mode '{mode}'")
    return QRResult(*matrices.over_stack(_MODES[mode], (2,), a))


_MODES = {"reduced": _factorize_reduced, "complete": _factorize_complete}
