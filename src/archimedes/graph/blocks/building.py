"""Short ways to append loops and copies of blocks to a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from archimedes.graph.dtypes import B8, DTYPES, I64, block_type, item_type, length_of
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Move, Nest, Pack
from archimedes.graph.regions.block_regions import PARTIALS, Read, positions, row_major

#: A sum of so many terms is made of partial ones.
LONG_SUM = 64
_ADD, _MIN, _MAX, _EQ, _SELECT = (CODES[n] for n in ("add", "min", "max", "eq", "select"))
#: Reads all elements of a block, one after the other.
_LINE = Affine(0, (1,))


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
    operands = [_simplify_read(g, i, read) for i, read in zip(ids, reads)]
    body, operands = _specialize_body(g, body, operands)
    # Results that are constants are tables.
    constant = {
        k: g.const(body.value[i], block_type(body.dtype[i], math.prod(shape)))
        for k, i in enumerate(body.outputs)
        if kept and not combine and i in body.value
    }
    if len(constant) == len(body.outputs):
        return list(constant.values())
    inputs, own_reads = [i for i, _ in operands], tuple(read for _, read in operands)
    outs = g.region(Nest(inputs, body, shape, own_reads, kept, combine, partials)).tolist()
    return [constant.get(k, i) for k, i in enumerate(outs)]


def _simplify_read(g: Graph, i: int, read: Read) -> tuple[int, Read]:
    """Return an operand and how it is read; a table of equal entries becomes a number."""
    if read is not None and (table := g.constant_table(i)) is not None:
        rows = table.view(np.uint8).reshape(len(table), -1)
        if (rows == rows[0]).all():
            return int(g.constants(table[:1])[0]), None
    return i, read


def _specialize_body(
    g: Graph, body: Graph, operands: list[tuple[int, Read]]
) -> tuple[Graph, list[tuple[int, Read]]]:
    """Return a body without inputs that nothing reads, with constants inside; and its operands."""
    live, count = set(body.live()), len(operands)
    read = [k for k, i in enumerate(body.inputs[:count]) if i in live]
    used = [k for k in read if operands[k][0] not in g.value]
    indexed = any(i in live for i in body.inputs[count:])
    if len(used) == count and (indexed or len(body.inputs) == count):
        return body, operands
    special, kinds = Graph(), body.input_dtypes
    inputs = [-1] * len(body.inputs)
    for k in (*used, *(range(count, len(inputs)) if indexed else ())):
        inputs[k] = special.input(kinds[k])
    for k in set(read).difference(used):
        inputs[k] = special.const(g.value[operands[k][0]], kinds[k])
    special.outputs = inline(special, body, inputs)
    operands = [operands[k] for k in used]
    again = set(special.live())
    if all(i in again for i in special.inputs[: len(used)]):
        return special, operands
    # What is constant now may have left other inputs unread.
    return _specialize_body(g, special, operands)


def scalar_loop(
    g: Graph,
    ids: Sequence[int],
    make: Callable[..., int],
    shape: Sequence[int],
    reads: Sequence[Read],
) -> int:
    """Append an elementwise loop: ``make(body, *inputs)`` returns the id of its result."""
    kinds = [g.dtype[i] if r is None else item_type(g.dtype[i]) for i, r in zip(ids, reads)]
    body = Graph.with_inputs(kinds)
    body.outputs = [make(body, *body.inputs)]
    return loops(g, ids, reads, body, shape)[0]


def element_loop(
    g: Graph,
    block: int,
    read: Read,
    shape: Sequence[int],
    kept: int | None = None,
    combine: str = "",
) -> int:
    """Append a loop that copies elements of a block, or combines them along the last axes."""
    body = Graph.with_inputs([item_type(g.dtype[block])])
    body.outputs = list(body.inputs)
    return loops(g, [block], [read], body, shape, kept, combine)[0]


def total(g: Graph, block: int, read: Affine, shape: Sequence[int]) -> int:
    """Append the sum of some elements of a block."""
    return element_loop(g, block, read, shape, kept=0, combine="add")


def each(g: Graph, code: int, *ids: int) -> int:
    """Apply an op to numbers, or to the elements of blocks of one length."""
    length = length_of(g.dtype[ids[0]])
    if not length:
        return g.emit(code, *ids)
    reads = [_LINE] * len(ids)
    return scalar_loop(g, ids, lambda body, *operands: body.emit(code, *operands), (length,), reads)


def add_values(g: Graph, a: int, b: int) -> int:
    """Append the sum of two scalars, or of two blocks."""
    return each(g, _ADD, a, b) if g.dtype[a] > B8 else g.emit(_ADD, a, b)


def one_hot(g: Graph, length: int, index: int, value: int) -> int:
    """Append a block that has a value at an index (clamped) and is zero elsewhere."""
    body = Graph.with_inputs([I64, g.dtype[value], I64])
    at, x, k = body.inputs
    low, high = body.const(0, I64), body.const(length - 1, I64)
    clamped = body.emit(_MIN, body.emit(_MAX, at, low), high)
    zero = body.const(0, body.dtype[x])
    body.outputs = [body.emit(_SELECT, body.emit(_EQ, clamped, k), x, zero)]
    return loops(g, [index, value], [None, None], body, (length,))[0]


def pack(g: Graph, length: int, dtype: int, sources: Sequence[int], moves: Sequence[Move]) -> int:
    """Append a block that is put together from boxes.

    A box that is a whole block is returned as it is, and constants become a table.
    """
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


def concatenate(g: Graph, ids: Sequence[int]) -> int:
    """Append a block that holds scalars and blocks of one dtype, one after the other."""
    moves, at = [], 0
    for k, i in enumerate(ids):
        length = length_of(g.dtype[i])
        moves.append(Move(k, (length or 1,), Affine(at, (1,)), _LINE if length else None))
        at += length or 1
    return pack(g, at, item_type(g.dtype[ids[0]]), ids, moves)
