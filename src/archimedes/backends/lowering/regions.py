"""Lowering of regions: a table keyed by region class.

``lower(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from archimedes.backends.lowering.copies import arrays, copy_all, moved_together
from archimedes.backends.lowering.copy_elision import covers, is_number
from archimedes.backends.lowering.dialect import FEW, Dialect
from archimedes.backends.lowering.loops import lower_map, lower_scan, lower_while
from archimedes.backends.lowering.nests import Walk, along, combining, lower_nest, merged
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.errors import GraphError
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions import (
    Accumulate,
    Call,
    Host,
    Map,
    Move,
    Nest,
    Pack,
    Region,
    Scan,
    Solve,
    Sort,
    Switch,
    While,
)
from archimedes.graph.regions.nest import Affine

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering

__all__ = ["REGIONS", "copy_box", "lower_accumulate", "lower_pack", "lower_region"]


def lower_pack(low: Lowering, scope: Scope, region: Pack, outs: Sequence[int]) -> None:
    """Copy boxes into a block."""
    d, f = low.dialect, scope.f
    (i,) = outs
    # Loops whose results are part of it may have been written into it already.
    to = scope.block(i) if i in scope.bound else scope.new_block(i)
    if not covers(region):
        d.fill_run(f, to, d.literal(0, region.dtype), region.length)
    single: list[tuple[Location, Binding]] = []
    ids = region.inputs.tolist()
    for move in region.moves:
        source = ids[move.source]
        if source in scope.homes or (is_number(move) and (i, source) in scope.awaited):
            continue
        value = scope.binding(source)
        if math.prod(move.shape) == 1:
            if move.start is not None and value.location is not None:
                value = Binding(location=value.location.at(move.start.offset))
            single.append((to.at(move.to.offset), value))
            continue
        copy_all(d, f, single)
        single = []
        copy_box(d, f, move, to, value)
    copy_all(d, f, single)


def copy_box(d: Dialect, f: Any, move: Move, to: Location, value: Binding) -> None:
    """Copy a box of elements, or fill it with a scalar."""
    shape, strides = merged(
        move.shape, [move.to.strides, *([move.start.strides] if move.start else [])]
    )
    walks = [Walk(to.at(move.to.offset), strides[0])]
    if move.start is not None and value.location is not None:
        walks.append(Walk(value.location.at(move.start.offset), strides[1]))
    elif value.location is not None:
        value = Binding(operand=d.operand(f, value))
    axis = 0
    with ExitStack() as loops:
        while axis < len(shape):
            last = axis == len(shape) - 1 and shape[axis] >= d.run
            ones = last and all(walk.strides[axis] == 1 for walk in walks)
            if ones and len(walks) == 2:
                d.copy_run(f, walks[0].location, walks[1].location, shape[axis])
                return
            if ones and value.constant is not None:
                d.fill_run(f, walks[0].location, d.operand(f, value), shape[axis])
                return
            _, walks = loops.enter_context(along(d, f, shape[axis], walks, axis))
            axis += 1
        source = d.load(f, walks[1].location) if len(walks) == 2 else d.operand(f, value)
        d.store(f, walks[0].location, source)


def lower_accumulate(low: Lowering, scope: Scope, region: Accumulate, outs: Sequence[int]) -> None:
    """Add values to the elements that indices name, one after the other."""
    d, f, g = low.dialect, scope.f, scope.graph
    (i,) = outs
    to = scope.new_block(i)
    values, indices = region.inputs.tolist()
    dtype = item_type(region.dtype)
    d.fill_run(f, to, d.literal(0, dtype), region.length)
    starts = [(scope.block(values), 1), (scope.block(indices), 1)]
    with d.counted(f, length_of(g.dtype[values]), ()) as loop:
        value, index = moved_together(d, f, starts, loop.counter)
        at = d.load(f, index)
        held = d.element(f, to, region.length, at)
        given = [Binding(operand=held), Binding(location=value)]
        (new,) = low.lower(f, combining("add", dtype), given, [0])
        d.put(f, to, region.length, at, d.operand(f, new))


def _call(low: Lowering, scope: Scope, region: Call | Sort, outs: Sequence[int]) -> None:
    given = scope.bindings(region.inputs.tolist())
    # Blocks that an array waits for go straight there.
    direct = {i: to for i in outs if (to := scope.destination(i)) is not None}
    others = [i for i in outs if i not in direct]
    stores = list(zip(scope.numbers(list(direct)), direct.values()))
    values = low.block(scope.f, region, region.body, given, scope.numbers(others), stores)
    for i, binding in zip(others, values):
        scope.bind(i, binding)
    for i, to in direct.items():
        scope.bound[i] = Binding(location=to)


def _switch(low: Lowering, scope: Scope, region: Switch, outs: Sequence[int]) -> None:
    d, f = low.dialect, scope.f
    index, *rest = region.inputs.tolist()
    given, wide = scope.bindings(rest), [i for i in outs if length_of(scope.graph.dtype[i])]
    narrow = [i for i in outs if i not in wide]
    wanted = scope.numbers(narrow)
    dtypes = [region.out_dtypes[k] for k in wanted]
    locations = arrays(d, f, dtypes) if len(wanted) > FEW else []
    costs = [low.sizes.cost(body) for body in region.branches]
    to = [scope.new_block(i) for i in wide]
    join = d.join(f, scope.operand(index), costs, dtypes, locations)
    for k in join.order:
        with join.branch(k):
            into = _Blocks(d, f, scope.graph, wide, to, join.mask)
            stores = list(zip(scope.numbers(wide), into.locations))
            join.give(low.block(f, region, region.branches[k], given, wanted, stores))
            into.finish()
    results = join.results()
    for k, i in enumerate(narrow):
        scope.bind(i, Binding(location=locations[k]) if locations else Binding(operand=results[k]))


class _Blocks:
    """Where a branch puts blocks: where they belong, or aside if not all instances take it."""

    def __init__(
        self, d: Dialect, f: Any, g: Graph, ids: Sequence[int], to: Sequence[Location], mask: str
    ) -> None:
        self.d, self.f, self.mask, self.to = d, f, mask, to
        self.lengths = [length_of(g.dtype[i]) for i in ids]
        self.locations = to
        if mask:
            self.locations = [d.block(f, p.dtype, n) for p, n in zip(to, self.lengths)]

    def finish(self) -> None:
        """Put aside no longer."""
        if self.mask:
            self.d.renew(self.f, self.mask, list(zip(self.to, self.locations, self.lengths)))
            for location, length in zip(self.locations, self.lengths):
                self.d.release(self.f, location, length)


def _solve(low: Lowering, scope: Scope, region: Solve, outs: Sequence[int]) -> None:
    d, f, n, m = low.dialect, scope.f, region.size, region.columns
    if region.blocks:
        _solve_blocks(low, scope, region, outs)
        return
    width = n + m
    few = len(outs) <= FEW and d.reuses_scratch
    if few:
        work = d.scratch(f, f"solve {n} {m}", region.dtype, n * width)
    else:
        work = d.array(f, region.dtype, n * width)
    given = scope.bindings(region.inputs.tolist())
    # The matrix, and beside it the right-hand sides.
    for first, count, values in ((0, n, given[: n * n]), (n, m, given[n * n :])):
        locations = [work.at(r * width + first + c) for r in range(n) for c in range(count)]
        copy_all(d, f, list(zip(locations, values)))
    d.solve(f, region, work)
    for i, number in zip(outs, scope.numbers(outs)):
        r, c = divmod(number, m)
        found = Binding(location=work.at(r * width + n + c))
        scope.bind(i, d.taken(f, found, region.dtype) if few else found)


def _solve_blocks(low: Lowering, scope: Scope, region: Solve, outs: Sequence[int]) -> None:
    d, f, n, m = low.dialect, scope.f, region.size, region.columns
    width, (i,) = n + m, outs
    work = d.block(f, region.dtype, n * width)
    start = 0
    for columns, j in zip((n, m), region.inputs.tolist()):
        box = Move(0, (n, columns), Affine(start, (width, 1)), Affine(0, (columns, 1)))
        copy_box(d, f, box, work, scope.binding(j))
        start += columns
    d.solve(f, region, work)
    box = Move(0, (n, m), Affine(0, (m, 1)), Affine(n, (width, 1)))
    copy_box(d, f, box, scope.new_block(i), Binding(location=work))
    d.release(f, work, n * width)


def _host(low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
    low.dialect.host(low, scope, region, outs)


#: Lowering of every region.
REGIONS: dict[type[Region], Callable[..., None]] = {
    Call: _call,
    Sort: _call,
    Scan: lower_scan,
    While: lower_while,
    Switch: _switch,
    Map: lower_map,
    Solve: _solve,
    Host: _host,
    Nest: lower_nest,
    Pack: lower_pack,
    Accumulate: lower_accumulate,
}


def lower_region(low: Lowering, scope: Scope, region: Region, outs: Sequence[int]) -> None:
    """Write a region, and bind the ``out`` nodes that read it."""
    lower = REGIONS.get(type(region))
    if lower is None:
        raise GraphError(
            f"regions of kind {region.kind!r} have no lowering: enter one for "
            f"{type(region).__name__} in REGIONS of backends/lowering/regions.py"
        )
    lower(low, scope, region, outs)
