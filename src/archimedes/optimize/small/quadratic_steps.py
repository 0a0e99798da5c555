"""Steps of a primal-dual interior-point method on a scaled quadratic program.

Symbols and sources: ``quadratic.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.optimize.small.definite import solver_of
from archimedes.optimize.small.products import UNROLLED, LimitedRows, each, times
from archimedes.tree import struct

__all__ = ["ScaledQP", "largest"]

#: Meanings of ``QPSolution.status``, which is a number so that it can be recorded: those of
#: ``Status``.
SOLVED, INFEASIBLE, UNBOUNDED, ITERATION_LIMIT, NOT_FINITE = 0, 10, 11, 12, 14
_RHO, _DELTA = 1e-9, 1e-8
#: How near to its edges an iteration resumes, in a problem whose rows and cost have size 1.
_NEAR = 0.1
#: Part of the way to the edge that a step may go.
_MARGIN = 0.995


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


def largest(*vectors: Any) -> Any:
    """Return the largest size of any number, 0 for none."""
    found = [np.max(np.abs(v)) for v in vectors if v.size]
    return np.max(np.stack(found)) if found else 0.0


def _most(*vectors: Any) -> Any:
    """Return the largest number, at least 0."""
    every = np.concatenate(vectors)
    return np.maximum(np.max(every), 0.0) if every.size else 0.0


class ScaledQP:
    """The scaled problem, and the steps of the method on it."""

    def __init__(self, P: Any, q: Any, C: LimitedRows, low: Any, high: Any, tol: float) -> None:
        self.P, self.q, self.C = P, q, C
        #: What equations weigh: less where less is asked for, so that float is enough.
        self.weight = 1.0 / max(_DELTA, 0.1 * tol)
        self.loops = q.shape[0] > UNROLLED
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
        M = self.C.gram(self.P, held, 1e-3)
        x = solver_of(M)(-self.q + self.C.transposed_times(held * middle))
        z = self.C.times(x)
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
        z = self.C.times(x)
        s1 = np.where(self.has1, np.maximum(z - self.low, _NEAR), 1.0)
        s2 = np.where(self.has2, np.maximum(self.high - z, _NEAR), 1.0)
        y1 = np.where(self.has1, np.maximum(-lam, _NEAR), 0.0)
        y2 = np.where(self.has2, np.maximum(lam, _NEAR), 0.0)
        return _Point(x * 1.0, s1, s2, y1, y2, np.where(self.equal, lam, 0.0))

    def look(self, p: _Point) -> _Sight:
        """Return the products and residuals at a point."""
        z, Px = self.C.times(p.x), times(self.P, p.x)
        Cy = self.C.transposed_times(p.y2 - p.y1 + p.ye)

        def rest(z: Any, s1: Any, s2: Any, low: Any, high: Any, has1: Any, has2: Any, eq: Any):
            r1 = np.where(has1, z - low - s1, 0.0)
            return r1, np.where(has2, high - z - s2, 0.0), np.where(eq, z - low, 0.0)

        limits = (self.low, self.high, self.has1, self.has2, self.equal)
        return _Sight(
            z, Px, Cy, Px + self.q + Cy, *each(rest, z, p.s1, p.s2, *limits, loops=self.loops)
        )

    def mean(self, p: _Point) -> Any:
        """Return mu."""
        return (np.sum(p.s1 * p.y1) + np.sum(p.s2 * p.y2)) / self.count

    def step(self, p: _Point, at: _Sight) -> _Point:
        """Predict, correct, and go almost to the edge."""
        # One division for each number; the rest are products.
        by = _Point(0.0, 1.0 / p.s1, 1.0 / p.s2, self.over(p.y1), self.over(p.y2), 0.0)
        D = np.where(self.equal, self.weight, p.y1 * by.s1 + p.y2 * by.s2)
        M = self.C.gram(self.P, D, _RHO)
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
        w1, w2 = each(pulls, c1, c2, p.y1, p.y2, at.r1, at.r2, by.s1, by.s2, *has, loops=self.loops)
        pull = self.C.transposed_times(w1 - w2 + at.re * self.weight)
        dx = solve(-at.dual - pull)
        dz = self.C.times(dx)

        def others(dz: Any, r1: Any, r2: Any, re: Any, w1: Any, w2: Any, *more: Any) -> Any:
            y1, y2, b1, b2, has1, has2, equal = more
            return (
                np.where(has1, dz + r1, 0.0),
                np.where(has2, r2 - dz, 0.0),
                np.where(has1, -w1 - y1 * b1 * dz, 0.0),
                np.where(has2, y2 * b2 * dz - w2, 0.0),
                np.where(equal, (dz + re) * self.weight, 0.0),
            )

        more = (p.y1, p.y2, by.s1, by.s2, *has, self.equal)
        return _Point(dx, *each(others, dz, at.r1, at.r2, at.re, w1, w2, *more, loops=self.loops))

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
        x, y = largest(p.x), largest(p.y1, p.y2, p.ye)
        primal = largest(at.r1, at.r2, at.re) <= tol * (1.0 + x)
        gap = _most(p.s1 * p.y1, p.s2 * p.y2) <= tol
        solved = (largest(at.dual) <= tol * (1.0 + y)) & primal & gap
        code = np.where(self.infeasible(p, at, y), INFEASIBLE, ITERATION_LIMIT)
        code = np.where(self.unbounded(at, self.q @ p.x, x), UNBOUNDED, code)
        code = np.where(solved, SOLVED, code)
        return np.where(np.isfinite(x) & np.isfinite(y), code, NOT_FINITE)

    def infeasible(self, p: _Point, at: _Sight, size: Any) -> Any:
        """Whether the multipliers prove that no x is within the limits."""
        off = largest(at.Cy)
        # The most that lam . C x may be within the limits is below zero.
        most = np.sum(p.y2 * self.high) - np.sum(p.y1 * self.low) + np.sum(p.ye * self.low)
        # A large violation shows before the balance is as good as it gets.
        small = (off <= 1e-9 * size) & (most < -1e-9 * size)
        large = (off <= 1e-7 * size) & (most < -1e-5 * size)
        return (small | large) & (size > 1e3)

    def unbounded(self, at: _Sight, slope: Any, size: Any) -> Any:
        """Whether x itself is a direction in which the cost falls without end."""
        tiny = 1e-9 * size
        inside = ~(self.has1 & (at.z < -tiny)) & ~(self.has2 & (at.z > tiny))
        inside = inside & ~(self.equal & (np.abs(at.z) > tiny))
        flat = (largest(at.Px) <= tiny) & (slope < -tiny)
        return flat & np.all(inside) & (size > 1e6)
