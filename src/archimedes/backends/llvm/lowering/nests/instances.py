"""``Nest`` in a batch kernel, whose lanes are instances: points of one or two axes together.

A value is a vector of instances, wherever it lies: no axis is better than another. Points that are
computed together share what they read in common, and give the CPU enough to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import combinations, product
from typing import Any

from archimedes.backends.llvm.lowering.nests.plans import SHORT, TWO, Plan, registers_of
from archimedes.backends.llvm.lowering.nests.rows import RowNest
from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.combining import identity
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import Index
from archimedes.backends.lowering.values import Binding, Place
from archimedes.backends.lowering.walks import Walk, along
from archimedes.graph.regions import Affine, Nest
from archimedes.graph.regions.reads import row_major

__all__ = ["InstanceNest", "tile_of"]

#: Points of each axis that are computed together.
Tile = dict[int, int]
#: What loads, stores and the turn of a loop take, where an operation takes 1.
LOAD, STORE, TURN = 1.0, 1.0, 6.0


def tile_of(region: Nest, cost: int, lanes: int, target: Target) -> Tile | None:
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
        self.tile = tile
        self.steps = [dict(zip(tile, x)) for x in points]

    def across(self, walks: Sequence[Walk], row: int) -> list[Walk]:
        """Return walks at a point of the tile."""
        steps = self.steps[row].items()
        return [
            w._replace(place=w.place.at(sum(step * w.strides[k] for k, step in steps)))
            for w in walks
        ]

    def row_indices(self, indices: dict[int, Index], row: int) -> list[Index]:
        """Return the indices of the kept axes at a point of the tile."""
        found = dict(indices)
        if self.region.indexed:
            for k, step in self.steps[row].items():
                if step:
                    found[k] = self.index(self.f.value(f"add i64 {indices[k][1]}, {step}"))
        return [found[axis] for axis in range(self.region.kept)]

    def write(self, to: Sequence[Place]) -> list[str]:
        """Write the loops; results go to these places, or are returned where no axis is kept."""
        region, d, f = self.region, self.d, self.f
        walks = self.reads()
        count = len(walks)
        strides = row_major(region.shape[: region.kept])
        walks += [Walk(place, strides) for place in to]
        indices: dict[int, Index] = {}
        with ExitStack() as loops:
            for axis in range(region.kept):
                number = self.tile.get(axis, 1)
                if number > 1:
                    counter = loops.enter_context(self.tiles(region.shape[axis], number))
                    walks = self.at(walks, axis, counter)
                else:
                    loop = along(d, f, region.shape[axis], walks, axis)
                    counter, walks = loops.enter_context(loop)
                indices[axis] = self.index(counter)
            kept = [self.row_indices(indices, row) for row in range(len(self.steps))]
            totals = self._totals(walks[:count], kept)
            for row in range(len(self.steps) if to else 0):
                for walk, value in zip(self.across(walks[count:], row), totals):
                    d.store(f, walk.place, value)
                totals = totals[len(to) :]
        return totals

    def _totals(self, reads: Sequence[Walk], kept: Sequence[Sequence[Index]]) -> list[str]:
        """Return the results of all points of a tile."""
        region, d, f = self.region, self.d, self.f
        if not region.combine:
            return [d.operand(f, value) for value in self.of_rows(reads, kept)]
        first = [d.literal(identity(region.combine, x), x) for x in self.dtypes] * len(kept)
        if self.in_order:
            return self._chains(reads, kept, first)
        return self._by_partials(reads, kept, first)
