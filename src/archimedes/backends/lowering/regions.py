"""Lowering of regions: a table keyed by region class.

``lower(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from archimedes.backends.lowering.copies import Copy, advance_all, arrays, copy_all
from archimedes.backends.lowering.copy_elision import covers, is_scalar
from archimedes.backends.lowering.dialect import FEW, Branching, Dialect
from archimedes.backends.lowering.loops import lower_map, lower_scan, lower_while
from archimedes.backends.lowering.nests import (
    Walk,
    combine_graph,
    loop_along,
    lower_nest,
    merge_axes,
)
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.errors import GraphError
from archimedes.graph import regions as r
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.regions.nest import Affine

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering


# ---- blocks made by copies, and by sums at indices -------------------------------------------


def _lower_pack(low: Lowering, scope: Scope, region: r.Pack, outs: Sequence[int]) -> None:
    """Copy boxes into a block."""
    d, f = low.dialect, scope.f
    (i,) = outs
    # Nests whose results are part of it may have been written into it already.
    to = scope.block(i) if i in scope.bound else scope.new_block(i)
    if not covers(region):
        d.fill_run(f, to, d.literal(0, region.dtype), region.length)
    single: list[Copy] = []
    ids = region.inputs.tolist()
    for move in region.moves:
        source = ids[move.source]
        if source in scope.sub_blocks or (is_scalar(move) and (i, source) in scope.elided):
            continue
        value = scope.binding(source)
        if math.prod(move.shape) == 1:
            if move.start is not None and value.location is not None:
                value = Binding(location=value.location.at(move.start.offset))
            single.append((to.at(move.to.offset), value))
            continue
        copy_all(d, f, single)
        single = []
        _copy_box(d, f, move, to, value)
    copy_all(d, f, single)


def _copy_box(d: Dialect, f: Any, move: r.Move, to: Location, value: Binding) -> None:
    """Copy a box of elements, or fill it with a scalar."""
    starts = [move.to] if move.start is None else [move.to, move.start]
    shape, strides = merge_axes(move.shape, [x.strides for x in starts])
    walks = [Walk(to.at(move.to.offset), strides[0])]
    if move.start is not None and value.location is not None:
        walks.append(Walk(value.location.at(move.start.offset), strides[1]))
    elif value.location is not None:
        value = Binding(operand=d.operand(f, value))
    with ExitStack() as loops:
        for axis, length in enumerate(shape):
            last = axis == len(shape) - 1 and length >= d.run
            ones = last and all(walk.strides[axis] == 1 for walk in walks)
            if ones and len(walks) == 2:
                d.copy_run(f, walks[0].location, walks[1].location, length)
                return
            if ones and value.constant is not None:
                d.fill_run(f, walks[0].location, d.operand(f, value), length)
                return
            _, walks = loops.enter_context(loop_along(d, f, length, walks, axis))
        source = d.load(f, walks[1].location) if len(walks) == 2 else d.operand(f, value)
        d.store(f, walks[0].location, source)


def _lower_accumulate(
    low: Lowering, scope: Scope, region: r.Accumulate, outs: Sequence[int]
) -> None:
    """Add values to the elements that indices name, one after the other."""
    d, f, g = low.dialect, scope.f, scope.graph
    (i,) = outs
    to = scope.new_block(i)
    values, indices = region.inputs.tolist()
    dtype = item_type(region.dtype)
    d.fill_run(f, to, d.literal(0, dtype), region.length)
    starts = [(scope.block(values), 1), (scope.block(indices), 1)]
    with d.for_loop(f, length_of(g.dtype[values])) as loop:
        value, index = advance_all(d, f, starts, loop.counter)
        at = d.load(f, index)
        old = Binding(operand=d.element(f, to, region.length, at))
        terms = [old, Binding(location=value)]
        (new,) = low.lower(f, combine_graph("add", dtype), terms, [0])
        d.put(f, to, region.length, at, d.operand(f, new))


# ---- calls, branches, linear equations -------------------------------------------------------


def _lower_call(low: Lowering, scope: Scope, region: r.Call | r.Sort, outs: Sequence[int]) -> None:
    arguments = scope.bindings(region.inputs.tolist())
    # Blocks that an array waits for go straight there.
    direct = {i: to for i in outs if (to := scope.destination(i)) is not None}
    others = [i for i in outs if i not in direct]
    stores = list(zip(scope.numbers(list(direct)), direct.values()))
    values = low.block(scope.f, region, region.body, arguments, scope.numbers(others), stores)
    for i, binding in zip(others, values):
        scope.bind(i, binding)
    for i, to in direct.items():
        scope.bound[i] = Binding(location=to)


def _lower_switch(low: Lowering, scope: Scope, region: r.Switch, outs: Sequence[int]) -> None:
    d, f = low.dialect, scope.f
    index, *rest = region.inputs.tolist()
    arguments = scope.bindings(rest)
    blocks = [i for i in outs if length_of(scope.graph.dtype[i])]
    scalars = [i for i in outs if i not in blocks]
    wanted = scope.numbers(scalars)
    dtypes = [region.out_dtypes[k] for k in wanted]
    locations = arrays(d, f, dtypes) if len(wanted) > FEW else []
    costs = [low.sizes.cost(body) for body in region.branches]
    to = [(scope.new_block(i), length_of(scope.graph.dtype[i])) for i in blocks]
    join = d.join(f, Branching(scope.operand(index), costs, dtypes, locations))
    for k in join.order:
        with join.branch(k), _masked_blocks(d, f, to, join.mask) as targets:
            stores = list(zip(scope.numbers(blocks), targets))
            join.give(low.block(f, region, region.branches[k], arguments, wanted, stores))
    results = join.results()
    for k, i in enumerate(scalars):
        scope.bind(i, Binding(location=locations[k]) if locations else Binding(operand=results[k]))


@contextmanager
def _masked_blocks(
    d: Dialect, f: Any, to: Sequence[tuple[Location, int]], mask: str
) -> Iterator[list[Location]]:
    """Yield where a branch puts blocks: where they belong, or aside if not all instances take it.

    What was put aside is then copied for the instances of the mask.
    """
    if not mask:
        yield [location for location, _ in to]
        return
    aside = [d.block(f, location.dtype, length) for location, length in to]
    yield aside
    d.copy_masked(f, mask, [(p, new, length) for (p, length), new in zip(to, aside)])
    for location, (_, length) in zip(aside, to):
        d.release(f, location, length)


def _lower_solve(low: Lowering, scope: Scope, region: r.Solve, outs: Sequence[int]) -> None:
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
    inputs = scope.bindings(region.inputs.tolist())
    # The matrix, and beside it the right-hand sides.
    for first, count, values in ((0, n, inputs[: n * n]), (n, m, inputs[n * n :])):
        locations = [work.at(i * width + first + j) for i in range(n) for j in range(count)]
        copy_all(d, f, list(zip(locations, values)))
    d.solve(f, region, work)
    for i, number in zip(outs, scope.numbers(outs)):
        row, column = divmod(number, m)
        solution = Binding(location=work.at(row * width + n + column))
        scope.bind(i, d.preserve(f, solution, region.dtype) if few else solution)


def _solve_blocks(low: Lowering, scope: Scope, region: r.Solve, outs: Sequence[int]) -> None:
    d, f, n, m = low.dialect, scope.f, region.size, region.columns
    width, (i,) = n + m, outs
    work = d.block(f, region.dtype, n * width)
    for start, columns, j in zip((0, n), (n, m), region.inputs.tolist()):
        box = r.Move(0, (n, columns), Affine(start, (width, 1)), Affine(0, (columns, 1)))
        _copy_box(d, f, box, work, scope.binding(j))
    d.solve(f, region, work)
    box = r.Move(0, (n, m), Affine(0, (m, 1)), Affine(n, (width, 1)))
    _copy_box(d, f, box, scope.new_block(i), Binding(location=work))
    d.release(f, work, n * width)


def _lower_host(low: Lowering, scope: Scope, region: r.Host, outs: Sequence[int]) -> None:
    low.dialect.host(low, scope, region, outs)


#: Lowering of every region.
REGIONS: dict[type[r.Region], Callable[..., None]] = {
    r.Call: _lower_call,
    r.Sort: _lower_call,
    r.Scan: lower_scan,
    r.While: lower_while,
    r.Switch: _lower_switch,
    r.Map: lower_map,
    r.Solve: _lower_solve,
    r.Host: _lower_host,
    r.Nest: lower_nest,
    r.Pack: _lower_pack,
    r.Accumulate: _lower_accumulate,
}


def lower_region(low: Lowering, scope: Scope, region: r.Region, outs: Sequence[int]) -> None:
    """Write a region, and bind the ``out`` nodes that read it."""
    lower = REGIONS.get(type(region))
    if lower is None:
        raise GraphError(
            f"regions of kind {region.kind!r} have no lowering: enter one for "
            f"{type(region).__name__} in REGIONS of backends/lowering/regions.py"
        )
    lower(low, scope, region, outs)
