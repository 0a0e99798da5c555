"""Indexing traced arrays: static keys are NumPy's business, traced ones become selections."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.graph.dtypes import B8, I64, code_of
from archimedes.graph.ops import CODES
from archimedes.symbolic.dispatch import lift, wrap
from archimedes.symbolic.trace import Trace, current_trace, trace_error

if TYPE_CHECKING:
    from archimedes.symbolic.array import SymbolicArray

__all__ = ["put", "read_table", "static_key", "take"]

_SELECT, _EQ, _ADD, _LT, _AND = (CODES[n] for n in ("select", "eq", "add", "lt", "and"))


def _traced(x: Any) -> bool:
    from archimedes.symbolic.array import SymbolicArray

    return isinstance(x, SymbolicArray)


def static_key(key: Any) -> tuple[Any] | None:
    """Return ``(key,)`` with known traced values made concrete, or None if some are not known."""
    parts = key if isinstance(key, tuple) else (key,)
    known = []
    for part in parts:
        if isinstance(part, list) and any(_traced(p) for p in part):
            part = lift(part)
        if _traced(part):
            value = part.constant()
            if value is None:
                return None
            part = value[()] if value.ndim == 0 else value
        known.append(part)
    return (tuple(known) if isinstance(key, tuple) else known[0],)


def _no_mask(key: Any) -> None:
    for part in key if isinstance(key, tuple) else (key,):
        if _traced(part) and part.code == B8:
            raise trace_error(
                "x[mask] with a traced mask has a shape that depends on values",
                "Keep the shape: np.where(mask, x, 0.0), or np.sum(x, where=mask). "
                "Assignment of one value, x[mask] = c, does work.",
            )
        if _traced(part) and part.code != I64:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")


def _expand(key: Any, ndim: int) -> list[Any]:
    """Spell out a key of ints, slices, an ellipsis and traced ints, one entry an axis."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(p is None or isinstance(p, (list, np.ndarray)) and np.ndim(p) > 0 for p in parts):
        raise trace_error(
            "this index mixes traced integers with arrays or np.newaxis",
            "Index in two steps: first the static part, then the traced integer.",
        )
    if Ellipsis in [p for p in parts if not _traced(p)]:
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (ndim - len(parts) + 1)
    if len(parts) > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional")
    return parts + [slice(None)] * (ndim - len(parts))


def take(x: SymbolicArray, key: Any) -> SymbolicArray:
    """Read at traced integer positions; positions outside the array are clamped to its ends."""
    _no_mask(key)
    trace = current_trace()
    parts = _expand(key, x.ndim)
    result = wrap(trace.ids_of(x), x.code, trace)
    axis = 0
    for part in parts:
        if _traced(part):
            result = _take_axis(result, part, axis, trace)
            axis += part.ndim
        else:
            ids = result.ids[(slice(None),) * axis + (part,)]
            result = wrap(ids, x.code, trace)
            axis += isinstance(part, slice)
    return result


def read_table(table: np.ndarray, index: SymbolicArray) -> SymbolicArray:
    """Read a constant 1-D array at traced positions, clamped to its range."""
    trace = current_trace()
    flat = [trace.graph.lookup(table, i) for i in trace.ids_of(index).ravel().tolist()]
    code = code_of(table.dtype)
    assert code is not None
    return wrap(np.array(flat, dtype=np.int64).reshape(index.shape), code, trace)


def _wrapped(trace: Trace, index: SymbolicArray, size: int) -> np.ndarray:
    """Count negative positions from the end, as NumPy does."""
    g = trace.graph
    zero, n = g.const(0, I64), g.const(size, I64)
    flat = [
        g.emit(_SELECT, g.emit(_LT, i, zero), g.emit(_ADD, i, n), i)
        for i in trace.ids_of(index).ravel().tolist()
    ]
    return np.array(flat, dtype=np.int64).reshape(index.shape)


def _take_axis(x: SymbolicArray, index: SymbolicArray, axis: int, trace: Trace) -> Any:
    g = trace.graph
    columns = np.moveaxis(x.ids, axis, 0)
    size = len(columns)
    if size == 0:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    rest = columns.reshape(size, -1)
    positions = _wrapped(trace, index, size).ravel().tolist()
    picked = np.empty((len(positions), rest.shape[1]), dtype=np.int64)
    for k in range(rest.shape[1]):
        choices = rest[:, k].tolist()
        known = [g.value.get(i) for i in choices]
        table = None if None in known else np.array(known, dtype=x.dtype)
        for j, position in enumerate(positions):
            picked[j, k] = _choose(g, choices, table, position)
    shaped = picked.reshape(*index.shape, *columns.shape[1:])
    order = [*range(index.ndim, index.ndim + axis), *range(index.ndim)]
    order += range(index.ndim + axis, shaped.ndim)
    return wrap(shaped.transpose(order), x.code, trace)


def _choose(g: Any, choices: list[int], table: np.ndarray | None, position: int) -> int:
    if len(set(choices)) == 1:
        return choices[0]
    if table is not None:
        return g.lookup(table, position)
    # From the ends inward, so that positions beyond them give the nearest element.
    chosen = choices[-1]
    for k in reversed(range(len(choices) - 1)):
        test = g.emit(CODES["le"], position, g.const(k, I64))
        chosen = g.emit(_SELECT, test, choices[k], chosen)
    return chosen


def put(x: SymbolicArray, key: Any, ids: np.ndarray) -> None:
    """Write at traced integer positions, or one value under a traced mask."""
    trace = current_trace()
    g = trace.graph
    if _traced(key) and key.code == B8:
        if ids.size != 1 or key.shape != x.shape[: key.ndim]:
            raise trace_error(
                "x[mask] = values with a traced mask works for one value and a mask of x's shape",
                "Write x = np.where(mask, values_everywhere, x).",
            )
        mask = trace.ids_of(key).reshape(key.shape + (1,) * (x.ndim - key.ndim))
        tests = np.broadcast_to(mask, x.shape)
        value = int(ids.ravel()[0])
        flat = [
            g.emit(_SELECT, t, value, old)
            for t, old in zip(tests.ravel().tolist(), x.ids.ravel().tolist())
        ]
        x.ids[...] = np.array(flat, dtype=np.int64).reshape(x.shape)
        return
    _no_mask(key)
    parts = _expand(key, x.ndim)
    axes = [axis for axis, part in enumerate(parts) if _traced(part)]
    if any(parts[axis].ndim for axis in axes):
        raise trace_error(
            "assignment at an array of traced positions is not recorded",
            "Assign at one traced position at a time, or use np.where.",
        )
    positions = {
        axis: int(_wrapped(trace, parts[axis], x.shape[axis])[()]) for axis in axes
    }
    for spot in itertools.product(*(range(x.shape[axis]) for axis in axes)):
        test = g.const(True, B8)
        where = list(parts)
        for axis, k in zip(axes, spot):
            test = g.emit(_AND, test, g.emit(_EQ, positions[axis], g.const(k, I64)))
            where[axis] = k
        old = x.ids[tuple(where)]
        new = np.broadcast_to(ids, np.shape(old))
        flat = [
            g.emit(_SELECT, test, n, o) for n, o in zip(new.ravel().tolist(), np.ravel(old).tolist())
        ]
        x.ids[tuple(where)] = np.array(flat, dtype=np.int64).reshape(np.shape(old))
