"""What functions of ``np.linalg`` share: checks, the loop over a stack, scaling, block structure.

Matrices are scaled by powers of two, so that squares and products neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from archimedes.graph.blocks.references import constant_values
from archimedes.graph.dtypes import DTYPES, F64, I64
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.conversion import floats, wrap
from archimedes.symbolic.core.loop_nests import loop_threshold, uses_loops
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced

#: Most columns of an eigenvalue or singular value problem: about 6 n^3 operations per sweep.
MAX_SPECTRAL = 16
#: Largest constant matrix that is factorised while recording.
CONSTANT = 24


def check_stacked(a: Traced) -> None:
    """Raise NumPy's error unless the array holds matrices."""
    if a.ndim < 2:
        raise LinAlgError(
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional"
        )


def check_square(a: Traced) -> None:
    """Raise NumPy's error unless the array holds square matrices."""
    check_stacked(a)
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError(
            f"Last 2 dimensions of the array must be square, got an array of shape {a.shape}"
        )


def is_large(a: Traced) -> bool:
    """Return whether a matrix is worked on by loops: one of 16 x 16 or more, if it is a block.

    Smaller ones keep their elements, so that batches of them keep their lanes.
    """
    trace = current_trace()
    ids = trace.elements_of(a)
    if a.size < 4 * loop_threshold():
        return False
    if uses_loops(trace.graph, a.size, ids):
        return True
    return a.size > CONSTANT**2 and constant_values(trace.graph, ids, a.dtype) is not None


def values_of(a: Traced) -> list[float | None]:
    """Return each element's value where it is a literal, else None."""
    trace = current_trace()
    value = trace.graph.value
    return [value.get(i) for i in trace.ids_of(a).ravel().tolist()]


def over_stack(function: Callable[..., Any], cores: Sequence[int], *arrays: Any) -> Traced:
    """Apply a function of single matrices to stacks of them, broadcasting the leading axes.

    ``cores[k]`` is the number of trailing axes of ``arrays[k]`` that the function sees; it
    returns one traced array or a tuple of them.
    """
    trace = current_trace()
    ids = [trace.elements_of(a) for a in arrays]
    codes = [a.code for a in arrays]
    leading = [x.shape[: x.ndim - core] for x, core in zip(ids, cores)]
    stack = np.broadcast_shapes(*leading)
    if stack == ():
        return function(*(wrap(x, code, trace) for x, code in zip(ids, codes)))
    if 0 in stack:
        raise trace_error(
            f"np.linalg was given an empty stack of matrices (leading shape {stack})",
            "Skip the call if there are no matrices.",
        )
    spread = [np.broadcast_to(x, stack + x.shape[x.ndim - core :]) for x, core in zip(ids, cores)]
    rows = []
    for at in np.ndindex(*stack):
        result = function(*(wrap(x[at], code, trace) for x, code in zip(spread, codes)))
        rows.append(result if isinstance(result, tuple) else (result,))
    joined = tuple(
        wrap(
            np.stack([trace.elements_of(x) for x in column]).reshape(stack + column[0].shape),
            column[0].code,
            trace,
        )
        for column in zip(*rows)
    )
    return joined if isinstance(result, tuple) else joined[0]


def over_square(function: Callable[..., Any], a: Operand) -> Traced:
    """Apply a function of one square matrix of floats to a stack of them."""
    (a,) = floats(a)
    check_square(a)
    return over_stack(function, (2,), a)


# ---- exact scaling by powers of two -------------------------------------------------------------

_AND = CODES["and"]
#: Ops that read and write the bits of a float, and the mask of its exponent.
_BITS = {
    True: (CODES["bits"], CODES["from_bits"], 0x7FF0000000000000),
    False: (CODES["bits32"], CODES["from_bits32"], 0x7F800000),
}


def _exponent_part(g: Graph, x: int, code: int) -> int:
    """Emit the power of two next below x > 0; zero for zero and subnormals."""
    read, write, mask = _BITS[code == F64]
    return g.emit(write, g.emit(_AND, g.emit(read, x), g.const(mask, I64)))


def power_of_two(a: Traced) -> tuple[Any, Any]:
    """Return ``(a / s, s)`` with s the power of two next below the largest magnitude in ``a``.

    Dividing by s is exact but for results in the subnormal range. s is 1 for a matrix of zeros.
    """
    trace = current_trace()
    if a.size == 0:
        return a, wrap(trace.graph.const(1.0, a.code), a.code, trace)
    largest = np.max(np.abs(a))
    part = wrap(_exponent_part(trace.graph, int(trace.ids_of(largest)), a.code), a.code, trace)
    scale = np.where(part == 0, 1.0, part).astype(a.dtype)
    return a / scale, scale


def split_exponent(x: Traced) -> tuple[Any, Any]:
    """Return ``(m, e)`` with x = m 2**e for a traced float64 scalar, 2 <= abs(m) < 4, e an int.

    Zero and numbers that are not finite keep their value in m; subnormal ones give a smaller m.
    The derivative of m is that of x 2**-e.
    """
    trace = current_trace()
    e = Emit(trace.graph, I64)
    word = trace.graph.emit(CODES["bits"], int(trace.ids_of(x)))
    field = e("and", e("shr", word, e.c(52)), e.c(0x7FF))
    field = e("min", e("max", field, e.c(1)), e.c(0x7FE))
    factor = trace.graph.emit(CODES["from_bits"], e("shl", e.sub(e.c(0x7FF), field), e.c(52)))
    return x * wrap(factor, F64, trace), wrap(e.sub(field, e.c(1024)), I64, trace)


def multiply_scaled(factors: Sequence[Any]) -> Traced:
    """Return the product of traced scalars; it overflows or vanishes only where its value does."""
    if len(factors) <= 2:
        return reduce(mul, factors)
    mantissa, exponent = split_exponent(factors[0].astype(float))
    for factor in factors[1:]:
        m, e = split_exponent(factor.astype(float))
        mantissa, exponent = mantissa * m, exponent + e
    return np.ldexp(mantissa, exponent).astype(DTYPES[factors[0].code])


# ---- block triangular form ---------------------------------------------------------------------
# The literal zeros of a matrix say which unknowns can be found by themselves. A diagonal,
# triangular or permuted triangular matrix falls into blocks of one unknown, for which there is
# nothing to pivot; a matrix without literal zeros is one block. Perfect matching by augmenting
# paths, then strongly connected components (Pothen, Fan, ACM TOMS 16(4), 1990).

Block = tuple[list[int], list[int]]


def _match(nonzero: np.ndarray) -> list[int] | None:
    """Return for each column a row of its own with a non-zero there, or None if impossible."""
    n = len(nonzero)
    row_of = [-1] * n
    column_of = [-1] * n

    def find_row(column: int, seen: set[int]) -> bool:
        rows = [column, *range(n)]  # the diagonal first: most matrices have one
        for row in rows:
            if not nonzero[row, column] or row in seen:
                continue
            seen.add(row)
            if column_of[row] < 0 or find_row(column_of[row], seen):
                row_of[column], column_of[row] = row, column
                return True
        return False

    if all(find_row(column, set()) for column in range(n)):
        return row_of
    return None


def block_triangular(nonzero: np.ndarray) -> list[Block] | None:
    """Split a square pattern into diagonal blocks, in an order in which they can be solved.

    Each block is (rows, columns), ascending: these equations involve these unknowns and those of
    earlier blocks only. None means that the pattern alone makes the matrix singular.

    >>> block_triangular(np.array([[1, 1], [0, 1]], dtype=bool))
    [([1], [1]), ([0], [0])]
    """
    n = len(nonzero)
    if n and nonzero.all():
        return [(list(range(n)), list(range(n)))]
    row_of = _match(nonzero)
    if row_of is None:
        return None
    needs = [np.flatnonzero(nonzero[row_of[j]]).tolist() for j in range(n)]
    return [(sorted(row_of[j] for j in part), sorted(part)) for part in _strong_components(needs)]


def _strong_components(needs: list[list[int]]) -> list[list[int]]:
    """Tarjan's algorithm (SIAM J. Comput. 1(2), 1972): components, each after those it needs."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    parts: list[list[int]] = []

    def visit(v: int) -> None:
        order[v] = low[v] = len(order)
        stack.append(v)
        for w in needs[v]:
            if w not in order:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], order[w])
        if low[v] == order[v]:
            at = stack.index(v)
            parts.append(stack[at:])
            del stack[at:]

    for v in range(len(needs)):
        if v not in order:
            visit(v)
    return parts


def permutation_sign(blocks: list[Block]) -> int:
    """Return the sign of the permutation that takes the blocks' rows to their columns."""
    rows, columns = ([i for block in blocks for i in block[side]] for side in (0, 1))
    permutation = np.zeros((len(rows), len(rows)))
    permutation[rows, columns] = 1.0
    return round(np.linalg.det(permutation))
