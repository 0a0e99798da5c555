"""Sorting, and search in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import I64
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import lift, lift_many, wrap
from archimedes.symbolic.core.ordering import count_below, count_traced_below, sort_rows
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Operand, Traced, as_constant

__all__: list[str] = []


def _sort_along(
    axis: int, keys: Sequence[Traced], column: int | None = None, stable: bool = True
) -> Traced:
    """Sort along an axis; return the key of that number, or (None) the positions before."""
    trace = current_trace()
    moved = [np.moveaxis(trace.elements_of(k), axis, -1) for k in keys]
    shape = moved[0].shape
    n = shape[-1]
    rows = [m.reshape(-1, n) if n else m.reshape(0, 0) for m in moved]
    ids = sort_rows(trace.graph, rows, [k.code for k in keys], column, stable)
    # NumPy sorts a copy, in the same order of memory; positions are in C order.
    result = np.empty_like(keys[0].ids, order="C" if column is None else "K")
    result[...] = np.moveaxis(ids.reshape(shape), -1, axis)
    return wrap(result, I64 if column is None else keys[column].code, trace)


def _axis(a: Operand, axis: int | None) -> tuple[Any, int]:
    a = lift(a)
    if axis is None:
        return a.reshape(-1), 0
    return a, np.lib.array_utils.normalize_axis_index(axis, a.ndim)


@implements(np.sort)
def sort(
    a: Operand,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    stable: bool | None = None,
) -> Traced:
    """Sort as ``np.sort``; ``kind="stable"`` also keeps the order of 0.0 and -0.0."""
    a, axis = _axis(a, axis)
    return _sort_along(axis, [a], 0, kind in ("stable", "mergesort") or bool(stable))


@implements(np.argsort)
def argsort(a: Operand, axis: int | None = -1, *args: Any, **kwargs: Any) -> Traced:
    """Return the positions that sort an array; equal elements keep their order."""
    a, axis = _axis(a, axis)
    return _sort_along(axis, [a])


@implements(np.lexsort)
def _lexsort(keys: Operand, axis: int = -1) -> Traced:
    """Positions that sort by the last key, then by those before it."""
    ready = [lift(k) for k in reversed(list(keys))]
    return _sort_along(np.lib.array_utils.normalize_axis_index(axis, ready[0].ndim), ready)


# A full sort is one of the orders that NumPy may return.
implements(np.partition)(lambda a, kth, axis=-1, *args, **kwargs: sort(a, axis))
implements(np.argpartition)(lambda a, kth, axis=-1, *args, **kwargs: argsort(a, axis))


@implements(np.searchsorted)
def searchsorted(a: Operand, v: Operand, side: str = "left", sorter: Operand = None) -> Traced:
    """Find where values would be inserted into a sorted array, traced or static."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right' (got {side!r})")
    a, v = lift_many([a, v])
    if sorter is not None:
        a = a[sorter]
    if a.ndim != 1:
        raise ValueError("object too deep for desired array")
    table = as_constant(a)
    if isinstance(table, SymbolicArray) or table.dtype == bool or np.isnan(table).any():
        return count_traced_below(a, v, side)
    return count_below(table, v, side)


@implements(np.digitize)
def _digitize(x: Operand, bins: Operand, right: bool = False) -> Traced:
    bins = lift(bins)
    side = "left" if right else "right"
    edges = as_constant(bins)
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
    element: Operand,
    test_elements: Operand,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Traced:
    element, tests = lift_many([element, test_elements])
    is_member = np.any(element[..., None] == tests.reshape(-1), axis=-1)
    return ~is_member if invert else is_member
