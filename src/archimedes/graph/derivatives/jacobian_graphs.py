"""Derivative programs: Graph to Graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.graph.derivatives import sweeps
from archimedes.graph.derivatives.coloring import Pattern, by_symmetry, column_colors, star_colors
from archimedes.graph.derivatives.forward import push_direction
from archimedes.graph.derivatives.gauge import gauge_dependent
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.derivatives.sparsity import cost_of, nodes_in, pattern, work
from archimedes.graph.passes import prune, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan, While
from archimedes.graph.regions.base import has_blocks
from archimedes.records import record

#: So many directions through arrays are swept at once; fewer than ``MANY`` always.
TOGETHER, MANY = 8, 4
#: Pairs of a node and a direction: from so many on, in loops and elsewhere, directions are the
#: steps of a loop. Below, code is compiled in a second or two, and batches have it in lanes.
LONG_LOOPS, LONG = 12_000, 30_000
#: The loop is worth it where a node has so many directions, and so large a part of all: it
#: computes them all.
WORTH, PART = 8, 1 / 8
#: So many entries are one block, whatever the program.
BLOCK = 1_024


@record
class Entries:
    """A derivative graph that computes the structurally non-zero entries of a matrix.

    Output k of ``graph`` is the entry at (``rows[k]``, ``columns[k]``) of a matrix of ``shape``,
    down its columns. Of arrays, and where there are many, its one output is a block: entry k is its
    element ``places[k]``. ``mode`` and ``colors`` say how it was made.
    """

    graph: Graph
    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]
    mode: str
    colors: int
    places: np.ndarray | None = None


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
    entries = pattern(src, wrt)
    plan = _plan(src, wrt, entries, mode, symmetric)
    near = sweeps.Side([src.input_dtypes[p] for p in wrt])
    far = sweeps.Side(src.output_dtypes)
    rows, columns = entries.rows, entries.columns
    if symmetric:
        rows, columns = by_symmetry(entries, plan.colors)
    sweep = sweeps.forward(src, wrt)
    if plan.mode == "reverse":
        sweep, near, far, rows, columns = sweeps.reverse(src, wrt), far, near, columns, rows
    order = np.lexsort((entries.rows, entries.columns))
    if triangle:
        order = order[entries.rows[order] >= entries.columns[order]]
    g = Graph.with_inputs(src.input_dtypes)
    g.input_names = src.input_names
    run = sweeps.in_loop if plan.looped else sweeps.at_once
    swept = run(g, g.inputs, sweep, near, far, plan.colors)
    number, offset = swept.where(plan.colors[columns[order]], rows[order])
    nonzero = number >= 0
    block = has_blocks(src) or (plan.looped and order.size >= BLOCK)
    g.outputs, offsets = sweeps.pick_entries(g, swept, number[nonzero], offset[nonzero], block)
    order = order[nonzero]
    return Entries(
        prune(g),
        entries.rows[order],
        entries.columns[order],
        entries.shape,
        plan.mode,
        _count(plan.colors),
        offsets,
    )


@record
class _Plan:
    """How a matrix is computed: the kind of sweep, its directions, in a loop or at once."""

    mode: str
    colors: np.ndarray
    looped: bool


def _plan(src: Graph, wrt: Sequence[int], entries: Pattern, mode: str, symmetric: bool) -> _Plan:
    if symmetric:
        mode, colors = "forward", star_colors(entries.symmetric)
    else:
        colors = column_colors(entries.transpose if mode == "reverse" else entries)
    if has_blocks(src):
        return _plan_of_blocks(src, entries, mode, colors)
    if mode == "reverse":
        return _Plan(mode, colors, _is_long(src, 2 * _reverse_work(src, wrt, colors), colors))
    cost = _forward_work(src, wrt, colors)
    if mode == "forward":
        return _Plan(mode, colors, _is_long(src, cost, colors))
    row_colors = column_colors(entries.transpose)
    back = _reverse_work(src, wrt, row_colors)
    # Forward derivatives keep exact zeros and need no second pass: prefer them when close.
    # On the way back a pair is a product and a sum.
    forwards = cost <= 1.35 * back
    # Going back through a loop makes all its steps twice.
    loop_forwards = _count(colors) <= (8 if _in_loops(src) else 2) * _count(row_colors)
    chosen = colors if forwards or loop_forwards else row_colors
    looped = _is_long(src, cost if forwards else 2 * back, chosen)
    if loop_forwards if looped else forwards:
        return _Plan("forward", colors, looped)
    return _Plan("reverse", row_colors, looped)


def _plan_of_blocks(src: Graph, entries: Pattern, mode: str, colors: np.ndarray) -> _Plan:
    """Plan for a program on arrays, whose length does not depend on the number of directions."""
    if mode == "auto":
        mode = "forward"
        if _count(colors) > TOGETHER:
            row_colors = column_colors(entries.transpose)
            if 2 * _count(row_colors) < _count(colors):
                mode, colors = "reverse", row_colors
    count = _count(colors)
    many = count > TOGETHER or (count >= MANY and count * nodes_in(src) >= LONG)
    return _Plan(mode, colors, many)


def _is_long(src: Graph, pairs: int, colors: np.ndarray) -> bool:
    """Return whether to sweep directions in a loop; ``pairs`` counts (node, direction) pairs."""
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


def _forward_work(src: Graph, wrt: Sequence[int], colors: np.ndarray) -> int:
    """Estimate the (node, direction) pairs of a forward sweep.

    What follows a gauge-dependent region is differentiated in its outputs, whatever comes in, and
    by a loop where it is long: it counts once.
    """
    seeds = [0] * len(src.inputs)
    for position, color in zip(wrt, colors.tolist()):
        seeds[position] |= 1 << color if color >= 0 else 0
    cut = [region for region in src.regions.values() if gauge_dependent(region)]
    if not cut:
        return work(src, seeds)
    before = with_outputs(src, [i for region in cut for i in region.inputs.tolist()])
    return work(before, seeds) + len(src)


def _reverse_work(src: Graph, wrt: Sequence[int], colors: np.ndarray) -> int:
    """Estimate the (node, direction) pairs of a reverse sweep: paths from wrt to outputs."""
    reach = [0] * len(src.op)
    relevant = src.dependents(src.inputs[position] for position in wrt)
    for k, i in enumerate(src.outputs):
        if colors[k] >= 0:
            reach[i] |= 1 << int(colors[k])
    total = 0
    for i in reversed(src.live()):
        if relevant[i] and reach[i]:
            region = src.regions.get(i)
            total += reach[i].bit_count() * (1 if region is None else cost_of(region))
            for j in src.operands(i):
                reach[j] |= reach[i]
    return total


def _count(colors: np.ndarray) -> int:
    """Return the number of colours."""
    return int(colors.max(initial=-1)) + 1


def forward_graph(src: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph (inputs, tangents of ``wrt``) -> (outputs, tangents of outputs)."""
    g = Graph.with_inputs(src.input_dtypes)
    inputs = list(g.inputs)
    seeds = {position: g.input(src.input_dtypes[position]) for position in wrt}
    outs, tangents = push_direction(g, src, inputs, seeds)
    g.outputs = outs + tangents
    return prune(g)


def reverse_graph(src: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph (inputs, adjoints of outputs) -> (outputs, adjoints of ``wrt``)."""
    g = Graph.with_inputs(src.input_dtypes)
    inputs = list(g.inputs)
    seeds = [{0: g.input(dtype)} for dtype in src.output_dtypes]
    chosen = set(wrt)
    wanted = [position in chosen for position in range(len(inputs))]
    outs, adjoints = reverse_sweep(g, src, inputs, seeds, wanted)
    zeros = [g.const(0.0, src.input_dtypes[p]) for p in wrt]
    g.outputs = outs + [adjoints[p].get(0, zero) for p, zero in zip(wrt, zeros)]
    return prune(g)
