"""Indexing traced arrays: NumPy applies static keys to ids, traced keys become selections.

A key with traced integers is first read as a static key of the same form: NumPy applies it to
arrays of coordinates, which tells for every element of the result which coordinates are static
and which are elements of a traced index. So all of NumPy's rules (broadcasting of index arrays,
their axes in the result, np.newaxis, ellipsis) hold by construction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from archimedes.errors import refer_to
from archimedes.graph.dtypes import B8, I64, code_of
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions.block_regions import row_major
from archimedes.symbolic.core import loop_nests
from archimedes.symbolic.core.conversion import lift, wrap
from archimedes.symbolic.core.loop_nests import TracedAxis, elementwise, uses_loops
from archimedes.symbolic.core.trace import Trace, current_trace, trace_error
from archimedes.symbolic.core.traced_value import TracedValue

_SELECT, _EQ, _ADD, _LT, _LE, _AND = (CODES[n] for n in ("select", "eq", "add", "lt", "le", "and"))


def _is_traced(x: Any) -> bool:
    return isinstance(x, TracedValue)


def static_key(key: Any) -> tuple[Any] | None:
    """Return ``(key,)`` with known traced values made concrete, or None if some are not known."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, (TracedValue, list)) for part in parts):
        return (key,)
    known = []
    for part in parts:
        if isinstance(part, list) and any(_is_traced(p) for p in part):
            part = lift(part)
        if _is_traced(part):
            value = part.constant()
            if value is None:
                return None
            part = value[()] if value.ndim == 0 else value
        known.append(part)
    return (tuple(known) if isinstance(key, tuple) else known[0],)


def _parts(key: Any, ndim: int) -> list[tuple[Any, int]]:
    """Split a key into its parts and the axis each begins at."""
    parts = [
        lift(p) if isinstance(p, list) and any(map(_is_traced, p)) else p
        for p in (key if isinstance(key, tuple) else (key,))
    ]
    for part in parts:
        if _is_traced(part) and part.code == B8:
            raise trace_error(
                "x[mask] with a traced mask has a shape that depends on values",
                "Keep the shape: np.where(mask, x, 0.0), or np.sum(x, where=mask). "
                "Assignment of one value, x[mask] = c, does work." + refer_to("mask"),
            )
        if _is_traced(part) and part.code != I64:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
    widths = [_width(p) for p in parts]
    rest = ndim - sum(w for w in widths if w is not None)
    if rest < 0:
        raise IndexError(
            f"too many indices for array: array is {ndim}-dimensional, but {ndim - rest} were "
            "indexed"
        )
    placed, axis = [], 0
    for part, width in zip(parts, widths):
        placed.append((part, axis))
        axis += rest if width is None else width
    return placed


def _width(part: Any) -> int | None:
    """Return how many axes a part of a key uses; None for the ellipsis, which takes the rest."""
    if part is Ellipsis:
        return None
    if part is None:
        return 0
    if _is_traced(part):
        return 1
    mask = isinstance(part, (list, np.ndarray, bool, np.bool_)) and np.asarray(part)
    return mask.ndim if isinstance(mask, np.ndarray) and mask.dtype == bool else 1


class _Sources:
    """Where each element of ``x[key]`` comes from, for a key with traced integers.

    ``shape`` is the result's; iteration yields, in the result's order, the coordinates of an
    element, one per axis of x: an int, or the id of a traced one in ``traced_axes``.
    """

    def __init__(self, x: TracedValue, key: Any, trace: Trace) -> None:
        placed = _parts(key, x.ndim)
        self.traced_axes = [axis for part, axis in placed if _is_traced(part)]
        positions: dict[int, np.ndarray] = {}
        shape, static = list(x.shape), []
        for part, axis in placed:
            if _is_traced(part):
                if x.shape[axis] == 0 and part.size:
                    raise IndexError(f"index is out of bounds for axis {axis} with size 0")
                positions[axis] = _wrap_negative(trace, part, x.shape[axis])
                shape[axis] = part.size
                numbers = np.arange(part.size).reshape(part.shape)
                part = numbers if part.ndim else 0
            static.append(part)
        whole = tuple(static)
        #: One array per axis of x, in the result's order: static positions, or ids of traced ones.
        self.columns: list[np.ndarray] = []
        for axis, n in enumerate(shape):
            line = np.arange(n).reshape((-1,) + (1,) * (len(shape) - axis - 1))
            chosen = np.asarray(np.broadcast_to(line, shape)[whole])
            self.shape = chosen.shape
            flat = chosen.ravel()
            self.columns.append(positions[axis][flat] if axis in positions else flat)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return zip(*(column.tolist() for column in self.columns))

    def uses_loops(self, g: Graph, ids: np.ndarray) -> bool:
        """Return whether the read is a loop: of many elements, or from many elements."""
        traced = [self.columns[axis] for axis in self.traced_axes]
        return uses_loops(g, ids.size, ids) or uses_loops(g, math.prod(self.shape), *traced)

    def flat(self, sizes: Sequence[int]) -> tuple[np.ndarray, list[TracedAxis]]:
        """Return static positions in C order, and what traced coordinates add to them."""
        strides = row_major(sizes)
        static = np.zeros(math.prod(self.shape), dtype=np.int64)
        moving = []
        for axis, (column, stride) in enumerate(zip(self.columns, strides)):
            if axis in self.traced_axes:
                moving.append(TracedAxis(column, stride, sizes[axis]))
            else:
                static += stride * column
        return static, moving


def _wrap_negative(trace: Trace, index: TracedValue, size: int) -> np.ndarray:
    """Count negative positions from the end, as NumPy does."""

    def count_from_end(g: Graph, i: int) -> int:
        below = g.emit(_LT, i, g.const(0, I64))
        return g.emit(_SELECT, below, g.emit(_ADD, i, g.const(size, I64)), i)

    ids = trace.elements_of(index).ravel()
    (positions,) = elementwise(trace.graph, [ids], [I64], ids.shape, count_from_end)
    return positions


def take(x: TracedValue, key: Any) -> Any:
    """Read at traced integer positions; positions outside the array are clamped to its ends."""
    trace = current_trace()
    sources = _Sources(x, key, trace)
    if sources.uses_loops(trace.graph, trace.elements_of(x)):
        static, moving = sources.flat(x.shape)
        elements = loop_nests.gather(trace.graph, trace.elements_of(x), x.code, static, moving)
        return wrap(elements.reshape(sources.shape), x.code, trace)
    ids = trace.ids_of(x)
    flat = []
    for at in sources:
        where: list[Any] = list(at)
        for axis in sources.traced_axes:
            where[axis] = slice(None)
        flat.append(
            _choose(trace, ids[tuple(where)], [at[k] for k in sources.traced_axes], x.dtype)
        )
    return wrap(np.array(flat, dtype=np.int64).reshape(sources.shape), x.code, trace)


def _choose(trace: Trace, choices: np.ndarray, positions: list[int], dtype: Any) -> int:
    """Select one element of an array by one traced position per axis."""
    g = trace.graph
    if choices.ndim > 1:
        inner = [_choose(trace, row, positions[1:], dtype) for row in choices]
        return _choose(trace, np.array(inner, dtype=np.int64), positions[:1], dtype)
    options, position = choices.tolist(), positions[0]
    if len(set(options)) == 1:
        return options[0]
    known = [g.value.get(i) for i in options]
    if None not in known:
        return g.lookup(np.array(known, dtype=dtype), position)
    # From the ends inward, so that positions beyond them give the nearest element.
    chosen = options[-1]
    for k in reversed(range(len(options) - 1)):
        test = g.emit(_LE, position, g.const(k, I64))
        chosen = g.emit(_SELECT, test, options[k], chosen)
    return chosen


def put(x: TracedValue, key: Any, ids: np.ndarray) -> None:
    """Write at traced integer positions (none outside the array), or under a traced mask."""
    trace = current_trace()
    if _is_traced(key) and key.code == B8:
        _put_masked(trace, x, key, ids)
        return
    g = trace.graph
    targets = _Sources(x, key, trace)
    try:
        values = np.broadcast_to(ids, targets.shape).ravel().tolist()
    except ValueError:
        raise ValueError(
            f"shape mismatch: value array of shape {ids.shape} could not be broadcast to indexing "
            f"result of shape {targets.shape}"
        ) from None
    if uses_loops(g, len(values), *(targets.columns[axis] for axis in targets.traced_axes)):
        _put_many(trace, x, targets, values)
        return
    if uses_loops(g, x.size, x.ids) and len(values) < x.size:
        static, moving = targets.flat(x.shape)
        x.ids[...] = loop_nests.scatter(g, x.ids, x.code, static, moving, values)
        return
    ranges = [range(x.shape[axis]) for axis in targets.traced_axes]
    for at, value in zip(targets, values):
        where = list(at)
        for spot in itertools.product(*ranges):
            test = g.const(True, B8)
            for axis, k in zip(targets.traced_axes, spot):
                test = g.emit(_AND, test, g.emit(_EQ, at[axis], g.const(k, I64)))
                where[axis] = k
            x.ids[tuple(where)] = g.emit(_SELECT, test, value, int(x.ids[tuple(where)]))


def _put_many(trace: Trace, x: TracedValue, targets: _Sources, values: list[int]) -> None:
    """Write many values in loops: each element searches for the last value written to it.

    The search is in sorted positions; values for the same position keep their order.
    """
    static, moving = targets.flat(x.shape)
    at = wrap(loop_nests.flat_positions(trace.graph, static, moving), I64, trace)
    new_values = wrap(np.array(values, dtype=np.int64), x.code, trace)
    order: Any = np.argsort(at, kind="stable")
    ordered, numbers = at[order], np.arange(x.size)
    candidate: Any = np.maximum(np.searchsorted(ordered, numbers, side="right") - 1, 0)
    old = wrap(x.ids.reshape(-1), x.code, trace)
    updated: Any = np.where(ordered[candidate] == numbers, new_values[order[candidate]], old)
    x.ids[...] = trace.elements_of(updated).reshape(x.shape)


def _put_masked(trace: Trace, x: TracedValue, mask: TracedValue, ids: np.ndarray) -> None:
    rows = x.shape[mask.ndim :]
    pairs = zip(reversed(ids.shape), reversed((1, *rows)))
    fits = ids.ndim <= len(rows) + 1 and all(n in (1, wanted) for n, wanted in pairs)
    if mask.shape != x.shape[: mask.ndim] or not fits:
        raise trace_error(
            "x[mask] = values with a traced mask needs one value and a mask of x's shape",
            "Write x = np.where(mask, values_everywhere, x).",
        )
    tests = np.broadcast_to(trace.elements_of(mask).reshape(mask.shape + (1,) * len(rows)), x.shape)
    values = np.broadcast_to(ids.reshape(ids.shape[-len(rows) :] if rows else ()), x.shape)
    operands, codes = [tests, values, x.ids], [B8, x.code, x.code]
    (x.ids[...],) = elementwise(trace.graph, operands, codes, x.shape, _SELECT)


def read_table(table: np.ndarray, index: TracedValue) -> TracedValue:
    """Read a constant 1-D array at traced positions, clamped to its range."""
    trace = current_trace()
    index = lift(index)
    code = code_of(table.dtype)
    assert code is not None
    ids = trace.elements_of(index)
    (read,) = elementwise(trace.graph, [ids], [I64], ids.shape, lambda g, i: g.lookup(table, i))
    return wrap(read, code, trace)


# ---- x.flat -------------------------------------------------------------------------------------


class FlatView:
    """The elements of a traced array as one dimension: what ``x.flat`` gives."""

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base = base

    @property
    def holds_traced_values(self) -> bool:
        """Return whether the array holds traced values: ``np.array(x.flat)`` is traced then."""
        return self.base.holds_traced_values

    def _numbers(self, key: Any) -> np.ndarray:
        static = static_key(key)
        if static is None:
            raise trace_error(
                "x.flat with a traced index cannot be recorded", "Use x.reshape(-1)[k] to read."
            )
        return np.arange(self.base.size)[static[0]]

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.flatten())

    def __getitem__(self, key: Any) -> Any:
        return self.base.flatten()[self._numbers(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        numbers = self._numbers(key)
        # Too few values are repeated, as in NumPy.
        values = np.resize(lift(value), np.shape(numbers))
        self.base[np.unravel_index(numbers, self.base.shape)] = values
