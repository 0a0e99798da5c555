"""References: numbers that stand for the elements of blocks without being nodes.

A recorded array is an array of node ids. Where its elements lie in a block there need not be a
node for each: ids from ``FIRST`` on mean "element k of a block", so that slices, rolls, reshapes
and assignments of wide arrays remain NumPy on ids. What computes with them asks here which parts
of which blocks they are: loops read those, and a single element becomes a node when it is used.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.building import loops, pack
from archimedes.graph.dtypes import DTYPES, item_type, length_of
from archimedes.graph.program import FIRST_REFERENCE as FIRST
from archimedes.graph.program import Graph
from archimedes.graph.regions.block_regions import Move
from archimedes.graph.regions.nest import Affine, Gather

__all__ = [
    "FIRST",
    "any_reference",
    "as_block",
    "block_of",
    "constant_values",
    "is_block_like",
    "lies_in_blocks",
    "literal_zeros",
    "references",
    "scalar_ids",
    "strided_part",
]

#: A block made of more boxes than this is gathered through a table.
_MANY_BOXES = 64
#: Stands for the step between ids that belong to no run.
_APART = np.iinfo(np.int64).min


def references(g: Graph, block: int) -> np.ndarray:
    """Return references to the elements of a block, the same at each call."""
    return np.arange(first := g.first_reference(block), first + length_of(g.dtype[block]))


def any_reference(ids: np.ndarray) -> bool:
    """Tell whether some ids are references."""
    return bool(ids.size) and bool(ids.max() >= FIRST)


def scalar_ids(g: Graph, ids: np.ndarray) -> np.ndarray:
    """Return ids of nodes: an element of a block becomes one."""
    if not g.referenced or not any_reference(ids):
        return ids
    flat = [g.node_of(i) for i in ids.ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(ids.shape)


class Part(NamedTuple):
    """Elements of one block, as an affine function of an index."""

    block: int
    read: Affine


def block_of(g: Graph, ids: np.ndarray) -> int | None:
    """Return the block whose elements all these references are, if there is one."""
    low, high = int(ids.min()), int(ids.max())
    if low < FIRST:
        return None
    at = bisect_right(g.reference_starts, low) - 1
    block = g.referenced[at]
    inside = high < g.reference_starts[at] + length_of(g.dtype[block])
    return block if inside else None


def strided_part(g: Graph, ids: np.ndarray) -> Part | None:
    """Return which affine part of a block some references are, if they are one."""
    block = block_of(g, ids)
    if block is None:
        return None
    corner = (0,) * ids.ndim
    first = int(ids[corner])
    strides, line = [], first
    expected: np.ndarray | int = first
    for axis, n in enumerate(ids.shape):
        step = int(ids[(*corner[:axis], 1, *corner[axis + 1 :])]) - first if n > 1 else 0
        strides.append(step)
        if n > 1:
            steps = np.arange(n, dtype=np.int64) * step
            expected = expected + steps.reshape((-1,) + (1,) * (ids.ndim - axis - 1))
    if not np.array_equal(np.broadcast_to(expected, ids.shape), ids):
        return None
    return Part(block, Affine(line - g.first_reference(block), tuple(strides)))


def constant_values(g: Graph, ids: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return the values of ids where all are known, else None."""
    part = ids.ravel()
    if not any_reference(part):
        value = g.value
        try:
            return np.array([value[i] for i in part.tolist()], dtype=dtype).reshape(ids.shape)
        except KeyError:
            return None
    found = np.empty(part.size, dtype=dtype)
    left = np.ones(part.size, dtype=bool)
    starts = np.array(g.reference_starts)
    home = np.searchsorted(starts, part, side="right") - 1
    for at in _different(home):
        if at < 0:
            continue
        block = g.referenced[at]
        table = g.constant_table(block)
        if table is None:
            return None
        mine = home == at
        found[mine] = table[part[mine] - starts[at]]
        left[mine] = False
    for k in np.flatnonzero(left).tolist():
        i = int(part[k])
        if i not in g.value:
            return None
        found[k] = g.value[i]
    return found.reshape(ids.shape)


def _different(home: np.ndarray) -> list[int]:
    """Return the values in an array of ints, often only one, in order."""
    if home.size and home.min() == home.max():
        return [int(home.min())]
    return np.unique(home).tolist()


def is_block_like(g: Graph, ids: np.ndarray) -> bool:
    """Tell whether at least half of some ids are elements of blocks that are not constant."""
    return 2 * _in_blocks(g, ids) >= ids.size


def lies_in_blocks(g: Graph, ids: np.ndarray) -> bool:
    """Tell the same of those ids that are no constants."""
    count = _in_blocks(g, ids)
    if not count or 2 * count >= ids.size:
        return bool(count)
    nodes = ids[ids < FIRST].tolist()
    return count >= sum(i not in g.value for i in nodes)


def _in_blocks(g: Graph, ids: np.ndarray) -> int:
    """Count the ids that are elements of blocks that are not constant."""
    if not g.referenced or not any_reference(ids):
        return 0
    home = np.searchsorted(np.array(g.reference_starts), ids.ravel(), side="right") - 1
    count = 0
    for at, times in zip(*np.unique(home[home >= 0], return_counts=True)):
        if g.constant_table(g.referenced[at]) is None:
            count += int(times)
    return count


def literal_zeros(g: Graph, ids: np.ndarray) -> np.ndarray:
    """Return, as 1.0 and 0.0, which of some ids stand for constants that are zero."""
    flat = ids.ravel()
    found = np.zeros(flat.size)
    starts = np.array(g.reference_starts, dtype=np.int64)
    home = np.searchsorted(starts, flat, side="right") - 1
    for at in _different(home):
        mine = home == at
        if at < 0:
            found[mine] = [g.value.get(i) == 0 for i in flat[mine].tolist()]
        elif (table := g.constant_table(g.referenced[at])) is not None:
            found[mine] = table[flat[mine] - starts[at]] == 0
    return found.reshape(ids.shape)


def as_block(g: Graph, ids: np.ndarray, dtype: int) -> int:
    """Return a block with the elements that ids stand for, in C order; one that exists, or a new.

    Runs of elements are copied as such. Where there are too many, all elements of one block are
    gathered through a table.
    """
    flat = np.ascontiguousarray(ids).reshape(-1)
    part = strided_part(g, flat) if flat[0] >= FIRST else None
    whole = part is not None and length_of(g.dtype[part.block]) == flat.size
    if part is not None and whole and part.read == Affine(0, (1,)):
        return part.block
    known = constant_values(g, flat, DTYPES[dtype])
    if known is not None:
        return g.block(known)
    if part is None and ids.ndim > 1 and (box := strided_part(g, ids)) is not None:
        body = Graph()
        body.outputs = [body.input(item_type(g.dtype[box.block]))]
        return loops(g, [box.block], [box.read], body, ids.shape)[0]
    block = block_of(g, flat)
    # A run has at most two changes of the step at its end: so many are too many runs.
    if block is None or np.count_nonzero(np.diff(flat, 2)) <= 2 * _MANY_BOXES:
        runs = _runs(g, flat)
        if len(runs) <= _MANY_BOXES or not any_reference(flat):
            return _packed(g, flat, runs, dtype)
    if block is None:
        return _gathered_from_several(g, flat, dtype)
    return _gathered(g, block, flat - g.first_reference(block))


def _gathered(g: Graph, block: int, places: np.ndarray) -> int:
    body = Graph()
    body.outputs = [body.input(item_type(g.dtype[block]))]
    return loops(g, [block], [Gather(places)], body, (places.size,))[0]


def _runs(g: Graph, flat: np.ndarray) -> list[tuple[int, int, int]]:
    """Cut ids into runs (start, count, step) of equal steps in one block, greedily."""
    if flat.size == 1:
        return [(0, 1, 0)]
    steps = np.diff(flat)
    home = np.searchsorted(np.array(g.reference_starts, dtype=np.int64), flat, side="right")
    # Nodes are values of their own: only the same one again is a run.
    apart = (home[:-1] != home[1:]) | ((home[:-1] == 0) & (steps != 0))
    steps = np.where(apart, _APART, steps)
    runs: list[tuple[int, int, int]] = []
    at = 0
    for end in [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), steps.size]:
        if end <= at:
            continue
        step = int(steps[at])
        if step == _APART:
            runs.extend((k, 1, 0) for k in range(at, end))
            at = end
        else:
            runs.append((at, end - at + 1, step))
            at = end + 1
    if at < flat.size:
        runs.append((at, 1, 0))
    return runs


def _packed(g: Graph, flat: np.ndarray, runs: list[tuple[int, int, int]], dtype: int) -> int:
    """Make a block of runs of ids."""
    sources: list[int] = []
    numbers: dict[int, int] = {}
    moves: list[Move] = []
    for start, count, step in runs:
        first = int(flat[start])
        to = Affine(start, (1,))
        if first < FIRST:
            source, read = first, None
        else:
            at = bisect_right(g.reference_starts, first) - 1
            source = g.referenced[at]
            base = g.reference_starts[at]
            read = Affine(first - base, (step,))
        number = numbers.setdefault(source, len(sources))
        if number == len(sources):
            sources.append(source)
        moves.append(Move(number, (count,), to, read))
    return pack(g, flat.size, dtype, sources, moves)


def _gathered_from_several(g: Graph, flat: np.ndarray, dtype: int) -> int:
    """Put all blocks and nodes that ids name one behind the other, and gather from that."""
    starts = np.array(g.reference_starts)
    home = np.searchsorted(starts, flat, side="right") - 1
    places = np.empty(flat.size, dtype=np.int64)
    sources: list[int] = []
    moves: list[Move] = []
    size = 0
    for at in _different(home):
        mine = home == at
        if at < 0:
            names, numbers = np.unique(flat[mine], return_inverse=True)
            places[mine] = size + numbers
            for k, i in enumerate(names.tolist()):
                moves.append(Move(len(sources), (1,), Affine(size + k, (1,)), None))
                sources.append(i)
            size += len(names)
            continue
        block = g.referenced[at]
        n = length_of(g.dtype[block])
        places[mine] = size + (flat[mine] - starts[at])
        moves.append(Move(len(sources), (n,), Affine(size, (1,)), Affine(0, (1,))))
        sources.append(block)
        size += n
    return _gathered(g, pack(g, size, dtype, sources, moves), places)
