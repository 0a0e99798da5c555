"""Derivatives of bodies run once, and of regions that bring a rule of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.graph.derivatives.bodies import (
    adjoint_body,
    ids_of_pairs,
    pairs_of,
    split,
    tangent_body,
    union,
)
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.dtypes import is_float
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, DerivativeRule, Host, Switch
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative

__all__ = [
    "rule_forward",
    "rule_reverse",
]


def _missing_rule(region: Any) -> TraceError:
    name = getattr(region, "label", region.kind)
    return TraceError(
        f"the callback {name!r} has no derivative: give it one with "
        f"arc.callback(..., jvp=...) or wrap the function in arc.custom_jvp."
    )


def _check_closure(region: Call | Host, active: Sequence[Any]) -> None:
    if isinstance(region, Call) and any(active[len(active) - region.closure :]):
        name = region.derivative.name if region.derivative else region.kind
        raise TraceError(
            f"{name} has its own derivative rule, and closes over a value that is being "
            "differentiated, which the rule knows nothing of: pass the value as an argument"
        )


def _by_direction(values: Sequence[Directions]) -> tuple[list[int], list[list[int | None]]]:
    directions = sorted({d for value in values for d in value})
    return directions, [[value.get(d) for value in values] for d in directions]


def _collect(directions: list[int], rows: Sequence[Sequence[int | None]], count: int):
    values: list[Directions] = [{} for _ in range(count)]
    for d, row in zip(directions, rows):
        for k, i in enumerate(row):
            if i is not None:
                values[k][d] = int(i)
    return values


def rule_forward(dst: Graph, region: Call | Host, given: list[Directions]) -> Any:
    """Apply a region's own forward rule, or the transpose of its reverse rule."""
    rule = region.derivative
    if rule is None:
        raise _missing_rule(region)
    _check_closure(region, given)
    outs = dst.region(region)
    directions, rows = _by_direction(given)
    if rule.forward is not None:
        results = rule.forward(dst, region.inputs, outs, rows)
    else:
        results = _transposed(dst, rule, region, outs, rows, forward=True)
    return outs, _collect(directions, results, len(outs))


def rule_reverse(
    dst: Graph, region: Call | Host, adjoints: list[Directions], outs: Any, wanted: Sequence[bool]
) -> Any:
    """Apply a region's own reverse rule, or the transpose of its forward rule."""
    rule = region.derivative
    if rule is None:
        raise _missing_rule(region)
    _check_closure(region, wanted)
    directions, rows = _by_direction(adjoints)
    if rule.reverse is not None:
        results = rule.reverse(dst, region.inputs, outs, rows)
    else:
        results = _transposed(dst, rule, region, outs, rows, forward=False)
    return _collect(directions, results, len(region.inputs))


def _transposed(dst, rule: DerivativeRule, region, outs, rows, *, forward: bool):
    """Transpose a rule: it is linear in its tangents, so its own reverse sweep is its transpose."""
    primal = [*region.inputs.tolist(), *outs.tolist()]
    dtypes = [dst.dtype[i] for i in primal]
    n = len(region.inputs)
    g = Graph()
    ids = [g.input(dtype) for dtype in dtypes]
    args, results = np.array(ids[:n]), np.array(ids[n:])
    source = dtypes[n:] if forward else dtypes[:n]
    seeds = [g.input(dtype) if is_float(dtype) else None for dtype in source]
    apply = rule.reverse if forward else rule.forward
    assert apply is not None
    (row,) = apply(g, args, results, [seeds])
    target = [i for i, value in enumerate(row) if value is not None]
    g.outputs = [row[i] for i in target]
    positions = [k for k, seed in enumerate(seeds) if seed is not None]
    linear = prune(g)
    wanted = [False] * len(primal) + [True] * len(positions)
    size = n if not forward else len(outs)
    answers = []
    for given in rows:
        zeros = [dst.const(0.0, source[k]) for k in positions]
        out_seeds = [{0: given[i]} if given[i] is not None else {} for i in target]
        _, adjoints = reverse_sweep(dst, linear, [*primal, *zeros], out_seeds, wanted)
        answer: list[int | None] = [None] * size
        for k, adjoint in zip(positions, adjoints[len(primal) :]):
            answer[k] = adjoint.get(0)
        answers.append(answer)
    return answers


register_derivative(Host, RegionDerivative(rule_forward, rule_reverse))


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


register_derivative(Call, RegionDerivative(_call_forward, _call_reverse))


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


register_derivative(Switch, RegionDerivative(_switch_forward, _switch_reverse))
