"""Unevaluated sums of two floats ("double-double"), without fused multiply-add.

A pair ``(h, l)`` stands for ``h + l`` with ``|l|`` about half an ulp of ``h`` or less. Sources:
Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971);
Knuth, TAOCP vol. 2, 4.2.2, theorem B; Muller et al., Handbook of Floating-Point Arithmetic, ch. 4.

Halves of a float are cut by masking bits rather than by Veltkamp's multiplication: one integer
operation, no overflow.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from archimedes.graph.elementary.primitives import Primitives, Value

HIGH_HALF = -(1 << 27)
"""Mask that keeps sign, exponent and the upper 26 bits of the significand of a float64."""


def fast_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """``a + b`` as a pair, exact when ``|a| >= |b|`` or ``a == 0``."""
    s = a + b
    return s, b - (s - a)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """``a + b`` as a pair, exact for any order of magnitudes."""
    s = a + b
    b_part = s - a
    return s, (a - (s - b_part)) + (b - b_part)


def halves(p: Primitives, x: Value) -> tuple[Value, Value]:
    """``x`` as the exact sum of a 26-bit and a 27-bit float; a literal is cut at once."""
    if type(x) is float:
        bits = struct.unpack("<q", struct.pack("<d", x))[0] & HIGH_HALF
        high = struct.unpack("<d", struct.pack("<q", bits))[0]
    else:
        high = p.from_bits(p.bits(x) & HIGH_HALF)
    return high, x - high


def two_product(p: Primitives, a: Value, b: Value) -> tuple[Value, Value]:
    """``a * b`` as a pair, to 2^-106 relative."""
    ah, al = halves(p, a)
    bh, bl = halves(p, b)
    s = a * b
    return s, ((ah * bh - s) + ah * bl + al * bh) + al * bl


def divide(p: Primitives, n: Value, d: Value) -> tuple[Value, Value, Value]:
    """``(q, n - q d, 1 / d)`` with ``q`` the quotient ``n / d`` to an ulp or two.

    The remainder is computed exactly, by halves.
    """
    inverse = 1.0 / d
    q = n * inverse
    qh, ql = halves(p, q)
    dh, dl = halves(p, d)
    return q, ((n - qh * dh) - qh * dl) - ql * d, inverse


def polynomial(x: Value, xx: Value, coefficients: Sequence[float]) -> Value:
    """``sum(c[i] x**i)`` for three or more terms, by two Horner schemes in ``xx = x*x``.

    One operation more than Horner's scheme, half its latency; the largest term is added last.
    """
    odd = _horner(xx, coefficients[1::2])
    even = _horner(xx, coefficients[2::2])
    return coefficients[0] + (x * odd + xx * even)


def _horner(x: Value, coefficients: Sequence[float]) -> Value:
    """``sum(c[i] x**i)`` by Horner's scheme."""
    result: Value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result
