"""Quotients 0/0 inside a program: derivatives of a node along given values of the same graph.

The derivative of a function of eigenvectors holds terms m / (w_j - w_i). Where the values are
equal m is zero too, if the function does not depend on the choice of vectors, and the limit is a
derivative of m along w. Since m is a node of the graph that is being differentiated, that
derivative is a program: it is found by sweeping over the part of the graph between w and m.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.sparsity import region_size
from archimedes.graph.ops import CODES, CONST
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch
from archimedes.graph.walk import Walk

__all__ = ["along"]


def along(
    g: Graph, target: int, direction: dict[int, float], test: int, limit: int
) -> tuple[int, int] | None:
    """Emit the first and second derivative of a node along others.

    ``direction`` maps nodes to how fast they change; what else ``target`` reads stays. The
    derivatives are computed only where ``test`` holds, and are zero elsewhere. None where the
    part of the graph between has more than ``limit`` nodes, those of bodies included.
    """
    sources = sorted(direction)
    part, reads = _between(g, sources, target)
    dtype = g.dtype[target]
    zero = g.const(0.0, dtype)
    if part is None:
        return zero, zero
    if len(part) + sum(region_size(region) for region in part.regions.values()) > limit:
        return None
    program = _derivatives(part, [direction.get(i, 0.0) for i in reads])
    nothing = Graph()
    for i in reads:
        nothing.input(g.dtype[i])
    nothing.outputs = [nothing.const(0.0, dtype)] * 2
    index = g.emit(CODES["i64"], test)
    first, second = g.region(Switch(np.array([index, *reads]), (nothing, program))).tolist()
    return first, second


def _between(g: Graph, sources: Sequence[int], target: int) -> tuple[Graph | None, list[int]]:
    """Return the program from some nodes to another, and the nodes it reads: sources first."""
    moving = set(sources)
    for i in g.live([target]):
        if i not in moving and any(j in moving for j in g.operands(i)):
            moving.add(i)
    if target not in moving:
        return None, []
    part = Graph()
    walk, reads = Walk(part, g, ()), list(sources)
    for i in sources:
        walk.to[i] = part.input(g.dtype[i])
    for i in sorted(moving - set(sources)):
        for j in g.operands(i):
            if walk.to[j] >= 0 or j in moving:
                continue
            if g.op[j] == CONST:
                walk.to[j] = walk.constant(j)
            else:
                walk.to[j] = part.input(g.dtype[j])
                reads.append(j)
        walk.run((i,))
    part.outputs = [walk.to[target]]
    return part, reads


def _derivatives(part: Graph, speeds: Sequence[float]) -> Graph:
    """Return the program of the first and the second derivative of its only output."""
    for outputs in (0, 1):
        g = Graph()
        inputs = [g.input(dtype) for dtype in part.input_dtypes]
        seeds = [
            {0: g.const(speed, dtype)} if speed else {}
            for speed, dtype in zip(speeds, part.input_dtypes)
        ]
        outs, tangents = forward_sweep(g, part, inputs, seeds)
        zero = g.const(0.0, part.output_dtypes[0])
        g.outputs = [*outs[:outputs], tangents[0].get(0, zero)]
        part = prune(g)
    return part
