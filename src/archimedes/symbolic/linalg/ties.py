"""Quotients by differences of eigenvalues or singular values, also where these are equal.

Legend: m is a numerator, u its denominator, D a direction in the values along which u grows by 2.
For a function that does not depend on the choice of vectors m = u c with c smooth, so that
D m = 2 c + u D c and D D m = 4 D c + u D D c: near u = 0, c = D m / 2 - u D D m / 8 up to
u**2 / 8, with the right first derivatives at u = 0. Where m is not small with u the function does
depend on the choice, and has no derivative at u = 0: nan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.graph.derivatives.zero_quotients import along
from archimedes.graph.dtypes import F32
from archimedes.graph.formulas import Emit
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.symbolic.core.trace import current_trace

__all__ = ["Quotients"]

#: |u| up to this part of the largest value is taken as a tie: there m / u loses digits, and the
#: limit is good to about its square.
_NEAR = {False: 1e-5, True: 3e-3}
#: |m - u c| up to this part of the sizes that m is a difference of counts as rounding.
_ROUNDING = {False: 1e-10, True: 1e-4}
#: Most values of a matrix for which limits are recorded, one for each pair of them.
_MAX_VALUES = 8
#: Largest program between the values and m for which the limit is recorded: it is differentiated
#: twice. Beyond, as in Hessians of functions of three vectors and more, a tie gives nan.
_LIMIT = 1500


@dataclass
class Quotients:
    """Divides by differences of the values of one matrix, which a function of it returned.

    ``names`` are all functions that give these values: they move together.
    """

    values: Any
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        trace = current_trace()
        self.g: Graph = trace.graph
        self.ids = trace.ids_of(self.values).tolist()
        self._places = _same_values(self.g, self.ids, self.names)
        self.e = e = Emit(self.g, self.values.code)
        self._scale = e("abs", self.ids[0])
        for i in self.ids[1:]:
            self._scale = e("max", self._scale, e("abs", i))

    def divide(self, m: int, u: int, size: int, direction: dict[int, float]) -> int:
        """Return m / u or its limit; ``direction`` maps positions of values to their speeds.

        ``size`` is the size of the terms that m is a difference of.
        """
        e, g = self.e, self.g
        if g.value.get(m) == 0:
            return m
        narrow = e.dtype == F32
        gap, apart = e("abs", u), self._apart(u)
        quotient = e.div(m, e.where(apart, u, e.c(1.0)))
        near = e("le", gap, e.mul(e.c(_NEAR[narrow]), self._scale))
        speeds = {i: speed for k, speed in direction.items() for i in self._places[k]}
        found = along(g, m, speeds, near, _LIMIT) if len(self.ids) <= _MAX_VALUES else None
        if found is None:
            return self._defined(apart, quotient, m)
        limit = self._limit(u, *found)
        left = e("abs", e.sub(m, e.mul(u, limit)))
        smooth = e("and", near, e("le", left, e.mul(e.c(_ROUNDING[narrow]), size)))
        return self._defined(e("or", smooth, apart), e.where(smooth, limit, quotient), m)

    def reciprocal(self, u: int) -> int:
        """Return 1 / u, nan where u is as small as rounding errors."""
        e = self.e
        apart = self._apart(u)
        inverse = e.div(e.c(1.0), e.where(apart, u, e.c(1.0)))
        return self._defined(apart, inverse, u)

    def _apart(self, u: int) -> int:
        """Say whether u is more than rounding errors."""
        e, eps = self.e, float(np.finfo(self.values.dtype).eps)
        least = e.mul(e.c(64 * len(self.ids) * eps), self._scale)
        return e("lt", least, e("abs", u))

    def _limit(self, u: int, first: int, second: int) -> int:
        """Return D m / 2 - u D D m / 8; without D D m it has no derivative, but a value."""
        e = self.e
        zero, one = e.c(0.0), e.c(1.0)
        lost = e("ne", second, second)
        correction = e.mul(u, e.mul(e.c(0.125), e.where(lost, zero, second)))
        # The root of u - u is zero, its derivative infinite.
        nothing = e("sqrt", e.where(lost, e.sub(u, e("stop", u)), one))
        limit = e.sub(e.mul(e.c(0.5), first), correction)
        return e.add(limit, e.where(lost, nothing, zero))

    def _defined(self, test: int, value: int, m: int) -> int:
        """Return the value where it exists, else nan, in its derivatives too.

        The factor is 1 where the value exists: a derivative of zero times nan would be nan.
        """
        e = self.e
        factor = e.where(test, e.c(1.0), e.c(float("nan")))
        return e.where(test, value, e.mul(e.where(test, e.c(0.0), m), factor))


def _same_values(g: Graph, ids: Sequence[int], names: tuple[str, ...]) -> list[list[int]]:
    """Return, by position, the nodes that are one value, whichever function gave it."""
    places: list[list[int]] = [[] if i in g.value else [i] for i in ids]
    known = next((i for i in ids if i not in g.value), None)
    if known is None:
        return places
    region = g.regions[g.a[known]]
    operands = region.inputs.tolist()
    for other in list(g.regions.values()):
        rule = other.derivative if isinstance(other, Call) else None
        if rule is None or rule.name not in names or other.inputs.tolist() != operands:
            continue
        outs = g.region(other).tolist()
        for place, k in zip(places, rule.value_places):  # type: ignore[attr-defined]
            if k is not None and outs[k] not in place:
                place.append(outs[k])
    return places
