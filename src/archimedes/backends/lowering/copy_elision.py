"""Copy elision: values that would be copied into a block are computed inside it."""

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
from archimedes.graph.regions.nest import Affine, positions

if TYPE_CHECKING:
    from archimedes.backends.lowering.scope import Scope

__all__ = ["Home", "await_numbers", "covers", "homes", "is_number"]


class Home(NamedTuple):
    """The block that another is part of, where in it, and how far apart its elements are there."""

    whole: int
    offset: int
    stride: int


def homes(
    g: Graph, order: Sequence[int], kept: Iterable[int], apart: bool = False
) -> dict[int, Home]:
    """Return which results of loops are made inside the ``Pack`` that alone reads them.

    ``order`` are the nodes of a function, ``kept`` those that are needed for something else;
    ``apart`` tells that elements may be made with others between them.
    """
    packs = [i for i in order if g.op[i] == REGION and isinstance(g.regions[i], Pack)]
    if not packs:
        return {}
    read = Counter(kept)
    wholes = {}
    for i in order:
        if g.op[i] == OUT:
            wholes[g.a[i]] = i
        else:
            read.update(set(g.operands(i)))
    found: dict[int, Home] = {}
    for i in packs:
        region = g.regions[i]
        assert isinstance(region, Pack)
        if i in wholes:
            found |= _parts(g, region, wholes[i], read, apart)
    return found


def _parts(g: Graph, region: Pack, whole: int, read: Counter[int], apart: bool) -> dict[int, Home]:
    """Return the blocks that lie in the one as they are, and that no later box overwrites."""
    found = {}
    covered = np.zeros(region.length, dtype=np.int64)
    for move in region.moves:
        covered[positions(move.to, move.shape)] += 1
    if not covered.all():
        return {}
    sources = Counter(move.source for move in region.moves)
    for source, shape, to, start in region.moves:
        i = int(region.inputs[source])
        if g.op[i] != OUT or not isinstance(g.regions[g.a[i]], Nest):
            continue
        (length,) = shape if len(shape) == 1 else (0,)
        straight = start == Affine(0, (1,)) and (to.strides == (1,) or apart)
        if not straight or length != length_of(g.dtype[i]) or read[i] != 1 or sources[source] != 1:
            continue
        if (covered[positions(to, shape)] == 1).all():
            found[i] = Home(whole, to.offset, to.strides[0])
    return found


def await_numbers(scope: Scope, order: Sequence[int]) -> None:
    """Have numbers that are put together to blocks written there as they are computed."""
    g = scope.graph
    computed = {i for i in order if OPERANDS[g.op[i]]}
    for i in order:
        region = g.regions[i] if g.op[i] == REGION else None
        if not isinstance(region, Pack) or not scope.outs.get(i) or not covers(region):
            continue
        ids = region.inputs.tolist()
        numbers = [(ids[m.source], m.to.offset) for m in region.moves if is_number(m)]
        mine = [(j, at) for j, at in numbers if j in computed]
        # Boxes that overlap are copied in their order.
        if not mine or sum(math.prod(m.shape) for m in region.moves) != region.length:
            continue
        to = scope.new_block(scope.outs[i][0])
        for j, at in mine:
            scope.waiting.setdefault(j, []).append(to.at(at))
            scope.awaited.add((scope.outs[i][0], j))


def is_number(move: Move) -> bool:
    """Return whether a move copies a scalar into a block."""
    return move.start is None and math.prod(move.shape) == 1


def covers(region: Pack) -> bool:
    """Tell whether boxes cover the whole block."""
    if sum(math.prod(move.shape) for move in region.moves) < region.length:
        return False
    covered = np.zeros(region.length, dtype=bool)
    for move in region.moves:
        covered[positions(move.to, move.shape)] = True
    return bool(covered.all())
