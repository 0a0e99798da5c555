"""The conditions of a minimum, checked in the user's own units, whichever method found the point.

    low <= g(x) <= high,  lower <= x <= upper                           feasibility
    grad f + A^T lam_g + lam_x = 0                                      stationarity
    lam > 0 only at upper limits, lam < 0 only at lower ones            signs, complementarity
    d^T H d >= 0 for d along the constraints that hold                  curvature

A is the Jacobian of g, H the Hessian of f + lam_g . g. Stationarity is measured relative to the
terms of its own sum, or by what a Newton step along the constraints would gain, which no choice of
units changes. Nothing is relative to the start.

Source: J. Nocedal, S. Wright, "Numerical optimization" (2nd ed., Springer 2006), theorems 12.1
and 12.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Task, violation

#: Conditions hold within this many tolerances, but nobody is asked for more than LEAST.
TOLERANCES, LEAST = 10.0, 1e-6
#: How much looser they are for an acceptable point.
LOOSER = 1e2
#: What a Newton step may still gain, in tolerances, relative to 1 + abs(f).
GAIN = 1e-2
#: Limits at most this far away, relative to their size, are taken to hold.
NEAR = 1e-5
#: With more unknowns multipliers are not estimated and curvature is not looked at.
MOST = 500
#: Unknowns this many times as large as at the start may have run away.
FAR = 10.0
#: Singular values below this part of the largest are zero.
RANK = 1e-9
#: Rays are looked along at every so many iterations, if a step was at least this part of x.
EVERY, RUNNING = 8, 1e-4
#: How far out is looked, relative to x, at every power of ten of the step; f must have fallen by
#: this part of what its slope says. Into a minimum a step falls by half of that.
REACH, FALL = 1e14, 0.9
#: What constraints may be off for the rounding of long steps.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Optimality:
    """How a point does: ``status`` is SOLVED, ACCEPTABLE or STALLED, and ``reason`` says why.

    ``lam_g`` and ``lam_x`` are the multipliers with which it does best. ``descent`` is a direction
    in which f falls by its curvature, where there is one.
    """

    status: Status
    lam_g: np.ndarray
    lam_x: np.ndarray
    reason: str = ""
    error: float = 0.0
    descent: np.ndarray | None = None


class _Point(NamedTuple):
    """A point, its values and derivatives; ``rows`` are constraints, then bounds."""

    task: Task
    x: np.ndarray
    f: float
    gradient: np.ndarray
    #: How far each row is from its limits: negative where it is violated.
    above: np.ndarray
    below: np.ndarray
    #: The size of the limits of each row.
    size_low: np.ndarray
    size_high: np.ndarray

    def find_held(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are at their upper, and which at their lower limits."""
        return self.below <= NEAR * self.size_high, self.above <= NEAR * self.size_low


def check_optimality(task: Task, x: np.ndarray, lam_g: np.ndarray, lam_x: np.ndarray) -> Optimality:
    """Check the conditions of a minimum at x, with these multipliers or better ones."""
    f, g = task.evaluator.values(x)
    gradient, entries = task.evaluator.slopes(x)
    if not (np.isfinite(f) and np.isfinite(gradient).all() and np.isfinite(entries).all()):
        return Optimality(Status.NOT_FINITE, lam_g, lam_x, "the derivatives are not finite", np.inf)
    low, high = np.concatenate([task.low, task.lower]), np.concatenate([task.high, task.upper])
    values = np.concatenate([g, x])
    sizes = [np.where(np.isfinite(v), np.maximum(1.0, np.abs(v)), 1.0) for v in (low, high)]
    at = _Point(task, x, f, gradient, values - low, high - values, *sizes)
    tol = max(TOLERANCES * task.settings.tol, LEAST)
    missed = float(np.max(np.maximum(-at.above / sizes[0], -at.below / sizes[1]), initial=0.0))
    if missed > LOOSER * tol:
        why = f"a constraint or bound is off by {task.violation(x, g):.1e}"
        return Optimality(Status.STALLED, lam_g, lam_x, why, missed)
    lam = np.concatenate([lam_g, lam_x])
    error, why = _first_order(at, lam, tol)
    # Trajectories are chains of blocks, whose matrices nobody writes out.
    small = x.size <= MOST and task.order is None
    if error > 1.0 and (small or not lam_g.size):
        better = _estimate_multipliers(at) if lam_g.size else _multipliers_of_bounds(at)
        other, reason = _first_order(at, better, tol)
        if other < error:
            lam, error, why = better, other, reason
    own = lam[: lam_g.size], lam[lam_g.size :]
    error = max(error, missed / tol)
    curvature = task.evaluator.curvature(x, 1.0, own[0]) if small else np.full(1, np.nan)
    if np.isfinite(curvature).all():
        space = _TangentSpace(at, lam, task.evaluator.structure.hessian(curvature))
        if error > 1.0:
            # Slopes that are not small enough say little: what is there to gain?
            along, off = space.gain(lam)
            gain = max(along / (GAIN * task.settings.tol), off / tol) / (1.0 + abs(f))
            error = max(gain, missed / tol, _measure_signs(at, lam, tol))
        descent = space.find_descent(tol * (1.0 + abs(f)))
        if descent is not None and error <= LOOSER:
            why = "the objective curves down along the constraints: a maximum or a saddle"
            return Optimality(Status.STALLED, *own, why, error, descent)
        if error <= LOOSER and _ran_away(at, tol):
            why = "unknowns have run far away, where the objective does not depend on them any more"
            return Optimality(Status.UNBOUNDED, *own, why, error)
    if error <= 1.0:
        return Optimality(Status.SOLVED, *own, "", error)
    status = Status.ACCEPTABLE if error <= LOOSER else Status.STALLED
    return Optimality(status, *own, why, error)


def _first_order(at: _Point, lam: np.ndarray, tol: float) -> tuple[float, str]:
    """Return the largest error of the first-order conditions in units of tol, and its name."""
    m, evaluator = lam.size - at.x.size, at.task.evaluator
    rest = at.gradient + evaluator.multiply_transpose(at.x, lam[:m]) + lam[m:]
    size = evaluator.multiply_transpose(at.x, lam[:m], absolute=True) + np.abs(lam[m:])
    slope = float(np.max(np.abs(rest) / (1.0 + size), initial=0.0)) / tol
    sign = _measure_signs(at, lam, tol)
    if slope >= sign:
        return slope, f"the multipliers leave {np.abs(rest).max():.1e} of the slope"
    return sign, "a limit that is not reached has a multiplier"


def _measure_signs(at: _Point, lam: np.ndarray, tol: float) -> float:
    """Return the error of signs and complementarity in units of tol.

    A multiplier times the distance to its limit is what f would gain there.
    """
    gap = np.where(lam > 0.0, at.below, at.above)
    with np.errstate(invalid="ignore"):
        product = np.where(np.isfinite(gap), np.abs(lam) * np.maximum(gap, 0.0), np.abs(lam))
    whole = np.where(np.isfinite(gap), 1.0 + abs(at.f), 1.0)
    return float(np.max(product / whole, initial=0.0)) / tol


def _multipliers_of_bounds(at: _Point) -> np.ndarray:
    """Return what bounds alone balance of the gradient."""
    upper, lower = at.find_held()
    return np.where(np.where(at.gradient < 0.0, upper, lower), -at.gradient, 0.0)


def _estimate_multipliers(at: _Point) -> np.ndarray:
    """Return multipliers of the right signs that balance the gradient best."""
    from scipy.optimize import nnls

    rows = _rows(at)
    upper, lower = map(np.flatnonzero, at.find_held())
    columns = np.concatenate([rows[upper], -rows[lower]])
    lengths = np.linalg.norm(columns, axis=1)
    lam = np.zeros(len(rows))
    if not np.any(lengths > 0.0):
        return lam  # SciPy's nnls aborts the process for a matrix without columns
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    try:
        weights = nnls((columns / lengths[:, None]).T, -at.gradient)[0] / lengths
    except RuntimeError:  # too many iterations
        return lam
    np.add.at(lam, upper, weights[: upper.size])
    np.subtract.at(lam, lower, weights[upper.size :])
    return lam


def _rows(at: _Point) -> np.ndarray:
    """Return the slopes of constraints and bounds as one matrix."""
    evaluator = at.task.evaluator
    A = evaluator.structure.jacobian(evaluator.slopes(at.x)[1])
    return np.concatenate([A, np.eye(at.x.size)])


class _TangentSpace:
    """Directions along the limits that hold, with unknowns in units of their own size."""

    def __init__(self, at: _Point, lam: np.ndarray, H: np.ndarray) -> None:
        self.at = at
        self.unit = np.maximum(1.0, np.abs(at.x))
        self.H = H * self.unit[:, None] * self.unit
        rows = _rows(at) * self.unit
        self.upper, self.lower = at.find_held()
        held = self.upper | self.lower
        # A multiplier in units of f for a unit step.
        price = np.abs(lam) * np.linalg.norm(rows, axis=1)
        self.weak = held & ~(self.upper & self.lower) & (price <= LEAST * (1.0 + abs(at.f)))
        self.rows, self.held = rows, held
        self.basis, self.unique = _null_space(rows[held])
        self.curvature = self.basis.T @ self.H @ self.basis

    def gain(self, lam: np.ndarray) -> tuple[float, float]:
        """Return what steps would gain: a Newton step along the constraints, a unit step off."""
        rest = self.unit * self.at.gradient + self.rows.T @ lam
        along = self.basis.T @ rest
        off = float(np.linalg.norm(rest - self.basis @ along))
        values, vectors = np.linalg.eigh(self.curvature)
        if not values.size or values[-1] <= 0.0:
            return (np.inf if values.size else 0.0), off
        values = np.maximum(values, 1e-14 * values[-1])
        return 0.5 * float(np.sum((vectors.T @ along) ** 2 / values)), off

    def find_descent(self, least: float) -> np.ndarray | None:
        """Return a direction in which f falls by curvature, by more than ``least`` for a step."""
        if not self.unique:
            # Multipliers are not unique: others may balance the curvature.
            return None
        way = self._find_lowest(self.basis, self.curvature, least)
        if way is not None or not np.any(self.weak):
            return None if way is None else self.unit * way
        # Limits without a multiplier may be left, towards their inside.
        basis, _ = _null_space(self.rows[self.held & ~self.weak])
        curvature = basis.T @ self.H @ basis
        inward = np.where(self.upper, -1.0, 1.0)[:, None] * self.rows
        inward = inward[self.weak] / np.linalg.norm(inward[self.weak], axis=1)[:, None]
        lowest = self._find_lowest(basis, curvature, least)
        ways = [*([] if lowest is None else [lowest]), np.sum(inward, axis=0), *inward]
        ways = [basis @ (basis.T @ way) for way in ways]
        for way, sign in product(ways, (1.0, -1.0)):
            step = sign * way / max(np.linalg.norm(way), 1e-6)
            if np.all(inward @ step >= -1e-9) and step @ self.H @ step < -2.0 * least:
                return self.unit * step
        return None

    def _find_lowest(
        self, basis: np.ndarray, curvature: np.ndarray, least: float
    ) -> np.ndarray | None:
        """Return the direction of most negative curvature, if there is one."""
        if not basis.shape[1]:
            return None
        values, vectors = np.linalg.eigh(curvature)
        noise = 1e-12 * float(np.abs(self.H).max(initial=0.0))
        return basis @ vectors[:, 0] if values[0] < -2.0 * max(least, noise) else None


def _null_space(rows: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return an orthonormal basis of what rows do not see, and whether the rows are independent."""
    n = rows.shape[1]
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows[lengths > 0.0] / lengths[lengths > 0.0][:, None]
    if not len(rows):
        return np.eye(n), True
    _, values, transposed = np.linalg.svd(rows, full_matrices=True)
    rank = int(np.sum(values > RANK * values[0]))
    return transposed[rank:].T, rank == len(rows)


def _ran_away(at: _Point, tol: float) -> bool:
    """Return whether unknowns are so far from their start that f does not depend on them any more.

    They are multiplied, each alone and all together, and nothing changes.
    """
    task = at.task
    growth = np.abs(at.x) / np.maximum(1.0, np.abs(task.start))
    alone = np.eye(growth.size, dtype=bool)[growth > FAR]
    together = (growth > far for far in (FAR, FAR**2, FAR**4))
    for group in filter(np.any, (*alone, *together)):
        sides = [np.where(group, part * at.x, at.x) for part in (0.8, 1.5)]
        values = [task.evaluator.values(side) for side in sides]
        level = all(abs(f - at.f) < tol * (1.0 + abs(at.f)) for f, _ in values)
        if level and all(task.violation(side, g) <= tol for side, (_, g) in zip(sides, values)):
            return True
    return False


class Unboundedness:
    """Finds that the objective of a task falls without end; called with each iteration.

    Where the objective has no minimum, unknowns run along a direction in which it keeps falling.
    Far out on that ray nothing has changed: constraints and bounds hold, and f has fallen in
    proportion. A value at each power of ten says so; solvers would need thousands of iterations.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._last = task.start

    def __call__(self, number: int, x: np.ndarray, fun: float, off: float) -> bool:
        """Return whether f falls without end from x on, as the last step went."""
        if number % EVERY == EVERY - 1:
            self._last = x.copy()
        if number % EVERY or number == 0:
            return False
        step = x - self._last
        size, room = float(np.abs(step).max()), 1.0 + float(np.abs(x).max())
        # Constraints hold as well as they do for numbers of this size.
        if not (RUNNING * room <= size < np.inf and off <= self.task.settings.tol * room):
            return False
        return self._falls(x, fun, step, room)

    def _falls(self, x: np.ndarray, fun: float, step: np.ndarray, room: float) -> bool:
        """Return whether f falls in proportion all the way, within limits."""
        task, reach = self.task, REACH * room / float(np.abs(step).max())
        far = x + reach * step
        # What moves towards a bound will stop there.
        step = np.where((far < task.lower) | (far > task.upper), 0.0, step)
        size, part = float(np.abs(step).max()), 1.0
        slope = float(task.evaluator.slopes(x)[0] @ step)
        if not -slope > 1e-9 * task.settings.tol * (1.0 + abs(fun)):
            return False
        while part <= reach:
            f, g = task.evaluator.values(x + part * step)
            allowed = task.settings.tol * room + ROUNDING * part * size
            if not (f <= fun + FALL * part * slope and violation(g, task.low, task.high) < allowed):
                return False
            part *= 10.0
        return True
