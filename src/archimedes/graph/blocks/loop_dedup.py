"""Loop deduplication: loops that differ only in what they read become calls of one body.

Propagating a covariance takes the same product twice, layers of a network repeat each other: their
loops are written once, as a function that gets the blocks. A loop whose results are put together
to one block is moved with that. Bits do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from archimedes.graph.blocks.building import concatenate
from archimedes.graph.dtypes import I64, length_of
from archimedes.graph.ops import CONST, INPUT, OUT, REGION
from archimedes.graph.passes import DeepTransformer, Origin, Outputs, Rewriter, Transformer
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region
from archimedes.graph.regions.block_regions import Nest, Pack
from archimedes.graph.regions.call_regions import Call

#: Bodies of fewer operations stay where they are: a call takes as much.
FEWEST = 6
#: More numbers than this are given as a block.
BY_VALUE = 8


def dedup_loops(graph: Graph, origin: dict[int, Origin] | None = None) -> Graph:
    """Return an equal graph in which loops of the same form become calls of one body.

    ``origin`` gets an entry for each new graph: where its nodes come from.
    """
    forms: Counter[Hashable] = Counter()
    for g in _graphs(graph):
        forms.update(unit.form for unit in _units(g).values())
    wanted = {form for form, count in forms.items() if count > 1}
    if not wanted:
        return graph
    return Rewriter(lambda src, rewriter: _Dedup(src, rewriter, wanted), origin)(graph)


class _Unit(NamedTuple):
    """A loop, the region that packs its results (if one does), and a key that equal loops share."""

    nest: Nest
    pack: Pack | None
    form: Hashable


def _graphs(g: Graph) -> Iterator[Graph]:
    """Yield a graph and the bodies in it, each of them once."""
    seen: set[str] = set()
    left = [g]
    while left:
        g = left.pop()
        if g.digest() not in seen:
            seen.add(g.digest())
            yield g
            for region in (g.regions[i] for i in g.live() if i in g.regions):
                left += [] if isinstance(region, Nest) else region.bodies


def _units(g: Graph) -> dict[int, _Unit]:
    """Return the loops of a graph that are worth a function, by the last node of each."""
    live = g.live()
    readers: Counter[int] = Counter(g.outputs)
    for i in live:
        if g.op[i] != OUT:
            readers.update(set(g.operands(i)))
    outs: Counter[int] = Counter(g.a[i] for i in live if g.op[i] == OUT)
    regions = [i for i in live if g.op[i] == REGION]
    units: dict[int, _Unit] = {}
    packed: set[int] = set()
    for i in regions:
        region = g.regions[i]
        if not isinstance(region, Pack):
            continue
        ids = region.inputs.tolist()
        makers = {g.a[j] if g.op[j] == OUT else -1 for j in ids}
        nest = g.regions.get(next(iter(makers))) if len(makers) == 1 else None
        alone = all(readers[j] == 1 for j in ids) and len(set(ids)) == outs[g.a[ids[0]]]
        if isinstance(nest, Nest) and alone and _worth_it(nest):
            numbers = tuple(g.b[j] for j in ids)
            form = (_form(g, nest), numbers, region.length, region.dtype, region.moves)
            units[i] = _Unit(nest, region, form)
            packed |= makers
    for i in regions:
        nest = g.regions[i]
        if isinstance(nest, Nest) and i not in packed and nest.kept and _worth_it(nest):
            units[i] = _Unit(nest, None, _form(g, nest))
    return units


def _worth_it(nest: Nest) -> bool:
    body = nest.body
    return sum(body.op[i] not in (CONST, INPUT, OUT) for i in body.live()) >= FEWEST


def _form(g: Graph, nest: Nest) -> Hashable:
    """Return a key that is the same for loops that can share one function."""
    ids = nest.inputs.tolist()
    first = {i: k for k, i in reversed(list(enumerate(ids)))}
    kinds = tuple((g.dtype[i], first[i]) for i in ids)
    return (nest.body.digest(), nest.settings(), kinds)


class _Dedup(DeepTransformer):
    """Writes a graph with calls in the place of loops of the wanted forms."""

    def __init__(self, src: Graph, rewriter: Rewriter, wanted: set[Hashable]) -> None:
        super().__init__(src, rewriter)
        self.units = {i: unit for i, unit in _units(src).items() if unit.form in wanted}

    def region(self, i: int, region: Region) -> Outputs:
        unit = self.units.get(i)
        if unit is not None:
            return self._call(unit)
        if isinstance(region, Nest):
            return Transformer.region(self, i, region)
        return super().region(i, region)

    def _call(self, unit: _Unit) -> list[int]:
        """Append the call of a loop and return its results."""
        dst, body = self.dst, Graph()
        ids = [self.to[i] for i in unit.nest.inputs.tolist()]
        operands = [i for i in dict.fromkeys(ids) if length_of(dst.dtype[i])]
        numbers: dict[int, list[int]] = {}
        for i in dict.fromkeys(i for i in ids if not length_of(dst.dtype[i])):
            numbers.setdefault(dst.dtype[i], []).append(i)
        groups = list(numbers.values())
        if sum(map(len, groups)) <= BY_VALUE:
            operands += [i for group in groups for i in group]
            groups = []
        inside = {i: body.input(dst.dtype[i]) for i in operands}
        for group in groups:  # many numbers are put together
            operands.append(concatenate(dst, group))
            block = body.input(dst.dtype[operands[-1]])
            inside |= {i: body.element(block, body.const(k, I64)) for k, i in enumerate(group)}
        outs = body.region(unit.nest.with_inputs([inside[i] for i in ids])).tolist()
        if unit.pack is not None:
            sources = [outs[self.src.b[j]] for j in unit.pack.inputs.tolist()]
            outs = body.region(unit.pack.with_inputs(sources)).tolist()
        body.outputs = outs
        return dst.region(Call(operands, body)).tolist()
