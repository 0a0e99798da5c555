"""Argument reduction of sin, cos and tan: ``x = k pi/2 + hi - lo`` with ``|hi - lo| <= pi/4``.

Ordinary arguments (below 1e5): Cody and Waite's method with pi/2 in three pieces. ``k`` has at
most 16 bits and the first two pieces 37, so their products with ``k`` are exact, and 127 bits of
pi/2 in all are enough for every float64 in that range (the tests try all 65,536 multiples).

Larger ones: Payne and Hanek, "Radian reduction for trigonometric functions", SIGNUM 18 (1983).
Of ``x * 2/pi`` only the digits around the point matter: limbs of 26 bits of 2/pi are picked by
the exponent of x and multiplied by its significand in int64. 130 bits behind the point are kept;
the float64 nearest to a multiple of pi/2 (6381956970095103 * 2^797) needs 61 of them to cancel.

Legend: ``quadrant`` int64 whose low two bits are ``k mod 4``; ``limb`` 26-bit digit.
"""

from __future__ import annotations

from archimedes.graph.elementary.exponential import ROUNDER
from archimedes.graph.elementary.pairs import fast_two_sum, two_product
from archimedes.graph.elementary.primitives import Primitives, Value

__all__ = ["HALF_PI_HIGH", "HALF_PI_LOW", "angle_of_turns", "reduce_angle"]

ORDINARY = 102900.0
"""Below this magnitude ``k`` is less than 2^16 = 65536."""
TWO_OVER_PI = 0.6366197723675814
PIECE_1 = float.fromhex("0x1.921fb5444p+0")
PIECE_2 = float.fromhex("0x1.68c234c4cp-39")
PIECE_3 = float.fromhex("0x1.98a2e03707345p-77")
"""pi/2 = PIECE_1 + PIECE_2 + PIECE_3 to 2^-130; the first two have 37 significant bits."""
HALF_PI_HIGH = 1.5707963267948966
HALF_PI_LOW = 6.123233995736766e-17
"""pi/2 = HALF_PI_HIGH + HALF_PI_LOW to 2^-109."""

LIMB = 26
LIMB_MASK = (1 << LIMB) - 1
LEADING_ZEROS = 4
"""Zero limbs in front of 2/pi, so that the smallest exponents need no special case."""
EXPONENT_SHIFT = 3 * LIMB
"""Added to the exponent of x before it is divided by LIMB, so that it is positive."""
COLUMNS = 7
"""One limb before the point, five behind it, and a guard limb."""

# floor(2/pi * 2^1248): 48 limbs. One number is easier to check than 48.
TWO_OVER_PI_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc20",
    16,
)
LIMBS: tuple[int, ...] = (0,) * LEADING_ZEROS + tuple(
    (TWO_OVER_PI_BITS >> (LIMB * (47 - j))) & LIMB_MASK for j in range(48)
)


def reduce_angle(p: Primitives, x: Value) -> tuple[Value, Value, Value]:
    """``(hi, lo, quadrant)``: 13 primitives and a branch that ordinary arguments do not take."""
    shifted = x * TWO_OVER_PI + ROUNDER
    k = shifted - ROUNDER
    high = x - k * PIECE_1
    middle = k * PIECE_2
    hi = high - middle
    lo = k * PIECE_3 - ((high - hi) - middle)
    huge = ~(p.abs(x) < ORDINARY)

    def reduce_huge(x: Value, hi: Value, lo: Value, quadrant: Value) -> tuple[Value, ...]:
        return _payne_hanek(p, x)

    return p.branch(huge, reduce_huge, _as_is, x, hi, lo, p.bits(shifted))


def _as_is(x: Value, hi: Value, lo: Value, quadrant: Value) -> tuple[Value, ...]:
    return hi, lo, quadrant


def _payne_hanek(p: Primitives, x: Value) -> tuple[Value, Value, Value]:
    """``(hi, lo, quadrant)`` for any finite ``|x| >= 1e5``; nan for infinities and nan."""
    bits = p.bits(p.abs(x))
    significand = (bits & ((1 << 52) - 1)) | (1 << 52)
    # |x| = significand * 2^(exponent - EXPONENT_SHIFT), and exponent = 26 q + s.
    exponent = p.shift_right_logical(bits, 52) - (1075 - EXPONENT_SHIFT)
    q = p.shift_right_logical(exponent * 2521, 16)
    s = exponent - q * LIMB
    # significand << s, cut into three limbs.
    low = (significand & LIMB_MASK) << s
    high = (p.shift_right_logical(significand, LIMB) << s) + p.shift_right_logical(low, LIMB)
    m0, m1, m2 = low & LIMB_MASK, high & LIMB_MASK, p.shift_right_logical(high, LIMB)
    start = q + (LEADING_ZEROS - 1 - EXPONENT_SHIFT // LIMB)
    digits = [p.lookup(LIMBS, start + j) for j in range(COLUMNS + 2)]
    carry: Value = 0
    columns: list[Value] = []
    for n in reversed(range(COLUMNS)):
        total = m0 * digits[n] + m1 * digits[n + 1] + m2 * digits[n + 2] + carry
        columns.append(total & LIMB_MASK)
        carry = p.shift_right_logical(total, LIMB)
    whole, f1, f2, f3, f4, f5 = columns[:0:-1]
    # Round to the nearest multiple: the fraction becomes signed.
    up = p.shift_right_logical(f1, LIMB - 1)
    quadrant = whole + up
    top = p.to_float(((f1 - (up << LIMB)) << LIMB) + f2) * 2.0**-52
    mid = p.to_float((f3 << LIMB) + f4) * 2.0**-104
    hi, low = angle_of_turns(p, top, mid, p.to_float(f5) * 2.0**-130)
    lo = -low
    hi = p.where(p.abs(x) < float("inf"), hi, float("nan"))
    negative = x < 0.0
    return (
        p.where(negative, -hi, hi),
        p.where(negative, -lo, lo),
        p.where(negative, 0 - quadrant, quadrant),
    )


def angle_of_turns(p: Primitives, top: Value, mid: Value, last: Value) -> tuple[Value, Value]:
    """``(top + mid + last) pi/2`` as a pair."""
    fraction, rest = fast_two_sum(top, mid)
    rest = rest + last
    product, error = two_product(p, fraction, HALF_PI_HIGH)
    return fast_two_sum(product, error + (fraction * HALF_PI_LOW + rest * HALF_PI_HIGH))
