"""Derivative programs: Graph to Graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.graph.derivatives.coloring import bits, column_colors, star_colors, transpose
from archimedes.graph.derivatives.directions import as_map, in_one_map, mapped
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.derivatives.sparsity import dependence, region_size, work
from archimedes.graph.derivatives.whole import whole_places
from archimedes.graph.dtypes import DTYPES, item_type, length_of
from archimedes.graph.passes import prune, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Directions

__all__ = ["Entries", "forward_graph", "jacobian_graph", "pattern", "reverse_graph"]


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


def pattern(src: Graph, wrt: Sequence[int]) -> list[int]:
    """Return for each output the set of positions in ``wrt`` it depends on.

    A block counts as its elements, among inputs and outputs.
    """
    seeds: list[Any] = [0] * len(src.inputs)
    kinds, k = src.input_dtypes, 0
    for position in wrt:
        length = length_of(kinds[position])
        if length:
            seeds[position] = [1 << k + j for j in range(length)]
        else:
            seeds[position] |= 1 << k
        k += length or 1
    found: list[int] = []
    for mine, kind in zip(dependence(src, seeds), src.output_dtypes):
        if length_of(kind):
            found += mine if isinstance(mine, list) else [mine] * length_of(kind)
        else:
            found.append(mine)
    return found


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
    rows = pattern(src, wrt)
    shape = (len(src.outputs), len(wrt))
    if symmetric:
        colors = star_colors([a | b for a, b in zip(rows, transpose(rows, shape[1]))], shape[1])
        return _forward(src, wrt, rows, colors, shape, symmetric=True)
    columns = column_colors(rows, shape[1])
    if mode == "auto":
        across = column_colors(transpose(rows, shape[1]), shape[0])
        cost_forward = _forward_work(src, wrt, columns)
        cost_reverse = _reverse_work(src, wrt, rows, across)
        # Forward derivatives keep exact zeros and need no second pass: prefer them when close.
        forward = cost_forward <= 1.35 * cost_reverse
        if not (forward or in_one_map(src, _count(columns), _count(across))):
            return _reverse(src, wrt, rows, across, shape)
    elif mode == "reverse":
        return _reverse(src, wrt, rows, column_colors(transpose(rows, shape[1]), shape[0]), shape)
    return _forward(src, wrt, rows, columns, shape, symmetric=False)


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


def _reverse_work(src: Graph, wrt: Sequence[int], rows: list[int], colors: np.ndarray) -> int:
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
    src: Graph,
    wrt: Sequence[int],
    rows: list[int],
    colors: np.ndarray,
    shape: tuple[int, int],
    *,
    symmetric: bool,
) -> Entries:
    g, inputs = _copy_signature(src)
    tangents = _tangents(g, src, inputs, wrt, colors)
    where: list[tuple[int, int]] = []
    for i, row in enumerate(rows):
        mine = bits(row)
        crowd = np.bincount(colors[mine], minlength=1) if mine else np.zeros(1, dtype=int)
        for j in mine:
            alone = crowd[colors[j]] == 1
            # In a star colouring the entry not alone in row i is alone in row j, by symmetry.
            source = (i, int(colors[j])) if alone or not symmetric else (j, int(colors[i]))
            value = tangents[source[0]].get(source[1])
            if value is not None:
                where.append((i, j))
                g.outputs.append(value)
    return _entries(g, where, shape, "forward", colors)


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


def _reverse(
    src: Graph, wrt: Sequence[int], rows: list[int], colors: np.ndarray, shape: tuple[int, int]
) -> Entries:
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
    where: list[tuple[int, int]] = []
    for i, row in enumerate(rows):
        for j in bits(row):
            value = adjoints[wrt[j]].get(int(colors[i]))
            if value is not None:
                where.append((i, j))
                g.outputs.append(value)
    return _entries(g, where, shape, "reverse", colors)


def _entries(
    g: Graph, where: list[tuple[int, int]], shape: tuple[int, int], mode: str, colors: np.ndarray
) -> Entries:
    places = np.array(where, dtype=np.int64).reshape(-1, 2)
    return Entries(prune(g), places[:, 0], places[:, 1], shape, mode, _count(colors))


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
