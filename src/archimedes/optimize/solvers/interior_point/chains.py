"""Unknowns in the order of a chain, so that matrices of a problem are narrow bands.

Two unknowns are neighbours if some block's function takes both. A few that touch everything (final
time, parameters) are the *border*: they are kept out of the band. The others are ordered as the
task says (time), or by reverse Cuthill-McKee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from archimedes.optimize.problems.blocks import BlockPatterns

__all__ = ["Chain", "chain_of"]

#: At most this many unknowns are the border.
BORDER = 40


class Chain(NamedTuple):
    """Numbers of the free unknowns in the band and of those in the border.

    ``place`` (n,) is where an unknown is: 0..nb-1 in the band, nb.. in the border, -1 if fixed.
    """

    band: np.ndarray
    border: np.ndarray
    place: np.ndarray


def chain_of(
    patterns: Sequence[BlockPatterns], free: np.ndarray, order: np.ndarray | None
) -> Chain:
    """Return the chain of the unknowns for which ``free`` (n,) holds.

    ``order`` (n,) are positions along the chain, nan for what touches everything, or None.
    """
    n = free.size
    if order is None:
        rows, columns = _all_neighbours(patterns, free)
        border = _busy(rows, columns, n)
        band = _cuthill_mckee(rows, columns, np.flatnonzero(free & ~border), n)
    else:
        border = np.isnan(order)
        band = np.flatnonzero(free & ~border)
        band = band[np.argsort(order[band], kind="stable")]
    outside = np.flatnonzero(free & border)
    place = np.full(n, -1)
    place[band] = np.arange(band.size)
    place[outside] = band.size + np.arange(outside.size)
    return Chain(band, outside, place)


def _all_neighbours(
    patterns: Sequence[BlockPatterns], free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of free unknowns that meet somewhere."""
    pairs = [_neighbours(p) for p in patterns]
    rows = np.concatenate([a for a, _ in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    columns = np.concatenate([b for _, b in pairs]) if pairs else np.zeros(0, dtype=np.int64)
    kept = free[rows] & free[columns]
    return rows[kept], columns[kept]


def _neighbours(patterns: BlockPatterns) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of unknowns with a curvature, or in one constraint."""
    block, first = patterns.block, patterns.first
    above, left = gram_pairs(
        first.rows[patterns.of_constraints], first.columns[patterns.of_constraints]
    )
    index = block.index
    rows = np.concatenate([patterns.hess_rows, index[:, above].ravel()])
    columns = np.concatenate([patterns.hess_columns, index[:, left].ravel()])
    return rows, columns


def gram_pairs(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries (row >= column) of A^T A, for A with entries at these places."""
    from scipy.sparse import coo_array

    if not rows.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    A = coo_array((np.ones(rows.size), (rows, columns))).tocsr()
    product = (A.T @ A).tocoo()
    lower = product.row >= product.col
    return product.row[lower].astype(np.int64), product.col[lower].astype(np.int64)


def _busy(rows: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """Tell which unknowns have far more neighbours than most."""
    count = np.bincount(rows, minlength=n) + np.bincount(columns, minlength=n)
    usual = float(np.median(count[count > 0])) if np.any(count > 0) else 0.0
    busy = count > 10.0 * usual + 20.0
    return busy if np.count_nonzero(busy) <= BORDER else np.zeros(n, dtype=bool)


def _cuthill_mckee(rows: np.ndarray, columns: np.ndarray, kept: np.ndarray, n: int) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    number = np.full(n, -1)
    number[kept] = np.arange(kept.size)
    inside = (number[rows] >= 0) & (number[columns] >= 0)
    i, j = number[rows[inside]], number[columns[inside]]
    every = (np.concatenate([i, j]), np.concatenate([j, i]))
    shape = (kept.size, kept.size)
    graph = coo_array((np.ones(every[0].size), every), shape=shape).tocsr()
    return kept[reverse_cuthill_mckee(graph, symmetric_mode=True)]
