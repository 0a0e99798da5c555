"""Points of boxes, among them their corners and special numbers, and results there."""

from __future__ import annotations

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.graph import DTYPES, I64, Graph
from archimedes.graph.regions.base import has_blocks

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.pi, np.pi / 2, 5e-324, 1e-300, 1e300, 2.0, 3.0)


def points_in(ends: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return points (inputs, count) in a box (2, inputs): inside, at and near corners, special."""
    low, high = (np.clip(x, -1.7e308, 1.7e308)[:, None] for x in ends)
    share = rng.random((len(low), count))
    kind = rng.integers(0, 8, count)
    share[:, kind <= 1] = np.round(share[:, kind <= 1])  # corners
    near = kind == 2
    share[:, near] = np.round(share[:, near]) + rng.normal(size=(len(low), near.sum())) * 1e-9
    some = (kind == 3) & (rng.random(share.shape) < 0.5)
    share = np.where(some, np.round(share), share)  # on edges
    points = np.clip(low * (1.0 - share) + high * share, low, high)
    special = (kind == 4) & (rng.random(share.shape) < 0.3)
    chosen = rng.choice(SPECIAL, size=share.shape)
    fits = special & (chosen >= ends[0][:, None]) & (chosen <= ends[1][:, None])
    return np.where(fits, chosen, points)


def results_at(graph: Graph, points: np.ndarray) -> np.ndarray:
    """Return the outputs (outputs, count) of a graph of scalars at points (inputs, count)."""
    columns = [x.astype(DTYPES[kind]) for x, kind in zip(points, graph.input_dtypes)]
    count = points.shape[1]
    if has_blocks(graph):
        rows = [run(graph, [c[k] for c in columns]) for k in range(count)]
        return np.array(rows).T
    outs = run(graph, columns)
    with np.errstate(invalid="ignore"):  # a signalling nan is quiet from here on
        return np.array([np.broadcast_to(out, (count,)).astype(float) for out in outs])


def points_of_types(graph: Graph, ends: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return points as numbers of the types of a graph's inputs, still in the box."""
    points = np.array(points)
    for row, kind in enumerate(graph.input_dtypes):
        with np.errstate(over="ignore"):
            exact = points[row].astype(DTYPES[kind]) if kind < I64 else np.rint(points[row])
        points[row] = np.clip(exact, *ends[:, row])
    return points


def outside(results: np.ndarray, ends: np.ndarray, nan: np.ndarray) -> np.ndarray:
    """Return which results (outputs, count) lie outside of certified ranges."""
    inside = (results >= ends[0][:, None]) & (results <= ends[1][:, None])
    return ~(inside | (np.isnan(results) & nan[:, None]))
