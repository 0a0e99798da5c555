"""Points between bounds: distances, multipliers of the bounds, barrier terms, longest steps.

Symbols: w (N,) the unknowns x and the slacks s of inequalities, low <= w <= high. The *sides* are
the bounds that exist, the lower ones first: d > 0 are the distances of w to them, z >= 0 their
multipliers, mu the barrier's weight.

A task in the form the method works on: free unknowns in the order of a chain, slacks, scales.

Symbols: w = [x, s] the free unknowns and the slacks of inequalities; the constraints are
c(w) = 0 with c = g - low for equations and g - s for inequalities, f and c scaled so that no slope
at the start is above 100.

Newton steps of the barrier problem, and how far a point is from its solution.

Equation and section numbers: Waechter, Biegler, Math. Program. 106, 2006. The loops over
unknowns and sides are native (``point_loops.py``).
"""

from __future__ import annotations

from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from archimedes.optimize.problems.evaluation import summed
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.banded_system import BandedSystem, Care, chain_of

__all__ = [
    "Bounds",
    "LineSearchFailed",
    "NewtonSteps",
    "Point",
    "ScaledProblem",
    "Step",
    "Trial",
    "barrier",
    "fastest",
    "longest",
]

#: How far from a bound a start is moved: this much, or this part of the way to the other bound.
PUSH, PART = 1e-2, 1e-2


class Bounds:
    """The bounds of w, of which any may be missing."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.size = low.size
        at_low, at_high = np.flatnonzero(low > -np.inf), np.flatnonzero(high < np.inf)
        #: Whose side it is, where it lies, and in which direction w moves away from it.
        self.at = np.concatenate([at_low, at_high])
        self.edge = np.concatenate([low[at_low], high[at_high]])
        self.away = np.repeat([1.0, -1.0], [at_low.size, at_high.size])
        self._low, self._high = low, high
        self.count = self.at.size

    def inside(self, w: np.ndarray, push: float = PUSH, part: float = PART) -> np.ndarray:
        """Return w moved off its bounds (Waechter, Biegler 2006, section 3.6)."""
        low, high = self._low, self._high
        with np.errstate(invalid="ignore"):
            across = high - low
            off = np.minimum(push * np.maximum(1.0, np.abs(low)), part * across)
            w = np.where(np.isfinite(low), np.maximum(w, low + off), w)
            off = np.minimum(push * np.maximum(1.0, np.abs(high)), part * across)
            return np.where(np.isfinite(high), np.minimum(w, high - off), w)

    def distances(self, w: np.ndarray) -> np.ndarray:
        """Return the distances to the sides."""
        d = w.take(self.at)
        d -= self.edge
        d *= self.away
        return d

    def towards(self, dw: np.ndarray) -> np.ndarray:
        """Return how fast the distances grow along dw."""
        d = dw.take(self.at)
        d *= self.away
        return d

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return (N,): for each of w the sum over its sides."""
        return summed(self.at, values, self.size)

    def pull(self, values: np.ndarray) -> np.ndarray:
        """Return (N,): -values at lower bounds, values at upper ones, as multipliers pull."""
        return summed(self.at, -self.away * values, self.size)


def barrier(product: float, power: float, outside: float) -> float:
    """Return -(sum of the logarithms of the distances), whose product is product * 2**power."""
    return inf if outside else -(log(product) + power * log(2.0))


def longest(falls: float, part: float) -> float:
    """Return the longest step, at most 1, after which 1 - part of each value is left.

    ``falls`` is the largest part of a value that a whole step takes away.
    """
    return part / falls if falls > part else 1.0


def fastest(values: np.ndarray, steps: np.ndarray) -> float:
    """Return the largest part of a value that a whole step takes away."""
    return -float((steps / values).min()) if values.size else 0.0


MOST_SLOPE, LEAST_SCALE = 100.0, 1e-8
#: Bounds are relaxed by this much, so that there is room between them.
RELAXED = 1e-10


class ScaledProblem:
    """Functions of w, and answers in the task's terms."""

    def __init__(self, task: Task, loops: Any) -> None:
        self.task, self.evaluator = task, task.evaluator
        structure = self.structure = task.evaluator.structure
        free = task.lower < task.upper
        self.key = (free.tobytes(), None if task.order is None else task.order.tobytes())
        found = structure.prepared.pop(self.key, None)
        if found is None:
            chain = chain_of(structure.patterns, free, task.order)
            found = BandedSystem(structure, chain, loops)
        self.system: BandedSystem = found
        self.loops = loops
        self.chain = found.chain
        self.kept = np.concatenate([self.chain.band, self.chain.border])
        self.n = self.kept.size
        self.equal = task.low == task.high
        self.inequalities = np.flatnonzero(~self.equal)
        self.slacks = self.inequalities.size
        self.fixed = np.where(free, 0.0, task.lower)
        self.iterations = 0
        self._scale(task.start)

    def _scale(self, x: np.ndarray) -> None:
        """Choose scales of objective and rows (3.8)."""
        gradient, parts = self.evaluator.slope_parts(x)
        self.system.take_jacobian(parts)
        rows = self.system.largest_of_rows()
        slope = np.max(np.abs(gradient[self.kept]), initial=0.0)
        self.f_scale = max(LEAST_SCALE, min(1.0, MOST_SLOPE / max(slope, 1e-300)))
        self.row_scale = np.maximum(
            LEAST_SCALE, np.minimum(1.0, MOST_SLOPE / np.maximum(rows, 1e-300))
        )
        low, high = self.task.low * self.row_scale, self.task.high * self.row_scale
        self.target = np.where(self.equal, low, 0.0)
        low_w = np.concatenate([self.task.lower[self.kept], low[self.inequalities]])
        high_w = np.concatenate([self.task.upper[self.kept], high[self.inequalities]])
        low_w -= np.where(np.isfinite(low_w), RELAXED * np.maximum(1.0, np.abs(low_w)), 0.0)
        high_w += np.where(np.isfinite(high_w), RELAXED * np.maximum(1.0, np.abs(high_w)), 0.0)
        self.bounds = Bounds(low_w, high_w)

    def transposed(self, lam: np.ndarray) -> np.ndarray:
        """Return the product of the Jacobian's transpose and lam, slacks included."""
        own = self.system.transposed(lam)
        return np.concatenate([own, -lam[self.inequalities]]) if self.slacks else own

    def multipliers(
        self, x: np.ndarray, lam: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the multipliers of the task's constraints and bounds."""
        lam_g = lam * self.row_scale / self.f_scale
        both = self.bounds.pull(z) / self.f_scale
        lam_x = np.zeros(x.size)
        lam_x[self.kept] = both[: self.n]
        held = ~(self.task.lower < self.task.upper)
        if np.any(held):
            gradient, parts = self.evaluator.slope_parts(x)
            lam_x[held] = -(gradient + self.system.held(parts, lam_g))[held]
        return lam_g, lam_x

    def answer_at(self, x: np.ndarray, lam: np.ndarray, z: np.ndarray, status: Status) -> Answer:
        """Return a point in the task's terms; where it was interrupted, the best one."""
        best = self.task.monitor.best
        lam_g, lam_x = self.multipliers(x, lam, z)
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT) and best is not None:
            x = best
        x = np.clip(x, self.task.lower, self.task.upper)
        return Answer(x, lam_g, lam_x, status, self.iterations)


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
