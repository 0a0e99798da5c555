"""``plot``: one name for pictures of what the package returns; a table says who draws what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.sparse import sparray, spmatrix

from archimedes.control import ModeTable, Response
from archimedes.function import Compiled, SparsePattern
from archimedes.graph.program import Graph
from archimedes.optimize import ControlSolution, PhasesSolution
from archimedes.simulate import Trajectory
from archimedes.simulate.campaigns.campaign import Campaign
from archimedes.viz.campaigns import plot_campaign
from archimedes.viz.linear_systems import SYSTEMS, are_systems, plot_response, plot_systems
from archimedes.viz.modes import plot_modes
from archimedes.viz.optimal_control import plot_solution
from archimedes.viz.structures import plot_graph, plot_sparsity
from archimedes.viz.themes import Figure, File
from archimedes.viz.trajectories import plot_trajectory

__all__ = ["plot"]

#: Who draws what, by class.
DRAWERS: dict[type, Callable[..., Any]] = {
    Trajectory: plot_trajectory,
    Campaign: plot_campaign,
    ControlSolution: plot_solution,
    PhasesSolution: plot_solution,
    **dict.fromkeys(SYSTEMS, plot_systems),
    Response: plot_response,
    ModeTable: plot_modes,
    SparsePattern: plot_sparsity,
    Compiled: plot_graph,
    Graph: plot_graph,
}


def plot(
    what: object, *args: Any, title: str | None = None, file: File = None, **options: Any
) -> Figure:
    """Plot a result and return the matplotlib Figure.

    ===================  ==================================================================
    a `Trajectory`       panels over time: `plot_trajectory` (``plot(traj, ["pos"])``)
    a campaign           histograms, ``kind="scatter"``, ``"sensitivities"``: `plot_campaign`
    optimal control      states, controls, limits, mesh and its errors: `plot_solution`
    linear systems       ``kind="bode"``, ``"nyquist"``, ``"step"``, ...: `plot_systems`
    a sparsity pattern   its entries, also of ``scipy.sparse`` matrices: `plot_sparsity`
    a compiled function  its program for arguments: `plot_graph` (``plot(f, 1.0)``)
    ===================  ==================================================================

    Beside them are `plot_root_locus` and `plot_work_precision`. Axes have names and units,
    attitudes are angles in deg without jumps, `set_theme` chooses light or dark.

    Parameters
    ----------
    what : object
        What to plot: see the table.
    *args
        Further arguments of the function that plots it.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.
    **options
        Its options.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> figure = plot(Trajectory(t, {"pos": t**2, "vel": 2 * t}))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['pos', 'vel']
    """
    drawers: dict[type, Callable[..., Any]] = {spmatrix: plot_sparsity, sparray: plot_sparsity}
    for kind, draw in (DRAWERS | drawers).items():
        if isinstance(what, kind):
            return draw(what, *args, title=title, file=file, **options)
    if are_systems(what):
        return plot_systems(what, *args, title=title, file=file, **options)
    names = ", ".join(kind.__name__ for kind in DRAWERS)
    raise TypeError(
        f"plot: expected a Trajectory, got {type(what).__name__}; it plots {names}, sparse matrices"
    )
