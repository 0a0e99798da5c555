"""Sorting, search in sorted arrays, and order statistics: median, quantiles, percentiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import I64, is_float
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import as_float, lift, lift_many, wrap
from archimedes.symbolic.core.ordering import count_below, count_traced_below, sort_rows
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import Axis, Operand, Traced, as_constant

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
def sort(a: Operand, axis: int | None = -1, kind: str | None = None, **kwargs: Any) -> Traced:
    """Sort as ``np.sort``; ``kind="stable"`` also keeps the order of 0.0 and -0.0."""
    a, axis = _axis(a, axis)
    stable = kind in ("stable", "mergesort") or bool(kwargs.get("stable"))
    return _sort_along(axis, [a], 0, stable)


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


# ---- order statistics ---------------------------------------------------------------------------


def _lines(a: Operand, axis: Axis) -> tuple[Traced, tuple[int, ...]]:
    """Bring the axes to reduce to the front, as one; return it and the shape with ones in it."""
    x = lift(a)
    axes = np.lib.array_utils.normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    count = int(np.prod([x.shape[k] for k in axes], dtype=int))
    return x.transpose(axes + rest).reshape((count, *(x.shape[k] for k in rest))), shape


def _count(lines: Operand) -> Traced:
    """Number of elements along the first axis that are not nan."""
    return np.sum(~np.isnan(lines), axis=0)


def _pick(ordered: Operand, index: Operand) -> Traced:
    """Take one element per column, at traced positions."""
    return np.take_along_axis(ordered, index[None], axis=0)[0]


def _median_of(lines: Operand, skip_nan: bool) -> Traced:
    ordered = sort(lines, axis=0)
    if skip_nan and is_float(lines.code):
        count = _count(lines)
        # With nothing left both positions name the last element, which then is nan.
        low, high = _pick(ordered, (count - 1) // 2), _pick(ordered, count // 2)
        return np.where(count % 2 == 1, low, (low + high) / 2)
    n = len(lines)
    if n == 0:
        return np.mean(as_float(lines), axis=0)
    middle = np.mean(ordered[(n - 1) // 2 : n // 2 + 1], axis=0)
    return np.where(np.isnan(ordered[-1]), ordered[-1], middle) if is_float(lines.code) else middle


def _median(skip_nan: bool) -> Callable[..., Traced]:
    def run(
        a: Operand, axis: Axis = None, overwrite_input: bool = False, keepdims: bool = False
    ) -> Traced:
        lines, shape = _lines(a, axis)
        result = _median_of(lines, skip_nan)
        return result.reshape(shape) if keepdims else result

    return run


implements(np.median)(_median(skip_nan=False))
implements(np.nanmedian)(_median(skip_nan=True))


def _between(low: Operand, high: Operand, t: Operand) -> Traced:
    """Interpolate from the nearer end, as NumPy does, so that both ends are met exactly."""
    step = high - low
    return np.where(t >= 0.5, high - step * (1 - t), low + step * t)


#: Methods that return an element of the data, in its dtype.
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


def _at_position(ordered: Operand, position: Operand, weak: bool) -> Traced:
    """Read sorted lines at one fractional static position."""
    last = len(ordered) - 1
    low = int(min(np.floor(position), last))
    t = position - low
    return _between(ordered[low], ordered[min(low + 1, last)], float(t) if weak else t)


def _positions(n: int, q: np.ndarray, method: str) -> np.ndarray:
    """Fractional positions of quantiles in a sorted line of n elements."""
    if method == "linear":
        return (n - 1) * q
    # In the line 0, 1, 2 ... each value is its own position: any method shows where it reads.
    return np.quantile(np.arange(float(n)), q, method=method)  # type: ignore[call-overload]


def _read_at_static(ordered: Operand, q: np.ndarray, method: str, weak: bool) -> Traced:
    positions = _positions(len(ordered), q, method)
    if method in _DISCRETE:
        return ordered[positions.astype(np.int64)]
    return np.stack([_at_position(ordered, p, weak) for p in positions.ravel()])


def _read_at_traced(
    ordered: Operand, q: Operand, method: str, weak: bool, skip_nan: bool
) -> Traced:
    """Return quantiles whose positions are known only when the program runs."""
    if method != "linear":
        raise trace_error(
            f"quantiles with method={method!r} need static positions",
            "Use method='linear', or make q static and the data free of nan.",
        )
    count = _count(ordered) if skip_nan else len(ordered)
    last = np.broadcast_to(lift(count) - 1, ordered.shape[1:])
    results = []
    for one in lift(q).reshape(-1):
        position = last * one
        low = np.clip(np.floor(position).astype(np.int64), 0, np.maximum(last, 0))
        t = position - low
        ends = _pick(ordered, low), _pick(ordered, np.minimum(low + 1, np.maximum(last, 0)))
        results.append(_between(*ends, t.astype(as_float(ordered).dtype) if weak else t))
    return np.stack(results)


def _quantile(scale: float, skip_nan: bool) -> Callable[..., Traced]:
    def run(
        a: Operand,
        q: Operand,
        axis: Axis = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Operand = None,
    ) -> Traced:
        if weights is not None:
            raise trace_error(
                "quantiles with weights cannot be traced", "Leave weights out, or use arc.callback."
            )
        lines, shape = _lines(a, axis)
        if len(lines) == 0:
            raise IndexError("cannot take a quantile of an empty axis")
        weak = type(q) in (int, float) or getattr(q, "weak", False)
        q = as_constant(q)
        skips = skip_nan and is_float(lines.code)
        if isinstance(q, SymbolicArray):
            q = q if scale == 1 else np.true_divide(q, scale)
        else:
            q = np.asanyarray(q)
            if scale != 1:
                q = np.true_divide(q, lines.dtype.type(scale) if is_float(lines.code) else scale)
            if not np.all((q >= 0) & (q <= 1)):
                name = "Percentiles" if scale == 100 else "Quantiles"
                raise ValueError(f"{name} must be in the range [0, {scale}]")
        ordered = sort(lines, axis=0)
        if skips or isinstance(q, SymbolicArray):
            result = _read_at_traced(ordered, q, method, weak, skips)
        else:
            result = _read_at_static(ordered, q, method, weak)
        if is_float(lines.code) and not skips:
            result = np.where(np.isnan(ordered[-1]), np.nan, result)
        return result.reshape(np.shape(q) + (shape if keepdims else lines.shape[1:]))

    return run


implements(np.quantile)(_quantile(1, skip_nan=False))
implements(np.percentile)(_quantile(100, skip_nan=False))
implements(np.nanquantile)(_quantile(1, skip_nan=True))
implements(np.nanpercentile)(_quantile(100, skip_nan=True))
