"""Small nonlinear programs in recorded code: sequential quadratic programming.

    min f(x),   low <= g(x) <= high,   lower <= x <= upper

Each iteration solves the quadratic program of the Lagrangian's Hessian H and the linearised
constraints (``quadratic.py``) for a step d and multipliers, and goes along d until the merit
f + nu * (sum of violations) has fallen. H is made positive definite: first by nu-weighted rows
of the constraints that hold, which does not change d, then by a multiple of the identity.

Source: J. Nocedal, S. Wright, "Numerical optimization" (2nd ed., Springer 2006), algorithms 18.3
and 3.3, section 18.3 for the second-order correction; M. Powell, "A fast algorithm for nonlinearly
constrained optimization calculations", Lecture Notes in Mathematics 630, 1978, for nu.

Every loop is bounded and nothing is allocated, so that it compiles, runs on SIMD lanes, and
becomes C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.display import Readable
from archimedes.function import cond, grad, hess, jac, while_loop
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Limits
from archimedes.optimize.small import linear_algebra as la
from archimedes.optimize.small.quadratic import solve_rows
from archimedes.tree import struct
from archimedes.typing import Array, Scalar

__all__ = ["SQPSolution", "solve_nlp"]

#: ``func(x)`` = [f, *g].
Function = Callable[[Array], Array]
#: Unknowns beyond this run away, and costs below this fall without end.
_FAR, _DEEP = 1e15, -1e30
_HALVINGS, _QP_ITERATIONS, _QP_TOL, _SHIFTS = 14, 30, 1e-9, 24
#: Steps along which the merit falls as its slope says are made longer by this factor.
_LONGER, _STRAIGHT = 16.0, 0.9
#: How often, and how far relative to x, a point is moved at which the violation is stationary: it
#: may be a maximum, as at the centre of a sphere.
_NUDGES, _NUDGE = 2, 1e-2
#: The most that a constraint may pull in the Lagrangian's Hessian, relative to the slope of f:
#: multipliers without end belong to limits that leave no room between them.
_PULL = 1e6


@struct
class SQPSolution(Readable):
    """The solution of a small nonlinear program.

    Parameters
    ----------
    x : array (n,)
        Solution.
    lam_g : array
        Multipliers of the constraints.
    lam_x : array (n,)
        Multipliers of the limits of x, likewise.
    fun : float
        Objective at x.
    status : int
        A number of :class:`Status`, 0 if solved.
    iterations : int
        Number of iterations.
    violation : float
        Largest violation of constraints and bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.optimize import Status, solve_nlp
    >>> free, none = np.full(1, np.inf), np.zeros(0)
    >>> found = solve_nlp(lambda x: (x - 1.0) ** 2, np.zeros(1), (-free, free, none, none))
    >>> found.x.round(6), Status(int(found.status)).name
    (array([1.]), 'SOLVED')
    """

    x: Array
    lam_g: Array
    lam_x: Array
    fun: Scalar
    status: Any
    iterations: Any
    violation: Scalar


@struct
class SQPState:
    """Where the iteration stands."""

    x: Array
    lam_g: Array
    lam_x: Array
    nu: Array
    status: Any
    steps: Any
    nudges: Any


def solve_nlp(
    func: Function, x0: Array, limits: Limits, *, tol: float = 1e-8, max_iter: int = 60
) -> SQPSolution:
    """Solve a small nonlinear program by sequential quadratic programming.

    Parameters
    ----------
    func : callable
        ``func(x)`` returns ``[f, *g]``: objective and constraints.
    x0 : float, array or tree
        Starting point.
    limits : tuple
        ``(lower, upper, low, high)``: limits of x and of g.
    tol : float, optional
        Tolerance at which the iteration ends.
    max_iter : int, optional
        Largest number of iterations.

    Examples
    --------
    >>> circle = lambda x: np.array([x[0] + x[1], x[0] ** 2 + x[1] ** 2])
    >>> free, low = np.full(2, np.inf), np.zeros(1)
    >>> solve_nlp(circle, np.array([1.0, 0.5]), (-free, free, low, low + 2.0)).x.round(6)
    array([-1., -1.])
    """
    program = SQPProgram(func, limits, tol)

    def going(state: SQPState) -> Array:
        return (state.status == Status.ITERATION_LIMIT) & (state.steps < max_iter)

    last = while_loop(going, program.advance, first_state(x0, limits), max_steps=max_iter)
    return last_state(func, last, limits)


def first_state(x0: Array, limits: Limits) -> SQPState:
    """Return where the iteration begins."""
    x, m = np.clip(x0 * 1.0, limits[0], limits[1]), limits[2].shape[0]
    none = (np.zeros(m), np.zeros_like(x), np.ones(m))
    return SQPState(x, *none, np.int64(Status.ITERATION_LIMIT), np.int64(0), np.int64(0))


def last_state(func: Function, last: SQPState, limits: Limits) -> SQPSolution:
    """Return the solution, or where the iteration was left."""
    values = func(last.x)
    off = SQPProgram(func, limits, 0.0).largest_violation(values[1:])
    point = (last.x, last.lam_g, last.lam_x)
    return SQPSolution(*point, values[0], last.status, last.steps, off)


class SQPProgram:
    """A small nonlinear program, and the iterations on it."""

    def __init__(self, func: Function, limits: Limits, tol: float) -> None:
        self.func, self.tol = func, tol
        self.lower, self.upper, self.low, self.high = limits
        self.m = self.low.shape[0]

    def off(self, g: Array) -> Array:
        """Return by how much each constraint is violated."""
        return np.maximum(np.maximum(self.low - g, g - self.high), 0.0)

    def largest_violation(self, g: Array) -> Scalar:
        return np.max(self.off(g)) if self.m else np.float64(0.0)

    def merit(self, x: Array, nu: Array, solved: Array) -> tuple[Array, Array]:
        """Return what a step shall reduce, and the sum of violations.

        Steps of a program without a solution shall reduce the squares of the violations alone.
        """
        values = self.func(x)
        off = self.off(values[1:])
        lost = np.sum(off)
        total = np.where(solved, values[0] + nu @ off, 0.5 * np.sum(off**2) + 0.0 * values[0])
        return np.where(np.isnan(total), np.inf, total), lost

    def lagrangian(self, x: Array, lam: Array) -> Array:
        values = self.func(x)
        return values[0] + (np.sum(lam * values[1:]) if self.m else 0.0)

    def advance(self, s: SQPState) -> SQPState:
        """Make one iteration."""
        x = s.x
        values, slope = self.func(x), grad(lambda x: self.func(x)[0])(x)
        g = values[1:]
        A = jac(lambda x: self.func(x)[1:])(x) if self.m else np.zeros((0, x.shape[0]))
        pull = slope + (la.transposed_times(A, s.lam_g) if self.m else 0.0)
        near = 1e-7 * (1.0 + np.abs(x))
        held = (x <= self.lower + near) & (pull > 0.0) | (x >= self.upper - near) & (pull < 0.0)
        H, weights, shift = self.convex(self.curvature(s, A, slope), A, s, slope, held)
        # The multipliers that were found with the last step belong to this point.
        rest = pull + s.lam_x
        least = self.tol * (1.0 + np.minimum(la.largest(s.lam_g, s.lam_x), 1e4))
        idle = self.idle(g, s.lam_g, self.low, self.high)
        idle = idle + self.idle(x, s.lam_x, self.lower, self.upper)
        stationary = (la.largest(rest) <= least) & (s.steps > 0)
        stationary = stationary & (idle <= self.tol * (1.0 + np.abs(values[0])))
        # Unknowns of any size: a program in which each has the curvature 1, and far away from
        # the minimum of f one whose step is not too long.
        unit = 1.0 / np.sqrt(np.diagonal(H))
        size = np.maximum(1.0, 1e-4 * la.largest(slope * unit))
        scale = size * unit
        limits = ((self.lower - x) / scale, (self.upper - x) / scale, self.low - g, self.high - g)
        cost = [H * unit[:, None] * unit, slope * unit / size, A * scale]
        step = solve_rows((cost, limits), _QP_ITERATIONS, _QP_TOL)
        solved = (step.status == Status.SOLVED) & np.all(np.isfinite(step.x))
        d = cond(solved, lambda: step.x * scale, lambda: self.restore(x, g, A))
        raw = step.lam_a * size**2
        raw = raw + weights * la.times(A, d) if self.m else raw
        own = self.drop_idle(raw, step.lam_a) if self.m else raw
        lam_x = np.where(solved, step.lam_x * size / unit, s.lam_x)
        lam_g = np.where(solved, own, s.lam_g)
        gain = self.off(g) - self.off(g + la.times(A, d))
        bent = la.times(H, d)
        dear = np.where(solved, raw, s.lam_g)
        nu = self.prices(s.nu, dear, A, gain, slope @ d + 0.5 * (d @ bent))
        fall = slope @ d - nu @ gain
        if self.m:
            fall = np.where(solved, fall, -self.miss(g) @ la.times(A, d))
        new, moved = self.search(x, d, A, g, nu, fall, solved, unit)
        feasible = self.largest_violation(g) <= self.tol * (1.0 + la.largest(x))
        tiny = np.all(np.abs(d) <= self.tol * (1.0 + np.abs(x)))
        # Nothing to gain any more, to the last digits of f.
        worth, whole = np.abs(fall), 1.0 + np.abs(values[0])
        level = worth <= 1e-2 * self.tol * whole
        # A step may be tiny where f falls over a cliff, as log(x) does at 0.
        small = tiny & (worth <= 1e4 * self.tol * whole)
        # H d is what the multipliers leave of the slope.
        balanced = la.largest(bent) <= min(1e2 * self.tol, 1e-3) * (1.0 + la.largest(slope))
        done = feasible & solved & ((small | level) & balanced | stationary)
        # Without a step that comes nearer to the constraints there is none later.
        slow = -fall <= 1e-4 * np.sum(self.off(g) ** 2)
        going = moved & (solved | ~tiny & ~slow)
        hopeless = ~feasible & ~going
        # A start without slopes at which f curves down is a maximum or a saddle.
        inside = np.all((x > self.lower) & (x < self.upper))
        top = done & (s.steps == 0) & (shift > 0.0) & inside
        again = (hopeless | top) & (s.nudges < _NUDGES)
        done = done & ~again
        new = np.where(again, self.nudge(x, s.nudges), new)
        going = going | again
        ended = np.where(feasible, Status.STALLED, Status.INFEASIBLE)
        code = np.where(going, Status.ITERATION_LIMIT, ended)
        away = (step.status == Status.UNBOUNDED) & feasible | going & (la.largest(new) > _FAR)
        away = away | feasible & (values[0] < _DEEP)
        code = np.where(away, Status.UNBOUNDED, code)
        code = np.where(done, Status.SOLVED, code)
        good = np.isfinite(values[0]) & np.all(np.isfinite(g)) & np.all(np.isfinite(slope))
        code = np.where(good, code, Status.NOT_FINITE)
        end = np.where(done | ~good, x, new)
        nudges = s.nudges + np.where(again, 1, 0)
        return SQPState(end, lam_g, lam_x, nu, code, s.steps + np.where(done, 0, 1), nudges)

    def idle(self, values: Array, lam: Array, low: Array, high: Array) -> Scalar:
        """Return the sum of multipliers times distances to their limits."""
        if not values.shape[0]:
            return np.float64(0.0)
        gap = np.where(lam > 0.0, high - values, values - low)
        # A limit that does not exist has no multiplier.
        gap = np.where(np.isfinite(gap), np.maximum(gap, 0.0), 1.0)
        return np.sum(np.abs(lam) * gap)

    def drop_idle(self, lam: Array, own: Array) -> Array:
        """Return multipliers lam less those of limits at which the program has none of its own.

        Their rows are in its matrix, and would push from the wrong side.
        """
        pushing = (lam * own > 0.0) & (np.abs(own) > 1e-6 * la.largest(own))
        return np.where((self.low == self.high) | pushing, lam, 0.0)

    def prices(self, before: Array, lam: Array, A: Array, gain: Array, cost: Array) -> Array:
        """Return what violations of each constraint cost: enough that the step pays."""
        if not self.m:
            return before
        rows = np.max(np.abs(A), axis=1)
        rows = np.maximum(rows, 1e-6 * np.max(rows) + 1e-12)
        own = 1.5 * np.max(np.abs(lam) * rows) / rows
        nu = np.maximum(own, 0.5 * (before + own))
        worth = nu @ gain
        dear = (worth > 0.0) & (2.0 * cost > worth)
        return nu * np.where(dear, 2.0 * cost / np.where(dear, worth, 1.0), 1.0)

    def nudge(self, x: Array, number: Array) -> Array:
        """Return a point near x, the same in every run."""
        way = np.sin(12.9898 * (np.arange(x.shape[0]) + 1.0)) * np.where(number == 0, 1.0, -0.5)
        return np.clip(x + _NUDGE * (1.0 + np.abs(x)) * way, self.lower, self.upper)

    def curvature(self, s: SQPState, A: Array, slope: Array) -> Array:
        """Return the Hessian of the Lagrangian."""
        lam = s.lam_g
        if self.m:
            most = _PULL * (1.0 + la.largest(slope)) / np.maximum(np.max(np.abs(A), axis=1), 1e-12)
            lam = np.clip(lam, -most, most)
        return hess(self.lagrangian)(s.x, lam)

    def convex(
        self, H: Array, A: Array, s: SQPState, slope: Array, held: Array
    ) -> tuple[Array, Array, Array]:
        """Return a positive definite matrix that makes the same step where H does.

        Also returns the weights w of the rows in it, with which its multipliers are those of H
        less w A d, and the multiple of the identity that is in it. Inequalities have weights only
        where it is not definite without: they may let go. Unknowns that are ``held`` at their
        bounds have no part in it.
        """
        x, lam = s.x, s.lam_g
        # Where there is no curvature, steps of size 10, or of x, are long enough.
        flat = 0.1 * np.abs(slope) / np.maximum(0.1 * np.abs(x), 1.0) + 1e-12
        own = np.abs(np.diagonal(H)) + flat
        H = np.where(held[:, None] | held, 0.0, H) + np.diag(np.where(held, own, 0.0))
        weights = np.zeros(self.m)
        if self.m:
            size = np.maximum(la.largest(np.abs(np.diagonal(H))), np.max(flat))
            full = 10.0 * size / np.maximum(np.max(A**2), 1e-12)
            equal = self.low == self.high
            active = equal | (np.abs(lam) > 1e-6 * (1.0 + la.largest(lam)))
            first = la.gram(H, A, np.where(equal, full, 0.0))
            size, least = self.sizes(first, flat)
            definite = np.all(la.find_pivots(first) > least)
            weights = np.where(np.where(definite, equal, active), full, 0.0)
            H = la.gram(H, A, weights)
        size, least = self.sizes(H, flat)
        n = H.shape[0]

        def is_indefinite(state: Array) -> Any:
            return ~np.all(la.find_pivots(H + state * size * np.eye(n)) > least)

        def more(state: Array) -> Array:
            return np.maximum(4.0 * state, 1e-3)

        shift = while_loop(is_indefinite, more, np.float64(0.0), max_steps=_SHIFTS)
        # More than what just makes it definite: steps where it just is are too long.
        return H + 1.25 * shift * size * np.eye(n), weights, shift

    def sizes(self, H: Array, flat: Array) -> tuple[Array, Array]:
        """Return the scale of each unknown, from its curvature, and the least pivot it may have."""
        own = np.abs(np.diagonal(H))
        size = np.maximum(np.maximum(own, 1e-3 * np.max(np.abs(H), axis=1)), flat)
        return size, np.maximum(1e-6 * own, 1e-9 * flat)

    def miss(self, g: Array) -> Array:
        """Return how far each constraint is from its limits, with a sign."""
        return np.where(g < self.low, self.low - g, np.where(g > self.high, self.high - g, 0.0))

    def restore(self, x: Array, g: Array, A: Array) -> Array:
        """Return the step that comes closest to the linearised constraints that do not hold.

        The others go on holding, and so do the bounds.
        """
        if not self.m:
            return np.zeros_like(x)
        miss = self.miss(g)
        held = (miss != 0.0) | (self.low == self.high)
        n = x.shape[0]
        M = la.gram(1e-2 * (1e-12 + np.max(A**2)) * np.eye(n), A, np.where(held, 1.0, 0.0))
        # All constraints make it a program of the same size as the step's.
        low, high = np.where(held, -np.inf, self.low - g), np.where(held, np.inf, self.high - g)
        cost, limits = [M, -la.transposed_times(A, miss), A], (self.lower - x, self.upper - x)
        step = solve_rows((cost, (*limits, low, high)), _QP_ITERATIONS, _QP_TOL).x
        return np.where(np.all(np.isfinite(step)), step, 0.0)

    def search(
        self,
        x: Array,
        d: Array,
        A: Array,
        g: Array,
        nu: Array,
        fall: Array,
        solved: Array,
        unit: Array,
    ) -> tuple[Array, Array]:
        """Halve the step until the merit falls; returns the point and whether it moved."""
        before, lost = self.merit(x, nu, solved)
        # Rounding must not look like a rise.
        slack = 1e-14 * (1.0 + np.abs(before))

        def enough(value: Array, part: Scalar) -> Array:
            return value <= before + 1e-4 * part * np.minimum(fall, 0.0) + slack

        full = np.clip(x + d, self.lower, self.upper)
        value, more = self.merit(full, nu, solved)
        if self.m:
            # Where the full step fails, correct it for the curvature of the constraints.
            there = g + la.times(A, d)
            bent = self.func(full)[1:] - there
            held = (there <= self.low + 1e-8) | (there >= self.high - 1e-8)
            bent = np.where(held & np.isfinite(bent), bent, 0.0)
            B, n = A * unit, x.shape[0]
            weigh = np.where(held, 1.0 / np.maximum(np.sum(B**2, axis=1), 1e-300), 0.0)
            M = la.gram(1e-10 * np.eye(n), B, weigh)
            again = full - unit * np.linalg.solve(M, la.transposed_times(B, weigh * bent))
            again = np.clip(np.where(np.isfinite(again), again, full), self.lower, self.upper)
            there, _ = self.merit(again, nu, solved)
            better = ~enough(value, 1.0) & enough(there, 1.0)
            full = np.where(better, again, full)
            value = np.where(better, there, value)

        straight = solved & (fall < 0.0) & (la.largest(d) > 1e-3 * (1.0 + la.largest(x)))

        def grows(value: Array, lost_there: Array, part: Scalar, point: Array) -> Array:
            size = la.largest(point)
            good = straight & (size <= _FAR * _LONGER) & (value > -np.inf)
            good = good & (lost_there <= lost + 1e-13 * size)
            return good & (value <= before + _STRAIGHT * part * fall)

        def is_unsettled(state: tuple[Array, ...]) -> Array:
            part, _, value, growing = state
            return growing | ~enough(value, part) & (part > 1e-8)

        def change(state: tuple[Array, ...]) -> tuple[Array, ...]:
            part, old, value, growing = state
            other = part * np.where(growing, _LONGER, 0.5)
            new = np.clip(x + other * d, self.lower, self.upper)
            there, off = self.merit(new, nu, solved)
            longer = growing & grows(there, off, other, new)
            stay, trials = growing & ~longer, ((part, other), (old, new), (value, there))
            return *(np.where(stay, *pair) for pair in trials), longer

        start = (np.float64(1.0), full, value, grows(value, more, 1.0, full))
        part, new, value, _ = while_loop(is_unsettled, change, start, max_steps=_HALVINGS)
        good = enough(value, part)
        return np.where(good, new, x), good
