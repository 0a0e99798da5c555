"""Derivatives of while loops: one that carries tangents along; backwards they are scans."""

from __future__ import annotations

from archimedes.errors import TraceError
from archimedes.graph.derivatives.bodies import (
    beside,
    copy_inputs,
    ids_of_pairs,
    pairs_of,
    reordered,
    settled,
    split,
    tangent_body,
)
from archimedes.graph.derivatives.region_rules.scan_derivative import scan_record, scan_reverse
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan, Switch, While
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative
from archimedes.graph.regions.while_loop import UNBOUNDED

__all__: list[str] = []


def _as_scan(region: While) -> Scan:
    """Return the scan of ``limit`` steps that does the same: finished steps pass the carry on."""
    if region.limit == UNBOUNDED:
        place = f" at\n  {region.line}\n" if region.line else ": "
        raise TraceError(
            f"a derivative in reverse mode goes through a while_loop without max_steps{place}it "
            "keeps the state of every step, so it must know how many there can be. Write "
            "while_loop(..., max_steps=...) with a number of steps that is never exceeded, or "
            "differentiate in forward mode (arc.jvp)."
        )
    g, inputs = copy_inputs(region.body)
    (test,) = inline(g, region.condition, inputs)
    keep, carry_in = copy_inputs(region.body)
    keep.outputs = carry_in[: region.carry]
    index = g.emit(CODES["i64"], test)
    g.outputs = g.region(Switch([index, *inputs], (keep, region.body))).tolist()
    return Scan(region.inputs, prune(g), region.limit, region.carry, 0)


def _forward(dst: Graph, region: While, given: list[Directions]):
    n = region.carry
    carry, shared = pairs_of(given[:n]), [(k + n, d) for k, d in pairs_of(given[n:])]
    carry, wide = settled(lambda pairs: tangent_body(region.body, [*pairs, *shared]), carry, n)
    h, nc = len(region.inputs) - n, len(carry)
    order = beside([n, h], [nc, len(shared)])
    step = reordered(wide.with_pairs(carry), order, range(n + nc))
    test = Graph()
    ids = [test.input(dtype) for dtype in step.input_dtypes]
    test.outputs = inline(test, region.condition, [*ids[:n], *ids[n + nc : n + nc + h]])
    zeros = {k: dst.const(0.0, region.body.output_dtypes[k]) for k, _ in carry}
    bars = [given[k].get(d, zeros[k]) for k, d in carry]
    inputs = [*region.inputs[:n], *bars, *region.inputs[n:], *ids_of_pairs(given, shared)]
    limit, adaptive, line = region.limit, region.adaptive, region.line
    outs = dst.region(While(inputs, test, step, n + nc, limit, adaptive=adaptive, line=line))
    return outs[:n], split(outs[n:], n, carry)


def _record(dst: Graph, region: While):
    return scan_record(dst, _as_scan(region))


def _reverse(dst: Graph, region: While, adjoints, carries, wanted):
    return scan_reverse(dst, _as_scan(region), adjoints, carries, wanted)


register_derivative(While, RegionDerivative(_forward, _reverse, _record))
