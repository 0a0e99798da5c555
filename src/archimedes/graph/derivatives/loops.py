"""Derivatives of loops: a loop that carries its tangents along, or runs back over its adjoints."""

from __future__ import annotations

import numpy as np

from archimedes.graph.derivatives.bodies import (
    Pair,
    adjoint_body,
    copy_inputs,
    ids_of_pairs,
    pairs_of,
    reordered,
    split,
    stacked_outs,
    stacked_with,
    tangent_body,
    union,
)
from archimedes.graph.derivatives.rules import Emit
from archimedes.graph.derivatives.sweeps import Directions
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan, Switch, While

__all__ = ["while_as_scan"]


def _scan_pairs(region: Scan, given: list[Directions]) -> tuple[list[Pair], ...]:
    """Pairs of a scan's inputs as positions in its body: carry, slice (any step), shared."""
    n, m = region.carry, region.length * region.slices
    carry = pairs_of(given[:n])
    slices = sorted({(n + k % region.slices, d) for k in range(m) for d in given[n + k]})
    shared = [(n + region.slices + k, d) for k, d in pairs_of(given[n + m :])]
    return carry, slices, shared


def scan_forward(dst: Graph, region: Scan, given: list[Directions]):
    init, stacked, shared_ids = region.parts()
    carry, slices, shared = _scan_pairs(region, given)
    while True:
        wide_body = tangent_body(region.body, [*carry, *slices, *shared])
        grown = union(carry, [p for p in wide_body.found if p[0] < region.carry])
        if grown == carry:
            break
        carry = grown
    outs_found = [p for p in wide_body.found if p[0] >= region.carry]
    body = wide_body.with_pairs([*carry, *outs_found])
    n, s, h = region.carry, region.slices, len(shared_ids)
    base = n + s + h
    nc, ns = len(carry), len(slices)
    order = [
        *range(n),
        *range(base, base + nc),
        *range(n, n + s),
        *range(base + nc, base + nc + ns),
        *range(n + s, base),
        *range(base + nc + ns, base + nc + ns + len(shared)),
    ]
    no = len(region.body.outputs)
    outputs = [
        *range(n),
        *range(no, no + nc),
        *range(n, no),
        *range(no + nc, no + nc + len(outs_found)),
    ]
    m = region.length * s
    wide = stacked_with(dst, stacked, given[n : n + m], slices, n)
    zeros = {k: dst.const(0.0, dst.dtype[init[k]]) for k, _ in carry}
    carry_tangents = [given[k].get(d, zeros[k]) for k, d in carry]
    shared_tangents = [given[k - s + m][d] for k, d in shared]
    new = Scan(
        [*init, *carry_tangents, *wide.reshape(-1), *shared_ids, *shared_tangents],
        reordered(body, order, outputs),
        region.length,
        n + nc,
        s + ns,
        region.reverse,
    )
    outs = dst.region(new)
    rows = outs[n + nc :].reshape(region.length, no - n + len(outs_found))
    wide_outs = no - n
    values = [*outs[:n], *rows[:, :wide_outs].reshape(-1)]
    tangents = split(outs[n : n + nc], n, carry)
    for step in range(region.length):
        local = [(k - n, d) for k, d in outs_found]
        tangents.extend(split(rows[step, wide_outs:], wide_outs, local))
    return [int(i) for i in values], tangents


def scan_record(dst: Graph, region: Scan):
    """Run a scan that also puts out the carry each step starts from."""
    g, inputs = copy_inputs(region.body)
    outs = inline(g, region.body, inputs)
    g.outputs = [*outs, *inputs[: region.carry]]
    new = Scan(region.inputs, prune(g), region.length, region.carry, region.slices, region.reverse)
    ids = dst.region(new)
    n, wide = region.carry, region.outs
    rows = ids[n:].reshape(region.length, wide + n)
    return np.concatenate([ids[:n], rows[:, :wide].reshape(-1)]), rows[:, wide:]


def scan_reverse(dst: Graph, region: Scan, adjoints, carries: np.ndarray, wanted):
    _, stacked, shared_ids = region.parts()
    n, s, h, wide = region.carry, region.slices, len(shared_ids), region.outs
    m = region.length * s
    slice_wanted = [
        any(wanted[n + step * s + k] for step in range(region.length)) for k in range(s)
    ]
    floats = [is_float(dtype) for dtype in region.body.input_dtypes[:n]]
    body_wanted = [*floats, *slice_wanted, *wanted[n + m :]]
    carry = pairs_of(adjoints[:n])
    out_pairs = sorted(
        {(n + k % wide, d) for k in range(region.length * wide) for d in adjoints[n + k]}
    )
    while True:
        back = adjoint_body(region.body, [*carry, *out_pairs], body_wanted)
        grown = union(carry, [p for p in back.found if p[0] < n])
        if grown == carry:
            break
        carry = grown
    slices = [p for p in back.found if n <= p[0] < n + s]
    shared = [p for p in back.found if p[0] >= n + s]
    body = back.with_pairs([*carry, *slices, *shared])
    # Backward body: (carry adjoints, shared sums | carry, slice, out adjoints | shared)
    dtypes = region.body.input_dtypes
    g = Graph()
    bars = [g.input(dtypes[k]) for k, _ in carry]
    sums = [g.input(dtypes[k]) for k, _ in shared]
    primal = [g.input(dtype) for dtype in dtypes[: n + s]]
    out_bars = [g.input(region.body.output_dtypes[k]) for k, _ in out_pairs]
    common = [g.input(dtype) for dtype in dtypes[n + s :]]
    results = inline(g, body, [*primal, *common, *bars, *out_bars])
    nc, ns = len(carry), len(slices)
    totals = [
        Emit(g, g.dtype[total]).add(total, more) for total, more in zip(sums, results[nc + ns :])
    ]
    g.outputs = [*results[:nc], *totals, *results[nc : nc + ns]]
    rows = stacked_outs(dst, region, adjoints[n:], out_pairs)
    steps = np.concatenate([carries, stacked, rows], axis=1)
    zero_bars = [
        adjoints[k][d] if d in adjoints[k] else dst.const(0.0, dtypes[k]) for k, d in carry
    ]
    zero_sums = [dst.const(0.0, dtypes[k]) for k, _ in shared]
    outs = dst.region(
        Scan(
            [*zero_bars, *zero_sums, *steps.reshape(-1), *shared_ids],
            prune(g),
            region.length,
            nc + len(shared),
            steps.shape[1],
            not region.reverse,
        )
    )
    inputs = split(outs[:nc], n, carry)
    by_step = outs[nc + len(shared) :].reshape(region.length, ns)
    for step in range(region.length):
        inputs.extend(split(by_step[step], s, [(k - n, d) for k, d in slices]))
    inputs.extend(split(outs[nc : nc + len(shared)], h, [(k - n - s, d) for k, d in shared]))
    return inputs


def while_as_scan(region: While) -> Scan:
    """Return the scan of ``limit`` steps that does the same: finished steps pass the carry on."""
    g, inputs = copy_inputs(region.body)
    (test,) = inline(g, region.condition, inputs)
    keep, carry_in = copy_inputs(region.body)
    keep.outputs = carry_in[: region.carry]
    index = g.emit(CODES["i64"], test)
    g.outputs = g.region(Switch([index, *inputs], (keep, region.body))).tolist()
    return Scan(region.inputs, prune(g), region.limit, region.carry, 0)


def while_forward(dst: Graph, region: While, given: list[Directions]):
    n = region.carry
    carry, shared = pairs_of(given[:n]), [(k + n, d) for k, d in pairs_of(given[n:])]
    while True:
        wide = tangent_body(region.body, [*carry, *shared])
        grown = union(carry, wide.found)
        if grown == carry:
            break
        carry = grown
    h, nc = len(region.inputs) - n, len(carry)
    order = [
        *range(n),
        *range(n + h, n + h + nc),
        *range(n, n + h),
        *range(n + h + nc, n + h + nc + len(shared)),
    ]
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


def while_record(dst: Graph, region: While):
    return scan_record(dst, while_as_scan(region))


def while_reverse(dst: Graph, region: While, adjoints, carries, wanted):
    return scan_reverse(dst, while_as_scan(region), adjoints, carries, wanted)
