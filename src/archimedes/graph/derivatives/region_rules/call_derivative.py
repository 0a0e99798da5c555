"""Derivatives of calls: a call of the body with its tangents, or of its way back."""

from __future__ import annotations

from archimedes.graph.derivatives.bodies import (
    adjoint_body,
    ids_of_pairs,
    pairs_of,
    split,
    tangent_body,
)
from archimedes.graph.derivatives.own_rules import rule_forward, rule_reverse
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative

__all__: list[str] = []


def _forward(dst: Graph, region: Call, given: list[Directions]):
    if region.derivative is not None:
        return rule_forward(dst, region, given)
    pairs = pairs_of(given)
    wide = tangent_body(region.body, pairs)
    outs = dst.region(Call([*region.inputs, *ids_of_pairs(given, pairs)], wide.with_pairs()))
    n = len(region.body.outputs)
    return outs[:n], split(outs[n:], n, wide.found)


def _reverse(dst: Graph, region: Call, adjoints, saved, wanted):
    if region.derivative is not None:
        return rule_reverse(dst, region, adjoints, saved, wanted)
    pairs = pairs_of(adjoints)
    back = adjoint_body(region.body, pairs, wanted)
    outs = dst.region(Call([*region.inputs, *ids_of_pairs(adjoints, pairs)], back.with_pairs()))
    return split(outs, len(region.inputs), back.found)


register_derivative(Call, RegionDerivative(_forward, _reverse))
