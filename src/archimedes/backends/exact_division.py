"""Division by a constant as two multiplications, with the bits of a division.

``x / c`` is ``fma(x, high, x * low)`` with ``high + low`` close to ``1 / c`` (Brisebarre and
Muller, "Correctly rounded multiplication by arbitrary precision constants", IEEE Trans. Comput.
57, 2008). Before the last rounding that is off by a few 2**-53 of a unit in the last place, so it
rounds as the quotient does, unless the quotient lies as close to the middle of two floats.
Quotients of integers do so only where a congruence holds: these few numerators are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

#: Bits of a float64, and the exponents of its smallest normal and subnormal numbers.
BITS, NORMAL, SUBNORMAL = 53, -1022, -1074
#: Divisors beyond 2**RANGE or below 2**-RANGE are left alone.
RANGE = 300


class Factors(NamedTuple):
    """``x / c == fma(x, high, x * low)`` for all x but those with 0 < abs(x) < 2**least."""

    high: float
    low: float
    least: int


@lru_cache(maxsize=4096)
def factors_of(c: float) -> Factors | None:
    """Return proven factors for dividing by ``c``, or None where there are none.

    Both have the sign of ``c``, so that zeros keep their sign and infinities stay.

    >>> factors_of(4.0)
    Factors(high=0.25, low=0.0, least=-1074)
    >>> from fractions import Fraction
    >>> high, low, _ = factors_of(10.0)
    >>> float(Fraction(0.3) * Fraction(high) + Fraction(0.3 * low)) == 0.3 / 10.0
    True
    >>> factors_of(0.0) is None
    True
    """
    if not 2.0**-RANGE < abs(c) < 2.0**RANGE:
        return None
    fraction, exponent = math.frexp(abs(c))
    if fraction == 0.5:
        return Factors(1.0 / c, math.copysign(0.0, c), SUBNORMAL)
    divisor = int(math.ldexp(fraction, BITS))
    scale = BITS - exponent
    for high, low in _candidates(divisor):
        if _always_rounds_alike(divisor, high, low):
            break
    else:
        return None
    high, low = (math.copysign(math.ldexp(x, scale), c) for x in (high, low))
    if low == 0.0:
        return Factors(high, low, SUBNORMAL)
    # The product with the lower factor must not be subnormal, or it loses digits.
    return Factors(high, low, NORMAL + 1 - math.frexp(low)[1])


def _candidates(divisor: int) -> Iterator[tuple[float, float]]:
    """Yield pairs of floats, neither negative, whose sum is about 1 / divisor."""
    from fractions import Fraction  # which single calls do without

    exact = Fraction(1, divisor)
    nearest = float(exact)
    below = nearest if nearest <= exact else math.nextafter(nearest, 0.0)
    for high in (below, math.nextafter(below, 0.0)):
        low = float(exact - Fraction(high))
        for other in (low, math.nextafter(low, 0.0), math.nextafter(low, 1.0)):
            yield high, other


def _always_rounds_alike(divisor: int, high: float, low: float) -> bool:
    """Return whether both multiplications round as the division, for all 53-bit numerators."""
    from fractions import Fraction

    missing = abs(Fraction(high) + Fraction(low) - Fraction(1, divisor))
    if not missing and not low:
        return True
    # Largest error before the last rounding, in units in the last place of the quotient.
    error = (missing + Fraction(low) / 2**BITS) * divisor * 2**BITS
    for numerator in _near_middles(divisor, math.floor(2 * divisor * error)):
        x = float(numerator)
        if float(Fraction(x) * Fraction(high) + Fraction(x * low)) != numerator / divisor:
            return False
    return True


def _near_middles(divisor: int, nearness: int) -> Iterator[int]:
    """Yield numerators whose quotient is near the middle of two floats, by ``nearness`` at most.

    That is in units of ``1 / (2 * divisor)``.

    With the quotient ``2**s * a / divisor`` in [2**52, 2**53) and the middle ``n + 1/2``, the
    distance is ``d / (2 * divisor)``, where ``2**(s+1) * a = (2n + 1) * divisor + d``. No quotient
    is itself a middle (d = 0): 2n + 1, of 54 bits, would divide a.
    """
    power = divisor & -divisor
    modulus = divisor // power
    ranges = ((BITS - 1, divisor, 2**BITS), (BITS, 2 ** (BITS - 1), divisor))
    for shift, least, end in ranges:
        factor = 2 ** (shift + 1)
        inverse = pow(factor // power, -1, modulus)
        for d in range(-nearness, nearness + 1):
            if d == 0 or d % power:
                continue
            solution = d // power * inverse % modulus
            for a in range(least + (solution - least) % modulus, end, modulus):
                if (factor * a - d) // divisor % 2:
                    yield a
