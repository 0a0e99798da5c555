"""Nodes converted from one dtype to another, and the order in memory of what is made of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archimedes.graph.blocks.references import scalar_ids
from archimedes.graph.dtypes import B8, F32, F64, I64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.wide import elementwise, in_loops

__all__ = ["applied", "cast", "cast_ids", "laid_out"]

# NumPy's own, also while names in its module are replaced (``creation.py``).
_array = np.array
_ID = np.dtype(np.int64)
_TO = {F64: CODES["f64"], F32: CODES["f32"], I64: CODES["i64"]}
_TRUNCATE, _NE = CODES["truncate"], CODES["ne"]


def cast(g: Graph, i: int, target: int) -> int:
    """Emit the conversion of one node to a dtype, with NumPy's ``astype`` meaning."""
    source = g.dtype[i]
    if source == target:
        return i
    if target == B8:
        return g.emit(_NE, i, g.const(0, source))
    if target == I64 and source in (F64, F32):
        return g.emit(_TRUNCATE, i)
    return g.emit(_TO[target], i)


def cast_ids(g: Graph, ids: np.ndarray, source: int, target: int) -> np.ndarray:
    """Convert an array of ids from one dtype to another."""
    if source == target:
        return ids
    return applied(g, ids, source, lambda body, x: cast(body, x, target))


def applied(g: Graph, ids: np.ndarray, code: int, make: Callable[[Graph, int], int]) -> np.ndarray:
    """Append ``make(graph, id)`` for each of an array of ids: one by one, or in a loop if wide."""
    if in_loops(g, ids.size, ids):
        (made,) = elementwise(g, [ids], [code], ids.shape, make)
        return laid_out(made, ids)
    ids = scalar_ids(g, ids)
    flat = [make(g, i) for i in ids.ravel().tolist()]
    return laid_out(_array(flat, dtype=_ID).reshape(ids.shape), ids)


def laid_out(ids: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    """Give fresh ids the memory order that NumPy's elementwise functions would choose.

    The order decides whether a later ``reshape`` or ``ravel`` is a view, which shows when it is
    written to. ``sources`` are the ids (one or two arrays) that the new ones were made from.
    """
    if ids.ndim < 2 or all(s.flags.c_contiguous for s in sources):
        return ids
    template = np.add(*sources) if len(sources) == 2 else np.positive(sources[0])
    template[...] = ids
    return template
