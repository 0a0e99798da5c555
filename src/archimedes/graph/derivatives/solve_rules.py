"""Derivatives of linear solves: more solves with the same matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.errors import GraphError
from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph
from archimedes.graph.regions import Solve
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative

__all__ = []


def _columns(dst: Graph, blocks: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(blocks, axis=1)


def _dense(dst: Graph, values: Sequence[Directions], d: int, shape, dtype: int) -> np.ndarray:
    zero = dst.const(0.0, dtype)
    return np.array([v.get(d, zero) for v in values], dtype=np.int64).reshape(shape)


def _product(dst: Graph, a: np.ndarray, b: np.ndarray, dtype: int) -> np.ndarray:
    """Emit the matrix product of two arrays of ids."""
    e = Emit(dst, dtype)
    out = np.empty((a.shape[0], b.shape[1]), dtype=np.int64)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = e.c(0.0)
            for k in range(a.shape[1]):
                total = e.add(total, e.mul(int(a[i, k]), int(b[k, j])))
            out[i, j] = total
    return out


def _solve(dst: Graph, matrix: np.ndarray, right: np.ndarray, dtype: int) -> np.ndarray:
    n, m = right.shape
    outs = dst.region(Solve([*matrix.reshape(-1), *right.reshape(-1)], n, m, dtype))
    return outs.reshape(n, m)


def _refuse_blocks(region: Solve) -> None:
    if region.blocks:
        raise GraphError(
            "a solve of blocks has no derivative of its own: put it into a Call with a rule"
        )


def _solve_forward(dst: Graph, region: Solve, given: list[Directions]):
    """A dX = dB - dA X."""
    _refuse_blocks(region)
    n, m, dtype = region.size, region.columns, region.dtype
    outs = dst.region(region)
    a, x = region.inputs[: n * n].reshape(n, n), outs.reshape(n, m)
    directions = sorted({d for value in given for d in value})
    e = Emit(dst, dtype)
    blocks = []
    for d in directions:
        da = _dense(dst, given[: n * n], d, (n, n), dtype)
        db = _dense(dst, given[n * n :], d, (n, m), dtype)
        dax = _product(dst, da, x, dtype)
        blocks.append(np.vectorize(e.sub, otypes=[np.int64])(db, dax))
    dx = _solve(dst, a, _columns(dst, blocks), dtype)
    tangents: list[Directions] = [{} for _ in range(n * m)]
    for k, d in enumerate(directions):
        for p, i in enumerate(dx[:, k * m : (k + 1) * m].reshape(-1).tolist()):
            tangents[p][d] = i
    return outs, tangents


def _solve_reverse(dst: Graph, region: Solve, adjoints, outs, wanted):
    """A^T L = Xbar; Bbar = L, Abar = -L X^T."""
    _refuse_blocks(region)
    n, m, dtype = region.size, region.columns, region.dtype
    a, x = region.inputs[: n * n].reshape(n, n), outs.reshape(n, m)
    directions = sorted({d for value in adjoints for d in value})
    blocks = [_dense(dst, adjoints, d, (n, m), dtype) for d in directions]
    multipliers = _solve(dst, a.T, _columns(dst, blocks), dtype)
    inputs: list[Directions] = [{} for _ in range(n * n + n * m)]
    e = Emit(dst, dtype)
    matrix_wanted = any(wanted[: n * n])
    for k, d in enumerate(directions):
        lam = multipliers[:, k * m : (k + 1) * m]
        for p, i in enumerate(lam.reshape(-1).tolist()):
            inputs[n * n + p][d] = i
        if matrix_wanted:
            for p, i in enumerate(_product(dst, lam, x.T, dtype).reshape(-1).tolist()):
                inputs[p][d] = e.neg(i)
    return inputs


register_derivative(Solve, RegionDerivative(_solve_forward, _solve_reverse))
