"""Loop fusion: loops over blocks that feed each other become one loop.

A loop that reads an element of another loop's result may as well compute it: the block in between
is then never stored. Bits do not change, since every element is computed by the same operations in
the same order. It is done before elementary functions are expanded, for all backends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from archimedes.graph.blocks.building import loops
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import ARITY, CONST, INPUT, OUT, REGION, TABLE
from archimedes.graph.passes import DeepTransformer, Origin, Outputs, Rewriter, Transformer, inline
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region
from archimedes.graph.regions.block_regions import Affine, Gather, Nest, Read, positions, row_major

#: What is read more than once is computed again only if that takes so few operations.
FEW = 3
#: Bodies do not grow beyond this.
LARGEST_BODY = 300


def fuse_loops(graph: Graph, origin: dict[int, Origin] | None = None, again: int = FEW) -> Graph:
    """Return an equal graph in which loops over blocks are fused where they can be.

    What several loops read is computed in each of them if that takes up to ``again`` operations.
    ``origin`` gets an entry for each new graph: where its nodes come from (those in the bodies of
    loops that became one come from nowhere in particular).
    """

    def transform(src: Graph, rewriter: Rewriter) -> Transformer | None:
        return _Fusion(src, rewriter, again) if _has_nests(src) else None

    return Rewriter(transform, origin)(graph)


def _has_nests(g: Graph) -> bool:
    return any(
        isinstance(region, Nest) or any(map(_has_nests, region.bodies))
        for region in g.regions.values()
    )


class _Source(NamedTuple):
    """A result of another loop, as what computes it at a point: inputs, body, node of the body."""

    inputs: list[tuple[int, Read]]
    body: Graph
    out: int


class _Fusion(DeepTransformer):
    def __init__(self, src: Graph, rewriter: Rewriter, again: int) -> None:
        super().__init__(src, rewriter)
        self.again = again
        #: How often each node of ``src`` is read.
        self.readers: Counter[int] = Counter(src.outputs)
        for i in src.live():
            self.readers.update(set(src.operands(i)))

    def region(self, i: int, region: Region) -> Outputs:
        if not isinstance(region, Nest):
            return super().region(i, region)
        nest = self.relink(region)
        once = [self.readers[j] == 1 for j in region.inputs.tolist()]
        # Over fewer axes it may not be seen which elements of another loop it reads.
        plans = [(x, _find_sources(self.dst, x, once, self.again)) for x in (collapse(nest), nest)]
        return _emit_fused(self.dst, *max(plans, key=lambda plan: sum(map(bool, plan[1]))))


def _find_sources(g: Graph, region: Nest, once: Sequence[bool], again: int) -> list[_Source | None]:
    """Return for each input of a loop how the loop can compute it itself, where that pays off."""
    size = len(region.body)
    sources = []
    for i, read, single in zip(region.inputs.tolist(), region.reads, once):
        source = _find_source(g, i, read, region, LARGEST_BODY if single else again)
        if source is not None and size + len(source.body) > LARGEST_BODY:
            source = None
        size += 0 if source is None else len(source.body)
        sources.append(source)
    return sources


def _emit_fused(g: Graph, region: Nest, sources: Sequence[_Source | None]) -> list[int]:
    """Append a loop that computes what it would otherwise read from other loops."""
    own = [*zip(region.inputs.tolist(), region.reads)]
    needed = [pair for mine, s in zip(own, sources) for pair in ([mine] if s is None else s.inputs)]
    operands = list(dict.fromkeys(needed))
    ids, reads = [i for i, _ in operands], [read for _, read in operands]
    kinds = [g.dtype[i] if read is None else item_type(g.dtype[i]) for i, read in operands]
    # Inputs come first, then the indices.
    body = Graph.with_inputs([*kinds, *region.body.input_dtypes[len(region.inputs) :]])
    inputs = dict(zip(operands, body.inputs))
    index = body.inputs[len(operands) :]
    values: list[int] = []
    for mine, source in zip(own, sources):
        if source is None:
            values.append(inputs[mine])
        else:
            operand_ids = [inputs[pair] for pair in source.inputs]
            values += inline(body, source.body, operand_ids, [source.out])
    body.outputs = inline(body, region.body, [*values, *index])
    return loops(g, ids, reads, body, region.shape, region.kept, region.combine, region.partials)


def _find_source(g: Graph, i: int, read: Read, reader: Nest, most: int) -> _Source | None:
    """Return how a loop computes what it reads at a point, if another loop made it.

    It does where that takes at most so many operations.
    """
    if read is None or g.op[i] != OUT:
        return None
    region = g.regions[g.a[i]]
    if not isinstance(region, Nest) or region.combine or region.indexed:
        return None
    out = region.body.outputs[g.b[i]]
    cost = _cost(region.body, out)
    if cost > most or (cost and _reads_again(read, reader.shape, length_of(g.dtype[i]))):
        return None
    inputs: list[tuple[int, Read]] = []
    for j, own in zip(region.inputs.tolist(), region.reads):
        composed = None if own is None else _compose(own, region.shape, read, reader.shape)
        if own is not None and composed is None:
            return None
        inputs.append((j, composed))
    return _Source(inputs, region.body, out)


def _reads_again(read: Affine | Gather, space: Sequence[int], length: int) -> bool:
    """Return whether a loop reads elements more than once, and so would compute them again."""
    if isinstance(read, Affine) and any(not s and n > 1 for s, n in zip(read.strides, space)):
        return True
    return math.prod(space) > length


def _cost(body: Graph, out: int) -> int:
    """Count the operations that a result takes; elementary functions and regions count as many."""
    total = 0
    for i in body.live([out]):
        op = body.op[i]
        if op == REGION or TABLE[op].elementary:
            return FEW + 1
        total += op not in (CONST, INPUT, OUT) and ARITY[op] > 0
    return total


def _compose(
    own: Affine | Gather, shape: Sequence[int], read: Affine | Gather, space: Sequence[int]
) -> Read:
    """Return how the input of one loop is read at the points of another that reads its result.

    ``own`` is read over ``shape``; the result, in C order over that, is read over ``space``.
    """
    if isinstance(read, Gather):
        return Gather(positions(own, shape).reshape(-1)[read.table])
    if isinstance(own, Gather):
        return Gather(own.table[positions(read, space).ravel()])
    steps = _point_steps(shape, read, space)
    if steps is None:
        return None
    start, moves = steps
    offset = own.offset + sum(s * k for s, k in zip(own.strides, start))
    strides = [own.strides[axis] * step if step else 0 for axis, step in moves]
    return Affine(offset, tuple(strides))


def _point_steps(
    shape: Sequence[int], read: Affine, space: Sequence[int]
) -> tuple[list[int], list[tuple[int, int]]] | None:
    """Say how the numbers of points, an affine function of an index, are points of a shape.

    Returns the point at the index 0, and for each axis of the index which axis of the shape it
    moves along, and by how much; None where it may move along several.
    """
    rows = row_major(shape)
    start = [int(k) for k in np.unravel_index(read.offset, tuple(shape))]
    low, high = list(start), list(start)
    moves: list[tuple[int, int]] = []
    for stride, n in zip(read.strides, space):
        if not stride or n == 1:
            moves.append((0, 0))
            continue
        axis = next((a for a, r in enumerate(rows) if shape[a] > 1 and abs(stride) >= r), None)
        if axis is None or stride % rows[axis]:
            return None
        step = stride // rows[axis]
        moves.append((axis, step))
        if step > 0:
            high[axis] += step * (n - 1)
        else:
            low[axis] += step * (n - 1)
    inside = all(a >= 0 and b < n for a, b, n in zip(low, high, shape))
    return (start, moves) if inside else None


def collapse(region: Nest) -> Nest:
    """Return the same loops over fewer axes: axes that all reads traverse in a row become one."""
    if region.indexed or len(region.shape) < 2:
        return region
    groups: list[list[int]] = []
    for axis, n in enumerate(region.shape):
        side = axis < region.kept
        if n == 1 and any((a < region.kept) == side for a in range(len(region.shape)) if a != axis):
            continue
        last = groups[-1] if groups else None
        if last and (last[-1] < region.kept) == side and _follow(region, last[-1], axis):
            last.append(axis)
        else:
            groups.append([axis])
    kept = sum(group[0] < region.kept for group in groups)
    lost = (region.kept > 0 and not kept) or (region.combine and kept == len(groups))
    if len(groups) == len(region.shape) or lost or not groups:
        return region
    shape = tuple(math.prod(region.shape[a] for a in group) for group in groups)
    reads = tuple(
        Affine(r.offset, tuple(r.strides[group[-1]] for group in groups))
        if isinstance(r, Affine)
        else r
        for r in region.reads
    )
    return replace(region, shape=shape, reads=reads, kept=kept)


def _follow(region: Nest, a: int, b: int) -> bool:
    n = region.shape[b]
    return all(not isinstance(r, Affine) or r.strides[a] == r.strides[b] * n for r in region.reads)
