"""References: ids that stand for the elements of blocks without being nodes.

A recorded array is an array of node ids. Where its elements lie in a block there need not be a
node for each: ids from ``FIRST`` on mean "element k of a block", so that slices, rolls, reshapes
and assignments of arrays remain NumPy on ids. What computes with them asks here which parts
of which blocks they are: loops read those, and a single element becomes a node when it is used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.building import concatenate, element_loop, pack
from archimedes.graph.dtypes import DTYPES, length_of
from archimedes.graph.program import FIRST_REFERENCE as FIRST
from archimedes.graph.program import Graph
from archimedes.graph.regions.block_regions import Affine, Gather, Move, positions

#: A block made of more boxes than this is gathered through a table.
_MANY_BOXES = 64
#: Stands for the step between ids that belong to no run.
_APART = np.iinfo(np.int64).min


def references(g: Graph, block: int) -> np.ndarray:
    """Return references to the elements of a block, the same at each call."""
    return np.arange(first := g.first_reference(block), first + length_of(g.dtype[block]))


def any_reference(ids: np.ndarray) -> bool:
    """Return whether some ids are references."""
    return bool(ids.size) and bool(ids.max() >= FIRST)


def scalar_ids(g: Graph, ids: np.ndarray) -> np.ndarray:
    """Return ids of nodes only: references are replaced by nodes that read the elements."""
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


def _by_block(
    g: Graph, flat: np.ndarray
) -> Iterator[tuple[int | None, np.ndarray | slice, np.ndarray]]:
    """Yield the blocks that ids name elements of: the block, which ids, and their offsets in it.

    First come the ids that are nodes, if there are any: with None, and as they are.
    """
    starts = np.array(g.reference_starts, dtype=np.int64)
    number = np.searchsorted(starts, flat, side="right") - 1
    if flat.size and number.min() == number.max():
        every: list[int] = [int(number[0])]
    else:
        every = np.unique(number).tolist()
    for k in every:
        mine = number == k if len(every) > 1 else slice(None)
        if k < 0:
            yield None, mine, flat[mine]
        else:
            yield g.referenced[k], mine, flat[mine] - starts[k]


def strided_part(g: Graph, ids: np.ndarray) -> Part | None:
    """Return the affine part of a block that references name, or None if they are not one."""
    block = block_of(g, ids)
    if block is None:
        return None
    corner = (0,) * ids.ndim
    first = int(ids[corner])
    strides = tuple(
        int(ids[(*corner[:axis], 1, *corner[axis + 1 :])]) - first if n > 1 else 0
        for axis, n in enumerate(ids.shape)
    )
    if not np.array_equal(positions(Affine(first, strides), ids.shape), ids):
        return None
    return Part(block, Affine(first - g.first_reference(block), strides))


def constant_values(g: Graph, ids: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return the values of ids if all of them are constants, else None."""
    flat = ids.ravel()
    values = np.empty(flat.size, dtype=dtype)
    for block, mine, at in _by_block(g, flat):
        if block is None:
            try:
                values[mine] = [g.value[i] for i in at.tolist()]
            except KeyError:
                return None
        else:
            table = g.constant_table(block)
            if table is None:
                return None
            values[mine] = table[at]
    return values.reshape(ids.shape)


def is_block_like(g: Graph, ids: np.ndarray) -> bool:
    """Return whether at least half of some ids are elements of blocks that are not constant."""
    return 2 * _count_in_blocks(g, ids) >= ids.size


def lies_in_blocks(g: Graph, ids: np.ndarray) -> bool:
    """Return whether at least half of the ids that are not constant are elements of such blocks."""
    count = _count_in_blocks(g, ids)
    if not count or 2 * count >= ids.size:
        return bool(count)
    nodes = ids[ids < FIRST].tolist()
    return count >= sum(i not in g.value for i in nodes)


def _count_in_blocks(g: Graph, ids: np.ndarray) -> int:
    """Count the ids that are elements of blocks that are not constant."""
    if not g.referenced or not any_reference(ids):
        return 0
    blocks = _by_block(g, ids.ravel())
    return sum(at.size for b, _, at in blocks if b is not None and g.constant_table(b) is None)


def literal_zeros(g: Graph, ids: np.ndarray) -> np.ndarray:
    """Return 1.0 for each id that stands for the constant zero, and 0.0 for all others."""
    zeros = np.zeros(ids.size)
    for block, mine, at in _by_block(g, ids.ravel()):
        if block is None:
            zeros[mine] = [g.value.get(i) == 0 for i in at.tolist()]
        elif (table := g.constant_table(block)) is not None:
            zeros[mine] = table[at] == 0
    return zeros.reshape(ids.shape)


def as_block(g: Graph, ids: np.ndarray, dtype: int) -> int:
    """Return a block that holds the elements that ids stand for, in C order: an old or a new one.

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
        return element_loop(g, box.block, box.read, ids.shape)
    block = block_of(g, flat)
    # A run has at most two changes of the step at its end: so many are too many runs.
    if block is None or np.count_nonzero(np.diff(flat, 2)) <= 2 * _MANY_BOXES:
        runs = _runs(g, flat)
        if len(runs) <= _MANY_BOXES or not any_reference(flat):
            return _pack_runs(g, flat, runs, dtype)
    if block is not None:
        return element_loop(g, block, Gather(flat - g.first_reference(block)), flat.shape)
    # All blocks and nodes that ids name are put one behind the other, and gathered from there.
    offsets = np.empty(flat.size, dtype=np.int64)
    sources: list[int] = []
    size = 0
    for block, mine, at in _by_block(g, flat):
        if block is None:
            nodes, at = np.unique(at, return_inverse=True)
            sources += nodes.tolist()
            length = nodes.size
        else:
            sources.append(block)
            length = length_of(g.dtype[block])
        offsets[mine] = size + at
        size += length
    return element_loop(g, concatenate(g, sources), Gather(offsets), flat.shape)


def _runs(g: Graph, flat: np.ndarray) -> list[tuple[int, int, int]]:
    """Split ids greedily into runs (start, count, step) of equal steps in one block."""
    if flat.size == 1:
        return [(0, 1, 0)]
    steps = np.diff(flat)
    block = np.searchsorted(np.array(g.reference_starts, dtype=np.int64), flat, side="right")
    # Nodes are values of their own: only the same one again is a run.
    apart = (block[:-1] != block[1:]) | ((block[:-1] == 0) & (steps != 0))
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


def _pack_runs(g: Graph, flat: np.ndarray, runs: list[tuple[int, int, int]], dtype: int) -> int:
    """Append a block that is put together from runs of ids."""
    numbers: dict[int, int] = {}
    moves: list[Move] = []
    for start, count, step in runs:
        first = int(flat[start])
        source, read = first, None
        if first >= FIRST:
            at = bisect_right(g.reference_starts, first) - 1
            source, read = g.referenced[at], Affine(first - g.reference_starts[at], (step,))
        number = numbers.setdefault(source, len(numbers))
        moves.append(Move(number, (count,), Affine(start, (1,)), read))
    return pack(g, flat.size, dtype, list(numbers), moves)
