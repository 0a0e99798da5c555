"""``Nest`` in a batch kernel, whose lanes are instances: points of one or two axes together.

A value is a vector of instances, wherever it lies: no axis is better than another. Points that are
computed together share what they read in common, and give the CPU enough to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import combinations, product
from typing import Any

from archimedes.backends.llvm.lowering.nests.loop_fission import StagedNest, Staging, write_stages
from archimedes.backends.llvm.lowering.nests.packing import LEAST, packed
from archimedes.backends.llvm.lowering.nests.register_tiling import RowNest
from archimedes.backends.llvm.lowering.nests.vector_plans import (
    CHUNK,
    SHORT,
    TWO,
    Plan,
    in_stages,
    registers_of,
)
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index, NestWriter, Walk, along, identity
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.regions import Affine, Nest
from archimedes.graph.regions.nest import row_major

__all__ = ["instance_nest"]

#: Points of each axis that are computed together.
Tile = dict[int, int]
#: What loads, stores and the turn of a loop take, where an operation takes 1.
LOAD, STORE, TURN = 1.0, 1.0, 6.0
#: Registers that a stage computes at once.
REGISTERS = 4


def instance_nest(
    low: Lowering,
    f: Any,
    region: Nest,
    given: Sequence[Binding],
    wanted: Sequence[int],
    cost: int,
) -> NestWriter | None:
    """Return what writes a nest in lanes of instances, None where plain loops do.

    ``cost`` are the operations of the body.
    """
    lanes, target = f.spelling.lanes, f.module.target
    axis = max(range(region.kept), key=region.shape.__getitem__, default=-1)
    if axis >= 0 and in_stages(region, axis, cost, target, lanes):
        rows = max(1, REGISTERS * target.lanes // lanes)
        plan = Plan(axis, lanes, axis, rows, stages=True)
        return InstanceStages(low, f, region, given, wanted, plan)
    tile = _tile_of(region, cost, lanes, target)
    return None if tile is None else InstanceNest(low, f, region, given, wanted, tile)


def _tile_of(region: Nest, cost: int, lanes: int, target: Target) -> Tile | None:
    """Return how many points of which axes to compute together, None where it is one of none.

    ``cost`` are the operations of the body.
    """
    each = max(1, lanes // target.lanes) * len(region.body.outputs)
    most = max(1, (registers_of(target) - 4) // each)
    if not region.combine:
        most = min(most, 4)
    if cost > SHORT:
        most = min(most, 4 if region.combine else 2)
    if cost > TWO:
        return None
    wide = [k for k in range(region.kept) if region.shape[k] > 1]
    found: list[Tile] = [{}]
    for axes in [*((k,) for k in wide), *combinations(wide, 2)]:
        # What two axes share stays in registers too.
        limit = most if len(axes) == 1 else max(1, most * 3 // 4)
        sizes = [range(2, min(limit, region.shape[k]) + 1) for k in axes]
        found += [dict(zip(axes, x)) for x in product(*sizes) if math.prod(x) <= limit]
    best = min(found, key=lambda tile: _price(region, cost, tile))
    partials = region.combine and not _in_order(region)
    if partials and len(region.shape) != region.kept + 1:
        return None
    return best if math.prod(best.values()) > 1 or partials else None


def _in_order(region: Nest) -> bool:
    return region.partials == 1 or region.reduced <= region.partials


def _price(region: Nest, cost: int, tile: Tile) -> float:
    """Return what a nest takes with this tile."""
    points = math.prod(tile.values())
    turns = math.prod(-(-region.shape[k] // tile.get(k, 1)) for k in range(region.kept))
    loads = 0.0
    for read in region.reads:
        if isinstance(read, Affine):
            loads += math.prod(n for k, n in tile.items() if read.strides[k])
        elif read is not None:
            loads += 2.0 * points
    inside = points * (cost + bool(region.combine)) + LOAD * loads + TURN
    if not region.combine:
        return turns * (inside + STORE * points)
    return turns * (inside * region.reduced + STORE * points + TURN)


class InstanceNest(RowNest):
    """Writes a nest, a tile of points at a time."""

    def __init__(
        self,
        low: Lowering,
        f: Any,
        region: Nest,
        given: Sequence[Binding],
        wanted: Sequence[int],
        tile: Tile,
    ) -> None:
        points = list(product(*(range(n) for n in tile.values())))
        lanes, target = f.spelling.lanes, f.module.target
        each = max(1, lanes // target.lanes) * len(wanted) * len(points)
        group = max(1, (registers_of(target) - 4) // each)
        group = min(1 << (group.bit_length() - 1), region.partials)
        super().__init__(low, f, region, given, wanted, Plan(-1, lanes, -1, len(points), group))
        self.tile, self.group = tile, group
        self.steps = [dict(zip(tile, x)) for x in points]

    def across(self, walks: Sequence[Walk], row: int) -> list[Walk]:
        """Return walks at a point of the tile."""
        return [w._replace(location=w.location.at(self._further(w, row))) for w in walks]

    def _further(self, walk: Walk, row: int) -> int:
        """Return how far a point of the tile is from the first."""
        rows = {} if walk.layout is None else walk.layout.rows
        return sum(n * rows.get(k, walk.strides[k]) for k, n in self.steps[row].items())

    def turn_and_step(self, walk: Walk) -> tuple[int, int]:
        """Return how far a walk goes at a turn of partial results, and from one to the next."""
        if walk.layout is None:
            return super().turn_and_step(walk)
        return walk.layout.turn, walk.layout.each

    def row_indices(self, indices: dict[int, Index], row: int) -> list[Index]:
        """Return the indices of the kept axes at a point of the tile."""
        found = dict(indices)
        if self.region.indexed:
            for k, step in self.steps[row].items():
                if step:
                    found[k] = self.index(self.f.value(f"add i64 {indices[k][1]}, {step}"))
        return [found[axis] for axis in range(self.region.kept)]

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these places, or are returned where no axis is kept.

        Where something is packed for many instances, there are loops for that and for few.
        """
        f, reads = self.f, self.reads()
        there = self._packed(reads)
        if not there:
            return self._loops(reads, to)
        copies = [walk.location for walk in there.values()]
        many, few, after = f.label(), f.label(), f.label()
        f.fork(f.value(f"icmp ne ptr {f.address(copies[0])}, null"), many, few)
        f.start(many)
        self._loops([there.get(k, walk) for k, walk in enumerate(reads)], to)
        f.line(f"br label %{after}")
        f.start(few)
        self._loops(reads, to)
        f.jump(after)
        return []

    def _packed(self, reads: Sequence[Walk]) -> dict[int, Walk]:
        """Return walks through copies, of those of the reads that are worth one, by number."""
        region, module = self.region, self.f.module
        found: dict[int, Walk] = {}
        if not region.combine or module.copies is None:
            return found
        kinds = [read for read in region.reads if read is not None]
        for k, (walk, read) in enumerate(zip(reads, kinds)):
            items = math.prod(n for n, s in zip(region.shape, walk.strides) if s)
            apart = any(walk.strides[axis] for axis, n in self.tile.items() if n > 1)
            # Arrays of the call and tables are there before the first instance.
            there = walk.location.array.uniform and walk.location.array.kind in ("in", "global")
            if isinstance(read, Affine) and there and apart and items >= LEAST:
                packing, mine = packed(region, walk, self.tile, 0 if self.in_order else self.group)
                found[k] = mine._replace(location=module.copies.location(packing))
        return found

    def _loops(self, walks: list[Walk], to: Sequence[Location]) -> list[str]:
        region, d, f = self.region, self.d, self.f
        count = len(walks)
        strides = row_major(region.shape[: region.kept])
        walks = [*walks, *(Walk(location, strides) for location in to)]
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(region.kept):
                number = self.tile.get(axis, 1)
                if number > 1:
                    turn = loops.enter_context(f.loop(0, region.shape[axis], step=number)).counter
                    counter = self.within(turn, region.shape[axis], number)
                    walks = self._at_tile(walks, axis, turn, counter)
                else:
                    loop = along(d, f, region.shape[axis], walks, axis)
                    counter, walks = loops.enter_context(loop)
                indices[axis] = self.index(counter)
            kept = [self.row_indices(indices, row) for row in range(len(self.steps))]
            totals = self._totals(walks[:count], kept)
            for row in range(len(self.steps) if to else 0):
                for walk, value in zip(self.across(walks[count:], row), totals):
                    d.store(f, walk.location, value)
                totals = totals[len(to) :]
        return totals

    def _at_tile(self, walks: Sequence[Walk], axis: int, turn: str, start: str) -> list[Walk]:
        """Return walks at a tile: copies have one behind the other, arrays where it starts."""
        there = iter(self.at([w for w in walks if w.layout is not None], axis, turn))
        here = iter(self.at([w for w in walks if w.layout is None], axis, start))
        return [next(here if walk.layout is None else there) for walk in walks]

    def _totals(self, reads: Sequence[Walk], kept: Sequence[Sequence[Index]]) -> list[str]:
        """Return the results of all points of a tile."""
        region, d, f = self.region, self.d, self.f
        if not region.combine:
            return [d.operand(f, value) for value in self.of_rows(reads, kept)]
        first = [d.literal(identity(region.combine, x), x) for x in self.dtypes] * len(kept)
        if self.in_order:
            return self._chains(reads, kept, first)
        return self._by_partials(reads, kept, first)


class InstanceStages(StagedNest):
    """Writes a nest that combines nothing in stages over chunks of points."""

    @property
    def staged(self) -> Staging:
        """Rows at once; a chunk has as many numbers as where lanes go along an axis."""
        lanes = self.f.spelling.lanes
        return Staging(self.plan.axis, self.plan.rows, max(self.plan.rows, CHUNK // lanes))

    def room(self, dtype: int) -> Location:
        """Reserve a vector of instances for each point."""
        pointer = self.f.room(dtype, self.staged.chunk * self.f.spelling.lanes)
        return Location(pointer._replace(uniform=False, lane=0), 0, dtype)

    def staged_points(
        self, walks: Sequence[Walk], start: str
    ) -> Iterator[tuple[list[Walk], Index]]:
        """Yield what is at each row from ``start`` on."""
        here = self.at(walks, self.plan.axis, start)
        for row in range(self.plan.rows):
            number = self.f.value(f"add i64 {start}, {row}") if self.region.indexed else start
            yield self.across(here, row), self.index(number)

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these places."""
        region, d, f = self.region, self.d, self.f
        walks = self.reads()
        count = len(walks)
        walks += [Walk(location, row_major(region.shape[: region.kept])) for location in to]
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(region.kept):
                if axis != self.plan.axis:
                    loop = along(d, f, region.shape[axis], walks, axis)
                    counter, walks = loops.enter_context(loop)
                    indices[axis] = self.index(counter)
            write_stages(self, walks, count, indices, None)
        return []
