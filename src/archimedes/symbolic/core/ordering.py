"""Sorting and searching, scalarized or in loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.dtypes import F32, F64, I64, is_float, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan, Sort
from archimedes.graph.regions.nest import Affine, row_major
from archimedes.symbolic.core.conversion import wrap
from archimedes.symbolic.core.loop_nests import (
    each,
    each_with,
    elementwise,
    gather_along,
    uses_loops,
)
from archimedes.symbolic.core.trace import current_trace

__all__ = ["count_below", "count_traced", "exchanges", "sort_in_loops", "sort_in_nodes"]

_ADD, _SUB, _MUL, _AND, _OR, _NOT, _LT, _LE, _EQ, _SELECT, _STOP = (
    CODES[name]
    for name in ("add", "sub", "mul", "and", "or", "not", "lt", "le", "eq", "select", "stop")
)
#: Rows from this length on are merged: n log2(n) steps, one after the other, not half the square
#: of the logarithm, which lanes take many at a time.
MERGED = 4096
#: Emits whether one record sorts before another.
Before = Callable[[Graph, tuple[int, ...], tuple[int, ...]], int]


def stages(n: int) -> Iterator[tuple[int, int, int]]:
    """Yield (p, r, d) of the stages: elements i with i & p == r are compared with i + d.

    >>> list(stages(3))
    [(2, 0, 2), (1, 0, 1), (1, 1, 1)]
    """
    p = top = 1 << ((n - 1).bit_length() - 1)
    while p:
        q, r, d = top, 0, p
        while d:
            if d < n:
                yield p, r, d
            d, q, r = q - p, q >> 1, p
        p >>= 1


def sorted_positions(
    g: Graph, keys: Sequence[np.ndarray], codes: Sequence[int], before: Before
) -> np.ndarray:
    """Return ids of the positions that sort each row of keys of shape (rows, n).

    Equal records keep their order.
    """
    shape = keys[0].shape
    numbers = np.broadcast_to(np.arange(shape[1]), shape).reshape(-1).astype(np.int64)
    if shape[1] < 2:
        return references(g, g.block(numbers)).reshape(shape)
    merged = shape[1] >= MERGED
    blocks = [_without_derivatives(g, ids, code, merged) for ids, code in zip(keys, codes)]
    body = Graph()
    records = [*(body.input(g.dtype[i]) for i in blocks), body.block(numbers)]
    body.outputs = [(_merged if merged else _exchanged_in_stages)(body, records, shape, before)]
    found = g.region(Sort(blocks, body, *shape))
    return references(g, int(found[0])).reshape(shape)


def _exchanged_in_stages(
    g: Graph, records: Sequence[int], shape: tuple[int, ...], before: Before
) -> int:
    """Emit the stages of the network; return the block of the last column, sorted."""
    tables = [g.block(np.array(column)) for column in zip(*stages(shape[1]))]
    body = Graph()
    blocks = [body.input(g.dtype[i]) for i in records]
    stage = [body.input(I64) for _ in tables]
    body.outputs = _exchanged(body, blocks, stage, shape, before)
    count = len(g.tables[g.b[tables[0]]])
    region = Scan([*records, *tables], body, count, len(records), len(tables), stacked=True)
    return int(g.region(region)[len(records) - 1])


def _merged(g: Graph, records: Sequence[int], shape: tuple[int, ...], before: Before) -> int:
    """Emit the passes of merging; return the block of the last column, sorted.

    Runs begin as single elements. They do not reach over the ends of rows.
    """
    rows, n = shape
    lengths = g.block(np.array([1 << k for k in range((n - 1).bit_length())], dtype=np.int64))
    body = Graph()
    blocks = [body.input(g.dtype[i]) for i in records]
    run = body.input(I64)
    # Where in the two runs, where the second begins and both end, the step, the end of the row.
    start = [body.const(0, I64) for _ in range(6 if rows > 1 else 5)]
    step = _merging(body, blocks, shape, before)
    region = Scan([*start, *blocks, run], step, rows * n, len(start), 0, stacked=True)
    body.outputs = body.region(region).tolist()[len(start) :]
    count = len(g.tables[g.b[lengths]])
    passes = Scan([*records, lengths], body, count, len(records), 1, stacked=True)
    return int(g.region(passes)[len(records) - 1])


def _merging(g: Graph, records: Sequence[int], shape: tuple[int, ...], before: Before) -> Graph:
    """Return the step that puts out the next element of two runs: of equal ones the first."""
    step, (rows, n) = Graph(), shape
    i, j, middle, end, t = (step.input(I64) for _ in range(5))
    last = step.input(I64) if rows > 1 else step.const(n, I64)
    wholes = [step.input(g.dtype[k]) for k in records]
    run = step.input(I64)

    def least(a: int, b: int) -> int:
        return step.emit(_SELECT, step.emit(_LT, a, b), a, b)

    # At the end of two runs begin the next two, at the end of a row those of the next row.
    if rows > 1:
        following = step.emit(_ADD, last, step.const(n, I64))
        last = step.emit(_SELECT, step.emit(_LE, last, t), following, last)
    new = step.emit(_LE, end, t)
    middle = step.emit(_SELECT, new, least(step.emit(_ADD, t, run), last), middle)
    behind = least(step.emit(_ADD, step.emit(_ADD, t, run), run), last)
    end = step.emit(_SELECT, new, behind, end)
    i, j = step.emit(_SELECT, new, t, i), step.emit(_SELECT, new, middle, j)
    first = tuple(step.element(whole, i) for whole in wholes)
    second = tuple(step.element(whole, j) for whole in wholes)
    ahead = before(step, second[:-1], first[:-1])
    ahead = step.emit(_OR, ahead, step.emit(_LE, middle, i))
    ahead = step.emit(_AND, ahead, step.emit(_LT, j, end))
    one = step.const(1, I64)
    i = step.emit(_SELECT, ahead, i, step.emit(_ADD, i, one))
    j = step.emit(_SELECT, ahead, step.emit(_ADD, j, one), j)
    chosen = [step.emit(_SELECT, ahead, y, x) for x, y in zip(first, second)]
    ends = [last] if rows > 1 else []
    step.outputs = [i, j, middle, end, step.emit(_ADD, t, one), *ends, *chosen]
    return step


def _without_derivatives(g: Graph, ids: np.ndarray, code: int, as_integers: bool) -> int:
    def written(body: Graph, i: int) -> int:
        found = body.emit(_STOP, i)
        return _integer(body, found) if as_integers and is_float(code) else found

    (made,) = elementwise(g, [ids], [code], ids.shape, written)
    return as_block(g, made, I64 if as_integers and is_float(code) else code)


def _integer(g: Graph, x: int) -> int:
    """Emit an integer in the order of floats: compared sooner, nan last, both zeros the same.

    Of numbers below zero all bits but the first are turned over.
    """
    x = g.emit(CODES["f64"], x) if g.dtype[x] == F32 else x
    zero = g.const(0.0, F64)
    bits = g.emit(CODES["bits"], g.emit(_SELECT, g.emit(_EQ, x, zero), zero, x))
    signs = g.emit(CODES["shr"], bits, g.const(63, I64))
    turned = g.emit(CODES["xor"], bits, g.emit(CODES["lshr"], signs, g.const(1, I64)))
    return g.emit(_SELECT, g.emit(_EQ, x, x), turned, g.const(2**63 - 1, I64))


def _exchanged(
    g: Graph, records: Sequence[int], stage: Sequence[int], shape: tuple[int, ...], before: Before
) -> list[int]:
    """Emit one stage: every element becomes its own or its partner's, in all columns."""
    body, count = Graph(), shape[1]
    wholes = [body.input(g.dtype[i]) for i in records]
    mine = tuple(body.input(item_type(g.dtype[i])) for i in records)
    p, r, d = (body.input(I64) for _ in stage)
    row, j = body.input(I64), body.input(I64)
    up, down = body.emit(_ADD, j, d), body.emit(_SUB, j, d)
    low = body.emit(_AND, _is_first(body, j, p, r), body.emit(_LT, up, body.const(count, I64)))
    high = body.emit(_AND, _is_first(body, down, p, r), body.emit(_LE, body.const(0, I64), down))
    partner = body.emit(_SELECT, low, up, body.emit(_SELECT, high, down, j))
    at = body.emit(_ADD, body.emit(_MUL, row, body.const(count, I64)), partner)
    other = tuple(body.element(whole, at) for whole in wholes)
    first = tuple(body.emit(_SELECT, low, x, y) for x, y in zip(mine, other))
    second = tuple(body.emit(_SELECT, low, y, x) for x, y in zip(mine, other))
    swap = body.emit(_AND, body.emit(_OR, low, high), before(body, second, first))
    body.outputs = [body.emit(_SELECT, swap, y, x) for x, y in zip(mine, other)]
    line = Affine(0, row_major(shape))
    reads = [None] * len(records) + [line] * len(records) + [None] * len(stage)
    return loops(g, [*records, *records, *stage], reads, body, shape)


def _is_first(g: Graph, i: int, p: int, r: int) -> int:
    return g.emit(_EQ, g.emit(_AND, i, p), r)


# ---- networks and search ------------------------------------------------------------------------


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


def sort_in_nodes(flat: list[np.ndarray], by_position: bool, column: int) -> np.ndarray:
    """Sort rows of ids, exchange by exchange."""
    g = current_trace().graph
    numbers = [g.const(k, I64) for k in range(flat[0].shape[-1])]
    rows = [
        sort_keys(g, [*(f[r].tolist() for f in flat), *[numbers] * by_position])[column]
        for r in range(len(flat[0]))
    ]
    return np.array(rows, dtype=np.int64)


def sort_in_loops(flat: list[np.ndarray], keys: list[Any], column: int | None) -> np.ndarray:
    """Sort rows of ids in loops: positions, or the sorted elements of a column."""
    g = current_trace().graph
    places = sorted_positions(g, flat, [k.code for k in keys], _before)
    return places if column is None else gather_along(g, flat[column], keys[column].code, places)


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


def count_traced(a: Any, v: Any, side: str) -> Any:
    """Count as ``count_below`` does, in a traced table, one comparison per entry."""
    trace = current_trace()
    if uses_loops(trace.graph, a.size, trace.elements_of(a)):
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
