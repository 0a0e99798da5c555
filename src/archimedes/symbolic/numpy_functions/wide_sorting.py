"""Sorting of wide arrays: the stages of a sorting network, each a loop over the array.

The network is Batcher's (``sorting.py``); pairs of one stage have no element in common, so each
element finds its partner by itself. Loops find the positions that sort an array, which are
integers and have no derivatives; the sorted array is then read at these positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.dtypes import I64, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan
from archimedes.graph.regions.reads import Affine, row_major
from archimedes.symbolic.core.wide import elementwise

__all__ = ["sorted_positions"]

_ADD, _SUB, _MUL, _AND, _OR, _LT, _LE, _EQ, _SELECT, _STOP = (
    CODES[name] for name in ("add", "sub", "mul", "and", "or", "lt", "le", "eq", "select", "stop")
)
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
    blocks = [_without_derivatives(g, ids, code) for ids, code in zip(keys, codes)]
    numbers = g.block(np.broadcast_to(np.arange(shape[1]), shape).reshape(-1).astype(np.int64))
    if shape[1] < 2:
        return references(g, numbers).reshape(shape)
    tables = [g.block(np.array(column)) for column in zip(*stages(shape[1]))]
    carried = [*blocks, numbers]
    body = Graph()
    records = [body.input(g.dtype[i]) for i in carried]
    stage = [body.input(I64) for _ in tables]
    body.outputs = _exchanged(body, records, stage, shape, before)
    count = len(g.tables[g.b[tables[0]]])
    region = Scan([*carried, *tables], body, count, len(carried), len(tables), stacked=True)
    return references(g, int(g.region(region)[len(blocks)])).reshape(shape)


def _without_derivatives(g: Graph, ids: np.ndarray, code: int) -> int:
    (made,) = elementwise(g, [ids], [code], ids.shape, lambda body, i: body.emit(_STOP, i))
    return as_block(g, made, code)


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
