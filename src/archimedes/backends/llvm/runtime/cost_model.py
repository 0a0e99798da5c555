"""Cost model: how many instances of a batch are computed at once.

The instances of a batch go into SIMD lanes, or the elements of each instance's arrays do. Instances
fill the lanes whatever they compute, but they take as many times the memory. Arrays fill them where
they are long: what is done in scalars, one step after the other, is left to one lane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import NamedTuple

from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.analysis import cost, has_host, invariant_nodes
from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import BLOCK, CONST, INPUT, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Map, Nest, Pack, Region, Scan, Solve, While

#: Loops of this many steps count as long.
LONG_LOOP = 16
#: Operations that an elementary function is taken for, and the beginning of a loop.
ELEMENTARY, BEGINNING = 40, 40
#: Of an elimination this part is searching for pivots, swapping rows, ends of rows.
PIVOTING = 0.3
#: How often a bounded loop is assumed to run.
ROUNDS = 10
#: Bytes that a first and a second cache have left for a kernel, and how much longer it takes where
#: its blocks need more.
CACHES = ((32_768, 1.0), (262_144, 1.25))
BEYOND = 4.0
#: What operations of products with a table take, by the bytes of the table: in lanes of one
#: instance, which loads the table for itself, and in lanes of instances, which share what they
#: load of it.
TABLES = ((32_768, 1.0, 0.85), (262_144, 1.2, 0.7), (math.inf, 1.6, 0.7))
#: What it takes to bring an item of the arrays of a call into lanes of instances, or back.
MOVE = 1.4


def lanes_for(graph: Graph, target: Target, varies: Sequence[bool]) -> int:
    """Return how many instances to compute at once.

    ``varies`` tells which inputs differ from instance to instance.

    As many as a register holds; twice that for long loops, whose steps wait for each other and
    leave the CPU with little to do meanwhile, and for matrix products, which then load half as
    often. Where instances leave a loop at different times, more of them would wait for the last;
    and a loop with many values, which the registers cannot hold twice, would wait for memory.

    One where a callback takes one instance at a time, and where arrays are long enough for lanes
    of their own: what instances of a batch have in memory together should stay in the caches.
    """
    if has_host(graph):
        return 1
    varying = [kind for kind, differs in zip(graph.input_dtypes, varies) if differs]
    blocks = any(map(length_of, [*varying, *graph.output_dtypes]))
    if not blocks and not _has_long_loops(graph, target.registers**2):
        # Counting takes longer than reading the code of a long program from the disk.
        return target.lanes
    model = estimate(graph, target, varies)
    if blocks and not model.prefers_instances:
        return 1
    return target.lanes * (2 if (model.shares_tables or not blocks) and model.fits_twice else 1)


def _has_long_loops(graph: Graph, most: int) -> bool:
    regions = graph.regions.values()
    loops = [r for r in regions if isinstance(r, Scan) and r.length >= LONG_LOOP]
    if any(not _has_while(r.body) and cost(r.body, {}) <= most for r in loops):
        return True
    if any(isinstance(r, Nest) and r.kept and r.reduced >= LONG_LOOP for r in regions):
        return True
    return any(_has_long_loops(body, most) for r in regions for body in r.bodies)


def _has_while(graph: Graph) -> bool:
    """Return whether some instances may wait for others."""
    regions = graph.regions.values()
    return any(isinstance(r, While) or any(map(_has_while, r.bodies)) for r in regions)


class Work(NamedTuple):
    """Operations ``alone``, one after the other, and ``together``, in lanes of one instance.

    ``reading`` and ``sharing`` are those of products with tables, weighed by what they take in
    lanes of one instance and in lanes of instances. ``largest`` are the items of the largest block.
    """

    alone: int = 0
    together: int = 0
    reading: int = 0
    sharing: int = 0
    largest: int = 0


class Estimate(NamedTuple):
    """What there is to do for an instance.

    ``pressure`` is how many times longer an operation takes on blocks of as many instances as
    there are ``lanes``, which are ``held`` bytes. ``moved`` are the items of the arrays of a call.
    """

    work: Work
    pressure: float
    held: int
    moved: int
    lanes: int

    @property
    def fits_twice(self) -> bool:
        """Whether twice as many instances as there are lanes fit the first cache.

        The second one where they share most of what they load.
        """
        return 2 * self.held <= CACHES[self.shares_tables][0]

    @property
    def shares_tables(self) -> bool:
        """Whether most of the work are products with tables that all instances read."""
        return self.work.sharing > self.work.alone + self.work.together

    @property
    def prefers_instances(self) -> bool:
        """Whether instances in lanes are faster than one after the other."""
        work = self.work
        inside = work.alone + (work.together + work.reading) / self.lanes
        outside = (work.alone + work.together + work.sharing) / self.lanes * self.pressure
        return outside + MOVE * self.moved < 0.9 * inside


def estimate(graph: Graph, target: Target, varies: Sequence[bool]) -> Estimate:
    """Return what there is to do, and how it can be done.

    ``varies`` tells which inputs differ from instance to instance; others are like tables.
    """
    work = _Count(target).count(graph, invariant_nodes(graph, varies))
    varying = [kind for kind, differs in zip(graph.input_dtypes, varies) if differs]
    moved = sum(map(length_of, [*varying, *graph.output_dtypes]))
    held = 8 * target.lanes * (moved + 2 * work.largest)
    pressure = next((factor for size, factor in CACHES if held <= size), BEYOND)
    return Estimate(work, pressure, held, moved, target.lanes)


class _Count:
    """Counts operations."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._known: dict[str, Work] = {}

    def body(self, g: Graph) -> Work:
        """Return the figures of a body."""
        key = g.digest()
        if key not in self._known:
            self._known[key] = self.count(g, {i for i in g.live() if g.op[i] == BLOCK})
        return self._known[key]

    def count(self, g: Graph, shared: Set[int]) -> Work:
        """Return the figures of a program but for nodes that are the same for all instances."""
        total = Work()
        for i in g.live():
            code = g.op[i]
            if i in shared:
                continue
            mine, largest = Work(), [total.largest, length_of(g.dtype[i])]
            if code == REGION:
                mine = self._region(g, g.regions[i], shared)
                largest += [self.body(body).largest for body in g.regions[i].bodies]
            elif code not in (CONST, INPUT, OUT):
                mine = Work(ELEMENTARY if TABLE[code].elementary else 1)
            alone, together, reading, sharing = (x + y for x, y in zip(total[:4], mine))
            total = Work(alone, together, reading, sharing, max(largest))
        return total

    def _region(self, g: Graph, region: Region, shared: Set[int]) -> Work:
        """Return the figures of a region."""
        own = region.work(lambda body: 0, ROUNDS)

        def inside(k: int) -> int:
            return region.work(lambda body: self.body(body)[k], ROUNDS)

        one, (many, reading, sharing) = inside(0), (inside(k) - own for k in range(1, 4))
        if isinstance(region, Solve):
            steps = int(PIVOTING * own)
            return Work(steps, own - steps)
        if isinstance(region, Pack | Map):
            return Work(0, one + many, reading, sharing)
        if isinstance(region, Nest):
            from archimedes.backends.llvm.lowering.nests.vector_plans import plan_of

            if plan_of(region, self.body(region.body).alone, self.target) is None:
                return Work(BEGINNING + one, many, reading, sharing)
            table = _table_bytes(g, region, shared)
            if not table:
                return Work(BEGINNING, one + many, reading, sharing)
            each, all_of = next((x, y) for most, x, y in TABLES if table <= most)
            return Work(BEGINNING, many, int(each * one), int(all_of * one))
        return Work(one, many, reading, sharing)


def _table_bytes(g: Graph, region: Nest, shared: Set[int]) -> int:
    """Return the bytes of the largest shared array that a product reads along its results."""
    pairs = zip(region.inputs.tolist(), region.reads if region.combine else ())
    arrays = [(i, read) for i, read in pairs if i in shared and isinstance(read, Affine)]
    read_along = [i for i, read in arrays if any(read.strides[: region.kept])]
    return max((8 * length_of(g.dtype[i]) for i in read_along), default=0)
