"""Which outputs depend on which inputs, found from the structure of the graph alone.

Sets of inputs are Python ints used as bit sets: bit j stands for input j. Only dependence that
can carry a derivative counts: a comparison or a floor has none. A block has a list of sets, one
for each element, or 0 where none depends on anything.

The body of a region is read once, whatever the region is given and however deep it lies: its own
pattern is kept, and the sets that come in are put in the place of its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archimedes.graph.derivatives.rules import LINEAR, PARTIALS
from archimedes.graph.dtypes import is_float, length_of
from archimedes.graph.ops import ELEMENT, INPUT, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region

__all__ = ["dependence", "through", "work"]

_SMOOTH = tuple(op.name in PARTIALS or op.name in LINEAR for op in TABLE)


def region_size(region: Region) -> int:
    """Count the nodes in a region's bodies: what it costs beside the nodes around it."""
    return sum(len(body) for body in region.bodies)


#: What a value depends on: a set, or a list of them for a block.
Sets = Any


def _propagate(g: Graph, seeds: Sequence[Sets], visit: Callable[[int, int], None] | None = None):
    sets: list[Sets] = [0] * len(g.op)
    outs: dict[int, list[Sets]] = {}
    for i in g.live():
        op = g.op[i]
        if _SMOOTH[op]:
            mine = 0
            if is_float(g.dtype[i]):
                for j in g.operands(i):
                    mine |= sets[j]
        elif op == INPUT:
            mine = _whole(seeds[g.a[i]], g.dtype[i]) if is_float(g.dtype[i]) else 0
        elif op == REGION:
            region = g.regions[i]
            given = [sets[j] for j in region.inputs.tolist()]
            outs[i] = region.dependence(given, through)
            if visit is not None:
                visit(_union(given), region_size(region))
            mine = 0
        elif op == OUT:
            mine = outs[g.a[i]][g.b[i]] if is_float(g.dtype[i]) else 0
        elif op == ELEMENT:
            mine = sets[g.a[i]] and _element(g, i, sets[g.a[i]])
        else:
            mine = 0
        sets[i] = mine
        if visit is not None and mine:
            visit(mine if type(mine) is int else _union([mine]), length_of(g.dtype[i]) or 1)
    return [sets[i] for i in g.outputs]


def _element(g: Graph, i: int, sets: list[int]) -> int:
    at = g.value.get(g.b[i])
    return _union(sets) if at is None else sets[at]


def dependence(g: Graph, seeds: Sequence[int] | None = None) -> list[int]:
    """Return for each output the set of inputs (or the union of their seeds) it depends on."""
    return _propagate(g, [1 << k for k in range(len(g.inputs))] if seeds is None else seeds)


def _whole(mine: Sets, kind: int) -> Sets:
    """Return what an input stands for: of a block with one set, every element."""
    return [mine] * length_of(kind) if mine and isinstance(mine, int) and length_of(kind) else mine


def work(g: Graph, seeds: Sequence[int]) -> int:
    """Count the (node, direction) pairs of a forward sweep with these directions."""
    total = 0

    def visit(mine: int, nodes: int) -> None:
        nonlocal total
        total += mine.bit_count() * nodes

    _propagate(g, seeds, visit)
    return total


def _union(sets: Sequence[Sets]) -> int:
    union = 0
    for s in sets:
        union |= _union(s) if isinstance(s, list) else s
    return union


def through(body: Graph, given: Sequence[int]) -> list[int]:
    """Return what each output of a body depends on where its inputs stand for these sets."""
    if body._pattern is None:
        body._pattern = dependence(body)
    sums: dict[int, int] = {}
    for mask in _distinct(body._pattern):
        sums[mask] = _substitute(mask, given)
    return [
        [sums[mask] for mask in entry] if isinstance(entry, list) else sums[entry]
        for entry in body._pattern
    ]


def _distinct(pattern: Sequence[Sets]) -> set[int]:
    found: set[int] = set()
    for entry in pattern:
        found.update(entry if isinstance(entry, list) else (entry,))
    return found


def _substitute(mask: int, given: Sequence[Sets]) -> int:
    total = 0
    while mask:
        low = mask & -mask
        total |= _union([given[low.bit_length() - 1]])
        mask ^= low
    return total
