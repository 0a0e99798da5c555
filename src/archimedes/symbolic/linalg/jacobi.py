"""Jacobi's methods for symmetric eigenvalues and singular values of small matrices.

Two-sided rotations diagonalise a symmetric matrix; one-sided rotations (Hestenes) make the
columns of a matrix orthogonal. A sweep over all pairs of columns is unrolled, and sweeps repeat
in a ``While`` region until nothing is left above rounding. (Golub, Van Loan, Matrix
Computations, 4th ed., 8.5 and 8.6.3.)

Legend: rows are lists of ids; c, s, t are cosine, sine and tangent of a rotation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.ordering import exchanges
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Traced
from archimedes.symbolic.linalg.factorizations import householder
from archimedes.symbolic.linalg.matrices import power_of_two
from archimedes.symbolic.linalg.matrix_functions import repeat_while

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


def _largest(e: Emit, ids: list[int]) -> int:
    total = ids[0]
    for i in ids[1:]:
        total = e("max", total, i)
    return total


def _not_below(g: Graph, value: int, limit: int) -> int:
    """Emit not (value <= limit): nan keeps a loop running, and so reaches the results."""
    e = Emit(g, g.dtype[value])
    return e("not", e("le", value, limit))


def _sort(e: Emit, keys: list[int], rows: Rows, *, descending: bool) -> None:
    """Sort keys, and rows along with them, in place."""
    for i, j in exchanges(len(keys)):
        first, second = (keys[i], keys[j]) if descending else (keys[j], keys[i])
        swap = e("lt", first, second)
        keys[i], keys[j] = e.where(swap, keys[j], keys[i]), e.where(swap, keys[i], keys[j])
        for row in rows:
            row[i], row[j] = e.where(swap, row[j], row[i]), e.where(swap, row[i], row[j])


def _matrix(rows: Rows, code: int, n: int) -> Traced:
    return wrap(np.array(rows, dtype=np.int64).reshape(len(rows), n), code)


# ---- symmetric matrices ------------------------------------------------------------------------


def symmetric_eigen(a: Traced, *, vectors: bool) -> tuple[Any, ...]:
    """Return eigenvalues, ascending, and (where wanted) eigenvectors in columns.

    Vectors are as the rotations leave them: their signs follow no rule.
    """
    n = len(a)
    trace = current_trace()
    g = trace.graph
    ids = trace.ids_of(a)
    lower = [(i, j) for i in range(n) for j in range(i + 1)]
    place = {(i, j): k for k, pair in enumerate(lower) for i, j in (pair, pair[::-1])}
    size = len(lower)
    start = [int(ids[i, j]) for i, j in lower]
    if vectors:
        start += g.constants(np.eye(n, dtype=a.dtype)).ravel().tolist()

    def sweep(g: Graph, carry: list[int], shared: list[int]) -> list[int]:
        e = Emit(g, a.code)
        m = list(carry[:size])
        columns = [carry[size + k * n : size + (k + 1) * n] for k in range(n)] if vectors else []
        for p, q in _pairs(n):
            app, aqq, apq = place[p, p], place[q, q], place[p, q]
            c, s, t = _rotation(e, m[app], m[aqq], m[apq])
            change = e.mul(t, m[apq])
            m[app], m[aqq] = e.sub(m[app], change), e.add(m[aqq], change)
            m[apq] = e.c(0.0)
            for k in range(n):
                if k not in (p, q):
                    (m[place[k, p]],), (m[place[k, q]],) = _rotate(
                        e, c, s, [m[place[k, p]]], [m[place[k, q]]]
                    )
            if vectors:
                columns[p], columns[q] = _rotate(e, c, s, columns[p], columns[q])
        return m + [i for column in columns for i in column]

    def unfinished(g: Graph, carry: list[int], shared: list[int]) -> int:
        e = Emit(g, a.code)
        return _not_below(
            g, _largest(e, [e("abs", carry[place[p, q]]) for p, q in _pairs(n)]), shared[0]
        )

    e = Emit(g, a.code)
    if n > 2:
        scale = _largest(e, [e("abs", i) for i in start[:size]])
        enough = e.mul(e.c(float(np.finfo(a.dtype).eps) / 1024), scale)
        start = repeat_while(g, start, [enough], unfinished, sweep, MAX_SWEEPS)
    elif n == 2:
        start = sweep(g, start, [])
    values = [start[place[k, k]] for k in range(n)]
    rows = np.array(start[size:], dtype=np.int64).reshape(-1, n).T.tolist() if vectors else []
    _sort(e, values, rows, descending=False)
    result = wrap(np.array(values, dtype=np.int64), a.code)
    return (result, _matrix(rows, a.code, n)) if vectors else (result,)


# ---- singular values ---------------------------------------------------------------------------


def _orthogonal_columns(work: Traced, *, vectors: bool) -> tuple[Any, Any, Any]:
    """Rotate the columns of a square matrix until they are orthogonal, longest first.

    Returns their lengths, the columns, and (where wanted) the product of the rotations.
    """
    n = len(work)
    trace = current_trace()
    g = trace.graph
    eps = float(np.finfo(work.dtype).eps)
    half = n * n
    start = [int(i) for i in trace.ids_of(work).T.ravel()]
    if vectors:
        start += g.constants(np.eye(n, dtype=work.dtype)).ravel().tolist()
    start.append(g.const(1.0, work.code))

    def unpack(carry: list[int]) -> Rows:
        return [carry[k * n : (k + 1) * n] for k in range(len(carry) // n)]

    def dot(e: Emit, x: list[int], y: list[int]) -> int:
        total = e.mul(x[0], y[0])
        for i, j in zip(x[1:], y[1:]):
            total = e.add(total, e.mul(i, j))
        return total

    def sweep(g: Graph, carry: list[int], shared: list[int]) -> list[int]:
        e = Emit(g, work.code)
        columns = unpack(carry[:-1])
        left = e.c(0.0)
        for p, q in _pairs(n):
            pp, qq = dot(e, columns[p], columns[p]), dot(e, columns[q], columns[q])
            pq = dot(e, columns[p], columns[q])
            c, s, _ = _rotation(e, pp, qq, pq)
            # A column as short as rounding errors has no direction worth waiting for.
            short = e("le", e("min", pp, qq), shared[0])
            cosine = e.div(e("abs", pq), e("sqrt", e.mul(pp, qq)))
            left = e("max", left, e.where(short, e.c(0.0), cosine))
            for k in (0, n) if vectors else (0,):
                columns[k + p], columns[k + q] = _rotate(e, c, s, columns[k + p], columns[k + q])
        return [i for column in columns for i in column] + [left]

    def unfinished(g: Graph, carry: list[int], shared: list[int]) -> int:
        return _not_below(g, carry[-1], g.const(2 * n * eps, work.code))

    e = Emit(g, work.code)
    if n > 1:
        longest = _largest(e, [dot(e, x, x) for x in unpack(start[:half])])
        short = e.mul(e.c((4 * n * eps) ** 2), longest)
        start = repeat_while(g, start, [short], unfinished, sweep, MAX_SWEEPS)
    columns = unpack(start[:-1])
    squares = [dot(e, x, x) for x in columns[:n]]
    rows = np.array(columns, dtype=np.int64).reshape(-1, n, n)
    stacked = np.concatenate([block.T for block in rows]).tolist()
    _sort(e, squares, stacked, descending=True)
    lengths = np.sqrt(wrap(np.array(squares, dtype=np.int64), work.code))
    sides = _matrix(stacked, work.code, n)
    return lengths, sides[:n], sides[n:]


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
