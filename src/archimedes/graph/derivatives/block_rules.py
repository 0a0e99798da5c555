"""Derivatives of loops over blocks, of blocks put together, and of values added at indices.

They are loops over blocks themselves. Forward: the tangent of each element is a loop with the
body's tangents. Reverse: what an input gets back at each point of the index space is computed by
the body's way back; along axes on which the same element is read it is summed, and elsewhere put
where the element is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.blocks.building import element_loop, loops, pack, scalar_loop, total
from archimedes.graph.derivatives.bodies import by_position, ids_of, pairs_of
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import add_term, reverse_sweep
from archimedes.graph.dtypes import I64, is_float, item_type, length_of
from archimedes.graph.ops import CODES, ELEMENT, INPUT
from archimedes.graph.passes import Transformer, inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Accumulate, Nest, Pack
from archimedes.graph.regions.base import Adjoints, Directions, Tangents, Wanted, add_derivative
from archimedes.graph.regions.block_regions import Affine, Gather, Move, Read, positions, row_major

_EQ, _SELECT, _ADD, _MUL = (CODES[name] for name in ("eq", "select", "add", "mul"))


# ---- loops, forward ----------------------------------------------------------------------


def _nest_forward(dst: Graph, region: Nest, tangents: Tangents) -> tuple[list[int], Tangents]:
    outs = dst.region(region).tolist()
    linear = _as_sum(dst, region, outs)
    tangents = tangents + [{}] * (len(linear.inputs) - len(tangents))
    kinds = linear.body.input_dtypes
    pairs = pairs_of(tangents)
    body, inputs, added = _begin_body(linear, [kinds[k] for k, _ in pairs])
    seeds = by_position(added, len(kinds), pairs)
    _, results = forward_sweep(body, linear.body, inputs, seeds)
    out_pairs = pairs_of(results)
    if not out_pairs:
        return outs, [{} for _ in outs]
    body.outputs = ids_of(results, out_pairs)
    ids = [*linear.inputs.tolist(), *ids_of(tangents, pairs)]
    reads = [*linear.reads, *(linear.reads[k] for k, _ in pairs)]
    loop = linear.shape, linear.kept, linear.combine, linear.partials
    return outs, by_position(loops(dst, ids, reads, body, *loop), len(outs), out_pairs)


def _begin_body(region: Nest, extra: Sequence[int]) -> tuple[Graph, list[int], list[int]]:
    """Begin a body that takes more inputs; return it, its own inputs and the added ones."""
    kinds, count = region.body.input_dtypes, len(region.inputs)
    g = Graph.with_inputs([*kinds[:count], *extra, *kinds[count:]])
    last = count + len(extra)
    return g, [*g.inputs[:count], *g.inputs[last:]], g.inputs[count:last]


def _as_sum(dst: Graph, region: Nest, outs: Sequence[int]) -> Nest:
    """Return a loop with the same derivatives: a minimum becomes the sum over the least element."""
    if region.combine not in ("min", "max"):
        return region
    read, ids = _read_of_result(region), region.inputs.tolist()
    reads = (*region.reads, read)
    # The number of the first point that gave the result; beyond all where none did (nan).
    body, result, value, number = _point_body(region, region.body.output_dtypes[0])
    same = body.emit(_EQ, value, result)
    body.outputs = [body.emit(_SELECT, same, number, body.const(region.reduced, I64))]
    (first,) = loops(dst, [*ids, outs[0]], reads, body, region.shape, region.kept, "min")
    body, chosen, value, number = _point_body(region, I64)
    here = body.emit(_EQ, chosen, number)
    body.outputs = [body.emit(_SELECT, here, value, body.const(0.0, body.dtype[value]))]
    return Nest([*ids, first], body, region.shape, reads, region.kept, "add", 1)


def _point_body(region: Nest, extra: int) -> tuple[Graph, int, int, int]:
    """Begin a body that takes one more input; return it, that input, the value and its number.

    Points are counted along the reduced axes.
    """
    count = len(region.inputs)
    kinds = region.body.input_dtypes[:count]
    body = Graph.with_inputs([*kinds, extra, *[I64] * len(region.shape)])
    index = body.inputs[count + 1 :]
    (value,) = inline(body, region.body, [*body.inputs[:count], *index])
    number = body.const(0, I64)
    strides = row_major(region.shape[region.kept :])
    for i, stride in zip(index[region.kept :], strides):
        number = body.emit(_ADD, number, body.emit(_MUL, i, body.const(stride, I64)))
    return body, body.inputs[count], value, number


def _read_of_result(region: Nest) -> Read:
    """Return how a loop reads its own result, at the points that contributed to each element."""
    if not region.kept:
        return None
    strides = row_major(region.shape[: region.kept])
    return Affine(0, strides + (0,) * (len(region.shape) - region.kept))


# ---- loops, reverse ----------------------------------------------------------------------


def _nest_reverse(
    dst: Graph, region: Nest, adjoints: Adjoints, saved: np.ndarray, wanted: Wanted
) -> Adjoints:
    count = len(region.inputs)
    region = _as_sum(dst, region, [int(i) for i in saved])
    wanted = [*wanted, *[False] * (len(region.inputs) - count)]
    opened, elements = _open_elements(region.body, len(region.inputs), wanted)
    bars = pairs_of(adjoints)
    kinds = region.body.output_dtypes
    body, inputs, added = _begin_body(region, [kinds[k] for k, _ in bars])
    # Elements are read first, as numbers, so that they have adjoints of their own.
    indices = inline(body, region.body, inputs, [at for _, at in elements])
    values = [body.element(inputs[block], i) for (block, _), i in zip(elements, indices)]
    scalars = [
        w and (read is not None or not length_of(kind))
        for w, read, kind in zip(wanted, region.reads, region.body.input_dtypes)
    ]
    first = len(region.body.inputs)
    active = [*scalars, *[False] * (first - len(region.inputs)), *[True] * len(elements)]
    seeds = by_position(added, len(kinds), bars)
    _, back = reverse_sweep(body, opened, [*inputs, *values], seeds, active)
    ids = [*region.inputs.tolist(), *ids_of(adjoints, bars)]
    reads = [*region.reads, *([_read_of_result(region)] * len(bars))]
    loop = _AdjointLoop(dst, region, body, ids, reads)
    results: list[Directions] = [{} for _ in region.inputs]
    loop.pull_back_inputs(back, results)
    for (block, at), mine in zip(elements, back[first:]):
        for d, bar in mine.items():
            index = inline(body, region.body, inputs, [at])
            loop.pull_back_element(block, d, [bar, *index], results)
    return results[:count]


def _open_elements(body: Graph, count: int, wanted: Wanted) -> tuple[Graph, list[tuple[int, int]]]:
    """Return the body with inputs instead of the elements of blocks that it reads itself.

    Also the number of the block and the index, as a node of ``body``, of each of those.
    """
    live = body.live()
    elements = [
        i
        for i in live
        if body.op[i] == ELEMENT
        and body.op[body.a[i]] == INPUT
        and body.a[body.a[i]] < count
        and wanted[body.a[body.a[i]]]
        and is_float(body.dtype[i])
    ]
    if not elements:
        return body, []
    opened = Graph.with_inputs(body.input_dtypes)
    copy = Transformer(opened, body, opened.inputs)
    for i in elements:
        copy.to[i] = opened.input(body.dtype[i])
    copy.run([i for i in live if copy.to[i] < 0])
    opened.outputs = copy.outputs()
    return opened, [(body.a[body.a[i]], body.b[i]) for i in elements]


class _AdjointLoop(NamedTuple):
    """The loops that compute adjoints of inputs, with one body for all of them."""

    dst: Graph
    region: Nest
    body: Graph
    ids: list[int]
    reads: list[Read]

    def pull_back_inputs(self, back: Sequence[Directions], into: list[Directions]) -> None:
        """Emit the adjoints of inputs, one loop for those that are summed along the same axes."""
        region, axes = self.region, range(len(self.region.shape))
        groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for k, d in pairs_of(back[: len(region.inputs)]):
            read = region.reads[k]
            if read is None:
                summed = tuple(axes)
            elif isinstance(read, Gather):
                summed = ()
            else:
                summed = tuple(a for a in axes if not read.strides[a] and region.shape[a] > 1)
            groups.setdefault(summed, []).append((k, d))
        for summed, pairs in groups.items():
            out_axes = [a for a in axes if a not in summed]
            values = self._emit(ids_of(back, pairs), out_axes, summed)
            for (k, d), i in zip(pairs, values):
                into[k][d] = self._put(k, i, out_axes)

    def pull_back_element(
        self, block: int, d: int, outs: list[int], into: list[Directions]
    ) -> None:
        """Emit what a block gets back from an element; ``outs`` are its adjoint and its index."""
        values, index = self._emit(outs, range(len(self.region.shape)), ())
        add_term(self.dst, into[block], d, self._accumulate(block, values, index))

    def _emit(self, outs: list[int], out_axes: Sequence[int], summed: Sequence[int]) -> list[int]:
        """Emit the loop that computes nodes of the body, its axes in another order."""
        region, count, order = self.region, len(self.ids), [*out_axes, *summed]
        body = Graph.with_inputs(self.body.input_dtypes)
        inputs = list(body.inputs)
        if len(inputs) > count:
            for new, axis in enumerate(order):
                inputs[count + axis] = body.inputs[count + new]
        body.outputs = inline(body, self.body, inputs, outs)
        reads = [_permute_read(read, region.shape, order) for read in self.reads]
        shape = [region.shape[a] for a in order]
        combine = "add" if summed else ""
        return loops(self.dst, self.ids, reads, body, shape, len(out_axes), combine)

    def _put(self, k: int, values: int, axes: Sequence[int]) -> int:
        """Emit the adjoint of input k, of which ``values`` are what each point gives."""
        dst, region, read = self.dst, self.region, self.region.reads[k]
        if read is None:
            return values
        if isinstance(read, Gather):
            return self._accumulate(k, values, dst.block(read.table))
        kind, shape = dst.dtype[int(region.inputs[k])], tuple(region.shape[a] for a in axes)
        to = Affine(read.offset, tuple(read.strides[a] for a in axes))
        if not length_of(dst.dtype[values]):  # one element, read at every point
            move = Move(0, (), to, None)
        elif _is_injective(to, shape):
            move = Move(0, shape, to, Affine(0, row_major(shape)))
        else:
            return self._accumulate(k, values, dst.block(positions(to, shape).ravel()))
        return pack(dst, length_of(kind), item_type(kind), [values], [move])

    def _accumulate(self, k: int, values: int, index: int) -> int:
        """Emit a block like input k, zero but for values added at indices."""
        kind = self.dst.dtype[int(self.region.inputs[k])]
        region = Accumulate([values, index], length_of(kind), item_type(kind))
        return int(self.dst.region(region)[0])


def _permute_read(read: Read, shape: Sequence[int], order: Sequence[int]) -> Read:
    if read is None:
        return None
    if isinstance(read, Gather):
        return Gather(read.table.reshape(tuple(shape)).transpose(list(order)))
    return Affine(read.offset, tuple(read.strides[a] for a in order))


def _is_injective(read: Affine, shape: Sequence[int]) -> bool:
    """Return whether different points are known to read different elements."""
    span = 0
    for stride, n in sorted((abs(s), n) for s, n in zip(read.strides, shape)):
        if n > 1:
            if stride <= span:
                return False
            span += stride * (n - 1)
    return True


# ---- blocks put together, and values added at indices: both are linear --------------------


def _pack_forward(dst: Graph, region: Pack, tangents: Tangents) -> tuple[np.ndarray, Tangents]:
    result: Directions = {}
    for d in sorted({d for tangent in tangents for d in tangent}):
        moves = [move for move in region.moves if d in tangents[move.source]]
        sources = [tangents[move.source][d] for move in moves]
        moves = [move._replace(source=k) for k, move in enumerate(moves)]
        result[d] = pack(dst, region.length, region.dtype, sources, moves)
    return dst.region(region), [result]


def _pack_reverse(
    dst: Graph, region: Pack, adjoints: Adjoints, saved: Any, wanted: Wanted
) -> Adjoints:
    results: list[Directions] = [{} for _ in region.inputs]
    for _, d in pairs_of(adjoints):
        bar = adjoints[0][d]
        for source, shape, to, start in region.moves:
            if not wanted[source]:
                continue
            if start is not None:
                kind = dst.dtype[int(region.inputs[source])]
                term = _pull_back_box(dst, bar, shape, to, start, kind)
            elif all(n == 1 for n in shape):
                term = dst.element(bar, dst.const(to.offset, I64))
            else:
                term = total(dst, bar, to, shape)
            add_term(dst, results[source], d, term)
    return results


def _pull_back_box(
    dst: Graph, bar: int, shape: tuple[int, ...], to: Affine, start: Affine, kind: int
) -> int:
    """Emit the adjoint of a copied box; where an element was copied many times, they are summed."""
    again = [k for k, n in enumerate(shape) if n > 1 and not start.strides[k]]
    move = Move(0, shape, start, to)
    if again:
        once = [k for k in range(len(shape)) if k not in again]
        order = [*once, *again]
        read = Affine(to.offset, tuple(to.strides[k] for k in order))
        space = [shape[k] for k in order]
        bar = element_loop(dst, bar, read, space, len(once), "add")
        box = tuple(shape[k] for k in once)
        there = Affine(start.offset, tuple(start.strides[k] for k in once))
        move = Move(0, box, there, Affine(0, row_major(box)) if once else None)
    return pack(dst, length_of(kind), item_type(kind), [bar], [move])


def _accumulate_forward(
    dst: Graph, region: Accumulate, tangents: Tangents
) -> tuple[np.ndarray, Tangents]:
    index = int(region.inputs[1])
    result = {
        d: int(dst.region(region.with_inputs([tangent, index]))[0])
        for d, tangent in tangents[0].items()
    }
    return dst.region(region), [result]


def _accumulate_reverse(
    dst: Graph, region: Accumulate, adjoints: Adjoints, saved: Any, wanted: Wanted
) -> Adjoints:
    index = int(region.inputs[1])
    count = length_of(dst.dtype[index])
    line = Affine(0, row_major((count,)))
    back = {
        d: scalar_loop(dst, [bar, index], Graph.element, (count,), (None, line))
        for d, bar in adjoints[0].items()
    }
    return [back, {}]


add_derivative(Nest, _nest_forward, _nest_reverse)
add_derivative(Pack, _pack_forward, _pack_reverse)
add_derivative(Accumulate, _accumulate_forward, _accumulate_reverse)
