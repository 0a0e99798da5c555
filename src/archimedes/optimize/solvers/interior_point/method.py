"""A primal-dual interior-point method with a filter line search, on banded linear systems.

Symbols as in ``barrier.py`` and ``banded_system.py``; f, g scaled so that no slope at the start is
above 100. The method is that of IPOPT (Waechter, Biegler, Math. Program. 106, 2006; numbers in
comments are its sections); where its line search fails, IPOPT itself goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archimedes.optimize.problems.statuses import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.banded_system import BandedSystem
from archimedes.optimize.solvers.interior_point.barrier import Bounds, Multiplied, longest_dual
from archimedes.optimize.solvers.interior_point.chains import chain_of
from archimedes.optimize.solvers.interior_point.filter import Filter

__all__ = ["InteriorPoint", "LineSearchFailed"]

KAPPA_EPS, KAPPA_MU, THETA_MU, KAPPA_SIGMA, S_MAX = 10.0, 0.2, 1.5, 1e10, 100.0
MAX_ITERATIONS, CORRECTIONS, LARGEST_SHIFT = 3000, 4, 1e20
MOST_SLOPE, LEAST_SCALE, MOST_MULTIPLIER = 100.0, 1e-8, 1e3


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


class InteriorPoint:
    """One solve of a task."""

    def __init__(self, task: Task) -> None:
        self.task, self.evaluator = task, task.evaluator
        structure = self.structure = task.evaluator.structure
        free = task.lower < task.upper
        self.chain = chain_of(structure.patterns, free, task.order)
        self.system = BandedSystem(structure, structure.patterns, self.chain)
        self.kept = np.concatenate([self.chain.band, self.chain.border])
        self.n = self.kept.size
        self.equal = task.low == task.high
        self.inequalities = np.flatnonzero(~self.equal)
        self.fixed = np.where(free, 0.0, task.lower)
        self.iterations, self.shift = 0, 0.0
        #: Whether steps are those of the equations as they are, not relaxed by delta; and for
        #: how many iterations convergence has been slow.
        self.exact, self.slow = False, 0
        self.mu = task.settings.more.get("mu_init", 0.1)
        self.nothing = 1e-2 * task.settings.tol

    # -- functions

    def full(self, w: np.ndarray) -> np.ndarray:
        """Return all unknowns of the task."""
        x = self.fixed.copy()
        x[self.kept] = w[: self.n]
        return x

    def _scaling(self, x: np.ndarray) -> None:
        """Choose scales of objective and rows (3.8)."""
        gradient, entries = self.evaluator.slopes(x)
        rows = np.zeros(self.structure.m)
        free = self.chain.place[self.structure.jac_columns] >= 0
        np.maximum.at(rows, self.structure.jac_rows[free], np.abs(entries[free]))
        slope = np.max(np.abs(gradient[self.kept]), initial=0.0)
        self.f_scale = max(LEAST_SCALE, min(1.0, MOST_SLOPE / max(slope, 1e-300)))
        self.row_scale = np.maximum(
            LEAST_SCALE, np.minimum(1.0, MOST_SLOPE / np.maximum(rows, 1e-300))
        )
        self.entry_scale = self.row_scale[self.structure.jac_rows]
        low, high = self.task.low * self.row_scale, self.task.high * self.row_scale
        self.target = np.where(self.equal, low, 0.0)
        relax = 1e-10
        low_w = np.concatenate([self.task.lower[self.kept], low[self.inequalities]])
        high_w = np.concatenate([self.task.upper[self.kept], high[self.inequalities]])
        low_w -= np.where(np.isfinite(low_w), relax * np.maximum(1.0, np.abs(low_w)), 0.0)
        high_w += np.where(np.isfinite(high_w), relax * np.maximum(1.0, np.abs(high_w)), 0.0)
        self.bounds = Bounds(low_w, high_w)

    def values(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the scaled objective and what is left of the constraints."""
        f, g = self.evaluator.values(self.full(w))
        c = g * self.row_scale - self.target
        c[self.inequalities] -= w[self.n :]
        return f * self.f_scale, c

    def slopes(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient in w and the entries of the Jacobian, scaled."""
        gradient, entries = self.evaluator.slopes(self.full(w))
        found = np.zeros(w.size)
        found[: self.n] = gradient[self.kept] * self.f_scale
        return found, entries * self.entry_scale

    def transposed(self, lam: np.ndarray) -> np.ndarray:
        """Return the product of the Jacobian's transpose and lam, slacks included."""
        return np.concatenate([self.system.At @ lam, -lam[self.inequalities]])

    # -- steps

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
        self._scaling(task.start)
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
        """Return multipliers that balance the gradient best, or zeros if they are large."""
        system = self.system
        system.load(None)
        D = np.where(self.equal, 1e-2, 1.0)
        if not system.factor(np.ones(self.n), D):
            return np.zeros(self.structure.m)
        sides = at.sides
        right = -(at.gradient + self.bounds.spread(-sides.zl, sides.zh))
        rc = np.zeros(self.structure.m)
        rc[self.inequalities] = right[self.n :]
        _, lam, left = system.solve(right[: self.n], rc, False)
        good = left < 1e-5 and np.max(np.abs(lam)) <= MOST_MULTIPLIER
        return lam if good else np.zeros_like(lam)

    def error(self, at: Point, mu: float) -> float:
        """Return how far the conditions of a minimum of the barrier problem are off (eq. 5)."""
        s = at.sides
        total = float(s.zl.sum() + s.zh.sum())
        count = self.bounds.count
        s_d = max(S_MAX, (float(np.abs(at.lam).sum()) + total) / max(count + at.lam.size, 1))
        s_c = max(S_MAX, total / max(count, 1))
        dual = np.max(np.abs(at.pull + self.bounds.spread(-s.zl, s.zh)), initial=0.0)
        gap = max(
            np.max(np.abs(s.dl * s.zl - mu), initial=0.0),
            np.max(np.abs(s.dh * s.zh - mu), initial=0.0),
        )
        primal = np.max(np.abs(at.c), initial=0.0)
        return float(max(dual * S_MAX / s_d, primal, gap * S_MAX / s_c))

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

    def direction(
        self, at: Point, sigma: np.ndarray, mu: float, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the Newton step (dw, dlam) of the barrier problem, for constraints c."""
        s = at.sides
        r = -(at.pull + self.bounds.spread(-mu / s.dl, mu / s.dh))
        below = sigma[self.n :] + self.shift_now
        rc = -c
        rc[self.inequalities] += r[self.n :] / below
        dx, dlam, left = self.system.solve(r[: self.n], rc, self.exact)
        if not left < 1e-3:
            raise LineSearchFailed
        ds = (r[self.n :] + dlam[self.inequalities]) / below
        return np.concatenate([dx, ds]), dlam

    def step(self, at: Point, search: Filter) -> Point:
        """Make one iteration."""
        mu, bounds, s = self.mu, self.bounds, at.sides
        sigma = self.factored(at)
        part = max(0.99, 1.0 - mu)
        try:
            dw, dlam, w, alpha = self.moved(at, sigma, part, search)
        except LineSearchFailed:
            if not self.exact:
                raise
            self.exact, self.slow = False, -10
            dw, dlam, w, alpha = self.moved(at, sigma, part, search)
        dzl = mu / s.dl - s.zl - s.zl / s.dl * dw[bounds.at_low]
        dzh = mu / s.dh - s.zh + s.zh / s.dh * dw[bounds.at_high]
        beta = min(longest_dual(s.zl, dzl, part), longest_dual(s.zh, dzh, part))
        lam = at.lam + alpha * dlam
        dl, dh = bounds.distances(w)
        zl = np.clip(s.zl + beta * dzl, mu / (KAPPA_SIGMA * dl), KAPPA_SIGMA * mu / dl)
        zh = np.clip(s.zh + beta * dzh, mu / (KAPPA_SIGMA * dh), KAPPA_SIGMA * mu / dh)
        new = self.point(w, lam, zl, zh)
        self.watch(at, new, alpha)
        return new

    def moved(self, at: Point, sigma: np.ndarray, part: float, search: Filter) -> Any:
        """Return the step (dw, dlam), the next w and how much of the step leads there."""
        c = at.c
        if self.theta(c) == 0.0:
            c = np.zeros_like(c)
            # Not to be left again for little.
            self.nothing = 1e-1 * self.task.settings.tol
        dw, dlam = self.direction(at, sigma, self.mu, c)
        self.prices = at.lam + dlam
        return dw, dlam, *self.search(at, sigma, dw, part, search)

    def watch(self, at: Point, new: Point, alpha: float) -> None:
        """Full steps that gain little are a sign of equations that are almost dependent."""
        plain = alpha == 1.0 and self.shift_now == 0.0
        gained = self.error(new, self.mu) <= 0.8 * self.error(at, self.mu)
        self.slow = self.slow + 1 if plain and not gained else min(self.slow, 0)
        self.exact = self.exact or self.slow >= 5

    def theta(self, c: np.ndarray) -> float:
        """Return the violation as the filter counts it: zero if it is far below the tolerance.

        Where equations are almost dependent, what is left would keep the multipliers moving. Its
        price is counted in the barrier function instead.
        """
        size = np.abs(c)
        return float(size.sum()) if np.max(size, initial=0.0) > self.nothing else 0.0

    def measure(self, w: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return the violation, the barrier function and the constraints at a trial point."""
        f, c = self.values(w)
        theta, phi = self.theta(c), f + self.mu * self.bounds.barrier(w)
        if theta == 0.0:
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
        phi = at.f + mu * bounds.barrier(at.w) + (self.prices @ at.c if theta == 0.0 else 0.0)
        slope = float((at.gradient + bounds.spread(-mu / s.dl, mu / s.dh)) @ dw)
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

    # -- the loop

    def run(self) -> Answer:
        """Iterate to the end."""
        settings, monitor = self.task.settings, self.task.monitor
        at = self.first()
        search = Filter(float(np.abs(at.c).sum()))
        least = min(settings.tol, 1e-4) / (KAPPA_EPS + 1.0)
        limit = settings.maxiter or MAX_ITERATIONS
        self.at, good = at, 0
        while True:
            if self.told(at):
                return self.answer(at, monitor.stopped or Status.INTERRUPTED)
            error = self.error(at, 0.0)
            if error <= settings.tol and self.violation(at) <= max(1e-4, settings.tol):
                return self.answer(at, Status.SOLVED)
            good = good + 1 if error <= 1e-6 else 0
            if good >= 15:
                return self.answer(at, Status.ACCEPTABLE)
            if self.iterations >= limit:
                return self.answer(at, Status.ITERATION_LIMIT)
            if np.max(np.abs(at.w), initial=0.0) > 1e20:
                return self.answer(at, Status.UNBOUNDED)
            while self.mu > least and self.error(at, self.mu) <= KAPPA_EPS * self.mu:
                self.mu = max(least, min(KAPPA_MU * self.mu, self.mu**THETA_MU))
                search.clear()
            at = self.at = self.step(at, search)
            self.iterations += 1

    def told(self, at: Point) -> bool:
        """Note the iteration; returns whether to stop."""
        x = self.full(at.w)
        f, g = self.evaluator.values(x)
        return not self.task.monitor.after(self.iterations, x, f, self.task.violation(x, g))

    def violation(self, at: Point) -> float:
        """Return the largest violation of an unscaled constraint."""
        return float(np.max(np.abs(at.c) / self.row_scale, initial=0.0))

    def answer(self, at: Point, status: Status) -> Answer:
        """Return a point in the task's terms."""
        lam_g = at.lam * self.row_scale / self.f_scale
        both = self.bounds.spread(-at.sides.zl, at.sides.zh) / self.f_scale
        lam_x = np.zeros(self.fixed.size)
        lam_x[self.kept] = both[: self.n]
        x = self.full(at.w)
        held = ~(self.task.lower < self.task.upper)
        if np.any(held):
            gradient, entries = self.evaluator.slopes(x)
            every = np.bincount(
                self.structure.jac_columns,
                entries * lam_g[self.structure.jac_rows],
                minlength=x.size,
            )
            lam_x[held] = -(gradient + every)[held]
        best = self.task.monitor.best
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT) and best is not None:
            x = best
        return Answer(np.clip(x, self.task.lower, self.task.upper), lam_g, lam_x, status, self.iterations)
