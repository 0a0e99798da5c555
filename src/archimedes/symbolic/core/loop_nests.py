"""Wide arrays: from so many elements on, what is computed of an array is a loop, not nodes.

``elementwise`` and ``reduction`` append loops over the blocks whose elements the ids of arrays
stand for (``graph/references.py``); what they return are references again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import (
    FIRST,
    as_block,
    is_block_like,
    references,
    strided_part,
)
from archimedes.graph.dtypes import B8, I64, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions.nest import Affine, Read, row_major

__all__ = [
    "LoopRules",
    "Reads",
    "TracedAxis",
    "constant_ids",
    "each",
    "each_with",
    "elementwise",
    "elementwise_along",
    "flat_positions",
    "gather",
    "gather_along",
    "is_long",
    "loop_reduce",
    "loop_rules",
    "loop_threshold",
    "loops_from",
    "scatter",
    "sparse_loops",
    "uses_loops",
]

_MIN, _MAX, _ADD, _MUL, _EQ, _LE, _LT, _AND, _SELECT = (
    CODES[name] for name in ("min", "max", "add", "mul", "eq", "le", "lt", "and", "select")
)
#: Arrays of so many elements may be blocks: what is computed of a block is a loop.
LOOP_SIZE = 64
#: From so many times that on, loops are made of any array; nodes of its own elements are put
#: together to a block. Below, an array that was made element by element stays so: its literal
#: zeros and its simplifications count, and its code is short.
ALWAYS_FACTOR = 64


class _Threshold(threading.local):
    elements = LOOP_SIZE
    anyway = ALWAYS_FACTOR
    sparse = False


_threshold = _Threshold()


def loop_threshold() -> int:
    """Return the number of elements from which arrays are recorded as loops."""
    return _threshold.elements


class LoopRules(NamedTuple):
    """What is recorded as loops: arrays of so many elements, any of so many times that, sparse
    products.
    """

    elements: int
    anyway: int
    sparse: bool


def loop_rules() -> LoopRules:
    """Return what is recorded as loops in this thread."""
    return LoopRules(_threshold.elements, _threshold.anyway, _threshold.sparse)


def is_long(size: int) -> bool:
    """Tell whether an array of so many elements is recorded as a loop."""
    return size >= _threshold.elements


def uses_loops(g: Graph, size: int, *arrays: np.ndarray, weight: int = 1) -> bool:
    """Tell whether what has so many elements, made of arrays of ids, is computed by a loop.

    It is where that many are wide, and where half of the elements of an array lie in a block.
    ``weight`` is what an element costs, in operations.
    """
    if size < _threshold.elements:
        return False
    if size * weight >= _threshold.elements * _threshold.anyway:
        return True
    return any(2 * ids.size >= _threshold.elements and is_block_like(g, ids) for ids in arrays)


@contextmanager
def sparse_loops() -> Iterator[None]:
    """Record products with sparse matrices as loops, in this thread: for short code."""
    before, _threshold.sparse = _threshold.sparse, True
    try:
        yield
    finally:
        _threshold.sparse = before


@contextmanager
def loops_from(elements: int, anyway: int = ALWAYS_FACTOR) -> Iterator[None]:
    """Record arrays as loops from another number of elements on, in this thread."""
    before = _threshold.elements, _threshold.anyway
    _threshold.elements, _threshold.anyway = elements, anyway
    try:
        yield
    finally:
        _threshold.elements, _threshold.anyway = before


def constant_ids(g: Graph, array: np.ndarray) -> np.ndarray:
    """Return ids, in the array's shape, of the numbers in an array: a wide one is a table."""
    if not is_long(array.size):
        return g.constants(array)
    return references(g, g.block(np.ascontiguousarray(array).reshape(-1))).reshape(array.shape)


class Reads:
    """What a loop reads: ids and reads of its inputs, and the inputs of its body."""

    def __init__(self, g: Graph, shape: tuple[int, ...]) -> None:
        self.g, self.shape = g, shape
        self.ids: list[int] = []
        self.reads: list[Read] = []
        self.body = Graph()

    def operand(self, ids: np.ndarray, dtype: int, axes: Sequence[int] | None = None) -> int:
        """Return the body's input (or constant) for an array of ids that broadcasts to the shape.

        ``axes`` says for each axis of ids which axis of the index space it is (default: the last
        ones).
        """
        g = self.g
        if axes is None:
            axes = range(len(self.shape) - ids.ndim, len(self.shape))
        if 0 in ids.strides:  # broadcast: one of each is enough
            ids = ids[tuple(slice(None) if step else slice(1) for step in ids.strides)]
        low, high = int(ids.min()), int(ids.max())
        if low == high:
            return self.scalar(g.node_of(low))
        part = strided_part(g, ids) if low >= FIRST else None
        if part is None:
            block, read = as_block(g, ids, dtype), Affine(0, row_major(ids.shape))
        else:
            block, read = part
            table = g.constant_table(block)
            is_one_number = table is not None and (table == table[0]).all()
            if table is not None and is_one_number and not np.signbit(table).any():
                return self.body.const(table[0].item(), dtype)
        places = [0] * len(self.shape)
        for axis, n, stride in zip(axes, ids.shape, read.strides):
            if n > 1:
                places[axis] = stride
        return self._input(block, Affine(read.offset, tuple(places)), item_type(g.dtype[block]))

    def whole(self, block: int) -> int:
        """Return the body's input for a block that it reads element by element."""
        return self._input(block, None, self.g.dtype[block])

    def scalar(self, i: int) -> int:
        """Return the body's input (or constant) for a node, the same at every point."""
        if i in self.g.value:
            return self.body.const(self.g.value[i], self.g.dtype[i])
        return self._input(i, None, self.g.dtype[i])

    def _input(self, i: int, read: Read, kind: int) -> int:
        for k, (old, how) in enumerate(zip(self.ids, self.reads)):
            if old == i and how == read:
                return self.body.inputs[k]
        self.ids.append(i)
        self.reads.append(read)
        return self.body.input(kind)


def elementwise(
    g: Graph,
    operands: Sequence[np.ndarray],
    dtypes: Sequence[int],
    shape: tuple[int, ...],
    make: Callable[..., int | Sequence[int]],
) -> list[np.ndarray]:
    """Append a loop over arrays of ids; ``make(body, *inputs)`` gives the id(s) of its results.

    Returns references to the results, in the given shape.
    """
    reads = Reads(g, shape)
    inputs = [reads.operand(ids, code) for ids, code in zip(operands, dtypes)]
    made = make(reads.body, *inputs)
    reads.body.outputs = [made] if isinstance(made, int) else list(made)
    blocks = loops(g, reads.ids, reads.reads, reads.body, shape)
    return [references(g, block).reshape(shape) for block in blocks]


def elementwise_along(
    g: Graph,
    operands: Sequence[tuple[np.ndarray, int, Sequence[int]]],
    shape: tuple[int, ...],
    make: Callable[..., int],
) -> list[np.ndarray]:
    """Append a loop over operands as ``reduction`` takes them; nothing is combined."""
    reads = Reads(g, shape)
    inputs = [reads.operand(ids, code, axes) for ids, code, axes in operands]
    reads.body.outputs = [make(reads.body, *inputs)]
    (block,) = loops(g, reads.ids, reads.reads, reads.body, shape)
    return [references(g, block).reshape(shape)]


def each(
    g: Graph,
    operands: Sequence[np.ndarray],
    dtypes: Sequence[int],
    shape: tuple[int, ...],
    make: Callable[..., int],
) -> np.ndarray:
    """Return ids of ``make(graph, *elements)`` for the elements of arrays of ids that broadcast.

    A loop where they are wide, nodes where they are not.
    """
    return each_with(g, operands, dtypes, (), shape, make)


def each_with(
    g: Graph,
    operands: Sequence[np.ndarray],
    dtypes: Sequence[int],
    blocks: Sequence[int],
    shape: tuple[int, ...],
    make: Callable[..., int],
) -> np.ndarray:
    """Return the same where ``make`` also gets blocks, whose elements it reads itself."""
    size = math.prod(shape)
    if not (uses_loops(g, size, *operands) or (blocks and is_long(size))):
        columns = [_nodes(g, np.broadcast_to(ids, shape)) for ids in operands]
        flat = [make(g, *row, *blocks) for row in zip(*columns)]
        return np.array(flat, dtype=np.int64).reshape(shape)
    reads = Reads(g, shape)
    inputs = [reads.operand(ids, code) for ids, code in zip(operands, dtypes)]
    inputs += [reads.whole(block) for block in blocks]
    reads.body.outputs = [make(reads.body, *inputs)]
    return references(g, loops(g, reads.ids, reads.reads, reads.body, shape)[0]).reshape(shape)


def loop_reduce(
    g: Graph,
    operands: Sequence[tuple[np.ndarray, int, Sequence[int]]],
    shape: tuple[int, ...],
    kept: int,
    make: Callable[..., int],
    combine: str,
    indexed: bool = False,
) -> np.ndarray:
    """Append a loop that combines along all axes but the first ``kept``.

    Operands are ids, their dtype, and for each of their axes the axis of the index space; if
    ``indexed``, ``make`` also gets the index along each axis. Returns ids in the shape of the kept
    axes.
    """
    reads = Reads(g, shape)
    inputs = [reads.operand(ids, code, axes) for ids, code, axes in operands]
    if indexed:
        inputs += [reads.body.input(I64) for _ in shape]
    reads.body.outputs = [make(reads.body, *inputs)]
    (made,) = loops(g, reads.ids, reads.reads, reads.body, shape, kept, combine)
    return references(g, made).reshape(shape[:kept]) if kept else np.array(made, dtype=np.int64)


class TracedAxis(NamedTuple):
    """Ids of coordinates along one axis, which has so many places, so many elements apart."""

    ids: np.ndarray
    stride: int
    size: int


def _position(
    g: Graph, start: int, columns: Sequence[TracedAxis], coordinates: Sequence[int]
) -> int:
    """Emit where an element is; coordinates outside their axis are clamped to its ends."""
    total = start
    for column, i in zip(columns, coordinates):
        inside = g.emit(_MAX, g.emit(_MIN, i, g.const(column.size - 1, I64)), g.const(0, I64))
        total = g.emit(_ADD, total, g.emit(_MUL, inside, g.const(column.stride, I64)))
    return total


def gather(
    g: Graph, ids: np.ndarray, code: int, static: np.ndarray, columns: Sequence[TracedAxis]
) -> np.ndarray:
    """Return ids of elements of a wide array: at static positions plus what columns add."""
    block = as_block(g, ids, code)
    if not is_long(static.size):
        flat = [
            g.element(block, _position(g, g.const(start, I64), columns, row))
            for start, *row in zip(static.tolist(), *(_nodes(g, c.ids) for c in columns))
        ]
        return np.array(flat, dtype=np.int64)
    reads = Reads(g, static.shape)
    source = reads.whole(block)
    start = reads.operand(constant_ids(g, static), I64)
    coordinates = [reads.operand(column.ids, I64) for column in columns]
    place = _position(reads.body, start, columns, coordinates)
    reads.body.outputs = [reads.body.element(source, place)]
    return references(g, loops(g, reads.ids, reads.reads, reads.body, static.shape)[0])


def gather_along(g: Graph, ids: np.ndarray, code: int, positions: np.ndarray) -> np.ndarray:
    """Return ids of elements of each row of ids (rows, n), at positions (rows, k)."""
    rows, n = ids.shape
    starts = np.broadcast_to(np.arange(rows)[:, None] * n, positions.shape).reshape(-1)
    column = TracedAxis(positions.reshape(-1), 1, n)
    return gather(g, ids, code, starts, [column]).reshape(positions.shape)


def _nodes(g: Graph, ids: np.ndarray) -> list[int]:
    """Return nodes for ids that may be references."""
    return [g.node_of(i) for i in ids.ravel().tolist()]


def scatter(
    g: Graph,
    ids: np.ndarray,
    code: int,
    static: np.ndarray,
    columns: Sequence[TracedAxis],
    values: Sequence[int],
) -> np.ndarray:
    """Return ids of a wide array with values written to some of its elements, one after the other.

    A coordinate outside its axis writes nothing.
    """
    flat = np.ascontiguousarray(ids).reshape(-1)
    rows = zip(static.tolist(), *(_nodes(g, column.ids) for column in columns))
    for (start, *row), value in zip(rows, values):
        at = _place_or_none(g, columns, g.const(start, I64), row)
        flat = _with_one(g, flat, code, at, value)
    return flat.reshape(ids.shape)


def _place_or_none(g: Graph, columns: Sequence[TracedAxis], at: int, row: Sequence[int]) -> int:
    """Emit where an element is, -1 where a coordinate is outside its axis."""
    inside = g.const(True, B8)
    for column, i in zip(columns, row):
        low = g.emit(_LE, g.const(0, I64), i)
        high = g.emit(_LT, i, g.const(column.size, I64))
        inside = g.emit(_AND, inside, g.emit(_AND, low, high))
        at = g.emit(_ADD, at, g.emit(_MUL, i, g.const(column.stride, I64)))
    return g.emit(_SELECT, inside, at, g.const(-1, I64))


def flat_positions(g: Graph, static: np.ndarray, columns: Sequence[TracedAxis]) -> np.ndarray:
    """Return ids of positions, static ones plus what columns add; -1 outside an axis."""

    def place(body: Graph, start: int, *row: int) -> int:
        return _place_or_none(body, columns, start, row)

    operands = [constant_ids(g, static), *(column.ids for column in columns)]
    return each(g, operands, [I64] * len(operands), static.shape, place)


def _with_one(g: Graph, flat: np.ndarray, code: int, at: int, value: int) -> np.ndarray:
    reads = Reads(g, flat.shape)
    place, new, old = (
        reads.operand(np.array(at), I64),
        reads.operand(np.array(value), code),
        reads.operand(flat, code),
    )
    body = reads.body
    here = body.emit(_EQ, place, body.input(I64))
    body.outputs = [body.emit(_SELECT, here, new, old)]
    return references(g, loops(g, reads.ids, reads.reads, body, flat.shape)[0])
