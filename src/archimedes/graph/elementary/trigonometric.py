"""sin, cos, tan and their inverses.

sin, cos and tan share one reduction and two polynomials: ``x = k pi/2 + hi - lo`` with
``|hi - lo| <= pi/4``. A model that uses both sin and cos of an angle pays once for both: their
programs make the same subexpressions, which the graph shares.

Ordinary arguments (below 1e5): Cody and Waite's method with pi/2 in three pieces. ``k`` has at
most 16 bits and the first two pieces 37, so their products with ``k`` are exact, and 127 bits of
pi/2 in all are enough for every float64 in that range (the tests try all 65,536 multiples).

Larger ones: Payne and Hanek, "Radian reduction for trigonometric functions", SIGNUM 18 (1983).
Of ``x * 2/pi`` only the digits around the point matter: limbs of 26 bits of 2/pi are picked by
the exponent of x and multiplied by its significand in int64. 130 bits behind the point are kept;
the float64 nearest to a multiple of pi/2 (6381956970095103 * 2^797) needs 61 of them to cancel.

arcsin and arccos share one polynomial on [0, 1/4]: in ``x**2`` for ``|x| <= 1/2``, otherwise in
``(1 - |x|)/2`` through ``arcsin(x) = pi/2 - 2 arcsin(sqrt((1 - x)/2))`` (Abramowitz and Stegun
4.4.32), the rounding error of the root being added back.

The arctangents reduce the smaller over the larger side, ``t = a/b``, to ``(a - b)/(a + b)`` at
``pi/4`` where ``t > 1/2`` (so that ``a - b`` is exact), and correct the quotient by its remainder.

Legend: ``quadrant`` int64 whose low two bits are ``k mod 4``; ``limb`` 26-bit digit; ``hi, lo``
reduced angle ``hi - lo``; ``z = hi**2``; ``turns`` multiples of pi/4 that an angle starts from;
``q, ql`` reduced tangent.
"""

from __future__ import annotations

from archimedes.graph.elementary.coefficients import polynomials
from archimedes.graph.elementary.exponential import ROUNDER
from archimedes.graph.elementary.pairs import divide, fast_two_sum, halves, polynomial, two_product
from archimedes.graph.elementary.primitives import INF, Primitives, Value

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
    reduced = hi, lo, p.bits(shifted)
    return p.branch(huge, lambda x, *_: _payne_hanek(p, x), lambda _, *same: same, x, *reduced)


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


def _sin_tail(hi: Value, lo: Value, z: Value, zz: Value) -> Value:
    """``hi - sin(hi - lo)``.

    It is +0, never -0, when hi is a zero, so that ``hi - tail`` keeps the sign of a zero.
    """
    return lo - hi * z * polynomial(z, zz, polynomials()["sin"].c)


def _cos_parts(hi: Value, lo: Value, z: Value, zz: Value) -> tuple[Value, Value]:
    """``cos(hi - lo)`` as ``1 - z/2`` rounded and what it lacks."""
    half = 0.5 * z
    w = 1.0 - half
    return w, ((1.0 - w) - half) + (zz * polynomial(z, zz, polynomials()["cos"].c) + hi * lo)


def _sin_and_cos(p: Primitives, x: Value) -> tuple[Value, Value, Value]:
    """Sine and cosine of the reduced angle, and the quadrant."""
    hi, lo, quadrant = reduce_angle(p, x)
    z = hi * hi
    zz = z * z
    w, c = _cos_parts(hi, lo, z, zz)
    return hi - _sin_tail(hi, lo, z, zz), w + c, quadrant


def _signed(p: Primitives, x: Value, turn: Value) -> Value:
    """``x`` negated where bit 1 of ``turn`` is set."""
    return p.from_bits(p.bits(x) ^ ((turn & 2) << 62))


def sin(p: Primitives, x: Value) -> Value:
    """Sine of an angle in radians."""
    s, c, quadrant = _sin_and_cos(p, x)
    return _signed(p, p.where((quadrant & 1) == 0, s, c), quadrant)


def cos(p: Primitives, x: Value) -> Value:
    """Cosine of an angle in radians."""
    s, c, quadrant = _sin_and_cos(p, x)
    return _signed(p, p.where((quadrant & 1) == 0, c, s), quadrant + 1)


def tan(p: Primitives, x: Value) -> Value:
    """Tangent of an angle in radians: the quotient of sine and cosine as pairs."""
    hi, lo, quadrant = reduce_angle(p, x)
    z = hi * hi
    zz = z * z
    # Two errors that sin and cos alone can afford: of z, and of lo in place of lo cos(hi).
    upper, rest = halves(p, hi)
    z_error = ((upper * upper - z) + 2.0 * upper * rest) + rest * rest
    w, c = _cos_parts(hi, lo, z, zz)
    ch, cl = fast_two_sum(w, c - 0.5 * z_error)
    sh, sl = fast_two_sum(hi, -_sin_tail(hi, lo * w, z, zz))
    even = (quadrant & 1) == 0
    nh, nl = p.where(even, sh, ch), p.where(even, sl, cl)
    dh, dl = p.where(even, ch, -sh), p.where(even, cl, -sl)
    # The quotient of the upper parts is corrected by its remainder: rounded once, about 0.5 ulp.
    q, remainder, inverse = divide(p, nh, dh)
    quotient = q + (remainder + (nl - q * dl)) * inverse
    return p.where(x == 0.0, x, quotient)


QUARTER_PI_HIGH = float.fromhex("0x1.921fb54442d10p-1")
"""Upper 49 bits of pi/4: its product with 0 to 4 is exact."""
QUARTER_PI_LOW = float.fromhex("0x1.08d313198a2e0p-50")


def _arcsin_parts(p: Primitives, x: Value) -> tuple[Value, Value, Value]:
    """``(small, s, tail)``.

    ``arcsin(x) = s + tail`` where ``small`` (|x| <= 1/2); otherwise
    ``arcsin(sqrt((1 - |x|)/2)) = s + tail``.
    """
    size = p.abs(x)
    small = size <= 0.5
    z = p.where(small, x * x, 0.5 - 0.5 * size)
    root = p.sqrt(z)
    high, _ = halves(p, root)
    # z - root**2 over twice the root; the tiny term keeps |x| = 1 from dividing by zero.
    lost = (z - high * high) / (root + high + 1e-300) - (root - high)
    s = p.where(small, x, root)
    tail = s * (z * polynomial(z, z * z, polynomials()["arcsin"].c))
    return small, s, p.where(small, tail, tail + lost)


def arcsin(p: Primitives, x: Value) -> Value:
    """Inverse sine, in radians."""
    small, s, tail = _arcsin_parts(p, x)
    h, e = fast_two_sum(HALF_PI_HIGH, -2.0 * s)
    large = h + (e + (HALF_PI_LOW - 2.0 * tail))
    return p.copysign(p.where(small, s + tail, large), x)


def arccos(p: Primitives, x: Value) -> Value:
    """Inverse cosine, in radians."""
    small, s, tail = _arcsin_parts(p, x)
    negative = x < 0.0
    factor = p.where(small, -1.0, p.where(negative, -2.0, 2.0))
    start = p.where(small, 1.0, p.where(negative, 2.0, 0.0))
    h, e = fast_two_sum(start * HALF_PI_HIGH, factor * s)
    return h + (e + (start * HALF_PI_LOW + factor * tail))


def _angle(p: Primitives, a: Value, b: Value, swapped: Value, obtuse: Value | None = None) -> Value:
    """Angle between 0 and pi whose reference triangle has the sides ``a <= b``.

    ``arctan(a/b)``, taken from pi/2 where ``swapped``, then from pi where ``obtuse``. Neither
    ``b`` nor ``a/b`` may leave the range in which reciprocals and remainders are exact.
    """
    reduced = a + a > b
    a_part = p.where(reduced, a, 0.0)
    numerator = a - p.where(reduced, b, 0.0)
    d = b + a_part
    d_error = a_part - (d - b)
    q, remainder, inverse = divide(p, numerator, d)
    low = (remainder - q * d_error) * inverse
    z = q * q
    tail = q * z * polynomial(z, z * z, polynomials()["arctan"].c) + low

    turns = p.where(reduced, 1.0, 0.0)
    turns = p.where(swapped, 2.0 - turns, turns)
    sign = p.where(swapped, -1.0, 1.0)
    if obtuse is not None:
        turns = p.where(obtuse, 4.0 - turns, turns)
        sign = p.where(obtuse, -sign, sign)
    h, e = fast_two_sum(turns * QUARTER_PI_HIGH, sign * q)
    return h + (e + (turns * QUARTER_PI_LOW + sign * tail))


def arctan(p: Primitives, x: Value) -> Value:
    """Inverse tangent, in radians."""
    size = p.abs(x)
    # Beyond 2^60 the result is pi/2 to the last bit; below 2^-30 it is x.
    inner = p.where(size > 2.0**60, 2.0**60, size)
    swapped = inner > 1.0
    a = p.where(swapped, 1.0, inner)
    b = p.where(swapped, inner, 1.0)
    angle = _angle(p, a, b, swapped)
    return p.where(size < 2.0**-30, x, p.copysign(angle, x))


def arctan2(p: Primitives, y: Value, x: Value) -> Value:
    """Angle of the point (x, y), in radians, between -pi and pi."""
    size_x, size_y = p.abs(x), p.abs(y)
    swapped = size_y > size_x
    a = p.where(swapped, size_x, size_y)
    b = p.where(swapped, size_y, size_x)
    # An infinite side: the other one is zero beside it, unless both are.
    infinite = b == INF
    a = p.where(infinite, p.where(a == INF, 1.0, p.where(a < INF, 0.0, a)), a)
    b = p.where(infinite, 1.0, b)
    # Keep products and reciprocals away from overflow and from subnormals; 0/0 becomes 0.
    factor = p.where(b > 2.0**500, 2.0**-400, 2.0**500)
    b = b * factor + 2.0**-1000
    angle = _angle(p, a * factor, b, swapped, p.bits(x) < 0)
    return p.copysign(angle, y)
