"""Solutions of optimal control: a panel for each quantity, its limits, the mesh and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.display import axis_label
from archimedes.optimize import ControlSolution, PhasesSolution
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.typing import Tree
from archimedes.viz.themes import Axes, Figure, File, sheet
from archimedes.viz.trajectories import (
    MANY,
    MARGIN,
    PANEL_HEIGHT,
    POINTS,
    WIDTH,
    Panel,
    all_panels,
    choose,
    label_map,
    relabel,
)

__all__ = ["plot_solution"]

#: Errors below this are drawn here: the axis is logarithmic.
LEAST_ERROR = 1e-16
#: Nodes are marked on the lines if there are no more than this.
MARKED = 120
#: A limit is in the picture if it is no farther from the values than this part of their range.
NEAR = 1.0
#: An array of all states or controls has a panel for each number if there are no more than this.
SEPARATE = 6
LIMIT: dict[str, Any] = {"linestyle": (0, (5, 3)), "linewidth": 1.0, "zorder": 1.5}
NOTE: dict[str, Any] = {"fontsize": "small", "fontweight": "normal"}
BORDER: dict[str, Any] = {"color": "0.55", "linewidth": 0.7, "linestyle": (0, (4, 3)), "zorder": 1}


class Curve(NamedTuple):
    """A panel of one phase, whose last two samples are limits, and which samples are nodes."""

    panel: Panel
    nodes: np.ndarray


def plot_solution(
    solution: ControlSolution | PhasesSolution,
    names: Sequence[str] | str | None = None,
    *,
    labels: Mapping[str, str] | Sequence[str] | None = None,
    mesh: bool = True,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot the solution of an optimal control problem, with a panel for each quantity.

    States, controls and path constraints are drawn over time, with the names and units of the
    fields of structs, angles in deg. Limits are dashed. Dots are the nodes of the mesh, and the
    last panel shows the estimated error of each interval, with ``mesh_tol`` if it was given. Phases
    follow each other, with a vertical line between them. Controls are drawn as ``solution.at``
    returns them: never beyond their limits.

    Parameters
    ----------
    solution : ControlSolution or PhasesSolution
        What ``OptimalControl.solve`` or ``Phases.solve`` returned.
    names : str or sequence of str, optional
        Quantities to show: ``["speed", "u.thrust", "x[1]", "path"]``. All by default.
    labels : mapping or sequence of str, optional
        Names for legends and axes: by the name in the trajectory (``{"x[0]": "angle (rad)"}``), or
        one for each number of the state in order.
    mesh : bool, optional
        Show nodes and errors. True by default.
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
    >>> from archimedes.optimize import OptimalControl
    >>> problem = OptimalControl(lambda t, x, u: u, running_cost=lambda t, x, u: u**2,
    ...                          initial=0.0, final=1.0, control_bounds=(-2.0, 2.0))
    >>> figure = plot_solution(problem.solve({"x": 0.0, "u": 0.0}, intervals=4))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['x', 'u', 'mesh error']
    """
    phases = solution.parts
    wanted = [names] if isinstance(names, str) else names
    curves: dict[str, list[Curve]] = {}
    for curve in find_curves(phases, wanted, labels):
        curves.setdefault(curve.panel.title, []).append(curve)
    curves = {name: join_turns(parts) for name, parts in curves.items()}
    count, nodes = len(curves) + mesh, sum(len(phase.t) for phase in phases)
    size = (WIDTH, PANEL_HEIGHT * count + MARGIN)
    with sheet(size, title, file, count, sharex=True, squeeze=False) as (figure, grid):
        rows = grid[:, 0]
        for axes, name in zip(rows, curves):
            draw_curves(axes, curves[name], mesh and nodes <= MARKED)
        if mesh:
            draw_errors(rows[-1], solution)
        for axes in rows:
            for phase in phases[1:]:
                axes.axvline(phase.t0, **BORDER)
        state = "" if solution.success else "FAILED: "
        rows[0].set_title(f"{state}cost {solution.fun:.6g}", loc="right", **NOTE)
        rows[-1].set_xlabel(axis_label("time", "s"))
        figure.align_ylabels(rows)
    return figure


def find_curves(
    phases: Sequence[ControlSolution],
    names: Sequence[str] | None,
    labels: Mapping[str, str] | Sequence[str] | None,
) -> Iterator[Curve]:
    """Yield what is to be drawn of each phase; raise for names that no phase has."""
    known: dict[str, None] = {}
    drawn = []
    for phase in phases:
        count = max(2, -(-POINTS // (len(phase.t) - 1)) + 1)
        whole = add_limits(phase.sample(count), phase.limits())
        panels, raw = (
            [part for panel in all_panels(whole, angles) for part in split(call_path(panel))]
            for angles in (True, False)
        )
        own = dict.fromkeys(name for p in (*panels, *raw) for name in (p.title, *p.labels))
        known |= own
        chosen = None if names is None else [name for name in names if name in own]
        if chosen is None or chosen:
            nodes = np.append(np.arange(0, len(whole.t) - 2, count), len(whole.t) - 3)
            drawn += [
                Curve(relabel(panel, label_map(phase.trajectory, labels)), nodes)
                for panel in choose(panels, raw, chosen)
            ]
    for name in names or ():
        if name not in known:
            raise KeyError(f"plot: no {name!r} in this solution; there are {list(known)}")
    yield from drawn


def join_turns(curves: list[Curve]) -> list[Curve]:
    """Return curves whose roll, pitch and yaw go on from phase to phase without whole turns."""
    if curves[0].panel.labels != ["roll", "pitch", "yaw"]:
        return curves
    joined = curves[:1]
    for panel, nodes in curves[1:]:
        gap = joined[-1].panel.values[-3] - panel.values[0]
        turned = panel.values + 360.0 * np.round(gap / 360.0)
        joined.append(Curve(panel._replace(values=turned), nodes))
    return joined


def add_limits(traj: Trajectory, limits: Mapping[str, tuple[Tree, Tree]]) -> Trajectory:
    """Return a trajectory with two more samples: the lower and the upper limits.

    They go the way of the values, so that they are in the same units. The components of attitudes
    have no limits that angles could show.
    """

    def append(name: str) -> Tree:
        if name not in limits:
            return getattr(traj, name)
        extend = lambda leaf, *ends: np.concatenate([leaf, np.stack(ends)])  # noqa: E731
        longer = tree.map(extend, getattr(traj, name), *limits[name])
        for node in tree.leaves(longer, lambda node: isinstance(node, AttitudeBase)):
            if isinstance(node, AttitudeBase):
                np.asarray(node.array)[-2:] = np.nan
        return longer

    t = np.append(traj.t, traj.t[[0, -1]])
    return Trajectory(t, append("x"), u=append("u"), y=append("y"))


def call_path(panel: Panel) -> Panel:
    """Call outputs what they are here: path constraints."""
    names = [panel.title, *panel.labels]
    if not all(name == "y" or name.startswith(("y.", "y[")) for name in names):
        return panel
    title, *labels = ("path" + name[1:] for name in names)
    return panel._replace(title=title, labels=labels)


def split(panel: Panel) -> list[Panel]:
    """Return a panel for each number where all states, or all controls, are one array.

    Larger arrays have a panel for some numbers at a time.
    """
    labels, each = panel.labels, SEPARATE
    if len(labels) <= SEPARATE and panel.title in ("x", "u", "path"):
        each = 1
    elif len(labels) <= MANY:
        return [panel]
    parts = []
    for k in range(0, len(labels), each):
        some = labels[k : k + each]
        title = some[0] if len(some) == 1 else f"{some[0]} to {some[-1]}"
        parts.append(Panel(title, panel.units, some, panel.t, panel.values[..., k : k + each]))
    return parts


def draw_curves(axes: Axes, curves: Sequence[Curve], mark: bool) -> None:
    """Draw one quantity in all phases, with its limits and, if `mark`, its nodes."""
    panel = curves[0].panel
    axes.set_ylabel(axis_label(panel.title, panel.units))
    axes.margins(x=0.01)
    single, limits = len(panel.labels) == 1, []
    for number, curve in enumerate(curves):
        t, values = curve.panel.t[:-2], curve.panel.values[:-2]
        for k, label in enumerate(curve.panel.labels):
            axes.plot(t, values[:, k], color=f"C{k}", label=label if number == 0 else None)
            if mark:
                points = t[curve.nodes], values[curve.nodes, k]
                axes.plot(*points, ".", color=f"C{k}", markersize=4, label="_nodes")
            for side, limit in enumerate(curve.panel.values[-2:, k]):
                shared = np.all(curve.panel.values[side - 2] == limit)
                limits.append((limit, "0.5" if shared else f"C{k}", t[[0, -1]]))
    every = np.concatenate([curve.panel.values[:-2].ravel() for curve in curves])
    lowest, highest = np.nanmin(every), np.nanmax(every)
    reach = NEAR * (highest - lowest) or np.inf
    for limit, colour, ends in limits:
        if lowest - reach <= limit <= highest + reach and np.isfinite(limit):
            axes.plot(ends, [limit, limit], color=colour, label="_limit", **LIMIT)
    if not single:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.04), borderaxespad=0.3)


def draw_errors(axes: Axes, solution: ControlSolution | PhasesSolution) -> None:
    """Draw the error of each interval as a step, and nodes as ticks."""
    for phase in solution.parts:
        errors = np.maximum(np.nan_to_num(phase.errors, nan=np.inf), LEAST_ERROR)
        errors = np.minimum(errors, 1e16)
        axes.stairs(errors, phase.t, baseline=None, color="C0")
        ticks: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "color": "0.5"}
        axes.plot(phase.t, np.full(len(phase.t), 0.03), "|", markersize=5, label="_nodes", **ticks)
    axes.set_yscale("log")
    axes.margins(x=0.01, y=0.15)
    axes.set_ylabel("mesh error")
    if solution.mesh_tol is not None:
        axes.axhline(solution.mesh_tol, color="0.5", **LIMIT)
        axes.text(1.005, solution.mesh_tol, "mesh_tol", transform=axes.get_yaxis_transform(),
                  fontsize="small", va="center")  # fmt: skip
    schemes = dict.fromkeys(phase.transcription.scheme.name for phase in solution.parts)
    text = f"{len(solution.errors)} intervals by {', '.join(schemes)}; "
    axes.set_title(f"{text}largest {solution.mesh_error:.2g}", loc="right", **NOTE)
