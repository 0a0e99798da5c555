"""``plot``: one name for pictures of what the package returns; a table says who draws what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.sparse import sparray, spmatrix

from archimedes.control import ModeTable, Response
from archimedes.function import Compiled, SparsePattern
from archimedes.graph.program import Graph
from archimedes.multibody import Model
from archimedes.optimize import ControlSolution, PhasesSolution
from archimedes.simulate import Trajectory
from archimedes.simulate.campaigns.campaign import Campaign
from archimedes.sysid import Fit, Timeseries
from archimedes.viz.campaigns import plot_campaign
from archimedes.viz.identification import plot_fit, plot_timeseries
from archimedes.viz.linear_systems import SYSTEMS, are_systems, plot_response, plot_systems
from archimedes.viz.modes import plot_modes
from archimedes.viz.optimal_control import plot_solution
from archimedes.viz.robots import plot_robot
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
    Model: plot_robot,
    Fit: plot_fit,
    Timeseries: plot_timeseries,
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
    a robot              its joints along a trajectory: `plot_robot` (``plot(robot, traj)``)
    a `Fit`              measured and predicted outputs, residuals: `plot_fit`
    a `Timeseries`       measured inputs and outputs: `plot_timeseries`
    a sparsity pattern   its entries, also of ``scipy.sparse`` matrices: `plot_sparsity`
    a compiled function  its program for arguments: `plot_graph` (``plot(f, 1.0)``)
    ===================  ==================================================================

    A flight record of `fly` is plotted too. Beside them are `plot_root_locus` and
    `plot_work_precision`. Axes have names and units, angles are in deg, attitudes without jumps;
    `set_theme` chooses light or dark.

    Nothing is on the screen yet: `show` opens windows at the end of a script, and a notebook shows
    the figure itself.

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
    if hasattr(what, "as_trajectory"):
        what = what.as_trajectory()
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
