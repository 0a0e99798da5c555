"""Which outputs depend on which inputs, found from the structure of the graph alone.

Sets of inputs are Python ints used as bit sets: bit j stands for input j. Only dependence that
can carry a derivative counts: a comparison or a floor has none.

The body of a region is read once, whatever the region is given and however deep it lies: its own
pattern is kept, and the sets that come in are put in the place of its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archimedes.graph.derivatives.rules import LINEAR, PARTIALS
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import INPUT, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region

__all__ = ["dependence", "through", "work"]

_SMOOTH = tuple(op.name in PARTIALS or op.name in LINEAR for op in TABLE)


def region_size(region: Region) -> int:
    """Count the nodes in a region's bodies: what it costs beside the nodes around it."""
    return sum(len(body) for body in region.bodies)


def _propagate(g: Graph, seeds: Sequence[int], visit: Callable[[int, int], None] | None = None):
    sets = [0] * len(g.op)
    outs: dict[int, list[int]] = {}
    for i in g.live():
        op = g.op[i]
        if op == INPUT:
            mine = seeds[g.a[i]] if is_float(g.dtype[i]) else 0
        elif op == REGION:
            region = g.regions[i]
            given = [sets[j] for j in region.inputs.tolist()]
            outs[i] = region.dependence(given, through)
            if visit is not None:
                visit(_union(given), region_size(region))
            mine = 0
        elif op == OUT:
            mine = outs[g.a[i]][g.b[i]] if is_float(g.dtype[i]) else 0
        elif _SMOOTH[op] and is_float(g.dtype[i]):
            mine = 0
            for j in g.operands(i):
                mine |= sets[j]
        else:
            mine = 0
        sets[i] = mine
        if visit is not None and mine:
            visit(mine, 1)
    return [sets[i] for i in g.outputs]


def dependence(g: Graph, seeds: Sequence[int] | None = None) -> list[int]:
    """Return for each output the set of inputs (or the union of their seeds) it depends on."""
    return _propagate(g, [1 << k for k in range(len(g.inputs))] if seeds is None else seeds)


def work(g: Graph, seeds: Sequence[int]) -> int:
    """Count the (node, direction) pairs of a forward sweep with these directions."""
    total = 0

    def visit(mine: int, nodes: int) -> None:
        nonlocal total
        total += mine.bit_count() * nodes

    _propagate(g, seeds, visit)
    return total


def _union(sets: list[int]) -> int:
    union = 0
    for s in sets:
        union |= s
    return union


def through(body: Graph, given: Sequence[int]) -> list[int]:
    """Return what each output of a body depends on where its inputs stand for these sets."""
    if body._pattern is None:
        body._pattern = dependence(body)
    sums: dict[int, int] = {}
    for mask in body._pattern:
        if mask not in sums:
            sums[mask] = _substitute(mask, given)
    return [sums[mask] for mask in body._pattern]


def _substitute(mask: int, given: Sequence[int]) -> int:
    total = 0
    while mask:
        low = mask & -mask
        total |= given[low.bit_length() - 1]
        mask ^= low
    return total
