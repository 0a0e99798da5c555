"""How far a solution on a mesh is from what would be flown: errors of each interval.

The interval is flown again from its first node, by many small steps of the Runge-Kutta method of
order 4, with the control of the solution as far as its bounds allow it. What differs from the
solution, in the middle and at the end of the interval, is its error.

A control that switches within an interval (bang-bang) is something that no polynomial shows: the
equations hold, and still the states are off, because the switch is somewhere else. There the
interval is flown a second time, with a step that has the same mean.

Symbols: s in [0, 1] along an interval, m mean controls of intervals.

Meshes made finer where the error is largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from archimedes.optimize.optimal_control.solution import ControlSolution

__all__ = ["mesh_errors", "refined"]

#: States count as at least this part of the size that guess and bounds give them.
LEAST_SIZE = 1e-5
#: A control switches to or from a bound (as nearly as this part of its range) where it changes
#: this many times faster than in the intervals beside, by at least this part of its range.
AT_BOUND, FASTER, PART = 0.02, 4.0, 0.05
#: Steps that differ from twice as many by more than this part of the error are too long for it.
TRUSTED = 0.2


def mesh_errors(solution: ControlSolution) -> np.ndarray:
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
    bounds = solution.control_bounds()
    flown = _flown(solution, size, np.full(len(h), 0.5), means, means, None, bounds)
    found = np.where(np.isnan(flown), (integrals / size).max(axis=1), flown)
    # A control that is linear between nodes takes two intervals to switch.
    reach = 2 if solution.transcription.scheme.control_points == (0.0, 1.0) else 1
    for k in range(means.shape[1]):
        edges = (bounds[0][k], bounds[1][k])
        extent = float(np.ptp(U[:, k]))
        where, at, before, after = _switches(mesh, means[:, k], extent, reach, edges)
        if np.any(where):
            first, second = means.copy(), means.copy()
            first[:, k], second[:, k] = before, after
            flown = _flown(solution, size, at, first, second, k, bounds)
            found = np.where(where, np.fmax(found, flown), found)
    return found


def _switches(
    mesh: np.ndarray, m: np.ndarray, extent: float, reach: int, edges: tuple[float, float]
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
    at_bound = np.minimum(np.abs(m - edges[0]), np.abs(m - edges[1])) <= AT_BOUND * extent
    sudden = (slope > FASTER * beside) & (np.abs(change) > PART * extent)
    where[k] = sudden & (at_bound[k - 1] | at_bound[k + 1])
    at[k] = np.where(where[k], (m[k + 1] - m[k]) / np.where(change == 0.0, 1.0, change), 0.5)
    return where, at.clip(0.0, 1.0), before, after


def _flown(
    solution: ControlSolution,
    size: np.ndarray,
    at: Any,
    first: Any,
    second: Any,
    k: int | None,
    bounds: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return by how much intervals differ from what is flown; nan where that cannot be told.

    Control k is ``first`` up to ``at`` and ``second`` from there on; others, or all if k is None,
    are those of the solution within their bounds.
    """
    step = np.zeros(len(bounds[0])) if k is None else (np.arange(len(bounds[0])) == k) * 1.0
    fine, coarse, shown = solution.fly_again(at, first, second, step, *bounds)
    with np.errstate(invalid="ignore", over="ignore"):
        off = (np.abs(fine - shown) / size).max(axis=(1, 2))
        doubt = (np.abs(fine - coarse) / size).max(axis=(1, 2))
        known = np.isfinite(off) & (doubt <= TRUSTED * off + 1e-12)
    return np.where(known, off, np.nan)


#: An interval is cut into at most this many at a time.
MOST = 4


def refined(solution: Any, tol: float, order: int) -> np.ndarray | None:
    """Return a mesh on which errors should be below ``tol``, or None if they are.

    An interval whose error is e is cut into (e / tol)^(1/(order + 1)) parts, at most ``MOST``.
    """
    if not tol > 0:
        raise ValueError(f"mesh_tol = {tol} must be positive")
    errors, mesh = solution.errors, solution.mesh
    if np.all(errors <= tol):
        return None
    wanted = np.ceil((np.maximum(errors, 1e-300) / tol) ** (1.0 / (order + 1)))
    parts = np.clip(wanted, 1, MOST).astype(int)
    parts = np.where((errors > tol) & (parts < 2), 2, parts)
    pieces = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(mesh[:-1], mesh[1:], parts)]
    return np.append(np.concatenate(pieces), 1.0)
