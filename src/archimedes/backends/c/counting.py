"""Worst-case counts of operations: loops are bounded, so the counts are exact bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

from archimedes.backends.lowering.scope import stays_in_place
from archimedes.graph.dtypes import F64
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.expand import program
from archimedes.graph.ops import BLOCK, CONST, INPUT, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.loop_regions import times

__all__ = ["operations", "primitives"]

Counts = Counter[str]


def operations(g: Graph) -> Counts:
    """Count, by op, the most operations that one evaluation of a graph takes.

    An element of a block at a known index is a value in memory, no operation.

    >>> from archimedes.graph.ops import CODES
    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["sin"], g.emit(CODES["add"], x, x))]
    >>> dict(operations(g))
    {'add': 1, 'sin': 1}
    """
    counts: Counts = Counter()
    for i in g.live():
        code = g.op[i]
        if code == REGION:
            counts += g.regions[i].count(operations, _weight)
        elif code not in (BLOCK, CONST, INPUT, OUT) and not stays_in_place(g, i):
            counts[TABLE[code].name] += 1
    return counts


def _weight(counts: Counts) -> int:
    return primitives(counts).total()


@cache
def _inside(name: str) -> Counts:
    return operations(program(name, F64))


def primitives(counts: Mapping[str, int]) -> Counts:
    """Replace the elementary functions in a count by the operations they consist of."""
    total: Counts = Counter()
    for name, count in counts.items():
        total += times(_inside(name), count) if name in PROGRAMS else Counter({name: count})
    return total
