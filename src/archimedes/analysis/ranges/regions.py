"""Regions on values of a sweep: calls, branches, loops, linear systems and loops over blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.analysis.ranges import forms, rounding
from archimedes.analysis.ranges.forms import Form
from archimedes.analysis.ranges.operations import OPERATIONS, UNITS
from archimedes.analysis.ranges.rounding import INF
from archimedes.analysis.ranges.sweep import Sweep, is_integer
from archimedes.analysis.ranges.values import (
    Value,
    choose,
    concatenate,
    constant,
    element,
    is_inside,
    join,
    stack,
    take,
    whole_range,
)
from archimedes.graph.dtypes import B8, F32, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import (
    Accumulate,
    Call,
    Gather,
    Map,
    Nest,
    Pack,
    Scan,
    Solve,
    Sort,
    Switch,
    While,
)
from archimedes.graph.regions.base import Region, has_blocks
from archimedes.graph.regions.block_regions import positions

Array = np.ndarray
Values = list[Value]

#: Rounds in which the values of a loop may settle before their ends are moved further out.
_PATIENT, _ROUNDS = 3, 40
#: Larger systems are not solved: the bound of their rounding errors grows as 2**n.
_LARGEST_SYSTEM = 24


def run_region(s: Sweep, region: Region, values: Values) -> Values:
    """Return the outputs of a region."""
    run: Callable[[Sweep, Any, Values], Values] | None = _REGIONS.get(type(region))
    if run is None:  # a callback, or a region that is not known here
        s.note("unknown", np.ones(1, dtype=bool), f"nothing is known of what a {region.kind} gives")
        return s.nothing_known(region.out_dtypes)
    return run(s, region, values)


def _call(s: Sweep, region: Call, values: Values) -> Values:
    return s.run(region.body, values)


def _run_where(s: Sweep, where: Array, body: Graph, values: Values) -> Values:
    """Run a body of which only some boxes matter: others are not split, and have no problems."""
    boxes = np.broadcast_to(where.reshape(len(where), -1).any(axis=1), (s.count,))
    outside, version, before = s.active, s.version, len(s.problems)
    if outside is not None:
        boxes = boxes & s.mask_now(*outside)
    s.active = boxes, version
    outs = s.run(body, [s.to_current(v) for v in values])
    s.active, boxes = outside, s.mask_now(boxes, version)
    for at, (node, problem) in enumerate(s.problems[before:], before):
        mine = boxes & s.mask_now(problem.boxes, problem.version)
        s.problems[at] = node, problem._replace(boxes=mine, version=s.version)
    s.problems[before:] = [p for p in s.problems[before:] if p[1].boxes.any()]
    return outs


def _switch(s: Sweep, region: Switch, values: Values) -> Values:
    last = len(region.branches) - 1
    index, rest = values[0], values[1:]
    results: Values | None = None
    for k, body in enumerate(region.branches):
        first, final = np.clip(s.to_current(index).ends, 0, last)
        if not ((first <= k) & (final >= k)).any():
            continue
        outs = _run_where(s, (first <= k) & (final >= k), body, rest)
        first, final = np.clip(s.to_current(index).ends, 0, last)
        if results is not None:
            taken, other = (first == k) & (final == k), (first > k) | (final < k)
            outs = [choose(taken, other, new, s.to_current(old)) for new, old in zip(outs, results)]
        results = outs
    assert results is not None
    return _stamp(s, results)


def _stamp(s: Sweep, values: Values) -> Values:
    for value in values:
        value.version = s.version
    return values


# ---- loops --------------------------------------------------------------------------------------


def _invariant(s: Sweep, step: Callable[[Values], Values], carry: Values) -> Values:
    """Return intervals that a step does not leave, and that contain the values a loop begins with.

    Ends that keep moving are moved further and further, at last to infinity.
    """
    muted, s.muted = s.muted, True
    carry = [Value(v.ends, v.nan, None, v.version) for v in carry]
    for k in range(_ROUNDS):
        new = step([s.to_current(v) for v in carry])
        carry = [s.to_current(v) for v in carry]
        if all(is_inside(a, b) for a, b in zip(new, carry)):
            break
        carry = [_widen(old, join(old, out), k) for old, out in zip(carry, new)]
        carry = [Value(v.ends, v.nan, None, s.version) for v in carry]
    else:
        carry = [
            Value(whole_range(0, v.low.shape).ends, np.ones(v.low.shape, bool), None, s.version)
            for v in carry
        ]
    s.muted = muted
    return carry


def _widen(old: Value, new: Value, k: int) -> Value:
    if k < _PATIENT:
        return new
    low, high = new.ends
    width = (high - low) * 2.0 ** (k - _PATIENT) + 2.0**-30
    if k > _ROUNDS // 2:
        width = np.full_like(width, INF)
    low = np.where(low < old.low, low - width, low)
    high = np.where(high > old.high, high + width, high)
    return Value(np.stack([low, high]), new.nan, None, new.version)


def _within_type(values: Values, kinds: Sequence[int]) -> Values:
    """Cut what was widened to what its type can hold."""
    cut = []
    for value, kind in zip(values, kinds):
        if is_integer(kind):
            most = whole_range(kind, ())
            value = Value(np.clip(value.ends, most.low, most.high), None, None, value.version)
        cut.append(value)
    return cut


def _scan(s: Sweep, region: Scan, values: Values) -> Values:
    n, count = region.carry, region.slices * region.rows
    carry, slices, shared = values[:n], values[n : n + count], values[n + count :]
    body_kinds = region.body.input_dtypes[n : n + region.slices]

    def slice_at(step: int) -> Values:
        if not region.stacked:
            return slices[step * region.slices : (step + 1) * region.slices]
        parts = []
        for value, kind in zip(slices, body_kinds):
            width = length_of(kind)
            if width:
                parts.append(take(value, np.arange(step * width, (step + 1) * width)))
            else:
                parts.append(element(value, step))
        return parts

    rows: list[Values] = [[]] * region.length
    before = s.evaluated
    for count, step in enumerate(region.steps):
        if s.evaluated - before > s.unroll:
            carry, outs = _rest_of_scan(s, region, carry, slices, shared)
            for later in region.steps[count:]:
                rows[later] = outs
            break
        outs = s.run(region.body, [*carry, *slice_at(step), *shared])
        carry, rows[step] = outs[:n], outs[n:]
    columns = [[s.to_current(x) for x in column] for column in zip(*rows)]
    carry = [s.to_current(v) for v in carry]
    if region.stacked:
        blocks = []
        for kind, column in zip(region.body.output_dtypes[n:], columns):
            blocks.append(concatenate(column) if length_of(kind) else stack(column))
        return carry + blocks
    return carry + [x for row in zip(*columns) for x in row]


def _rest_of_scan(
    s: Sweep, region: Scan, carry: Values, slices: Values, shared: Values
) -> tuple[Values, Values]:
    """Return what contains the last carry, and the outs of each step, from here on."""
    n, kinds = region.carry, region.body.output_dtypes
    every = [_hull_of_steps(region, slices, j) for j in range(region.slices)]

    def run_step(now: Values) -> Values:
        return _within_type(s.run(region.body, [*now, *every, *shared])[:n], kinds)

    carry = _within_type(_invariant(s, run_step, carry), kinds)
    outs = s.run(region.body, [*carry, *every, *shared])
    return [join(s.to_current(a), b) for a, b in zip(carry, outs[:n])], outs[n:]


def _hull_of_steps(region: Scan, slices: Values, j: int) -> Value:
    """Return what contains a slice in all steps."""
    if not region.stacked:
        mine = slices[j :: region.slices]
        result = mine[0]
        for value in mine[1:]:
            result = join(result, value)
        return Value(result.ends, result.nan, None, result.version)
    width = length_of(region.body.input_dtypes[region.carry + j])
    block = slices[j]
    shape = (*block.low.shape[:-1], region.length, width or 1)
    low = block.low.reshape(shape).min(axis=-2)
    high = block.high.reshape(shape).max(axis=-2)
    nan = None if block.nan is None else np.asarray(block.nan.reshape(shape).any(axis=-2))
    whole = Value(np.stack([low, high]), nan, None, block.version)
    return whole if width else element(whole, 0)


class _Mask:
    """A mask that follows the boxes of a sweep."""

    def __init__(self, s: Sweep, mask: Array) -> None:
        self.sweep, self.mask, self.version = s, mask, s.version

    def now(self) -> Array:
        """Return the mask for the boxes of now; boxes are not split inside index spaces."""
        s = self.sweep
        return self.mask if s.trail else s.mask_now(self.mask, self.version)


def _while(s: Sweep, region: While, values: Values) -> Values:
    n = region.carry
    carry, shared = values[:n], values[n:]
    start = np.zeros((s.count, *(1,) * s.trail), dtype=bool)
    # Boxes that may be running, boxes that may have ended, and with what.
    running, ended, results = _Mask(s, ~start), _Mask(s, start), carry
    before = s.evaluated

    def collect(ends: Array) -> None:
        """Add the values of now to the results of boxes that may end."""
        nonlocal results, ended
        already = ended.now()
        results = [
            choose(already & ~ends, ~already, s.to_current(old), s.to_current(new))
            for old, new in zip(results, carry)
        ]
        _stamp(s, results)
        ended = _Mask(s, already | ends)

    for rounds in range(region.limit):
        if s.evaluated - before > s.unroll or (rounds and _is_lost(s, running.now(), carry)):
            carry = _settled(s, region, carry, shared)
            break
        (test,) = _run_where(s, running.now(), region.condition, [*carry, *shared])
        true, false = test.low == 1.0, test.high == 0.0
        collect(running.now() & ~true)
        running = _Mask(s, running.now() & ~false)
        if not running.now().any():
            return results
        carry = _run_where(s, running.now(), region.body, [*carry, *shared])
    collect(running.now())
    return results


def _is_lost(s: Sweep, running: Array, carry: Values) -> bool:
    """Return whether nothing is known of any number in every box that is still running."""
    lost, numbers = np.ones(running.shape, dtype=bool), 0
    for value in map(s.to_current, carry):
        if value.form is not None or value.nan is not None or np.isinf(value.ends).any():
            unknown = (value.low == -INF) & (value.high == INF)
            if unknown.ndim == running.ndim:
                lost, numbers = lost & unknown, numbers + 1
    return numbers > 0 and bool(lost[running].all())


def _settled(s: Sweep, region: While, carry: Values, shared: Values) -> Values:
    """Return what contains the values of a loop in all rounds to come."""
    kinds = region.body.output_dtypes

    def run_step(now: Values) -> Values:
        return _within_type(s.run(region.body, [*now, *shared]), kinds)

    carry = _within_type(_invariant(s, run_step, carry), kinds)
    s.run(region.condition, [*carry, *shared])
    s.run(region.body, [*(s.to_current(v) for v in carry), *shared])
    s.note(
        "unknown", np.ones(1, dtype=bool), "a loop of unknown length was not followed to its end"
    )
    return [s.to_current(v) for v in carry]


def _map(s: Sweep, region: Map, values: Values) -> Values:
    length, count = region.length, region.slices
    if length == 0:
        return []
    shared = values[length * count :]
    if s.trail or has_blocks(region.body):
        rows = []
        for k in range(length):
            mine = values[k * count : (k + 1) * count]
            rows.append(s.run(region.body, [s.to_current(v) for v in (*mine, *shared)]))
        return [s.to_current(x) for row in rows for x in row]
    columns = [stack(values[j : length * count : count]) for j in range(count)]
    outs = _run_at_points(s, region.body, [*columns, *map(_at_all_points, shared)], length)
    return [element(out, k) for k in range(length) for out in outs]


def _at_all_points(value: Value) -> Value:
    return value.change(lambda array: array[..., None])


def _run_at_points(s: Sweep, body: Graph, values: Values, count: int) -> Values:
    """Run a body at the points along a last axis of its values, and return results with it."""
    s.trail = 1
    outs = s.run(body, values)
    s.trail = 0

    def spread(array: Array) -> Array:
        return np.broadcast_to(array, (*array.shape[:-1], count))

    return [out.change(spread) for out in outs]


# ---- blocks -------------------------------------------------------------------------------------


def _nest(s: Sweep, region: Nest, values: Values) -> Values:
    points = math.prod(region.shape)
    if s.trail or points == 0:
        return s.nothing_known(region.out_dtypes)
    operands = []
    for value, read in zip(values, region.reads):
        if read is None:
            is_block = value.ends.ndim > 2
            operands.append(value if is_block else _at_all_points(value))
        else:
            at = read.table if isinstance(read, Gather) else positions(read, region.shape).ravel()
            operands.append(take(value, at))
    if region.indexed:
        grids = np.meshgrid(*(np.arange(n) for n in region.shape), indexing="ij")
        operands += _stamp(s, [constant(grid.ravel()) for grid in grids])
    outs = _run_at_points(s, region.body, operands, points)
    results = []
    for out, kind in zip(outs, region.body.output_dtypes):
        rows = out.change(lambda a: a.reshape(*a.shape[:-1], region.length, region.reduced))
        column = _combine(s, region, rows, kind) if region.combine else element(rows, 0)
        results.append(column if region.kept else element(column, 0))
    return _stamp(s, results)


def _combine(s: Sweep, region: Nest, rows: Value, kind: int) -> Value:
    """Combine values along the last axis, in whatever order."""
    name, nan = region.combine, None if rows.nan is None else np.asarray(rows.nan.any(axis=-1))
    low, high = rows.ends
    if name in ("min", "max") or (name in ("and", "or") and kind == B8):
        pick = np.min if name in ("min", "and") else np.max
        lower = rounding.with_negative_zero(pick(low, axis=-1))
        return Value(np.stack([lower, pick(high, axis=-1)]), nan)
    if name == "add" and not is_integer(kind):
        unit = UNITS[kind] + UNITS[0]
        size = np.maximum(np.abs(low), np.abs(high)).sum(axis=-1)
        error = 2.0 * region.reduced * unit * size
        ends = np.stack([low.sum(axis=-1) - error, high.sum(axis=-1) + error])
        # What is added up of one sign keeps it.
        least = np.maximum(ends[0], -0.0)
        ends[0] = np.where((low >= 0.0).all(axis=-1), rounding.with_negative_zero(least), ends[0])
        ends[1] = np.where((high <= 0.0).all(axis=-1), np.minimum(ends[1], 0.0), ends[1])
        opposite = np.isnan(ends).any(axis=0)
        ends = np.where(opposite, rounding.outward_signs(ends) * INF, ends)
        nan = opposite if nan is None else nan | opposite
        form = None if rows.form is None else forms.total(rows.form, unit)
        if form is not None:
            ends = rounding.intersect(ends, form.ends())
        if kind == F32:
            ends = rounding.to_float32(ends)
        infinite = np.isinf(ends).any(axis=0) & np.isfinite(rows.ends).all(axis=(0, -1))
        s.note("overflow", infinite, "a sum may overflow")
        return Value(ends, nan if nan.any() else None, form)
    if rows.low.shape[-1] <= 4096:
        s.kind = s.operand_kind = kind
        s.unit = UNITS.get(kind, 0.0)
        total = element(rows, 0)
        for k in range(1, rows.low.shape[-1]):
            total = OPERATIONS[name](s, total, element(rows, k))
        # Another order of the same roundings.
        extra = 4.0 * rows.low.shape[-1] * s.unit
        return Value(rounding.widen(total.ends, extra) if extra else total.ends, total.nan)
    return whole_range(kind, rows.low.shape[:-1])


def _pack(s: Sweep, region: Pack, values: Values) -> Values:
    parts: list[Value] = [constant(0.0)] * region.length
    for source, shape, to, start in region.moves:
        at = positions(to, shape).ravel().tolist()
        if start is None:
            for k in at:
                parts[k] = values[source]
        else:
            for k, j in zip(at, positions(start, shape).ravel().tolist()):
                parts[k] = element(values[source], j)
    return _stamp(s, [stack(parts)])


def _accumulate(s: Sweep, region: Accumulate, values: Values) -> Values:
    terms, index = values
    first, last = np.clip(index.ends, 0, region.length - 1).astype(np.int64)
    s.kind = s.operand_kind = item_type(region.dtype)
    s.unit = UNITS.get(s.kind, 0.0)
    zero, here = np.zeros((1, region.length)), np.arange(region.length)
    block = Value(np.stack([zero, zero]))
    for k in range(terms.low.shape[-1]):
        possible = (here >= first[..., k, None]) & (here <= last[..., k, None])
        sure = possible & (first[..., k, None] == last[..., k, None])
        term = _at_all_points(element(terms, k))
        block = choose(sure, ~possible, OPERATIONS["add"](s, block, term), block)
    return _stamp(s, [block])


def _sort(s: Sweep, region: Sort, values: Values) -> Values:
    low = np.zeros((1, region.rows * region.length))
    return _stamp(s, [Value(np.stack([low, low + (region.length - 1.0)]))])


# ---- linear systems -----------------------------------------------------------------------------


def _solve(s: Sweep, region: Solve, values: Values) -> Values:
    """Enclose what elimination computes.

    Elimination with partial pivoting solves a system exactly whose matrix differs from A by at most
    ``3 n u 2**(n-1) n max|A|`` in each element (Higham, Accuracy and Stability, theorem 9.4, with
    the largest growth that pivoting allows). Multiplied by an approximate inverse R of its centre,
    the system is ``(I + E) x = R b`` with a small E (Krawczyk), whose solution is not larger than
    ``|R b| / (1 - |E|)``, and is refined by putting it into ``x = R b - E x``.
    """
    n, m = region.size, region.columns
    a, b = values if region.blocks else (stack(values[: n * n]), stack(values[n * n :]))
    text = f"a linear system of {n} unknowns may be singular"
    if s.trail or n > _LARGEST_SYSTEM or a.nan is not None or b.nan is not None:
        s.note("division", np.ones(1, bool), text)
        return s.nothing_known(region.out_dtypes)
    matrix, right = _as_matrix(a, (n, n)), _as_matrix(b, (n, m))
    unit = UNITS[item_type(region.dtype)]
    largest = (np.abs(matrix.c) + matrix.radius).max(axis=(-2, -1), keepdims=True)
    growth = 3.0 * n * n * 2.0 ** (n - 1) * unit * largest
    matrix = forms.make_form(matrix.symbols, matrix.a, matrix.c, matrix.r + growth)
    good = np.isfinite(matrix.mag).all(axis=(-2, -1)) & np.isfinite(right.mag).all(axis=(-2, -1))
    centre = np.where(good[:, None, None], matrix.c, np.eye(n))
    inverse = _approximate_inverse(centre)
    near, known = _apply(inverse, matrix), _apply(inverse, right)
    error = forms.make_form(near.symbols, near.a, near.c - np.eye(n), near.r + forms.SLOP)
    norm = (error.radius + np.abs(error.c)).sum(axis=-1).max(axis=-1)[:, None, None]
    regular = good[:, None, None] & (norm * (1.0 + 1e-12) < 0.999)
    most = (known.radius + np.abs(known.c)).max(axis=-2, keepdims=True)
    bound = np.where(regular, most / np.where(regular, 1.0 - norm, 1.0), INF) * (1.0 + 1e-9)
    bound = np.broadcast_to(bound, np.broadcast_shapes(bound.shape, known.c.shape))
    x = forms.make_form((), np.zeros((0, *bound.shape)), np.zeros(bound.shape), bound)
    for _ in range(4):
        x = _refine(error, known, x)
    singular = ~regular[:, 0, 0]
    s.note("division", singular, text)
    ends = x.ends()
    lost = np.broadcast_to(singular[:, None, None], ends.shape[1:])
    ends = np.where(lost, rounding.outward_signs(ends) * INF, ends)
    flat = Value(ends, lost if lost.any() else None, x)
    flat = flat.change(lambda array: array.reshape(array.shape[0], n * m))
    if item_type(region.dtype) == F32:
        flat.ends = rounding.to_float32(flat.ends)
    return _stamp(s, [flat] if region.blocks else [element(flat, k) for k in range(n * m)])


def _approximate_inverse(matrices: Array) -> Array:
    """Return inverses; where there is none, something that is no inverse."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrices)


def _as_matrix(value: Value, shape: tuple[int, int]) -> Form:
    return value.change(lambda array: array.reshape(array.shape[0], *shape)).as_form()


def _apply(matrix: Array, form: Form) -> Form:
    """Return the product of a matrix of numbers with a matrix of forms."""
    size, slop = np.abs(matrix), (matrix.shape[-1] + 4.0) * 2.0**-51
    r = size @ form.r + slop * (size @ form.mag)
    return forms.make_form(form.symbols, matrix @ form.a, matrix @ form.c, r * (1.0 + slop))


def _refine(error: Form, known: Form, x: Form) -> Form:
    """Return ``known - error x``, of matrices of forms."""
    total = known
    for k in range(error.c.shape[-1]):
        left = forms.index(error, (..., slice(None), slice(k, k + 1)))
        right = forms.index(x, (..., slice(k, k + 1), slice(None)))
        total = forms.combine(total, 1.0, forms.multiply(left, right, 0.0), -1.0, 0.0, 0.0)
    return total


_REGIONS: dict[type[Region], Callable[[Sweep, Any, Values], Values]] = {
    Call: _call,
    Switch: _switch,
    Scan: _scan,
    While: _while,
    Map: _map,
    Nest: _nest,
    Pack: _pack,
    Accumulate: _accumulate,
    Sort: _sort,
    Solve: _solve,
}
