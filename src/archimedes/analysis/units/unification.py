"""Solving for unknown units: linear equations between vectors of exponents.

Units form a vector space over the rationals (roots have halves), so that Kennedy's unification
over an Abelian group ("Dimension types", ESOP 1994) is Gaussian elimination: an equation between
two units with unknowns is solved for one of them, and is wrong only if there is none.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from archimedes.physical_units import PLAIN, Rational, Unit, whole

__all__ = ["Expr", "Unknowns", "plain"]


class Expr(NamedTuple):
    """A unit times powers of unknown ones: pairs of the number of an unknown and its power."""

    unit: Unit
    unknowns: tuple[tuple[int, Rational], ...] = ()

    def __mul__(self, other: Expr) -> Expr:  # type: ignore[override]
        if not other.unknowns:
            return Expr(self.unit * other.unit, self.unknowns)
        if not self.unknowns:
            return Expr(self.unit * other.unit, other.unknowns)
        powers = dict(self.unknowns)
        for number, power in other.unknowns:
            powers[number] = powers.get(number, 0) + power
        return Expr(self.unit * other.unit, _tidy(powers))

    def __pow__(self, power: Rational) -> Expr:
        if not power:
            return plain
        return Expr(self.unit**power, tuple((n, whole(p * power)) for n, p in self.unknowns))

    def __truediv__(self, other: Expr) -> Expr:
        return self * other**-1


def _tidy(powers: dict[int, Rational]) -> tuple[tuple[int, Rational], ...]:
    return tuple(sorted((n, p) for n, p in powers.items() if p))


plain = Expr(PLAIN)


class Unknowns:
    """Unknown units and what is known of them so far.

    >>> from archimedes.physical_units import parse_unit
    >>> unknowns = Unknowns()
    >>> x = unknowns.new()
    >>> unknowns.equate(x * Expr(parse_unit("s")), Expr(parse_unit("m")))
    True
    >>> str(unknowns.resolve(x).unit)
    'm/s'
    """

    def __init__(self) -> None:
        self._count = 0
        self._solved: dict[int, Expr] = {}

    def new(self) -> Expr:
        """Return an unknown unit."""
        self._count += 1
        return Expr(PLAIN, ((self._count, 1),))

    def resolve(self, x: Expr) -> Expr:
        """Return a unit in terms of those that are still unknown."""
        if not x.unknowns or not any(n in self._solved for n, _ in x.unknowns):
            return x
        result = Expr(x.unit)
        for number, power in x.unknowns:
            known = self._solved.get(number)
            if known is None:
                result = result * Expr(PLAIN, ((number, power),))
            else:
                known = self._solved[number] = self.resolve(known)
                result = result * known**power
        return result

    def equate(self, a: Expr, b: Expr) -> bool:
        """Make two units equal; False if they cannot be."""
        if a == b:
            return True
        rest = self.resolve(a / b)
        if not rest.unknowns:
            return rest.unit.is_plain
        # The latest one: that of a constant rather than that of an argument.
        number, power = rest.unknowns[-1]
        others = Expr(rest.unit, rest.unknowns[:-1])
        self._solved[number] = others ** whole(Fraction(-1) / power)
        return True

    def snapshot(self) -> dict[int, Expr]:
        """Return what is known so far, for ``restore``."""
        return dict(self._solved)

    def restore(self, known: dict[int, Expr]) -> None:
        """Forget what was found since a snapshot."""
        self._solved = known
