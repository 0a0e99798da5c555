"""Bodies of regions, extended by derivatives.

Legend. A *pair* is (position, direction): the tangent or adjoint of one value along one
direction. Bodies are extended by one input or output per pair; which pairs are not structurally
zero is found by propagating them through the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_by_rows, reverse_sweep
from archimedes.graph.derivatives.whole import whole_outputs
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map, Scan
from archimedes.graph.regions.base import Directions

__all__ = ["Extended", "Pair", "adjoint_body", "tangent_body"]

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


class Extended:
    """A body after a sweep, of which the outputs are still to be chosen.

    ``found`` are the pairs that are not structurally zero. ``with_pairs`` returns the body whose
    own outputs (for tangents) are followed by one output per pair: a sweep of a body with
    regions in it is long, and need not be made twice to learn what it gives.
    """

    def __init__(
        self, g: Graph, outs: list[int], values: Sequence[Directions], dtypes: Sequence[int]
    ) -> None:
        self.g, self.outs, self.values, self.dtypes = g, outs, values, dtypes
        self.found = pairs_of(values)

    def with_pairs(self, pairs: Sequence[Pair] | None = None) -> Graph:
        """Return the body with these pairs (default: those found), zero where one is missing."""
        wanted = self.found if pairs is None else pairs
        self.g.outputs = self.outs + pick(self.g, self.values, wanted, self.dtypes)
        return prune(self.g)


def tangent_body(body: Graph, pairs: Sequence[Pair]) -> Extended:
    """Extend a body by tangents: its inputs are followed by one input per pair."""
    g, inputs = copy_inputs(body)
    seeds = seed(g, body.input_dtypes, pairs)
    outs, tangents = forward_sweep(g, body, inputs, seeds)
    return Extended(g, outs, tangents, body.output_dtypes)


def adjoint_body(body: Graph, pairs: Sequence[Pair], inputs_wanted: Sequence[bool]) -> Extended:
    """Return (inputs, an adjoint per pair of outputs) -> an adjoint per pair of inputs."""
    g, inputs = copy_inputs(body)
    seeds = seed(g, body.output_dtypes, pairs)
    if whole_outputs(body, inputs_wanted):
        adjoints = reverse_by_rows(g, body, inputs, seeds, inputs_wanted)
    else:
        _, adjoints = reverse_sweep(g, body, inputs, seeds, inputs_wanted)
    return Extended(g, [], adjoints, body.input_dtypes)


def split(outs: Sequence[int] | np.ndarray, count: int, pairs: Sequence[Pair]) -> list[Directions]:
    """Sort the ids of pair outputs into one dict per position."""
    values: list[Directions] = [{} for _ in range(count)]
    for (k, d), i in zip(pairs, outs):
        values[k][d] = int(i)
    return values


def ids_of_pairs(given: list[Directions], pairs: Sequence[Pair]) -> list[int]:
    return [given[k][d] for k, d in pairs]


def union(*groups: Sequence[Pair]) -> list[Pair]:
    return sorted({p for group in groups for p in group})


def settled(
    sweep: Callable[[list[Pair]], Extended], carry: list[Pair], count: int
) -> tuple[list[Pair], Extended]:
    """Return the pairs of ``count`` carried values that any number of steps may reach.

    ``sweep`` extends the body of a loop for the pairs it is given; what it finds is carried to
    the next step. Returned with the body extended for the last, which gives nothing new.
    """
    while True:
        extended = sweep(carry)
        grown = union(carry, [p for p in extended.found if p[0] < count])
        if grown == carry:
            return carry, extended
        carry = grown


def beside(own: Sequence[int], added: Sequence[int]) -> list[int]:
    """Return the order that puts groups of added values behind the groups they belong to.

    ``own`` and ``added`` are sizes of groups; all added values come after all others at first.

    >>> beside([2, 1], [1, 2])
    [0, 1, 3, 2, 4, 5]
    """
    order: list[int] = []
    at, more = 0, sum(own)
    for mine, extra in zip(own, added):
        order += [*range(at, at + mine), *range(more, more + extra)]
        at, more = at + mine, more + extra
    return order


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
    dtypes = body.input_dtypes
    for position in order:
        old[position] = g.input(dtypes[position])
    outs = inline(g, body, [old[k] for k in range(len(body.inputs))])
    g.outputs = [outs[k] for k in outputs]
    return prune(g)


def stacked_outs(
    dst: Graph,
    region: Scan | Map,
    adjoints: Sequence[Directions],
    pairs: Sequence[Pair],
    first: int = 0,
) -> np.ndarray:
    """Lay out the adjoints of a loop's outs as (rows, pairs), zero where one is missing.

    Outputs of the body before the ``first`` are none of them.
    """
    wide, stacked = len(region.body.outputs) - first, isinstance(region, Scan) and region.stacked
    count = 1 if stacked else region.length
    rows = np.empty((count, len(pairs)), dtype=np.int64)
    for column, (k, d) in enumerate(pairs):
        kind = region.body.output_dtypes[k]
        zero = dst.const(0.0, region.of_steps(kind) if isinstance(region, Scan) else kind)
        for row in range(count):
            rows[row, column] = adjoints[row * wide + k - first].get(d, zero)
    return rows
