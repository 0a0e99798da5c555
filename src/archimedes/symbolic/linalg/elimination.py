"""Gaussian elimination with partial pivoting, unrolled into scalar operations.

The order of operations is that of the ``Solve`` region, so that both give the same bits: in each
column the first row of largest magnitude becomes the pivot row, rows below subtract
factor * pivot row, and back substitution subtracts the known unknowns in ascending order.
Pivoting is done by selects, which vanish where the comparison is between literals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Solve
from archimedes.symbolic.core.conversion import lift, wrap
from archimedes.symbolic.core.loop_nests import elementwise, loop_rules
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Traced
from archimedes.symbolic.linalg import matrix_functions
from archimedes.symbolic.linalg.matrices import CONSTANT, is_large, values_of
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call

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
    e, work = rows_of(a, b)
    eliminate(e, work)
    return wrap(np.array(_back_substitute(e, work), dtype=np.int64).reshape(b.shape), a.code)


def _solve_in_region(a: Traced, b: Traced) -> tuple[Traced]:
    """Solve by a ``Solve`` region: of blocks, or of elements."""
    trace, (n, columns) = current_trace(), b.shape
    layout = matrix_functions.Blocks if is_large(a) else matrix_functions.Layout
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
    if is_large(a):
        return call(_SOLUTION, a, b)[0]
    if n <= CONSTANT and None not in values_of(a):
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
INVERSE = MatrixFunction(
    "inv", _inverse_body, _inverse_push, _inverse_pull, loop_body=_inverse_body
)
