"""Derivatives of loops.

A scan becomes a scan that carries its tangents along, or one that runs back over its adjoints; a
map becomes a map with tangents or adjoints beside each instance; a while loop carries tangents
along, and backwards is a scan.

Legend. In a body n values are carried, s come from the slice of the step, h are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.graph.blocks.building import add_values
from archimedes.graph.derivatives.bodies import (
    Pair,
    adjoint_body,
    beside,
    copy_inputs,
    ids_of_pairs,
    pairs_of,
    reordered,
    settled,
    split,
    stacked_outs,
    stacked_with,
    tangent_body,
)
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map, Scan, Switch, While
from archimedes.graph.regions.base import Directions, RegionDerivative, register_derivative
from archimedes.graph.regions.loop_regions import UNBOUNDED

__all__ = [
    "scan_record",
    "scan_reverse",
]


def _input_pairs(region: Scan, given: list[Directions]) -> tuple[list[Pair], ...]:
    """Pairs of a scan's inputs as positions in its body: carry, slice (any step), shared."""
    n, m = region.carry, region.rows * region.slices
    carry = pairs_of(given[:n])
    slices = sorted({(n + k % region.slices, d) for k in range(m) for d in given[n + k]})
    shared = [(n + region.slices + k, d) for k, d in pairs_of(given[n + m :])]
    return carry, slices, shared


def _scan_forward(
    dst: Graph, region: Scan, given: list[Directions]
) -> tuple[list[int], list[Directions]]:
    init, stacked, shared_ids = region.parts()
    n, s, m = region.carry, region.slices, region.rows * region.slices
    carry, slices, shared = _input_pairs(region, given)
    carry, extended = settled(
        lambda pairs: tangent_body(region.body, [*pairs, *slices, *shared]), carry, n
    )
    outs_found = [p for p in extended.found if p[0] >= n]
    nc, ns, wide_outs = len(carry), len(slices), region.outs
    body = reordered(
        extended.with_pairs([*carry, *outs_found]),
        beside([n, s, len(shared_ids)], [nc, ns, len(shared)]),
        beside([n, wide_outs], [nc, len(outs_found)]),
    )
    wide = stacked_with(dst, stacked, given[n : n + m], slices, n)
    zeros = {k: dst.const(0.0, dst.dtype[init[k]]) for k, _ in carry}
    carry_tangents = [given[k].get(d, zeros[k]) for k, d in carry]
    shared_tangents = [given[k - s + m][d] for k, d in shared]
    inputs = [*init, *carry_tangents, *wide.reshape(-1), *shared_ids, *shared_tangents]
    outs = dst.region(_like(region, inputs, body, n + nc, s + ns))
    rows = outs[n + nc :].reshape(region.rows, wide_outs + len(outs_found))
    values = [*outs[:n], *rows[:, :wide_outs].reshape(-1)]
    tangents = split(outs[n : n + nc], n, carry)
    local = [(k - n, d) for k, d in outs_found]
    for row in rows:
        tangents.extend(split(row[wide_outs:], wide_outs, local))
    return [int(i) for i in values], tangents


def _like(
    region: Scan, inputs: Any, body: Graph, carry: int, slices: int, back: bool = False
) -> Scan:
    """Return a scan over the same steps (from the other end with ``back``) with another body."""
    way = region.reverse != back
    return Scan(inputs, body, region.length, carry, slices, way, stacked=region.stacked)


def scan_record(dst: Graph, region: Scan) -> tuple[np.ndarray, np.ndarray]:
    """Run a scan that also puts out the carry each step starts from."""
    region = region.in_blocks()
    g, inputs = copy_inputs(region.body)
    outs = inline(g, region.body, inputs)
    g.outputs = [*outs, *inputs[: region.carry]]
    ids = dst.region(_like(region, region.inputs, prune(g), region.carry, region.slices))
    n, wide = region.carry, region.outs
    rows = ids[n:].reshape(region.rows, wide + n)
    return np.concatenate([ids[:n], rows[:, :wide].reshape(-1)]), rows[:, wide:]


def _wanted_in_body(region: Scan, wanted: Sequence[bool]) -> list[bool]:
    """Which inputs of the body have adjoints: all floats carried, and what is wanted of a step."""
    n, s = region.carry, region.slices
    floats = [is_float(dtype) for dtype in region.body.input_dtypes[:n]]
    rows = range(region.rows)
    slices = [any(wanted[n + row * s + k] for row in rows) for k in range(s)]
    return [*floats, *slices, *wanted[n + region.rows * s :]]


def _backward_body(
    region: Scan,
    body: Graph,
    carry: list[Pair],
    out_pairs: list[Pair],
    slices: int,
    shared: list[Pair],
) -> Graph:
    """(carry adjoints, shared sums | carry, slice, out adjoints | shared) -> one step back.

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


def scan_reverse(
    dst: Graph,
    region: Scan,
    adjoints: list[Directions],
    carries: np.ndarray,
    wanted: Sequence[bool],
) -> list[Directions]:
    """Return adjoints of the inputs; ``carries`` are what each step started from."""
    region = region.in_blocks()
    _, stacked, shared_ids = region.parts()
    n, s, wide = region.carry, region.slices, region.outs
    outs = range(region.rows * wide)
    out_pairs = sorted({(n + k % wide, d) for k in outs for d in adjoints[n + k]})
    body_wanted = _wanted_in_body(region, wanted)
    carry, back = settled(
        lambda pairs: adjoint_body(region.body, [*pairs, *out_pairs], body_wanted),
        pairs_of(adjoints[:n]),
        n,
    )
    slices = [p for p in back.found if n <= p[0] < n + s]
    shared = [p for p in back.found if p[0] >= n + s]
    body = back.with_pairs([*carry, *slices, *shared])
    step = _backward_body(region, body, carry, out_pairs, len(slices), shared)
    rows = stacked_outs(dst, region, adjoints[n:], out_pairs, n)
    steps = np.concatenate([carries, stacked, rows], axis=1)
    dtypes = region.body.input_dtypes
    bars = [adjoints[k][d] if d in adjoints[k] else dst.const(0.0, dtypes[k]) for k, d in carry]
    sums = [dst.const(0.0, dtypes[k]) for k, _ in shared]
    inputs = [*bars, *sums, *steps.reshape(-1), *shared_ids]
    count, width = len(carry) + len(shared), steps.shape[1]
    found = dst.region(_like(region, inputs, step, count, width, back=True))
    results = split(found[: len(carry)], n, carry)
    local = [(k - n, d) for k, d in slices]
    for row in found[count:].reshape(region.rows, len(slices)):
        results.extend(split(row, s, local))
    of_shared = [(k - n - s, d) for k, d in shared]
    results.extend(split(found[len(carry) : count], len(shared_ids), of_shared))
    return results


register_derivative(Scan, RegionDerivative(_scan_forward, scan_reverse, scan_record))


def _map_forward(dst: Graph, region: Map, given: list[Directions]):
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


def _map_reverse(dst: Graph, region: Map, adjoints, saved, wanted):
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


register_derivative(Map, RegionDerivative(_map_forward, _map_reverse))


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


def _while_forward(dst: Graph, region: While, given: list[Directions]):
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


def _while_record(dst: Graph, region: While):
    return scan_record(dst, _as_scan(region))


def _while_reverse(dst: Graph, region: While, adjoints, carries, wanted):
    return scan_reverse(dst, _as_scan(region), adjoints, carries, wanted)


register_derivative(While, RegionDerivative(_while_forward, _while_reverse, _while_record))
