"""Derivatives of blocks put together, and of values added at indices: both are linear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.graph.blocks.building import loops, pack, scalar_loop, total
from archimedes.graph.derivatives.bodies import pairs_of
from archimedes.graph.dtypes import I64, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Accumulate, Pack
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative
from archimedes.graph.regions.pack import Move
from archimedes.graph.regions.reads import Affine, row_major

__all__: list[str] = []


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
