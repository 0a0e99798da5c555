"""Structures: where a matrix has entries, and what a recorded program consists of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from archimedes.function import Compiled, SparsePattern
from archimedes.graph.ops import CONST, INPUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.typing import ArrayLike
from archimedes.viz.themes import Figure, File, sheet

__all__ = ["plot_graph", "plot_sparsity"]

#: Nodes of a graph that a drawing can hold; beyond, it is told as counts.
NODES = 220


def plot_sparsity(
    matrix: SparsePattern | ArrayLike, *, title: str | None = None, file: File = None
) -> Figure:
    """Plot the sparsity pattern of a matrix.

    Parameters
    ----------
    matrix : SparsePattern, sparse matrix or array
        The matrix.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = plot_sparsity(np.eye(3))
    >>> figure.axes[0].get_title(loc="right")
    '3 of 9 entries, 33 %'
    """
    rows, columns, shape = entries(matrix)
    size = max(*shape, 1)
    height = 5.4 * shape[0] / size + 0.7 if shape[0] < size else 5.6
    with sheet((5.4, height), title, file) as (figure, axes):
        points = 72.0 * 4.6 / size  # how wide an entry is, in points
        axes.plot(columns, rows, "s", markersize=float(np.clip(0.8 * points, 0.7, 14)), mew=0)
        axes.set_xlim(-0.5, shape[1] - 0.5)
        axes.set_ylim(shape[0] - 0.5, -0.5)
        axes.set_aspect("equal")
        axes.set_xlabel("column")
        axes.set_ylabel("row")
        share = len(rows) / max(shape[0] * shape[1], 1)
        text = f"{len(rows):,} of {shape[0] * shape[1]:,} entries, {100 * share:.2g} %"
        axes.set_title(text, loc="right", fontsize="small")
        axes.locator_params(integer=True)
    return figure


def entries(matrix: SparsePattern | ArrayLike) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Return rows and columns of the entries of anything that is a matrix, and its shape."""
    if isinstance(matrix, SparsePattern):
        return matrix.rows, matrix.columns, matrix.shape
    if hasattr(matrix, "tocoo"):
        entries = matrix.tocoo()
        return entries.row, entries.col, entries.shape
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise ValueError(f"plot_sparsity: expected a matrix, got shape {array.shape}")
    rows, columns = np.nonzero(array)
    return rows, columns, array.shape


def plot_graph(
    program: Compiled | Graph, *args: Any, title: str | None = None, file: File = None
) -> Figure:
    """Plot the program of a compiled function: operations by level.

    Inputs are at the top, outputs at the bottom, and edges show what uses what. A program too long
    to be drawn node by node is shown as a count of its operations.

    Parameters
    ----------
    program : Compiled or Graph
        A compiled function, or a graph.
    *args
        Arguments of the function.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> figure = plot_graph(arc.compile(lambda x: np.sin(x) * x), 1.0)
    >>> len(figure.axes)
    1
    """
    if not isinstance(program, (Graph, Compiled)):
        raise TypeError(
            f"plot_graph: expected a compiled function or a graph, got {type(program).__name__}: "
            "write arc.compile(f) and give its arguments"
        )
    graph = program if isinstance(program, Graph) else program.graph(*args)
    known = [i for i in graph.live() if graph.op[i] != CONST]
    draw = draw_nodes if len(known) <= NODES else draw_counts
    return draw(graph, known, title, file)


def name_of(graph: Graph, i: int) -> str:
    is_region = graph.op[i] == REGION
    return type(graph.regions[i]).__name__.lower() if is_region else TABLE[graph.op[i]].name


def draw_nodes(graph: Graph, nodes: list[int], title: str | None, file: File) -> Figure:
    level: dict[int, int] = {}
    rows: dict[int, list[int]] = {}
    for i in nodes:
        above = [level[k] for k in graph.operands(i) if k in level]
        level[i] = 1 + max(above, default=-1) if graph.op[i] != INPUT else 0
        rows.setdefault(level[i], []).append(i)
    positions = layout(graph, rows)
    wide = max(len(row) for row in rows.values())
    size = (float(np.clip(0.75 * wide + 1.0, 4, 14)), float(np.clip(0.55 * len(rows) + 1.0, 3, 16)))
    with sheet(size, title, file) as (figure, axes):
        for i in nodes:
            for k in graph.operands(i):
                if k in positions:
                    (x0, y0), (x1, y1) = positions[k], positions[i]
                    axes.plot([x0, x1], [y0, y1], color="0.6", linewidth=0.7, zorder=1)
        outputs = set(graph.outputs)
        paper = figure.get_facecolor()
        for i in nodes:
            color = "C2" if graph.op[i] == INPUT else "C1" if i in outputs else "C0"
            text = "in" if graph.op[i] == INPUT else name_of(graph, i)
            box = {"boxstyle": "round,pad=0.25", "fc": color, "ec": "none"}
            centred = {"ha": "center", "va": "center", "bbox": box}
            axes.text(*positions[i], text, fontsize=7, color=paper, zorder=2, **centred)
        axes.set_axis_off()
        spread = [x for x, _ in positions.values()]
        axes.set_xlim(min(spread) - 0.6, max(spread) + 0.6)
        axes.set_ylim(-len(rows) + 0.4, 0.6)
        text = f"{len(nodes)} operations and inputs in {len(rows)} levels"
        axes.set_title(text, loc="right", fontsize="small")
    return figure


def layout(graph: Graph, rows: dict[int, list[int]]) -> dict[int, tuple[float, float]]:
    """Return positions of nodes: level by level, each near the middle of what it uses."""
    positions: dict[int, tuple[float, float]] = {}
    for depth in sorted(rows):
        row = rows[depth]

        def middle(i: int) -> float:
            above = [positions[k][0] for k in graph.operands(i) if k in positions]
            return float(np.mean(above)) if above else 0.0

        ordered = sorted(row, key=middle) if depth else row
        start = -0.5 * (len(row) - 1)
        for j, i in enumerate(ordered):
            positions[i] = (start + j, -float(depth))
    return positions


def draw_counts(graph: Graph, nodes: list[int], title: str | None, file: File) -> Figure:
    counts = Counter(name_of(graph, i) for i in nodes if graph.op[i] != INPUT)
    names, numbers = zip(*counts.most_common(24)[::-1])
    with sheet((6.4, 0.24 * len(names) + 1.2), title, file) as (figure, axes):
        bars = axes.barh(names, numbers, height=0.72)
        axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize="small")
        axes.set_xlabel("operations")
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{len(nodes):,} operations and inputs", loc="right", fontsize="small")
        axes.margins(x=0.12)
    return figure
