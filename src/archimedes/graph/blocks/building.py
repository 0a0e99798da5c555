"""Programs on blocks, in short: loops and copies that derivatives and recordings are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type, length_of
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions.block_regions import Move, Pack
from archimedes.graph.regions.nest import PARTIALS, Affine, Nest, Read, positions, row_major

__all__ = [
    "LONG_SUM",
    "add_blocks",
    "add_values",
    "each",
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


def each(g: Graph, code: int, i: int) -> int:
    """Apply an op of one operand to a number, or to each element of a block."""
    kind = g.dtype[i]
    if not length_of(kind):
        return g.emit(code, i)
    body = Graph()
    body.outputs = [body.emit(code, body.input(item_type(kind)))]
    (made,) = loops(g, [i], [Affine(0, (1,))], body, (length_of(kind),))
    return made


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
    given = [_simple(g, i, read) for i, read in zip(ids, reads)]
    body, used = _reduced(g, body, given)
    constant = {} if combine or not kept else _constant_results(g, body, math.prod(shape))
    if len(constant) < len(body.outputs):
        region = Nest(
            [given[k][0] for k in used],
            body,
            shape,
            tuple(given[k][1] for k in used),
            kept,
            combine,
            partials,
        )
        outs = g.region(region).tolist()
    else:
        outs = [-1] * len(constant)
    return [constant.get(k, i) for k, i in enumerate(outs)]


def _simple(g: Graph, i: int, read: Read) -> tuple[int, Read]:
    """Return what is read, and how: a table of equal entries is a number."""
    if read is not None and (table := g.constant_table(i)) is not None:
        rows = table.view(np.uint8).reshape(len(table), -1)
        if (rows == rows[0]).all():
            return int(g.constants(table[:1])[0]), None
    return i, read


def _reduced(g: Graph, body: Graph, given: Sequence[tuple[int, Read]]) -> tuple[Graph, list[int]]:
    """Return a body without inputs that nothing reads, with constants inside; and its inputs."""
    live, count = set(body.live()), len(given)
    read = [k for k, i in enumerate(body.inputs[:count]) if i in live]
    used = [k for k in read if given[k][0] not in g.value]
    indexed = any(i in live for i in body.inputs[count:])
    if len(used) == count and (indexed or len(body.inputs) == count):
        return body, used
    made = Graph()
    kinds = body.input_dtypes
    inputs = [-1] * len(body.inputs)
    for k in used:
        inputs[k] = made.input(kinds[k])
    for k in range(count, len(body.inputs)):
        inputs[k] = made.input(kinds[k]) if indexed else -1
    for k in set(read).difference(used):
        inputs[k] = made.const(g.value[given[k][0]], kinds[k])
    made.outputs = inline(made, body, inputs)
    again = set(made.live())
    if all(i in again for i in made.inputs[: len(used)]):
        return made, used
    # What is constant now may have left other inputs unread.
    body, kept = _reduced(g, made, [given[k] for k in used])
    return body, [used[k] for k in kept]


def _constant_results(g: Graph, body: Graph, length: int) -> dict[int, int]:
    """Return the results that are constants, as blocks, by number."""
    return {
        k: g.const(body.value[i], block_type(body.dtype[i], length))
        for k, i in enumerate(body.outputs)
        if i in body.value
    }


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


def add_values(g: Graph, a: int, b: int) -> int:
    """Append the sum of two scalars, or of two blocks."""
    return add_blocks(g, a, b) if length_of(g.dtype[a]) else g.emit(_ADD, a, b)


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
