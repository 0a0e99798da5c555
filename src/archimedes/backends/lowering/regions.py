"""Lowering of regions: a table keyed by region class.

``lower(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from archimedes.backends.lowering.block_moves import copy_box, lower_accumulate, lower_pack
from archimedes.backends.lowering.copies import arrays, copy_all
from archimedes.backends.lowering.dialect import FEW, Dialect
from archimedes.backends.lowering.loops import lower_map, lower_scan, lower_while
from archimedes.backends.lowering.nests import lower_nest
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.errors import GraphError
from archimedes.graph.dtypes import length_of
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

__all__ = ["REGIONS", "lower_region"]


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
        scope.bound[i] = Binding(place=to)


def _switch(low: Lowering, scope: Scope, region: Switch, outs: Sequence[int]) -> None:
    d, f = low.dialect, scope.f
    index, *rest = region.inputs.tolist()
    given, wide = scope.bindings(rest), [i for i in outs if length_of(scope.graph.dtype[i])]
    narrow = [i for i in outs if i not in wide]
    wanted = scope.numbers(narrow)
    dtypes = [region.out_dtypes[k] for k in wanted]
    places = arrays(d, f, dtypes) if len(wanted) > FEW else []
    costs = [low.sizes.cost(body) for body in region.branches]
    to = [scope.new_block(i) for i in wide]
    join = d.join(f, scope.operand(index), costs, dtypes, places)
    for k in join.order:
        with join.branch(k):
            into = _Blocks(d, f, scope.graph, wide, to, join.mask)
            stores = list(zip(scope.numbers(wide), into.places))
            join.give(low.block(f, region, region.branches[k], given, wanted, stores))
            into.finish()
    results = join.results()
    for k, i in enumerate(narrow):
        scope.bind(i, Binding(place=places[k]) if places else Binding(operand=results[k]))


class _Blocks:
    """Where a branch puts blocks: where they belong, or aside if not all instances take it."""

    def __init__(
        self, d: Dialect, f: Any, g: Graph, ids: Sequence[int], to: Sequence[Place], mask: str
    ) -> None:
        self.d, self.f, self.mask, self.to = d, f, mask, to
        self.lengths = [length_of(g.dtype[i]) for i in ids]
        self.places = to
        if mask:
            self.places = [d.block(f, p.dtype, n) for p, n in zip(to, self.lengths)]

    def finish(self) -> None:
        """Put aside no longer."""
        if self.mask:
            self.d.renew(self.f, self.mask, list(zip(self.to, self.places, self.lengths)))
            for place, length in zip(self.places, self.lengths):
                self.d.release(self.f, place, length)


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
        places = [work.at(r * width + first + c) for r in range(n) for c in range(count)]
        copy_all(d, f, list(zip(places, values)))
    d.solve(f, region, work)
    for i, number in zip(outs, scope.numbers(outs)):
        r, c = divmod(number, m)
        found = Binding(place=work.at(r * width + n + c))
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
    copy_box(d, f, box, scope.new_block(i), Binding(place=work))
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
