"""Elementwise application of NumPy ufuncs to traced arrays.

NumPy decides everything but the arithmetic: shapes by its broadcasting of the id arrays, dtypes
by ``ufunc.resolve_dtypes``. The arithmetic is a row in ``ufuncs.py``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import scalar_ids
from archimedes.graph.dtypes import B8, F64, I64, code_of
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.array_scans import accumulate_rows, fold_rows
from archimedes.symbolic.core.conversion import (
    INT64_LIMIT,
    as_operand,
    copy_layout,
    kind_of,
    lift,
    match_layout,
    operand_ids,
    resolve_dtypes,
    wrap,
)
from archimedes.symbolic.core.indexing import static_key
from archimedes.symbolic.core.loop_nests import elementwise, is_long, loop_reduce, uses_loops
from archimedes.symbolic.core.registry import ADOPTERS, GUFUNCS, UFUNC_METHODS, ufunc_method
from archimedes.symbolic.core.trace import Trace, current_trace, trace_error
from archimedes.symbolic.core.traced_value import HOLDERS, TracedValue
from archimedes.symbolic.core.ufuncs import UFUNCS, Loop, int_power

# NumPy's own, also while names in its module are replaced.
_array, _empty = np.array, np.empty
_ID = np.dtype(np.int64)

__all__ = ["apply_ufunc", "call_ufunc", "finish", "fold_axis", "target"]
_COMPARISONS = frozenset(
    {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
)


def _exceeds_int64(x: Any) -> bool:
    return type(x) is int and not -INT64_LIMIT <= x < INT64_LIMIT


def _columns(operands: Sequence[np.ndarray]) -> tuple[tuple[int, ...], list[list[int]]]:
    """Return the shape that one or two operands broadcast to, and the ids of each in C order."""
    shape = operands[0].shape
    if len(operands) == 2 and operands[1].shape != shape:
        shape = np.broadcast(*operands).shape
    return shape, [_spread(ids, shape) for ids in operands]


def _spread(ids: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    if ids.shape != shape:
        wide = _empty(shape, _ID)
        wide[...] = ids
        ids = wide
    return ids.ravel().tolist()


def apply_ufunc(
    ufunc: np.ufunc, inputs: Sequence[Any], dtype: Any = None, number: bool = False
) -> Any:
    """Apply a row of the ufunc table elementwise; ``number`` makes results Python numbers."""
    trace = current_trace()
    ready = [as_operand(x) for x in inputs]
    takes, gives = resolve_dtypes(ufunc, tuple([kind_of(x) for x in ready]))
    if dtype is not None:
        wanted = code_of(np.dtype(dtype))
        if wanted is None:
            raise trace_error(f"dtype {dtype} cannot be traced", "Use float64 or float32.")
        takes = tuple(wanted for _ in takes)
        gives = tuple(wanted for _ in gives)
    if takes[0] == I64 and ufunc in _COMPARISONS and any(map(_exceeds_int64, ready)):
        # NumPy compares with an integer of any size: beyond int64, infinity does as well.
        ready = [math.copysign(math.inf, x) if _exceeds_int64(x) else x for x in ready]
        takes = (F64, F64)
    operands = [operand_ids(trace, x, code) for x, code in zip(ready, takes)]
    what = UFUNCS[ufunc][takes[0]]
    # Operands that broadcast against each other may give more than any of them has.
    if operands[0].size >= _ANY or operands[-1].size >= _ANY:
        wide = _in_loops(what, operands, takes, gives, trace, number)
        if wide is not None:
            return wide
    if trace.graph.referenced:
        operands = [scalar_ids(trace.graph, ids) for ids in operands]
    shape, columns = _columns(operands)
    if isinstance(what, int):
        flat = list(map(trace.graph.emit, repeat(what), *columns))
    else:
        flat = list(map(what, repeat(Loop(trace.graph, takes[0])), *columns))
    if len(gives) == 1:
        return _result(flat, shape, operands, gives[0], trace, number)
    several = zip(*flat) if flat else ((),) * len(gives)
    return tuple(
        _result(ids, shape, operands, code, trace, number) for ids, code in zip(several, gives)
    )


#: Two arrays, each of fewer elements than this, give none that is a loop.
_ANY = 8
#: What an elementary function costs, which is a program, and what a formula does, in operations.
_HEAVY, _FORMULA = 16, 4
_ELEMENTARY = frozenset(CODES[name] for name in PROGRAMS)


def _in_loops(
    what: Any,
    operands: Sequence[np.ndarray],
    takes: Sequence[int],
    gives: Sequence[int],
    trace: Trace,
    number: bool,
) -> Any:
    """Apply a row of the ufunc table to wide arrays; None where they are not."""
    if len(operands) == 1 and not is_long(operands[0].size):
        return None
    shape = np.broadcast(*operands).shape
    if what is int_power and operands[1].size > 1:
        return None
    size = math.prod(shape)
    weight = (_HEAVY if what in _ELEMENTARY else 1) if isinstance(what, int) else _FORMULA
    # An outer product has many more elements than what it is made of: no literals among them.
    spread = size // max(1, sum(map(_size, operands)))
    if not uses_loops(trace.graph, size, *operands, weight=max(weight, min(spread, _HEAVY))):
        return None

    def make(body: Graph, *inputs: int) -> Any:
        if isinstance(what, int):
            return body.emit(what, *inputs)
        return what(Loop(body, takes[0]), *inputs)

    made = elementwise(trace.graph, operands, takes, shape, make)
    results = [_wrapped(ids, operands, code, trace) for ids, code in zip(made, gives)]
    return results[0] if len(gives) == 1 else tuple(results)


def _wrapped(ids: np.ndarray, operands: Sequence[np.ndarray], code: int, trace: Trace) -> Any:
    return TracedValue.array(match_layout(ids, *operands) if ids.ndim > 1 else ids, code, trace)


_size = operator.attrgetter("size")


def _result(
    flat: Sequence[int],
    shape: tuple[int, ...],
    operands: Sequence[np.ndarray],
    code: int,
    trace: Trace,
    number: bool,
) -> Any:
    ids = _array(flat, dtype=_ID).reshape(shape)
    if len(shape) > 1:
        ids = match_layout(ids, *operands)
    if shape:
        return TracedValue.array(ids, code, trace)
    form = TracedValue.number if number else TracedValue.scalar
    return form(ids, code, trace)


# ---- methods of ufuncs --------------------------------------------------------------------------


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
    wide = fold_rows(combine, TracedValue.array(rows, x.code, x.owner))
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
    if not name or not axes or not uses_loops(trace.graph, x.size, trace.elements_of(x)):
        return None
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = [*kept, *sorted(axes)]
    places = [order.index(axis) for axis in range(x.ndim)]
    shape = tuple(x.shape[axis] for axis in order)
    operand = (trace.elements_of(x), x.code, places)
    made = loop_reduce(trace.graph, [operand], shape, len(kept), lambda body, i: i, name)
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
    wide = accumulate_rows(ufunc, moved)
    if wide is not None:
        return copy_layout(np.moveaxis(wide, 0, axis), x)
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
