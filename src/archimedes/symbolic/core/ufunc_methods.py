"""The ways NumPy calls a ufunc: plain, reduce, accumulate, outer, and with out/where/dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.symbolic.core.dispatch import apply_ufunc, laid_like, lift, wrap
from archimedes.symbolic.core.indexing import static_key
from archimedes.symbolic.core.registry import ADOPTERS, GUFUNCS, UFUNC_METHODS, ufunc_method
from archimedes.symbolic.core.steps import accumulated, folded
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_content import HOLDERS
from archimedes.symbolic.core.traced_value import TracedValue
from archimedes.symbolic.core.ufuncs import UFUNCS
from archimedes.symbolic.core.wide import in_loops, reduction

__all__ = ["call_ufunc", "finish", "fold_axis", "target"]


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Handle ``__array_ufunc__`` for traced arrays."""
    out = kwargs.pop("out", None)
    if ufunc in GUFUNCS:
        result = GUFUNCS[ufunc](*inputs, **kwargs)
    elif ufunc not in UFUNCS and not any(adopt(ufunc) for adopt in ADOPTERS):
        own = getattr(np, ufunc.__name__, None) == ufunc  # or what stands for it
        raise trace_error(
            f"{'np.' if own else 'the ufunc '}{ufunc.__name__} cannot be traced",
            "Write it with other NumPy functions or those of arc.special, or wrap it in "
            "arc.callback.",
        )
    elif method == "__call__":
        result = _call(ufunc, inputs, out, kwargs)
    elif method in UFUNC_METHODS:
        result = UFUNC_METHODS[method](ufunc, *inputs, **kwargs)
    else:
        raise trace_error(
            f"np.{ufunc.__name__}.{method} cannot be traced",
            f"Use one of {', '.join(UFUNC_METHODS)}.",
        )
    return result if out is None else _write(out, result)


def _call(ufunc: np.ufunc, inputs: Sequence[Any], out: Any, kwargs: dict[str, Any]) -> Any:
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    kwargs.pop("casting", None)
    order = kwargs.pop("order", "K")
    kwargs.pop("subok", None)
    if kwargs:
        raise trace_error(
            f"np.{ufunc.__name__} was given {sorted(kwargs)}, which cannot be traced",
            "Leave these keywords out.",
        )
    result = apply_ufunc(ufunc, inputs, dtype)
    if where is not True:
        if out is None:
            raise trace_error(
                f"np.{ufunc.__name__}(..., where=mask) without out= leaves values undefined",
                "Give out=, or write np.where(mask, f(x), other).",
            )
        result = np.where(where, result, out[0])
    return result if order == "K" else _in_order(result, order, inputs)


def _in_order(result: Any, order: str, inputs: Sequence[Any]) -> Any:
    """Lay out the results of a ufunc as its argument ``order`` says."""
    if isinstance(result, tuple):
        return tuple(_in_order(part, order, inputs) for part in result)
    if order == "A":
        given = [lift(x).ids for x in inputs]
        order = "F" if all(ids.flags.f_contiguous for ids in given) else "C"
    return result if result.ids.ndim < 2 else result.copy(order)


def target(x: Any, what: str = "out=, or an operator such as a += x") -> Any:
    """Return the traced array to write to, which must have been made in the recording."""
    if isinstance(x, TracedValue):
        return x
    holder = HOLDERS.get(type(x))
    if holder is not None:
        return holder.writable(x)
    raise trace_error(
        "a traced result cannot be written into a plain NumPy array made outside the "
        f"trace ({what})",
        "Write a = a + x, or copy the array inside the function first: a = np.array(a).",
    )


def _write(out: Any, result: Any) -> Any:
    """Store results in the arrays given as ``out=``."""
    results = result if isinstance(result, tuple) else (result,)
    written = []
    for place, value in zip(out, results):
        if place is None:
            written.append(value)
            continue
        into = target(place)
        if not np.can_cast(value.dtype, into.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc output from {value.dtype!r} to {into.dtype!r} with casting "
                "rule 'same_kind'"
            )
        if np.broadcast_shapes(into.shape, value.shape) != into.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {into.shape} doesn't match the "
                f"broadcast shape {value.shape}"
            )
        into[...] = value
        written.append(place)
    return written[0] if len(written) == 1 else tuple(written)


def finish(out: Any, result: Any) -> Any:
    """Return a function's result, stored in its ``out=`` argument where one was given."""
    return result if out is None else _write((out,), result)


def fold_axis(
    x: Any, axis: Any, keepdims: bool, combine: Callable[[Any, Any], Any], start: Any
) -> Any:
    """Combine the slices of an array along one or several axes, pairwise where there are many.

    ``start`` is the first value, or None to start with the first slice (an error if empty).
    """
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        # In the order of the array, whatever that of the axes: as NumPy combines.
        axes = tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)))
    wide = _fold_in_loops(x, axes, combine, start)
    if wide is not None:
        return np.expand_dims(wide, axes) if keepdims else wide
    moved = np.moveaxis(x.ids, axes, range(len(axes)))
    rest = moved.shape[len(axes) :]
    count = int(np.prod(moved.shape[: len(axes)], dtype=int))
    rows = moved.reshape(count, *rest)
    wide = folded(combine, TracedValue.array(rows, x.code, x.owner))
    if wide is not None:
        wide = wide if start is None else combine(lift(start), wide)
        return np.expand_dims(wide, axes) if keepdims else wide
    items = [wrap(row, x.code, x.owner) for row in rows]
    if start is not None:
        items.insert(0, np.broadcast_to(lift(start), rest) if rest else lift(start))
    if not items:
        raise ValueError("zero-size array to reduction operation which has no identity")
    result = _pairwise(items, combine) if len(items) > 1 else items[0].copy()
    if keepdims:
        result = np.expand_dims(result, axes)
    return result


#: Reductions that are loops over wide arrays, by dtype: of products there is no derivative.
_COMBINE = {
    np.add: ("add", "add", "add", "or"),
    np.maximum: ("max", "max", "max", "or"),
    np.minimum: ("min", "min", "min", "and"),
    np.multiply: ("", "", "mul", "and"),
    np.logical_and: ("", "", "", "and"),
    np.logical_or: ("", "", "", "or"),
    np.logical_xor: ("", "", "", "xor"),
    np.bitwise_and: ("", "", "and", "and"),
    np.bitwise_or: ("", "", "or", "or"),
    np.bitwise_xor: ("", "", "xor", "xor"),
}


def _fold_in_loops(x: Any, axes: Sequence[int], combine: Any, start: Any) -> Any:
    """Reduce a wide array; None where it is not, or where there is no such loop."""
    name = _COMBINE[combine][x.code] if combine in _COMBINE else ""
    trace = current_trace()
    if not name or not axes or not in_loops(trace.graph, x.size, trace.elements_of(x)):
        return None
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = [*kept, *sorted(axes)]
    places = [order.index(axis) for axis in range(x.ndim)]
    shape = tuple(x.shape[axis] for axis in order)
    operand = (trace.elements_of(x), x.code, places)
    made = reduction(trace.graph, [operand], shape, len(kept), lambda body, i: i, name)
    if len(kept) > 1 and not x.ids.flags.c_contiguous:
        made, ids = np.add.reduce(x.ids, axis=tuple(axes)), made  # for its order in memory
        made[...] = ids
    result = wrap(made, x.code, trace)
    return result if start is None else combine(lift(start), result)


def _pairwise(items: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Left to right up to eight items, halves beyond that: rounding errors grow with log n."""
    if len(items) > 8:
        half = len(items) // 2
        return combine(_pairwise(items[:half], combine), _pairwise(items[half:], combine))
    total = items[0]
    for item in items[1:]:
        total = combine(total, item)
    return total


@ufunc_method("accumulate")
def _accumulate(ufunc: np.ufunc, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    x = lift(x) if dtype is None else lift(x).astype(dtype)
    if dtype is None and x.code == B8 and ufunc in (np.add, np.multiply):
        x = x.astype(np.int64)  # NumPy counts bools
    moved = np.moveaxis(x, axis, 0)
    wide = accumulated(ufunc, moved)
    if wide is not None:
        return laid_like(np.moveaxis(wide, 0, axis), x)
    rows = [wrap(row, x.code, x.owner) for row in moved.ids]
    totals = rows[:1]
    for row in rows[1:]:
        totals.append(ufunc(totals[-1], row))
    if not totals:
        return x.copy()
    joined: Any = np.stack(totals)
    ids = np.empty_like(x.ids)
    ids[...] = np.moveaxis(joined.ids, 0, axis)
    return TracedValue.array(ids, joined.code, joined.owner)


@ufunc_method("outer")
def _outer(ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    a, b = lift(a), lift(b)
    return ufunc(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


@ufunc_method("reduceat")
def _reduceat(
    ufunc: np.ufunc, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """Reduce the stretches that begin at static positions; a stretch may be one element."""
    rows = np.moveaxis(lift(x), axis, 0)
    starts = [int(k) for k in indices]
    parts = []
    for k, start in enumerate(starts):
        stop = starts[k + 1] if k + 1 < len(starts) else len(rows)
        parts.append(ufunc.reduce(rows[start : max(stop, start + 1)], axis=0, dtype=dtype))
    return np.moveaxis(np.stack(parts), 0, axis)


@ufunc_method("at")
def _at(ufunc: np.ufunc, x: Any, indices: Any, *values: Any) -> None:
    """Apply a ufunc in place, once for every time a static index names an element."""
    into = target(x)
    static = static_key(indices)
    if static is None:
        raise trace_error(
            f"np.{ufunc.__name__}.at with a traced index cannot be recorded",
            "Write x[k] += value for one traced position at a time.",
        )
    numbers = np.arange(into.size).reshape(into.shape)[static[0]]
    operands = [np.broadcast_to(lift(v), numbers.shape).reshape(-1) for v in values]
    for k, number in enumerate(numbers.ravel().tolist()):
        place = np.unravel_index(number, into.shape)
        into[place] = ufunc(into[place], *(v[k] for v in operands))
