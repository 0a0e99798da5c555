"""Campaigns: histograms of results, scatter over parameters, and what the results depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice
from archimedes.display import axis_label, digits_for, for_reading, number
from archimedes.simulate.campaigns.campaign import Campaign, relative_spread
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.typing import Tree
from archimedes.viz.themes import Figure, File, sheet

__all__ = ["plot_campaign", "sensitivities"]

#: Results and parameters in one figure.
MOST = 8
CELL = 2.4
#: Histograms narrower than this part of the mean are drawn relative to it.
NARROW = 0.01
#: What opens a sheet of a size.
Page = Callable[..., AbstractContextManager[Any]]
#: Numbers over runs and their units, by name.
Columns = dict[str, tuple[np.ndarray, str]]


def parameters_of(campaign: Campaign) -> Columns:
    """Return the parameters that differ from run to run, keys of random numbers left out."""
    columns = varying(columns_of(campaign.params, "params"))
    return {name: column for name, column in columns.items() if not campaign.is_key(name)}


def columns_of(value: Tree, root: str) -> Columns:
    """Return the numbers of a tree over runs, with their units, by name."""
    leaves = tree.leaves(value)
    columns = {}
    for column in tree_columns(value, 1, root, prefix=False):
        values: Any = np.asarray(leaves[column.leaf])
        if values.ndim and values.dtype.kind in "biuf":
            numbers = values[(slice(None), *column.place)].astype(float)
            columns[plain_key(column.name, root)] = for_reading(numbers, column.units)
    return columns


def plain_key(name: str, root: str) -> str:
    """Return ``result['mean error']`` as the user wrote it: ``mean error``."""
    opening, closing = f"{root}['", "']"
    inside = name.startswith(opening) and name.endswith(closing)
    return name[len(opening) : -len(closing)] if inside else name


def choose_results(results: Columns, names: Sequence[str] | str | None) -> Columns:
    """Return the results of these names; all numbers of an array go by its name.

    Without names these are the single numbers, or the first of the arrays if there are none.
    """
    if names is None:
        single = {name: column for name, column in results.items() if not name.endswith("]")}
        return dict(list((single or results).items())[:MOST])
    chosen = {}
    for wanted in [names] if isinstance(names, str) else names:
        found = [name for name in results if name == wanted or name.startswith(f"{wanted}[")]
        if not found:
            few, more = list(results)[:MOST], len(results) - MOST
            rest = f" and {more} more" if more > 0 else ""
            raise KeyError(f"plot: no result {wanted!r}; there are {few}{rest}")
        chosen.update({name: results[name] for name in found[:MOST]})
    return dict(list(chosen.items())[:MOST])


def varying(columns: Columns) -> Columns:
    """Return those that differ from run to run."""
    return {name: v for name, v in columns.items() if np.nanmax(v[0]) > np.nanmin(v[0])}


def sensitivities(campaign: Campaign) -> tuple[list[str], list[str], np.ndarray]:
    """Return Spearman's rank correlations between parameters and results of a campaign.

    They are 1 where a result always grows with a parameter, and -1 where it always falls.

    Parameters
    ----------
    campaign : Campaign
        Result of :func:`monte_carlo`.

    Returns
    -------
    (list of str, list of str, array)
        Names of the results, names of the parameters, and correlations (results, parameters).

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.simulate import Normal, monte_carlo
    >>> def model(p): return {"sum": p["a"] ** 3 + 0.0 * p["b"]}
    >>> found = monte_carlo(model, {"a": Normal(0, 1), "b": Normal(0, 1)}, n=500)
    >>> sensitivities(found)[2].round(1) + 0.0
    array([[1., 0.]])
    """
    results = varying(columns_of(campaign.results, "result"))
    params = parameters_of(campaign)
    table = np.zeros((len(results), len(params)))
    for i, (y, _) in enumerate(results.values()):
        for j, (x, _) in enumerate(params.values()):
            known = np.isfinite(x) & np.isfinite(y)
            table[i, j] = rank_correlation(x[known], y[known])
    return list(results), list(params), table


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's correlation; ties share a rank."""
    from scipy.stats import rankdata

    if len(x) < 2 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return 0.0
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def plot_campaign(
    campaign: Campaign,
    names: Sequence[str] | str | None = None,
    *,
    kind: str = "histograms",
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot a campaign.

    Runs that failed are left out, and counted.

    Parameters
    ----------
    campaign : Campaign
        Result of :func:`monte_carlo`.
    names : str or sequence of str, optional
        Results to show, at most eight columns. By default all that are single numbers.
    kind : {"histograms", "scatter", "sensitivities"}, optional
        Histograms with the mean, the range of 90 % and the standard deviation, also in percent of
        the mean; results over parameters; or rank correlations, strongest first.
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
    >>> import tempfile
    >>> import archimedes as arc
    >>> from archimedes.simulate import Normal
    >>> from archimedes.viz import plot_campaign
    >>> far = lambda p: {"range": p["v"] ** 2 / 9.81}
    >>> runs = arc.monte_carlo(far, {"v": Normal(20.0, 1.0)}, n=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     figure = plot_campaign(runs, kind="scatter", file=f"{folder}/range.png")
    >>> len(figure.axes)
    1
    """
    check_choice(kind, "plot: kind", DRAWINGS)
    if campaign.results is None:
        raise ValueError("plot: this campaign has no results")
    results = choose_results(columns_of(campaign.results, "result"), names)
    if not results:
        raise ValueError("plot: the results of this campaign hold no numbers")
    failed = len(campaign.failed)
    remark = f"{failed} of {len(campaign)} failed" if failed else f"{len(campaign):,} runs"
    return DRAWINGS[kind](campaign, results, remark, partial(sheet, title=title, file=file))


def draw_histograms(campaign: Campaign, results: Columns, remark: str, page: Page) -> Figure:
    across = min(3, len(results))
    down = -(-len(results) // across)
    size = (1.3 * CELL * across, CELL * down + 0.5)
    with page(size, rows=down, columns=across, squeeze=False) as (figure, panels):
        grid = panels.ravel()
        for axes, (name, (values, units)) in zip(grid, results.items()):
            good = values[np.isfinite(values)]
            mean, std = float(np.mean(good)), float(np.std(good, ddof=1)) if len(good) > 1 else 0.0
            # What varies by little is drawn relative to the mean: ticks would differ by digits.
            narrow = 0.0 < np.ptp(good) < NARROW * abs(mean)
            centre = mean if narrow else 0.0
            bins = "auto" if np.ptp(good) > 0 else 10
            axes.hist(good - centre, bins=bins, color="C0", alpha=0.75)
            low, high = np.quantile(good - centre, [0.05, 0.95])
            axes.axvspan(low, high, color="C1", alpha=0.12, zorder=0)
            axes.axvline(mean - centre, color="C1")
            axes.set_xlabel(axis_label(f"{name} - mean" if narrow else name, units))
            part = relative_spread(mean, std)
            middle = number(mean, digits_for(good, std, least=3))
            text = f"{middle} ± {std:.2g}" + (f" ({part})" if part else "")
            axes.set_title(text, fontsize="small", loc="left")
            axes.grid(axis="x", visible=False)
        for axes in grid[len(results) :]:
            axes.remove()
        grid[0].set_ylabel("runs")
        grid[min(across, len(results)) - 1].set_title(remark, loc="right", fontsize="small")
    return figure


def draw_scatter(campaign: Campaign, results: Columns, remark: str, page: Page) -> Figure:
    params = dict(list(parameters_of(campaign).items())[:MOST])
    if not params:
        raise ValueError("plot: no parameter of this campaign varies: kind='histograms' shows it")
    size = (CELL * len(params) + 0.6, 0.85 * CELL * len(results) + 0.5)
    shared = {"squeeze": False, "sharex": "col", "sharey": "row"}
    with page(size, rows=len(results), columns=len(params), **shared) as (figure, grid):
        faint = float(np.clip(30.0 / len(campaign) ** 0.5, 0.12, 0.9))
        for row, (name, (y, units)) in zip(grid, results.items()):
            for axes, (x, _) in zip(row, params.values()):
                axes.plot(x, y, ".", markersize=3, alpha=faint, markeredgewidth=0)
                rho = rank_correlation(x[np.isfinite(y)], y[np.isfinite(y)])
                axes.set_title(f"{rho:+.2f}", fontsize="small", loc="right", pad=2)
            row[0].set_ylabel(axis_label(name, units))
        for axes, (name, (_, units)) in zip(grid[-1], params.items()):
            axes.set_xlabel(axis_label(name, units))
        grid[0, 0].set_title(remark, loc="left", fontsize="small", pad=2)
    return figure


def draw_sensitivities(campaign: Campaign, results: Columns, remark: str, page: Page) -> Figure:
    rows, params, table = sensitivities(campaign)
    shown = [name for name in results if name in rows]
    if not (shown and params):
        raise ValueError("plot: nothing varies in this campaign: there are no sensitivities")
    size = (7.0, (0.28 * min(len(params), 12) + 0.9) * len(shown) + 0.4)
    with page(size, rows=len(shown), sharex=True, squeeze=False) as (figure, grid):
        for axes, name in zip(grid[:, 0], shown):
            values = table[rows.index(name)]
            order = np.argsort(np.abs(values))[-12:]
            colors = ["C0" if values[k] >= 0.0 else "C1" for k in order]
            axes.barh([params[k] for k in order], values[order], color=colors, height=0.7)
            axes.axvline(0.0, color="0.5", linewidth=0.8)
            axes.set_title(name, loc="left", fontsize="medium")
            axes.grid(axis="y", visible=False)
        grid[0, 0].set_title(remark, loc="right", fontsize="small")
        grid[-1, 0].set_xlim(-1.0, 1.0)
        grid[-1, 0].set_xlabel("rank correlation")
    return figure


DRAWINGS = {
    "histograms": draw_histograms,
    "scatter": draw_scatter,
    "sensitivities": draw_sensitivities,
}
