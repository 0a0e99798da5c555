"""Derivatives of switches: a switch between branches with their tangents, or their ways back."""

from __future__ import annotations

from archimedes.graph.derivatives.bodies import (
    adjoint_body,
    ids_of_pairs,
    pairs_of,
    split,
    tangent_body,
    union,
)
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative

__all__: list[str] = []


def _forward(dst: Graph, region: Switch, given: list[Directions]):
    pairs = pairs_of(given[1:])
    wide = [tangent_body(body, pairs) for body in region.branches]
    found = union(*(branch.found for branch in wide))
    bodies = tuple(branch.with_pairs(found) for branch in wide)
    outs = dst.region(Switch([*region.inputs, *ids_of_pairs(given[1:], pairs)], bodies))
    n = len(region.out_dtypes)
    return outs[:n], split(outs[n:], n, found)


def _reverse(dst: Graph, region: Switch, adjoints, saved, wanted):
    pairs = pairs_of(adjoints)
    back = [adjoint_body(body, pairs, wanted[1:]) for body in region.branches]
    found = union(*(branch.found for branch in back))
    bodies = tuple(branch.with_pairs(found) for branch in back)
    outs = dst.region(Switch([*region.inputs, *ids_of_pairs(adjoints, pairs)], bodies))
    return [{}, *split(outs, len(region.inputs) - 1, found)]


register_derivative(Switch, RegionDerivative(_forward, _reverse))
