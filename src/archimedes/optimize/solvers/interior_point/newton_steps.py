"""Newton steps of the barrier problem, and how far a point is from its solution.

Equation and section numbers: Waechter, Biegler, Math. Program. 106, 2006. The loops over
unknowns and sides are native (``point_loops.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.optimize.problems.tasks import Task
from archimedes.optimize.solvers.interior_point.banded_system import Care
from archimedes.optimize.solvers.interior_point.barrier import barrier
from archimedes.optimize.solvers.interior_point.scaled_problem import ScaledProblem

__all__ = ["LineSearchFailed", "NewtonSteps", "Point", "Step", "Trial"]

S_MAX, LARGEST_SHIFT, DAMPED = 100.0, 1e20, 1e-2
SMALL_MULTIPLIER, MOST_MULTIPLIER = 10.0, 1e3
#: Errors below this many tolerances want exact steps.
NEAR = 1e3
FIRST_MU, FIRST_SHIFT = 0.1, 1e-4
#: The curvature of a slack that has no limits.
UNLIMITED = 1e-8


class LineSearchFailed(Exception):
    """No step is acceptable: feasibility would have to be restored first."""


class Trial(NamedTuple):
    """A point and its values: ``d`` distances to the sides, ``c`` what is left of constraints."""

    w: np.ndarray
    x: np.ndarray
    d: np.ndarray
    f: float
    c: np.ndarray
    #: The sum and the largest of abs(c), and the largest of the unscaled constraints.
    total: float
    most: float
    unscaled: float
    #: The barrier function without its weight.
    barrier: float
    #: The largest of abs(w).
    size: float


class Point(NamedTuple):
    """A trial that was accepted, and what is known there; lam are of the scaled constraints."""

    trial: Trial
    lam: np.ndarray
    z: np.ndarray
    gradient: np.ndarray
    #: Gradient of the Lagrangian without the bounds' part.
    pull: np.ndarray
    #: What ``error`` is made of: the part without mu, least and largest products d z, their scale.
    parts: tuple[float, float, float, float]


class Step(NamedTuple):
    """A Newton step (dw, dlam) and what a line search wants to know of it."""

    dw: np.ndarray
    dlam: np.ndarray
    #: Slope of the barrier function along it.
    slope: float
    #: The largest part of a distance that a whole step takes away.
    falls: float
    #: Its largest part, relative to the unknowns.
    size: float


class NewtonSteps(ScaledProblem):
    """Points and the steps from them."""

    def __init__(self, task: Task, loops: Any) -> None:
        super().__init__(task, loops)
        self.mu = task.settings.more.get("mu_init", FIRST_MU)
        #: The last shift of H that was needed, and the one in use.
        self.shift = self.shift_now = 0.0
        #: The least shift: steps that had to be shortened are made of more convex problems.
        self.damping = 0.0
        self.count = self.n + self.slacks
        bounded = np.isin(np.arange(self.count), self.bounds.at)
        self.unlimited = np.flatnonzero(~bounded & (np.arange(self.count) >= self.n))
        self._bind()

    def _bind(self) -> None:
        """Give the native functions what is the same in all calls."""
        bounds, system, loops = self.bounds, self.system, self.loops
        self._out, self._room = np.zeros(5), np.zeros(self.count)
        at, away, rows = bounds.at, bounds.away, self.inequalities
        m, n, slacks, sides = self.structure.m, self.n, self.slacks, bounds.count
        self._move = loops.trial.bind(
            *(self.kept, self.fixed, at, bounds.edge, away),
            *(n, self.count, self.fixed.size, sides),
        )
        scales = (self.row_scale, self.target)
        self._constrain = loops.constraints.bind(*scales, rows, m, n, slacks)
        A = (system.jac, system.columns, system.starts)
        self._balance = loops.balance.bind(*A, rows, at, away, m, n, slacks, sides)
        self._curve = loops.curvature.bind(at, sides, self.count)
        self._aim = loops.right_side.bind(at, away, rows, m, n, slacks, sides)
        self._look = loops.along.bind(at, away, rows, n, slacks, sides)
        self._raise = loops.multipliers.bind(at, away, m, sides)
        self._slope = loops.scaled_gradient.bind(self.kept, n, slacks)
        self._no_D = np.zeros(m)
        self._no_D.setflags(write=False)

    def trial(self, w: np.ndarray, dw: np.ndarray, alpha: float) -> Trial:
        """Evaluate what a line search looks at, at w + alpha dw."""
        new, x = np.empty(self.count), np.empty(self.fixed.size)
        d, c, out = np.empty(self.bounds.count), np.empty(self.structure.m), self._out
        self._move(w, dw, alpha, new, x, d, out)
        phi, size = barrier(*out[:3].tolist()), float(out[3])
        # Nobody may change it, so that nobody copies it.
        x.setflags(write=False)
        f, g = self.evaluator.values(x)
        self._constrain(g, new, c, out)
        total, most, unscaled = out[:3].tolist()
        return Trial(new, x, d, f * self.f_scale, c, total, most, unscaled, phi, size)

    def point(self, trial: Trial, lam: np.ndarray, z: np.ndarray) -> Point:
        """Evaluate slopes at a point."""
        raw, parts = self.evaluator.slope_parts(trial.x)
        gradient = np.empty(self.count)
        self._slope(self.f_scale, raw, gradient)
        self.system.take_jacobian(parts, self.row_scale)
        return self.balanced(trial, lam, z, gradient)

    def balanced(self, trial: Trial, lam: np.ndarray, z: np.ndarray, gradient: np.ndarray) -> Point:
        """Return a point with these multipliers; the Jacobian there was taken."""
        pull, out = np.empty(self.count), self._out
        self._balance(gradient, lam, z, trial.d, pull, self._room, out)
        dual, price, total, least, most = out.tolist()
        sides = z.size
        s_d = max(S_MAX, (price + total) / max(sides + lam.size, 1))
        s_c = max(S_MAX, total / max(sides, 1))
        # A number that is none stays one.
        fixed = max(dual * S_MAX / s_d, trial.most)
        return Point(trial, lam, z, gradient, pull, (fixed, least, most, S_MAX / s_c))

    def first(self) -> Point:
        """Return the start (3.6), with multipliers by least squares unless they are given."""
        task = self.task
        start = task.start[self.kept]
        warm = task.lam_g is not None
        push = 1e-9 if warm else 1e-2
        _, g = self.evaluator.values(task.start)
        slack = (g * self.row_scale)[self.inequalities]
        w = self.bounds.inside(np.concatenate([start, slack]), push, push)
        trial = self.trial(w, np.zeros(self.count), 0.0)
        if warm:
            return self._warm(trial)
        at = self.point(trial, np.zeros(self.structure.m), np.ones(self.bounds.count))
        if self.structure.m:
            at = self.balanced(trial, self._least_squares(at), at.z, at.gradient)
        return at

    def _warm(self, trial: Trial) -> Point:
        task = self.task
        assert task.lam_g is not None
        self.mu = max(task.settings.tol, 1e-9)
        lam = task.lam_g * self.f_scale / self.row_scale
        lam_x = np.zeros(self.n) if task.lam_x is None else task.lam_x[self.kept] * self.f_scale
        both = np.concatenate([lam_x, lam[self.inequalities]])
        z = np.maximum(-self.bounds.towards(both), self.mu / trial.d)
        return self.point(trial, lam, z)

    def _least_squares(self, at: Point) -> np.ndarray:
        """Return multipliers that balance the gradient best.

        Where equations are almost dependent these are large and of no use: then the price of
        large ones is counted too.
        """
        self.system.load()
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
        return self.system.solve(right, rc, Care.PLAIN)[1]

    def error(self, at: Point, mu: float) -> float:
        """Return how far the conditions of a minimum of the barrier problem are off (eq. 5)."""
        fixed, least, most, scale = at.parts
        gap = max(most - mu, mu - least) if self.bounds.count else 0.0
        return max(fixed, gap * scale)

    def factored(self, at: Point) -> np.ndarray:
        """Factor the system at a point, with H shifted until it is convex enough (3.1)."""
        lam = at.lam * self.row_scale
        self.system.load(self.evaluator.curvature_parts(at.trial.x, self.f_scale, lam))
        sigma = np.empty(self.count)
        self._curve(at.z, at.trial.d, sigma)
        # A slack without limits follows its constraint for next to nothing.
        sigma[self.unlimited] = UNLIMITED
        shift, first = self.damping, True
        while not self.system.factor(sigma[: self.n] + shift, self._slack_part(sigma, shift)):
            if shift <= self.damping:
                shift = FIRST_SHIFT if self.shift == 0.0 else max(1e-20, self.shift / 3.0)
                shift = max(shift, 10.0 * self.damping)
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
        if not self.slacks:
            return self._no_D
        D = np.zeros(self.structure.m)
        D[self.inequalities] = 1.0 / (sigma[self.n :] + shift)
        return D

    def care(self, at: Point) -> Care:
        """Return how exact a step from here need be: far away the next one does better anyway."""
        near = self.error(at, 0.0) <= NEAR * self.task.settings.tol
        return Care.REFINED if near else Care.PLAIN

    def direction(self, at: Point, sigma: np.ndarray, mu: float, c: np.ndarray) -> Step:
        """Return the Newton step of the barrier problem, for constraints c."""
        here, shift, out = at.trial, self.shift_now, self._out
        slope, r, rc = np.empty(self.count), np.empty(self.count), np.empty(c.size)
        self._aim(at.pull, here.d, c, sigma, shift, mu, slope, r, rc)
        dw, dlam, left = self.system.solve(r, rc, self.care(at))
        if not left < 1e-3:
            raise LineSearchFailed
        self._look(dw, dlam, r, sigma, shift, at.gradient, slope, here.d, here.w, out)
        return Step(dw, dlam, *out[:3].tolist())
