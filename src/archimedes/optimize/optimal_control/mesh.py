"""Meshes: the errors of their intervals, and finer ones where the errors are large.

An interval is flown again from its first node, by many small steps of the Runge-Kutta method of
order 4, with the control of the solution as far as its bounds allow it. What differs from the
solution, in the middle and at the end of the interval, is its error.

A control that switches within an interval (bang-bang) is something that no polynomial shows: the
equations hold, and still the states are off, because the switch is somewhere else. There the
interval is flown a second time, with a step that has the same mean.

Symbols: s in [0, 1] along an interval, m mean controls of intervals.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

import numpy as np

from archimedes.checks import check_positive
from archimedes.typing import ArrayLike

if TYPE_CHECKING:
    from archimedes.optimize.optimal_control.solution import ControlSolution


#: States count as at least this part of the size that guess and bounds give them.
LEAST_SIZE = 1e-5
#: A control switches to or from a bound (as nearly as this part of its range) where it changes
#: this many times faster than in the intervals beside, by at least this part of its range.
AT_BOUND, FASTER, PART = 0.02, 4.0, 0.05
#: Steps that differ from twice as many by more than this part of the error are too long for it.
TRUSTED = 0.2
#: An interval is cut into at most this many at a time.
MOST = 4


def make_mesh(intervals: ArrayLike) -> np.ndarray:
    """Return a mesh from 0 to 1, given as it is or as a number of intervals."""
    try:
        mesh = np.asarray(intervals, dtype=float)
    except (TypeError, ValueError):
        mesh = np.asarray(np.nan)
    if mesh.ndim == 0 and 1 <= mesh < np.inf and mesh == np.round(mesh):
        return np.linspace(0.0, 1.0, int(mesh) + 1)
    is_line = mesh.ndim == 1 and mesh.size >= 2
    if not (is_line and mesh[0] == 0.0 and mesh[-1] == 1.0 and np.all(np.diff(mesh) > 0)):
        raise ValueError(
            f"intervals = {reprlib.repr(intervals)} must be a whole number, at least 1, or a mesh "
            "that rises from 0 to 1"
        )
    return mesh


def refine_mesh(solution: ControlSolution, tol: float) -> np.ndarray | None:
    """Return a mesh on which errors should be below ``tol``, or None if they are.

    An interval whose error is e is cut into (e / tol)^(1/(order + 1)) parts, at most ``MOST``.
    """
    check_positive(tol, "mesh_tol")
    errors, mesh, order = solution.errors, solution.mesh, solution.transcription.scheme.order
    if np.all(errors <= tol):
        return None
    wanted = np.ceil((np.maximum(errors, 1e-300) / tol) ** (1.0 / (order + 1)))
    parts = np.clip(wanted, np.where(errors > tol, 2, 1), MOST).astype(int)
    pieces = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(mesh[:-1], mesh[1:], parts)]
    return np.append(np.concatenate(pieces), 1.0)


def estimate_errors(solution: ControlSolution) -> np.ndarray:
    """Return the largest error of a state in each interval, relative to the state's size."""
    mesh, duration = solution.mesh, solution.tf - solution.t0
    points, weights = np.polynomial.legendre.leggauss(5)
    points, weights = (points + 1) / 2, weights / 2
    h = np.diff(mesh)
    X, rest, U = solution.along((mesh[:-1, None] + h[:, None] * points).ravel())
    size = np.maximum(np.abs(X).max(axis=0), LEAST_SIZE * solution.state_scale)
    # What is left of dx/dt = f along the interpolants (Betts 2010, section 4.7.4): all that is
    # known of intervals that are too stiff to be flown by such steps.
    rest = np.abs(rest).reshape(len(h), len(points), -1)
    integrals = np.einsum("kpi,p->ki", rest, weights) * (h * duration)[:, None]
    means = np.einsum("kpi,p->ki", U.reshape(len(h), len(points), -1), weights)
    flown = _measure_flight(solution, size, np.full(len(h), 0.5), means, means)
    errors = np.where(np.isnan(flown), (integrals / size).max(axis=1), flown)
    # A control that is linear between nodes takes two intervals to switch.
    reach = 2 if solution.transcription.scheme.control_points == (0.0, 1.0) else 1
    for k, (low, high) in enumerate(zip(*solution.control_bounds())):
        extent = float(np.ptp(U[:, k]))
        where, at, before, after = _find_switches(mesh, means[:, k], extent, reach, (low, high))
        if np.any(where):
            first, second = means.copy(), means.copy()
            first[:, k], second[:, k] = before, after
            flown = _measure_flight(solution, size, at, first, second, k)
            errors = np.where(where, np.fmax(errors, flown), errors)
    return errors


def _find_switches(
    mesh: np.ndarray, m: np.ndarray, extent: float, reach: int, bounds: tuple[float, float]
) -> tuple[np.ndarray, ...]:
    """Return in which intervals a control switches, where along them, from and to which values.

    The intervals that it is compared with are ``reach`` intervals away, on both sides.
    """
    n = len(m)
    where, at = np.zeros(n, dtype=bool), np.full(n, 0.5)
    before, after = np.roll(m, 1), np.roll(m, -1)
    k = np.arange(reach + 1, n - reach - 1)
    if k.size == 0 or extent == 0.0:
        return where, at, before, after
    centers = (mesh[1:] + mesh[:-1]) / 2
    slopes = np.abs(np.diff(m) / np.diff(centers))
    change = m[k + 1] - m[k - 1]
    slope = np.abs(change) / (centers[k + 1] - centers[k - 1])
    beside = np.maximum(slopes[k - reach - 1], slopes[k + reach])
    at_bound = np.minimum(np.abs(m - bounds[0]), np.abs(m - bounds[1])) <= AT_BOUND * extent
    sudden = (slope > FASTER * beside) & (np.abs(change) > PART * extent)
    where[k] = sudden & (at_bound[k - 1] | at_bound[k + 1])
    at[k] = np.where(where[k], (m[k + 1] - m[k]) / np.where(change == 0.0, 1.0, change), 0.5)
    return where, at.clip(0.0, 1.0), before, after


def _measure_flight(
    solution: ControlSolution,
    size: np.ndarray,
    at: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    k: int = -1,
) -> np.ndarray:
    """Return by how much intervals differ from what is flown; nan where that cannot be told.

    Control k is ``first`` up to ``at`` and ``second`` from there on; others, or all if k is -1,
    are those of the solution within their bounds.
    """
    bounds = solution.control_bounds()
    step = (np.arange(len(bounds[0])) == k) * 1.0
    fine, coarse, shown = solution.fly(at, first, second, step, *bounds)
    with np.errstate(invalid="ignore", over="ignore"):
        off = (np.abs(fine - shown) / size).max(axis=(1, 2))
        doubt = (np.abs(fine - coarse) / size).max(axis=(1, 2))
        known = np.isfinite(off) & (doubt <= TRUSTED * off + 1e-12)
    return np.where(known, off, np.nan)
