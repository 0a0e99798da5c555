"""Jacobi's methods for symmetric eigenvalues and singular values of small matrices.

Two-sided rotations diagonalise a symmetric matrix; one-sided rotations (Hestenes) make the
columns of a matrix orthogonal. A sweep over all pairs of columns is unrolled, and sweeps repeat
in a ``While`` region until nothing is left above rounding. (Golub, Van Loan, Matrix
Computations, 4th ed., 8.5 and 8.6.3.)

Legend: rows are lists of ids; c, s, t are cosine, sine and tangent of a rotation.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from archimedes.graph.formulas import Emit
from archimedes.symbolic.core.conversion import lift, wrap
from archimedes.symbolic.core.ordering import exchanges
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Traced
from archimedes.symbolic.linalg.factorizations import householder
from archimedes.symbolic.linalg.matrices import power_of_two
from archimedes.symbolic.linalg.matrix_functions import repeat_while
from archimedes.symbolic.numpy_functions.structural import full_like

__all__ = ["singular", "symmetric_eigen"]

#: Sweeps are quadratically convergent: double precision takes up to ten; more means nan.
MAX_SWEEPS = 30

Rows = list[list[int]]


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(p, q) for p in range(n) for q in range(p + 1, n)]


def _rotation(e: Emit, app: int, aqq: int, apq: int) -> tuple[int, int, int]:
    """Return c, s and t of the smaller rotation that makes [[app, apq], [apq, aqq]] diagonal."""
    one, zero = e.c(1.0), e.c(0.0)
    theta = e.div(e.sub(aqq, app), e.add(apq, apq))
    root = e("sqrt", e.add(e.mul(theta, theta), one))
    tangent = e("copysign", e.div(one, e.add(e("abs", theta), root)), theta)
    t = e.where(e("eq", apq, zero), zero, tangent)
    c = e.div(one, e("sqrt", e.add(e.mul(t, t), one)))
    return c, e.mul(t, c), t


def _rotate(e: Emit, c: int, s: int, x: list[int], y: list[int]) -> tuple[list[int], list[int]]:
    """Return c x - s y and s x + c y."""
    return (
        [e.sub(e.mul(c, i), e.mul(s, j)) for i, j in zip(x, y)],
        [e.add(e.mul(s, i), e.mul(c, j)) for i, j in zip(x, y)],
    )


def _largest(x: Traced) -> Traced:
    """Return the largest of a few numbers, one after the other."""
    e, ids = _emit_of(x), _ids_of(x)
    return wrap(reduce(lambda a, b: e("max", a, b), ids), x.code)


def _sort(e: Emit, keys: list[int], rows: Rows, *, descending: bool) -> None:
    """Sort keys, and rows along with them, in place."""
    for i, j in exchanges(len(keys)):
        first, second = (keys[i], keys[j]) if descending else (keys[j], keys[i])
        swap = e("lt", first, second)
        for row in (keys, *rows):
            row[i], row[j] = e.where(swap, row[j], row[i]), e.where(swap, row[i], row[j])


def _emit_of(x: Traced) -> Emit:
    return Emit(current_trace().graph, x.code)


def _ids_of(x: Traced) -> Any:
    """Return the ids of an array as nested lists."""
    return current_trace().ids_of(x).tolist()


def _array_of(ids: Rows | list[int], code: int, shape: tuple[int, ...]) -> Traced:
    return wrap(np.array(ids, dtype=np.int64).reshape(shape), code)


# ---- symmetric matrices ------------------------------------------------------------------------


def symmetric_eigen(a: Traced, *, vectors: bool) -> tuple[Traced, ...]:
    """Return eigenvalues, ascending, and (where wanted) eigenvectors in columns.

    Vectors are as the rotations leave them: their signs follow no rule.
    """
    n, code = len(a), a.code
    lower = [(i, j) for i in range(n) for j in range(i + 1)]
    index = {(i, j): k for k, pair in enumerate(lower) for i, j in (pair, pair[::-1])}
    ids = current_trace().ids_of(a)
    # Carried: the lower triangle, and the vectors, one in each row.
    carry = [_array_of([int(ids[pair]) for pair in lower], code, (len(lower),))]
    if vectors:
        carry.append(lift(np.eye(n, dtype=a.dtype)))

    def sweep(carry: list[Traced], shared: list[Traced]) -> list[Traced]:
        e, m, columns = _emit_of(a), _ids_of(carry[0]), _ids_of(carry[1]) if vectors else []
        for p, q in _pairs(n):
            app, aqq, apq = index[p, p], index[q, q], index[p, q]
            c, s, t = _rotation(e, m[app], m[aqq], m[apq])
            change = e.mul(t, m[apq])
            m[app], m[aqq] = e.sub(m[app], change), e.add(m[aqq], change)
            m[apq] = e.c(0.0)
            for k in range(n):
                if k not in (p, q):
                    akp, akq = index[k, p], index[k, q]
                    (m[akp],), (m[akq],) = _rotate(e, c, s, [m[akp]], [m[akq]])
            if vectors:
                columns[p], columns[q] = _rotate(e, c, s, columns[p], columns[q])
        rotated = [_array_of(m, code, (len(lower),))]
        return [*rotated, _array_of(columns, code, (n, n))] if vectors else rotated

    def is_unfinished(carry: list[Traced], shared: list[Traced]) -> Traced:
        beside = [index[p, q] for p, q in _pairs(n)]
        # Not the opposite test: nan keeps the loop running, and so reaches the results.
        return ~(_largest(np.abs(carry[0][beside])) <= shared[0])

    if n > 2:
        enough = float(np.finfo(a.dtype).eps) / 1024 * _largest(np.abs(carry[0]))
        carry = repeat_while(is_unfinished, sweep, carry, [enough], MAX_SWEEPS)
    elif n == 2:
        carry = sweep(carry, [])
    values = _ids_of(carry[0][[index[k, k] for k in range(n)]])
    rows = _ids_of(carry[1].T) if vectors else []
    _sort(_emit_of(a), values, rows, descending=False)
    result = _array_of(values, code, (n,))
    return (result, _array_of(rows, code, (n, n))) if vectors else (result,)


# ---- singular values ---------------------------------------------------------------------------


def _dot(e: Emit, x: list[int], y: list[int]) -> int:
    total = e.mul(x[0], y[0])
    for i, j in zip(x[1:], y[1:]):
        total = e.add(total, e.mul(i, j))
    return total


def _orthogonal_columns(work: Traced, *, vectors: bool) -> tuple[Traced, Traced, Traced]:
    """Rotate the columns of a square matrix until they are orthogonal, longest first.

    Returns their lengths, the columns, and (where wanted) the product of the rotations.
    """
    n, code = len(work), work.code
    eps = float(np.finfo(work.dtype).eps)
    # Carried: the columns (and those of the rotations), one in each row; the largest cosine left.
    columns = work.T
    if vectors:
        columns = np.concatenate([columns, lift(np.eye(n, dtype=work.dtype))])
    count = len(columns)

    def sweep(carry: list[Traced], shared: list[Traced]) -> list[Traced]:
        e, columns, short = _emit_of(work), _ids_of(carry[0]), _ids_of(shared[0])
        left = e.c(0.0)
        for p, q in _pairs(n):
            pp, qq = _dot(e, columns[p], columns[p]), _dot(e, columns[q], columns[q])
            pq = _dot(e, columns[p], columns[q])
            c, s, _ = _rotation(e, pp, qq, pq)
            # A column as short as rounding errors has no direction worth waiting for.
            is_short = e("le", e("min", pp, qq), short)
            cosine = e.div(e("abs", pq), e("sqrt", e.mul(pp, qq)))
            left = e("max", left, e.where(is_short, e.c(0.0), cosine))
            for k in range(0, count, n):
                columns[k + p], columns[k + q] = _rotate(e, c, s, columns[k + p], columns[k + q])
        return [_array_of(columns, code, (count, n)), wrap(left, code)]

    def is_unfinished(carry: list[Traced], shared: list[Traced]) -> Traced:
        return ~(carry[1] <= 2 * n * eps)

    e = _emit_of(work)
    if n > 1:
        longest = _largest(_array_of([_dot(e, x, x) for x in _ids_of(work.T)], code, (n,)))
        short = (4 * n * eps) ** 2 * longest
        carry = [columns, full_like(work, 1.0, shape=())]
        columns, _ = repeat_while(is_unfinished, sweep, carry, [short], MAX_SWEEPS)
    squares = [_dot(e, x, x) for x in _ids_of(columns[:n])]
    rows = _ids_of(np.concatenate([columns[k : k + n].T for k in range(0, count, n)]))
    _sort(e, squares, rows, descending=True)
    sides = _array_of(rows, code, (count, n))
    return np.sqrt(_array_of(squares, code, (n,))), sides[:n], sides[n:]


def singular(a: Traced, *, vectors: bool, full: bool = False) -> tuple[Any, ...]:
    """Return singular values, descending, or U, s and V^T, of a matrix with m >= n.

    U has m columns where ``full``, else n. It comes from the qr factorisation of the rotated
    columns, so that it is orthogonal whatever the rank. Signs follow no rule.
    """
    m, n = a.shape
    work, scale = power_of_two(a)
    outer = None
    if m > n:
        outer, work = householder(work, m if full else n)
        work = work[:n]
    lengths, columns, turns = _orthogonal_columns(work, vectors=vectors)
    if not vectors:
        return (lengths * scale,)
    u, r = householder(columns, n)
    u = u * np.copysign(1.0, np.diagonal(r)).astype(a.dtype)
    if outer is not None:
        u = np.concatenate([outer[:, :n] @ u, outer[:, n:]], axis=1)
    return u, lengths * scale, turns.T
