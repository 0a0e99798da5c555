"""``Nest`` in a batch kernel, whose SIMD lanes are instances: points of one or two axes together.

A value is a vector of instances, wherever it lies: no axis is better than another. Points that are
computed together share what they read in common, and give the CPU enough to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

from archimedes.backends.llvm.lowering.nests import vector_plans
from archimedes.backends.llvm.lowering.nests.loop_fission import Staging, write_stages
from archimedes.backends.llvm.lowering.nests.packing import LEAST, pack_read
from archimedes.backends.llvm.lowering.nests.register_tiling import TiledNest
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.analysis import is_in_order
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index, Walk
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.regions import Affine, Nest

#: Points of each axis that are computed together.
Tile = dict[int, int]
#: What loads, stores and the turn of a loop take, where an operation takes 1.
LOAD, STORE, TURN = 1.0, 1.0, 6.0
#: Registers that a stage computes at once.
REGISTERS = 4


def lower_batch_nest(
    low: Lowering, scope: Scope, region: Nest, outs: Sequence[int], cost: int
) -> bool:
    """Write a nest in lanes of instances and bind its outputs; False where plain loops do.

    ``cost`` are the operations of the body.
    """
    f = scope.f
    lanes, target = f.spelling.lanes, f.module.target
    axis = max(range(region.kept), key=region.shape.__getitem__, default=-1)
    nest = low, f, region, scope.bindings(region.inputs.tolist()), scope.numbers(outs)
    writer: TiledNest
    if axis >= 0 and vector_plans.in_stages(region, axis, cost, target, lanes):
        rows = max(1, REGISTERS * target.lanes // lanes)
        writer = StagedBatchNest(*nest, vector_plans.Plan(axis, lanes, axis, rows, stages=True))
    else:
        tile = _tile_of(region, cost, lanes, target)
        if tile is None:
            return False
        points = math.prod(tile.values())
        fitting = vector_plans.registers_for(target, lanes, len(outs) * points)
        group = vector_plans.power_of_two_below(fitting)
        plan = vector_plans.Plan(-1, lanes, -1, points, min(group, region.partials))
        writer = BatchNest(*nest, plan, tile)
    values = writer.write([scope.new_block(i) for i in outs] if region.kept else [])
    for i, value in zip([] if region.kept else outs, values):
        scope.bind(i, Binding(operand=value))
    return True


def _tile_of(region: Nest, cost: int, lanes: int, target: Target) -> Tile | None:
    """Return how many points of which axes to compute together; None: one at a time."""
    most = vector_plans.registers_for(target, lanes, len(region.body.outputs))
    if not region.combine:
        most = min(most, 4)
    if cost > vector_plans.SHORT:
        most = min(most, 4 if region.combine else 2)
    partials = region.combine and not is_in_order(region)
    if cost > vector_plans.TWO or (partials and len(region.shape) != region.kept + 1):
        return None
    axes = [k for k in range(region.kept) if region.shape[k] > 1]
    tiles: list[Tile] = [{}]
    for chosen in [*((k,) for k in axes), *combinations(axes, 2)]:
        # What two axes share stays in registers too.
        limit = most if len(chosen) == 1 else max(1, most * 3 // 4)
        sizes = [range(2, min(limit, region.shape[k]) + 1) for k in chosen]
        tiles += [dict(zip(chosen, x)) for x in product(*sizes) if math.prod(x) <= limit]
    best = min(tiles, key=lambda tile: _price(region, cost, tile))
    return best if best or partials else None


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


@dataclass(eq=False)
class BatchNest(TiledNest):
    """Writes a nest, a tile of points at a time."""

    tile: Tile

    @cached_property
    def steps(self) -> list[Tile]:
        """How far the points of a tile are from the first one, along its axes."""
        return [dict(zip(self.tile, x)) for x in product(*map(range, self.tile.values()))]

    def at_row(self, walks: Sequence[Walk], row: int) -> list[Walk]:
        """Return walks at a point of the tile."""
        return [w.at(self._distance(w, row)) for w in walks]

    def _distance(self, walk: Walk, row: int) -> int:
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
        mine = dict(indices)
        for k, step in self.steps[row].items() if self.region.indexed else ():
            if step:
                mine[k] = self.index(self.f.add(indices[k][1], step))
        return [mine[axis] for axis in range(self.region.kept)]

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these locations, or are returned if no axis is kept.

        Where something is packed for many instances, there are loops for that and for few.
        """
        f, (walks, count) = self.f, self.walks(to)
        copies = self._pack(walks[:count])
        if not copies:
            return self._loops(walks, count)
        many, few, after = f.label(), f.label(), f.label()
        first = next(iter(copies.values())).location
        f.fork(f.value(f"icmp ne ptr {f.address(first)}, null"), many, few)
        f.start(many)
        self._loops([copies.get(k, walk) for k, walk in enumerate(walks)], count)
        f.line(f"br label %{after}")
        f.start(few)
        self._loops(walks, count)
        f.jump(after)
        return []

    def _pack(self, reads: Sequence[Walk]) -> dict[int, Walk]:
        """Return the walks through packed copies, by number of the read, where a copy pays."""
        region, module = self.region, self.f.module
        copies: dict[int, Walk] = {}
        if not region.combine or module.copies is None:
            return copies
        kinds = [read for read in region.reads if read is not None]
        for k, (walk, read) in enumerate(zip(reads, kinds)):
            items = math.prod(n for n, s in zip(region.shape, walk.strides) if s)
            apart = any(walk.strides[axis] for axis, n in self.tile.items() if n > 1)
            # Arrays of the call and tables are there before the first instance.
            there = walk.location.array.uniform and walk.location.array.kind in ("in", "global")
            if isinstance(read, Affine) and there and apart and items >= LEAST:
                group = 0 if self.in_order else self.plan.group
                packing, mine = pack_read(region, walk, self.tile, group)
                copies[k] = mine._replace(location=module.copies.location(packing))
        return copies

    def _loops(self, walks: Sequence[Walk], count: int) -> list[str]:
        region, f = self.region, self.f
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(region.kept):
                step = self.tile.get(axis, 1)
                if step > 1:
                    turn = loops.enter_context(f.loop(0, region.shape[axis], step=step)).counter
                    start = self.clamp_tile(turn, region.shape[axis], step)
                    walks = self._at_tile(walks, axis, turn, start)
                    indices[axis] = self.index(start)
                else:
                    walks, indices[axis] = self.enter_axis(loops, walks, axis)
            return self.write_rows(walks, count, indices)

    def _at_tile(self, walks: Sequence[Walk], axis: int, turn: str, start: str) -> list[Walk]:
        """Return walks at a tile: copies have tile after tile, arrays have it where it starts."""
        there = iter(self.advance_to([w for w in walks if w.layout is not None], axis, turn))
        here = iter(self.advance_to([w for w in walks if w.layout is None], axis, start))
        return [next(here if walk.layout is None else there) for walk in walks]


class StagedBatchNest(TiledNest):
    """Writes a nest that combines nothing in stages over chunks of points."""

    def write(self, to: Sequence[Location]) -> list[str]:
        """Write the loops; results go to these locations."""
        plan, lanes = self.plan, self.f.spelling.lanes
        # A chunk has as many numbers as where lanes go along an axis.
        chunk = max(plan.rows, vector_plans.CHUNK // lanes)

        def room(dtype: int) -> Location:
            """Reserve a vector of instances for each point."""
            pointer = self.f.room(dtype, chunk * lanes)
            return Location(pointer._replace(uniform=False, lane=0), 0, dtype)

        walks, count = self.walks(to)
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(self.region.kept):
                if axis != plan.axis:
                    walks, indices[axis] = self.enter_axis(loops, walks, axis)
            staging = Staging(plan.axis, plan.rows, chunk, room, self._points)
            write_stages(self, staging, walks, count, indices)
        return []

    def _points(self, walks: Sequence[Walk], start: str) -> Iterator[tuple[list[Walk], Index]]:
        """Yield walks and index at each row from ``start`` on."""
        here = self.advance_to(walks, self.plan.axis, start)
        for row in range(self.plan.rows):
            number = self.f.add(start, row) if self.region.indexed else start
            yield self.at_row(here, row), self.index(number)
