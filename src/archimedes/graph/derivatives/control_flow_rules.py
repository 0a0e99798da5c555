"""Derivatives of control flow: bodies run once or in loops, and regions with a rule of their own.

The derivative of a call is a call of the body with its tangents, or of its way back; that of a
switch is a switch between such bodies. Calls with a rule and host functions have theirs. A scan
becomes a scan that carries its tangents along, or one that runs back over its adjoints; a map
becomes a map with tangents or adjoints beside each instance; a while loop carries tangents along,
and backwards is a scan.

Legend. In the body of a loop n values are carried, s come from the slice of the step, h are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.graph.blocks.building import add_values
from archimedes.graph.derivatives import bodies
from archimedes.graph.derivatives.bodies import Pair, Row, by_position, ids_of, pairs_of
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Switch, While
from archimedes.graph.regions.base import Adjoints, Directions, Tangents, Wanted, add_derivative
from archimedes.graph.regions.loop_regions import UNBOUNDED, CountedLoop

# ---- bodies run once ---------------------------------------------------------------------


def _call_forward(dst: Graph, region: Call | Switch, tangents: Tangents) -> tuple[Any, Tangents]:
    if isinstance(region, Call) and region.derivative is not None:
        return _rule_forward(dst, region, tangents)
    tangents = tangents[_index_inputs(region) :]
    pairs = pairs_of(tangents)
    swept = [bodies.tangent_body(body, pairs) for body in region.bodies]
    outs, results = _run_bodies(dst, region, ids_of(tangents, pairs), swept)
    n = len(region.out_dtypes)
    return outs[:n], by_position(outs[n:], n, results)


def _call_reverse(
    dst: Graph, region: Call | Switch, adjoints: Adjoints, saved: np.ndarray, wanted: Wanted
) -> Adjoints:
    if isinstance(region, Call) and region.derivative is not None:
        return _rule_reverse(dst, region, adjoints, saved, wanted)
    index = _index_inputs(region)
    pairs = pairs_of(adjoints)
    swept = [bodies.adjoint_body(body, pairs, wanted[index:]) for body in region.bodies]
    outs, results = _run_bodies(dst, region, ids_of(adjoints, pairs), swept)
    return [{}] * index + by_position(outs, len(region.inputs) - index, results)


def _index_inputs(region: Region) -> int:
    """Return the number of inputs that select a body: one for a switch."""
    return 1 if isinstance(region, Switch) else 0


def _run_bodies(
    dst: Graph, region: Region, added: list[int], swept: Sequence[bodies.SweptBody]
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Emit the region with other bodies that all return the same pairs; return those too."""
    pairs = bodies.union_of_pairs(*(body.pairs for body in swept))
    extended = tuple(body.with_pairs(pairs) for body in swept)
    inputs = [*region.inputs, *added]
    if isinstance(region, Switch):
        return dst.region(Switch(inputs, extended)), pairs
    return dst.region(Call(inputs, extended[0])), pairs


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
    return bodies.by_value(zip(directions, results), count)


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


# ---- scans and maps ----------------------------------------------------------------------


def _zeros_or(
    dst: Graph, values: Sequence[Directions], pairs: Sequence[Pair], dtypes: Sequence[int]
) -> list[int]:
    """Return the ids of pairs, zero where one is missing."""
    return [values[k][d] if d in values[k] else dst.const(0.0, dtypes[k]) for k, d in pairs]


def _loop_forward(
    dst: Graph, region: CountedLoop, tangents: Tangents
) -> tuple[list[int], Tangents]:
    init, slice_ids, shared_ids = region.parts()
    n, s, m = region.carry, region.slices, region.rows * region.slices
    # Pairs of the inputs as positions in the body: carry, slice (of any step), shared.
    carry, of_slices = pairs_of(tangents[:n]), tangents[n : n + m]
    slices = sorted({(k % s, d) for k in range(m) for d in of_slices[k]})
    shared = pairs_of(tangents[n + m :])
    added = [*((n + k, d) for k, d in slices), *((n + s + k, d) for k, d in shared)]
    carry, swept = bodies.close_pairs(
        lambda pairs: bodies.tangent_body(region.body, [*pairs, *added]), carry, n
    )
    outs_pairs = [p for p in swept.pairs if p[0] >= n]
    nc, ns, no = len(carry), len(slices), region.outs
    body = bodies.permute_body(
        swept.with_pairs([*carry, *outs_pairs]),
        bodies.interleave([n, s, len(shared_ids)], [nc, ns, len(shared)]),
        bodies.interleave([n, no], [nc, len(outs_pairs)]),
    )
    kinds = [dst.dtype[i] for i in slice_ids[0]] if region.rows else []
    rows = [slice_ids, bodies.rows_of(dst, of_slices, slices, kinds, region.rows)]
    inputs = [
        *init,
        *_zeros_or(dst, tangents, carry, [dst.dtype[i] for i in init]),
        *np.concatenate(rows, axis=1).reshape(-1),
        *shared_ids,
        *ids_of(tangents[n + m :], shared),
    ]
    outs = dst.region(region.like(inputs, body, n + nc, s + ns))
    table = outs[n + nc :].reshape(region.rows, no + len(outs_pairs))
    values = [*outs[:n], *table[:, :no].reshape(-1)]
    results = by_position(outs[n : n + nc], n, carry)
    local = [(k - n, d) for k, d in outs_pairs]
    for row in table:
        results.extend(by_position(row[no:], no, local))
    return [int(i) for i in values], results


def _pairs_of_outs(region: CountedLoop, adjoints: Sequence[Directions]) -> list[Pair]:
    """Return the pairs that the outs of a loop have in any step."""
    every = range(region.rows * region.outs)
    return sorted({(k % region.outs, d) for k in every for d in adjoints[k]})


def _rows_of_outs(
    dst: Graph, region: CountedLoop, adjoints: Sequence[Directions], pairs: Sequence[Pair]
) -> np.ndarray:
    kinds = [region.of_steps(kind) for kind in region.body.output_dtypes[region.carry :]]
    return bodies.rows_of(dst, adjoints, pairs, kinds, region.rows)


def _are_slices_wanted(region: CountedLoop, wanted: Wanted) -> list[bool]:
    """Return for each slice whether its adjoint is wanted in any step."""
    n, s = region.carry, region.slices
    return [any(wanted[n + row * s + k] for row in range(region.rows)) for k in range(s)]


def _map_reverse(
    dst: Graph, region: Map, adjoints: Adjoints, saved: np.ndarray, wanted: Wanted
) -> Adjoints:
    _, slice_ids, shared_ids = region.parts()
    s, h = region.slices, len(shared_ids)
    pairs = _pairs_of_outs(region, adjoints)
    body_wanted = [*_are_slices_wanted(region, wanted), *wanted[region.length * s :]]
    swept = bodies.adjoint_body(region.body, pairs, body_wanted)
    order, results = bodies.interleave([s, h], [len(pairs), 0]), swept.pairs
    body = bodies.permute_body(swept.with_pairs(), order, range(len(results)))
    rows = np.concatenate([slice_ids, _rows_of_outs(dst, region, adjoints, pairs)], axis=1)
    loop = Map([*rows.reshape(-1), *shared_ids], body, region.length, s + len(pairs))
    outs = dst.region(loop).reshape(region.length, len(results))
    own = sum(k < s for k, _ in results)  # pairs are in order: those of slices come first
    inputs: list[Directions] = []
    for row in outs[:, :own]:
        inputs.extend(by_position(row, s, results[:own]))
    totals = [reduce(lambda a, b: add_values(dst, a, b), c) for c in outs[:, own:].T.tolist()]
    return inputs + by_position(totals, h, [(k - s, d) for k, d in results[own:]])


def _scan_record(dst: Graph, region: Scan) -> tuple[np.ndarray, np.ndarray]:
    """Run a scan that also returns the carry that each step starts from."""
    region = region.in_blocks()
    n, no = region.carry, region.outs
    g = Graph.with_inputs(region.body.input_dtypes)
    g.outputs = [*inline(g, region.body, g.inputs), *g.inputs[:n]]
    ids = dst.region(region.like(region.inputs, prune(g), n, region.slices))
    rows = ids[n:].reshape(region.rows, no + n)
    return np.concatenate([ids[:n], rows[:, :no].reshape(-1)]), rows[:, no:]


def _scan_reverse(
    dst: Graph, region: Scan, adjoints: Adjoints, carries: np.ndarray, wanted: Wanted
) -> Adjoints:
    """Return adjoints of the inputs; ``carries`` are what each step started from."""
    region = region.in_blocks()
    _, slice_ids, shared_ids = region.parts()
    n, s, dtypes = region.carry, region.slices, region.body.input_dtypes
    out_pairs = _pairs_of_outs(region, adjoints[n:])
    added = [(n + k, d) for k, d in out_pairs]
    body_wanted = [
        *map(is_float, dtypes[:n]),
        *_are_slices_wanted(region, wanted),
        *wanted[n + region.rows * s :],
    ]
    carry, swept = bodies.close_pairs(
        lambda pairs: bodies.adjoint_body(region.body, [*pairs, *added], body_wanted),
        pairs_of(adjoints[:n]),
        n,
    )
    slices = [p for p in swept.pairs if n <= p[0] < n + s]
    shared = [p for p in swept.pairs if p[0] >= n + s]
    body = swept.with_pairs([*carry, *slices, *shared])
    step = _step_back(region, body, carry, added, len(slices), shared)
    rows = _rows_of_outs(dst, region, adjoints[n:], out_pairs)
    steps = np.concatenate([carries, slice_ids, rows], axis=1)
    bars = _zeros_or(dst, adjoints, carry, dtypes)
    sums = [dst.const(0.0, dtypes[k]) for k, _ in shared]
    inputs = [*bars, *sums, *steps.reshape(-1), *shared_ids]
    nc, count = len(carry), len(carry) + len(shared)
    loop = replace(region.like(inputs, step, count, steps.shape[1]), reverse=not region.reverse)
    outs = dst.region(loop)
    results = by_position(outs[:nc], n, carry)
    local = [(k - n, d) for k, d in slices]
    for row in outs[count:].reshape(region.rows, len(slices)):
        results.extend(by_position(row, s, local))
    return results + by_position(
        outs[nc:count], len(shared_ids), [(k - n - s, d) for k, d in shared]
    )


def _step_back(
    region: Scan,
    body: Graph,
    carry: list[Pair],
    out_pairs: list[Pair],
    slices: int,
    shared: list[Pair],
) -> Graph:
    """Return (carry adjoints, shared sums | carry, slice, out adjoints | shared) -> one step back.

    ``body`` is (inputs, carry adjoints, out adjoints) -> adjoints of carry, slice and shared.
    """
    first_shared, nc = region.carry + region.slices, len(carry)
    dtypes = region.body.input_dtypes
    g = Graph()
    bars = [g.input(dtypes[k]) for k, _ in carry]
    sums = [g.input(dtypes[k]) for k, _ in shared]
    primal = [g.input(dtype) for dtype in dtypes[:first_shared]]
    out_bars = [g.input(region.body.output_dtypes[k]) for k, _ in out_pairs]
    common = [g.input(dtype) for dtype in dtypes[first_shared:]]
    results = inline(g, body, [*primal, *common, *bars, *out_bars])
    totals = [add_values(g, total, more) for total, more in zip(sums, results[nc + slices :])]
    g.outputs = [*results[:nc], *totals, *results[nc : nc + slices]]
    return prune(g)


# ---- while loops -------------------------------------------------------------------------


def _while_forward(dst: Graph, region: While, tangents: Tangents) -> tuple[np.ndarray, Tangents]:
    n = region.carry
    carry, shared = pairs_of(tangents[:n]), [(k + n, d) for k, d in pairs_of(tangents[n:])]
    carry, swept = bodies.close_pairs(
        lambda pairs: bodies.tangent_body(region.body, [*pairs, *shared]), carry, n
    )
    h, nc = len(region.inputs) - n, len(carry)
    order = bodies.interleave([n, h], [nc, len(shared)])
    step = bodies.permute_body(swept.with_pairs(carry), order, range(n + nc))
    test = Graph.with_inputs(step.input_dtypes)
    ids = test.inputs
    test.outputs = inline(test, region.condition, [*ids[:n], *ids[n + nc : n + nc + h]])
    bars = _zeros_or(dst, tangents, carry, region.body.output_dtypes)
    inputs = [*region.inputs[:n], *bars, *region.inputs[n:], *ids_of(tangents, shared)]
    outs = dst.region(replace(region, inputs=inputs, condition=test, body=step, carry=n + nc))
    return outs[:n], by_position(outs[n:], n, carry)


def _as_scan(region: While) -> Scan:
    """Return an equal scan of ``limit`` steps, of which those after the end pass the carry on."""
    if region.limit == UNBOUNDED:
        where = f" at\n  {region.line}\n" if region.line else ": "
        raise TraceError(
            f"a derivative in reverse mode goes through a while_loop without max_steps{where}it "
            "keeps the state of every step, so it must know how many there can be. Write "
            "while_loop(..., max_steps=...) with a number of steps that is never exceeded, or "
            "differentiate in forward mode (arc.jvp)."
        )
    g = Graph.with_inputs(region.body.input_dtypes)
    inputs = list(g.inputs)
    (test,) = inline(g, region.condition, inputs)
    unchanged = Graph.with_inputs(region.body.input_dtypes)
    unchanged.outputs = unchanged.inputs[: region.carry]
    index = g.emit(CODES["i64"], test)
    g.outputs = g.region(Switch([index, *inputs], (unchanged, region.body))).tolist()
    return Scan(region.inputs, prune(g), region.limit, region.carry, 0)


def _while_record(dst: Graph, region: While) -> tuple[np.ndarray, np.ndarray]:
    return _scan_record(dst, _as_scan(region))


def _while_reverse(dst: Graph, region: While, *rest: Any) -> Adjoints:
    return _scan_reverse(dst, _as_scan(region), *rest)


add_derivative(Call, _call_forward, _call_reverse)
add_derivative(Switch, _call_forward, _call_reverse)
add_derivative(Host, _rule_forward, _rule_reverse)
add_derivative(Scan, _loop_forward, _scan_reverse, _scan_record)
add_derivative(Map, _loop_forward, _map_reverse)
add_derivative(While, _while_forward, _while_reverse, _while_record)
