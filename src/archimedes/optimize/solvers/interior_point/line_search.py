"""The line search by a filter, and steps corrected for curvature.

Section numbers: Waechter, Biegler, Math. Program. 106, 2006.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from archimedes.optimize.problems.tasks import Task
from archimedes.optimize.solvers.interior_point.barrier import longest as longest_step
from archimedes.optimize.solvers.interior_point.filter import Filter
from archimedes.optimize.solvers.interior_point.newton_steps import (
    LineSearchFailed,
    Point,
    Step,
    Trial,
)
from archimedes.optimize.solvers.interior_point.restoration import Restoration

__all__ = ["LineSearch"]

CORRECTIONS = 4
#: Restoration ends when this part of the violation is left.
ENOUGH = 0.1
#: Steps this small, relative to the unknowns, are not searched along.
TINY = 10 * 2.2e-16


class LineSearch(Restoration):
    """How far to go along a step."""

    def __init__(self, task: Task, loops: Any) -> None:
        super().__init__(task, loops)
        #: A violation below this is as good as none; what is left of the constraints is then
        #: counted with these prices in the barrier function.
        self.nothing = 1e-2 * task.settings.tol
        self.prices: np.ndarray | None = None
        #: What part of the step within bounds the last search took.
        self.part_taken = 1.0

    def theta(self, trial: Trial) -> float:
        """Return the violation as the filter counts it: zero if it is far below the tolerance.

        Where equations are almost dependent, what is left would keep the multipliers moving. Its
        price is counted in the barrier function instead.
        """
        return trial.total if trial.most > self.nothing else 0.0

    def moved(
        self, at: Point, sigma: np.ndarray, part: float, search: Filter
    ) -> tuple[Step, Trial, float]:
        """Return the step, the next trial and how much of the step leads there."""
        c, none = at.trial.c, self.theta(at.trial) == 0.0
        if none:
            c = np.zeros_like(c)
            # Not to be left again for little.
            self.nothing = max(self.nothing, 1e-1 * self.task.settings.tol)
        step = self.direction(at, sigma, self.mu, c)
        self.prices = at.lam + step.dlam if none else None
        return step, *self.search(at, sigma, step, part, search)

    def phi(self, trial: Trial) -> float:
        """Return the barrier function."""
        phi = trial.f + self.mu * trial.barrier
        return phi if self.prices is None else phi + float(self.prices @ trial.c)

    def measure(self, trial: Trial) -> tuple[float, float]:
        """Return the violation and the barrier function of a trial, infinite where not finite."""
        theta, phi = self.theta(trial), self.phi(trial)
        good = isfinite(trial.total) and isfinite(phi)
        return (theta, phi) if good else (np.inf, np.inf)

    def search(
        self, at: Point, sigma: np.ndarray, step: Step, part: float, search: Filter
    ) -> tuple[Trial, float]:
        """Return the next trial and the step's length (2.3, 2.4)."""
        here, dw, slope = at.trial, step.dw, step.slope
        theta, phi = self.theta(here), self.phi(here)
        longest = alpha = longest_step(step.falls, part)
        if step.size < TINY:
            return self.trial(here.w, dw, alpha), alpha
        shortest, blocked = search.shortest(theta, slope), False
        while alpha > shortest:
            trial = self.trial(here.w, dw, alpha)
            new = self.measure(trial)
            if search.accepts(theta, phi, slope, alpha, new):
                break
            blocked = search.blocked
            if alpha == longest and new[0] >= theta and np.isfinite(new[0]):
                found = self.corrected(at, sigma, alpha, trial, part, search, (theta, phi, slope))
                if found is not None:
                    trial, new = found
                    break
            alpha *= 0.5
        else:
            raise LineSearchFailed
        search.note(blocked)
        self.part_taken = alpha / longest
        armijo = new[1] - phi <= 1e-8 * alpha * slope + 2.2e-15 * abs(phi)
        if not (search.switching(theta, slope, alpha) and armijo):
            search.add(theta, phi)
        return trial, alpha

    def corrected(
        self,
        at: Point,
        sigma: np.ndarray,
        alpha: float,
        trial: Trial,
        part: float,
        search: Filter,
        now: tuple[float, float, float],
    ) -> tuple[Trial, tuple[float, float]] | None:
        """Try steps corrected for the curvature of the constraints (2.4)."""
        theta, phi, slope = now
        here = at.trial
        total, before = alpha * here.c + trial.c, theta
        for _ in range(CORRECTIONS):
            step = self.direction(at, sigma, self.mu, total)
            length = longest_step(step.falls, part)
            trial = self.trial(here.w, step.dw, length)
            new = self.measure(trial)
            if search.accepts(theta, phi, slope, alpha, new):
                return trial, new
            if not new[0] <= 0.99 * before:
                return None
            before, total = new[0], length * total + trial.c
        return None

    def restored(self, at: Point, search: Filter) -> Point:
        """Go towards feasibility until the filter agrees; raises Infeasible."""
        self.prices = None
        before = self.theta(at.trial)
        search.add(before, self.phi(at.trial))

        def good(trial: Trial) -> bool:
            theta, phi = self.measure(trial)
            return theta <= ENOUGH * before and not search.dominates(theta, phi)

        new = self.nearer(at, good)
        new = new._replace(z=self.mu / new.trial.d)
        return self.balanced(new.trial, self._least_squares(new), new.z, new.gradient)
