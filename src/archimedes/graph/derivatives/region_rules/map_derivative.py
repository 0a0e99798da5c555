"""Derivatives of maps: a map with tangents beside each instance, or adjoints."""

from __future__ import annotations

import numpy as np

from archimedes.graph.blocks.building import add_values
from archimedes.graph.derivatives.bodies import (
    adjoint_body,
    beside,
    pairs_of,
    reordered,
    split,
    stacked_outs,
    stacked_with,
    tangent_body,
)
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative

__all__: list[str] = []


def _forward(dst: Graph, region: Map, given: list[Directions]):
    stacked, shared_ids = region.parts()
    s, m = region.slices, region.length * region.slices
    slices = sorted({(k % s, d) for k in range(m) for d in given[k]})
    shared = [(k + s, d) for k, d in pairs_of(given[m:])]
    extended = tangent_body(region.body, [*slices, *shared])
    body, found = extended.with_pairs(), extended.found
    h, ns, no = len(shared_ids), len(slices), len(region.body.outputs)
    order = beside([s, h], [ns, len(shared)])
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


def _reverse(dst: Graph, region: Map, adjoints, saved, wanted):
    stacked, shared_ids = region.parts()
    s, m, h = region.slices, region.length * region.slices, len(shared_ids)
    no = len(region.body.outputs)
    pairs = sorted({(k % no, d) for k in range(region.length * no) for d in adjoints[k]})
    slice_wanted = [any(wanted[i * s + k] for i in range(region.length)) for k in range(s)]
    back = adjoint_body(region.body, pairs, [*slice_wanted, *wanted[m:]])
    body, found = back.with_pairs(), back.found
    np_ = len(pairs)
    order = beside([s, h], [np_, 0])
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
            total = int(outs[0, c])
            for i in outs[1:, c].tolist():
                total = add_values(dst, total, i)
            totals[k - s][d] = total
    return inputs + totals


register_derivative(Map, RegionDerivative(_forward, _reverse))
