"""A trajectory as panels over time, one for each part of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice, concrete
from archimedes.display import axis_label, for_reading
from archimedes.errors import TraceError
from archimedes.simulate.trajectory.columns import PARTS, add_units, component_names, label_leaves
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.typing import Array, Tree
from archimedes.viz.themes import Axes, Figure, File, sheet

__all__ = ["plot_trajectory"]

#: Points that a line has at least where the solver's dense output can give them.
POINTS = 600
#: Above this many trajectories a batch is drawn as median and band instead of single lines.
SINGLE_LINES = 30
#: The shares that bound the band.
BAND = (0.05, 0.95)
#: How a batch may be drawn, and the bands of a fan: all, 90 %, 50 %.
SPREADS = ("auto", "lines", "band", "fan")
FAN = ((0.0, 1.0, 0.12), (0.05, 0.95, 0.16), (0.25, 0.75, 0.24))
#: What the three components of a vector are called, by the end of its name.
AXES = {"rpy": ("roll", "pitch", "yaw"), "_NED": ("north", "east", "down")}
#: Lines in one panel; a larger leaf must be asked for by component.
MANY = 12
WIDTH, PANEL_HEIGHT, MARGIN = 8.0, 1.75, 0.9


class Panel(NamedTuple):
    """What one pair of axes shows: values (..., m, k) at t (..., m), a name for each of k lines."""

    title: str
    units: str
    labels: list[str]
    t: np.ndarray
    values: np.ndarray


def plot_trajectory(
    traj: Trajectory,
    names: Sequence[str] | str | None = None,
    *,
    labels: Mapping[str, str] | Sequence[str] | None = None,
    title: str | None = None,
    file: File = None,
    spread: str = "auto",
    angles: bool = True,
    relative: bool = False,
) -> Figure:
    """Plot a trajectory over time, with a panel for each leaf.

    Axes carry the names and units of the fields of structs, angles in deg. Between samples the
    interpolants are drawn, if the solver kept them. Of a batch, the first panel says how many
    instances failed.

    Parameters
    ----------
    traj : Trajectory
        The trajectory.
    names : str or sequence of str, optional
        Leaves or components to show: ``["pos", "w_B[1]"]``. All by default.
    labels : mapping or sequence of str, optional
        Names for legends and axes: by the name in the trajectory (``{"x[0]": "angle"}``), or one
        for each number of the state in order.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.
    spread : {"auto", "lines", "band", "fan"}, optional
        How a batch is drawn: line by line, as median and band of 5 % to 95 %, or as bands of 50 %,
        90 % and all. ``"auto"`` draws lines if there are few.
    angles : bool, optional
        Draw attitudes as roll, pitch and yaw in deg without jumps. With False, or by the names of
        components (``"att[0]"``), the components are drawn.
    relative : bool, optional
        Draw a batch relative to its mean at each time, a panel for each component, which shows how
        far it disperses. False by default.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> figure = plot_trajectory(Trajectory(t, {"pos": t**2, "vel": 2 * t}))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['pos', 'vel']
    """
    check_choice(spread, "plot: spread", SPREADS)
    if any(concrete(leaf) is None for leaf in tree.leaves([traj.t, traj.x, traj.u, traj.y])):
        raise TraceError(
            "plot: this trajectory has no numbers yet: the function around it is being recorded. "
            "Return it from that function, and plot what the call gives"
        )
    wanted = [names] if isinstance(names, str) else names
    panels = choose(all_panels(traj, angles), all_panels(traj, angles=False), wanted)
    panels = [relabel(panel, label_map(traj, labels)) for panel in panels]
    if relative:
        panels = [one for panel in panels for one in deviations(panel)]
    return draw_panels(traj, panels, title, file, spread)


def draw_panels(
    traj: Trajectory, panels: list[Panel], title: str | None, file: File, spread: str = "auto"
) -> Figure:
    """Draw panels one below the other over time, with the events of the trajectory."""
    size, count = (WIDTH, PANEL_HEIGHT * len(panels) + MARGIN), len(panels)
    with sheet(size, title, file, count, sharex=True, squeeze=False) as (figure, grid):
        rows = grid[:, 0]
        for axes, panel in zip(rows, panels):
            draw_panel(axes, panel, spread)
            draw_events(axes, traj)
        rows[0].set_title(failures(traj), loc="right", fontsize="small")
        rows[-1].set_xlabel(axis_label("time", "s"))
        figure.align_ylabels(rows)
    return figure


def all_panels(traj: Trajectory, angles: bool) -> list[Panel]:
    """Return a panel for each leaf of state, inputs and outputs; an attitude counts as one."""
    whole = (lambda node: isinstance(node, AttitudeBase)) if angles else None
    panels = []
    for part in PARTS:
        t, value = smooth(traj) if part == "x" else (traj.t, getattr(traj, part))
        leaves, treedef = tree.flatten(value, whole)
        named = add_units(label_leaves(treedef, part, part != "x"), traj.given_units, part)
        for leaf, label in zip(leaves, named):
            if isinstance(leaf, AttitudeBase):
                rpy = roll_pitch_yaw(leaf, t.ndim)
                panels.append(Panel(label.name, "deg", ["roll", "pitch", "yaw"], t, rpy))
                continue
            shape = np.shape(leaf)[traj.t.ndim :]
            values, units = for_reading(np.reshape(leaf, (*t.shape, -1)), label.units)
            labels = component_names(label.name, shape)
            panels.append(Panel(label.name, units, labels, t, values))
    return panels


def roll_pitch_yaw(att: AttitudeBase, lead: int) -> np.ndarray:
    """Return the angles (..., m, 3) of attitudes over time in deg, without jumps of a turn."""
    numbers = np.asarray(att.array, dtype=np.float64)
    known: Any = np.isfinite(numbers).all(axis=-1)
    if not known.any():
        return np.full((*known.shape, 3), np.nan)
    # A flight that ended early goes on with nan, of which no attitude can be made.
    filled = np.where(known[..., None], numbers, numbers[known][0])
    whole = tree.map(lambda leaf: filled, att)
    rpy = np.unwrap(np.asarray(whole.as_quat().as_euler("xyz").array), axis=lead - 1)
    return np.where(known[..., None], np.rad2deg(rpy), np.nan)


def smooth(traj: Trajectory) -> tuple[np.ndarray, Tree]:
    """Return times and states with the dense output between the samples.

    Samples stay as they are: at an event there are two, and the line jumps.
    """
    each = -(-POINTS // max(traj.t.shape[-1] - 1, 1))
    many = traj.t.ndim > 1 and len(traj.t) > SINGLE_LINES
    if traj.dense is None or traj.t.ndim > 2 or many or each < 2 or traj.t.shape[-1] < 2:
        return traj.t, traj.x
    if traj.t.ndim == 1:
        return between(traj.t, traj.x, traj.dense, each)
    rows = [
        between(t, tree.map(lambda leaf, k=k: leaf[k], traj.x), traj.dense[k], each)
        for k, t in enumerate(traj.t)
    ]
    return np.stack([t for t, _ in rows]), tree.map(lambda *x: np.stack(x), *(x for _, x in rows))


def between(t: Array, x: Tree, dense: Callable[[Array], Tree], each: int) -> tuple[Array, Tree]:
    """Return one trajectory with ``each`` points from one sample to the next."""
    steps = np.diff(t)
    part = np.arange(each) / each
    fine = np.append((t[:-1, None] + steps[:, None] * part).ravel(), t[-1])
    # Not at the samples, not where two are at one time, not after the end (nan in a batch).
    inside = np.append((np.nan_to_num(steps)[:, None] * part).ravel() != 0.0, False)
    finer = dense(fine[inside])

    def fill(own: np.ndarray, new: np.ndarray) -> np.ndarray:
        whole = np.concatenate([np.repeat(own[:-1], each, axis=0), own[-1:]]).astype(np.float64)
        whole[inside] = new
        return whole

    return fine, tree.map(fill, x, finer)


def deviations(panel: Panel) -> list[Panel]:
    """Return a panel for each component of a batch, relative to the batch's mean at each time.

    All are about zero: in one panel their bands would lie on each other.
    """
    rows = panel.t.reshape(-1, panel.t.shape[-1])
    if len(rows) < 2 or shared_times(rows) is None:
        raise ValueError(
            "plot: relative=True needs several trajectories at the same times: solve a batch with "
            "t_eval, or leave it out"
        )
    values = panel.values.reshape(len(rows), rows.shape[1], -1)
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / count
    away = values - mean
    single = len(panel.labels) == 1
    return [
        panel._replace(
            title=f"{panel.title if single else label} - mean",
            labels=[label],
            t=rows,
            values=away[..., k : k + 1],
        )
        for k, label in enumerate(panel.labels)
    ]


def label_map(traj: Trajectory, labels: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    """Return the names that a user gave, by the trajectory's own."""
    if labels is None:
        return {}
    if isinstance(labels, Mapping):
        return dict(labels)
    names = traj.names
    if isinstance(labels, str) or len(labels) != len(names):
        raise ValueError(f"plot: labels must be one for each of {names}, or a dict with these keys")
    return dict(zip(names, labels))


def relabel(panel: Panel, table: dict[str, str]) -> Panel:
    labels = [table.get(label, label) for label in panel.labels]
    single = labels[0] if len(labels) == 1 and panel.labels[0] in table else panel.title
    for ending, names in AXES.items():
        if panel.title.endswith(ending) and len(labels) == 3 and labels == panel.labels:
            labels = list(names)
    return panel._replace(title=table.get(panel.title, single), labels=labels)


def choose(panels: list[Panel], raw: list[Panel], names: Sequence[str] | None) -> list[Panel]:
    """Return the panels, or the single lines, that are asked for; `raw` has all components."""
    if names is None:
        chosen = panels
    else:
        table = {panel.title: panel for panel in panels}
        for panel in raw:
            for k, label in enumerate(panel.labels):
                one = Panel(label, panel.units, [label], panel.t, panel.values[..., k : k + 1])
                table.setdefault(label, one)
        missing = [name for name in names if name not in table]
        if missing:
            raise KeyError(f"plot: no {missing[0]!r} in this trajectory; there are {list(table)}")
        chosen = [table[name] for name in names]
    if not chosen:
        raise ValueError("plot: this trajectory has nothing to plot")
    large = [panel for panel in chosen if len(panel.labels) > MANY]
    if large:
        raise ValueError(
            f"plot: {large[0].title} has {len(large[0].labels)} components, too many for one "
            f"panel: choose some, names=[{large[0].labels[0]!r}, ...]"
        )
    return chosen


def draw_panel(axes: Axes, panel: Panel, spread: str = "auto") -> None:
    """Draw the lines of one panel, with its name and units."""
    axes.set_ylabel(axis_label(panel.title, panel.units))
    axes.margins(x=0.01)
    rows = panel.t.reshape(-1, panel.t.shape[-1])
    for k, label in enumerate(panel.labels):
        values = panel.values[..., k].reshape(rows.shape)
        draw_lines(axes, rows, values, label, f"C{k}", spread)
    if len(panel.labels) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.04), borderaxespad=0.3)


def draw_events(axes: Axes, traj: Trajectory) -> None:
    """Mark the times of the events of a single trajectory by thin lines."""
    if isinstance(traj.events, dict) and not traj.batch_shape:
        first, last = (np.min(traj.t), np.max(traj.t)) if len(traj) else (np.nan, np.nan)
        for t in traj.events.get("t", ()):
            if first <= t <= last:
                axes.axvline(t, color="0.55", linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)


def shared_times(t: np.ndarray) -> np.ndarray | None:
    """Return the times that all trajectories share as far as they got (nan: not so far)."""
    longest = t[np.argmax(np.count_nonzero(~np.isnan(t), axis=1))]
    return longest if bool(np.all((t == longest) | np.isnan(t))) else None


def shares(values: np.ndarray, parts: Sequence[float]) -> np.ndarray:
    """Return quantiles over the trajectories that have a value, (parts, m); nan where none has."""
    quantiles = np.full((len(parts), values.shape[1]), np.nan)
    some = ~np.isnan(values).all(axis=0)
    if some.any():
        quantiles[:, some] = np.nanquantile(values[:, some], parts, axis=0)
    return quantiles


def failures(traj: Trajectory) -> str:
    """Say how many trajectories of a batch failed or hold nan; nothing if none did."""
    count = int(np.prod(traj.batch_shape, dtype=int)) if traj.batch_shape else 0
    bad = np.zeros(count, dtype=bool)
    if count and np.shape(traj.status) == traj.batch_shape:
        bad |= np.ravel(np.asarray(traj.status) < 0)
    for leaf in map(np.asarray, tree.leaves(traj.x)):
        if count and leaf.dtype.kind == "f":
            bad |= np.isnan(leaf).reshape(count, -1).any(axis=1)
    return f"{np.count_nonzero(bad)} of {count} failed" if bad.any() else ""


def draw_lines(axes: Axes, t: Array, values: Array, label: str, colour: str, spread: str) -> None:
    """Draw one number over time: a line, or for many trajectories their median and bands."""
    bands = spread in ("band", "fan") or (spread == "auto" and len(t) > SINGLE_LINES)
    if len(t) > 1 and bands and (times := shared_times(t)) is not None:
        for low, high, alpha in FAN if spread == "fan" else ((*BAND, 0.22),):
            edges = shares(values, [low, high])
            axes.fill_between(times, *edges, color=colour, alpha=alpha, linewidth=0)
        axes.plot(times, shares(values, [0.5])[0], color=colour, label=label)
        return
    faint = 1.0 if len(t) == 1 else max(0.15, 1.0 / len(t) ** 0.5)
    for row, (times, line) in enumerate(zip(t, values)):
        axes.plot(times, line, color=colour, alpha=faint, label=label if row == 0 else None)
