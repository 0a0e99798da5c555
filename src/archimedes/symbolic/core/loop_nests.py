"""When arrays are recorded as loops, elementwise operations, and the loops of other operations.

The elements of a recorded array have ids: each is that of a node, or a reference to an element of
a block (``graph/blocks/references.py``). A small array is *scalarized*: what is computed of it is
a node for each element. What is computed of a longer one is a loop over blocks, whose results are
references again. ``elementwise`` chooses between the two; NumPy's functions need not know.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import (
    FIRST,
    as_block,
    is_block_like,
    references,
    scalar_ids,
    strided_part,
)
from archimedes.graph.dtypes import B8, I64, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.graph.regions.block_regions import Affine, Read, row_major

_MIN, _MAX, _ADD, _MUL, _EQ, _LE, _LT, _AND, _SELECT = (
    CODES[name] for name in ("min", "max", "add", "mul", "eq", "le", "lt", "and", "select")
)
# NumPy's own, also while names in its module are replaced (``recorded/numpy_patching.py``).
_array, _empty = np.array, np.empty
_ID = np.dtype(np.int64)
#: Arrays of so many elements may be blocks: what is computed of a block is a loop.
LOOP_SIZE = 64
#: Arrays of so many times that many elements always are: nodes of their elements are put together
#: to a block. Below, an array that was made element by element stays so: its literal zeros and its
#: simplifications count, and its code is short.
ALWAYS_FACTOR = 64

#: What is computed of one element: an opcode, or a function that emits nodes of a graph.
Make = int | Callable[..., int | Sequence[int]]


# ---- rules -------------------------------------------------------------------------------------


class LoopRules(NamedTuple):
    """What is recorded as loops: arrays of ``elements``, any array of ``always_factor`` times that
    many, and, if ``sparse``, products with sparse matrices.
    """

    elements: int = LOOP_SIZE
    always_factor: int = ALWAYS_FACTOR
    sparse: bool = False


class _State(threading.local):
    rules = LoopRules()


_state = _State()


def loop_rules() -> LoopRules:
    """Return what is recorded as loops in this thread."""
    return _state.rules


def loop_threshold() -> int:
    """Return the number of elements from which arrays may be recorded as loops."""
    return _state.rules.elements


def is_long(size: int) -> bool:
    """Return whether an array of so many elements may be recorded as a loop."""
    return size >= _state.rules.elements


def uses_loops(g: Graph, size: int, *arrays: np.ndarray, weight: int = 1) -> bool:
    """Return whether so many elements, computed from arrays of ids, are computed by a loop.

    They are if there are very many, or if at least half of the elements of one array lie in a
    block. ``weight`` is what an element costs, in operations.
    """
    threshold, always_factor, _ = _state.rules
    if size < threshold:
        return False
    if size * weight >= threshold * always_factor:
        return True
    return any(2 * ids.size >= threshold and is_block_like(g, ids) for ids in arrays)


@contextmanager
def _change_rules(**changes: Any) -> Iterator[None]:
    before = _state.rules
    _state.rules = before._replace(**changes)
    try:
        yield
    finally:
        _state.rules = before


def sparse_loops() -> AbstractContextManager[None]:
    """Record products with sparse matrices as loops, in this thread: for short code."""
    return _change_rules(sparse=True)


def loops_from(elements: int, always_factor: int = ALWAYS_FACTOR) -> AbstractContextManager[None]:
    """Record arrays as loops from another number of elements on, in this thread."""
    return _change_rules(elements=elements, always_factor=always_factor)


def constant_ids(g: Graph, array: np.ndarray) -> np.ndarray:
    """Return ids, in the array's shape, of the numbers in an array: a long one is a table."""
    if not is_long(array.size):
        return g.constants(array)
    return references(g, g.block(np.ascontiguousarray(array).reshape(-1))).reshape(array.shape)


# ---- loops -------------------------------------------------------------------------------------


class LoopBuilder:
    """A loop over an index space of some shape: what it reads, and the graph of its body."""

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
                return self.body.literal(table[0].item(), dtype)
        strides = [0] * len(self.shape)
        for axis, n, stride in zip(axes, ids.shape, read.strides):
            if n > 1:
                strides[axis] = stride
        return self._input(block, Affine(read.offset, tuple(strides)), item_type(g.dtype[block]))

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

    def append(
        self, outputs: Sequence[int], free: int | None = None, combine: str = ""
    ) -> list[np.ndarray]:
        """Append the loop with these nodes of its body as results, and return the results' ids.

        With ``combine``, values are combined along all axes but the first ``free``.
        """
        self.body.outputs = list(outputs)
        blocks = loops(self.g, self.ids, self.reads, self.body, self.shape, free, combine)
        shape = self.shape[:free]
        if not shape:
            return [_array(block, dtype=_ID) for block in blocks]
        return [references(self.g, block).reshape(shape) for block in blocks]


def elementwise(
    g: Graph,
    operands: Sequence[np.ndarray],
    dtypes: Sequence[int],
    shape: tuple[int, ...],
    make: Make,
    blocks: Sequence[int] = (),
    weight: int = 1,
    results: int = 1,
) -> list[np.ndarray]:
    """Return ids of ``make(graph, *elements, *blocks)`` for arrays that broadcast to a shape.

    ``make`` gives as many ids as there are ``results``; it reads elements of ``blocks`` itself.
    ``weight`` is what an element costs, in operations: 0 means that there is never a loop.
    """
    if weight:
        size = math.prod(shape)
        if uses_loops(g, size, *operands, weight=weight) or (blocks and is_long(size)):
            return loop_elementwise(g, operands, dtypes, shape, make, blocks)
    if isinstance(make, int) and shape == () and not g.referenced:  # one number, the quick way
        return [_array(g.emit(make, *[ids.item() for ids in operands]), dtype=_ID)]
    columns = [_nodes(g, ids, shape) for ids in operands]
    if isinstance(make, int):
        return [_array([*map(g.emit, repeat(make), *columns)], dtype=_ID).reshape(shape)]
    flat = [make(g, *row, *blocks) for row in zip(*columns)]
    several = [flat] if results == 1 else list(zip(*flat)) or [()] * results
    return [_array(one, dtype=_ID).reshape(shape) for one in several]


def _nodes(g: Graph, ids: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    """Return the nodes of the elements of an array that broadcasts to a shape, in C order."""
    if g.referenced:
        ids = scalar_ids(g, ids)
    if ids.shape != shape:
        spread = _empty(shape, _ID)
        spread[...] = ids
        ids = spread
    return ids.tolist() if ids.ndim == 1 else ids.ravel().tolist()


def loop_elementwise(
    g: Graph,
    operands: Sequence[np.ndarray],
    dtypes: Sequence[int],
    shape: tuple[int, ...],
    make: Make,
    blocks: Sequence[int] = (),
) -> list[np.ndarray]:
    """Return the same as ``elementwise``, always by a loop."""
    loop = LoopBuilder(g, shape)
    inputs = [loop.operand(ids, code) for ids, code in zip(operands, dtypes)]
    inputs += [loop.whole(block) for block in blocks]
    outputs = loop.body.emit(make, *inputs) if isinstance(make, int) else make(loop.body, *inputs)
    return loop.append([outputs] if isinstance(outputs, int) else outputs)


def loop_reduce(
    g: Graph,
    operands: Sequence[tuple[np.ndarray, int, Sequence[int]]],
    shape: tuple[int, ...],
    free: int,
    make: Callable[..., int],
    combine: str,
    indexed: bool = False,
) -> np.ndarray:
    """Append a loop that combines values along all axes but the first ``free``.

    Operands are ids, their dtype, and for each of their axes the axis of the index space; if
    ``indexed``, ``make`` also gets the index along each axis. Returns ids in the shape of the kept
    axes.
    """
    loop = LoopBuilder(g, shape)
    inputs = [loop.operand(ids, code, axes) for ids, code, axes in operands]
    if indexed:
        inputs += [loop.body.input(I64) for _ in shape]
    (ids,) = loop.append([make(loop.body, *inputs)], free, combine)
    return ids


# ---- elements at traced positions --------------------------------------------------------------


class TracedAxis(NamedTuple):
    """Ids of coordinates along an axis of ``size`` elements, which are ``stride`` apart."""

    ids: np.ndarray
    stride: int
    size: int


def gather(
    g: Graph, ids: np.ndarray, code: int, static: np.ndarray, axes: Sequence[TracedAxis]
) -> np.ndarray:
    """Return ids of elements of a block: at static positions plus what traced axes add.

    Coordinates outside their axis are clamped to its ends.
    """

    def read(body: Graph, position: int, *row: int) -> int:
        for axis, i in zip(axes, row):
            clamped = body.emit(_MIN, i, body.const(axis.size - 1, I64))
            clamped = body.emit(_MAX, clamped, body.const(0, I64))
            step = body.emit(_MUL, clamped, body.const(axis.stride, I64))
            position = body.emit(_ADD, position, step)
        return body.element(row[-1], position)

    operands = [constant_ids(g, static), *(axis.ids for axis in axes)]
    block = as_block(g, ids, code)
    (elements,) = elementwise(g, operands, [I64] * len(operands), static.shape, read, [block])
    return elements


def gather_along(g: Graph, ids: np.ndarray, code: int, positions: np.ndarray) -> np.ndarray:
    """Return ids of elements of each row of ids (rows, n), at positions (rows, k)."""
    rows, n = ids.shape
    starts = np.broadcast_to(np.arange(rows)[:, None] * n, positions.shape).reshape(-1)
    axis = TracedAxis(positions.reshape(-1), 1, n)
    return gather(g, ids, code, starts, [axis]).reshape(positions.shape)


def flat_positions(g: Graph, static: np.ndarray, axes: Sequence[TracedAxis]) -> np.ndarray:
    """Return ids of positions: static ones plus what traced axes add, -1 outside an axis."""

    def position(body: Graph, total: int, *row: int) -> int:
        inside = body.const(True, B8)
        for axis, i in zip(axes, row):
            low = body.emit(_LE, body.const(0, I64), i)
            high = body.emit(_LT, i, body.const(axis.size, I64))
            inside = body.emit(_AND, inside, body.emit(_AND, low, high))
            total = body.emit(_ADD, total, body.emit(_MUL, i, body.const(axis.stride, I64)))
        return body.emit(_SELECT, inside, total, body.const(-1, I64))

    operands = [constant_ids(g, static), *(axis.ids for axis in axes)]
    (ids,) = elementwise(g, operands, [I64] * len(operands), static.shape, position)
    return ids


def scatter(
    g: Graph,
    ids: np.ndarray,
    code: int,
    static: np.ndarray,
    axes: Sequence[TracedAxis],
    values: Sequence[int],
) -> np.ndarray:
    """Return ids of a block with values written to some of its elements, one after the other.

    A coordinate outside its axis writes nothing.
    """
    flat = np.ascontiguousarray(ids).reshape(-1)
    positions = _nodes(g, flat_positions(g, static, axes), static.shape)
    for position, value in zip(positions, values):
        loop = LoopBuilder(g, flat.shape)
        at = loop.operand(np.array(position), I64)
        new, old = loop.operand(np.array(value), code), loop.operand(flat, code)
        is_here = loop.body.emit(_EQ, at, loop.body.input(I64))
        (flat,) = loop.append([loop.body.emit(_SELECT, is_here, new, old)])
    return flat.reshape(ids.shape)
