"""Iterations that solve F(x) = 0, as bounded recorded loops.

Each takes ``residual(x)`` (n,) -> (n,), its Jacobian, a start within the bounds, and returns x,
the largest residual, the number of steps and the length of the last one, relative to 1 + |x|: a
small residual alone is no root, where all residuals are small or where they fade far away.
Symbols: g = J^T F, the gradient of |F|^2 / 2.

Sources: J. Nocedal, S. Wright, "Numerical optimization" (2nd ed., Springer 2006), algorithm 11.5
and eq. 4.16 (dogleg); M. Powell, "A hybrid method for nonlinear equations", 1970; K. Madsen et al.,
"Methods for non-linear least squares problems", DTU 2004, eq. 2.21 (damping).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes.function.control_flow.loops_and_branches import cond, while_loop
from archimedes.records import record

if TYPE_CHECKING:
    from archimedes.typing import Array, Matrix, Scalar


#: What a loop carries; x, the largest residual, the steps, the length of the last one.
State: TypeAlias = tuple[Any, ...]
Solution: TypeAlias = tuple[Any, Any, Any, Any]


@record
class Equations:
    """What an iteration is given.

    It goes on until the residual is at most ``tol`` and the last step at most ``short_step``. If
    steps do not get that short, those up to ``step_tol`` still count as those of a root.
    """

    residual: Callable[[Array], Array]
    jacobian: Callable[[Array], Matrix]
    tol: float
    short_step: float
    step_tol: float
    max_steps: int
    lower: Array
    upper: Array

    def is_unsolved(self, size: Scalar, length: Scalar, step_tol: float | None = None) -> Any:
        """Return whether a residual, or the step that led to it, is too large to stop."""
        limit = self.short_step if step_tol is None else step_tol
        return (size > self.tol) | ((size > 0.0) & (length > limit))

    def is_root(self, size: Scalar, length: Scalar) -> Any:
        """Return whether a residual, and the step that led to it, are those of a root."""
        return ~self.is_unsolved(size, length, self.step_tol)


def size_of(f: Array) -> Scalar:
    """Return the largest residual, infinite where it is nan."""
    largest = np.max(np.abs(f))
    return np.where(np.isnan(largest), np.inf, largest)


def length_of(dx: Array, x: Array) -> Scalar:
    """Return the length of a step, relative to 1 + |x|."""
    return np.max(np.abs(dx) / (1.0 + np.abs(x)))


def newton(equations: Equations, x: Array) -> Solution:
    """Newton's method; steps are halved until the residual falls."""
    number, residual = np.dtype(x.dtype).type, equations.residual

    def halve(x: Array, dx: Array, before: Scalar) -> tuple[Array, Scalar]:
        # Halve the step until the residual falls; after ten halvings take what there is.
        def test(state: State) -> Any:
            step, _, now = state
            return (now > before) & (step > 1e-3)

        def shorter(state: State) -> Any:
            step = state[0] / 2
            new = x + step * dx
            return step, new, size_of(residual(new))

        first = x + dx
        start = (number(1.0), first, size_of(residual(first)))
        _, new, now = while_loop(test, shorter, start, max_steps=10)
        return new, now

    def newton_step(x: Array) -> Array:
        return -np.linalg.solve(equations.jacobian(x), residual(x))

    def going(state: State) -> Any:
        _, now, steps, moved, length = state
        return equations.is_unsolved(now, length) & (steps < equations.max_steps) & moved

    def step(state: State) -> Any:
        x, now, steps, _, length = state
        dx = newton_step(x)
        finite = np.all(np.isfinite(dx))
        new, after = cond(
            finite, lambda: halve(x, np.where(np.isfinite(dx), dx, 0.0), now), lambda: (x, now)
        )
        length = np.where(finite, length_of(dx, x), length)
        return new, after, steps + 1, finite & np.any(new != x), length

    start = (x, size_of(residual(x)), number(0.0), np.bool_(True), number(np.inf))
    x, now, steps, _, length = while_loop(going, step, start, max_steps=equations.max_steps)
    # One step more, kept if it helps: the last one was taken from outside the tolerance.
    return *_keep_better(equations, x, now, x + newton_step(x)), steps, length


def dogleg(equations: Equations, x: Array) -> Solution:
    """Powell's hybrid method: Newton's step within a region of trust, bent to steepest descent."""

    def propose(x: Array, f: Array, J: Matrix, trust: Scalar) -> Array:
        g = J.T @ f
        Jg = J @ g
        curved = np.where(Jg @ Jg > 0, Jg @ Jg, 1.0)
        cauchy = -(g @ g) / curved * g
        full = -np.linalg.solve(J, f)
        full = np.where(np.all(np.isfinite(full)), full, cauchy)
        a, b = _norm(cauchy), _norm(full)
        # On the way from the one to the other, as far as the region goes.
        way = full - cauchy
        p, q, r = way @ way, cauchy @ way, a * a - trust * trust
        root = np.sqrt(np.maximum(q * q - p * r, 0.0))
        part = (root - q) / np.where(p > 0, p, 1.0)
        short = cauchy * (trust / np.where(a > 0, a, 1.0))
        bent = np.where(a >= trust, short, cauchy + np.clip(part, 0.0, 1.0) * way)
        return np.where(b <= trust, full, bent)

    return _iterate_in_trust_region(equations, x, propose, 1.0 + _norm(x), shrink=0.25)


def bounded(equations: Equations, x: Array) -> Solution:
    """Levenberg and Marquardt's damped steps, within bounds: unknowns on theirs are held."""
    lower, upper = equations.lower, equations.upper
    n = x.shape[0]

    def propose(x: Array, f: Array, J: Matrix, trust: Scalar) -> Array:
        g = J.T @ f
        held = ((x <= lower) & (g > 0)) | ((x >= upper) & (g < 0))
        J, g = np.where(held[None, :], 0.0, J), np.where(held, 0.0, g)
        scale = np.sum(J * J, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        M = J.T @ J + np.eye(n) * (scale / trust + np.where(held, 1.0, 0.0))
        d = -np.linalg.solve(M, g)
        return np.clip(x + np.where(np.isfinite(d), d, 0.0), lower, upper) - x

    return _iterate_in_trust_region(equations, x, propose, 1e3, shrink=0.1)


def _keep_better(
    equations: Equations, x: Array, size: Scalar, other: Array
) -> tuple[Array, Scalar]:
    """Return the one of two points with the smaller residual, and its size."""
    after = size_of(equations.residual(other))
    return np.where(after < size, other, x), np.where(after < size, after, size)


def _norm(v: Array) -> Scalar:
    return np.sqrt(v @ v)


def _iterate_in_trust_region(
    equations: Equations,
    x: Array,
    propose: Callable[[Array, Array, Matrix, Scalar], Array],
    first: Scalar,
    shrink: float,
) -> Solution:
    """Take steps that lower |F|^2 as the linear model says; trust follows how well it said."""
    number, residual = np.dtype(x.dtype).type, equations.residual

    def going(state: State) -> Any:
        _, f, trust, steps, length = state
        unsolved = equations.is_unsolved(size_of(f), length)
        return unsolved & (steps < equations.max_steps) & (trust > number(1e-14))

    def step(state: State) -> Any:
        x, f, trust, steps, length = state
        J = equations.jacobian(x)
        d = propose(x, f, J, trust)
        new = x + d
        after = residual(new)
        model = f + J @ d
        gained = f @ f - after @ after
        promised = f @ f - model @ model
        ratio = np.where(promised > 0, gained / np.where(promised > 0, promised, 1.0), -1.0)
        good = (ratio > 1e-4) & np.all(np.isfinite(after))
        grown = np.where(ratio > 0.75, np.minimum(2.0 * trust, 1e12), trust)
        trust = np.where(good & (ratio > 0.25), grown, shrink * trust)
        length = np.where(good, length_of(d, x), length)
        return np.where(good, new, x), np.where(good, after, f), trust, steps + 1, length

    start = (x, residual(x), number(1.0) * first, number(0.0), number(np.inf))
    x, f, _, steps, length = while_loop(going, step, start, max_steps=equations.max_steps)
    # Newton's step, kept if it helps: damped ones stop at the tolerance.
    last = x - np.linalg.solve(equations.jacobian(x), f)
    last = np.clip(np.where(np.isfinite(last), last, x), equations.lower, equations.upper)
    return *_keep_better(equations, x, size_of(f), last), steps, length


#: By name: "fast_newton" is the original's name of a Newton method, "hybr" and "lm" SciPy's.
ITERATIONS = {"newton": newton, "fast_newton": newton, "hybr": dogleg, "lm": bounded}
