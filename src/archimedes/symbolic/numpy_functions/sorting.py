"""Sorting networks, and search in sorted arrays.

Which element ends up where depends on values, so a sort is recorded as a fixed network of
compare-and-exchange steps: Batcher's odd-even merge sort (Knuth, The Art of Computer Programming
vol. 3, 5.3.4), about n/4 log2(n)^2 steps of a comparison and two selections. The selections pass
derivatives of the elements they keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import as_block, scalar_ids
from archimedes.graph.dtypes import I64, is_float
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.dispatch import lift, lift_many, wrap
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_content import known
from archimedes.symbolic.core.wide import each, each_with, in_loops, taken_along
from archimedes.symbolic.numpy_functions.wide_sorting import sorted_positions

__all__ = ["count_below", "exchanges", "sort_keys"]

_SELECT, _LT, _LE, _EQ, _AND, _NOT, _ADD = (
    CODES[n] for n in ("select", "lt", "le", "eq", "and", "not", "add")
)


def exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs (low, high) of Batcher's network for n elements, in order.

    >>> list(exchanges(3))
    [(0, 2), (0, 1), (1, 2)]
    """
    if n < 2:
        return
    p = top = 1 << ((n - 1).bit_length() - 1)
    while p:
        q, r, d = top, 0, p
        while d:
            yield from ((i, i + d) for i in range(n - d) if i & p == r)
            d, q, r = q - p, q >> 1, p
        p >>= 1


def _precedes(g: Graph, a: int, b: int) -> int:
    """Emit whether a sorts strictly before b: nan comes last, as in NumPy."""
    if not is_float(g.dtype[a]):
        return g.emit(_LT, a, b)
    return g.emit(_AND, g.emit(_NOT, g.emit(_LE, b, a)), g.emit(_EQ, a, a))


def _before(g: Graph, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Emit whether one record precedes another in the order of its keys, the first foremost."""
    result = _precedes(g, a[-1], b[-1])
    for x, y in zip(a[-2::-1], b[-2::-1]):
        # Where the later keys say yes it is enough that y is not smaller.
        not_after = g.emit(_NOT, _precedes(g, y, x))
        result = g.emit(_SELECT, result, not_after, _precedes(g, x, y))
    return result


def sort_keys(g: Graph, columns: list[list[int]]) -> list[list[int]]:
    """Sort records given as columns of ids (first column foremost); returns sorted columns."""
    records = list(zip(*columns))
    for low, high in exchanges(len(records)):
        a, b = records[low], records[high]
        swap = _before(g, b, a)
        records[low] = tuple(g.emit(_SELECT, swap, y, x) for x, y in zip(a, b))
        records[high] = tuple(g.emit(_SELECT, swap, x, y) for x, y in zip(a, b))
    return [list(column) for column in zip(*records)]


def _along(axis: int, keys: list[Any], *, by_position: bool = True, column: int = -1) -> Any:
    """Sort along an axis and return one column of the records.

    With ``by_position`` the positions before sorting are the last key: equal elements keep their
    order, and the last column holds the positions.
    """
    trace = current_trace()
    moved = [np.moveaxis(trace.elements_of(k), axis, -1) for k in keys]
    shape = moved[0].shape
    n = shape[-1]
    flat = [m.reshape(-1, n) if n else m.reshape(0, 0) for m in moved]
    positions = by_position and column == -1
    if in_loops(trace.graph, flat[0].size, *flat):
        ids = _in_loops(flat, keys, None if positions else column)
    else:
        ids = _in_nodes([scalar_ids(trace.graph, f) for f in flat], by_position, column)
    ids = ids.reshape(shape)
    code = I64 if positions else keys[column].code
    # NumPy sorts a copy, in the same order of memory; positions are in C order.
    made = np.empty_like(keys[0].ids, order="C" if positions else "K")
    made[...] = np.moveaxis(ids, -1, axis)
    return wrap(made, code, trace)


def _in_nodes(flat: list[np.ndarray], by_position: bool, column: int) -> np.ndarray:
    """Sort rows of ids, exchange by exchange."""
    g = current_trace().graph
    numbers = [g.const(k, I64) for k in range(flat[0].shape[-1])]
    rows = [
        sort_keys(g, [*(f[r].tolist() for f in flat), *[numbers] * by_position])[column]
        for r in range(len(flat[0]))
    ]
    return np.array(rows, dtype=np.int64)


def _in_loops(flat: list[np.ndarray], keys: list[Any], column: int | None) -> np.ndarray:
    """Sort rows of ids in loops: positions, or the sorted elements of a column."""
    g = current_trace().graph
    places = sorted_positions(g, flat, [k.code for k in keys], _before)
    return places if column is None else taken_along(g, flat[column], keys[column].code, places)


def _axis(a: Any, axis: Any) -> tuple[Any, int]:
    a = lift(a)
    if axis is None:
        return a.reshape(-1), 0
    return a, np.lib.array_utils.normalize_axis_index(axis, a.ndim)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Sort as ``np.sort``; ``kind="stable"`` also keeps the order of 0.0 and -0.0."""
    a, axis = _axis(a, axis)
    return _along(axis, [a], by_position=kind in ("stable", "mergesort") or bool(stable), column=0)


@implements(np.argsort)
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """Return the positions that sort an array; equal elements keep their order."""
    a, axis = _axis(a, axis)
    return _along(axis, [a])


@implements(np.lexsort)
def _lexsort(keys: Any, axis: int = -1) -> Any:
    """Positions that sort by the last key, then by those before it."""
    ready = [lift(k) for k in reversed(list(keys))]
    return _along(np.lib.array_utils.normalize_axis_index(axis, ready[0].ndim), ready)


@implements(np.partition)
def _partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    # A full sort is one of the orders that NumPy may return.
    return sort(a, axis)


@implements(np.argpartition)
def _argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    return argsort(a, axis)


# ---- search ------------------------------------------------------------------------------------


def count_below(table: np.ndarray, v: Any, side: str) -> Any:
    """Count the entries of a static sorted table below (``left``) or up to (``right``) each v.

    Binary search with one table lookup per level, so that the cost grows with log2 of the length.
    A nan counts as larger than every entry; the table itself must hold none.
    """
    trace = current_trace()
    n = len(table)
    levels = n.bit_length()
    top = np.inf if table.dtype.kind == "f" else np.iinfo(np.int64).max
    # Entry 0 stands before the table: a search position p says that p entries are below.
    padded = np.concatenate([table[:1], table, np.full(2**levels - 1 - n, top, table.dtype)])

    def search(g: Graph, x: int) -> int:
        at = g.const(0, I64)
        for level in reversed(range(levels)):
            further = g.emit(_ADD, at, g.const(1 << level, I64))
            entry = g.lookup(padded, further)
            stop = g.emit(_LE, x, entry) if side == "left" else g.emit(_LT, x, entry)
            at = g.emit(_SELECT, stop, at, further)
        # Only x beyond every entry (inf, nan) can run into the padding.
        return g.emit(CODES["min"], at, g.const(n, I64))

    ids = trace.elements_of(v)
    return wrap(each(trace.graph, [ids], [v.code], v.shape, search), I64, trace)


def _is_below(g: Graph, entry: int, x: int, side: str) -> int:
    """Emit whether an entry of a sorted table is to be counted."""
    if side == "left":
        return _precedes(g, entry, x)
    return g.emit(_NOT, _precedes(g, x, entry))


def _count_traced(a: Any, v: Any, side: str) -> Any:
    """Count as ``count_below`` does, in a traced table, one comparison per entry."""
    trace = current_trace()
    if in_loops(trace.graph, a.size, trace.elements_of(a)):
        return _count_in_block(a, v, side)
    table = trace.ids_of(a).tolist()

    def count(g: Graph, x: int, *entries: int) -> int:
        at = g.const(0, I64)
        for k, entry in enumerate(entries):
            at = g.emit(_SELECT, _is_below(g, entry, x, side), g.const(k + 1, I64), at)
        return at

    given = [trace.elements_of(v), *(np.array(i) for i in table)]
    made = each(trace.graph, given, [v.code] * len(given), v.shape, count)
    return wrap(made, I64, trace)


def _count_in_block(a: Any, v: Any, side: str) -> Any:
    """Count by binary search in a wide traced table."""
    trace = current_trace()
    g, n = trace.graph, a.size
    block = as_block(g, trace.elements_of(a), a.code)

    def search(body: Graph, x: int, table: int) -> int:
        at, least = body.const(0, I64), body.const(n, I64)
        for level in reversed(range(n.bit_length())):
            further = body.emit(_ADD, at, body.const(1 << level, I64))
            entry = body.element(table, body.emit(_ADD, further, body.const(-1, I64)))
            inside = body.emit(_LE, further, least)
            ahead = body.emit(_AND, inside, _is_below(body, entry, x, side))
            at = body.emit(_SELECT, ahead, further, at)
        return at

    ids = trace.elements_of(v)
    return wrap(each_with(g, [ids], [v.code], [block], v.shape, search), I64, trace)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Find where values would be inserted into a sorted array, traced or static."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right' (got {side!r})")
    a, v = lift_many([a, v])
    if sorter is not None:
        a = a[sorter]
    if a.ndim != 1:
        raise ValueError("object too deep for desired array")
    table = known(a)
    if isinstance(table, SymbolicArray) or table.dtype == bool or np.isnan(table).any():
        return _count_traced(a, v, side)
    return count_below(table, v, side)


@implements(np.digitize)
def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    bins = lift(bins)
    side = "left" if right else "right"
    edges = known(bins)
    rising = searchsorted(bins, x, side)
    if bins.size < 2:
        return rising
    if isinstance(edges, SymbolicArray):
        falling = bins.size - searchsorted(bins[::-1], x, side)
        return np.where(bins[0] <= bins[-1], rising, falling)
    if np.all(edges[1:] >= edges[:-1]):
        return rising
    if np.all(edges[1:] <= edges[:-1]):
        return bins.size - searchsorted(edges[::-1], x, side)
    raise ValueError("bins must be monotonically increasing or decreasing")


@implements(np.isin)
def _isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    element, tests = lift_many([element, test_elements])
    found = np.any(element[..., None] == tests.reshape(-1), axis=-1)
    return ~found if invert else found
