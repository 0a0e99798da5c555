"""Derivative programs: Graph to Graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archimedes.graph.derivatives.coloring import Pattern, by_symmetry, column_colors, star_colors
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.derivatives.sparsity import cost_of, nodes_in, pattern, work
from archimedes.graph.derivatives.sweeps import Side, at_once, forward, in_loop, picked, reverse
from archimedes.graph.derivatives.whole import whole_places
from archimedes.graph.dtypes import DTYPES, item_type, length_of
from archimedes.graph.passes import prune, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan, While
from archimedes.graph.regions.base import Directions, has_blocks

__all__ = ["Entries", "forward_graph", "jacobian_graph", "reverse_graph"]

#: So many directions through wide arrays are swept at once; fewer than ``MANY`` always.
TOGETHER, MANY = 8, 4
#: Pairs of a node and a direction: from so many on, in loops and elsewhere, directions are the
#: steps of a loop. Below, code is compiled in a second or two, and batches have it in lanes.
LONG_LOOPS, LONG = 12_000, 30_000
#: The loop is worth it where a node has so many directions, and so large a part of all: it
#: computes them all.
WORTH, PART = 8, 1 / 8
#: So many entries are one block, whatever the program.
BLOCK = 1_024


@dataclass(frozen=True)
class Entries:
    """A derivative graph that computes the structurally non-zero entries of a matrix.

    Output k of ``graph`` is the entry at (``rows[k]``, ``columns[k]``) of a matrix of ``shape``,
    down its columns. Of wide arrays, and where there are many, its one output is a block: entry k
    is its element ``places[k]``. ``mode`` and ``colors`` say how it was made.
    """

    graph: Graph
    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]
    mode: str
    colors: int
    places: np.ndarray | None = None


def _copy_signature(src: Graph) -> tuple[Graph, list[int]]:
    g = Graph()
    g.input_names = src.input_names
    return g, [g.input(dtype) for dtype in src.input_dtypes]


def jacobian_graph(
    src: Graph,
    wrt: Sequence[int],
    *,
    mode: str = "auto",
    symmetric: bool = False,
    triangle: bool = False,
) -> Entries:
    """Return the graph of the non-zero entries of d(outputs)/d(inputs at ``wrt``).

    ``mode`` is "forward", "reverse" or "auto" (whichever needs less work on this graph).
    ``symmetric`` says that the matrix is a Hessian, so that a star colouring may be used, and
    ``triangle`` that its lower triangle is wanted.
    """
    found = pattern(src, wrt)
    plan = _plan(src, wrt, found, mode, symmetric)
    near, far = Side([src.input_dtypes[p] for p in wrt]), Side(src.output_dtypes)
    other, at = by_symmetry(found, plan.colors) if symmetric else (found.rows, found.columns)
    sweep = forward(src, wrt)
    if plan.mode == "reverse":
        sweep, near, far, other, at = reverse(src, wrt), far, near, at, other
    order = np.lexsort((found.rows, found.columns))
    if triangle:
        order = order[found.rows[order] >= found.columns[order]]
    g, inputs = _copy_signature(src)
    swept = (in_loop if plan.looped else at_once)(g, inputs, sweep, near, far, plan.colors)
    number, place = swept.where(plan.colors[at[order]], other[order])
    there = number >= 0
    block = has_blocks(src) or (plan.looped and order.size >= BLOCK)
    made = picked(g, swept, number[there], place[there], block)
    g.outputs, kept = made.ids, order[there]
    return Entries(
        prune(g),
        found.rows[kept],
        found.columns[kept],
        found.shape,
        plan.mode,
        _count(plan.colors),
        made.places,
    )


@dataclass(frozen=True)
class _Plan:
    """How a matrix is found: by which sweep, along which directions, in a loop or at once."""

    mode: str
    colors: np.ndarray
    looped: bool


def _plan(src: Graph, wrt: Sequence[int], found: Pattern, mode: str, symmetric: bool) -> _Plan:
    if symmetric:
        mode, columns = "forward", star_colors(found.symmetric)
    elif mode == "reverse":
        columns = column_colors(found.transposed)
    else:
        columns = column_colors(found)
    if has_blocks(src):
        return _plan_of_blocks(src, found, mode, columns)
    if mode == "reverse":
        return _Plan(mode, columns, _is_long(src, 2 * _reverse_work(src, wrt, columns), columns))
    costs = _forward_work(src, wrt, columns)
    if mode == "forward":
        return _Plan(mode, columns, _is_long(src, costs, columns))
    across = column_colors(found.transposed)
    back = _reverse_work(src, wrt, across)
    # Forward derivatives keep exact zeros and need no second pass: prefer them when close.
    # On the way back a pair is a product and a sum.
    along, cost = (columns, costs) if costs <= 1.35 * back else (across, 2 * back)
    # Going back through a loop makes all its steps twice.
    worth = 8 if _in_loops(src) else 2
    ahead = _count(columns) <= worth * _count(across)
    looped = _is_long(src, cost, columns if ahead else along)
    if looped:
        along = columns if ahead else across
    return _Plan("forward" if along is columns else "reverse", along, looped)


def _plan_of_blocks(src: Graph, found: Pattern, mode: str, columns: np.ndarray) -> _Plan:
    """Plan for a program on wide arrays: as long a program whatever the number of directions."""
    if mode == "auto":
        mode = "forward"
        if _count(columns) > TOGETHER:
            across = column_colors(found.transposed)
            if 2 * _count(across) < _count(columns):
                mode, columns = "reverse", across
    count = _count(columns)
    many = count > TOGETHER or (count >= MANY and count * nodes_in(src) >= LONG)
    return _Plan(mode, columns, many)


def _is_long(src: Graph, pairs: int, colors: np.ndarray) -> bool:
    """Tell whether directions are swept in a loop; ``pairs``: those of a node and a direction."""
    count = _count(colors)
    if count < MANY:
        return False
    if count * _in_loops(src) >= LONG_LOOPS:
        return True
    every = nodes_in(src)
    return pairs >= LONG and pairs >= every * max(WORTH, PART * count)


def _in_loops(g: Graph) -> int:
    """Count the nodes of a program that are in loops."""
    total = 0
    for region in g.regions.values():
        count = nodes_in if isinstance(region, (Scan, While)) else _in_loops
        total += sum(count(body) for body in region.bodies)
    return total


def _color_seeds(count: int, wrt: Sequence[int], colors: np.ndarray) -> list[int]:
    seeds = [0] * count
    for k, position in enumerate(wrt):
        if colors[k] >= 0:
            seeds[position] |= 1 << int(colors[k])
    return seeds


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
            total += reach[i].bit_count() * (1 if region is None else cost_of(region))
            for j in src.operands(i):
                reach[j] |= reach[i]
    return total


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
