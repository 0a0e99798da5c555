"""What a solution says about itself in a few lines: violations in the user's units, active limits.

Unknowns and equations are scaled for the solver. Here they get back their names, their units and
their sizes; the largest violation is the largest one as the solver sees it, relative to sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.display import for_reading, named_lines, number
from archimedes.optimize.problems.unknowns import read_limits
from archimedes.simulate.trajectory.columns import Column, tree_columns
from archimedes.typing import Tree

if TYPE_CHECKING:
    from archimedes.optimize.optimal_control.equations import Equations
    from archimedes.optimize.optimal_control.solution import ControlSolution, MeshSolution

#: A limit is active where less than this part of the size of a quantity is left.
AT_LIMIT = 1e-4
#: Points at which limits are looked at, at least; spans of time and limits that are listed.
POINTS, SPANS, LISTED = 400, 3, 8
#: Spans, and gaps between them, that are shorter than this part of the duration are moments.
SHORT = 4e-3
#: Characters in a line of the status.
WIDTH = 84


class Row(NamedTuple):
    """An equation or unknown: what it is, its unit, and the size by which it was divided."""

    name: str
    units: str
    size: float


def write_report(solution: MeshSolution) -> str:
    """Return the report of a solution, or of phases."""
    parts, meshes = solution.parts, solution.meshes
    status = "\n".join(wrap(solution.message, WIDTH, break_long_words=False))
    lines = [("status", status), ("cost", number(solution.fun, 8))]
    if len(parts) == 1:
        lines += [("time", _write_span(parts[0])), *_write_values(parts[0])]
    effort = " + ".join(str(mesh["iterations"]) for mesh in meshes)
    seconds = sum(mesh["seconds"] for mesh in meshes)
    lines += [
        ("iterations", f"{effort} in {seconds:.2g} s"),
        ("violation", _write_violation(solution)),
    ]
    counts = " -> ".join(str(mesh["intervals"]) for mesh in meshes)
    if len(parts) == 1:
        lines += [
            ("mesh", f"{counts} intervals by {parts[0].transcription.scheme.name}"),
            ("mesh error", _write_error(parts[0], solution.mesh_tol)),
            ("active limits", _write_active(parts[0])),
        ]
        return named_lines(lines)
    lines.append(("mesh", f"{counts} intervals in {len(parts)} phases"))
    for k, part in enumerate(parts):
        own = [
            _write_span(part),
            *(f"{name}: {text}" for name, text in _write_values(part)),
            f"{len(part.errors)} intervals by {part.transcription.scheme.name}, mesh error "
            + _write_error(part, solution.mesh_tol),
            "active limits: " + _write_active(part).replace("\n", "\n" + " " * 15),
        ]
        lines.append((f"phase {k}", "\n".join(own)))
    return named_lines(lines)


def _quantity(value: float, units: str) -> str:
    """Return a number with its unit, angles in degrees."""
    shown, unit = for_reading(value, units)
    return f"{number(float(shown))} {unit}".rstrip()


def _write_span(part: ControlSolution) -> str:
    return f"{number(part.t0)} s to {number(part.tf)} s"


def _write_values(part: ControlSolution) -> Iterator[tuple[str, str]]:
    """Yield what else was found, parameters and integrals, with their names."""
    for name, value, root in (("parameters", part.p, "p"), ("integrals", part.integrals, "")):
        if value is not None:
            rows = zip(tree_columns(value, 0, root or name, bool(root)), tree.ravel(value)[0])
            yield name, ", ".join(f"{c.name} = {_quantity(v, c.units)}" for c, v in rows)


def _write_error(part: ControlSolution, tol: float | None) -> str:
    k = int(np.argmax(np.nan_to_num(part.errors, nan=np.inf)))
    where = f"from {number(part.t[k])} s to {number(part.t[k + 1])} s"
    text = f"{part.mesh_error:.2g} of the states' size, {where}"
    return text if tol is None else f"{text} (mesh_tol = {tol:g})"


# ---- violations -------------------------------------------------------------------------------


def name_states(equations: Equations) -> list[Column]:
    """Return the names and units of the states, those of the user."""
    return tree_columns(equations.x_like, 0, "x", prefix=False)


def _as_rows(like: Tree, root: str, prefix: bool = True) -> list[Row]:
    return [Row(c.name, c.units, 1.0) for c in tree_columns(like, 0, root, prefix)]


def _name_rows(part: ControlSolution) -> tuple[list[Row], list[Row]]:
    """Return what the unknowns and the equations of a phase are, in the order of its program."""
    program, transcription = part.program, part.transcription
    equations, layout, recordings = (
        transcription.equations,
        program.layout,
        transcription.recordings,
    )
    states = [Row(c.name, c.units, 1.0) for c in name_states(equations)]
    states += _as_rows(equations.integrals_like, "integrals")
    sizes = part.state_scale.tolist()
    defects = [Row(f"the dynamics of {s.name}", s.units, size) for s, size in zip(states, sizes)]
    path, edges = (
        _as_rows(like, name)
        for like, name in ((recordings.path_like, "path"), (recordings.boundary_like, "boundary"))
    )
    limited = [
        Row(f"a limit of {states[k].name} within an interval", states[k].units, sizes[k])
        for k in equations.limited
    ]
    inner, visits = equations.count_visits()
    each = defects * transcription.scheme.equations + limited * inner + path * visits
    rows = each * layout.count + (path if equations.path_at_last else []) + edges
    if transcription.may_reverse:
        rows.append(Row("tf - t0", "s", float(program.scale[0])))
    unknowns = [Row("t0", "s", 1.0), Row("tf", "s", 1.0), *_as_rows(equations.p_like, "p")]
    unknowns += states * layout.state_count
    unknowns += _as_rows(equations.u_like, "u") * layout.control_count
    scaled = [Row(*row[:2], size) for row, size in zip(unknowns, program.scale.tolist())]
    return scaled, rows


def _write_violation(solution: MeshSolution) -> str:
    """Return the largest violation of an equation or limit in the unit of what it is of."""
    task, x = solution.task, solution.answer.x
    g = task.evaluator.values(x)[1]
    unknowns, rows = list[Row](), list[Row]()
    for part in solution.parts:
        own, equations = _name_rows(part)
        unknowns += own
        rows += equations
    rows += getattr(solution, "links", [])
    with np.errstate(invalid="ignore"):
        off = np.concatenate(
            [np.maximum(task.low - g, g - task.high), np.maximum(task.lower - x, x - task.upper)]
        )
    k = int(np.argmax(np.nan_to_num(off, nan=np.inf)))
    if off[k] <= 0.0:
        return "none"
    row = (rows + unknowns)[k]
    kind = "in" if k < len(rows) else "beyond a limit of"
    value, units = for_reading(float(off[k]) * row.size, row.units)
    return f"{f'{value:.2g} {units}'.rstrip()} {kind} {row.name}"


# ---- active limits ----------------------------------------------------------------------------


def _write_active(part: ControlSolution) -> str:
    """Return the limits that are reached, and when."""
    lines = [*_find_active_ends(part), *_find_active(part)]
    if len(lines) > LISTED:
        lines = [*lines[:LISTED], f"and {len(lines) - LISTED} more"]
    return "\n".join(lines) or "none"


def _find_active(part: ControlSolution) -> Iterator[str]:
    """Yield the limits of states, controls and path constraints that are reached."""
    count = len(part.mesh) - 1
    traj = part.sample(max(2, -(-POINTS // count)))
    scale, layout = part.scale, part.program.layout
    own = part.transcription.equations.own
    sizes = {"x": scale[layout.X[0, 0, :own]], "u": scale[layout.U[0, 0]]}
    roots = {"x": "x", "u": "u", "y": "path"}
    for name, limits in part.limits().items():
        value = getattr(traj, name)
        columns = tree_columns(value, 1, roots[name], prefix=name != "x")
        values = np.concatenate(
            [np.reshape(leaf, (len(traj.t), -1)) for leaf in tree.leaves(value)], axis=1
        )
        low, high = (tree.ravel(limit)[0] for limit in limits)
        # Both ends of a trajectory are often fixed, which is no limit that is reached.
        inner = slice(1, -1) if name == "x" else slice(None)
        for k, column in enumerate(columns):
            if low[k] == high[k]:
                continue
            size = sizes[name][k] if name in sizes else np.abs(values[:, k]).max()
            for side, limit, left in (
                ("lower", low[k], values[:, k] - low[k]),
                ("upper", high[k], high[k] - values[:, k]),
            ):
                when = np.isfinite(limit) & (left[inner] <= AT_LIMIT * size)
                if np.any(when):
                    text = _write_spans(traj.t[inner], when)
                    if left.min() < -AT_LIMIT * size:
                        beyond = _quantity(float(f"{-left.min():.2g}"), column.units)
                        text += f", beyond it by up to {beyond} between nodes"
                    yield _say_active(column, side, limit, text)


def _say_active(column: Any, side: str, limit: float, when: str = "") -> str:
    return f"{column.name} at its {side} limit {_quantity(limit, column.units)}{when}"


def _find_active_ends(part: ControlSolution) -> Iterator[str]:
    """Yield the limits of free times, parameters and integrals that are reached."""
    problem, equations = part.transcription.problem, part.transcription.equations
    rows: Iterable[tuple[Any, float, Any]] = [
        (Row(name, "s", 1.0), getattr(part, name), getattr(problem, name))
        for name in ("t0", "tf")
        if isinstance(getattr(problem, name), (tuple, list))
    ]
    for value, like, name in (
        (part.p, equations.p_like, "parameter_bounds"),
        (part.integrals, equations.integrals_like, "integral_bounds"),
    ):
        if like is not None:
            columns = tree_columns(value, 0, "p" if name[0] == "p" else "integrals")
            limits = zip(*read_limits(getattr(problem, name), like, name))
            rows = [*rows, *zip(columns, tree.ravel(value)[0], limits)]
    for column, value, (low, high) in rows:
        for side, limit in (("lower", low), ("upper", high)):
            if low < high and abs(value - limit) <= AT_LIMIT * max(abs(limit), abs(value), 1e-12):
                yield _say_active(column, side, limit)


def _write_spans(t: np.ndarray, when: np.ndarray) -> str:
    """Return the spans of time in which something holds: ``, 0 s to 1 s and at 3 s``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], when, [False]]).astype(int)))
    spans, short = list[tuple[float, float]](), SHORT * float(t[-1] - t[0])
    for first, last in ((float(t[a]), float(t[b - 1])) for a, b in edges.reshape(-1, 2)):
        if spans and first - spans[-1][1] <= short:
            first = spans.pop()[0]
        spans.append((first, last))
    if len(spans) > SPANS:
        share = sum(b - a for a, b in spans) / (t[-1] - t[0])
        return f", {100.0 * share:.0f} % of the time"
    texts = [
        f"at {number(a, 4)} s" if b - a <= short else f"{number(a, 4)} s to {number(b, 4)} s"
        for a, b in spans
    ]
    return ", " + " and ".join(texts)
