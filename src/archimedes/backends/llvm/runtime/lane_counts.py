"""How many instances of a batch are computed at once."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.leaves import leaf_values
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.llvm.runtime.shares import shares_of
from archimedes.backends.lowering.schedule import cost, has_host
from archimedes.graph.dtypes import length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest, Scan, While

__all__ = ["LaneCounts", "lanes_for"]

#: Loops of this many steps count as long.
LONG_LOOP = 16


class LaneCounts:
    """The lanes of a kernel whose arrays hold so many items, by which of them are batched."""

    def __init__(self, graph: Graph, sizes: Sequence[int], target: Target) -> None:
        self.graph, self.target = graph, target
        self._values = leaf_values(graph.input_dtypes, sizes)
        self._known: dict[tuple[bool, ...], int] = {}

    def varies(self, batched: Sequence[bool]) -> list[bool]:
        """Return which inputs of the graph differ from instance to instance."""
        return [flag for count, flag in zip(self._values, batched) for _ in range(count)]

    def of(self, batched: tuple[bool, ...]) -> int:
        """Return how many instances to compute at once."""
        if batched not in self._known:
            self._known[batched] = lanes_for(self.graph, self.target, self.varies(batched))
        return self._known[batched]


def lanes_for(graph: Graph, target: Target, varies: Sequence[bool]) -> int:
    """Return how many instances to compute at once.

    ``varies`` tells which inputs differ from instance to instance.

    As many as a register holds; twice that for long loops, whose steps wait for each other and
    leave the CPU with little to do meanwhile, and for matrix products, which then load half as
    often. Where instances leave a loop at different times, more of them would wait for the last;
    and a loop with many values, which the registers cannot hold twice, would wait for memory.

    One where a callback takes one instance at a time, and where arrays are long enough for lanes
    of their own (``shares.py``): what instances of a batch have in memory together should stay in
    the caches.
    """
    if has_host(graph):
        return 1
    given = [kind for kind, differs in zip(graph.input_dtypes, varies) if differs]
    blocks = any(map(length_of, [*given, *graph.output_dtypes]))
    if not blocks and not _steps_in_sequence(graph, target.registers**2):
        # Counting takes longer than reading the code of a long program from the disk.
        return target.lanes
    shares = shares_of(graph, target, varies)
    if blocks and not shares.across:
        return 1
    return target.lanes * (2 if (shares.shared or not blocks) and shares.twice else 1)


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
