"""The reverse sweep of automatic differentiation: a program, and the way back over its adjoints.

An adjoint of a node is a dict ``{direction: id}``; a direction that is missing is zero, so that
structural zeros cost nothing. Directions are small ints chosen by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archimedes.graph.derivatives.rules import LINEAR, PARTIALS
from archimedes.graph.derivatives.whole import opened
from archimedes.graph.dtypes import is_float
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import ARITY, INPUT, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.passes import copy_into
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions, Region

__all__ = ["LINEAR_RULES", "PARTIAL_RULES", "add_term", "reverse_by_rows", "reverse_sweep"]

#: Derivative rules of ops by code, None where an op has none.
PARTIAL_RULES = tuple(PARTIALS.get(op.name) for op in TABLE)
LINEAR_RULES = tuple(LINEAR.get(op.name) for op in TABLE)


def add_term(g: Graph, e: Emit, into: Directions, direction: int, term: int) -> None:
    """Add a term to the tangent or adjoint along one direction; a literal zero adds nothing."""
    if g.value.get(term) == 0:
        return
    old = into.get(direction)
    into[direction] = term if old is None else e.add(old, term)


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
            results = moved.pull_back(
                dst,
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
        arity = ARITY[code]
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
                add_term(dst, e, adjoint, d, e.mul(partial, bar))
    return adjoints


def _merge(g: Graph, into: Directions, more: Directions) -> None:
    for d, term in more.items():
        add_term(g, Emit(g, g.dtype[term]), into, d, term)


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
        elif code == REGION or PARTIAL_RULES[code] is not None or LINEAR_RULES[code] is not None:
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
        elif ARITY[code] and code != LOOKUP and is_float(src.dtype[i]):
            differentiable = code == OUT or PARTIAL_RULES[code] or LINEAR_RULES[code]
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
        if not active[i]:
            return dst.region(region).tolist()
        outs, saved[i] = region.record(dst)
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
    linear = LINEAR_RULES[code]
    if linear is not None:
        for d, bar in adjoint.items():
            for j, term in zip(sources, linear[1](g, ids, bar)):
                if term is not None and active[j]:
                    _merge(g, adjoints.setdefault(j, {}), {d: term})
        return
    partials = PARTIAL_RULES[code]
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
            add_term(g, e, into, d, e.mul(p, bar))
