"""Newton steps of the barrier problem, and how far a point is from its solution.

Equation and section numbers: Waechter, Biegler, Math. Program. 106, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archimedes.optimize.problems.tasks import Task
from archimedes.optimize.solvers.interior_point.banded_system import Care
from archimedes.optimize.solvers.interior_point.barrier import barrier
from archimedes.optimize.solvers.interior_point.scaled_problem import ScaledProblem

__all__ = ["LineSearchFailed", "NewtonSteps", "Point", "Trial"]

S_MAX, LARGEST_SHIFT, DAMPED = 100.0, 1e20, 1e-2
SMALL_MULTIPLIER, MOST_MULTIPLIER = 10.0, 1e3
#: Errors below this many tolerances want exact steps.
NEAR = 1e3
FIRST_MU = 0.1


class LineSearchFailed(Exception):
    """No step is acceptable: feasibility would have to be restored first."""


@dataclass
class Trial:
    """A point and its values: ``d`` distances to the sides, ``c`` what is left of constraints."""

    w: np.ndarray
    x: np.ndarray
    d: np.ndarray
    f: float
    c: np.ndarray
    #: The sum and the largest of abs(c).
    total: float
    most: float
    #: The barrier function without its weight.
    barrier: float


@dataclass
class Point:
    """A trial that was accepted, and what is known there; lam are of the scaled constraints."""

    trial: Trial
    lam: np.ndarray
    z: np.ndarray
    gradient: np.ndarray
    #: Gradient of the Lagrangian without the bounds' part.
    pull: np.ndarray
    #: What ``error`` is made of, once it was asked for.
    parts: tuple[float, float, float, float] | None = None
    #: The gradient of the barrier terms, and for which weight.
    barrier_slope: tuple[float, np.ndarray] | None = None


class NewtonSteps(ScaledProblem):
    """Points and the steps from them."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.mu = task.settings.more.get("mu_init", FIRST_MU)
        #: The last shift of H that was needed, and the one in use.
        self.shift = self.shift_now = 0.0
        #: Whether steps are those of the equations as they are, not relaxed by delta.
        self.exact = False

    def trial(self, w: np.ndarray) -> Trial:
        """Evaluate what a line search looks at."""
        x = self.full(w)
        f, c = self.values(w, x)
        d = self.bounds.distances(w)
        if not c.size:
            return Trial(w, x, d, f, c, 0.0, 0.0, barrier(d))
        size = np.abs(c)
        return Trial(w, x, d, f, c, float(size.sum()), float(size.max()), barrier(d))

    def point(self, trial: Trial, lam: np.ndarray, z: np.ndarray) -> Point:
        """Evaluate slopes at a point."""
        gradient, entries = self.slopes(trial.x)
        self.system.take_jacobian(entries)
        return Point(trial, lam, z, gradient, gradient + self.transposed(lam))

    def first(self) -> Point:
        """Return the start (3.6), with multipliers by least squares unless they are given."""
        task = self.task
        start = task.start[self.kept]
        warm = task.lam_g is not None
        push = 1e-9 if warm else 1e-2
        _, g = self.evaluator.values(task.start)
        slack = (g * self.row_scale)[self.inequalities]
        w = self.bounds.inside(np.concatenate([start, slack]), push, push)
        if warm:
            return self._warm(w)
        at = self.point(self.trial(w), np.zeros(self.structure.m), np.ones(self.bounds.count))
        if self.structure.m:
            lam = self._least_squares(at)
            at = replace(at, lam=lam, pull=at.gradient + self.transposed(lam))
        return at

    def _warm(self, w: np.ndarray) -> Point:
        task = self.task
        assert task.lam_g is not None
        self.mu = max(task.settings.tol, 1e-9)
        lam = task.lam_g * self.f_scale / self.row_scale
        lam_x = np.zeros(self.n) if task.lam_x is None else task.lam_x[self.kept] * self.f_scale
        both = np.concatenate([lam_x, lam[self.inequalities]])
        trial = self.trial(w)
        z = np.maximum(-self.bounds.towards(both), self.mu / trial.d)
        return self.point(trial, lam, z)

    def _least_squares(self, at: Point) -> np.ndarray:
        """Return multipliers that balance the gradient best.

        Where equations are almost dependent these are large and of no use: then the price of
        large ones is counted too.
        """
        self.system.load(None)
        plain = self._balancing(at, 0.0)
        size = float(np.abs(plain).max(initial=0.0))
        if size <= SMALL_MULTIPLIER:
            return plain
        damped = self._balancing(at, DAMPED)
        most = min(10.0 * np.abs(damped).max(initial=0.0), MOST_MULTIPLIER)
        return plain if size <= most else damped

    def _balancing(self, at: Point, price: float) -> np.ndarray:
        D = np.where(self.equal, price, 1.0)
        if not self.system.factor(np.ones(self.n), D):
            return np.zeros(self.structure.m)
        right = -(at.gradient + self.bounds.pull(at.z))
        rc = np.zeros(self.structure.m)
        rc[self.inequalities] = right[self.n :]
        return self.system.solve(right[: self.n], rc, Care.PLAIN)[1]

    def error(self, at: Point, mu: float) -> float:
        """Return how far the conditions of a minimum of the barrier problem are off (eq. 5)."""
        if at.parts is None:
            at.parts = self._error_parts(at)
        fixed, least, most, scale = at.parts
        gap = max(most - mu, mu - least) if self.bounds.count else 0.0
        return max(fixed, gap * scale)

    def _error_parts(self, at: Point) -> tuple[float, float, float, float]:
        """Return the part without mu, the least and largest products s z, and their scale."""
        count, z = self.bounds.count, at.z
        total = float(z.sum())
        s_d = max(S_MAX, (float(np.abs(at.lam).sum()) + total) / max(count + at.lam.size, 1))
        s_c = max(S_MAX, total / max(count, 1))
        dual = at.pull
        least = most = 0.0
        if count:
            dual = self.bounds.pull(z)
            dual += at.pull
            products = at.trial.d * z
            least, most = float(products.min()), float(products.max())
        fixed = max(float(np.abs(dual).max()) * S_MAX / s_d, at.trial.most)
        return fixed, least, most, S_MAX / s_c

    def factored(self, at: Point) -> np.ndarray:
        """Factor the system at a point, with H shifted until it is convex enough (3.1)."""
        lam = at.lam * self.row_scale
        self.system.load(self.evaluator.curvature(at.trial.x, self.f_scale, lam))
        sigma = self.bounds.spread(at.z / at.trial.d)
        shift, first = 0.0, True
        while not self.system.factor(sigma[: self.n] + shift, self._slack_part(sigma, shift)):
            if shift == 0.0:
                shift = 1e-4 if self.shift == 0.0 else max(1e-20, self.shift / 3.0)
            else:
                # IPOPT's first shifts grow by 100: but to factor again costs less here.
                shift *= 10.0 if self.shift == 0.0 else 8.0
            first = False
            if shift > LARGEST_SHIFT:
                raise LineSearchFailed
        if not first:
            self.shift = shift
        self.shift_now = shift
        return sigma

    def _slack_part(self, sigma: np.ndarray, shift: float) -> np.ndarray:
        D = np.zeros(self.structure.m)
        if self.slacks:
            D[self.inequalities] = 1.0 / (sigma[self.n :] + shift)
        return D

    def barrier_slope(self, at: Point, mu: float) -> np.ndarray:
        """Return the gradient of the barrier terms."""
        if at.barrier_slope is None or at.barrier_slope[0] != mu:
            at.barrier_slope = mu, self.bounds.pull(mu / at.trial.d)
        return at.barrier_slope[1]

    def care(self, at: Point) -> Care:
        """Return how exact a step from here need be: far away the next one does better anyway."""
        if self.exact:
            return Care.EXACT
        near = self.error(at, 0.0) <= NEAR * self.task.settings.tol
        return Care.REFINED if near else Care.PLAIN

    def direction(
        self, at: Point, sigma: np.ndarray, mu: float, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the Newton step (dw, dlam) of the barrier problem, for constraints c."""
        n = self.n
        r, rc = -(at.pull + self.barrier_slope(at, mu)), -c
        if self.slacks:
            below = sigma[n:] + self.shift_now
            rc[self.inequalities] += r[n:] / below
        dw, dlam, left = self.system.solve(r[:n], rc, self.care(at))
        if not left < 1e-3:
            raise LineSearchFailed
        if self.slacks:
            dw = np.concatenate([dw, (r[n:] + dlam[self.inequalities]) / below])
        return dw, dlam
