"""Bodies of regions, extended by derivatives.

Legend. A *pair* is (position, direction): the tangent or adjoint of one value along one
direction. Bodies are extended by one input or output a pair; which pairs are not structurally
zero is found by propagating them through the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.graph.derivatives.sweeps import Directions, forward_sweep, reverse_sweep
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map, Scan

__all__ = ["Pair", "adjoint_body", "tangent_body"]

Pair = tuple[int, int]


def copy_inputs(body: Graph) -> tuple[Graph, list[int]]:
    g = Graph()
    return g, [g.input(dtype) for dtype in body.input_dtypes]


def seed(g: Graph, dtypes: Sequence[int], pairs: Sequence[Pair]) -> list[Directions]:
    """Append an input for each pair and return them by position."""
    seeds: list[Directions] = [{} for _ in dtypes]
    for position, direction in pairs:
        seeds[position][direction] = g.input(dtypes[position])
    return seeds


def pairs_of(values: Sequence[Directions]) -> list[Pair]:
    return [(k, d) for k, dirs in enumerate(values) for d in sorted(dirs)]


def pick(g: Graph, values: Sequence[Directions], pairs: Sequence[Pair], dtypes: Sequence[int]):
    """Ids of the given pairs, a constant zero where one is missing."""
    return [values[k][d] if d in values[k] else g.const(0.0, dtypes[k]) for k, d in pairs]


def tangent_body(
    body: Graph, pairs: Sequence[Pair], wanted: Sequence[Pair] | None = None
) -> tuple[Graph, list[Pair]]:
    """Extend a body by tangents.

    Its inputs are followed by one input a pair, its outputs by one output a wanted pair (default:
    those not structurally zero), which are returned too.
    """
    g, inputs = copy_inputs(body)
    seeds = seed(g, body.input_dtypes, pairs)
    outs, tangents = forward_sweep(g, body, inputs, seeds)
    found = pairs_of(tangents) if wanted is None else list(wanted)
    g.outputs = outs + pick(g, tangents, found, body.output_dtypes)
    return prune(g), found


def adjoint_body(
    body: Graph, pairs: Sequence[Pair], inputs_wanted: Sequence[bool], wanted=None
) -> tuple[Graph, list[Pair]]:
    """Return (inputs, adjoint a pair of outputs) -> adjoint a pair of inputs, and those pairs."""
    g, inputs = copy_inputs(body)
    seeds = seed(g, body.output_dtypes, pairs)
    _, adjoints = reverse_sweep(g, body, inputs, seeds, inputs_wanted)
    found = pairs_of(adjoints) if wanted is None else list(wanted)
    g.outputs = pick(g, adjoints, found, body.input_dtypes)
    return prune(g), found


def split(outs: Sequence[int] | np.ndarray, count: int, pairs: Sequence[Pair]) -> list[Directions]:
    """Sort the ids of pair outputs into one dict a position."""
    values: list[Directions] = [{} for _ in range(count)]
    for (k, d), i in zip(pairs, outs):
        values[k][d] = int(i)
    return values


def ids_of_pairs(given: list[Directions], pairs: Sequence[Pair]) -> list[int]:
    return [given[k][d] for k, d in pairs]


def union(*groups: Sequence[Pair]) -> list[Pair]:
    return sorted({p for group in groups for p in group})


def stacked_with(dst: Graph, stacked: np.ndarray, given: list[Directions], pairs, first: int):
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


def reordered(body: Graph, order: Sequence[int], outputs: Sequence[int]) -> Graph:
    """Return a body whose inputs and outputs are permuted: new input k is old input order[k]."""
    g = Graph()
    old: dict[int, int] = {}
    for position in order:
        old[position] = g.input(body.input_dtypes[position])
    outs = inline(g, body, [old[k] for k in range(len(body.inputs))])
    g.outputs = [outs[k] for k in outputs]
    return prune(g)


def stacked_outs(dst: Graph, region: Scan | Map, adjoints, pairs) -> np.ndarray:
    """Lay out the adjoints of a loop's outs as (length, pairs), zero where one is missing."""
    first = region.carry if isinstance(region, Scan) else 0
    wide = len(region.body.outputs) - first
    rows = np.empty((region.length, len(pairs)), dtype=np.int64)
    for column, (k, d) in enumerate(pairs):
        zero = dst.const(0.0, region.body.output_dtypes[k])
        for step in range(region.length):
            rows[step, column] = adjoints[step * wide + k - first].get(d, zero)
    return rows
