"""What a kernel has to do for one instance, and how much of that goes in lanes by itself.

The instances of a batch go into lanes, or the elements of each instance's arrays do. Instances fill
the lanes whatever they compute; but they take as many times the memory. Arrays do so where they are
long: what is done in scalars, one step after the other, is left to one lane.
"""

from __future__ import annotations

from typing import NamedTuple

from archimedes.backends.llvm.runtime.machine import Target
from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import BLOCK, CONST, INPUT, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map, Nest, Pack, Region, Solve

__all__ = ["Shares", "shares_of"]

#: Operations that an elementary function is taken for, and the beginning of a loop.
ELEMENTARY, BEGINNING = 40, 40
#: Of an elimination this part is searching for pivots, swapping rows, ends of rows.
PIVOTING = 0.3
#: How often a bounded loop is assumed to run.
ROUNDS = 10
#: Bytes that a first and a second cache have left for a kernel, and what it takes longer where its
#: blocks need more.
CACHES = ((32_768, 1.0), (262_144, 1.25))
BEYOND = 4.0


class Shares(NamedTuple):
    """Operations ``alone``, one after the other, and ``together``, in lanes of one instance.

    ``pressure`` is how many times longer an operation takes on blocks of as many instances as
    there are ``lanes``, which are ``held`` bytes.
    """

    alone: int
    together: int
    pressure: float
    held: int
    lanes: int

    @property
    def twice(self) -> bool:
        """Whether twice as many instances would still fit the first cache."""
        return 2 * self.held <= CACHES[0][0]

    @property
    def across(self) -> bool:
        """Whether instances in lanes are faster than one after the other."""
        inside = self.alone + self.together / self.lanes
        return (self.alone + self.together) / self.lanes * self.pressure < 0.9 * inside


def shares_of(graph: Graph, target: Target) -> Shares:
    """Return what there is to do, and how it can be done."""
    alone, together, largest = _Work(target).of(graph)
    interface = sum(map(length_of, [*graph.input_dtypes, *graph.output_dtypes]))
    held = 8 * target.lanes * (interface + 2 * largest)
    pressure = next((factor for size, factor in CACHES if held <= size), BEYOND)
    return Shares(alone, together, pressure, held, target.lanes)


class _Work:
    """Counts operations: alone, together, and the items of the largest block."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._known: dict[str, tuple[int, int, int]] = {}

    def of(self, g: Graph) -> tuple[int, int, int]:
        """Return the figures of a graph."""
        key = g.digest()
        if key not in self._known:
            self._known[key] = self._count(g)
        return self._known[key]

    def _count(self, g: Graph) -> tuple[int, int, int]:
        alone = together = largest = 0
        for i in g.live():
            code = g.op[i]
            if code == REGION:
                mine = self._region(g.regions[i])
                alone, together = alone + mine[0], together + mine[1]
                largest = max(largest, *(self.of(body)[2] for body in g.regions[i].bodies), 0)
            elif code not in (BLOCK, CONST, INPUT, OUT):
                alone += ELEMENTARY if TABLE[code].elementary else 1
            # Tables are shared by all instances.
            if code != BLOCK:
                largest = max(largest, length_of(g.dtype[i]))
        return alone, together, largest

    def _region(self, region: Region) -> tuple[int, int]:
        """Return what of a region is done alone, and together."""
        own = region.work(lambda body: 0, ROUNDS)
        one = region.work(lambda body: self.of(body)[0], ROUNDS)
        many = region.work(lambda body: self.of(body)[1], ROUNDS) - own
        if isinstance(region, Solve):
            steps = int(PIVOTING * own)
            return steps, own - steps
        if isinstance(region, Pack | Map):
            return 0, one + many
        if isinstance(region, Nest):
            from archimedes.backends.llvm.lowering.nests.plans import plan_of

            price = self.of(region.body)[0]
            planned = plan_of(region, price, self.target) is not None
            return (BEGINNING, one + many) if planned else (BEGINNING + one, many)
        return one, many
