"""Dense quadratic programs: a primal-dual interior-point method in plain NumPy.

    min 1/2 x^T P x + q^T x,   low <= A x <= high,   lower <= x <= upper

Symbols: C = [A; I] (m, n) all rows with limits l, u; s1 = C x - l and s2 = u - C x slacks with
multipliers y1, y2 >= 0; ye multipliers of the rows with l = u; mu the mean of s y; rho, delta
the proximal terms that make P semidefinite and dependent rows harmless. A Newton step reduces to

    (P + rho I + C^T D C) dx = right,   D = y1/s1 + y2/s2,  or 1/delta where l = u

Sources: S. Mehrotra, SIAM J. Optim. 2(4), 1992 (predictor and corrector); R. Schwan et al.,
"PIQP: a proximal interior-point quadratic programming solver", CDC 2023 (proximal terms);
B. Stellato et al., "OSQP", Math. Program. Comput. 12, 2020, section 3.4 (certificates).

The iteration is a bounded loop without branches on data, so that it compiles, runs on SIMD
lanes, and becomes C.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import Compiled, is_traced, stop_gradient, while_loop
from archimedes.optimize.problems.recorded_solutions import attached
from archimedes.optimize.small.definite import solver_of
from archimedes.optimize.small.products import (
    each,
    gram,
    row_sizes,
    rows_scaled,
    times,
    transposed_times,
)
from archimedes.tree import struct

__all__ = ["QPSolution", "solve_qp", "solve_rows"]

#: Meanings of ``QPSolution.status``, which is a number so that it can be recorded: those of
#: ``Status``.
SOLVED, INFEASIBLE, UNBOUNDED, ITERATION_LIMIT, NOT_FINITE = 0, 10, 11, 12, 14
_RHO, _DELTA = 1e-9, 1e-8
#: How near to its edges an iteration resumes, in a problem whose rows and cost have size 1.
_NEAR = 0.1
#: Part of the way to the edge that a step may go.
_MARGIN = 0.995


@struct
class QPSolution:
    """The solution of a quadratic program; in recorded code its numbers are traced.

    ``lam_a`` (rows of A) and ``lam_x`` are positive at upper limits, negative at lower ones:
    P x + q + A^T lam_a + lam_x = 0. ``status`` is a number of :class:`Status`, 0 if solved;
    ``residual`` the larger of what is left of the conditions and the limits.

    >>> import numpy as np
    >>> from archimedes.optimize import solve_qp
    >>> solve_qp(np.eye(2), np.array([-3.0, 4.0]), lower=0.0, upper=1.0).x.round(6)
    array([1., 0.])
    """

    x: Any
    lam_a: Any
    lam_x: Any
    fun: Any
    status: Any
    iterations: Any
    residual: Any

    @property
    def success(self) -> Any:
        """Whether it was solved."""
        return self.status == SOLVED


@struct
class _Point:
    x: Any
    s1: Any
    s2: Any
    y1: Any
    y2: Any
    ye: Any


@struct
class _Sight:
    """What is seen from a point: products, and what is left of the equations."""

    z: Any  # C x
    Px: Any
    Cy: Any  # C^T (y2 - y1 + ye)
    dual: Any
    r1: Any
    r2: Any
    re: Any


def solve_qp(
    P: Any,
    q: Any,
    A: Any = None,
    low: Any = None,
    high: Any = None,
    lower: Any = None,
    upper: Any = None,
    *,
    tol: float = 1e-9,
    max_iter: int = 40,
    guess: QPSolution | None = None,
) -> QPSolution:
    """Minimise ``x @ P @ x / 2 + q @ x`` with ``low <= A @ x <= high``, ``lower <= x <= upper``.

    P (n, n) is symmetric and positive semidefinite; limits are None, numbers or arrays, with
    infinities where there are none; equal limits are equations. It never takes more than
    ``max_iter`` iterations, and works the same way on numbers, recorded, mapped and in C. What
    the numbers do is in ``status``. The solution has derivatives in all it is given. ``tol``
    bounds the residuals, relative to the data's size. ``guess`` is the solution of a program
    nearby, such as the last one of a receding horizon: about half the iterations are needed.

    >>> solve_qp(np.eye(2), np.array([-2.0, -1.0]), upper=1.5).x.round(6)
    array([1.5, 1. ])
    """
    n = np.shape(q)[0] if np.ndim(q) == 1 else 0
    if n == 0 or np.shape(P) != (n, n):
        raise ValueError(
            f"solve_qp: P has shape {np.shape(P)} and q {np.shape(q)}, not (n, n), (n,)"
        )
    A = np.zeros((0, n)) if A is None else A
    if np.ndim(A) != 2 or np.shape(A)[1] != n:
        raise ValueError(f"solve_qp: A has shape {np.shape(A)}, not (m, {n})")
    m = np.shape(A)[0]
    edges = [
        _edge(low, m, -np.inf, "low"),
        _edge(high, m, np.inf, "high"),
        _edge(lower, n, -np.inf, "lower"),
        _edge(upper, n, np.inf, "upper"),
    ]
    for below, above, names in ((0, 1, "low and high"), (2, 3, "lower and upper")):
        known = not (is_traced(edges[below]) or is_traced(edges[above]))
        if known and np.any(edges[below] > edges[above]):
            k = int(np.argmax(edges[below] > edges[above]))
            raise ValueError(
                f"solve_qp: {names} are crossed: number {k} is {edges[below][k]:.6g} below and "
                f"{edges[above][k]:.6g} above"
            )
    # Bounds that are not there cost nothing.
    bounded = lower is not None or upper is not None
    given = () if guess is None else (guess.x, guess.lam_a, guess.lam_x)
    for value, size, name in zip(given, (n, m, n), ("x", "lam_a", "lam_x")):
        if np.shape(value) != (size,):
            raise ValueError(f"solve_qp: guess.{name} has shape {np.shape(value)}, not ({size},)")
    return _kernel(bounded, int(max_iter), float(tol))(P, q, A, *edges, *given)


def _edge(given: Any, size: int, missing: float, name: str) -> Any:
    value = missing if given is None else given
    try:
        return np.broadcast_to(np.asarray(value) * 1.0, (size,))
    except ValueError:
        raise ValueError(
            f"solve_qp: {name} has shape {np.shape(value)}, which does not broadcast to ({size},)"
        ) from None


_kernels: dict[tuple[bool, int, float], Compiled] = {}


def _kernel(bounded: bool, max_iter: int, tol: float) -> Compiled:
    """Return the solver as a recorded function: numbers take the way that recordings take."""
    key = (bounded, max_iter, tol)
    if key not in _kernels:
        if max_iter < 1 or not tol > 0:
            raise ValueError(f"solve_qp: max_iter={max_iter} and tol={tol} must be positive")

        def solve_qp(
            P: Any, q: Any, A: Any, low: Any, high: Any, lower: Any, upper: Any, *guess: Any
        ) -> Any:
            n, rows = q.shape[0], A.shape[0]
            given = ([P, q, A], (lower, upper, low, high))
            held = tree.map(stop_gradient, given)
            P_, q_, C, l_all, u_all = _whole(held, bounded)
            start = None
            if guess:
                x, lam_a, lam_x = tree.map(stop_gradient, guess)
                start = (x, np.concatenate([lam_a, lam_x]) if bounded else lam_a)
            found = _solve(P_, q_, C, l_all, u_all, rows, max_iter, tol, start)
            x, lam_a, lam_x = attached(_cost_and_rows, n, rows)(
                *tree.map(stop_gradient, (found.x, found.lam_a, found.lam_x)), *given
            )
            fun = 0.5 * (x @ times(P, x)) + q @ x
            return replace(found, x=x, lam_a=lam_a, lam_x=lam_x, fun=fun)

        _kernels[key] = Compiled(solve_qp, freeze=True)
    return _kernels[key]


def solve_rows(
    P: Any,
    q: Any,
    A: Any,
    low: Any,
    high: Any,
    lower: Any,
    upper: Any,
    max_iter: int,
    tol: float,
) -> QPSolution:
    """Solve as part of a larger recording: no checks, no derivatives of the solution."""
    whole = _whole(([P, q, A], (lower, upper, low, high)), True)
    P_, q_, C, l_all, u_all = whole
    return _solve(P_, q_, C, l_all, u_all, A.shape[0], max_iter, tol)


def _whole(given: Any, bounded: bool) -> Any:
    """Return P, q, C and its limits, bounds among them where there are any."""
    (P, q, A), (lower, upper, low, high) = given
    if not bounded:
        return P, q, A, low, high
    C = np.concatenate([A, np.eye(q.shape[0], dtype=q.dtype)])
    return P, q, C, np.concatenate([low, lower]), np.concatenate([high, upper])


def _cost_and_rows(x: Any, p: Any) -> Any:
    P, q, A = p
    return np.concatenate([np.reshape(0.5 * (x @ times(P, x)) + q @ x, (1,)), times(A, x)])


def _largest(*vectors: Any) -> Any:
    """Return the largest size of any number, 0 for none."""
    found = [np.max(np.abs(v)) for v in vectors if v.size]
    return np.max(np.stack(found)) if found else 0.0


def _most(*vectors: Any) -> Any:
    """Return the largest number, at least 0."""
    every = np.concatenate(vectors)
    return np.maximum(np.max(every), 0.0) if every.size else 0.0


def _solve(
    P: Any,
    q: Any,
    C: Any,
    l_all: Any,
    u_all: Any,
    rows: int,
    max_iter: int,
    tol: float,
    guess: tuple[Any, Any] | None = None,
) -> QPSolution:
    n, m = q.shape[0], C.shape[0]
    # Rows of size 1 and a cost of size 1 make one tolerance fit all.
    row_scale = row_sizes(C) if m else np.zeros(0)
    row_scale = np.where(row_scale > 0, 1.0 / np.where(row_scale > 0, row_scale, 1.0), 1.0)
    cost_scale = 1.0 / np.maximum(_largest(q, row_sizes(P)), 1e-8)
    problem = _Problem(
        rows_scaled(P, np.broadcast_to(cost_scale, (n,))),
        q * cost_scale,
        rows_scaled(C, row_scale),
        l_all * row_scale,
        u_all * row_scale,
    )
    if guess is None:
        point = problem.start()
    else:
        point = problem.resume(guess[0], guess[1] * cost_scale / row_scale)

    def going(state: Any) -> Any:
        _, _, status, steps = state
        return (status == ITERATION_LIMIT) & (steps < max_iter)

    def advance(state: Any) -> Any:
        point, sight, _, steps = state
        new = problem.step(point, sight)
        sight = problem.look(new)
        return new, sight, problem.judge(new, sight, tol), steps + 1

    sight = problem.look(point)
    first = (point, sight, problem.judge(point, sight, tol), np.int64(0))
    point, sight, status, steps = while_loop(going, advance, first, max_steps=max_iter)
    if m:
        status = np.where(np.any(l_all > u_all), INFEASIBLE, status)
    lam = (point.y2 - point.y1 + point.ye) * row_scale / cost_scale
    x = point.x
    return QPSolution(
        x=x,
        lam_a=lam[:rows],
        lam_x=lam[rows:] if m > rows else np.zeros(n),
        fun=np.float64(0.0),
        status=status,
        iterations=steps,
        residual=_largest(
            *(sight.dual, sight.r1, sight.r2, sight.re, point.s1 * point.y1, point.s2 * point.y2)
        ),
    )


class _Problem:
    """The scaled problem, and the steps of the method on it."""

    def __init__(self, P: Any, q: Any, C: Any, low: Any, high: Any) -> None:
        self.P, self.q, self.C = P, q, C
        self.equal = low == high
        self.has1 = np.isfinite(low) & ~self.equal
        self.has2 = np.isfinite(high) & ~self.equal
        self.low = np.where(np.isfinite(low), low, 0.0)
        self.high = np.where(np.isfinite(high), high, 0.0)
        self.count = np.maximum(np.sum(self.has1 * 1.0) + np.sum(self.has2 * 1.0), 1.0)

    def start(self) -> _Point:
        """Start near the middle of the limits, a step of the size of the problem away from them."""
        both = self.has1 & self.has2
        middle = np.where(both, 0.5 * (self.low + self.high), 0.0)
        middle = np.where(self.equal, self.low, middle)
        held = np.where(both | self.equal, 1.0, 0.0)
        M = gram(self.P, self.C, held, 1e-3)
        x = solver_of(M)(-self.q + transposed_times(self.C, held * middle))
        z = times(self.C, x)
        s1 = np.where(self.has1, np.maximum(z - self.low, 1.0), 1.0)
        s2 = np.where(self.has2, np.maximum(self.high - z, 1.0), 1.0)
        y1 = np.where(self.has1, 1.0, 0.0)
        y2 = np.where(self.has2, 1.0, 0.0)
        return _Point(x, s1, s2, y1, y2, np.zeros_like(z))

    def resume(self, x: Any, lam: Any) -> _Point:
        """Start at a guess, with slacks and multipliers at least ``_NEAR`` from their edges.

        (E. A. Yildirim, S. J. Wright, "Warm-start strategies in interior-point methods for linear
        programming", SIAM J. Optim. 12, 2002: iterates on the edge cannot leave it.)
        """
        z = times(self.C, x)
        s1 = np.where(self.has1, np.maximum(z - self.low, _NEAR), 1.0)
        s2 = np.where(self.has2, np.maximum(self.high - z, _NEAR), 1.0)
        y1 = np.where(self.has1, np.maximum(-lam, _NEAR), 0.0)
        y2 = np.where(self.has2, np.maximum(lam, _NEAR), 0.0)
        return _Point(x * 1.0, s1, s2, y1, y2, np.where(self.equal, lam, 0.0))

    def look(self, p: _Point) -> _Sight:
        """Return the products and residuals at a point."""
        z, Px = times(self.C, p.x), times(self.P, p.x)
        Cy = transposed_times(self.C, p.y2 - p.y1 + p.ye)

        def rest(z: Any, s1: Any, s2: Any, low: Any, high: Any, has1: Any, has2: Any, eq: Any):
            r1 = np.where(has1, z - low - s1, 0.0)
            return r1, np.where(has2, high - z - s2, 0.0), np.where(eq, z - low, 0.0)

        limits = (self.low, self.high, self.has1, self.has2, self.equal)
        return _Sight(z, Px, Cy, Px + self.q + Cy, *each(rest, z, p.s1, p.s2, *limits))

    def mean(self, p: _Point) -> Any:
        """Return mu."""
        return (np.sum(p.s1 * p.y1) + np.sum(p.s2 * p.y2)) / self.count

    def step(self, p: _Point, at: _Sight) -> _Point:
        """Predict, correct, and go almost to the edge."""
        # One division for each number; the rest are products.
        by = _Point(0.0, 1.0 / p.s1, 1.0 / p.s2, self.over(p.y1), self.over(p.y2), 0.0)
        D = np.where(self.equal, 1.0 / _DELTA, p.y1 * by.s1 + p.y2 * by.s2)
        M = gram(self.P, self.C, D, _RHO)
        solve, mu = solver_of(M), self.mean(p)
        flat = (p.s1 * p.y1, p.s2 * p.y2)
        guess = self.direction(p, by, solve, at, *flat)
        ahead = self.moved(p, guess, self.longest(by, guess, 1.0))
        ratio = self.mean(ahead) / np.where(mu > 0, mu, 1.0)
        target = np.minimum(ratio, 1.0) ** 3 * mu
        c1 = np.where(self.has1, flat[0] + guess.s1 * guess.y1 - target, 0.0)
        c2 = np.where(self.has2, flat[1] + guess.s2 * guess.y2 - target, 0.0)
        final = self.direction(p, by, solve, at, c1, c2)
        return self.moved(p, final, self.longest(by, final, _MARGIN))

    def over(self, y: Any) -> Any:
        """Return 1/y, for zeros, which belong to no limit, 1."""
        return 1.0 / np.where(y > 0, y, 1.0)

    def direction(self, p: _Point, by: _Point, solve: Any, at: _Sight, c1: Any, c2: Any) -> _Point:
        """Solve the Newton system for complementarity residuals c1, c2."""

        def pulls(
            c1: Any, c2: Any, y1: Any, y2: Any, r1: Any, r2: Any, b1: Any, b2: Any, *has: Any
        ):
            w1, w2 = (c1 + y1 * r1) * b1, (c2 + y2 * r2) * b2
            return np.where(has[0], w1, 0.0), np.where(has[1], w2, 0.0)

        has = (self.has1, self.has2)
        w1, w2 = each(pulls, c1, c2, p.y1, p.y2, at.r1, at.r2, by.s1, by.s2, *has)
        pull = transposed_times(self.C, w1 - w2 + at.re * (1.0 / _DELTA))
        dx = solve(-at.dual - pull)
        dz = times(self.C, dx)

        def others(dz: Any, r1: Any, r2: Any, re: Any, w1: Any, w2: Any, *more: Any) -> Any:
            y1, y2, b1, b2, has1, has2, equal = more
            return (
                np.where(has1, dz + r1, 0.0),
                np.where(has2, r2 - dz, 0.0),
                np.where(has1, -w1 - y1 * b1 * dz, 0.0),
                np.where(has2, y2 * b2 * dz - w2, 0.0),
                np.where(equal, (dz + re) * (1.0 / _DELTA), 0.0),
            )

        more = (p.y1, p.y2, by.s1, by.s2, *has, self.equal)
        return _Point(dx, *each(others, dz, at.r1, at.r2, at.re, w1, w2, *more))

    def longest(self, by: _Point, d: _Point, part: float) -> Any:
        """Return the longest step, at most 1, that keeps slacks and multipliers positive."""
        falls = _most(-d.s1 * by.s1, -d.s2 * by.s2, -d.y1 * by.y1, -d.y2 * by.y2)
        return part / np.maximum(falls, part)

    def moved(self, p: _Point, d: _Point, a: Any) -> _Point:
        """Return p + a d."""
        return _Point(
            p.x + a * d.x,
            p.s1 + a * d.s1,
            p.s2 + a * d.s2,
            p.y1 + a * d.y1,
            p.y2 + a * d.y2,
            p.ye + a * d.ye,
        )

    def judge(self, p: _Point, at: _Sight, tol: float) -> Any:
        """Return the status: solved, a certificate that there is no solution, or go on."""
        x, y = _largest(p.x), _largest(p.y1, p.y2, p.ye)
        primal = _largest(at.r1, at.r2, at.re) <= tol * (1.0 + x)
        gap = _most(p.s1 * p.y1, p.s2 * p.y2) <= tol
        solved = (_largest(at.dual) <= tol * (1.0 + y)) & primal & gap
        code = np.where(self.infeasible(p, at, y), INFEASIBLE, ITERATION_LIMIT)
        code = np.where(self.unbounded(at, self.q @ p.x, x), UNBOUNDED, code)
        code = np.where(solved, SOLVED, code)
        return np.where(np.isfinite(x) & np.isfinite(y), code, NOT_FINITE)

    def infeasible(self, p: _Point, at: _Sight, size: Any) -> Any:
        """Whether the multipliers prove that no x is within the limits."""
        balance = _largest(at.Cy) <= 1e-9 * size
        # The most that lam . C x may be within the limits is below zero.
        most = np.sum(p.y2 * self.high) - np.sum(p.y1 * self.low) + np.sum(p.ye * self.low)
        return balance & (most < -1e-9 * size) & (size > 1e3)

    def unbounded(self, at: _Sight, slope: Any, size: Any) -> Any:
        """Whether x itself is a direction in which the cost falls without end."""
        tiny = 1e-9 * size
        inside = ~(self.has1 & (at.z < -tiny)) & ~(self.has2 & (at.z > tiny))
        inside = inside & ~(self.equal & (np.abs(at.z) > tiny))
        flat = (_largest(at.Px) <= tiny) & (slope < -tiny)
        return flat & np.all(inside) & (size > 1e6)
