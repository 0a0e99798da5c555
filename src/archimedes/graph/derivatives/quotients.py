"""Quotients by differences of eigenvalues or singular values, also where these are equal.

Legend: w are the values of a matrix. A *turn* is a way to choose other vectors, and u its *gap*: a
difference of values (or a sum, or a value) by which derivatives along the turn are divided. m is
such a derivative. D is a direction in the values along which u grows by 2.

For a function that does not depend on the choice of vectors m vanishes with u, so that
m / u = (mean of D m over the values between u = 0 and here) / 2. That is a smooth function of the
values, at u = 0 too. Gauss's rule with three points gives the mean to the sixth power of u.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from archimedes.graph.dtypes import F32
from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph

__all__ = ["GAUSS", "Limit", "Quotients", "Turn"]

#: Points of (0, 1) and their weights: the mean of a polynomial of degree 5 is exact.
GAUSS = [(0.5 - np.sqrt(0.15), 5 / 18), (0.5, 8 / 18), (0.5 + np.sqrt(0.15), 5 / 18)]
#: |u| up to this part of its own values, or of the largest value, counts as a tie: there m / u
#: loses digits, more in each further derivative, and the mean does not.
_NEAR_OWN = {False: 1e-2, True: 3e-2}
_NEAR = {False: 1e-5, True: 3e-3}
#: |m - u c| up to this part of the sizes that m is a difference of counts as rounding; where u is
#: larger than ``_NEAR`` by less, in proportion.
_ROUNDING = {False: 1e-10, True: 1e-4}
_EPS = {False: 2.0**-52, True: 2.0**-23}


class Turn(NamedTuple):
    """A way to choose other vectors: its gap, and how fast each value moves along D.

    ``angle`` is by how much the vectors may be turned for a trial, 0 for not at all.
    """

    gap: int
    speeds: dict[int, float]
    angle: float


class Limit(NamedTuple):
    """The limit of a quotient, and whether its function was the same for turned vectors."""

    value: int
    free: int


class Quotients:
    """Divides by gaps of the values of one matrix, given as ids of a graph."""

    def __init__(self, g: Graph, values: Sequence[int]) -> None:
        self.g, self.values = g, list(values)
        self.e = e = Emit(g, g.dtype[self.values[0]])
        self._narrow = e.dtype == F32
        self._scale = e("abs", self.values[0])
        for i in self.values[1:]:
            self._scale = e("max", self._scale, e("abs", i))

    def near(self, turn: Turn) -> int:
        """Say whether the gap is small."""
        e, gap = self.e, self.e("abs", turn.gap)
        own = e.c(0.0)
        for k in turn.speeds:
            own = e.add(own, e("abs", self.values[k]))
        own = e.mul(e.c(_NEAR_OWN[self._narrow] / len(turn.speeds)), own)
        return e("le", gap, e("max", own, e.mul(e.c(_NEAR[self._narrow]), self._scale)))

    def divide(self, m: int, turn: Turn, size: int, limit: Limit | None) -> int:
        """Return m / u, or its limit (None where that is not known) near a tie.

        ``size`` is the size of the terms that m is a difference of. Where m is not small with u,
        or is not for other vectors, the function depends on their choice and has no derivative at
        a tie: nan.
        """
        e, u = self.e, turn.gap
        if self.g.value.get(m) == 0:
            return m
        apart = self._apart(u)
        quotient = e.div(m, e.where(apart, u, e.c(1.0)))
        if limit is None:
            return self._defined(apart, quotient, m)
        small = self._small(m, u, size, limit.value)
        smooth = e("and", self.near(turn), e("and", limit.free, small))
        return self._defined(e("or", smooth, apart), e.where(smooth, limit.value, quotient), m)

    def vanishes(self, e: Emit, m: int, size: int, apart: int) -> int:
        """Emit whether m is no more than rounding errors of terms of that size.

        Those are themselves sums of terms, whose size ``apart`` is (nan where it is not known).
        """
        known = e.where(e("eq", apart, apart), apart, e.c(0.0))
        rounding = e.mul(e.c(512 * _EPS[self._narrow]), known)
        allowed = e.add(e.mul(e.c(_ROUNDING[self._narrow]), size), rounding)
        return e("le", e("abs", m), allowed)

    def reciprocal(self, u: int) -> int:
        """Return 1 / u, nan where u is as small as rounding errors."""
        e = self.e
        apart = self._apart(u)
        inverse = e.div(e.c(1.0), e.where(apart, u, e.c(1.0)))
        return self._defined(apart, inverse, u)

    def _small(self, m: int, u: int, size: int, limit: int) -> int:
        """Say whether m - u c is no more than rounding errors."""
        e, rounding = self.e, _ROUNDING[self._narrow]
        left = e("abs", e.sub(m, e.mul(u, limit)))
        allowed = e.mul(e.c(rounding), size)
        wide = e.mul(e.c(_NEAR[self._narrow]), e.mul(self._scale, allowed))
        return e("and", e("le", left, allowed), e("le", e.mul(left, e("abs", u)), wide))

    def _apart(self, u: int) -> int:
        """Say whether u is more than rounding errors."""
        e, eps = self.e, _EPS[self._narrow]
        least = e.mul(e.c(64 * len(self.values) * eps), self._scale)
        return e("lt", least, e("abs", u))

    def _defined(self, test: int, value: int, m: int) -> int:
        """Return the value where it exists, else nan, in its derivatives too.

        The factor is 1 where the value exists: a derivative of zero times nan would be nan.
        """
        e = self.e
        factor = e.where(test, e.c(1.0), e.c(float("nan")))
        return e.where(test, value, e.mul(e.where(test, e.c(0.0), m), factor))
