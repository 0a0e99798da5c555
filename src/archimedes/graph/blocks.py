"""Programs on blocks, in short: loops and copies that derivatives and recordings are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type, length_of
from archimedes.graph.ops import BLOCK, CODES
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions.nest import PARTIALS, Nest
from archimedes.graph.regions.pack import Move, Pack
from archimedes.graph.regions.reads import Affine, Read, positions, row_major

__all__ = [
    "LONG_SUM",
    "add_blocks",
    "loops",
    "one_hot",
    "pack",
    "partials_of",
    "scalar_loop",
    "total",
]

#: A sum of so many terms is made of partial ones.
LONG_SUM = 64
_ADD, _MIN, _MAX, _EQ, _SELECT = (CODES[n] for n in ("add", "min", "max", "eq", "select"))


def partials_of(reduced: int, kept: int) -> int:
    """Return how many partial results a sum has, by its terms and the axes of its results.

    Products of matrices, which have two, are summed in order.
    """
    return PARTIALS if reduced >= LONG_SUM and kept < 2 else 1


def loops(
    g: Graph,
    ids: Sequence[int],
    reads: Sequence[Read],
    body: Graph,
    shape: Sequence[int],
    kept: int | None = None,
    combine: str = "",
    partials: int | None = None,
) -> list[int]:
    """Append a ``Nest`` and return the ids of its outputs; inputs that nothing reads are left out.

    By default all axes are kept; ``partials`` are what ``partials_of`` gives.
    """
    shape = tuple(int(n) for n in shape)
    kept = len(shape) if kept is None else kept
    if partials is None:
        partials = partials_of(math.prod(shape[kept:]), kept) if combine == "add" else 1
    live, count = set(body.live()), len(ids)
    indexed = any(i in live for i in body.inputs[count:])
    used = [k for k, i in enumerate(body.inputs[:count]) if i in live]
    axes = list(range(count, len(body.inputs))) if indexed else []
    given = [(ids[k], reads[k]) if reads[k] is None else _simple(g, ids[k], reads[k]) for k in used]
    region = Nest(
        [i for i, _ in given],
        _with_inputs(body, [*used, *axes]),
        shape,
        tuple(read for _, read in given),
        kept,
        combine,
        partials,
    )
    return g.region(region).tolist()


def _simple(g: Graph, i: int, read: Read) -> tuple[int, Read]:
    """Return what is read, and how: a table of equal entries is a number."""
    if g.op[i] == BLOCK:
        table = g.tables[g.b[i]]
        rows = table.view(np.uint8).reshape(len(table), -1)
        if (rows == rows[0]).all():
            return int(g.constants(table[:1])[0]), None
    return i, read


def _with_inputs(body: Graph, numbers: Sequence[int]) -> Graph:
    """Return a body with some of its inputs only; nothing reads the others."""
    if len(numbers) == len(body.inputs):
        return body
    made = Graph()
    inputs = {k: made.input(body.input_dtypes[k]) for k in numbers}
    made.outputs = inline(made, body, [inputs.get(k, -1) for k in range(len(body.inputs))])
    return made


def scalar_loop(
    g: Graph,
    ids: Sequence[int],
    make: Callable[..., int],
    shape: Sequence[int],
    reads: Sequence[Read],
) -> int:
    """Append an elementwise loop: ``make(body, *inputs)`` returns the id of its result."""
    body = Graph()
    kinds = [g.dtype[i] if r is None else item_type(g.dtype[i]) for i, r in zip(ids, reads)]
    body.outputs = [make(body, *(body.input(kind) for kind in kinds))]
    return loops(g, ids, reads, body, shape)[0]


def add_blocks(g: Graph, a: int, b: int) -> int:
    """Append the sum of two blocks."""
    line = Affine(0, (1,))
    length = length_of(g.dtype[a])
    return scalar_loop(g, [a, b], lambda e, x, y: e.emit(_ADD, x, y), (length,), (line, line))


def total(g: Graph, block: int, read: Affine, shape: Sequence[int]) -> int:
    """Append the sum of some elements of a block."""
    body = Graph()
    body.outputs = [body.input(item_type(g.dtype[block]))]
    return loops(g, [block], [read], body, shape, kept=0, combine="add")[0]


def one_hot(g: Graph, length: int, index: int, value: int) -> int:
    """Append a block that has a value at an index (clamped) and is zero elsewhere."""
    body = Graph()
    at, x, k = body.input(I64), body.input(g.dtype[value]), body.input(I64)
    low, high = body.const(0, I64), body.const(length - 1, I64)
    place = body.emit(_MIN, body.emit(_MAX, at, low), high)
    zero = body.const(0, body.dtype[x])
    body.outputs = [body.emit(_SELECT, body.emit(_EQ, place, k), x, zero)]
    return loops(g, [index, value], [None, None], body, (length,))[0]


def pack(g: Graph, length: int, dtype: int, sources: Sequence[int], moves: Sequence[Move]) -> int:
    """Append a block made of boxes; one that is a whole block is that block, constants a table."""
    if len(moves) == 1:
        (source, shape, to, start) = moves[0]
        whole = Affine(0, row_major(shape))
        if start == whole and to == whole and math.prod(shape) == length:
            i = sources[source]
            if g.dtype[i] == block_type(dtype, length):
                return i
    if all(m.start is None and sources[m.source] in g.value for m in moves):
        table = np.zeros(length, dtype=DTYPES[dtype])
        for source, shape, to, _ in moves:
            table[positions(to, shape)] = g.value[sources[source]]
        return g.block(table)
    return int(g.region(Pack(list(sources), length, dtype, tuple(moves)))[0])
