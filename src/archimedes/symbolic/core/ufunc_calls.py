"""Ufuncs of traced arrays: applied elementwise, and the other ways in which NumPy calls one.

NumPy decides everything but the arithmetic: shapes by its broadcasting of the id arrays, dtypes
by ``ufunc.resolve_dtypes``. The arithmetic is a row in ``ufuncs.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, F64, I64
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.symbolic.core import conversion, registry
from archimedes.symbolic.core.array_scans import accumulate_rows, fold_rows, uses_scan
from archimedes.symbolic.core.conversion import as_operand, kind_of, lift, operand_ids, wrap
from archimedes.symbolic.core.indexing import static_key
from archimedes.symbolic.core.loop_nests import elementwise, loop_reduce, uses_loops
from archimedes.symbolic.core.trace import Trace, current_trace, trace_error
from archimedes.symbolic.core.traced_value import (
    NO_VALUE,
    Axis,
    DType,
    Operand,
    Traced,
    TracedValue,
)
from archimedes.symbolic.core.ufuncs import UFUNCS, int_power

_COMPARISONS = frozenset(
    {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
)
#: Two arrays, each of fewer elements than this, give none that is a loop.
_FEW = 8
#: What an elementary function costs, which is a program, and what a formula does, in operations.
_HEAVY, _FORMULA = 16, 4
_ELEMENTARY = frozenset(CODES[name] for name in PROGRAMS)


def _exceeds_int64(x: Operand) -> bool:
    return type(x) is int and not -conversion.INT64_LIMIT <= x < conversion.INT64_LIMIT


def apply_ufunc(
    ufunc: np.ufunc, inputs: Sequence[Operand], dtype: DType = None, number: bool = False
) -> Traced:
    """Apply a row of the ufunc table elementwise; ``number`` makes results Python numbers."""
    trace = current_trace()
    ready = [as_operand(x) for x in inputs]
    takes, gives = conversion.resolve_dtypes(ufunc, tuple([kind_of(x) for x in ready]))
    if dtype is not None:
        code = conversion.code_of_dtype(dtype)
        takes, gives = (code,) * len(takes), (code,) * len(gives)
    if takes[0] == I64 and ufunc in _COMPARISONS and any(map(_exceeds_int64, ready)):
        # NumPy compares with an integer of any size: beyond int64, infinity does as well.
        ready = [math.copysign(math.inf, x) if _exceeds_int64(x) else x for x in ready]
        takes = (F64, F64)
    operands = [operand_ids(trace, x, code) for x, code in zip(ready, takes)]
    shape = operands[0].shape
    if len(operands) == 2 and operands[1].shape != shape:
        shape = np.broadcast(*operands).shape
    row = UFUNCS[ufunc][takes[0]]
    make = row if isinstance(row, int) else lambda g, *ids: row(Emit(g, takes[0]), *ids)
    is_small = operands[0].size < _FEW and operands[-1].size < _FEW
    weight = 0 if is_small else _loop_weight(row, operands, shape)
    results = elementwise(trace.graph, operands, takes, shape, make, (), weight, len(gives))
    if len(gives) == 1:
        return _wrap_result(results[0], operands, gives[0], trace, number)
    return tuple(
        _wrap_result(ids, operands, code, trace, number) for ids, code in zip(results, gives)
    )


def _loop_weight(row: Any, operands: Sequence[np.ndarray], shape: tuple[int, ...]) -> int:
    """Return what an element costs, in operations; 0 where there is to be no loop."""
    # Each exponent by itself may be a literal, or shown not to be negative.
    if row is int_power and operands[1].size > 1:
        return 0
    weight = (_HEAVY if row in _ELEMENTARY else 1) if isinstance(row, int) else _FORMULA
    # An outer product has many more elements than what it is made of: no literals among them.
    spread = math.prod(shape) // max(1, sum(ids.size for ids in operands))
    return max(weight, min(spread, _HEAVY))


def _wrap_result(
    ids: np.ndarray, operands: Sequence[np.ndarray], code: int, trace: Trace, number: bool
) -> Traced:
    if ids.ndim:
        return TracedValue.array(
            conversion.match_layout(ids, *operands) if ids.ndim > 1 else ids, code, trace
        )
    return (TracedValue.number if number else TracedValue.scalar)(ids, code, trace)


# ---- the ways in which NumPy calls a ufunc -----------------------------------------------------


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Operand], kwargs: dict[str, Any]
) -> Traced:
    """Handle ``__array_ufunc__`` for traced arrays."""
    out = kwargs.pop("out", None)
    if ufunc in registry.GUFUNCS:
        result = registry.GUFUNCS[ufunc](*inputs, **kwargs)
    elif ufunc not in UFUNCS and not any(adopt(ufunc) for adopt in registry.ADOPTERS):
        own = getattr(np, ufunc.__name__, None) == ufunc  # or its proxy
        raise trace_error(
            f"{'np.' if own else 'the ufunc '}{ufunc.__name__} cannot be traced",
            "Write it with other NumPy functions or those of arc.special, or wrap it in "
            "arc.callback.",
        )
    elif method == "__call__":
        result = _call(ufunc, inputs, out, kwargs)
    elif method in UFUNC_METHODS:
        kwargs = {key: value for key, value in kwargs.items() if value is not NO_VALUE}
        result = UFUNC_METHODS[method](ufunc, *inputs, **kwargs)
    else:
        raise trace_error(
            f"np.{ufunc.__name__}.{method} cannot be traced",
            f"Use one of {', '.join(UFUNC_METHODS)}.",
        )
    return result if out is None else registry.store_results(out, result)


def _call(
    ufunc: np.ufunc, inputs: Sequence[Operand], out: Sequence[Traced] | None, kwargs: dict[str, Any]
) -> Traced:
    where, dtype, order = (
        kwargs.pop(k, v) for k, v in (("where", True), ("dtype", None), ("order", "K"))
    )
    if kwargs.keys() - {"casting", "subok"}:
        raise trace_error(
            f"np.{ufunc.__name__} was given {sorted(kwargs)}, which cannot be traced",
            "Omit these keywords.",
        )
    if dtype is not None:
        dtype = np.empty(0, dtype).dtype  # it may be the class of a dtype
    result = apply_ufunc(ufunc, inputs, dtype)
    if where is not True:
        if out is None:
            raise trace_error(
                f"np.{ufunc.__name__}(..., where=mask) without out= leaves values undefined",
                "Give out=, or write np.where(mask, f(x), other).",
            )
        result = np.where(where, result, out[0])
    return result if order == "K" else _copy_in_order(result, order, inputs)


def _copy_in_order(result: Traced, order: str, inputs: Sequence[Operand]) -> Traced:
    """Lay out the results of a ufunc as its argument ``order`` says."""
    if isinstance(result, tuple):
        return tuple(_copy_in_order(part, order, inputs) for part in result)
    if order == "A":
        order = "F" if all(lift(x).ids.flags.f_contiguous for x in inputs) else "C"
    return result if result.ids.ndim < 2 else result.copy(order)


# ---- reduce and accumulate ---------------------------------------------------------------------


def reduce_ufunc(
    ufunc: np.ufunc,
    x: Operand,
    axis: Axis = 0,
    dtype: DType = None,
    keepdims: bool = False,
    initial: Operand = None,
    where: Operand = True,
) -> Traced:
    """Reduce an array by a binary ufunc, with NumPy's identities, ``initial`` and ``where``."""
    x = lift(x)
    if dtype is not None:
        x = x.astype(dtype)
    elif ufunc in (np.add, np.multiply) and x.code == B8:
        x = x.astype(np.int64)  # NumPy counts bools
    elif ufunc in (np.logical_and, np.logical_or, np.logical_xor) and x.code != B8:
        x = x.astype(bool)
    identity = ufunc.identity
    start = None if initial is None else lift(initial).astype(x.dtype)
    if where is not True:
        neutral = start if identity is None else identity
        if neutral is None:
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        x = np.where(where, x, lift(neutral).astype(x.dtype))
    if start is None and x.size == 0 and identity is not None:
        start = lift(np.asarray(identity).astype(x.dtype))
    # In the order of the array, whatever that of the axes: as NumPy combines.
    axes = range(x.ndim) if axis is None else axis
    axes = tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axes, x.ndim)))
    result = _fold_axes(ufunc, x, axes, start)
    return np.expand_dims(result, axes) if keepdims else result


#: Reductions that are loops, by dtype; of products there is no derivative.
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


def _fold_axes(ufunc: np.ufunc, x: Traced, axes: tuple[int, ...], start: Traced | None) -> Traced:
    """Combine the slices of an array along some axes.

    By a loop, row by row in a scan where no loop combines so, or by nodes. ``start`` is the first
    value, or None to start with the first slice (an error if there is none).
    """
    trace = current_trace()
    name = _COMBINE[ufunc][x.code] if ufunc in _COMBINE else ""
    if name and axes and uses_loops(trace.graph, x.size, trace.elements_of(x)):
        result = _reduce_in_loop(x, axes, name)
        return result if start is None else ufunc(start, result)
    moved = np.moveaxis(x.ids, axes, range(len(axes)))
    rest = moved.shape[len(axes) :]
    ids = moved.reshape(math.prod(moved.shape[: len(axes)]), *rest)
    rows = TracedValue.array(ids, x.code, x.owner)
    if uses_scan(ufunc, rows):
        result = fold_rows(ufunc, rows)
        return result if start is None else ufunc(start, result)
    items = [wrap(row, x.code, x.owner) for row in ids]
    if start is not None:
        items.insert(0, np.broadcast_to(start, rest) if rest else start)
    if not items:
        raise ValueError("zero-size array to reduction operation which has no identity")
    return _combine_pairwise(ufunc, items) if len(items) > 1 else items[0].copy()


def _reduce_in_loop(x: Traced, axes: Sequence[int], combine: str) -> Traced:
    trace = current_trace()
    free = [axis for axis in range(x.ndim) if axis not in axes]
    order = [*free, *axes]
    shape = tuple(x.shape[axis] for axis in order)
    operand = (trace.elements_of(x), x.code, [order.index(axis) for axis in range(x.ndim)])
    ids = loop_reduce(trace.graph, [operand], shape, len(free), lambda body, i: i, combine)
    if len(free) > 1 and not x.ids.flags.c_contiguous:
        laid_out = np.add.reduce(x.ids, axis=tuple(axes))  # for its order in memory
        laid_out[...] = ids
        ids = laid_out
    return wrap(ids, x.code, trace)


def _combine_pairwise(ufunc: np.ufunc, items: list[Traced]) -> Traced:
    """Combine left to right up to eight items, halves beyond: rounding errors grow with log n."""
    if len(items) > 8:
        half = len(items) // 2
        return ufunc(_combine_pairwise(ufunc, items[:half]), _combine_pairwise(ufunc, items[half:]))
    return reduce(ufunc, items)


def _accumulate(ufunc: np.ufunc, x: Operand, axis: int = 0, dtype: DType = None) -> Traced:
    x = lift(x) if dtype is None else lift(x).astype(dtype)
    if dtype is None and x.code == B8 and ufunc in (np.add, np.multiply):
        x = x.astype(np.int64)  # NumPy counts bools
    rows = np.moveaxis(x, axis, 0)
    if not len(rows):
        return x.copy()
    if uses_scan(ufunc, rows):
        totals = accumulate_rows(ufunc, rows)
    else:
        totals = np.stack(list(accumulate(rows, ufunc)))
    return conversion.copy_layout(np.moveaxis(totals, 0, axis), x)


def _outer(ufunc: np.ufunc, a: Operand, b: Operand, **kwargs: Any) -> Traced:
    a, b = lift(a), lift(b)
    return ufunc(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


def _reduceat(
    ufunc: np.ufunc, x: Operand, indices: Sequence[int], axis: int = 0, dtype: DType = None
) -> Traced:
    """Reduce the stretches that begin at static positions; a stretch may be one element."""
    rows = np.moveaxis(lift(x), axis, 0)
    starts = [int(k) for k in indices]
    parts = [
        ufunc.reduce(rows[start : max(stop, start + 1)], axis=0, dtype=dtype)
        for start, stop in zip(starts, [*starts[1:], len(rows)])
    ]
    return np.moveaxis(np.stack(parts), 0, axis)


def _at(ufunc: np.ufunc, x: Operand, indices: Operand, *values: Operand) -> None:
    """Apply a ufunc in place, once for every time a static index names an element."""
    into = registry.target(x)
    static = static_key(indices)
    if static is None:
        raise trace_error(
            f"np.{ufunc.__name__}.at with a traced index cannot be recorded",
            "Write x[k] += value for one traced position at a time.",
        )
    numbers = np.arange(into.size).reshape(into.shape)[static[0]]
    operands = [np.broadcast_to(lift(v), numbers.shape).reshape(-1) for v in values]
    for k, number in enumerate(numbers.ravel().tolist()):
        at = np.unravel_index(number, into.shape)
        into[at] = ufunc(into[at], *(v[k] for v in operands))


#: Methods of ufuncs ("reduce") -> implementations, which take the ufunc first.
UFUNC_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce_ufunc,
    "accumulate": _accumulate,
    "outer": _outer,
    "reduceat": _reduceat,
    "at": _at,
}
