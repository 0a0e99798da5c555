"""``plot``: a trajectory as panels over time, one for each part of the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.simulate.trajectory.columns import PARTS, component_names, label_leaves
from archimedes.simulate.trajectory.exports import require
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.viz.themes import current_theme, matplotlib_settings

__all__ = ["plot"]

#: Points that a line has at least where the solver's dense output can give them.
POINTS = 600
#: Above this many trajectories a batch is drawn as median and band instead of single lines.
SINGLE_LINES = 30
#: The shares that bound the band.
BAND = (0.05, 0.95)
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


def plot(
    traj: Trajectory,
    names: Sequence[str] | str | None = None,
    *,
    labels: Mapping[str, str] | Sequence[str] | None = None,
    title: str | None = None,
    file: Any = None,
) -> Any:
    """Plot a trajectory over time, a panel for each leaf, and return the matplotlib Figure.

    Axes carry the names and units of the structs' fields. `names` chooses leaves or single
    components: ``["pos", "w_B[1]"]``. `labels` are the names in legends and on axes, by the
    trajectory's own (``{"x[0]": "angle"}``), or one for each number of the state in order. Between
    samples the solver's dense output is drawn, where it was kept. A batch is drawn line by line
    or, if large, as median and band of 5 % to 95 % of those that have a value; above the first
    panel it says how many failed. `file` is a path to save to; its ending decides the format.

    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> figure = plot(Trajectory(t, {"pos": t**2, "vel": 2 * t}))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['pos', 'vel']
    """
    if not isinstance(traj, Trajectory):
        raise TypeError(f"plot: expected a Trajectory, got {type(traj).__name__}")
    matplotlib = require("matplotlib", None, "plot")
    pyplot = require("matplotlib.pyplot", None, "plot")
    panels = choose(all_panels(traj), [names] if isinstance(names, str) else names)
    panels = [relabelled(panel, label_table(traj, labels)) for panel in panels]
    height = PANEL_HEIGHT * len(panels) + MARGIN
    with matplotlib.rc_context(dict(matplotlib_settings(current_theme()))):
        figure = pyplot.figure(figsize=(WIDTH, height), layout="constrained")
        rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(rows, panels):
            draw_panel(axes, panel)
            draw_events(axes, traj)
        rows[0].set_title(failures(traj), loc="right", fontsize="small")
        rows[-1].set_xlabel("time (s)")
        figure.align_ylabels(rows)
        if title is not None:
            figure.suptitle(title)
        if file is not None:
            figure.savefig(file)
    if "inline" in matplotlib.get_backend():
        pyplot.close(figure)  # a notebook shows what is returned; open, it would be shown twice
    return figure


def all_panels(traj: Trajectory) -> list[Panel]:
    """Return a panel for each leaf of state, inputs and outputs."""
    panels = []
    for part in PARTS:
        t, value = smooth(traj) if part == "x" else (traj.t, getattr(traj, part))
        leaves, treedef = tree.flatten(value)
        for leaf, label in zip(leaves, label_leaves(treedef, part, part != "x")):
            shape = np.shape(leaf)[traj.t.ndim :]
            values = np.reshape(leaf, (*t.shape, -1))
            labels = component_names(label.name, shape)
            panels.append(Panel(label.name, label.units, labels, t, values))
    return panels


def smooth(traj: Trajectory) -> tuple[np.ndarray, Any]:
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


def between(t: np.ndarray, x: Any, dense: Any, each: int) -> tuple[np.ndarray, Any]:
    """Return one trajectory with ``each`` points from one sample to the next."""
    steps = np.diff(t)
    part = np.arange(each) / each
    fine = np.append((t[:-1, None] + steps[:, None] * part).ravel(), t[-1])
    # Not at the samples, not where two are at one time, not after the end (nan in a batch).
    inside = np.append((np.nan_to_num(steps)[:, None] * part).ravel() != 0.0, False)
    found = dense(fine[inside])

    def filled(own: np.ndarray, new: np.ndarray) -> np.ndarray:
        whole = np.concatenate([np.repeat(own[:-1], each, axis=0), own[-1:]]).astype(np.float64)
        whole[inside] = new
        return whole

    return fine, tree.map(filled, x, found)


def label_table(traj: Trajectory, labels: Any) -> dict[str, str]:
    """Return the names that a user gave, by the trajectory's own."""
    if labels is None:
        return {}
    if isinstance(labels, Mapping):
        return dict(labels)
    names = traj.names
    if isinstance(labels, str) or len(labels) != len(names):
        raise ValueError(
            f"plot: labels must be one for each of {names}, or a dict of names by these"
        )
    return dict(zip(names, labels))


def relabelled(panel: Panel, table: dict[str, str]) -> Panel:
    labels = [table.get(label, label) for label in panel.labels]
    single = labels[0] if len(labels) == 1 and panel.labels[0] in table else panel.title
    return panel._replace(title=table.get(panel.title, single), labels=labels)


def choose(panels: list[Panel], names: Sequence[str] | None) -> list[Panel]:
    """Return the panels, or the single lines, that are asked for."""
    if names is None:
        chosen = panels
    else:
        table = {panel.title: panel for panel in panels}
        for panel in panels:
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


def draw_panel(axes: Any, panel: Panel) -> None:
    """Draw the lines of one panel, with its name and units."""
    axes.set_ylabel(f"{panel.title} ({panel.units})" if panel.units else panel.title)
    axes.margins(x=0.01)
    rows = panel.t.reshape(-1, panel.t.shape[-1])
    for k, label in enumerate(panel.labels):
        values = panel.values[..., k].reshape(rows.shape)
        draw_component(axes, rows, values, label, f"C{k}")
    if len(panel.labels) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.04), borderaxespad=0.3)


def draw_events(axes: Any, traj: Trajectory) -> None:
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


def band(values: np.ndarray) -> np.ndarray:
    """Return low end, middle and high end of the trajectories that have a value at each time."""
    found = np.full((3, values.shape[1]), np.nan)
    some = ~np.isnan(values).all(axis=0)
    if some.any():
        found[:, some] = np.nanquantile(values[:, some], [BAND[0], 0.5, BAND[1]], axis=0)
    return found


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


def draw_component(axes: Any, t: np.ndarray, values: np.ndarray, label: str, colour: str) -> None:
    """Draw one number over time: a line, or for many trajectories their median and band."""
    if len(t) > SINGLE_LINES and (times := shared_times(t)) is not None:
        low, middle, high = band(values)
        axes.fill_between(times, low, high, color=colour, alpha=0.22, linewidth=0)
        axes.plot(times, middle, color=colour, label=label)
        return
    faint = 1.0 if len(t) == 1 else max(0.15, 1.0 / len(t) ** 0.5)
    for row, (times, line) in enumerate(zip(t, values)):
        axes.plot(times, line, color=colour, alpha=faint, label=label if row == 0 else None)
