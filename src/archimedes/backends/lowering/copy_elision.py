"""Copy elision: values that a ``Pack`` would copy into its block are computed inside that block."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import OPERANDS, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Move, Nest, Pack
from archimedes.graph.regions.block_regions import Affine, positions

if TYPE_CHECKING:
    from archimedes.backends.lowering.scope import Scope


class SubBlock(NamedTuple):
    """The block that another one is part of, its offset there, and the stride of its elements."""

    whole: int
    offset: int
    stride: int


def _packs(g: Graph, order: Sequence[int]) -> dict[int, Pack]:
    regions = ((i, g.regions[i]) for i in order if g.op[i] == REGION)
    return {i: region for i, region in regions if isinstance(region, Pack)}


def _times_written(region: Pack) -> np.ndarray:
    """Return how many boxes cover each element of a block."""
    count = np.zeros(region.length, dtype=np.int64)
    for move in region.moves:
        count[positions(move.to, move.shape)] += 1
    return count


def covers(region: Pack) -> bool:
    """Return whether the boxes cover the whole block."""
    enough = sum(math.prod(move.shape) for move in region.moves) >= region.length
    return enough and bool(_times_written(region).all())


def is_scalar(move: Move) -> bool:
    """Return whether a move copies a scalar into a block."""
    return move.start is None and math.prod(move.shape) == 1


def find_sub_blocks(
    g: Graph, order: Sequence[int], outputs: Iterable[int], apart: bool = False
) -> dict[int, SubBlock]:
    """Return which results of nests can be computed inside the ``Pack`` that alone reads them.

    ``order`` are the nodes of a function, ``outputs`` those that are needed for something else.
    ``apart`` tells that the elements may be made with others between them.
    """
    packs = _packs(g, order)
    if not packs:
        return {}
    reads = Counter(outputs)
    outs = {}
    for i in order:
        if g.op[i] == OUT:
            outs[g.a[i]] = i
        else:
            reads.update(set(g.operands(i)))
    sub_blocks: dict[int, SubBlock] = {}
    for i, region in packs.items():
        if i in outs:
            sub_blocks |= _sub_blocks_of(g, region, outs[i], reads, apart)
    return sub_blocks


def _sub_blocks_of(
    g: Graph, region: Pack, whole: int, reads: Counter[int], apart: bool
) -> dict[int, SubBlock]:
    """Return the blocks that are copied into the pack's as a whole and not overwritten later."""
    sub_blocks = {}
    written = _times_written(region)
    if not written.all():
        return {}
    sources = Counter(move.source for move in region.moves)
    for source, shape, to, start in region.moves:
        i = int(region.inputs[source])
        if g.op[i] != OUT or not isinstance(g.regions[g.a[i]], Nest):
            continue
        (length,) = shape if len(shape) == 1 else (0,)
        straight = start == Affine(0, (1,)) and (to.strides == (1,) or apart)
        if not straight or length != length_of(g.dtype[i]) or reads[i] != 1 or sources[source] != 1:
            continue
        if (written[positions(to, shape)] == 1).all():
            sub_blocks[i] = SubBlock(whole, to.offset, to.strides[0])
    return sub_blocks


def elide_scalar_copies(scope: Scope, order: Sequence[int]) -> None:
    """Store scalars that are packed into a block there as soon as they are computed."""
    g = scope.graph
    computed = {i for i in order if OPERANDS[g.op[i]]}
    for i, region in _packs(g, order).items():
        if not scope.outs.get(i) or not covers(region):
            continue
        ids = region.inputs.tolist()
        scalars = [(ids[m.source], m.to.offset) for m in region.moves if is_scalar(m)]
        mine = [(j, at) for j, at in scalars if j in computed]
        # Boxes that overlap are copied in their order.
        if not mine or sum(math.prod(m.shape) for m in region.moves) != region.length:
            continue
        (out, *_) = scope.outs[i]
        to = scope.new_block(out)
        for j, at in mine:
            scope.waiting.setdefault(j, []).append(to.at(at))
            scope.elided.add((out, j))
