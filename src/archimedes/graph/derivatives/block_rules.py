"""Derivatives of loops over blocks, of blocks put together, and of values added at indices.

Forward: the tangent of each element is a loop with the body's tangents. Reverse: what an input
gets back at each point of the index space is computed by the body's way back; along axes on which
the same element is read it is summed, and elsewhere put where the element is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.graph.blocks.building import add_values, loops, pack, scalar_loop, total
from archimedes.graph.derivatives.bodies import Pair, pairs_of, split
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.dtypes import I64, is_float, item_type, length_of
from archimedes.graph.ops import CODES, ELEMENT, INPUT
from archimedes.graph.passes import copy_into
from archimedes.graph.program import Graph
from archimedes.graph.regions import Accumulate, Nest, Pack
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative
from archimedes.graph.regions.block_regions import Move
from archimedes.graph.regions.nest import Affine, Gather, Read, positions, row_major

__all__ = []

_EQ, _SELECT, _ADD, _MUL, _MIN = (CODES[name] for name in ("eq", "select", "add", "mul", "min"))


def _body(region: Nest, extra: Sequence[int]) -> tuple[Graph, list[int], list[int]]:
    """Begin a body with inputs of other types behind the region's: ids of its inputs, and those."""
    g, kinds, count = Graph(), region.body.input_dtypes, len(region.inputs)
    first = [g.input(kind) for kind in kinds[:count]]
    added = [g.input(kind) for kind in extra]
    return g, first + [g.input(I64) for _ in kinds[count:]], added


# ---- forward -----------------------------------------------------------------------------


def _nest_forward(
    dst: Graph, region: Nest, given: list[Directions]
) -> tuple[list[int], list[Directions]]:
    outs = dst.region(region).tolist()
    linear = _as_sum(dst, region, outs)
    given = given + [{}] * (len(linear.inputs) - len(given))
    kinds = linear.body.input_dtypes
    pairs = pairs_of(given)
    body, inputs, added = _body(linear, [kinds[k] for k, _ in pairs])
    seeds: list[Directions] = [{} for _ in kinds]
    for (k, d), i in zip(pairs, added):
        seeds[k][d] = i
    _, tangents = forward_sweep(body, linear.body, inputs, seeds)
    found = pairs_of(tangents)
    if not found:
        return outs, [{} for _ in outs]
    body.outputs = [tangents[k][d] for k, d in found]
    ids = [*linear.inputs.tolist(), *(given[k][d] for k, d in pairs)]
    reads = [*linear.reads, *(linear.reads[k] for k, _ in pairs)]
    made = loops(dst, ids, reads, body, linear.shape, linear.kept, linear.combine, linear.partials)
    return outs, split(made, len(outs), found)


def _as_sum(dst: Graph, region: Nest, outs: Sequence[int]) -> Nest:
    """Return a loop with the same derivatives: the least of many is the sum over one of them."""
    if region.combine not in ("min", "max"):
        return region
    chosen = _first_place(dst, region, outs[0])
    axes = len(region.shape)
    body = Graph()
    count = len(region.inputs)
    inputs = [body.input(kind) for kind in region.body.input_dtypes[:count]]
    place = body.input(I64)
    index = [body.input(I64) for _ in range(axes)]
    to = copy_into(body, region.body, [*inputs, *index], region.body.live())
    (value,) = [to[i] for i in region.body.outputs]
    here = body.emit(_EQ, place, _counted(body, index, region))
    zero = body.const(0.0, body.dtype[value])
    body.outputs = [body.emit(_SELECT, here, value, zero)]
    read = _read_of_result(region)
    ids, reads = [*region.inputs.tolist(), chosen], (*region.reads, read)
    return Nest(ids, body, region.shape, reads, region.kept, "add", 1)


def _counted(body: Graph, index: Sequence[int], region: Nest) -> int:
    """Emit the number of a point along the reduced axes."""
    number = body.const(0, I64)
    strides = row_major(region.shape[region.kept :])
    for i, stride in zip(index[region.kept :], strides):
        number = body.emit(_ADD, number, body.emit(_MUL, i, body.const(stride, I64)))
    return number


def _first_place(dst: Graph, region: Nest, out: int) -> int:
    """Emit the number of the first point that gave the result; beyond all where none did (nan)."""
    body = Graph()
    count = len(region.inputs)
    inputs = [body.input(kind) for kind in region.body.input_dtypes[:count]]
    result = body.input(region.body.output_dtypes[0])
    index = [body.input(I64) for _ in region.shape]
    to = copy_into(body, region.body, [*inputs, *index], region.body.live())
    (value,) = [to[i] for i in region.body.outputs]
    number = _counted(body, index, region)
    same = body.emit(_EQ, value, result)
    body.outputs = [body.emit(_SELECT, same, number, body.const(region.reduced, I64))]
    ids, reads = [*region.inputs.tolist(), out], [*region.reads, _read_of_result(region)]
    return loops(dst, ids, reads, body, region.shape, region.kept, "min")[0]


def _read_of_result(region: Nest) -> Read:
    """Return how a result is read at the points that it was made from."""
    if not region.kept:
        return None
    kept = region.shape[: region.kept]
    return Affine(0, row_major(kept) + (0,) * (len(region.shape) - region.kept))


# ---- reverse -----------------------------------------------------------------------------


def _nest_reverse(
    dst: Graph,
    region: Nest,
    adjoints: list[Directions],
    saved: np.ndarray,
    wanted: Sequence[bool],
) -> list[Directions]:
    count = len(region.inputs)
    region = _as_sum(dst, region, [int(i) for i in saved])
    wanted = [*wanted, *[False] * (len(region.inputs) - count)]
    opened, elements = _open_elements(region.body, len(region.inputs), wanted)
    bars = pairs_of(adjoints)
    kinds = [*region.body.output_dtypes]
    body, inputs, added = _body(region, [kinds[k] for k, _ in bars])
    if elements:
        # Elements are read first, as numbers, so that they have adjoints of their own.
        found = _element_values(body, region.body, inputs, elements)
        inputs = inputs + found
    seeds: list[Directions] = [{} for _ in kinds]
    for (k, d), i in zip(bars, added):
        seeds[k][d] = i
    scalars = [
        (w and r is not None) or (w and not length_of(kind))
        for w, r, kind in zip(wanted, region.reads, region.body.input_dtypes)
    ]
    active = [*scalars, *[False] * (len(region.body.inputs) - len(region.inputs))]
    active += [True] * len(elements)
    _, back = reverse_sweep(body, opened, inputs, seeds, active)
    ids = [*region.inputs.tolist(), *(adjoints[k][d] for k, d in bars)]
    reads = [*region.reads, *([_read_of_result(region)] * len(bars))]
    way = _WayBack(dst, region, body, ids, reads)
    results: list[Directions] = [{} for _ in range(len(region.inputs))]
    for group in _groups(region, back):
        way.back(group, back, results)
    first = len(region.body.inputs)
    for k, (block, at) in enumerate(elements):
        for d, i in back[first + k].items():
            way.accumulate(block, d, i, inputs, region.body, at, results)
    return results[:count]


def _open_elements(
    body: Graph, count: int, wanted: Sequence[bool]
) -> tuple[Graph, list[tuple[int, int]]]:
    """Return the body with further inputs in the place of elements of blocks it reads itself.

    Also the number of the block and the index, as a node of ``body``, of each of those.
    """
    places = [
        i
        for i in body.live()
        if body.op[i] == ELEMENT
        and body.op[body.a[i]] == INPUT
        and body.a[body.a[i]] < count
        and wanted[body.a[body.a[i]]]
        and is_float(body.dtype[i])
    ]
    if not places:
        return body, []
    opened = Graph()
    inputs = [opened.input(kind) for kind in body.input_dtypes]
    values = {i: opened.input(body.dtype[i]) for i in places}
    opened.outputs = _Opening(opened, body, inputs, values).written()
    return opened, [(body.a[body.a[i]], body.b[i]) for i in places]


class _Opening:
    """Copies a body with inputs in the place of some nodes."""

    def __init__(
        self, dst: Graph, src: Graph, inputs: Sequence[int], values: dict[int, int]
    ) -> None:
        from archimedes.graph.passes import Walk

        class Opened(Walk):
            def element(self, i: int) -> int:
                return values[i] if i in values else super().element(i)

        self.walk = Opened(dst, src, inputs)

    def written(self) -> list[int]:
        self.walk.run(self.walk.src.live())
        return self.walk.outputs()


def _element_values(
    body: Graph, src: Graph, inputs: Sequence[int], elements: Sequence[tuple[int, int]]
) -> list[int]:
    """Emit the elements that a body reads of blocks."""
    live = src.live([at for _, at in elements])
    to = copy_into(body, src, inputs, live)
    return [body.element(inputs[block], to[at]) for block, at in elements]


Group = tuple[tuple[int, ...], list[Pair]]


def _groups(region: Nest, back: Sequence[Directions]) -> list[Group]:
    """Sort the adjoints of inputs by the axes along which they are summed."""
    groups: dict[tuple[int, ...], list[Pair]] = {}
    axes = range(len(region.shape))
    for k, d in pairs_of(back[: len(region.inputs)]):
        read = region.reads[k]
        if read is None:
            summed = tuple(axes)
        elif isinstance(read, Gather):
            summed = ()
        else:
            summed = tuple(a for a in axes if not read.strides[a] and region.shape[a] > 1)
        groups.setdefault(summed, []).append((k, d))
    return list(groups.items())


class _WayBack:
    """The loops that compute adjoints of inputs, with one body for all of them."""

    def __init__(
        self, dst: Graph, region: Nest, body: Graph, ids: list[int], reads: list[Read]
    ) -> None:
        self.dst, self.region, self.body, self.ids, self.reads = dst, region, body, ids, reads

    def back(self, group: Group, back: Sequence[Directions], into: list[Directions]) -> None:
        """Emit the adjoints of a group of inputs."""
        dst, region = self.dst, self.region
        summed, pairs = group
        kept = [a for a in range(len(region.shape)) if a not in summed]
        made = self._loops([back[k][d] for k, d in pairs], kept, summed)
        shape = tuple(region.shape[a] for a in kept)
        for (k, d), i in zip(pairs, made):
            read = region.reads[k]
            kind = dst.dtype[int(region.inputs[k])]
            if read is None:
                into[k][d] = i
            elif isinstance(read, Gather):
                into[k][d] = _added_at(dst, i, dst.block(read.table), kind)
            else:
                moved = Affine(read.offset, tuple(read.strides[a] for a in kept))
                into[k][d] = _put(dst, i, shape, moved, kind)

    def accumulate(
        self,
        block: int,
        d: int,
        bar: int,
        inputs: Sequence[int],
        src: Graph,
        at: int,
        into: list[Directions],
    ) -> None:
        """Emit what a block gets back from an element that the body reads of it."""
        dst, region, body = self.dst, self.region, self.body
        to = copy_into(body, src, inputs[: len(src.inputs)], src.live([at]))
        axes = list(range(len(region.shape)))
        values, index = self._loops([bar, to[at]], axes, ())
        kind = dst.dtype[int(region.inputs[block])]
        term = _added_at(dst, values, index, kind)
        old = into[block].get(d)
        into[block][d] = term if old is None else add_values(dst, old, term)

    def _loops(self, outs: list[int], kept: Sequence[int], summed: Sequence[int]) -> list[int]:
        region, order = self.region, [*kept, *summed]
        body = _with_outputs(self.body, outs, len(self.ids), order)
        reads = [_permuted(read, region.shape, order) for read in self.reads]
        shape = [region.shape[a] for a in order]
        combine = "add" if summed else ""
        if not shape:
            combine = ""
        return loops(self.dst, self.ids, reads, body, shape, len(kept), combine)


def _with_outputs(body: Graph, outs: list[int], count: int, order: Sequence[int]) -> Graph:
    """Return a body with other outputs, whose indices come in another order of axes."""
    made = Graph()
    inputs = [made.input(kind) for kind in body.input_dtypes]
    ordered = list(inputs)
    if len(inputs) > count:
        for place, axis in enumerate(order):
            ordered[count + axis] = inputs[count + place]
    to = copy_into(made, body, ordered, body.live(outs))
    made.outputs = [to[i] for i in outs]
    return made


def _permuted(read: Read, shape: Sequence[int], order: Sequence[int]) -> Read:
    if read is None:
        return None
    if isinstance(read, Gather):
        return Gather(read.table.reshape(tuple(shape)).transpose(list(order)))
    return Affine(read.offset, tuple(read.strides[a] for a in order))


def _added_at(dst: Graph, values: int, index: int, kind: int) -> int:
    region = Accumulate([values, index], length_of(kind), item_type(kind))
    return int(dst.region(region)[0])


def _put(dst: Graph, values: int, shape: tuple[int, ...], to: Affine, kind: int) -> int:
    """Emit a block with values, in C order over a box, at the places of an affine read."""
    if not length_of(dst.dtype[values]):  # one element, read at every point
        return pack(dst, length_of(kind), item_type(kind), [values], [Move(0, (), to, None)])
    if _is_injective(to, shape):
        move = Move(0, shape, to, Affine(0, row_major(shape)))
        return pack(dst, length_of(kind), item_type(kind), [values], [move])
    return _added_at(dst, values, dst.block(positions(to, shape).ravel()), kind)


def _is_injective(read: Affine, shape: Sequence[int]) -> bool:
    """Tell whether different points surely read different elements."""
    span = 0
    for stride, n in sorted((abs(s), n) for s, n in zip(read.strides, shape)):
        if n > 1:
            if stride <= span:
                return False
            span += stride * (n - 1)
    return True


register_derivative(Nest, RegionDerivative(_nest_forward, _nest_reverse))


def _pack_forward(dst: Graph, region: Pack, given: list[Directions]) -> tuple[Any, Any]:
    tangents: Directions = {}
    for d in sorted({d for tangent in given for d in tangent}):
        sources: list[int] = []
        moves: list[Move] = []
        for move in region.moves:
            tangent = given[move.source].get(d)
            if tangent is not None:
                moves.append(move._replace(source=len(sources)))
                sources.append(tangent)
        tangents[d] = pack(dst, region.length, region.dtype, sources, moves)
    return dst.region(region), [tangents]


def _pack_reverse(
    dst: Graph, region: Pack, adjoints: list[Directions], saved: Any, wanted: Sequence[bool]
) -> list[Directions]:
    results: list[Directions] = [{} for _ in region.inputs]
    for _, d in pairs_of(adjoints):
        bar = adjoints[0][d]
        for source, shape, to, start in region.moves:
            if not wanted[source]:
                continue
            i = int(region.inputs[source])
            if start is not None:
                term = _box_back(dst, bar, Move(source, shape, to, start), dst.dtype[i])
            elif all(n == 1 for n in shape):
                term = dst.element(bar, dst.const(to.offset, I64))
            else:
                term = total(dst, bar, to, shape)
            _add(dst, results[source], d, term)
    return results


def _box_back(dst: Graph, bar: int, move: Move, kind: int) -> int:
    """Emit what a source gets back from a box: sums where an element was copied many times."""
    _, shape, to, start = move
    assert start is not None
    again = [k for k, n in enumerate(shape) if n > 1 and not start.strides[k]]
    if not again:
        back = [Move(0, shape, start, to)]
        return pack(dst, length_of(kind), item_type(kind), [bar], back)
    kept = [k for k in range(len(shape)) if k not in again]
    order = [*kept, *again]
    body = Graph()
    body.outputs = [body.input(item_type(kind))]
    read = Affine(to.offset, tuple(to.strides[k] for k in order))
    space = [shape[k] for k in order]
    (values,) = loops(dst, [bar], [read], body, space, len(kept), "add")
    box = tuple(shape[k] for k in kept)
    there = Affine(start.offset, tuple(start.strides[k] for k in kept))
    own = Affine(0, row_major(box)) if kept else None
    back = [Move(0, box, there, own)]
    return pack(dst, length_of(kind), item_type(kind), [values], back)


def _add(dst: Graph, into: Directions, d: int, term: int) -> None:
    from archimedes.graph.derivatives.reverse import add_term
    from archimedes.graph.formulas import Emit

    add_term(dst, Emit(dst, item_type(dst.dtype[term])), into, d, term)


def _accumulate_forward(dst: Graph, region: Accumulate, given: list[Directions]) -> tuple[Any, Any]:
    index = int(region.inputs[1])
    tangents = {
        d: int(dst.region(region.with_inputs([tangent, index]))[0])
        for d, tangent in given[0].items()
    }
    return dst.region(region), [tangents]


def _accumulate_reverse(
    dst: Graph, region: Accumulate, adjoints: list[Directions], saved: Any, wanted: Sequence[bool]
) -> list[Directions]:
    index = int(region.inputs[1])
    count = length_of(dst.dtype[index])
    line = Affine(0, row_major((count,)))
    back = {
        d: scalar_loop(dst, [bar, index], Graph.element, (count,), (None, line))
        for d, bar in adjoints[0].items()
    }
    return [back, {}]


register_derivative(Pack, RegionDerivative(_pack_forward, _pack_reverse))
register_derivative(Accumulate, RegionDerivative(_accumulate_forward, _accumulate_reverse))
