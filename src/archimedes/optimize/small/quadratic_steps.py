"""Quadratic programs in units of size 1, and the steps of a primal-dual interior-point method.

Symbols and sources: ``quadratic.py``. Units: rows and columns of [P A^T; A 0] are divided by the
roots of their largest entries, a few times (D. Ruiz, "A scaling algorithm to equilibrate both rows
and columns norms in matrices", RAL-TR-2001-034; B. Stellato et al., "OSQP", Math. Program. Comput.
12, 2020, section 5.1). Rows of bounds stay rows of the identity. Then one unit for all unknowns
gives them a typical size of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.function import cond, fori_loop
from archimedes.optimize.problems.results import Status
from archimedes.optimize.small import linear_algebra as la
from archimedes.tree import struct
from archimedes.typing import Array, Scalar

#: b -> M^-1 b.
Solve = Callable[[Array], Array]

_RHO, _DELTA = 1e-9, 1e-8
#: How near to its edges an iteration resumes, in a problem whose rows and cost have size 1.
_NEAR = 0.003
#: Limits this far apart, in a program of size 1, have no middle worth starting from.
_WIDE = 1e3
#: Parts of the way to the edge that a step may go: far from the solution, and near it.
_MARGINS = 0.995, 0.9999
#: What is left of a row, or of a slope and the cost, is compared with at least this.
_SMALL_ROW, _SMALL_COST = 1e-6, 1e-3
#: Part of the terms of a sum that is rounding.
_ROUNDING = 1e-14
#: How many times larger than what is seen unknowns or multipliers would have to be to disprove a
#: certificate, for it to hold: at once, and where the iterations have come to their end.
_SURE, _LIKELY = 1e6, 1e2


@struct
class _Point:
    x: Array
    s1: Array
    s2: Array
    y1: Array
    y2: Array
    ye: Array


@struct
class _Verdict:
    """The status; what is left of the conditions; the best certificate of each kind so far."""

    status: Any
    residual: Scalar
    infeasible: Scalar
    unbounded: Scalar


@struct
class _Sight:
    """What is seen from a point: products, and what is left of the equations."""

    z: Array  # C x
    Px: Array
    Cy: Array  # C^T (y2 - y1 + ye)
    dual: Array
    r1: Array
    r2: Array
    re: Array


def _most(*vectors: Array) -> Any:
    """Return the largest number, at least 0."""
    every = np.concatenate(vectors)
    return np.maximum(np.max(every), 0.0) if every.size else 0.0


class ScaledQP:
    """The scaled problem, and the steps of the method on it."""

    def __init__(
        self, P: Array, q: Array, C: la.LimitedRows, low: Array, high: Array, tol: float
    ) -> None:
        self.P, self.q, self.C = P, q, C
        self.sizes = np.abs(P), np.abs(q), C.magnitudes()
        self.tol = tol
        #: What equations weigh: less where less is asked for, so that float is enough.
        self.weight = 1.0 / max(_DELTA, 0.1 * tol)
        self.equal = low == high
        self.has1 = np.isfinite(low) & ~self.equal
        self.has2 = np.isfinite(high) & ~self.equal
        self.low = np.where(np.isfinite(low), low, 0.0)
        self.high = np.where(np.isfinite(high), high, 0.0)
        self.far = la.largest(self.low, self.high)
        self.count = np.maximum(np.sum(self.has1 * 1.0) + np.sum(self.has2 * 1.0), 1.0)

    def start(self) -> _Point:
        """Start near the middle of the limits, a step of the size of the problem away from them."""
        both = self.has1 & self.has2 & (self.high - self.low < _WIDE)
        middle = np.where(both, 0.5 * (self.low + self.high), 0.0)
        middle = np.where(self.equal, self.low, middle)
        held = np.where(both | self.equal, 1.0, 0.0)
        M = self.C.gram(self.P, held, 1e-3)
        x = la.make_solver(M)(-self.q + self.C.transposed_times(held * middle))
        z = self.C.times(x)
        below = np.where(self.has1, self.low - z, 0.0)
        above = np.where(self.has2, z - self.high, 0.0)
        # As far from all limits as from the one that is missed most; products of one size.
        away = np.maximum(_most(below, above), 1.0)
        s1 = np.where(self.has1, np.maximum(-below, away), 1.0)
        s2 = np.where(self.has2, np.maximum(-above, away), 1.0)
        y1 = np.where(self.has1, away / s1, 0.0)
        y2 = np.where(self.has2, away / s2, 0.0)
        return _Point(x, s1, s2, y1, y2, np.zeros_like(z))

    def resume(self, x: Array, lam: Array) -> _Point:
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
        z, Px = self.C.times(p.x), la.times(self.P, p.x)
        Cy = self.C.transposed_times(p.y2 - p.y1 + p.ye)
        r1 = np.where(self.has1, z - self.low - p.s1, 0.0)
        r2 = np.where(self.has2, self.high - z - p.s2, 0.0)
        re = np.where(self.equal, z - self.low, 0.0)
        return _Sight(z, Px, Cy, Px + self.q + Cy, r1, r2, re)

    def mean(self, p: _Point) -> Array:
        """Return mu."""
        return (np.sum(p.s1 * p.y1) + np.sum(p.s2 * p.y2)) / self.count

    def step(self, p: _Point, at: _Sight, residual: Scalar) -> _Point:
        """Predict, correct, and go almost to the edge."""
        # One division for each number; the rest are products.
        by = _Point(p.x, 1.0 / p.s1, 1.0 / p.s2, 1.0 / _or_one(p.y1), 1.0 / _or_one(p.y2), p.ye)
        D = np.where(self.equal, self.weight, p.y1 * by.s1 + p.y2 * by.s2)
        M = self.C.gram(self.P, D, _RHO)
        solve, mu = la.make_solver(M), self.mean(p)
        flat = (p.s1 * p.y1, p.s2 * p.y2)
        guess = self.direction(p, by, solve, at, *flat)
        ahead = self.move(p, guess, self.longest(by, guess, 1.0))
        ratio = self.mean(ahead) / np.where(mu > 0, mu, 1.0)
        target = np.minimum(ratio, 1.0) ** 3 * mu
        c1 = np.where(self.has1, flat[0] + guess.s1 * guess.y1 - target, 0.0)
        c2 = np.where(self.has2, flat[1] + guess.s2 * guess.y2 - target, 0.0)
        final = self.direction(p, by, solve, at, c1, c2)
        part = np.minimum(np.maximum(1.0 - residual, _MARGINS[0]), _MARGINS[1])
        return self.move(p, final, self.longest(by, final, part))

    def direction(
        self, p: _Point, by: _Point, solve: Solve, at: _Sight, c1: Array, c2: Array
    ) -> _Point:
        """Solve the Newton system for complementarity residuals c1, c2."""
        w1 = np.where(self.has1, (c1 + p.y1 * at.r1) * by.s1, 0.0)
        w2 = np.where(self.has2, (c2 + p.y2 * at.r2) * by.s2, 0.0)
        pull = self.C.transposed_times(w1 - w2 + at.re * self.weight)
        dx = solve(-at.dual - pull)
        dz = self.C.times(dx)
        return _Point(
            dx,
            np.where(self.has1, dz + at.r1, 0.0),
            np.where(self.has2, at.r2 - dz, 0.0),
            np.where(self.has1, -w1 - p.y1 * by.s1 * dz, 0.0),
            np.where(self.has2, p.y2 * by.s2 * dz - w2, 0.0),
            np.where(self.equal, (dz + at.re) * self.weight, 0.0),
        )

    def longest(self, by: _Point, d: _Point, part: Scalar) -> Array:
        """Return the longest step, at most 1, that keeps slacks and multipliers positive."""
        falls = _most(-d.s1 * by.s1, -d.s2 * by.s2, -d.y1 * by.y1, -d.y2 * by.y2)
        return part / np.maximum(falls, part)

    def move(self, p: _Point, d: _Point, a: Array) -> _Point:
        """Return p + a d."""
        return tree.map(lambda value, change: value + a * change, p, d)

    def unknown(self) -> _Verdict:
        """Return what is known before the first point."""
        return _Verdict(np.int64(Status.ITERATION_LIMIT), *(np.float64(0.0) for _ in range(3)))

    def judge(self, p: _Point, at: _Sight, x: Array, before: _Sight, last: _Verdict) -> _Verdict:
        """Return the verdict at a point, to which a step has led from x, where one saw ``before``.

        What is left of each condition is compared with the terms whose sum it is: that does not
        depend on the units of unknowns, rows and cost.
        """
        y = p.y1 + p.y2 + np.abs(p.ye)
        most_x, most_y = la.largest(p.x), la.largest(y)
        gap = np.sum(p.s1 * p.y1) + np.sum(p.s2 * p.y2)
        left = la.largest(at.dual, at.r1, at.r2, at.re)
        cost = np.abs(0.5 * (p.x @ at.Px)) + np.abs(self.q @ p.x) + _SMALL_COST
        # What a verdict needs is necessary, not sufficient: the rest is looked at only then.
        terms = 1.0 + most_x + most_y + self.far
        close = left <= self.tol * self.C.width * terms
        worth = close | (most_x > _LIKELY) | (most_y > _LIKELY)
        solved, infeasible, unbounded = cond(
            worth,
            lambda: self.examine(p, at, y, gap, p.x - x, before),
            lambda: (np.bool_(False), np.float64(0.0), np.float64(0.0)),
        )
        infeasible = np.maximum(last.infeasible, infeasible)
        unbounded = np.maximum(last.unbounded, unbounded)
        endless = (unbounded > _SURE) & (left > 1e-3)
        code = np.where(endless, Status.UNBOUNDED, Status.ITERATION_LIMIT)
        code = np.where(infeasible > _SURE, Status.INFEASIBLE, code)
        code = np.where(solved, Status.SOLVED, code)
        code = np.where(np.isfinite(most_x) & np.isfinite(most_y), code, Status.NOT_FINITE)
        return _Verdict(code, np.maximum(left, gap / cost), infeasible, unbounded)

    def examine(
        self, p: _Point, at: _Sight, y: Array, gap: Array, d: Array, before: _Sight
    ) -> tuple[Array, Array, Array]:
        """Return whether the conditions of a minimum hold, and how good certificates are."""
        P, q, C = self.sizes
        size = np.abs(p.x)
        rows, pulls, Px = C.times(size), C.transposed_times(y), la.times(P, size)
        near = (rows + _SMALL_ROW) * self.tol
        low, high = near + np.abs(self.low) * self.tol, near + np.abs(self.high) * self.tol
        held = (np.abs(at.r1) <= low) & (np.abs(at.r2) <= high) & (np.abs(at.re) <= low)
        all_held = np.all(held) if near.size else True
        slopes = np.abs(at.Px) + q + pulls + _SMALL_COST
        cost = 0.5 * (size @ Px) + q @ size + _SMALL_COST
        solved = all_held & np.all(np.abs(at.dual) <= self.tol * slopes) & (gap <= self.tol * cost)
        infeasible = self.find_contradiction(p, at, size, pulls)
        return solved, infeasible, self.find_descent(d, at, before, (size, y, rows, Px))

    def finish(self, verdict: _Verdict) -> Array:
        """Return the status at the end: a likely certificate holds if all else has failed."""
        failed = (verdict.status == Status.ITERATION_LIMIT) | (verdict.status == Status.STALLED)
        # Where a cost falls without end, its slope never vanishes.
        unbounded = failed & (verdict.unbounded > _LIKELY) & (verdict.residual > 1e-3)
        return np.where(unbounded, Status.UNBOUNDED, verdict.status)

    def find_contradiction(self, p: _Point, at: _Sight, size: Array, pulls: Array) -> Array:
        """Return how many times larger than here an x within the limits must be.

        Weighted by multipliers the rows add up to off . x <= most, with most below zero.
        """
        most = np.sum(p.y2 * self.high) - np.sum(p.y1 * self.low) + np.sum(p.ye * self.low)
        terms = np.sum(p.y2 * np.abs(self.high)) + np.sum(p.y1 * np.abs(self.low))
        terms = terms + np.sum(np.abs(p.ye * self.low))
        off = (np.abs(at.Cy) + _ROUNDING * pulls) @ (size + 1.0)
        return np.where(-most > 1e4 * _ROUNDING * terms, -most / _or_one(off), 0.0)

    def find_descent(self, d: Array, at: _Sight, before: _Sight, sizes: tuple[Array, ...]) -> Array:
        """Return how many times larger than here multipliers must be for a cost with a minimum.

        Along the last step d the cost falls by its slope; P d and rows beyond their limits, which
        would stop it, are compared with that.
        """
        size, y, rows, Px = sizes
        dz, Pd = at.z - before.z, at.Px - before.Px
        beyond = np.maximum(np.where(self.has1, -dz, 0.0), np.where(self.has2, dz, 0.0))
        beyond = np.where(self.equal, np.abs(dz), np.maximum(beyond, 0.0))
        limited = self.has1 | self.has2 | self.equal
        beyond = np.where(limited, beyond + _ROUNDING * rows, 0.0)
        # Curvature that is small beside that of other directions is curvature all the same.
        curved = (np.abs(Pd) + _ROUNDING * Px) @ (np.minimum(size, 1.0) + 1.0)
        stop = np.sum(beyond * (y + 1.0)) + 1e1 * curved
        fall = -(self.q @ d)
        enough = fall > 1e4 * _ROUNDING * (np.abs(self.q) @ np.abs(d))
        return np.where(enough, fall / _or_one(stop), 0.0)


#: How often rows and columns are divided: each time the exponents of their sizes are halved.
_ROUNDS = 3
#: Limits beyond this are no measure of the size of unknowns.
_FAR = 1e15


class Units(NamedTuple):
    """x = unknowns * (x of the scaled program); rows and cost are multiplied by theirs."""

    unknowns: Array
    rows: Array
    cost: Array


def equilibrate(
    P: Array, q: Array, C: la.LimitedRows, low: Array, high: Array, tol: float
) -> tuple[ScaledQP, Units]:
    """Return the scaled program, and the units it is in.

    >>> P, q, none = np.diag([1e8, 1e-8]), np.array([-1e4, -1e-4]), np.zeros(0)
    >>> C = la.LimitedRows(np.zeros((0, 2)), False)
    >>> program, units = equilibrate(P, q, C, none, none, 1e-9)
    >>> np.diag(program.P).round(2), units.unknowns.round(6)
    (array([1., 1.]), array([1.e-04, 1.e+04]))
    """
    n = q.shape[0]

    def divide(_: object, units: tuple[Array, Array]) -> tuple[Array, Array]:
        d, e = units
        columns = d * la.row_maxima(P, d)
        if not C.own:
            return d / np.sqrt(_or_one(columns)), e
        columns = np.maximum(columns, d * la.column_maxima(C.A, e))
        return d / np.sqrt(_or_one(columns)), e / np.sqrt(_or_one(e * la.row_maxima(C.A, d)))

    d, e = fori_loop(0, _ROUNDS, divide, (np.ones(n), np.ones(C.own)))
    rows = np.concatenate([e, 1.0 / d]) if C.bounded else e
    size = _typical(low * rows, high * rows, la.largest(q * d), la.largest(d * la.row_maxima(P, d)))
    unknowns, rows = d * size, rows / size
    P, q = la.scale(P, unknowns, unknowns), q * unknowns
    most = la.largest(q, la.row_maxima(P, np.ones(n)))
    cost = np.where(most > 0.0, 1.0 / _or_one(most), 1.0)
    P = la.scale(P, np.broadcast_to(cost, (n,)), np.ones(n))
    C = C.scale(e / size, unknowns)
    program = ScaledQP(P, q * cost, C, low * rows, high * rows, tol)
    return program, Units(unknowns, rows, cost)


def _or_one(sizes: Array) -> Array:
    """Return sizes, 1 for zeros."""
    return np.where(sizes > 0.0, sizes, 1.0)


def _typical(low: Array, high: Array, slope: Array, curvature: Array) -> Array:
    """Return the size of an unconstrained minimum, brought between small and large limits.

    Only limits on both sides keep it from being larger. Without curvature it is a size between
    those of the limits; without any of these it is 1.
    """
    free = slope / _or_one(curvature)
    curved = (curvature > 0.0) & (slope > 0.0)
    if not low.size:
        return np.where(curved, free, 1.0)
    sizes = np.abs(np.concatenate([low, high]))
    counts = (sizes > 0.0) & (sizes < _FAR)
    ranges = np.isfinite(low) & np.isfinite(high) & (low < high)
    ranges = counts & np.concatenate([ranges, ranges])
    some, bounds = np.any(counts), np.any(ranges)
    large = _mean(sizes, counts)
    small = 1.0 / _mean(1.0 / np.where(counts, sizes, 1.0), counts)
    least = np.where(some, small, 0.0)
    most = np.where(bounds, _mean(sizes, ranges), np.maximum(free, least))
    within = np.minimum(np.maximum(free, least), most)
    return np.where(curved, within, np.where(some, np.sqrt(small * large), 1.0))


def _mean(sizes: Array, counts: Array) -> Array:
    """Return the mean of those that count, 1 if none does."""
    count = np.sum(counts * 1.0)
    return np.where(count > 0.0, np.sum(np.where(counts, sizes, 0.0)), 1.0) / np.maximum(count, 1.0)
