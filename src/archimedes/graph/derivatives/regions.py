"""Derivatives of regions: each maps to a region that computes values and derivatives together.

Legend. A *pair* is (position, direction): the tangent or adjoint of one value along one
direction. Bodies are extended by one input or output a pair; which pairs are not structurally
zero is found by propagating them through the body, for loops until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.errors import GraphError
from archimedes.graph.derivatives.rules import Emit
from archimedes.graph.derivatives.sweeps import (
    FORWARD,
    RECORD,
    REVERSE,
    Directions,
    forward_sweep,
    reverse_sweep,
)
from archimedes.graph.dtypes import I64, is_float
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import (
    Call,
    DerivativeRule,
    Host,
    Map,
    Region,
    Scan,
    Solve,
    Switch,
    While,
)

__all__ = ["tangent_body", "while_as_scan"]

Pair = tuple[int, int]


# ---- extended bodies -------------------------------------------------------------------------


def _copy_inputs(body: Graph) -> tuple[Graph, list[int]]:
    g = Graph()
    return g, [g.input(dtype) for dtype in body.input_dtypes]


def _seed(g: Graph, dtypes: Sequence[int], pairs: Sequence[Pair]) -> list[Directions]:
    """Append an input for each pair and return them by position."""
    seeds: list[Directions] = [{} for _ in dtypes]
    for position, direction in pairs:
        seeds[position][direction] = g.input(dtypes[position])
    return seeds


def _pairs(values: Sequence[Directions]) -> list[Pair]:
    return [(k, d) for k, dirs in enumerate(values) for d in sorted(dirs)]


def _pick(g: Graph, values: Sequence[Directions], pairs: Sequence[Pair], dtypes: Sequence[int]):
    """Ids of the given pairs, a constant zero where one is missing."""
    return [
        values[k][d] if d in values[k] else g.const(0.0, dtypes[k]) for k, d in pairs
    ]


def tangent_body(
    body: Graph, pairs: Sequence[Pair], wanted: Sequence[Pair] | None = None
) -> tuple[Graph, list[Pair]]:
    """Extend a body by tangents.

    Its inputs are followed by one input a pair, its outputs by one output a wanted pair (default:
    those not structurally zero), which are returned too.
    """
    g, inputs = _copy_inputs(body)
    seeds = _seed(g, body.input_dtypes, pairs)
    outs, tangents = forward_sweep(g, body, inputs, seeds)
    found = _pairs(tangents) if wanted is None else list(wanted)
    g.outputs = outs + _pick(g, tangents, found, body.output_dtypes)
    return prune(g), found


def _adjoint_body(
    body: Graph, pairs: Sequence[Pair], inputs_wanted: Sequence[bool], wanted=None
) -> tuple[Graph, list[Pair]]:
    """Return (inputs, adjoint a pair of outputs) -> adjoint a pair of inputs, and those pairs."""
    g, inputs = _copy_inputs(body)
    seeds = _seed(g, body.output_dtypes, pairs)
    _, adjoints = reverse_sweep(g, body, inputs, seeds, inputs_wanted)
    found = _pairs(adjoints) if wanted is None else list(wanted)
    g.outputs = _pick(g, adjoints, found, body.input_dtypes)
    return prune(g), found


def _split(
    outs: Sequence[int], count: int, pairs: Sequence[Pair]
) -> list[Directions]:
    """Sort the ids of pair outputs into one dict a position."""
    values: list[Directions] = [{} for _ in range(count)]
    for (k, d), i in zip(pairs, outs):
        values[k][d] = int(i)
    return values


def _tangent_ids(given: list[Directions], pairs: Sequence[Pair]) -> list[int]:
    return [given[k][d] for k, d in pairs]


def _union(*groups: Sequence[Pair]) -> list[Pair]:
    return sorted({p for group in groups for p in group})


# ---- call ------------------------------------------------------------------------------------


def _call_forward(dst: Graph, region: Call, given: list[Directions]):
    if region.derivative is not None:
        return _rule_forward(dst, region, given)
    pairs = _pairs(given)
    body, found = tangent_body(region.body, pairs)
    outs = dst.region(Call([*region.inputs, *_tangent_ids(given, pairs)], body))
    n = len(region.body.outputs)
    return outs[:n], _split(outs[n:], n, found)


def _call_reverse(dst: Graph, region: Call, adjoints, saved, wanted):
    if region.derivative is not None:
        return _rule_reverse(dst, region, adjoints, saved)
    pairs = _pairs(adjoints)
    body, found = _adjoint_body(region.body, pairs, wanted)
    outs = dst.region(Call([*region.inputs, *_tangent_ids(adjoints, pairs)], body))
    return _split(outs, len(region.inputs), found)


# ---- regions that bring their own rule -------------------------------------------------------


def _missing_rule(region: Any) -> GraphError:
    name = getattr(region, "label", region.kind)
    return GraphError(
        f"the callback {name!r} has no derivative: give it one with "
        f"arc.callback(..., jvp=...) or wrap the function in arc.custom_jvp."
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


def _rule_forward(dst: Graph, region: Call | Host, given: list[Directions]):
    rule = region.derivative
    if rule is None:
        raise _missing_rule(region)
    outs = dst.region(region)
    directions, rows = _by_direction(given)
    if rule.forward is not None:
        results = rule.forward(dst, region.inputs, outs, rows)
    else:
        results = _transposed(dst, rule, region, outs, rows, forward=True)
    return outs, _collect(directions, results, len(outs))


def _rule_reverse(dst: Graph, region: Call | Host, adjoints, outs):
    rule = region.derivative
    if rule is None:
        raise _missing_rule(region)
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


# ---- scan ------------------------------------------------------------------------------------


def _scan_pairs(region: Scan, given: list[Directions]) -> tuple[list[Pair], ...]:
    """Pairs of a scan's inputs as positions in its body: carry, slice (any step), shared."""
    n, m = region.carry, region.length * region.slices
    carry = _pairs(given[:n])
    slices = sorted(
        {(n + k % region.slices, d) for k in range(m) for d in given[n + k]}
    )
    shared = [(n + region.slices + k, d) for k, d in _pairs(given[n + m :])]
    return carry, slices, shared


def _stacked(dst: Graph, stacked: np.ndarray, given: list[Directions], pairs, first: int):
    """Lay tangents of slices beside the slices: (length, slices + pairs)."""
    length, width = stacked.shape
    extra = np.empty((length, len(pairs)), dtype=np.int64)
    for column, (k, d) in enumerate(pairs):
        position = k - first
        zero = -1
        for step in range(length):
            i = given[step * width + position].get(d, -1)
            if i < 0:
                if zero < 0:
                    zero = dst.const(0.0, dst.dtype[stacked[step, position]])
                i = zero
            extra[step, column] = i
    return np.concatenate([stacked, extra], axis=1)


def _reordered(body: Graph, order: Sequence[int], outputs: Sequence[int]) -> Graph:
    """Return a body whose inputs and outputs are permuted: new input k is old input order[k]."""
    g = Graph()
    old: dict[int, int] = {}
    for position in order:
        old[position] = g.input(body.input_dtypes[position])
    outs = inline(g, body, [old[k] for k in range(len(body.inputs))])
    g.outputs = [outs[k] for k in outputs]
    return prune(g)


def _scan_forward(dst: Graph, region: Scan, given: list[Directions]):
    init, stacked, shared_ids = region.parts()
    carry, slices, shared = _scan_pairs(region, given)
    while True:
        body, found = tangent_body(region.body, [*carry, *slices, *shared])
        grown = _union(carry, [p for p in found if p[0] < region.carry])
        if grown == carry:
            break
        carry = grown
    outs_found = [p for p in found if p[0] >= region.carry]
    body, _ = tangent_body(region.body, [*carry, *slices, *shared], [*carry, *outs_found])
    n, s, h = region.carry, region.slices, len(shared_ids)
    base = n + s + h
    nc, ns = len(carry), len(slices)
    order = [
        *range(n), *range(base, base + nc),
        *range(n, n + s), *range(base + nc, base + nc + ns),
        *range(n + s, base), *range(base + nc + ns, base + nc + ns + len(shared)),
    ]
    no = len(region.body.outputs)
    outputs = [
        *range(n), *range(no, no + nc), *range(n, no), *range(no + nc, no + nc + len(outs_found))
    ]
    m = region.length * s
    wide = _stacked(dst, stacked, given[n : n + m], slices, n)
    zeros = {k: dst.const(0.0, dst.dtype[init[k]]) for k, _ in carry}
    carry_tangents = [given[k].get(d, zeros[k]) for k, d in carry]
    shared_tangents = [given[k - s + m][d] for k, d in shared]
    new = Scan(
        [*init, *carry_tangents, *wide.reshape(-1), *shared_ids, *shared_tangents],
        _reordered(body, order, outputs), region.length, n + nc, s + ns, region.reverse,
    )
    outs = dst.region(new)
    rows = outs[n + nc :].reshape(region.length, no - n + len(outs_found))
    wide_outs = no - n
    values = [*outs[:n], *rows[:, :wide_outs].reshape(-1)]
    tangents = _split(outs[n : n + nc], n, carry)
    for step in range(region.length):
        local = [(k - n, d) for k, d in outs_found]
        tangents.extend(_split(rows[step, wide_outs:], wide_outs, local))
    return [int(i) for i in values], tangents


def _scan_record(dst: Graph, region: Scan):
    """Run a scan that also puts out the carry each step starts from."""
    g, inputs = _copy_inputs(region.body)
    outs = inline(g, region.body, inputs)
    g.outputs = [*outs, *inputs[: region.carry]]
    new = Scan(
        region.inputs, prune(g), region.length, region.carry, region.slices, region.reverse
    )
    ids = dst.region(new)
    n, wide = region.carry, region.outs
    rows = ids[n:].reshape(region.length, wide + n)
    return np.concatenate([ids[:n], rows[:, :wide].reshape(-1)]), rows[:, wide:]


def _scan_reverse(dst: Graph, region: Scan, adjoints, carries: np.ndarray, wanted):
    _, stacked, shared_ids = region.parts()
    n, s, h, wide = region.carry, region.slices, len(shared_ids), region.outs
    m = region.length * s
    slice_wanted = [
        any(wanted[n + step * s + k] for step in range(region.length)) for k in range(s)
    ]
    floats = [is_float(dtype) for dtype in region.body.input_dtypes[:n]]
    body_wanted = [*floats, *slice_wanted, *wanted[n + m :]]
    carry = _pairs(adjoints[:n])
    out_pairs = sorted(
        {(n + k % wide, d) for k in range(region.length * wide) for d in adjoints[n + k]}
    )
    while True:
        body, found = _adjoint_body(region.body, [*carry, *out_pairs], body_wanted)
        grown = _union(carry, [p for p in found if p[0] < n])
        if grown == carry:
            break
        carry = grown
    slices = [p for p in found if n <= p[0] < n + s]
    shared = [p for p in found if p[0] >= n + s]
    body, _ = _adjoint_body(
        region.body, [*carry, *out_pairs], body_wanted, [*carry, *slices, *shared]
    )
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
    rows = _stacked_outs(dst, region, adjoints[n:], out_pairs)
    steps = np.concatenate([carries, stacked, rows], axis=1)
    zero_bars = [
        adjoints[k][d] if d in adjoints[k] else dst.const(0.0, dtypes[k]) for k, d in carry
    ]
    zero_sums = [dst.const(0.0, dtypes[k]) for k, _ in shared]
    outs = dst.region(
        Scan(
            [*zero_bars, *zero_sums, *steps.reshape(-1), *shared_ids],
            prune(g), region.length, nc + len(shared), steps.shape[1], not region.reverse,
        )
    )
    inputs = _split(outs[:nc], n, carry)
    by_step = outs[nc + len(shared) :].reshape(region.length, ns)
    for step in range(region.length):
        inputs.extend(_split(by_step[step], s, [(k - n, d) for k, d in slices]))
    inputs.extend(
        _split(outs[nc : nc + len(shared)], h, [(k - n - s, d) for k, d in shared])
    )
    return inputs


def _stacked_outs(dst: Graph, region: Scan | Map, adjoints, pairs) -> np.ndarray:
    """Lay out the adjoints of a loop's outs as (length, pairs), zero where one is missing."""
    first = region.carry if isinstance(region, Scan) else 0
    wide = len(region.body.outputs) - first
    rows = np.empty((region.length, len(pairs)), dtype=np.int64)
    for column, (k, d) in enumerate(pairs):
        zero = dst.const(0.0, region.body.output_dtypes[k])
        for step in range(region.length):
            rows[step, column] = adjoints[step * wide + k - first].get(d, zero)
    return rows


# ---- while -----------------------------------------------------------------------------------


def while_as_scan(region: While) -> Scan:
    """Return the scan of ``limit`` steps that does the same: finished steps pass the carry on."""
    g, inputs = _copy_inputs(region.body)
    (test,) = inline(g, region.condition, inputs)
    keep, carry_in = _copy_inputs(region.body)
    keep.outputs = carry_in[: region.carry]
    index = g.emit(CODES["i64"], test)
    g.outputs = g.region(Switch([index, *inputs], (keep, region.body))).tolist()
    return Scan(region.inputs, prune(g), region.limit, region.carry, 0)


def _while_forward(dst: Graph, region: While, given: list[Directions]):
    n = region.carry
    carry, shared = _pairs(given[:n]), [(k + n, d) for k, d in _pairs(given[n:])]
    while True:
        body, found = tangent_body(region.body, [*carry, *shared])
        grown = _union(carry, found)
        if grown == carry:
            break
        carry = grown
    body, _ = tangent_body(region.body, [*carry, *shared], carry)
    h, nc = len(region.inputs) - n, len(carry)
    order = [
        *range(n), *range(n + h, n + h + nc), *range(n, n + h),
        *range(n + h + nc, n + h + nc + len(shared)),
    ]
    step = _reordered(body, order, range(n + nc))
    test = Graph()
    ids = [test.input(dtype) for dtype in step.input_dtypes]
    test.outputs = inline(test, region.condition, [*ids[:n], *ids[n + nc : n + nc + h]])
    zeros = {k: dst.const(0.0, region.body.output_dtypes[k]) for k, _ in carry}
    bars = [given[k].get(d, zeros[k]) for k, d in carry]
    inputs = [*region.inputs[:n], *bars, *region.inputs[n:], *_tangent_ids(given, shared)]
    outs = dst.region(While(inputs, test, step, n + nc, region.limit))
    return outs[:n], _split(outs[n:], n, carry)


def _while_record(dst: Graph, region: While):
    return _scan_record(dst, while_as_scan(region))


def _while_reverse(dst: Graph, region: While, adjoints, carries, wanted):
    return _scan_reverse(dst, while_as_scan(region), adjoints, carries, wanted)


# ---- switch ----------------------------------------------------------------------------------


def _switch_forward(dst: Graph, region: Switch, given: list[Directions]):
    pairs = _pairs(given[1:])
    found = _union(*(tangent_body(body, pairs)[1] for body in region.branches))
    bodies = tuple(tangent_body(body, pairs, found)[0] for body in region.branches)
    outs = dst.region(Switch([*region.inputs, *_tangent_ids(given[1:], pairs)], bodies))
    n = len(region.out_dtypes)
    return outs[:n], _split(outs[n:], n, found)


def _switch_reverse(dst: Graph, region: Switch, adjoints, saved, wanted):
    pairs = _pairs(adjoints)
    found = _union(*(_adjoint_body(b, pairs, wanted[1:])[1] for b in region.branches))
    bodies = tuple(_adjoint_body(b, pairs, wanted[1:], found)[0] for b in region.branches)
    outs = dst.region(Switch([*region.inputs, *_tangent_ids(adjoints, pairs)], bodies))
    return [{}, *_split(outs, len(region.inputs) - 1, found)]


# ---- map -------------------------------------------------------------------------------------


def _map_forward(dst: Graph, region: Map, given: list[Directions]):
    stacked, shared_ids = region.parts()
    s, m = region.slices, region.length * region.slices
    slices = sorted({(k % s, d) for k in range(m) for d in given[k]})
    shared = [(k + s, d) for k, d in _pairs(given[m:])]
    body, found = tangent_body(region.body, [*slices, *shared])
    h, ns, no = len(shared_ids), len(slices), len(region.body.outputs)
    order = [
        *range(s), *range(s + h, s + h + ns), *range(s, s + h),
        *range(s + h + ns, s + h + ns + len(shared)),
    ]
    wide = _stacked(dst, stacked, given[:m], slices, 0)
    shared_tangents = [given[k - s + m][d] for k, d in shared]
    outs = dst.region(
        Map(
            [*wide.reshape(-1), *shared_ids, *shared_tangents],
            _reordered(body, order, range(len(body.outputs))), region.length, s + ns,
        )
    ).reshape(region.length, no + len(found))
    tangents: list[Directions] = []
    for row in outs:
        tangents.extend(_split(row[no:], no, found))
    return outs[:, :no].reshape(-1), tangents


def _map_reverse(dst: Graph, region: Map, adjoints, saved, wanted):
    stacked, shared_ids = region.parts()
    s, m, h = region.slices, region.length * region.slices, len(shared_ids)
    no = len(region.body.outputs)
    pairs = sorted({(k % no, d) for k in range(region.length * no) for d in adjoints[k]})
    slice_wanted = [any(wanted[i * s + k] for i in range(region.length)) for k in range(s)]
    body, found = _adjoint_body(region.body, pairs, [*slice_wanted, *wanted[m:]])
    np_ = len(pairs)
    order = [*range(s), *range(s + h, s + h + np_), *range(s, s + h)]
    rows = np.concatenate([stacked, _stacked_outs(dst, region, adjoints, pairs)], axis=1)
    outs = dst.region(
        Map(
            [*rows.reshape(-1), *shared_ids],
            _reordered(body, order, range(len(found))), region.length, s + np_,
        )
    ).reshape(region.length, len(found))
    inputs: list[Directions] = []
    columns = [c for c, (k, _) in enumerate(found) if k < s]
    for row in outs:
        inputs.extend(_split(row[columns], s, [found[c] for c in columns]))
    totals: list[Directions] = [{} for _ in range(h)]
    for c, (k, d) in enumerate(found):
        if k >= s:
            e = Emit(dst, dst.dtype[outs[0, c]])
            total = int(outs[0, c])
            for i in outs[1:, c].tolist():
                total = e.add(total, i)
            totals[k - s][d] = total
    return inputs + totals


# ---- linear solves ---------------------------------------------------------------------------


def _columns(dst: Graph, blocks: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(blocks, axis=1)


def _dense(dst: Graph, values: Sequence[Directions], d: int, shape, dtype: int) -> np.ndarray:
    zero = dst.const(0.0, dtype)
    return np.array([v.get(d, zero) for v in values], dtype=np.int64).reshape(shape)


def _product(dst: Graph, a: np.ndarray, b: np.ndarray, dtype: int) -> np.ndarray:
    """Emit the matrix product of two arrays of ids."""
    e = Emit(dst, dtype)
    out = np.empty((a.shape[0], b.shape[1]), dtype=np.int64)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = e.c(0.0)
            for k in range(a.shape[1]):
                total = e.add(total, e.mul(int(a[i, k]), int(b[k, j])))
            out[i, j] = total
    return out


def _solve(dst: Graph, matrix: np.ndarray, right: np.ndarray, dtype: int) -> np.ndarray:
    n, m = right.shape
    outs = dst.region(Solve([*matrix.reshape(-1), *right.reshape(-1)], n, m, dtype))
    return outs.reshape(n, m)


def _solve_forward(dst: Graph, region: Solve, given: list[Directions]):
    """A dX = dB - dA X."""
    n, m, dtype = region.size, region.columns, region.dtype
    outs = dst.region(region)
    a, x = region.inputs[: n * n].reshape(n, n), outs.reshape(n, m)
    directions = sorted({d for value in given for d in value})
    e = Emit(dst, dtype)
    blocks = []
    for d in directions:
        da = _dense(dst, given[: n * n], d, (n, n), dtype)
        db = _dense(dst, given[n * n :], d, (n, m), dtype)
        dax = _product(dst, da, x, dtype)
        blocks.append(np.vectorize(e.sub, otypes=[np.int64])(db, dax))
    dx = _solve(dst, a, _columns(dst, blocks), dtype)
    tangents: list[Directions] = [{} for _ in range(n * m)]
    for k, d in enumerate(directions):
        for p, i in enumerate(dx[:, k * m : (k + 1) * m].reshape(-1).tolist()):
            tangents[p][d] = i
    return outs, tangents


def _solve_reverse(dst: Graph, region: Solve, adjoints, outs, wanted):
    """A^T L = Xbar; Bbar = L, Abar = -L X^T."""
    n, m, dtype = region.size, region.columns, region.dtype
    a, x = region.inputs[: n * n].reshape(n, n), outs.reshape(n, m)
    directions = sorted({d for value in adjoints for d in value})
    blocks = [_dense(dst, adjoints, d, (n, m), dtype) for d in directions]
    multipliers = _solve(dst, a.T, _columns(dst, blocks), dtype)
    inputs: list[Directions] = [{} for _ in range(n * n + n * m)]
    e = Emit(dst, dtype)
    matrix_wanted = any(wanted[: n * n])
    for k, d in enumerate(directions):
        lam = multipliers[:, k * m : (k + 1) * m]
        for p, i in enumerate(lam.reshape(-1).tolist()):
            inputs[n * n + p][d] = i
        if matrix_wanted:
            for p, i in enumerate(_product(dst, lam, x.T, dtype).reshape(-1).tolist()):
                inputs[p][d] = e.neg(i)
    return inputs


FORWARD.update(
    {
        Call: _call_forward,
        Scan: _scan_forward,
        While: _while_forward,
        Switch: _switch_forward,
        Map: _map_forward,
        Solve: _solve_forward,
        Host: _rule_forward,
    }
)
REVERSE.update(
    {
        Call: _call_reverse,
        Scan: _scan_reverse,
        While: _while_reverse,
        Switch: _switch_reverse,
        Map: _map_reverse,
        Solve: _solve_reverse,
        Host: lambda dst, region, adjoints, outs, wanted: _rule_reverse(
            dst, region, adjoints, outs
        ),
    }
)
RECORD.update({Scan: _scan_record, While: _while_record})
