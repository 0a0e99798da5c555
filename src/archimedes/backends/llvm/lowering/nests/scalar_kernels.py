"""Nests of a scalar kernel: in lanes, and anew where that leaves something open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archimedes.backends.llvm.lowering.nests.lanes import nest_in_lanes
from archimedes.backends.llvm.lowering.nests.plans import in_any_order, plan_of
from archimedes.backends.llvm.lowering.nests.ranges import ranges_of
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.nests import NestWriter
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.graph.dtypes import B8, is_float
from archimedes.graph.regions import Nest

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.llvm_dialect import Llvm

__all__ = ["vector_nest"]


def vector_nest(
    d: Llvm, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int], cost: int
) -> bool:
    """Compute points of a nest in lanes and bind its outputs, if that pays.

    ``cost`` are the operations of its body.
    """
    module = d.module
    loose = in_any_order(region)
    plan = plan_of(loose or region, cost, module.target)
    if loose is not None and (plan is None or plan.axis < region.kept):
        loose, plan = None, plan_of(region, cost, module.target)
    if plan is None:
        return False
    wide, lanes = d.in_lanes(low, region.body, plan.lanes), module.in_lanes(plan.lanes)
    floats = any(is_float(region.body.output_dtypes[k]) for k in scope.numbers(outs))
    if loose is None or not floats:
        ranges = ranges_of(region, plan, cost)
        places = nest_in_lanes(lanes, wide, scope, loose or region, outs, plan, ranges)
        values = [] if region.kept else [scope.f.load(place) for place in places]
    else:
        zeros = module.frame.array(B8)
        scope.f.store(zeros, "false")
        shared = zeros._replace(array=zeros.array._replace(uniform=True))
        places = nest_in_lanes(lanes, wide, scope, loose, outs, plan, zeros=shared)
        values = _in_order(low, scope, region, outs, places, zeros)
    for i, value in zip(outs, values):
        scope.bind(i, Binding(operand=value))
    return True


def _in_order(
    low: Lowering,
    scope: Scope,
    region: Nest,
    outs: Sequence[int],
    places: Sequence[Place],
    zeros: Place,
) -> list[str]:
    """Compute a nest again, in its order, if a result is zero; return results that are scalars."""
    f = scope.f
    made = [] if region.kept else [f.load(place) for place in places]
    before, again, after = f.block, f.label(), f.label()
    f.fork(f.load(zeros), again, after, rare=True)
    f.start(again)
    given = scope.bindings(region.inputs.tolist())
    to = [scope.block(i) for i in outs] if region.kept else []
    values = NestWriter(low, f, region, given, scope.numbers(outs)).write(to)
    last = f.block
    f.jump(after)
    if region.kept:
        return []
    types = [f.spelling.types[place.dtype] for place in places]
    return [f.phi(t, (x, before), (y, last)) for t, x, y in zip(types, made, values)]
