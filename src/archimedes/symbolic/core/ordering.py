"""Sorting and searching, scalarized or in loops.

Which element ends up where depends on values, so a sort is recorded as a fixed network of
compare-and-exchange steps: Batcher's odd-even merge sort (Knuth, The Art of Computer Programming
vol. 3, 5.3.4), about n/4 log2(n)^2 steps of a comparison and two selections. The selections pass
derivatives of the elements they keep.

Long rows are merged in loops: of sorted runs twice as long ones are made, element after element, n
steps for each doubling. These loops find the positions that sort a row, which are integers and have
no derivatives (``Sort``, of which they are the code); the sorted array is then read at these
positions. Of many short rows, each is sorted by the network, in a loop over the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from archimedes.graph.blocks.references import as_block, references, scalar_ids
from archimedes.graph.dtypes import B8, F32, F64, I64, is_float
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan, Sort
from archimedes.symbolic.core import loop_nests
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.loop_nests import elementwise, uses_loops
from archimedes.symbolic.core.trace import current_trace
from archimedes.symbolic.core.traced_value import Traced

_SELECT, _LT, _LE, _EQ, _AND, _OR, _NOT, _STOP = (
    CODES[n] for n in ("select", "lt", "le", "eq", "and", "or", "not", "stop")
)
#: Rows up to this length are sorted by the network also in a loop, over all rows.
SHORT_ROWS = 16


def exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs (low, high) of Batcher's network for n elements, in order.

    >>> list(exchanges(3))
    [(0, 2), (0, 1), (1, 2)]
    """
    p = top = 1 << ((n - 1).bit_length() - 1) if n > 1 else 0
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


def _record_precedes(g: Graph, a: Sequence[int], b: Sequence[int]) -> int:
    """Emit whether one record precedes another in the order of its keys, the first foremost."""
    result = _precedes(g, a[-1], b[-1])
    for x, y in zip(a[-2::-1], b[-2::-1]):
        # Where the later keys say yes it is enough that y is not smaller.
        not_after = g.emit(_NOT, _precedes(g, y, x))
        result = g.emit(_SELECT, result, not_after, _precedes(g, x, y))
    return result


# ---- sorting -----------------------------------------------------------------------------------


def sort_rows(
    g: Graph, keys: Sequence[np.ndarray], codes: Sequence[int], column: int | None, stable: bool
) -> np.ndarray:
    """Sort records, whose keys are rows of ids (rows, n), by the first key, then the second ...

    Returns the sorted elements of the key of that number, or the positions before sorting where
    ``column`` is None. If ``stable``, equal records keep their order.
    """
    rows, n = keys[0].shape
    if n > SHORT_ROWS and uses_loops(g, keys[0].size, *keys):
        positions = _sort_positions(g, keys, codes)
        if column is None:
            return positions
        return loop_nests.gather_along(g, keys[column], codes[column], positions)
    if n < 2:
        return np.full((rows, n), g.const(0, I64)) if column is None else keys[column]

    def exchange(body: Graph, *elements: int) -> list[int]:
        columns: list[Sequence[int]] = [elements[k : k + n] for k in range(0, len(elements), n)]
        if stable or column is None:  # with positions as the last key, equal records keep theirs
            columns.append([body.const(k, I64) for k in range(n)])
        return _sort_nodes(body, columns, -1 if column is None else column)

    operands = [ids[:, k] for ids in keys for k in range(n)]
    kinds = [code for code in codes for _ in range(n)]
    return np.stack(elementwise(g, operands, kinds, (rows,), exchange, weight=n, results=n), axis=1)


def _sort_nodes(g: Graph, columns: Sequence[Sequence[int]], column: int) -> list[int]:
    """Sort records given as columns of ids, exchange by exchange; return one sorted column."""
    records = list(zip(*columns))
    for low, high in exchanges(len(records)):
        a, b = records[low], records[high]
        swap = _record_precedes(g, b, a)
        records[low] = tuple(g.emit(_SELECT, swap, y, x) for x, y in zip(a, b))
        records[high] = tuple(g.emit(_SELECT, swap, x, y) for x, y in zip(a, b))
    return [record[column] for record in records]


def _sort_positions(g: Graph, keys: Sequence[np.ndarray], codes: Sequence[int]) -> np.ndarray:
    """Return ids of the positions that sort each row; equal records keep their order."""
    shape = keys[0].shape
    numbers = np.broadcast_to(np.arange(shape[1]), shape).reshape(-1).astype(np.int64)
    blocks = [_sort_key(g, ids, code) for ids, code in zip(keys, codes)]
    body = Graph()
    records = [*(body.input(g.dtype[i]) for i in blocks), body.block(numbers)]
    body.outputs = [_merge_runs(body, records, shape)]
    (positions,) = g.region(Sort(blocks, body, *shape))
    return references(g, int(positions)).reshape(shape)


def _sort_key(g: Graph, ids: np.ndarray, code: int) -> int:
    """Return a block of keys without derivatives: for floats, integers of the same order."""

    def stop(body: Graph, i: int) -> int:
        key = body.emit(_STOP, i)
        return _order_as_integer(body, key) if is_float(code) else key

    (key,) = loop_nests.loop_elementwise(g, [ids], [code], ids.shape, stop)
    return as_block(g, key, I64 if is_float(code) else code)


def _order_as_integer(g: Graph, x: int) -> int:
    """Emit an integer in the order of floats: compared sooner, nan last, both zeros the same.

    Of numbers below zero all bits but the first are turned over.
    """
    e, i = Emit(g, F64), Emit(g, I64)
    x = e("f64", x) if g.dtype[x] == F32 else x
    zero = e.c(0.0)
    bits = e("bits", e.where(e("eq", x, zero), zero, x))
    signs = i("shr", bits, i.c(63))
    ordered = i("xor", bits, i("lshr", signs, i.c(1)))
    return e.where(e("eq", x, x), ordered, i.c(2**63 - 1))


def _merge_runs(g: Graph, records: Sequence[int], shape: tuple[int, ...]) -> int:
    """Emit the passes of merging; return the block of the last column, sorted.

    Runs begin as single elements. They do not reach over the ends of rows.
    """
    rows, n = shape
    lengths = np.array([1 << k for k in range((n - 1).bit_length())], dtype=np.int64)
    body = Graph()
    blocks = [body.input(g.dtype[i]) for i in records]
    run = body.input(I64)
    # Where in the two runs, where the second begins and both end, the step, the end of the row.
    start = [body.const(0, I64) for _ in range(6 if rows > 1 else 5)]
    step = _merge_step(body, blocks, shape)
    region = Scan([*start, *blocks, run], step, rows * n, len(start), 0, stacked=True)
    body.outputs = body.region(region).tolist()[len(start) :]
    inputs = [*records, g.block(lengths)]
    passes = Scan(inputs, body, len(lengths), len(records), 1, stacked=True)
    return int(g.region(passes)[len(records) - 1])


def _merge_step(g: Graph, records: Sequence[int], shape: tuple[int, ...]) -> Graph:
    """Return the step that puts out the next element of two runs: of equal ones the first."""
    step, (rows, n) = Graph(), shape
    e = Emit(step, I64)
    i, j, middle, end, t = (step.input(I64) for _ in range(5))
    last = step.input(I64) if rows > 1 else e.c(n)
    wholes = [step.input(g.dtype[k]) for k in records]
    run = step.input(I64)

    def least(a: int, b: int) -> int:
        return e.where(e("lt", a, b), a, b)

    # At the end of two runs begin the next two, at the end of a row those of the next row.
    if rows > 1:
        last = e.where(e("le", last, t), e.add(last, e.c(n)), last)
    new = e("le", end, t)
    middle = e.where(new, least(e.add(t, run), last), middle)
    end = e.where(new, least(e.add(e.add(t, run), run), last), end)
    i, j = e.where(new, t, i), e.where(new, middle, j)
    first = tuple(step.element(whole, i) for whole in wholes)
    second = tuple(step.element(whole, j) for whole in wholes)
    ahead = e("or", _record_precedes(step, second[:-1], first[:-1]), e("le", middle, i))
    ahead = e("and", ahead, e("lt", j, end))
    one = e.c(1)
    i, j = e.where(ahead, i, e.add(i, one)), e.where(ahead, e.add(j, one), j)
    chosen = [e.where(ahead, y, x) for x, y in zip(first, second)]
    ends = [last] if rows > 1 else []
    step.outputs = [i, j, middle, end, e.add(t, one), *ends, *chosen]
    return step


# ---- the largest and the smallest --------------------------------------------------------------


def first_extreme(x: Traced, axis: int | None, largest: bool) -> Traced:
    """Return the position of the first largest or smallest element; a nan counts as either."""
    trace = current_trace()
    if axis is None:
        x, axis = x.reshape(-1), 0
    if uses_loops(trace.graph, x.size, trace.elements_of(x)):
        return _first_in_loop(x, axis % x.ndim, largest)
    ids = np.moveaxis(trace.ids_of(x), axis, 0)
    if len(ids) == 0:
        raise ValueError(f"attempt to get arg{'max' if largest else 'min'} of an empty sequence")
    columns = ids.reshape(len(ids), -1).T.tolist()
    positions = [_first_in_tournament(trace.graph, column, largest) for column in columns]
    return wrap(np.array(positions, dtype=np.int64).reshape(ids.shape[1:]), I64, trace)


def _first_in_loop(x: Traced, axis: int, largest: bool) -> Traced:
    """Return the least position whose element equals the extreme."""
    trace = current_trace()
    x = x.astype(np.int64) if x.code == B8 else x
    best = (np.max if largest else np.min)(x, axis=axis, keepdims=True)
    order = [*(k for k in range(x.ndim) if k != axis), axis]
    shape = tuple(x.shape[k] for k in order)
    axes = [order.index(k) for k in range(x.ndim)]

    def position(g: Graph, value: int, extreme: int, *index: int) -> int:
        same = g.emit(_EQ, value, extreme)
        if is_float(x.code):
            same = g.emit(_OR, same, g.emit(_NOT, g.emit(_EQ, value, value)))
        return g.emit(_SELECT, same, index[-1], g.const(shape[-1], I64))

    operands = [(trace.elements_of(a), x.code, axes) for a in (x, best)]
    ids = loop_nests.loop_reduce(
        trace.graph, operands, shape, x.ndim - 1, position, "min", indexed=True
    )
    return wrap(ids, I64, trace)


def _first_in_tournament(g: Graph, column: Sequence[int], largest: bool) -> int:
    """Compare elements pairwise, as in a tournament, so that the recorded depth is log2(n)."""
    field = [(value, g.const(k, I64)) for k, value in enumerate(column)]
    while len(field) > 1:
        winners = []
        for (a, i), (b, j) in zip(field[::2], field[1::2]):
            better = g.emit(_NOT, g.emit(_LE, b, a) if largest else g.emit(_LE, a, b))
            if is_float(g.dtype[a]):
                better = g.emit(_AND, better, g.emit(_EQ, a, a))
            winners.append((g.emit(_SELECT, better, b, a), g.emit(_SELECT, better, j, i)))
        field = winners + field[len(field) - len(field) % 2 :]
    return field[0][1]


# ---- searching ---------------------------------------------------------------------------------


def count_below(table: np.ndarray, v: Traced, side: str) -> Traced:
    """Count the entries of a static sorted table below (``left``) or up to (``right``) each v.

    Binary search with one table lookup per level, so that the cost grows with log2 of the length.
    A nan counts as larger than every entry; the table itself must hold none.
    """
    n = len(table)
    levels = n.bit_length()
    top = np.inf if table.dtype.kind == "f" else np.iinfo(np.int64).max
    # Entry 0 stands before the table: a search position p says that p entries are below.
    padded = np.concatenate([table[:1], table, np.full(2**levels - 1 - n, top, table.dtype)])

    def search(g: Graph, x: int) -> int:
        e = Emit(g, I64)
        at = e.c(0)
        for level in reversed(range(levels)):
            further = e.add(at, e.c(1 << level))
            stop = e("le" if side == "left" else "lt", x, g.lookup(padded, further))
            at = e.where(stop, at, further)
        # Only x beyond every entry (inf, nan) can run into the padding.
        return e("min", at, e.c(n))

    trace = current_trace()
    (ids,) = elementwise(trace.graph, [trace.elements_of(v)], [v.code], v.shape, search)
    return wrap(ids, I64, trace)


def count_traced_below(a: Traced, v: Traced, side: str) -> Traced:
    """Count as ``count_below`` does, in a traced table.

    A long table is searched; the entries of a short one are compared one by one.
    """
    trace = current_trace()
    g, n = trace.graph, a.size

    def is_below(body: Graph, entry: int, x: int) -> int:
        if side == "left":
            return _precedes(body, entry, x)
        return body.emit(_NOT, _precedes(body, x, entry))

    def search(body: Graph, x: int, table: int) -> int:
        e = Emit(body, I64)
        at, least = e.c(0), e.c(n)
        for level in reversed(range(n.bit_length())):
            further = e.add(at, e.c(1 << level))
            entry = body.element(table, e.add(further, e.c(-1)))
            inside = e("le", further, least)
            at = e.where(e("and", inside, is_below(body, entry, x)), further, at)
        return at

    def compare(body: Graph, x: int, *entries: int) -> int:
        at = body.const(0, I64)
        for k, entry in enumerate(entries):
            at = body.emit(_SELECT, is_below(body, entry, x), body.const(k + 1, I64), at)
        return at

    ids, values = trace.elements_of(a), trace.elements_of(v)
    if uses_loops(g, n, ids):
        block = as_block(g, ids, a.code)
        (counts,) = elementwise(g, [values], [v.code], v.shape, search, [block])
    else:
        operands = [values, *(np.array(i) for i in scalar_ids(g, ids).tolist())]
        (counts,) = elementwise(g, operands, [v.code] * len(operands), v.shape, compare)
    return wrap(counts, I64, trace)


def segment_ends(
    x: Traced, points: Traced, values: Traced
) -> tuple[Traced, Traced, Traced, Traced]:
    """Return the two neighbouring points, and the values there, between which each x lies."""
    if loop_nests.is_long(points.size):
        at = np.searchsorted(points[1:-1], x, side="right")
        return points[at], points[at + 1], values[at], values[at + 1]
    ends = (points[0], points[1], values[0], values[1])
    x0, x1, f0, f1 = (np.broadcast_to(end, x.shape) for end in ends)
    for k in range(1, points.size - 1):
        later = x >= points[k]
        x0, x1 = np.where(later, points[k], x0), np.where(later, points[k + 1], x1)
        f0, f1 = np.where(later, values[k], f0), np.where(later, values[k + 1], f1)
    return x0, x1, f0, f1
