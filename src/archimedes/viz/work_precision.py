"""Work-precision diagrams: the error that a method makes against the time that it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate import solve_ode
from archimedes.typing import ArrayLike, Tree
from archimedes.viz.themes import Figure, File, sheet

__all__ = ["measure_work_precision", "plot_work_precision"]


def measure_work_precision(
    func: Callable[..., Any],
    t_span: tuple[float, float],
    x0: Tree,
    methods: Sequence[str] = ("tsit5", "dop853"),
    rtols: Sequence[float] = (1e-3, 1e-5, 1e-7, 1e-9),
    *,
    reference: Tree | None = None,
    repeats: int = 5,
    **options: Any,
) -> dict[str, np.ndarray]:
    """Measure error and time of integration methods over a range of tolerances.

    Parameters
    ----------
    func : callable
        The model, as in :func:`solve_ode`.
    t_span : (float, float)
        Start and end time.
    x0 : float, array or tree
        State at the start.
    methods : sequence of str, optional
        Names of integration methods.
    rtols : sequence of float, optional
        Relative tolerances.
    reference : tree, optional
        Exact state at the end. By default DOP853 at rtol 1e-13.
    repeats : int, optional
        Number of measurements, of which the shortest counts. Compilation is not included.
    **options
        Options of :func:`solve_ode`.

    Returns
    -------
    dict
        For each method an array with a row (error, seconds) for each tolerance. The error is the
        largest relative one at the end of the span.

    Examples
    --------
    >>> from archimedes.viz import measure_work_precision
    >>> found = measure_work_precision(lambda t, x: -x, (0.0, 1.0), 1.0, ["tsit5"], [1e-3, 1e-6])
    >>> found["tsit5"].shape, bool(found["tsit5"][1, 0] < found["tsit5"][0, 0])
    ((2, 2), True)
    """

    def end(method: str, rtol: float) -> np.ndarray:
        settings = {**options, "method": method, "rtol": rtol, "atol": rtol * 1e-2}
        settings["t_eval"] = np.asarray([t_span[1]], dtype=float)
        return tree.ravel(solve_ode(func, t_span, x0, **settings)[-1])[0]

    exact = end("dop853", 1e-13) if reference is None else tree.ravel(reference)[0]
    measured = {}
    for method in methods:
        rows = []
        for rtol in rtols:
            value, best = end(method, rtol), np.inf
            for _ in range(repeats):
                start = time.perf_counter()
                end(method, rtol)
                best = min(best, time.perf_counter() - start)
            error = np.abs(value - exact) / np.maximum(np.abs(exact), 1e-3 * np.abs(exact).max())
            rows.append((float(error.max()), best))
        measured[method] = np.array(rows)
    return measured


def plot_work_precision(
    results: Mapping[str, ArrayLike], *, title: str | None = None, file: File = None
) -> Figure:
    """Plot time over error of integration methods: down and to the left is better.

    Parameters
    ----------
    results : mapping
        Rows (error, seconds) by method, from `measure_work_precision`.
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
    >>> figure = plot_work_precision({"a": [(1e-3, 1e-4), (1e-6, 2e-4)]})
    >>> figure.axes[0].get_xlabel()
    'time (s)'
    """
    if not results:
        raise ValueError("plot_work_precision: there are no results")
    with sheet((6.6, 4.6), title, file) as (figure, axes):
        for k, (name, rows) in enumerate(results.items()):
            table = np.asarray(rows, dtype=float)
            if table.ndim != 2 or table.shape[1] != 2:
                raise ValueError(
                    f"plot_work_precision: {name!r} must be rows (error, time), got {table.shape}"
                )
            marker = "osD^vPX"[k % 7]
            axes.loglog(table[:, 1], table[:, 0], marker=marker, markersize=5, label=name)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("largest relative error")
        axes.legend()
        axes.grid(which="minor", visible=False)
    return figure
