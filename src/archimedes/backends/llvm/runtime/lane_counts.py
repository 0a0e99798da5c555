"""How many instances of a batch are computed at once."""

from __future__ import annotations

from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.llvm.runtime.shares import shares_of
from archimedes.backends.lowering.schedule import cost, has_host
from archimedes.graph.dtypes import length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest, Scan, While

__all__ = ["lanes_for"]

#: Loops of this many steps count as long.
LONG_LOOP = 16


def lanes_for(graph: Graph, target: Target) -> int:
    """Return how many instances to compute at once.

    As many as a register holds; twice that for long loops, whose steps wait for each other and
    leave the CPU with little to do meanwhile, and for matrix products, which then load half as
    often. Where instances leave a loop at different times, more of them would wait for the last;
    and a loop with many values, which the registers cannot hold twice, would wait for memory.

    One where a callback takes one instance at a time, and where arrays are long enough for lanes
    of their own: what instances of a batch have in memory together should stay in the caches.
    """
    if has_host(graph):
        return 1
    if any(map(length_of, [*graph.input_dtypes, *graph.output_dtypes])):
        return target.lanes if shares_of(graph, target).across else 1
    if not _steps_in_sequence(graph, target.registers**2) or not shares_of(graph, target).twice:
        return target.lanes
    return 2 * target.lanes


def _steps_in_sequence(graph: Graph, most: int) -> bool:
    regions = graph.regions.values()
    loops = [r for r in regions if isinstance(r, Scan) and r.length >= LONG_LOOP]
    if any(not _waits(r.body) and cost(r.body, {}) <= most for r in loops):
        return True
    if any(isinstance(r, Nest) and r.kept and r.reduced >= LONG_LOOP for r in regions):
        return True
    return any(_steps_in_sequence(body, most) for r in regions for body in r.bodies)


def _waits(graph: Graph) -> bool:
    """Tell whether some instances may wait for others."""
    regions = graph.regions.values()
    return any(isinstance(r, While) or any(map(_waits, r.bodies)) for r in regions)
