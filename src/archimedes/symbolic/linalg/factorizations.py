"""Triangular factorizations of traced matrices: cholesky and qr.

Legend: A = L L^T (Cholesky); A = Q R (Householder), Q with orthonormal columns, R upper triangular.
Signs are LAPACK's: the diagonal of R has the sign opposite to the element it replaces, and a column
with nothing below its diagonal is left alone.

A large matrix is factorized by a scan with a step for each column. Every step works on the whole
matrix, with zeros (or what was there) outside the part that the column concerns: three times the
operations of the shortest way, in straight loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.symbolic.core.array_scans import scan_rows
from archimedes.symbolic.core.conversion import floats, lift, wrap
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg.elimination import divide
from archimedes.symbolic.linalg.matrices import (
    check_square,
    check_stacked,
    is_large,
    over_stack,
    power_of_two,
)
from archimedes.symbolic.linalg.matrix_functions import MatrixFunction, call
from archimedes.symbolic.numpy_functions.structural import full_like

__all__ = [
    "factorize_scaled",
    "householder",
    "loop_cholesky",
    "loop_householder",
    "loop_triangle",
]


def _columns(count: int) -> Traced:
    return lift(np.arange(count))


def loop_triangle(a: Traced) -> tuple[Any, Any]:
    """Return the pivots of a matrix by elimination, and whether an odd number of rows moved.

    A zero pivot eliminates nothing.
    """
    n = len(a)
    i = np.arange(n)

    def step(carry: list[Any], row: list[Any]) -> Traced:
        (work, odd), (k,) = carry, row
        column = work[:, k]
        p = np.argmax(np.where(i >= k, np.abs(column), -1.0))
        source = np.where(i == k, p, np.where(i == p, k, i))
        pivots, pivot = work[p], column[p]
        moved = column[source]
        divisor = np.where(pivot == 0.0, 1.0, pivot).astype(a.dtype)
        factor = np.where((i > k) & (pivot != 0.0), moved / divisor, 0.0).astype(a.dtype)
        return [work[source] - factor[:, None] * pivots, odd ^ (p != k)], [pivot]

    (_, odd), (pivots,) = scan_rows(step, [a, lift(np.bool_(False))], [_columns(n)])
    return pivots, odd


def loop_cholesky(a: Traced) -> tuple[Any]:
    """Return the lower factor, column by column, of what the lower triangle says."""
    n = len(a)
    i = np.arange(n)

    def step(carry: list[Any], row: list[Any]) -> Traced:
        (lower,), (j,) = carry, row
        rest = a[:, j] - lower @ lower[j]
        root = np.sqrt(rest[j])
        column = np.where(i > j, rest / root, np.where(i == j, root, 0.0)).astype(a.dtype)
        return [np.where(i == j, column[:, None], lower)], []

    (lower,), _ = scan_rows(step, [np.zeros_like(a)], [_columns(n)])
    return (lower,)


def loop_householder(a: Traced, columns: int) -> tuple[Any, Any]:
    """Return the first columns of Q, and R, as ``householder`` does."""
    m, n = a.shape
    i, c = np.arange(m), np.arange(n)
    count = min(m - 1, n)

    def step(carry: list[Any], row: list[Any]) -> Traced:
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

    def back(carry: list[Any], row: list[Any]) -> Traced:
        (q,), (v, tau) = carry, row
        return [q - (tau * v)[:, None] * (v @ q)], []

    (r,), (vectors, taus) = scan_rows(step, [a], [_columns(count)])
    start = lift(np.eye(m, columns, dtype=a.dtype))
    (q,), _ = scan_rows(back, [start], [vectors[::-1], taus[::-1]])
    return q, r[:columns]


# ---- cholesky and qr ----------------------------------------------------------------------------

QRResult = type(np.linalg.qr(np.eye(1)))


def _cholesky_body(a: Traced) -> tuple[Traced]:
    """Column by column (Golub, Van Loan, Matrix Computations, 4th ed., 4.2.5)."""
    n = len(a)
    lower = np.zeros_like(a)
    for j in range(n):
        row = lower[j, :j]
        root = np.sqrt(a[j, j] - row @ row) if j else np.sqrt(a[j, j])
        lower[j, j] = root
        for i in range(j + 1, n):
            rest = a[i, j] - lower[i, :j] @ row if j else a[i, j]
            lower[i, j] = divide(rest, root)
    return (lower,)


def _cholesky_push(
    operands: Sequence[Any], results: Sequence[Any], rows: list[list[Traced]]
) -> Traced:
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
    "cholesky", _cholesky_body, _cholesky_push, loop_body=loop_cholesky, inline=True
)


@implements(np.linalg.cholesky)
def _cholesky(a: Operand, /, *, upper: bool = False) -> Traced:
    """Factorise; reads one triangle only, and gives nan where ``a`` is not positive definite."""
    (a,) = floats(a)
    check_square(a)
    lower = over_stack(lambda x: call(_CHOLESKY, x)[0], (2,), a.mT if upper else a)
    return lower.mT if upper else lower


# ---- qr ----------------------------------------------------------------------------------------


def _eye(rows: int, columns: int, like: Traced) -> Traced:
    trace = current_trace()
    return wrap(trace.graph.constants(np.eye(rows, columns, dtype=like.dtype)), like.code, trace)


def _reflector(x: Traced) -> tuple[Any, Any, Any]:
    """Return v (v[0] = 1), tau and beta with (I - tau v v^T) x = (beta, 0, ...), as LAPACK's larfg.

    A zero tail gives tau = 0 and beta = x[0]. The divisors are guarded, so that derivatives are
    finite there too.
    """
    alpha, tail = x[0], x[1:]
    below = tail @ tail
    flat = below == 0
    length = np.sqrt(np.where(flat, 1.0, alpha * alpha + below).astype(x.dtype))
    beta = -np.copysign(length, alpha)
    tau = np.where(flat, 0.0, (beta - alpha) / beta).astype(x.dtype)
    scale = np.where(flat, 0.0, 1.0 / (alpha - beta)).astype(x.dtype)
    head = full_like(x, 1.0, shape=(1,))
    return np.concatenate([head, tail * scale]), tau, np.where(flat, alpha, beta)


def householder(a: Traced, columns: int) -> tuple[Any, Any]:
    """Factorise a (m, n) matrix; returns the first ``columns`` columns of Q, and R (columns, n).

    Squares of the elements must neither overflow nor underflow: see ``power_of_two``.
    """
    m, n = a.shape
    r = a.copy()
    reflectors = []
    for j in range(min(m - 1, n)):
        v, tau, beta = _reflector(r[j:, j])
        reflectors.append((v, tau))
        r[j, j], r[j + 1 :, j] = beta, 0.0
        if j + 1 < n:
            rest = r[j:, j + 1 :]
            r[j:, j + 1 :] = rest - (tau * v)[:, None] * (v @ rest)
    q = _eye(m, columns, a)
    for j, (v, tau) in reversed(list(enumerate(reflectors))):
        rest = q[j:, j:]
        q[j:, j:] = rest - (tau * v)[:, None] * (v @ rest)
    return q, r[:columns]


def factorize_scaled(a: Traced, columns: int) -> tuple[Any, Any]:
    """Factorise a matrix of any magnitude, as ``householder`` does."""
    if len(a) == 1:
        return householder(a, columns)  # nothing to square
    scaled, scale = power_of_two(a)
    large = is_large(a) and min(a.shape[0] - 1, a.shape[1]) > 0
    q, r = (loop_householder if large else householder)(scaled, columns)
    return q, r * scale


def _tall_push(operands: Sequence[Any], results: Sequence[Any], rows: list[list[Traced]]) -> Traced:
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
    check_stacked(a)
    if mode == "r":
        return over_stack(_factorize_reduced, (2,), a)[1]
    if mode not in _MODES:
        if mode == "raw":
            raise trace_error("np.linalg.qr(mode='raw') cannot be traced", "Use mode='reduced'.")
        raise ValueError(f"Unrecognized mode '{mode}'")
    return QRResult(*over_stack(_MODES[mode], (2,), a))


_MODES = {"reduced": _factorize_reduced, "complete": _factorize_complete}
