"""Units of unknowns, rows and cost in which a quadratic program has numbers of size 1.

Rows and columns of [P A^T; A 0] are divided by the roots of their largest entries, a few times
(D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices", RAL-TR-2001-
034; B. Stellato et al., "OSQP", Math. Program. Comput. 12, 2020, section 5.1). Rows of bounds stay
rows of the identity. Then one unit for all unknowns gives them a typical size of 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import fori_loop
from archimedes.optimize.small.products import LimitedRows, column_maxima, row_maxima, scale
from archimedes.optimize.small.quadratic_steps import ScaledQP, largest
from archimedes.tree import struct

__all__ = ["Units", "equilibrate"]

#: How often rows and columns are divided: each time the exponents of their sizes are halved.
_ROUNDS = 3
#: Limits beyond this are no measure of the size of unknowns.
_FAR = 1e15


@struct
class Units:
    """x = unknowns * (x of the scaled program); rows and cost are multiplied by theirs."""

    unknowns: Any
    rows: Any
    cost: Any

    def multipliers(self, lam: Any) -> Any:
        """Return multipliers in the user's units."""
        return lam * self.rows / self.cost

    def scaled_multipliers(self, lam: Any) -> Any:
        """Return multipliers of the scaled program."""
        return lam * self.cost / self.rows


def equilibrate(
    P: Any, q: Any, C: LimitedRows, low: Any, high: Any, tol: float
) -> tuple[ScaledQP, Units]:
    """Return the scaled program, and the units it is in.

    >>> P, q, none = np.diag([1e8, 1e-8]), np.array([-1e4, -1e-4]), np.zeros(0)
    >>> program, units = equilibrate(P, q, LimitedRows(np.zeros((0, 2)), False), none, none, 1e-9)
    >>> np.diag(program.P).round(2), units.unknowns.round(6)
    (array([1., 1.]), array([1.e-04, 1.e+04]))
    """
    n = q.shape[0]

    def divide(_: Any, units: Any) -> Any:
        d, e = units
        columns = d * row_maxima(P, d)
        if not C.own:
            return d / np.sqrt(_or_one(columns)), e
        columns = np.maximum(columns, d * column_maxima(C.A, e))
        return d / np.sqrt(_or_one(columns)), e / np.sqrt(_or_one(e * row_maxima(C.A, d)))

    d, e = fori_loop(0, _ROUNDS, divide, (np.ones(n), np.ones(C.own)))
    rows = np.concatenate([e, 1.0 / d]) if C.bounded else e
    size = _typical(low * rows, high * rows, largest(q * d), largest(d * row_maxima(P, d)))
    unknowns, rows = d * size, rows / size
    P, q = scale(P, unknowns, unknowns), q * unknowns
    most = largest(q, row_maxima(P, np.ones(n)))
    cost = np.where(most > 0.0, 1.0 / np.where(most > 0.0, most, 1.0), 1.0)
    program = ScaledQP(
        *(scale(P, np.broadcast_to(cost, (n,)), np.ones(n)), q * cost),
        *(C.scaled(e / size, unknowns), low * rows, high * rows, tol),
    )
    return program, Units(unknowns, rows, cost)


def _or_one(sizes: Any) -> Any:
    return np.where(sizes > 0.0, sizes, 1.0)


def _typical(low: Any, high: Any, slope: Any, curvature: Any) -> Any:
    """Return the size of an unconstrained minimum, brought between small and large limits.

    Only limits on both sides keep it from being larger. Without curvature it is a size between
    those of the limits; without any of these it is 1.
    """
    free = slope / np.where(curvature > 0.0, curvature, 1.0)
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


def _mean(sizes: Any, counts: Any) -> Any:
    """Return the mean of those that count, 1 if none does."""
    count = np.sum(counts * 1.0)
    return np.where(count > 0.0, np.sum(np.where(counts, sizes, 0.0)), 1.0) / np.maximum(count, 1.0)
