"""The two sweeps of automatic differentiation over a graph, for many directions at once.

A tangent or adjoint of a node is a dict ``{direction: id}``; a direction that is missing is
zero, so that structural zeros cost nothing. Directions are small ints chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.derivatives.rules import LINEAR, PARTIALS, Emit
from archimedes.graph.derivatives.whole import MAX_ROWS, opened, whole_outputs
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import TABLE
from archimedes.graph.passes import copy_into, with_outputs
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Region

__all__ = [
    "FORWARD",
    "REVERSE",
    "Directions",
    "forward_sweep",
    "reverse_by_rows",
    "reverse_sweep",
]

Directions = dict[int, int]

#: Rules of regions, keyed by class and filled by ``derivatives/regions.py``.
#: forward(dst, region, tangents per input) -> (outs, tangents per output)
FORWARD: dict[type[Region], Callable[[Graph, Any, list[Directions]], tuple[Any, Any]]] = {}
#: reverse(dst, region, outs, adjoints per output, saved) -> adjoints per input
REVERSE: dict[type[Region], Callable[..., list[Directions]]] = {}
#: record(dst, region) -> (outs, saved): evaluate a region, keeping what its reverse rule needs.
RECORD: dict[type[Region], Callable[[Graph, Any], tuple[np.ndarray, Any]]] = {}

_ARITY = tuple(op.arity for op in TABLE)
_PARTIALS = tuple(PARTIALS.get(op.name) for op in TABLE)
_LINEAR = tuple(LINEAR.get(op.name) for op in TABLE)


def _add(g: Graph, e: Emit, into: Directions, direction: int, term: int) -> None:
    if g.value.get(term) == 0:
        return
    old = into.get(direction)
    into[direction] = term if old is None else e.add(old, term)


def forward_sweep(
    dst: Graph, src: Graph, inputs: Sequence[int], seeds: Sequence[Directions]
) -> tuple[list[int], list[Directions]]:
    """Copy ``src`` into ``dst`` together with its tangents.

    ``inputs`` are ids in ``dst`` in place of ``src.inputs``, ``seeds`` their tangents. Returns
    the ids of the outputs and their tangents.
    """
    src = opened(src)
    rows = whole_outputs(src, [bool(seed) for seed in seeds])
    if 0 < len(rows) <= MAX_ROWS:
        return _forward_by_rows(dst, src, inputs, seeds, rows)
    n = len(src.op)
    to = [-1] * n
    tangents: list[Directions] = [{}] * n
    outs: dict[int, tuple[list[int], list[Directions]]] = {}
    op, a, b, c = src.op, src.a, src.b, src.c
    live = src.live()
    read = {a[i] for i in live if op[i] == OUT} if src.regions else set()
    for i in live:
        code = op[i]
        if code == INPUT:
            to[i] = int(inputs[a[i]])
            tangents[i] = seeds[a[i]]
            continue
        if code == CONST:
            to[i] = dst.const(src.value[i], src.dtype[i])
            continue
        if code == OUT:
            made, region_tangents = outs[a[i]]
            to[i], tangents[i] = made[b[i]], region_tangents[b[i]]
            continue
        if code == LOOKUP:
            to[i] = dst.lookup(src.tables[b[i]], to[a[i]])
            continue
        if code == REGION:
            region = src.regions[i]
            reads = region.inputs.tolist()
            moved = region.with_inputs([to[j] for j in reads])
            given = [tangents[j] for j in reads]
            if any(given) and i in read:
                placed, region_tangents = FORWARD[type(region)](dst, moved, given)
            else:
                placed = dst.region(moved)
                region_tangents = [{}] * len(placed)
            outs[i] = ([int(k) for k in placed], region_tangents)
            continue
        arity = _ARITY[code]
        mine = (a[i], b[i], c[i])[:arity]
        ids = tuple(to[j] for j in mine)
        to[i] = out = dst.emit(code, *ids)
        active = [tangents[j] for j in mine]
        if any(active) and is_float(src.dtype[i]) and out not in dst.value:
            tangents[i] = _node_tangent(dst, code, out, ids, active)
    return [to[i] for i in src.outputs], [tangents[i] for i in src.outputs]


def _forward_by_rows(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int],
    seeds: Sequence[Directions],
    rows: list[int],
) -> tuple[list[int], list[Directions]]:
    """Sweep forward, but take the tangents of the outputs ``rows`` from their gradients."""
    rest = [k for k in range(len(src.outputs)) if k not in set(rows)]
    outs = [-1] * len(src.outputs)
    tangents: list[Directions] = [{} for _ in outs]
    plain = with_outputs(src, [src.outputs[k] for k in rest])
    for k, out, found in zip(rest, *forward_sweep(dst, plain, inputs, seeds)):
        outs[k], tangents[k] = out, found
    part = with_outputs(src, [src.outputs[k] for k in rows])
    ones = [{n: dst.const(1.0, part.dtype[i])} for n, i in enumerate(part.outputs)]
    made, gradients = reverse_sweep(dst, part, inputs, ones, [bool(seed) for seed in seeds])
    for n, k in enumerate(rows):
        outs[k] = made[n]
        for gradient, seed in zip(gradients, seeds):
            if n in gradient:
                e = Emit(dst, dst.dtype[gradient[n]])
                for d, tangent in seed.items():
                    _add(dst, e, tangents[k], d, e.mul(gradient[n], tangent))
    return outs, tangents


def _node_tangent(
    g: Graph, code: int, out: int, ids: tuple[int, ...], active: list[Directions]
) -> Directions:
    e = Emit(g, g.dtype[out])
    result: Directions = {}
    linear = _LINEAR[code]
    if linear is not None:
        for d in dict.fromkeys(d for t in active for d in t):
            given = [t[d] if d in t else _zero_like(g, j) for t, j in zip(active, ids)]
            _add(g, e, result, d, linear[0](g, ids, given))
        return result
    partials = _PARTIALS[code]
    if partials is None:
        return result
    first, second = ids[0], ids[1] if len(ids) > 1 else -1
    for k, t in enumerate(active):
        if not t:
            continue
        p = partials[k](e, out, first, second)
        for d, tangent in t.items():
            _add(g, e, result, d, e.mul(p, tangent))
    return result


def _zero_like(g: Graph, i: int) -> int:
    return g.const(0.0, g.dtype[i]) if is_float(g.dtype[i]) else -1


def reverse_sweep(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int],
    seeds: Sequence[Directions] | Callable[[list[int]], Sequence[Directions]],
    wanted: Sequence[bool] | None = None,
) -> tuple[list[int], list[Directions]]:
    """Copy ``src`` into ``dst`` together with adjoints of its inputs.

    ``seeds`` are the adjoints of the outputs, or a function of the outputs' ids that gives them.
    ``wanted`` marks the inputs whose adjoints are asked for (default: all of float type).
    Returns the ids of the outputs and the adjoints of the inputs.
    """
    src = opened(src)
    live = src.live()
    active = _active(src, live, wanted)
    _narrow(src, live, active, None if callable(seeds) else seeds)
    saved: dict[int, Any] = {}
    to = _record(dst, src, inputs, live, active, saved)
    out_ids = [to[i] for i in src.outputs]
    adjoints: dict[int, Directions] = {}
    region_adjoints: dict[int, dict[int, Directions]] = {}
    given = seeds(out_ids) if callable(seeds) else seeds
    for i, seed in zip(src.outputs, given):
        if seed and active[i]:
            _merge(dst, adjoints.setdefault(i, {}), seed)
    op, a, b, c = src.op, src.a, src.b, src.c
    for i in reversed(live):
        if not active[i]:
            continue
        code = op[i]
        if code == REGION:
            mine = region_adjoints.pop(i, None)
            if mine is None:
                continue
            region = src.regions[i]
            reads = region.inputs.tolist()
            moved = region.with_inputs([to[j] for j in reads])
            count = len(region.out_dtypes)
            results = REVERSE[type(region)](
                dst,
                moved,
                [mine.get(k, {}) for k in range(count)],
                saved[i],
                [bool(active[j]) for j in reads],
            )
            for j, result in zip(reads, results):
                if result and active[j]:
                    _merge(dst, adjoints.setdefault(j, {}), result)
            continue
        adjoint = adjoints.get(i)
        if not adjoint or code == INPUT:
            continue
        if code == OUT:
            region_adjoints.setdefault(a[i], {})[b[i]] = adjoint
            continue
        arity = _ARITY[code]
        _pass_back(dst, code, to[i], (a[i], b[i], c[i])[:arity], to, active, adjoint, adjoints)
    return out_ids, [adjoints.get(i, {}) if active[i] else {} for i in src.inputs]


def reverse_by_rows(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int],
    seeds: Sequence[Directions],
    wanted: Sequence[bool],
) -> list[Directions]:
    """Return the adjoints of inputs from the gradient of each output by itself.

    For a body whose outputs are used elsewhere: each must then have a derivative of its own.
    """
    ones: list[Directions] = [
        {k: dst.const(1.0, dtype)} if seed else {}
        for k, (seed, dtype) in enumerate(zip(seeds, src.output_dtypes))
    ]
    _, gradients = reverse_sweep(dst, src, inputs, ones, wanted)
    adjoints: list[Directions] = [{} for _ in gradients]
    for adjoint, gradient in zip(adjoints, gradients):
        for k, partial in gradient.items():
            e = Emit(dst, dst.dtype[partial])
            for d, bar in seeds[k].items():
                _add(dst, e, adjoint, d, e.mul(partial, bar))
    return adjoints


def _merge(g: Graph, into: Directions, more: Directions) -> None:
    for d, term in more.items():
        _add(g, Emit(g, g.dtype[term]), into, d, term)


def _narrow(
    src: Graph, live: list[int], active: bytearray, seeds: Sequence[Directions] | None
) -> None:
    """Take away the marks of nodes that no adjoint will reach (``seeds`` None: any output's may).

    What is only compared, or stopped, need not be recorded for a way back.
    """
    reached = bytearray(len(src.op))
    for k, i in enumerate(src.outputs):
        if active[i] and (seeds is None or seeds[k]):
            reached[i] = 1
    for i in reversed(live):
        if not (active[i] and reached[i]):
            active[i] = 0
            continue
        code = src.op[i]
        if code == OUT:
            reached[src.a[i]] = 1
        elif code == REGION or _PARTIALS[code] is not None or _LINEAR[code] is not None:
            for j in src.operands(i):
                reached[j] = 1


def _active(src: Graph, live: list[int], wanted: Sequence[bool] | None) -> bytearray:
    """Mark the nodes through which a wanted input can influence something."""
    active = bytearray(len(src.op))
    for i in live:
        code = src.op[i]
        if code == INPUT:
            active[i] = is_float(src.dtype[i]) and (wanted is None or wanted[src.a[i]])
        elif code == REGION:
            active[i] = any(active[j] for j in src.regions[i].inputs.tolist())
        elif _ARITY[code] and code != LOOKUP and is_float(src.dtype[i]):
            differentiable = code == OUT or _PARTIALS[code] or _LINEAR[code]
            active[i] = bool(differentiable) and any(active[j] for j in src.operands(i))
    return active


def _record(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int],
    live: list[int],
    active: bytearray,
    saved: dict[int, Any],
) -> list[int]:
    """Copy the primal program, letting active regions keep what their reverse rules need."""
    if not src.regions:
        return copy_into(dst, src, inputs, live)

    def place(i: int, region: Region) -> list[int]:
        record = RECORD.get(type(region)) if active[i] else None
        if record is None:
            saved[i] = outs = dst.region(region)
        else:
            outs, saved[i] = record(dst, region)
        return outs.tolist()

    return copy_into(dst, src, inputs, live, place)


def _pass_back(
    g: Graph,
    code: int,
    out: int,
    sources: tuple[int, ...],
    to: list[int],
    active: bytearray,
    adjoint: Directions,
    adjoints: dict[int, Directions],
) -> None:
    """Send the adjoint of one node to its operands."""
    ids = tuple(to[j] for j in sources)
    linear = _LINEAR[code]
    if linear is not None:
        for d, bar in adjoint.items():
            for j, term in zip(sources, linear[1](g, ids, bar)):
                if term is not None and active[j]:
                    _merge(g, adjoints.setdefault(j, {}), {d: term})
        return
    partials = _PARTIALS[code]
    if partials is None:
        return
    e = Emit(g, g.dtype[out])
    first, second = ids[0], ids[1] if len(ids) > 1 else -1
    for k, j in enumerate(sources):
        if not active[j]:
            continue
        p = partials[k](e, out, first, second)
        into = adjoints.setdefault(j, {})
        for d, bar in adjoint.items():
            _add(g, e, into, d, e.mul(p, bar))
