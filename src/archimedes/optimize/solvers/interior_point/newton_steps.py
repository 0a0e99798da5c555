"""The barrier problem of a task, its points, and Newton steps from them.

The method works on the free unknowns x in the order of a chain and the slacks s of inequalities,
v = [x, s], with low <= v <= high. The constraints are c(v) = 0 with c = g - low for equations and
g - s for inequalities; f and c are scaled so that no slope at the start is above 100. The *sides*
are the bounds that exist, the lower ones first: d > 0 are the distances of v to them, z >= 0 their
multipliers, mu the barrier's weight.

Equation and section numbers: Waechter, Biegler, Math. Program. 106, 2006. The loops over unknowns
and sides are native (``point_loops.py``).
"""

from __future__ import annotations

from math import inf, log
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from archimedes.optimize.problems.blocks import sum_by_index
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.banded_system import BandedSystem, find_chain
from archimedes.optimize.solvers.interior_point.point_loops import Sides, Slacks

#: Slopes at the start are scaled to at most this, by no less than that.
MOST_SLOPE, LEAST_SCALE = 100.0, 1e-8
#: Bounds are relaxed by this much, so that there is room between them.
RELAXED = 1e-10
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

    v: np.ndarray
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
    #: The largest of abs(v).
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
    """A Newton step (dv, dlam) and what a line search wants to know of it."""

    dv: np.ndarray
    dlam: np.ndarray
    #: Slope of the barrier function along it.
    slope: float
    #: The largest part of a distance that a whole step takes away.
    falls: float
    #: Its largest part, relative to the unknowns.
    size: float


def limit_step(falls: float, part: float) -> float:
    """Return the longest step, at most 1, after which 1 - part of each value is left.

    ``falls`` is the largest part of a value that a whole step takes away.
    """
    return part / falls if falls > part else 1.0


class NewtonSteps:
    """Points of the barrier problem of a task, and the steps from them."""

    def __init__(self, task: Task, loops: SimpleNamespace) -> None:
        self.task, self.evaluator = task, task.evaluator
        structure = self.structure = task.evaluator.structure
        free = task.lower < task.upper
        self.key = (free.tobytes(), None if task.order is None else task.order.tobytes())
        system = structure.prepared.pop(self.key, None)
        if system is None:
            chain = find_chain(structure.patterns, free, task.order)
            system = BandedSystem(structure, chain, loops)
        self.system: BandedSystem = system
        self.free = np.concatenate([system.chain.band, system.chain.border])
        self.is_equation = task.low == task.high
        self.inequalities = np.flatnonzero(~self.is_equation)
        self.n, self.slacks, self.m = self.free.size, self.inequalities.size, structure.m
        self.count = self.n + self.slacks
        self.iterations = 0
        self.mu = task.settings.more.get("mu_init", FIRST_MU)
        #: The last shift of H that was needed, and the one in use.
        self.shift = self.shift_now = 0.0
        #: The least shift: steps that had to be shortened are made of more convex problems.
        self.damping = 0.0
        self._scale(task.start)
        self._bind(loops, np.where(free, 0.0, task.lower))

    def _scale(self, x: np.ndarray) -> None:
        """Choose scales of objective and rows (3.8), and find the sides."""
        gradient, entries = self.evaluator.slopes(x)
        self.system.take_jacobian(entries)
        rows = self.system.find_row_maxima()
        slope = np.max(np.abs(gradient[self.free]), initial=0.0)
        self.f_scale = max(LEAST_SCALE, min(1.0, MOST_SLOPE / max(slope, 1e-300)))
        self.row_scale = np.clip(MOST_SLOPE / np.maximum(rows, 1e-300), LEAST_SCALE, 1.0)
        low, high = self.task.low * self.row_scale, self.task.high * self.row_scale
        self.target = np.where(self.is_equation, low, 0.0)
        low = np.concatenate([self.task.lower[self.free], low[self.inequalities]])
        high = np.concatenate([self.task.upper[self.free], high[self.inequalities]])
        low -= RELAXED * np.maximum(1.0, np.abs(low))
        high += RELAXED * np.maximum(1.0, np.abs(high))
        at_low, at_high = np.flatnonzero(low > -np.inf), np.flatnonzero(high < np.inf)
        self._low, self._high = low, high
        away = np.repeat([1.0, -1.0], [at_low.size, at_high.size])
        self.sides = Sides(np.concatenate([at_low, at_high]), away, away.size)
        self.edges = np.concatenate([low[at_low], high[at_high]])
        bounded = np.isin(np.arange(self.count), self.sides.at)
        self.unlimited = np.flatnonzero(~bounded & (np.arange(self.count) >= self.n))

    def _bind(self, loops: SimpleNamespace, fixed: np.ndarray) -> None:
        """Give the native functions what is the same in all calls."""
        sides, slacks = self.sides, Slacks(self.inequalities, self.n, self.slacks)
        self._out, self._room = np.zeros(5), np.zeros(self.count)
        every, rows = (self.free, fixed, fixed.size), (self.row_scale, self.target, self.m)
        self._move = loops.move_point.bind(*every, *slacks, *sides, self.edges)
        self._constrain = loops.measure_constraints.bind(*rows, *slacks)
        self._balance = loops.measure_balance.bind(*self.system.A, *slacks, *sides)
        self._make_right_side = loops.make_right_side.bind(self.m, *slacks, *sides)
        self._complete_step = loops.complete_step.bind(*slacks, *sides)
        self._update_multipliers = loops.update_multipliers.bind(self.m, *sides)
        # Read-only, so that the system sees that it is the same.
        self._no_D = np.broadcast_to(0.0, self.m)

    # Sides.

    def project(self, dv: np.ndarray) -> np.ndarray:
        """Return how fast the distances to the sides grow along dv."""
        d = dv.take(self.sides.at)
        d *= self.sides.away
        return d

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return (N,): for each of v the sum over its sides."""
        return sum_by_index(self.sides.at, values, self.count)

    def pull_of_bounds(self, z: np.ndarray) -> np.ndarray:
        """Return (N,): -z at lower bounds, z at upper ones, as multipliers pull."""
        return self.spread(-self.sides.away * z)

    @staticmethod
    def limit_by(values: np.ndarray, steps: np.ndarray, part: float = 0.99) -> float:
        """Return the longest step, at most 1, that leaves 1 - part of each value."""
        return limit_step(-float((steps / values).min()) if values.size else 0.0, part)

    def move_inside(self, v: np.ndarray, push: float) -> np.ndarray:
        """Return v moved off its bounds by ``push``, or that part of the way across (3.6)."""
        low, high = self._low, self._high
        with np.errstate(invalid="ignore"):
            across = push * (high - low)
            above = low + np.minimum(push * np.maximum(1.0, np.abs(low)), across)
            below = high - np.minimum(push * np.maximum(1.0, np.abs(high)), across)
            # A limit that is not there gives nan.
            return np.fmin(np.fmax(v, above), below)

    # Points.

    def trial(self, v: np.ndarray, dv: np.ndarray, alpha: float) -> Trial:
        """Evaluate what a line search looks at, at v + alpha dv."""
        new, x = np.empty(self.count), np.empty(self.task.start.size)
        d, c, out = np.empty(self.sides.count), np.empty(self.m), self._out
        self._move(v, dv, alpha, new, x, d, out)
        product, power, outside, size, _ = out.tolist()
        barrier = inf if outside else -(log(product) + power * log(2.0))
        # Read-only, so that the evaluator need not copy it.
        x.setflags(write=False)
        f, g = self.evaluator.values(x)
        self._constrain(g, new, c, out)
        total, most, unscaled = out[:3].tolist()
        return Trial(new, x, d, f * self.f_scale, c, total, most, unscaled, barrier, size)

    def point(self, trial: Trial, lam: np.ndarray, z: np.ndarray) -> Point:
        """Evaluate slopes at a point."""
        raw, entries = self.evaluator.slopes(trial.x)
        gradient = np.zeros(self.count)
        gradient[: self.n] = raw[self.free] * self.f_scale
        self.system.take_jacobian(entries, self.row_scale)
        return self.balance(trial, lam, z, gradient)

    def balance(self, trial: Trial, lam: np.ndarray, z: np.ndarray, gradient: np.ndarray) -> Point:
        """Return a point with these multipliers; the Jacobian there was taken."""
        pull, out = np.empty(self.count), self._out
        self._balance(gradient, lam, z, trial.d, pull, self._room, out)
        dual, price, total, least, most = out.tolist()
        s_d = max(S_MAX, (price + total) / max(z.size + lam.size, 1))
        s_c = max(S_MAX, total / max(z.size, 1))
        # nan stays nan.
        fixed = max(dual * S_MAX / s_d, trial.most)
        return Point(trial, lam, z, gradient, pull, (fixed, least, most, S_MAX / s_c))

    def error(self, at: Point, mu: float) -> float:
        """Return how far the conditions of a minimum of the barrier problem are off (eq. 5)."""
        fixed, least, most, scale = at.parts
        gap = max(most - mu, mu - least) if self.sides.count else 0.0
        return max(fixed, gap * scale)

    def multiply_transpose(self, lam: np.ndarray) -> np.ndarray:
        """Return the product of the Jacobian's transpose and lam, slacks included."""
        own = self.system.multiply_transpose(lam)
        return np.concatenate([own, -lam[self.inequalities]]) if self.slacks else own

    def first(self) -> Point:
        """Return the start (3.6), with multipliers by least squares unless they are given."""
        task, warm = self.task, self.task.lam_g is not None
        slack = (self.evaluator.values(task.start)[1] * self.row_scale)[self.inequalities]
        start = np.concatenate([task.start[self.free], slack])
        v = self.move_inside(start, 1e-9 if warm else 1e-2)
        trial = self.trial(v, np.zeros(self.count), 0.0)
        if warm:
            return self._resume(trial)
        at = self.point(trial, np.zeros(self.m), np.ones(self.sides.count))
        return self.balance(trial, self.estimate(at), at.z, at.gradient) if self.m else at

    def _resume(self, trial: Trial) -> Point:
        """Return the start with the multipliers of the task."""
        task = self.task
        assert task.lam_g is not None
        self.mu = max(task.settings.tol, 1e-9)
        lam = task.lam_g * self.f_scale / self.row_scale
        lam_x = np.zeros(self.n) if task.lam_x is None else task.lam_x[self.free] * self.f_scale
        both = np.concatenate([lam_x, lam[self.inequalities]])
        z = np.maximum(-self.project(both), self.mu / trial.d)
        return self.point(trial, lam, z)

    def estimate(self, at: Point) -> np.ndarray:
        """Return multipliers that balance the gradient best.

        Where equations are almost dependent these are large and of no use: then the price of
        large ones is counted too.
        """
        self.system.take_hessian()
        plain = self._fit_multipliers(at, 0.0)
        size = float(np.abs(plain).max(initial=0.0))
        if size <= SMALL_MULTIPLIER:
            return plain
        damped = self._fit_multipliers(at, DAMPED)
        most = min(10.0 * np.abs(damped).max(initial=0.0), MOST_MULTIPLIER)
        return plain if size <= most else damped

    def _fit_multipliers(self, at: Point, price: float) -> np.ndarray:
        """Return multipliers by least squares, with a price on those of equations."""
        D, rc = np.where(self.is_equation, price, 1.0), np.zeros(self.m)
        if not self.system.factor(np.ones(self.n), D):
            return rc
        right = -(at.gradient + self.pull_of_bounds(at.z))
        rc[self.inequalities] = right[self.n :]
        return self.system.solve(right, rc, refined=False)[1]

    # Steps.

    def factor(self, at: Point) -> np.ndarray:
        """Factor the system at a point, with H shifted until it is convex enough (3.1)."""
        lam = at.lam * self.row_scale
        self.system.take_hessian(self.evaluator.curvature(at.trial.x, self.f_scale, lam))
        sigma = self.spread(at.z / at.trial.d)
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
        D = np.zeros(self.m)
        D[self.inequalities] = 1.0 / (sigma[self.n :] + shift)
        return D

    def direction(self, at: Point, sigma: np.ndarray, c: np.ndarray) -> Step:
        """Return the Newton step of the barrier problem, for constraints c.

        Far from the solution it need not be exact: the next one does better anyway.
        """
        here, shift, out = at.trial, self.shift_now, self._out
        slope, r, rc = np.empty(self.count), np.empty(self.count), np.empty(c.size)
        self._make_right_side(at.pull, here.d, c, sigma, shift, self.mu, slope, r, rc)
        near = self.error(at, 0.0) <= NEAR * self.task.settings.tol
        dv, dlam, left = self.system.solve(r, rc, refined=near)
        if not left < 1e-3:
            raise LineSearchFailed
        self._complete_step(dv, dlam, r, sigma, shift, at.gradient, slope, here.d, here.v, out)
        return Step(dv, dlam, *out[:3].tolist())

    # Answers.

    def answer_at(self, x: np.ndarray, lam: np.ndarray, z: np.ndarray, status: Status) -> Answer:
        """Return a point in the task's terms; where it was interrupted, the best one."""
        task, lam_x = self.task, np.zeros(x.size)
        lam_g = lam * self.row_scale / self.f_scale
        lam_x[self.free] = (self.pull_of_bounds(z) / self.f_scale)[: self.n]
        held = ~(task.lower < task.upper)
        if np.any(held):
            gradient, _ = self.evaluator.slopes(x)
            lam_x[held] = -(gradient + self.evaluator.multiply_transpose(x, lam_g))[held]
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT) and task.monitor.best is not None:
            x = task.monitor.best
        x = np.clip(x, task.lower, task.upper)
        return Answer(x, lam_g, lam_x, status, self.iterations)
