"""How trajectories are shown: aligned fields as text, a table in notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.display import (
    COLUMNS,
    axis_label,
    for_reading,
    html_table,
    named_lines,
    number,
    short_name,
    text_table,
    without_noise,
    wrap,
)
from archimedes.simulate.trajectory.columns import PARTS, LeafLabel, label_leaves, tree_columns

if TYPE_CHECKING:
    from archimedes.typing import ArrayLike, Tree

#: Names of leaves of state, inputs and outputs together, before the rest is only counted.
MANY = 12
#: Rows of a table in a notebook.
ROWS = 40


def span(t: np.ndarray) -> str:
    """Return the times in words: ``0 to 10, 101 samples``."""
    samples = f"{t.shape[-1]} sample{'s' * (t.shape[-1] != 1)}"
    batch = f"{' x '.join(map(str, t.shape[:-1]))} trajectories, " if t.ndim > 1 else ""
    known = t[~np.isnan(t)]
    if not known.size:
        return f"{batch}no samples"
    first, last = t.reshape(-1, t.shape[-1])[0, 0], known[-1] if t.ndim == 1 else np.nanmax(t)
    return f"{batch}{first:.6g} to {last:.6g}, {samples}"


def part_lines(value: Tree, lead: int, labels: Sequence[LeafLabel], many: int) -> list[str]:
    """Return the text of a tree: its type, then a line per leaf with shape and units."""
    if tree.is_leaf(value):
        return [
            f"array, shape {tuple(np.shape(value))}{' ' * bool(labels[0].units)}{labels[0].units}"
        ]
    leaves = tree.leaves(value)
    # Without the axes of batch and time.
    shapes = [str(np.shape(leaf)[lead:]) if np.ndim(leaf) > lead else "" for leaf in leaves]
    rows = [(label.name, shape, label.units) for label, shape in zip(labels, shapes)]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(2)]
    lines = [
        f"  {name:<{widths[0]}}  {shape:<{widths[1]}}  {units}".rstrip()
        for name, shape, units in rows[:many]
    ]
    rest = [f"  ... {len(rows) - many} more"] if len(rows) > many else []
    return [short_name(type(value)), *lines, *rest]


def _bare_labels(traj: Any, part: str) -> list[LeafLabel]:
    """Return the labels of the leaves of a part, without its letter in front."""
    bare = label_leaves(tree.structure(getattr(traj, part)), "x", prefix=False)
    named = traj.part_labels(part)
    return [each._replace(units=label.units) for each, label in zip(bare, named)]


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
            shown.append(f"{name} {number(array.min())} to {number(array.max())}")
        else:
            shown.append(f"{name} {number(value)}")
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
    return f"{times.size}, at t = {', '.join(map(number, times[:4]))}{rest}"


def trajectory_text(traj: Any) -> str:
    """Return the text of a trajectory: one aligned line per field, as SciPy's results have."""
    success, status = outcome(traj.status)
    fields: list[tuple[str, list[str]]] = [
        ("message", wrap(traj.message, COLUMNS - 12).splitlines() or [""]),
        ("success", [success]),
        ("status", [status]),
        ("t", [span(traj.t)]),
    ]
    parts = {name: getattr(traj, name) for name in PARTS if getattr(traj, name) is not None}
    fields += [
        (name, part_lines(value, traj.t.ndim, _bare_labels(traj, name), MANY // len(parts)))
        for name, value in parts.items()
    ]
    if traj.events is not None:
        fields.append(("events", [show_events(traj.events)]))
    if traj.stats:
        fields.append(("stats", [_show_stats(traj.stats)]))
    return textwrap.indent(named_lines((name, "\n".join(lines)) for name, lines in fields), " ")


def trajectory_report(traj: Any) -> str:
    """Return the text of a trajectory, and a table of all its numbers."""
    return f"{trajectory_text(traj)}\n\n{text_table(value_rows(traj))}"


def value_rows(traj: Any) -> list[list[str]]:
    """Return a row of cells for each number: name and unit, first and last value, least, greatest.

    Angles are in degrees. Of a batch there are no first and last values.
    """
    rows = [["name", "first", "last", "min", "max"]]
    sampled = ~np.isnan(traj.t)
    for part in PARTS:
        leaves = tree.leaves(getattr(traj, part))
        for column in traj.part_columns(part):
            leaf: Any = np.asarray(leaves[column.leaf])
            values, units = for_reading(leaf[(..., *column.place)][sampled], column.units)
            cells: list[Any] = [""] * 4
            if values.size:
                ends = [values[0], values[-1]] if traj.t.ndim == 1 else ["", ""]
                known = values[~np.isnan(values)]
                cells = [*ends, *((known.min(), known.max()) if known.size else ("nan", "nan"))]
                largest = np.max(np.abs(values), initial=0.0, where=np.isfinite(values))
                cells = [c if isinstance(c, str) else without_noise(c, largest)[()] for c in cells]
            rows.append([axis_label(column.name, units), *map(number, cells)])
    return rows


def trajectory_html(traj: Any) -> str:
    """Return an HTML table of the values: first, last, least and greatest of each number."""
    success, _ = outcome(traj.status)
    caption = f"{short_name(type(traj))}: {span(traj.t)}; success {success}. {traj.message}"
    rows = value_rows(traj)
    remark = f"... {len(rows) - ROWS - 1} more: .report()" if len(rows) > ROWS + 1 else ""
    return html_table(caption, rows[: ROWS + 1], remark)


def number_rows(value: Any) -> list[list[str]]:
    """Return a row with name and value for each number of a tree, angles in degrees."""
    leaves = tree.leaves(value)
    rows = []
    for column in tree_columns(value, 0, "x", prefix=False):
        numbers: Any = np.asarray(leaves[column.leaf])
        shown, units = for_reading(numbers[column.place], column.units)
        rows.append([axis_label(column.name, units), number(shown)])
    return rows
