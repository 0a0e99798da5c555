"""Weighted least squares over parameters, with states at some samples and equations between them.

Unknowns z = [free parameters, states]; residuals r(z) are weighted so that their variance is one,
c(z) = 0 are jumps between segments. Jumps are led to zero by multipliers (augmented Lagrangian:
J. Nocedal, S. Wright, "Numerical optimization", 2nd ed., 17.4), so that bounds are kept by the
least-squares solver all along. The covariance is that of least squares within the jumps'
null space (H. G. Bock, "Recent advances in parameter identification techniques ...", 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.function import compile, jac
from archimedes.optimize import least_squares

__all__ = ["Problem", "Solved", "solve", "variances"]

#: How often multipliers of the jumps are updated, and how small jumps must become.
UPDATES, JUMP = 12, 1e-9
#: What one jump costs against one residual, to begin with.
PRICE = 1e2


@dataclass
class Problem:
    """Functions of z and of weights; which of z are free, and between what.

    ``residuals(z, weights)`` (r,) and ``jumps(z)`` (c,) are plain NumPy.
    """

    residuals: Callable[..., Any]
    jumps: Callable[..., Any] | None
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def __post_init__(self) -> None:
        self.start = np.clip(self.start, self.lower, self.upper)
        self.free = self.lower < self.upper
        jumps = self.jumps

        def both(z: Any, weights: Any, price: Any, multipliers: Any) -> Any:
            r = self.residuals(z, weights)
            if jumps is None:
                return r
            return np.concatenate([r, price * jumps(z) + multipliers])

        self.both, self.slopes = compile(both), jac(both)

    def whole(self, v: Any) -> np.ndarray:
        """Return z for numbers of what is free."""
        z = np.array(self.start)
        z[self.free] = v
        return z


@dataclass(frozen=True)
class Solved:
    """The solution: z, residuals, the Jacobians of residuals and of jumps, how it ended.

    ``variance`` is that of the residuals, None where they themselves say it.
    """

    z: np.ndarray
    residuals: np.ndarray
    slopes: np.ndarray
    jump_slopes: np.ndarray
    cost: float
    iterations: int
    success: bool
    message: str
    variance: float | None = None


def solve(problem: Problem, weights: Any, options: Any = None) -> Solved:
    """Minimise the sum of squares with jumps led to zero."""
    m = 0 if problem.jumps is None else int(np.size(problem.jumps(problem.start)))
    multipliers, price, z = np.zeros(m), PRICE, np.array(problem.start)
    settings = {"ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12, **(options or {})}
    free, iterations, last = problem.free, 0, np.inf
    for _ in range(UPDATES if m else 1):

        def misfit(v: Any, price: float = price, multipliers: Any = multipliers) -> Any:
            return problem.both(problem.whole(v), weights, price, multipliers)

        def slopes(v: Any, price: float = price, multipliers: Any = multipliers) -> Any:
            return problem.slopes(problem.whole(v), weights, price, multipliers)[:, free]

        _check_misfit(np.asarray(misfit(z[free])))
        edges = (problem.lower[free], problem.upper[free])
        found = least_squares(misfit, z[free], jac=slopes, bounds=edges, options=settings)
        z = problem.whole(found.x)
        problem.start = z
        iterations += found.nit
        if not m:
            break
        jump = (np.asarray(misfit(z[free]))[-m:] - multipliers) / price
        size = float(np.max(np.abs(jump)))
        if size <= JUMP * (1.0 + np.max(np.abs(z))):
            break
        multipliers = multipliers + price * jump
        if size > 0.1 * last:  # multipliers alone are too slow: jumps cost more
            price, multipliers = 10.0 * price, multipliers / 10.0
        last = size
    both = np.asarray(problem.both(z, weights, price, multipliers))
    J = np.asarray(problem.slopes(z, weights, price, multipliers))
    count = len(both) - m
    success, message = found.success, found.message
    if m and size > 1e-6 * (1.0 + np.max(np.abs(z))):
        success = False
        message = f"segments do not meet: a jump of {size:.3g} is left; start nearer, or use fewer"
    r = both[:count]
    cost = 0.5 * float(r @ r)
    return Solved(z, r, J[:count], J[count:] / price, cost, iterations, success, message)


def _check_misfit(r: np.ndarray) -> None:
    """Raise where the residuals of the guess have no sum of squares to minimise."""
    remedy = (
        "start nearer to the data, keep parameters where the model is defined with bounds=, or "
        "use multiple_shooting"
    )
    if not np.all(np.isfinite(r)):
        raise ValueError(f"the model gives nan or infinite outputs with p_guess: {remedy}")
    with np.errstate(over="ignore"):
        total = float(r @ r)
    if not np.isfinite(total):
        raise ValueError(
            f"the model diverges with p_guess: its outputs miss the data by up to "
            f"{np.max(np.abs(r)):.3g} times their spread or noise, whose square is no number any "
            f"more: {remedy}, with more segments where there are some"
        )


def variances(solved: Solved, free: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of z, zero where it is not free, and directions nothing determines."""
    J, C = solved.slopes[:, free], solved.jump_slopes[:, free]
    n = J.shape[1]
    basis = np.eye(n)
    if len(C):
        _, sizes, Vt = np.linalg.svd(C)
        rank = int(np.sum(sizes > 1e-12 * max(sizes.max(initial=0.0), 1e-300)))
        basis = Vt[rank:].T
    reduced = J @ basis
    columns = np.linalg.norm(reduced, axis=0)
    columns = np.where(columns > 0.0, columns, 1.0)
    _, sizes, Vt = np.linalg.svd(reduced / columns, full_matrices=False)
    kept = sizes > 1e-10 * max(sizes.max(initial=0.0), 1e-300)
    inverse = np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0)
    root = basis @ ((Vt.T * inverse) / columns[:, None])
    lost = basis @ (Vt[~kept].T / columns[:, None])
    P = np.zeros((len(free), len(free)))
    P[np.ix_(free, free)] = scale * root @ root.T
    blind = np.zeros((len(free), lost.shape[1]))
    blind[free] = lost
    return P, blind
