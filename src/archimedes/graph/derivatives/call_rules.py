"""Derivatives of bodies run once, and of regions that bring a rule of their own.

The derivative of a call is a call of the body with its tangents, or of its way back; that of a
switch is a switch between such bodies. Calls with a rule and host functions have theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.graph.derivatives.bodies import (
    Row,
    SweptBody,
    adjoint_body,
    by_position,
    by_value,
    ids_of,
    pairs_of,
    tangent_body,
    union_of_pairs,
)
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.dtypes import is_float
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Region, Switch
from archimedes.graph.regions.base import (
    Adjoints,
    Directions,
    RegionDerivative,
    Tangents,
    Wanted,
    register_derivative,
)

__all__: list[str] = []


def _forward(dst: Graph, region: Call | Switch, tangents: Tangents) -> tuple[Any, Tangents]:
    if isinstance(region, Call) and region.derivative is not None:
        return _rule_forward(dst, region, tangents)
    tangents = tangents[_index_inputs(region) :]
    pairs = pairs_of(tangents)
    swept = [tangent_body(body, pairs) for body in region.bodies]
    outs, results = _run_bodies(dst, region, ids_of(tangents, pairs), swept)
    n = len(region.out_dtypes)
    return outs[:n], by_position(outs[n:], n, results)


def _reverse(
    dst: Graph, region: Call | Switch, adjoints: Adjoints, saved: np.ndarray, wanted: Wanted
) -> Adjoints:
    if isinstance(region, Call) and region.derivative is not None:
        return _rule_reverse(dst, region, adjoints, saved, wanted)
    index = _index_inputs(region)
    pairs = pairs_of(adjoints)
    swept = [adjoint_body(body, pairs, wanted[index:]) for body in region.bodies]
    outs, results = _run_bodies(dst, region, ids_of(adjoints, pairs), swept)
    return [{}] * index + by_position(outs, len(region.inputs) - index, results)


def _index_inputs(region: Region) -> int:
    """Return the number of inputs that select a body: one for a switch."""
    return 1 if isinstance(region, Switch) else 0


def _run_bodies(
    dst: Graph, region: Region, added: list[int], swept: Sequence[SweptBody]
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Emit the region with other bodies that all return the same pairs; return those too."""
    pairs = union_of_pairs(*(body.pairs for body in swept))
    bodies = tuple(body.with_pairs(pairs) for body in swept)
    inputs = [*region.inputs, *added]
    if isinstance(region, Switch):
        return dst.region(Switch(inputs, bodies)), pairs
    return dst.region(Call(inputs, bodies[0])), pairs


# ---- rules that regions bring ------------------------------------------------------------


def _check_rule(region: Call | Host, active: Sequence[Any]) -> None:
    """Refuse a region without a rule, or one that closes over something ``active``."""
    if region.derivative is None:
        name = getattr(region, "label", region.kind)
        raise TraceError(
            f"the callback {name!r} has no derivative: give it one with "
            f"arc.callback(..., jvp=...) or wrap the function in arc.custom_jvp."
        )
    if isinstance(region, Call) and any(active[len(active) - region.closure :]):
        raise TraceError(
            f"{region.derivative.name} has its own derivative rule, and closes over a value that "
            "is being differentiated, which the rule knows nothing of: pass the value as an "
            "argument"
        )


def _rule_forward(dst: Graph, region: Call | Host, tangents: Tangents) -> tuple[Any, Tangents]:
    """Apply a region's own forward rule, or the transpose of its reverse rule."""
    _check_rule(region, tangents)
    outs = dst.region(region)
    return outs, _apply(dst, region, outs, tangents, len(outs), forward=True)


def _rule_reverse(
    dst: Graph, region: Call | Host, adjoints: Adjoints, outs: np.ndarray, wanted: Wanted
) -> Adjoints:
    """Apply a region's own reverse rule, or the transpose of its forward rule."""
    _check_rule(region, wanted)
    return _apply(dst, region, outs, adjoints, len(region.inputs), forward=False)


def _apply(
    dst: Graph,
    region: Call | Host,
    outs: np.ndarray,
    values: list[Directions],
    count: int,
    forward: bool,
) -> Adjoints:
    """Apply a rule to tangents or adjoints, direction by direction, and return ``count`` others."""
    rule = region.derivative
    assert rule is not None
    directions = sorted({d for value in values for d in value})
    rows: list[Row] = [[value.get(d) for value in values] for d in directions]
    apply = rule.forward if forward else rule.reverse
    if apply is not None:
        results = apply(dst, region.inputs, outs, rows)
    else:
        results = _transpose(dst, region, outs, rows, forward)
    return by_value(zip(directions, results), count)


def _present(row: Row) -> list[int]:
    return [k for k, i in enumerate(row) if i is not None]


def _transpose(
    dst: Graph, region: Call | Host, outs: np.ndarray, rows: list[Row], forward: bool
) -> list[Row]:
    """Transpose a rule: it is linear in its tangents, so its own reverse sweep is its transpose."""
    rule, n = region.derivative, len(region.inputs)
    assert rule is not None
    primal = [*region.inputs.tolist(), *outs.tolist()]
    dtypes = [dst.dtype[i] for i in primal]
    g = Graph.with_inputs(dtypes)
    args, results = np.array(g.inputs[:n]), np.array(g.inputs[n:])
    source = dtypes[n:] if forward else dtypes[:n]
    seeds = [g.input(dtype) if is_float(dtype) else None for dtype in source]
    apply = rule.reverse if forward else rule.forward
    assert apply is not None
    (row,) = apply(g, args, results, [seeds])
    target, positions = _present(row), _present(seeds)
    g.outputs = [row[i] for i in target]
    linear = prune(g)
    wanted = [False] * len(primal) + [True] * len(positions)
    answers = []
    for values in rows:
        zeros = [dst.const(0.0, source[k]) for k in positions]
        out_seeds = [{} if (i := values[k]) is None else {0: i} for k in target]
        _, adjoints = reverse_sweep(dst, linear, [*primal, *zeros], out_seeds, wanted)
        answer: Row = [None] * len(source)
        for k, adjoint in zip(positions, adjoints[len(primal) :]):
            answer[k] = adjoint.get(0)
        answers.append(answer)
    return answers


register_derivative(Call, RegionDerivative(_forward, _reverse))
register_derivative(Switch, RegionDerivative(_forward, _reverse))
register_derivative(Host, RegionDerivative(_rule_forward, _rule_reverse))
