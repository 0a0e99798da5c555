"""Derivatives of regions: each maps to a region that computes values and derivatives together."""

from __future__ import annotations

import numpy as np

from archimedes.graph.derivatives import loops
from archimedes.graph.derivatives.bodies import (
    adjoint_body,
    ids_of_pairs,
    pairs_of,
    reordered,
    split,
    stacked_outs,
    stacked_with,
    tangent_body,
    union,
)
from archimedes.graph.derivatives.own_rules import rule_forward, rule_reverse
from archimedes.graph.derivatives.rules import Emit
from archimedes.graph.derivatives.solves import solve_forward, solve_reverse
from archimedes.graph.derivatives.sweeps import FORWARD, RECORD, REVERSE, Directions
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Map, Scan, Solve, Switch, While

__all__: list[str] = []


def _call_forward(dst: Graph, region: Call, given: list[Directions]):
    if region.derivative is not None:
        return rule_forward(dst, region, given)
    pairs = pairs_of(given)
    wide = tangent_body(region.body, pairs)
    outs = dst.region(Call([*region.inputs, *ids_of_pairs(given, pairs)], wide.with_pairs()))
    n = len(region.body.outputs)
    return outs[:n], split(outs[n:], n, wide.found)


def _call_reverse(dst: Graph, region: Call, adjoints, saved, wanted):
    if region.derivative is not None:
        return rule_reverse(dst, region, adjoints, saved, wanted)
    pairs = pairs_of(adjoints)
    back = adjoint_body(region.body, pairs, wanted)
    outs = dst.region(Call([*region.inputs, *ids_of_pairs(adjoints, pairs)], back.with_pairs()))
    return split(outs, len(region.inputs), back.found)


def _switch_forward(dst: Graph, region: Switch, given: list[Directions]):
    pairs = pairs_of(given[1:])
    wide = [tangent_body(body, pairs) for body in region.branches]
    found = union(*(branch.found for branch in wide))
    bodies = tuple(branch.with_pairs(found) for branch in wide)
    outs = dst.region(Switch([*region.inputs, *ids_of_pairs(given[1:], pairs)], bodies))
    n = len(region.out_dtypes)
    return outs[:n], split(outs[n:], n, found)


def _switch_reverse(dst: Graph, region: Switch, adjoints, saved, wanted):
    pairs = pairs_of(adjoints)
    back = [adjoint_body(body, pairs, wanted[1:]) for body in region.branches]
    found = union(*(branch.found for branch in back))
    bodies = tuple(branch.with_pairs(found) for branch in back)
    outs = dst.region(Switch([*region.inputs, *ids_of_pairs(adjoints, pairs)], bodies))
    return [{}, *split(outs, len(region.inputs) - 1, found)]


def _map_forward(dst: Graph, region: Map, given: list[Directions]):
    stacked, shared_ids = region.parts()
    s, m = region.slices, region.length * region.slices
    slices = sorted({(k % s, d) for k in range(m) for d in given[k]})
    shared = [(k + s, d) for k, d in pairs_of(given[m:])]
    extended = tangent_body(region.body, [*slices, *shared])
    body, found = extended.with_pairs(), extended.found
    h, ns, no = len(shared_ids), len(slices), len(region.body.outputs)
    order = [
        *range(s),
        *range(s + h, s + h + ns),
        *range(s, s + h),
        *range(s + h + ns, s + h + ns + len(shared)),
    ]
    wide = stacked_with(dst, stacked, given[:m], slices, 0)
    shared_tangents = [given[k - s + m][d] for k, d in shared]
    outs = dst.region(
        Map(
            [*wide.reshape(-1), *shared_ids, *shared_tangents],
            reordered(body, order, range(len(body.outputs))),
            region.length,
            s + ns,
        )
    ).reshape(region.length, no + len(found))
    tangents: list[Directions] = []
    for row in outs:
        tangents.extend(split(row[no:], no, found))
    return outs[:, :no].reshape(-1), tangents


def _map_reverse(dst: Graph, region: Map, adjoints, saved, wanted):
    stacked, shared_ids = region.parts()
    s, m, h = region.slices, region.length * region.slices, len(shared_ids)
    no = len(region.body.outputs)
    pairs = sorted({(k % no, d) for k in range(region.length * no) for d in adjoints[k]})
    slice_wanted = [any(wanted[i * s + k] for i in range(region.length)) for k in range(s)]
    back = adjoint_body(region.body, pairs, [*slice_wanted, *wanted[m:]])
    body, found = back.with_pairs(), back.found
    np_ = len(pairs)
    order = [*range(s), *range(s + h, s + h + np_), *range(s, s + h)]
    rows = np.concatenate([stacked, stacked_outs(dst, region, adjoints, pairs)], axis=1)
    outs = dst.region(
        Map(
            [*rows.reshape(-1), *shared_ids],
            reordered(body, order, range(len(found))),
            region.length,
            s + np_,
        )
    ).reshape(region.length, len(found))
    inputs: list[Directions] = []
    columns = [c for c, (k, _) in enumerate(found) if k < s]
    for row in outs:
        inputs.extend(split(row[columns], s, [found[c] for c in columns]))
    totals: list[Directions] = [{} for _ in range(h)]
    for c, (k, d) in enumerate(found):
        if k >= s:
            e = Emit(dst, dst.dtype[outs[0, c]])
            total = int(outs[0, c])
            for i in outs[1:, c].tolist():
                total = e.add(total, i)
            totals[k - s][d] = total
    return inputs + totals


FORWARD.update(
    {
        Call: _call_forward,
        Scan: loops.scan_forward,
        While: loops.while_forward,
        Switch: _switch_forward,
        Map: _map_forward,
        Solve: solve_forward,
        Host: rule_forward,
    }
)
REVERSE.update(
    {
        Call: _call_reverse,
        Scan: loops.scan_reverse,
        While: loops.while_reverse,
        Switch: _switch_reverse,
        Map: _map_reverse,
        Solve: solve_reverse,
        Host: rule_reverse,
    }
)
RECORD.update({Scan: loops.scan_record, While: loops.while_record})
