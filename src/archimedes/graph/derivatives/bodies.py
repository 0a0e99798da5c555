"""Bodies of regions, extended by derivatives.

Legend. A *pair* is (position, direction): the tangent or adjoint of one value along one
direction. Bodies are extended by one input or output per pair; which pairs are not structurally
zero is found by propagating them through the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.gauge import gauge_dependent_outputs
from archimedes.graph.derivatives.reverse import reverse_by_rows, reverse_sweep
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions, Wanted

Pair = tuple[int, int]
#: One tangent or adjoint id per value, None for zero.
Row = list[int | None]


def pairs_of(values: Sequence[Directions]) -> list[Pair]:
    """Return the pairs that are not zero."""
    return [(k, d) for k, directions in enumerate(values) for d in sorted(directions)]


def ids_of(values: Sequence[Directions], pairs: Sequence[Pair]) -> list[int]:
    """Return the ids of pairs, none of which may be missing."""
    return [values[k][d] for k, d in pairs]


def by_position(ids: Iterable[int], count: int, pairs: Sequence[Pair]) -> list[Directions]:
    """Sort the ids of pairs into one dict per position."""
    values: list[Directions] = [{} for _ in range(count)]
    for (k, d), i in zip(pairs, ids):
        values[k][d] = int(i)
    return values


def by_value(rows: Iterable[tuple[int, Row]], count: int) -> list[Directions]:
    """Sort rows, each with its direction, into one dict per value."""
    values: list[Directions] = [{} for _ in range(count)]
    for d, row in rows:
        for k, i in enumerate(row):
            if i is not None:
                values[k][d] = int(i)
    return values


def union_of_pairs(*groups: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of all groups, in order."""
    return sorted({p for group in groups for p in group})


class SweptBody:
    """A body after a sweep, of which the outputs are still to be chosen.

    ``pairs`` are those that are not structurally zero. ``with_pairs`` returns the body whose
    own outputs (for tangents) are followed by one output per pair: a sweep of a body with
    regions in it is long, and need not be made twice to learn what it gives.
    """

    def __init__(
        self, g: Graph, outs: list[int], values: Sequence[Directions], dtypes: Sequence[int]
    ) -> None:
        self.g, self.outs, self.values, self.dtypes = g, outs, values, dtypes
        self.pairs = pairs_of(values)

    def with_pairs(self, pairs: Sequence[Pair] | None = None) -> Graph:
        """Return the body with these pairs (default: all there are), zero where one is missing."""
        g, values = self.g, self.values
        self.g.outputs = self.outs + [
            values[k][d] if d in values[k] else g.const(0.0, self.dtypes[k])
            for k, d in (self.pairs if pairs is None else pairs)
        ]
        return prune(g)


def _seed(g: Graph, dtypes: Sequence[int], pairs: Sequence[Pair]) -> list[Directions]:
    """Append an input for each pair and return them by position."""
    return by_position([g.input(dtypes[k]) for k, _ in pairs], len(dtypes), pairs)


def tangent_body(body: Graph, pairs: Sequence[Pair]) -> SweptBody:
    """Extend a body by tangents: its inputs are followed by one input per pair."""
    g = Graph.with_inputs(body.input_dtypes)
    inputs = list(g.inputs)
    outs, tangents = forward_sweep(g, body, inputs, _seed(g, body.input_dtypes, pairs))
    return SweptBody(g, outs, tangents, body.output_dtypes)


def adjoint_body(body: Graph, pairs: Sequence[Pair], inputs_wanted: Wanted) -> SweptBody:
    """Return (inputs, an adjoint per pair of outputs) -> an adjoint per pair of inputs."""
    g = Graph.with_inputs(body.input_dtypes)
    inputs = list(g.inputs)
    seeds = _seed(g, body.output_dtypes, pairs)
    if gauge_dependent_outputs(body, inputs_wanted):
        adjoints = reverse_by_rows(g, body, inputs, seeds, inputs_wanted)
    else:
        _, adjoints = reverse_sweep(g, body, inputs, seeds, inputs_wanted)
    return SweptBody(g, [], adjoints, body.input_dtypes)


def close_pairs(
    sweep: Callable[[list[Pair]], SweptBody], carry: list[Pair], count: int
) -> tuple[list[Pair], SweptBody]:
    """Return the pairs of ``count`` carried values that any number of steps may reach.

    ``sweep`` extends the body of a loop for some pairs; what it finds is carried to the next step.
    Returned with the body extended for the last, which gives nothing new.
    """
    while True:
        swept = sweep(carry)
        grown = union_of_pairs(carry, [p for p in swept.pairs if p[0] < count])
        if grown == carry:
            return carry, swept
        carry = grown


def interleave(own: Sequence[int], added: Sequence[int]) -> list[int]:
    """Return the order that puts groups of added values behind the groups they belong to.

    ``own`` and ``added`` are sizes of groups; all added values come after all others at first.

    >>> interleave([2, 1], [1, 2])
    [0, 1, 3, 2, 4, 5]
    """
    order: list[int] = []
    at, more = 0, sum(own)
    for mine, extra in zip(own, added):
        order += [*range(at, at + mine), *range(more, more + extra)]
        at, more = at + mine, more + extra
    return order


def permute_body(body: Graph, order: Sequence[int], outputs: Iterable[int]) -> Graph:
    """Return a body whose inputs and outputs are permuted: new input k is old input order[k]."""
    g = Graph.with_inputs(body.input_dtypes[position] for position in order)
    inputs = [-1] * len(body.inputs)
    for new, position in enumerate(order):
        inputs[position] = g.inputs[new]
    outs = inline(g, body, inputs)
    g.outputs = [outs[k] for k in outputs]
    return prune(g)


def rows_of(
    dst: Graph,
    values: Sequence[Directions],
    pairs: Sequence[Pair],
    kinds: Sequence[int],
    count: int,
) -> np.ndarray:
    """Lay out tangents or adjoints of ``count`` rows as (rows, pairs), zero where one is missing.

    ``values`` has those of all rows, one behind the other; ``kinds`` are the types in a row.
    """
    rows = np.empty((count, len(pairs)), dtype=np.int64)
    for column, (k, d) in enumerate(pairs):
        zero = dst.const(0.0, kinds[k])
        rows[:, column] = [values[row * len(kinds) + k].get(d, zero) for row in range(count)]
    return rows
