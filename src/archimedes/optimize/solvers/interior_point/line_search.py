"""The line search by a filter, steps corrected for curvature, and the way back to feasibility.

Section numbers: Waechter, Biegler, Math. Program. 106, 2006.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.optimize.problems.tasks import Task
from archimedes.optimize.solvers.interior_point.filter import Filter
from archimedes.optimize.solvers.interior_point.newton_steps import (
    LineSearchFailed,
    NewtonSteps,
    Point,
)

__all__ = ["LineSearch"]

CORRECTIONS, RESTORATIONS = 4, 30
#: Restoration ends when this part of the violation is left.
ENOUGH = 0.1


class LineSearch(NewtonSteps):
    """How far to go along a step."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        #: A violation below this is as good as none; what is left of the constraints is then
        #: counted with these prices in the barrier function.
        self.nothing = 1e-2 * task.settings.tol
        self.prices: np.ndarray | None = None

    def theta(self, c: np.ndarray) -> float:
        """Return the violation as the filter counts it: zero if it is far below the tolerance.

        Where equations are almost dependent, what is left would keep the multipliers moving. Its
        price is counted in the barrier function instead.
        """
        if not c.size:
            return 0.0
        size = np.abs(c)
        return float(size.sum()) if size.max() > self.nothing else 0.0

    def moved(self, at: Point, sigma: np.ndarray, part: float, search: Filter) -> Any:
        """Return the step (dw, dlam), the next w and how much of the step leads there."""
        c, none = at.c, self.theta(at.c) == 0.0
        if none:
            c = np.zeros_like(c)
            # Not to be left again for little.
            self.nothing = 1e-1 * self.task.settings.tol
        dw, dlam = self.direction(at, sigma, self.mu, c)
        self.prices = at.lam + dlam if none else None
        return dw, dlam, *self.search(at, sigma, dw, part, search)

    def measure(self, w: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return the violation, the barrier function and the constraints at a trial point."""
        f, c = self.values(w)
        theta, phi = self.theta(c), f + self.mu * self.bounds.barrier(w)
        if self.prices is not None:
            phi += float(self.prices @ c)
        if not (np.isfinite(theta) and np.isfinite(phi)):
            return np.inf, np.inf, c
        return theta, phi, c

    def search(
        self, at: Point, sigma: np.ndarray, dw: np.ndarray, part: float, search: Filter
    ) -> tuple[np.ndarray, float]:
        """Return the next w and the step's length (2.3, 2.4)."""
        bounds, s, mu = self.bounds, at.sides, self.mu
        theta = self.theta(at.c)
        phi = at.f + mu * bounds.barrier(at.w)
        if self.prices is not None:
            phi += float(self.prices @ at.c)
        slope = float((at.gradient + self.barrier_slope(at, mu)) @ dw)
        longest = alpha = bounds.longest(s, dw, part)
        if np.max(np.abs(dw) / (1.0 + np.abs(at.w))) < 10 * 2.2e-16:
            return at.w + alpha * dw, alpha
        shortest = search.shortest(theta, slope)
        while alpha > shortest:
            w = at.w + alpha * dw
            *new, c = self.measure(w)
            if search.accepts(theta, phi, slope, alpha, (new[0], new[1])):
                break
            if alpha == longest and new[0] >= theta and np.isfinite(new[0]):
                found = self.corrected(at, sigma, alpha, c, part, search, (theta, phi, slope))
                if found is not None:
                    w, new = found
                    break
            alpha *= 0.5
        else:
            raise LineSearchFailed
        armijo = new[1] - phi <= 1e-8 * alpha * slope + 2.2e-15 * abs(phi)
        if not (search.switching(theta, slope, alpha) and armijo):
            search.add(theta, phi)
        return w, alpha

    def corrected(
        self,
        at: Point,
        sigma: np.ndarray,
        alpha: float,
        c: np.ndarray,
        part: float,
        search: Filter,
        now: tuple[float, float, float],
    ) -> Any:
        """Try steps corrected for the curvature of the constraints (2.4)."""
        theta, phi, slope = now
        total, before = alpha * at.c + c, theta
        for _ in range(CORRECTIONS):
            dw, _ = self.direction(at, sigma, self.mu, total)
            length = self.bounds.longest(at.sides, dw, part)
            w = at.w + length * dw
            *new, c = self.measure(w)
            if search.accepts(theta, phi, slope, alpha, (new[0], new[1])):
                return w, new
            if not new[0] <= 0.99 * before:
                return None
            before, total = new[0], length * total + c
        return None

    def restored(self, at: Point, search: Filter) -> Point:
        """Go towards feasibility, by the shortest steps away from bounds, until the filter agrees.

        The method's own phase of restoration (3.3) is replaced by Gauss-Newton steps.
        """
        before = self.theta(at.c)
        search.add(before, at.f + self.mu * self.bounds.barrier(at.w))
        self.prices = None
        for _ in range(RESTORATIONS):
            at = self.towards_feasible(at)
            theta, phi, _ = self.measure(at.w)
            if theta <= ENOUGH * before and not search.dominates(theta, phi):
                s = at.sides
                at.sides, at.parts = replace(s, zl=self.mu / s.dl, zh=self.mu / s.dh), None
                at.lam = self._least_squares(at)
                at.pull = at.gradient + self.transposed(at.lam)
                return at
        raise LineSearchFailed

    def towards_feasible(self, at: Point) -> Point:
        """Make a step that is short where bounds are near; the violation falls."""
        s, theta = at.sides, self.theta(at.c)
        near = 1.0 + self.bounds.spread(1e-2 / s.dl**2, 1e-2 / s.dh**2)
        self.system.load(None)
        D = np.zeros(self.structure.m)
        D[self.inequalities] = 1.0 / near[self.n :]
        if not self.system.factor(near[: self.n], D):
            raise LineSearchFailed
        dx, dlam, _ = self.system.solve(np.zeros(self.n), -at.c, False)
        dw = np.concatenate([dx, dlam[self.inequalities] / near[self.n :]])
        alpha = self.bounds.longest(s, dw, 0.99)
        for _ in range(20):
            w = at.w + alpha * dw
            if self.measure(w)[0] <= (1.0 - 1e-4 * alpha) * theta:
                return self.point(w, at.lam, s.zl, s.zh)
            alpha *= 0.5
        raise LineSearchFailed
