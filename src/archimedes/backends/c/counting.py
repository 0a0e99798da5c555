"""Worst-case counts of operations: loops are bounded, so the counts are exact bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from archimedes.graph.dtypes import F64
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.expand import program
from archimedes.graph.ops import TABLE
from archimedes.graph.program import CONST, INPUT, OUT, REGION, Graph
from archimedes.graph.regions import Call, Map, Region, Scan, Solve, Switch, While

__all__ = ["operations", "primitives"]

Counts = Counter[str]


def _times(counts: Counts, factor: int) -> Counts:
    return Counter({name: factor * count for name, count in counts.items()})


def _switch(region: Switch) -> Counts:
    """Count the longest branch."""
    return max((operations(b) for b in region.branches), key=lambda c: primitives(c).total())


def _while(region: While) -> Counts:
    once = operations(region.condition) + operations(region.body)
    return _times(once, region.limit)


def _solve(region: Solve) -> Counts:
    """Count elimination and back substitution of n rows with m right-hand sides."""
    n, m = region.size, region.columns
    below = n * (n - 1) // 2
    inner = sum((n - 1 - k) * (n - 1 - k + m) for k in range(n)) + below * m
    pivoting = {"abs": n * (n + 1) // 2, "lt": below}
    return Counter({"div": below + n * m, "mul": inner, "sub": inner, **pivoting})


_REGIONS: dict[type[Region], Callable[[Any], Counts]] = {
    Call: lambda r: operations(r.body),
    Scan: lambda r: _times(operations(r.body), r.length),
    Map: lambda r: _times(operations(r.body), r.length),
    While: _while,
    Switch: _switch,
    Solve: _solve,
}


def operations(g: Graph) -> Counts:
    """Count, by op, the most operations that one evaluation of a graph takes.

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
            counts += _REGIONS[type(g.regions[i])](g.regions[i])
        elif code not in (CONST, INPUT, OUT):
            counts[TABLE[code].name] += 1
    return counts


@cache
def _inside(name: str) -> Counts:
    return operations(program(name, F64))


def primitives(counts: Mapping[str, int]) -> Counts:
    """Replace the elementary functions in a count by the operations they consist of."""
    total: Counts = Counter()
    for name, count in counts.items():
        total += _times(_inside(name), count) if name in PROGRAMS else Counter({name: count})
    return total
