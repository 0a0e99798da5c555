"""Derivative programs: Graph to Graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archimedes.graph.derivatives.coloring import Pattern, by_symmetry, column_colors, star_colors
from archimedes.graph.derivatives.directions import as_map, in_one_map, mapped
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.derivatives.sparsity import pattern, region_size, work
from archimedes.graph.derivatives.whole import whole_places
from archimedes.graph.dtypes import DTYPES, item_type, length_of
from archimedes.graph.passes import prune, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions

__all__ = ["Entries", "forward_graph", "jacobian_graph", "reverse_graph"]


@dataclass(frozen=True)
class Entries:
    """A derivative graph that computes the structurally non-zero entries of a matrix.

    Output k of ``graph`` is the entry at (``rows[k]``, ``columns[k]``) of a matrix of ``shape``.
    ``mode`` and ``colors`` say how it was made.
    """

    graph: Graph
    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]
    mode: str
    colors: int


def _copy_signature(src: Graph) -> tuple[Graph, list[int]]:
    g = Graph()
    g.input_names = src.input_names
    return g, [g.input(dtype) for dtype in src.input_dtypes]


def _color_seeds(count: int, wrt: Sequence[int], colors: np.ndarray) -> list[int]:
    seeds = [0] * count
    for k, position in enumerate(wrt):
        if colors[k] >= 0:
            seeds[position] |= 1 << int(colors[k])
    return seeds


def jacobian_graph(
    src: Graph, wrt: Sequence[int], *, mode: str = "auto", symmetric: bool = False
) -> Entries:
    """Return the graph of the non-zero entries of d(outputs)/d(inputs at ``wrt``).

    ``mode`` is "forward", "reverse" or "auto" (whichever needs less work on this graph).
    ``symmetric`` says that the matrix is a Hessian, so that a star colouring may be used.
    """
    found = pattern(src, wrt)
    if symmetric:
        return _forward(src, wrt, found, star_colors(found.symmetric), symmetric=True)
    if mode == "reverse":
        return _reverse(src, wrt, found, column_colors(found.transposed))
    columns = column_colors(found)
    if mode == "auto":
        across = column_colors(found.transposed)
        cost_forward = _forward_work(src, wrt, columns)
        cost_reverse = _reverse_work(src, wrt, across)
        # Forward derivatives keep exact zeros and need no second pass: prefer them when close.
        forward = cost_forward <= 1.35 * cost_reverse
        if not (forward or in_one_map(src, _count(columns), _count(across))):
            return _reverse(src, wrt, found, across)
    return _forward(src, wrt, found, columns, symmetric=False)


def _forward_work(src: Graph, wrt: Sequence[int], colors: np.ndarray) -> int:
    """Estimate the (node, direction) pairs of a forward sweep.

    What follows a region that is whole is differentiated in its outputs, whatever comes in, and
    by a loop where it is long: it counts once.
    """
    seeds = _color_seeds(len(src.inputs), wrt, colors)
    whole = [region for region in src.regions.values() if whole_places(region)]
    if not whole:
        return work(src, seeds)
    before = with_outputs(src, [i for region in whole for i in region.inputs.tolist()])
    return work(before, seeds) + len(src)


def _reverse_work(src: Graph, wrt: Sequence[int], colors: np.ndarray) -> int:
    """Estimate the (node, direction) pairs of a reverse sweep: paths from wrt to outputs."""
    reach = [0] * len(src.op)
    relevant = bytearray(len(src.op))
    for position in wrt:
        relevant[src.inputs[position]] = 1
    live = src.live()
    for i in live:
        if not relevant[i] and any(relevant[j] for j in src.operands(i)):
            relevant[i] = 1
    for k, i in enumerate(src.outputs):
        if colors[k] >= 0:
            reach[i] |= 1 << int(colors[k])
    total = 0
    for i in reversed(live):
        if relevant[i] and reach[i]:
            region = src.regions.get(i)
            total += reach[i].bit_count() * (1 if region is None else region_size(region))
            for j in src.operands(i):
                reach[j] |= reach[i]
    return total


def _forward(
    src: Graph, wrt: Sequence[int], found: Pattern, colors: np.ndarray, *, symmetric: bool
) -> Entries:
    g, inputs = _copy_signature(src)
    tangents = _tangents(g, src, inputs, wrt, colors)
    at, columns = found.rows, found.columns
    if symmetric:
        at, columns = by_symmetry(found, colors)
    values = [tangents[i].get(c, -1) for i, c in zip(at.tolist(), colors[columns].tolist())]
    return _entries(g, values, found, "forward", colors)


def _tangents(
    g: Graph, src: Graph, inputs: Sequence[int], wrt: Sequence[int], colors: np.ndarray
) -> list[Directions]:
    """Append the tangents of the outputs along the directions of all colours."""
    count = _count(colors)
    kinds = [src.dtype[src.inputs[position]] for position in wrt]
    if as_map(src, count):
        chosen = np.arange(count)[:, None] == colors
        return mapped(g, forward_graph(src, wrt), inputs, chosen, len(src.outputs))
    own: list[Directions] = [{} for _ in inputs]
    for k, position in enumerate(wrt):
        if colors[k] >= 0:
            own[position][int(colors[k])] = g.const(1.0, kinds[k])
    return forward_sweep(g, src, inputs, own)[1]


def _reverse(src: Graph, wrt: Sequence[int], found: Pattern, colors: np.ndarray) -> Entries:
    g, inputs = _copy_signature(src)
    dtypes = src.output_dtypes
    seeds = [
        {int(colors[i]): g.const(1.0, dtypes[i])} if colors[i] >= 0 else {}
        for i in range(len(dtypes))
    ]
    wanted = [False] * len(inputs)
    for position in wrt:
        wanted[position] = True
    _, adjoints = reverse_sweep(g, src, inputs, seeds, wanted)
    pairs = zip(colors[found.rows].tolist(), found.columns.tolist())
    values = [adjoints[wrt[j]].get(c, -1) for c, j in pairs]
    return _entries(g, values, found, "reverse", colors)


def _entries(g: Graph, values: list[int], found: Pattern, mode: str, colors: np.ndarray) -> Entries:
    """Return the entries with these values, of which some (-1) turned out to be zero."""
    there = np.array(values, dtype=np.int64) >= 0
    g.outputs = [i for i in values if i >= 0]
    where = found.rows[there], found.columns[there]
    return Entries(prune(g), *where, found.shape, mode, _count(colors))


def _count(colors: np.ndarray) -> int:
    """Return the number of colours."""
    return int(colors.max(initial=-1)) + 1


def _zero(g: Graph, kind: int) -> int:
    """Return a zero, or a block of them."""
    if not length_of(kind):
        return g.const(0.0, kind)
    return g.block(np.zeros(length_of(kind), DTYPES[item_type(kind)]))


def forward_graph(src: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph (inputs, tangents of ``wrt``) -> (outputs, tangents of outputs)."""
    g, inputs = _copy_signature(src)
    seeds: list[Directions] = [{} for _ in inputs]
    dtypes = src.input_dtypes
    for position in wrt:
        seeds[position] = {0: g.input(dtypes[position])}
    outs, tangents = forward_sweep(g, src, inputs, seeds)
    zeros = [_zero(g, kind) for kind in src.output_dtypes]
    g.outputs = outs + [t.get(0, zero) for t, zero in zip(tangents, zeros)]
    g.input_names = None
    return prune(g)


def reverse_graph(src: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph (inputs, adjoints of outputs) -> (outputs, adjoints of ``wrt``)."""
    g, inputs = _copy_signature(src)
    seeds = [{0: g.input(dtype)} for dtype in src.output_dtypes]
    wanted = [False] * len(inputs)
    for position in wrt:
        wanted[position] = True
    outs, adjoints = reverse_sweep(g, src, inputs, seeds, wanted)
    dtypes = src.input_dtypes
    zeros = [_zero(g, dtypes[p]) for p in wrt]
    g.outputs = outs + [adjoints[p].get(0, zero) for p, zero in zip(wrt, zeros)]
    g.input_names = None
    return prune(g)
