"""Which outputs depend on which inputs, found from the structure of the graph alone.

Sets of inputs are Python ints used as bit sets: bit j stands for input j; a block has intervals
for each of its elements (``regions/interval_sets.py``). Only dependence that can carry a
derivative counts: a comparison or a floor has none.

The body of a region is read once, whatever the region is given and however deep it lies: its own
pattern is kept, and the sets that come in are put in the place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from operator import or_

from archimedes.graph.derivatives.coloring import Pattern, pattern_of_sets
from archimedes.graph.derivatives.rules import IS_SMOOTH
from archimedes.graph.dtypes import is_float, length_of
from archimedes.graph.ops import CODES, ELEMENT, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region
from archimedes.graph.regions.interval_sets import Sets, compose, fill, join, union_of, unit_sets

#: Ops that move values, and have no derivative of their own.
_MOVES = frozenset({INPUT, OUT, REGION, ELEMENT, CODES["block"]})


def region_size(region: Region) -> int:
    """Count the nodes in a region's bodies: what it costs beside the nodes around it."""
    return sum(nodes_in(body) for body in region.bodies)


def cost_of(region: Region) -> int:
    """Count what a region costs per direction: nodes of its bodies, inputs and outputs."""
    return region_size(region) + len(region.inputs) + len(region.out_dtypes)


def nodes_in(g: Graph) -> int:
    """Count the nodes of a program, those of all bodies included."""
    return len(g) + sum(map(region_size, g.regions.values()))


def _propagate(g: Graph, seeds: Sequence[Sets], visit: Callable[[int, int], None] | None = None):
    sets: list[Sets] = [0] * len(g.op)
    outs: dict[int, list[Sets]] = {}
    for i in g.live():
        op = g.op[i]
        if IS_SMOOTH[op]:
            mine = 0
            if is_float(g.dtype[i]):
                for j in g.operands(i):
                    mine |= sets[j]
        elif op == INPUT:
            mine = _spread(seeds[g.a[i]], g.dtype[i]) if is_float(g.dtype[i]) else 0
        elif op == REGION:
            region = g.regions[i]
            of_inputs = [sets[j] for j in region.inputs.tolist()]
            outs[i] = region.dependence(of_inputs, through)
            if visit is not None:
                visit(reduce(or_, map(union_of, of_inputs), 0), cost_of(region))
            mine = 0
        elif op == OUT:
            mine = outs[g.a[i]][g.b[i]] if is_float(g.dtype[i]) else 0
        elif op == ELEMENT:
            mine = sets[g.a[i]] and _element(g, i, sets[g.a[i]])
        else:
            mine = 0
        sets[i] = mine
        if visit is not None and mine:
            visit(union_of(mine), length_of(g.dtype[i]) or 1)
    return [sets[i] for i in g.outputs]


def _element(g: Graph, i: int, sets: Sets) -> int:
    at = g.value.get(g.b[i])
    return union_of(sets) if at is None else sets[at]


def dependence(g: Graph, seeds: Sequence[Sets] | None = None) -> list[Sets]:
    """Return for each output the set of inputs (or the union of their seeds) it depends on."""
    return _propagate(g, [1 << k for k in range(len(g.inputs))] if seeds is None else seeds)


def pattern(src: Graph, wrt: Sequence[int]) -> Pattern:
    """Return which outputs depend on which of the inputs at ``wrt``.

    A block counts as its elements, among inputs and outputs.
    """
    seeds: list[Sets] = [0] * len(src.inputs)
    kinds, k = src.input_dtypes, 0
    for position in wrt:
        length = length_of(kinds[position])
        seeds[position] = unit_sets(k, length) if length else seeds[position] | 1 << k
        k += length or 1
    lengths = [length_of(kind) for kind in src.output_dtypes]
    return pattern_of_sets(dependence(src, seeds), lengths, k)


def has_kinks(g: Graph, wrt: Sequence[int]) -> bool:
    """Return whether a value that depends on the inputs at ``wrt`` meets an op without derivative.

    Such a comparison, rounding or lookup makes a program with constant derivatives piecewise.
    Bodies of regions are not looked into.
    """
    depends = g.dependents(g.inputs[k] for k in wrt)
    codes = (g.op[i] for i in g.live() if depends[i])
    return any(not IS_SMOOTH[code] and code not in _MOVES for code in codes)


def _spread(mine: Sets, kind: int) -> Sets:
    """Return the sets of an input; one set given for a block holds for every element."""
    return fill(mine, length_of(kind)) if type(mine) is int and length_of(kind) else mine


def work(g: Graph, seeds: Sequence[int]) -> int:
    """Count the (node, direction) pairs of a forward sweep with these directions."""
    total = 0

    def visit(mine: int, nodes: int) -> None:
        nonlocal total
        total += mine.bit_count() * nodes

    _propagate(g, seeds, visit)
    return total


def through(body: Graph, sets: Sequence[Sets]) -> list[Sets]:
    """Return what each output of a body depends on where its inputs stand for these sets."""
    if body._pattern is None:
        body._pattern = _Local(body)
    return body._pattern.on(sets)


class _Local:
    """The pattern of a body: what its outputs depend on, a bit for each element of an input."""

    def __init__(self, body: Graph) -> None:
        self.widths = [length_of(kind) or 1 for kind in body.input_dtypes]
        self.lengths = [length_of(kind) for kind in body.output_dtypes]
        self.scalar = not any(map(length_of, body.input_dtypes)) and not any(self.lengths)
        seeds: list[Sets] = []
        at = 0
        for width, kind in zip(self.widths, body.input_dtypes):
            seeds.append(unit_sets(at, width) if length_of(kind) else 1 << at)
            at += width
        self.outputs = dependence(body, seeds)

    def on(self, sets: Sequence[Sets]) -> list[Sets]:
        """Return what the outputs depend on where the inputs depend on these sets."""
        if self.scalar:
            sums = {mask: _substitute(mask, sets) for mask in set(self.outputs)}
            return [sums[mask] for mask in self.outputs]
        every, own = join(zip(sets, self.widths)), self._rows
        if not every or not own:
            return [0] * len(self.lengths)
        rows, at = compose(own, every), 0
        outputs: list[Sets] = []
        for length in self.lengths:
            outputs.append(rows[at : at + length] if length else rows[at])
            at += length or 1
        return outputs

    @cached_property
    def _rows(self) -> Sets:
        """The sets of all outputs, concatenated."""
        return join((sets, length or 1) for sets, length in zip(self.outputs, self.lengths))


def _substitute(mask: int, sets: Sequence[int]) -> int:
    total = 0
    while mask:
        low = mask & -mask
        total |= sets[low.bit_length() - 1]
        mask ^= low
    return total
