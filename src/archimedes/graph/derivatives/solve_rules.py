"""Derivatives of linear solves: more solves with the same matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.errors import GraphError
from archimedes.graph.derivatives.bodies import by_position
from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph
from archimedes.graph.regions import Solve
from archimedes.graph.regions.base import Adjoints, Directions, Tangents, Wanted, add_derivative


def _dense(e: Emit, values: Sequence[Directions], d: int, columns: int) -> np.ndarray:
    """Return tangents or adjoints along a direction as a matrix of ids."""
    zero = e.c(0.0)
    return np.array([v.get(d, zero) for v in values], dtype=np.int64).reshape(-1, columns)


def _product(e: Emit, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Emit the matrix product of two arrays of ids."""
    out = np.empty((a.shape[0], b.shape[1]), dtype=np.int64)
    for i, j in np.ndindex(out.shape):
        total = e.c(0.0)
        for left, right in zip(a[i].tolist(), b[:, j].tolist()):
            total = e.add(total, e.mul(left, right))
        out[i, j] = total
    return out


def _solve(dst: Graph, matrix: np.ndarray, right: list[np.ndarray], dtype: int) -> list[np.ndarray]:
    """Emit one solve for all right-hand sides and return the solution of each."""
    columns = np.concatenate(right, axis=1)
    n, m = columns.shape
    outs = dst.region(Solve([*matrix.reshape(-1), *columns.reshape(-1)], n, m, dtype))
    return np.split(outs.reshape(n, m), len(right), axis=1)


def _sort_by_entry(matrices: list[np.ndarray], directions: list[int]) -> Adjoints:
    """Return the entries of a matrix for each direction, as one dict per entry."""
    entries = matrices[0].size
    ids = [i for matrix in matrices for i in matrix.reshape(-1).tolist()]
    return by_position(ids, entries, [(p, d) for d in directions for p in range(entries)])


def _refuse_blocks(region: Solve) -> None:
    if region.blocks:
        raise GraphError(
            "a solve of blocks has no derivative of its own: put it into a Call with a rule"
        )


def _forward(dst: Graph, region: Solve, tangents: Tangents) -> tuple[np.ndarray, Tangents]:
    """A dX = dB - dA X."""
    _refuse_blocks(region)
    n, m, e = region.size, region.columns, Emit(dst, region.dtype)
    outs = dst.region(region)
    a, x = region.inputs[: n * n].reshape(n, n), outs.reshape(n, m)
    directions = sorted({d for value in tangents for d in value})
    right = []
    for d in directions:
        da, db = _dense(e, tangents[: n * n], d, n), _dense(e, tangents[n * n :], d, m)
        right.append(np.vectorize(e.sub, otypes=[np.int64])(db, _product(e, da, x)))
    return outs, _sort_by_entry(_solve(dst, a, right, region.dtype), directions)


def _reverse(
    dst: Graph, region: Solve, adjoints: Adjoints, outs: np.ndarray, wanted: Wanted
) -> Adjoints:
    """A^T L = Xbar; Bbar = L, Abar = -L X^T."""
    _refuse_blocks(region)
    n, m, e = region.size, region.columns, Emit(dst, region.dtype)
    a, x = region.inputs[: n * n].reshape(n, n), outs.reshape(n, m)
    directions = sorted({d for value in adjoints for d in value})
    right = [_dense(e, adjoints, d, m) for d in directions]
    multipliers = _solve(dst, a.T, right, region.dtype)
    of_matrix: list[Directions] = [{} for _ in range(n * n)]
    if any(wanted[: n * n]):
        negate = np.vectorize(e.neg, otypes=[np.int64])
        products = [negate(_product(e, lam, x.T)) for lam in multipliers]
        of_matrix = _sort_by_entry(products, directions)
    return of_matrix + _sort_by_entry(multipliers, directions)


add_derivative(Solve, _forward, _reverse)
