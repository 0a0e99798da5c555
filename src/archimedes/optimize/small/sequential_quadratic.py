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

from archimedes.function import cond, grad, hess, jac, while_loop
from archimedes.optimize.small.definite import pivots
from archimedes.optimize.small.products import gram, times, transposed_times
from archimedes.optimize.small.quadratic import solve_rows
from archimedes.optimize.small.quadratic_steps import (
    INFEASIBLE,
    ITERATION_LIMIT,
    NOT_FINITE,
    SOLVED,
    UNBOUNDED,
)
from archimedes.tree import struct

__all__ = ["SQPSolution", "SQPState", "first_state", "last_state", "next_state", "solve_nlp"]

STALLED = 15
#: Unknowns beyond this run away.
_FAR = 1e15
_HALVINGS, _QP_ITERATIONS, _QP_TOL, _SHIFTS = 14, 30, 1e-10, 24


@struct
class SQPSolution:
    """The solution of a nonlinear program; ``status`` is a number of :class:`Status`.

    >>> import numpy as np
    >>> from archimedes.optimize import Status, solve_nlp
    >>> free, none = np.full(1, np.inf), np.zeros(0)
    >>> found = solve_nlp(lambda x: (x - 1.0) ** 2, np.zeros(1), (-free, free, none, none))
    >>> found.x.round(6), Status(int(found.status)).name
    (array([1.]), 'SOLVED')
    """

    x: Any
    lam_g: Any
    lam_x: Any
    fun: Any
    status: Any
    iterations: Any
    violation: Any


@struct
class SQPState:
    """Where the iteration stands."""

    x: Any
    lam_g: Any
    lam_x: Any
    nu: Any
    status: Any
    steps: Any


def solve_nlp(
    func: Callable[[Any], Any], x0: Any, limits: Any, *, tol: float = 1e-8, max_iter: int = 60
) -> SQPSolution:
    """Minimise f where ``func(x) = [f, *g]`` and limits = (lower, upper, low, high).

    >>> circle = lambda x: np.array([x[0] + x[1], x[0] ** 2 + x[1] ** 2])
    >>> free, low = np.full(2, np.inf), np.zeros(1)
    >>> solve_nlp(circle, np.array([1.0, 0.5]), (-free, free, low, low + 2.0)).x.round(6)
    array([-1., -1.])
    """
    program = _Program(func, limits, tol)

    def going(state: SQPState) -> Any:
        return (state.status == ITERATION_LIMIT) & (state.steps < max_iter)

    last = while_loop(going, program.advance, first_state(x0, limits), max_steps=max_iter)
    return last_state(func, last, limits)


def first_state(x0: Any, limits: Any) -> SQPState:
    """Return where the iteration begins."""
    x, m, number = np.clip(x0 * 1.0, limits[0], limits[1]), limits[2].shape[0], ITERATION_LIMIT
    none = (np.zeros(m), np.zeros_like(x), np.float64(1.0))
    return SQPState(x, *none, np.int64(number), np.int64(0))


def next_state(func: Callable[[Any], Any], state: SQPState, limits: Any, tol: float) -> SQPState:
    """Make one iteration."""
    return _Program(func, limits, tol).advance(state)


def last_state(func: Callable[[Any], Any], last: SQPState, limits: Any) -> SQPSolution:
    """Return the solution, or where the iteration was left."""
    values = func(last.x)
    return SQPSolution(
        x=last.x,
        lam_g=last.lam_g,
        lam_x=last.lam_x,
        fun=values[0],
        status=last.status,
        iterations=last.steps,
        violation=_Program(func, limits, 0.0).largest_violation(values[1:]),
    )


class _Program:
    def __init__(self, func: Any, limits: Any, tol: float) -> None:
        self.func, self.tol = func, tol
        self.lower, self.upper, self.low, self.high = limits
        self.m = self.low.shape[0]

    def off(self, g: Any) -> Any:
        """Return by how much each constraint is violated."""
        return np.maximum(np.maximum(self.low - g, g - self.high), 0.0)

    def largest_violation(self, g: Any) -> Any:
        return np.max(self.off(g)) if self.m else np.float64(0.0)

    def merit(self, x: Any, nu: Any) -> Any:
        values = self.func(x)
        total = values[0] + nu * np.sum(self.off(values[1:]))
        return np.where(np.isnan(total), np.inf, total)

    def lagrangian(self, x: Any, lam: Any) -> Any:
        values = self.func(x)
        return values[0] + (np.sum(lam * values[1:]) if self.m else 0.0)

    def advance(self, s: SQPState) -> SQPState:
        """Make one iteration."""
        x = s.x
        values, slope = self.func(x), grad(lambda x: self.func(x)[0])(x)
        g = values[1:]
        A = jac(lambda x: self.func(x)[1:])(x) if self.m else np.zeros((0, x.shape[0]))
        H, weights = self.convex(hess(self.lagrangian)(x, s.lam_g), A, s.lam_g, slope, x)
        # The multipliers that were found with the last step belong to this point.
        rest = slope + (transposed_times(A, s.lam_g) if self.m else 0.0) + s.lam_x
        size = 1.0 + _largest(s.lam_g, s.lam_x)
        stationary = (_largest(rest) <= self.tol * size) & (s.steps > 0)
        found = solve_rows(
            *(H, slope, A, self.low - g, self.high - g, self.lower - x, self.upper - x),
            _QP_ITERATIONS,
            _QP_TOL,
        )
        solved = (found.status == SOLVED) & np.all(np.isfinite(found.x))
        d = cond(solved, lambda: found.x, lambda: self.restoring(x, g, A))
        own = found.lam_a + weights * times(A, d) if self.m else found.lam_a
        lam_g, lam_x = np.where(solved, own, s.lam_g), np.where(solved, found.lam_x, s.lam_x)
        gain = np.sum(self.off(g)) - np.sum(self.off(g + times(A, d))) if self.m else 0.0
        cost = slope @ d + 0.5 * (d @ times(H, d))
        price = np.maximum(1.5 * _largest(lam_g), 2.0 * cost / np.maximum(gain, 1e-300))
        price = np.where(gain > 0, price, 1.5 * _largest(lam_g))
        nu = np.maximum(price, 0.5 * (s.nu + price))
        fall = slope @ d - nu * gain
        new, moved = self.search(x, d, A, g, nu, fall)
        feasible = self.largest_violation(g) <= self.tol * (1.0 + _largest(x))
        tiny = _largest(d) <= self.tol * (1.0 + _largest(x))
        # Nothing to gain any more, to the last digits of f.
        worth, whole = np.abs(fall), 1.0 + np.abs(values[0])
        level = worth <= 1e-2 * self.tol * whole
        # A step may be tiny where f falls over a cliff, as log(x) does at 0.
        small = tiny & (worth <= 1e4 * self.tol * whole)
        done = feasible & solved & (small | stationary | level)
        # Without a step that comes nearer to the constraints there is none later.
        going = moved & (solved | ~tiny)
        ended = np.where(self.hopeless(x, g, A), INFEASIBLE, STALLED)
        code = np.where(going, ITERATION_LIMIT, np.where(feasible, STALLED, ended))
        away = (found.status == UNBOUNDED) & feasible | going & (_largest(new) > _FAR)
        code = np.where(away, UNBOUNDED, code)
        code = np.where(done, SOLVED, code)
        good = np.isfinite(values[0]) & np.all(np.isfinite(g)) & np.all(np.isfinite(slope))
        code = np.where(good, code, NOT_FINITE)
        end = np.where(done | ~good, x, new)
        return SQPState(end, lam_g, lam_x, nu, code, s.steps + np.where(done, 0, 1))

    def convex(self, H: Any, A: Any, lam: Any, slope: Any, x: Any) -> tuple[Any, Any]:
        """Return a positive definite matrix that makes the same step where H does.

        Also returns the weights w of the rows in it: its multipliers are those of H less w A d.
        """
        # Where there is no curvature, steps of size 10, or of x, are long enough.
        flat = 0.1 * _largest(slope) / np.maximum(0.1 * _largest(x), 1.0) + 1e-12
        size = np.maximum(_largest(np.diagonal(H)), flat)
        weights = np.zeros(self.m)
        if self.m:
            held = (self.low == self.high) | (np.abs(lam) > 1e-6 * (1.0 + _largest(lam)))
            weights = np.where(held, 10.0 * size / np.maximum(np.max(A**2), 1e-12), 0.0)
            H = gram(H, A, weights)
        n = H.shape[0]
        least = 1e-6 * size

        def indefinite(state: Any) -> Any:
            return ~(np.min(pivots(H + state * np.eye(n))) > least)

        def more(state: Any) -> Any:
            return np.maximum(4.0 * state, np.maximum(np.minimum(flat, 1e-2 * size), 2.0 * least))

        shift = while_loop(indefinite, more, np.float64(0.0), max_steps=_SHIFTS)
        return H + shift * np.eye(n), weights

    def miss(self, g: Any) -> Any:
        """Return how far each constraint is from its limits, with a sign."""
        return np.where(g < self.low, self.low - g, np.where(g > self.high, self.high - g, 0.0))

    def hopeless(self, x: Any, g: Any, A: Any) -> Any:
        """Whether no small step within bounds comes nearer to the constraints."""
        if not self.m:
            return np.bool_(False)
        miss = self.miss(g)
        way = transposed_times(A, miss)
        stuck = ((x >= self.upper) & (way > 0.0)) | ((x <= self.lower) & (way < 0.0))
        most = np.max(np.abs(A)) * np.sum(np.abs(miss))
        return _largest(np.where(stuck, 0.0, way)) <= 1e-3 * most

    def restoring(self, x: Any, g: Any, A: Any) -> Any:
        """Return the step within bounds that comes closest to the linearised constraints."""
        if not self.m:
            return np.zeros_like(x)
        miss = self.miss(g)
        held = np.where((miss != 0.0) | (self.low == self.high), 1.0, 0.0)
        n = x.shape[0]
        M = gram(1e-6 * (1.0 + np.max(A**2)) * np.eye(n), A, held)
        # The constraints without limits make it a program of the same size as the step's.
        free = np.full(self.m, np.inf)
        edges = (-free, free, self.lower - x, self.upper - x)
        step = solve_rows(M, -transposed_times(A, miss), A, *edges, _QP_ITERATIONS, _QP_TOL).x
        return np.where(np.all(np.isfinite(step)), step, 0.0)

    def search(self, x: Any, d: Any, A: Any, g: Any, nu: Any, fall: Any) -> tuple[Any, Any]:
        """Halve the step until the merit falls; returns the point and whether it moved."""
        before = self.merit(x, nu)
        # Rounding must not look like a rise.
        slack = 1e-14 * (1.0 + np.abs(before))

        def enough(value: Any, part: Any) -> Any:
            return value <= before + 1e-4 * part * np.minimum(fall, 0.0) + slack

        full = np.clip(x + d, self.lower, self.upper)
        value = self.merit(full, nu)
        if self.m:
            # Where the full step fails, correct it for the curvature of the constraints.
            bent = self.func(full)[1:] - g - times(A, d)
            held = (g + times(A, d) <= self.low + 1e-8) | (g + times(A, d) >= self.high - 1e-8)
            bent = np.where(held & np.isfinite(bent), bent, 0.0)
            n = x.shape[0]
            M = gram(1e-10 * (1.0 + np.max(A**2)) * np.eye(n), A, np.where(held, 1.0, 0.0))
            again = full - np.linalg.solve(M, transposed_times(A, bent))
            again = np.clip(np.where(np.isfinite(again), again, full), self.lower, self.upper)
            better = ~enough(value, 1.0) & enough(self.merit(again, nu), 1.0)
            full = np.where(better, again, full)
            value = np.where(better, self.merit(again, nu), value)

        def longer(state: Any) -> Any:
            part, _, value = state
            return ~enough(value, part) & (part > 1e-8)

        def halve(state: Any) -> Any:
            part = state[0] * 0.5
            new = np.clip(x + part * d, self.lower, self.upper)
            return part, new, self.merit(new, nu)

        start = (np.float64(1.0), full, value)
        part, new, value = while_loop(longer, halve, start, max_steps=_HALVINGS)
        good = enough(value, part)
        return np.where(good, new, x), good


def _largest(*vectors: Any) -> Any:
    found = [np.max(np.abs(v)) for v in vectors if v.size]
    return np.max(np.stack(found)) if found else np.float64(0.0)
