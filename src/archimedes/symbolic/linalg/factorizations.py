"""Triangular factorizations of traced matrices: cholesky and qr.

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

from archimedes.symbolic.core.array_scans import scan_rows, unroll_rows
from archimedes.symbolic.core.conversion import floats, lift
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.linalg import matrices
from archimedes.symbolic.linalg.elimination import divide
from archimedes.symbolic.linalg.matrix_functions import Arrays, Changes, MatrixFunction, call

QRResult = type(np.linalg.qr(np.eye(1)))


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
