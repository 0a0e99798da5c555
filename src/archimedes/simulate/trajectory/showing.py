"""How trajectories are shown: aligned fields as text, a table in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.simulate.trajectory.columns import label_leaves

if TYPE_CHECKING:
    from archimedes.typing import ArrayLike, Tree

#: Names of leaves shown before the rest is only counted.
MANY = 12


def _short_name(value: Tree) -> str:
    return type(value).__qualname__.rpartition("<locals>.")[2]


def _number(value: Tree) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def span(t: np.ndarray) -> str:
    """Return the times in words: ``0 to 10, 101 samples``."""
    samples = f"{t.shape[-1]} sample{'s' * (t.shape[-1] != 1)}"
    batch = f"{' x '.join(map(str, t.shape[:-1]))} trajectories, " if t.ndim > 1 else ""
    known = t[~np.isnan(t)]
    if not known.size:
        return f"{batch}no samples"
    first, last = t.reshape(-1, t.shape[-1])[0, 0], known[-1] if t.ndim == 1 else np.nanmax(t)
    return f"{batch}{first:.6g} to {last:.6g}, {samples}"


def part_lines(value: Tree, lead: int) -> list[str]:
    """Return the text of a tree: its type, then a line per leaf with shape and units."""
    if tree.is_leaf(value):
        return [f"array, shape {tuple(np.shape(value))}"]
    leaves, treedef = tree.flatten(value)
    # Without the axes of batch and time.
    shapes = [str(np.shape(leaf)[lead:]) if np.ndim(leaf) > lead else "" for leaf in leaves]
    labels = label_leaves(treedef, "x", prefix=False)
    rows = [(label.name, shape, label.units) for label, shape in zip(labels, shapes)]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(2)]
    lines = [
        f"  {name:<{widths[0]}}  {shape:<{widths[1]}}  {units}".rstrip()
        for name, shape, units in rows[:MANY]
    ]
    rest = [f"  ... {len(rows) - MANY} more"] if len(rows) > MANY else []
    return [_short_name(value), *lines, *rest]


def outcome(status: ArrayLike) -> tuple[str, str]:
    """Return success and status as text; for a batch how many of each."""
    codes = np.asarray(status)
    if codes.ndim == 0:
        return str(bool(codes >= 0)), str(int(codes))
    kinds, counts = np.unique(codes, return_counts=True)
    good = int(np.sum(codes >= 0))
    each = ", ".join(f"{count} x {kind}" for kind, count in zip(kinds, counts))
    return f"{good} of {codes.size}", each


def _show_stats(stats: dict[str, Any]) -> str:
    shown = []
    for name, value in stats.items():
        array = np.asarray(value)
        if array.ndim and array.size and array.dtype.kind in "iuf":
            shown.append(f"{name} {_number(array.min())} to {_number(array.max())}")
        else:
            shown.append(f"{name} {_number(value)}")
    return ", ".join(shown)


def show_events(events: Tree) -> str:
    """Return how many events there were, and when the first ones."""
    t = np.asarray(events["t"]) if isinstance(events, dict) and "t" in events else np.zeros(0)
    times = t[~np.isnan(t)]
    if t.ndim > 1 and times.size:
        each = np.sum(~np.isnan(t), axis=-1)
        return f"{times.size} in {each.size} trajectories, {each.min()} to {each.max()} in each"
    if not times.size:
        return "0"
    rest = ", ..." if times.size > 4 else ""
    return f"{times.size}, at t = {', '.join(map(_number, times[:4]))}{rest}"


def trajectory_text(traj: Any) -> str:
    """Return the text of a trajectory: one aligned line per field, as SciPy's results have."""
    success, status = outcome(traj.status)
    fields: list[tuple[str, list[str]]] = [
        ("message", [traj.message]),
        ("success", [success]),
        ("status", [status]),
        ("t", [span(traj.t)]),
    ]
    lead = traj.t.ndim
    for name in ("x", "u", "y"):
        value = getattr(traj, name)
        if value is not None:
            fields.append((name, part_lines(value, lead)))
    if traj.events is not None:
        fields.append(("events", [show_events(traj.events)]))
    if traj.stats:
        fields.append(("stats", [_show_stats(traj.stats)]))
    width = max(len(name) for name, _ in fields) + 1
    text = []
    for name, lines in fields:
        text.append(f"{name:>{width}}: {lines[0]}".rstrip())
        text.extend(" " * (width + 2) + line for line in lines[1:])
    return "\n".join(text)


def trajectory_html(traj: Any) -> str:
    """Return an HTML table of the state: names, units, first and last value, least and greatest."""
    import html  # needed in notebooks only

    success, _ = outcome(traj.status)
    caption = f"{_short_name(traj)}: {span(traj.t)}; success {success}. {traj.message}"
    cells = ["name", "units", "first", "last", "min", "max"]
    rows = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in cells) + "</tr>"]
    leaves = tree.leaves(traj.x)
    known = ~np.isnan(traj.t)
    for column in traj.columns:
        values = np.asarray(leaves[column.leaf])[(..., *column.place)]
        inside = values[known]
        ends: list[Any] = [inside[0], inside[-1]] if traj.t.ndim == 1 and inside.size else ["", ""]
        range_ = [inside.min(), inside.max()] if inside.size else ["", ""]
        texts = [column.name, column.units, *map(_number, ends + range_)]
        rows.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>")
    return f"<table><caption>{html.escape(caption)}</caption>{''.join(rows)}</table>"
