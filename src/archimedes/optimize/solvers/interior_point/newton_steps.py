"""Newton steps of the barrier problem, and how far a point is from its solution.

Equation and section numbers: Waechter, Biegler, Math. Program. 106, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archimedes.optimize.problems.tasks import Task
from archimedes.optimize.solvers.interior_point.barrier import Multiplied
from archimedes.optimize.solvers.interior_point.scaled_problem import ScaledProblem

__all__ = ["LineSearchFailed", "NewtonSteps", "Point"]

S_MAX, LARGEST_SHIFT, MOST_MULTIPLIER, DAMPED = 100.0, 1e20, 1e3, 1e-2
FIRST_MU = 0.1


class LineSearchFailed(Exception):
    """No step is acceptable: feasibility would have to be restored first."""


@dataclass
class Point:
    """A point and what is known there; lam are multipliers of the scaled constraints."""

    w: np.ndarray
    lam: np.ndarray
    sides: Multiplied
    f: float
    c: np.ndarray
    gradient: np.ndarray
    entries: np.ndarray
    #: Gradient of the Lagrangian without the bounds' part.
    pull: np.ndarray
    #: What ``error`` is made of, once it was asked for.
    parts: tuple[float, float, float, float] | None = None
    #: The gradient of the barrier terms, and for which weight.
    barrier: tuple[float, np.ndarray] | None = None


class NewtonSteps(ScaledProblem):
    """Points and the steps from them."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.mu = task.settings.more.get("mu_init", FIRST_MU)
        #: The last shift of H that was needed, and the one in use.
        self.shift = self.shift_now = 0.0
        #: Whether steps are those of the equations as they are, not relaxed by delta.
        self.exact = False

    def point(self, w: np.ndarray, lam: np.ndarray, zl: np.ndarray, zh: np.ndarray) -> Point:
        """Evaluate a point."""
        f, c = self.values(w)
        gradient, entries = self.slopes(w)
        self.system.take_jacobian(entries)
        pull = gradient + self.transposed(lam)
        sides = Multiplied(*self.bounds.distances(w), zl, zh)
        return Point(w, lam, sides, f, c, gradient, entries, pull)

    def first(self) -> Point:
        """Return the start (3.6), with multipliers by least squares unless they are given."""
        task = self.task
        start = task.start[self.kept]
        warm = task.lam_g is not None
        push = 1e-9 if warm else 1e-2
        _, g = self.evaluator.values(task.start)
        slack = (g * self.row_scale)[self.inequalities]
        w = self.bounds.inside(np.concatenate([start, slack]), push, push)
        zl, zh = np.ones(self.bounds.low.size), np.ones(self.bounds.high.size)
        lam = np.zeros(self.structure.m)
        if warm:
            return self._warm(w)
        at = self.point(w, lam, zl, zh)
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
        dl, dh = self.bounds.distances(w)
        zl = np.maximum(-both[self.bounds.at_low], self.mu / dl)
        zh = np.maximum(both[self.bounds.at_high], self.mu / dh)
        return self.point(w, lam, zl, zh)

    def _least_squares(self, at: Point) -> np.ndarray:
        """Return multipliers that balance the gradient best.

        Where equations are almost dependent these are large and of no use: then the price of
        large ones is counted too.
        """
        self.system.load(None)
        plain, damped = (self._balancing(at, price) for price in (0.0, DAMPED))
        most = min(10.0 * np.max(np.abs(damped), initial=0.0), MOST_MULTIPLIER)
        return plain if np.max(np.abs(plain), initial=0.0) <= most else damped

    def _balancing(self, at: Point, price: float) -> np.ndarray:
        D = np.where(self.equal, price, 1.0)
        if not self.system.factor(np.ones(self.n), D):
            return np.zeros(self.structure.m)
        sides = at.sides
        right = -(at.gradient + self.bounds.spread(-sides.zl, sides.zh))
        rc = np.zeros(self.structure.m)
        rc[self.inequalities] = right[self.n :]
        return self.system.solve(right[: self.n], rc, False)[1]

    def error(self, at: Point, mu: float) -> float:
        """Return how far the conditions of a minimum of the barrier problem are off (eq. 5)."""
        if at.parts is None:
            at.parts = self._error_parts(at)
        fixed, least, most, scale = at.parts
        gap = max(most - mu, mu - least) if self.bounds.count else 0.0
        return max(fixed, gap * scale)

    def _error_parts(self, at: Point) -> tuple[float, float, float, float]:
        """Return the part without mu, the least and largest products s z, and their scale."""
        s, count = at.sides, self.bounds.count
        total = float(s.zl.sum() + s.zh.sum())
        s_d = max(S_MAX, (float(np.abs(at.lam).sum()) + total) / max(count + at.lam.size, 1))
        s_c = max(S_MAX, total / max(count, 1))
        dual = np.abs(at.pull + self.bounds.spread(-s.zl, s.zh)).max()
        primal = np.abs(at.c).max() if at.c.size else 0.0
        products = np.concatenate([s.dl * s.zl, s.dh * s.zh])
        least, most = (products.min(), products.max()) if count else (0.0, 0.0)
        return max(float(dual) * S_MAX / s_d, float(primal)), float(least), float(most), S_MAX / s_c

    def factored(self, at: Point) -> np.ndarray:
        """Factor the system at a point, with H shifted until it is convex enough (3.1)."""
        x = self.full(at.w)
        lam = at.lam * self.row_scale
        self.system.load(self.evaluator.curvature(x, self.f_scale, lam))
        s = at.sides
        sigma = self.bounds.spread(s.zl / s.dl, s.zh / s.dh)
        shift, first = 0.0, True
        while not self.system.factor(sigma[: self.n] + shift, self._slack_part(sigma, shift)):
            if shift == 0.0:
                shift = 1e-4 if self.shift == 0.0 else max(1e-20, self.shift / 3.0)
            else:
                shift *= 100.0 if self.shift == 0.0 else 8.0
            first = False
            if shift > LARGEST_SHIFT:
                raise LineSearchFailed
        if not first:
            self.shift = shift
        self.shift_now = shift
        return sigma

    def _slack_part(self, sigma: np.ndarray, shift: float) -> np.ndarray:
        D = np.zeros(self.structure.m)
        D[self.inequalities] = 1.0 / (sigma[self.n :] + shift)
        return D

    def barrier_slope(self, at: Point, mu: float) -> np.ndarray:
        """Return the gradient of the barrier terms."""
        if at.barrier is None or at.barrier[0] != mu:
            s = at.sides
            at.barrier = mu, self.bounds.spread(-mu / s.dl, mu / s.dh)
        return at.barrier[1]

    def direction(
        self, at: Point, sigma: np.ndarray, mu: float, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the Newton step (dw, dlam) of the barrier problem, for constraints c."""
        r = -(at.pull + self.barrier_slope(at, mu))
        below = sigma[self.n :] + self.shift_now
        rc = -c
        rc[self.inequalities] += r[self.n :] / below
        dx, dlam, left = self.system.solve(r[: self.n], rc, self.exact)
        if not left < 1e-3:
            raise LineSearchFailed
        ds = (r[self.n :] + dlam[self.inequalities]) / below
        return np.concatenate([dx, ds]), dlam
