"""Factorisations of wide matrices: a step for each column, all steps one loop over blocks.

Every step works on the whole matrix, with zeros (or what was there) outside the part that the
column concerns: three times the operations of the shortest way, in straight loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.steps import stepped

__all__ = ["wide_cholesky", "wide_householder", "wide_triangle"]


def _columns(count: int) -> Any:
    return lift(np.arange(count))


def wide_triangle(a: Any) -> tuple[Any, Any]:
    """Return the pivots of a matrix by elimination, and whether an odd number of rows moved.

    A zero pivot eliminates nothing.
    """
    n = len(a)
    i = np.arange(n)

    def step(carry: list[Any], row: list[Any]) -> Any:
        (work, odd), (k,) = carry, row
        column = work[:, k]
        p = np.argmax(np.where(i >= k, np.abs(column), -1.0))
        source = np.where(i == k, p, np.where(i == p, k, i))
        pivots, pivot = work[p], column[p]
        moved = column[source]
        divisor = np.where(pivot == 0.0, 1.0, pivot).astype(a.dtype)
        factor = np.where((i > k) & (pivot != 0.0), moved / divisor, 0.0).astype(a.dtype)
        return [work[source] - factor[:, None] * pivots, odd ^ (p != k)], [pivot]

    (_, odd), (pivots,) = stepped(step, [a, lift(np.bool_(False))], [_columns(n)])
    return pivots, odd


def wide_cholesky(a: Any) -> tuple[Any]:
    """Return the lower factor, column by column, of what the lower triangle says."""
    n = len(a)
    i = np.arange(n)

    def step(carry: list[Any], row: list[Any]) -> Any:
        (lower,), (j,) = carry, row
        rest = a[:, j] - lower @ lower[j]
        root = np.sqrt(rest[j])
        column = np.where(i > j, rest / root, np.where(i == j, root, 0.0)).astype(a.dtype)
        return [np.where(i == j, column[:, None], lower)], []

    (lower,), _ = stepped(step, [np.zeros_like(a)], [_columns(n)])
    return (lower,)


def wide_householder(a: Any, columns: int) -> tuple[Any, Any]:
    """Return the first columns of Q, and R, as ``householder`` does."""
    m, n = a.shape
    i, c = np.arange(m), np.arange(n)
    count = min(m - 1, n)

    def step(carry: list[Any], row: list[Any]) -> Any:
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

    def back(carry: list[Any], row: list[Any]) -> Any:
        (q,), (v, tau) = carry, row
        return [q - (tau * v)[:, None] * (v @ q)], []

    (r,), (vectors, taus) = stepped(step, [a], [_columns(count)])
    start = lift(np.eye(m, columns, dtype=a.dtype))
    (q,), _ = stepped(back, [start], [vectors[::-1], taus[::-1]])
    return q, r[:columns]
