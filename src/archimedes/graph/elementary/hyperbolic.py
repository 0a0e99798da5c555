"""sinh, cosh, tanh and their inverses.

With ``|x| = k ln2 + r`` and ``w = 2^(-2k)``, ``sinh|x| = 2^(k-1) ((1+w) sinh r + (1-w) cosh r)``
and ``cosh x = 2^(k-1) ((1+w) cosh r + (1-w) sinh r)``. tanh is a short exact part and a quotient
that is small beside it. The inverses are logarithms of pairs.

Legend: ``hi, lo`` reduced argument ``hi - lo``; ``even, odd`` parts of ``exp(r) - 1 - hi``.
"""

from __future__ import annotations

from archimedes.graph.elementary.coefficients import POLYNOMIALS
from archimedes.graph.elementary.exponential import (
    BIAS,
    ROUNDER,
    inverse_power,
    log_of_pair,
    reduce_exponent,
    scale,
)
from archimedes.graph.elementary.pairs import fast_two_sum, halves, polynomial, two_product, two_sum
from archimedes.graph.elementary.primitives import INF, NAN, Primitives, Value

HALF_LN2_HIGH = float.fromhex("0x1.62e42fefa398p-2")
"""Upper 46 bits of ln(2) / 2: its product with a 6-bit integer is exact."""
HALF_LN2_LOW = float.fromhex("0x1.bcd5e4f1d9ccp-48")
"""ln(2) / 2 minus HALF_LN2_HIGH."""
TWO_LOG2_E = 2.8853900817779268
"""2 / ln 2."""
LARGEST = 711.0
"""sinh and cosh overflow before this."""


def _parts(p: Primitives, x: Value) -> tuple[Value, ...]:
    """``(biased, w, hi, even, odd)`` of ``|x|``; ``scale(., biased)`` is times 2^(k-1)."""
    size = p.abs(x)
    size = p.where(size > LARGEST, LARGEST, size)
    k, biased, hi, lo = reduce_exponent(p, size, BIAS - 1)
    w = inverse_power(p, k + k, (2 * (BIAS - 1) + 1023) - biased - biased)
    r = hi - lo
    z = r * r
    zz = z * z
    even = z * polynomial(z, zz, POLYNOMIALS["expm1"].c[0::2])
    odd = r * z * polynomial(z, zz, POLYNOMIALS["expm1"].c[1::2]) - lo
    return biased, w, hi, even, odd


def sinh(p: Primitives, x: Value) -> Value:
    """Hyperbolic sine."""
    biased, w, hi, even, odd = _parts(p, x)
    one, lost = fast_two_sum(1.0, -w)
    s1, e1 = fast_two_sum(one, hi)
    s2, e2 = fast_two_sum(s1, w * hi)
    tail = one * even + ((1.0 + w) * odd + lost)
    return p.copysign(scale(p, s2 + ((e1 + e2) + tail), biased), x)


def cosh(p: Primitives, x: Value) -> Value:
    """Hyperbolic cosine."""
    biased, w, hi, even, odd = _parts(p, x)
    one, lost = fast_two_sum(1.0, w)
    total, error = fast_two_sum(one, hi)
    tail = (one * even + ((1.0 - w) * odd + lost)) - w * hi
    return scale(p, total + (error + tail), biased)


def tanh(p: Primitives, x: Value) -> Value:
    """Hyperbolic tangent: what is exact and near, plus one quotient that is small beside it.

    Up to 0.6 that is ``|x|``. Beyond, with ``|x| = k ln2/2 + r``, ``tanh(r) = odd / even`` and
    ``w = 2**-k``, it is ``1 - 2w + 2w**2``, within 0.09 of the result.
    """
    size = p.abs(x)
    size = p.where(size > 20.0, 20.0, size)
    small = size < 0.6
    shifted = p.where(small, ROUNDER, size * TWO_LOG2_E + ROUNDER)
    k = shifted - ROUNDER
    w = p.from_bits((1023 - p.bits(shifted)) << 52)
    r = (size - k * HALF_LN2_HIGH) - k * HALF_LN2_LOW
    z = r * r
    (n0, n1, n2), (d0, d1, d2, _) = POLYNOMIALS["tanh"].c, POLYNOMIALS["tanh"].over
    tail = z * ((n2 * z + n1) * z + n0)
    even = ((z + d2) * z + d1) * z + d0
    odd = r * (even + tail)
    rest, twice = 1.0 - w, w + w
    near = p.where(small, size, 1.0 - twice * rest)
    top = p.where(small, r * tail, (1.0 + rest * rest) * odd - (w * w) * even)
    return p.copysign(near + twice * top / ((1.0 + w) * even + rest * odd), x)


def _root_of_pair(p: Primitives, h: Value, low: Value) -> tuple[Value, Value]:
    """Square root of ``h + low > 0`` as a pair."""
    root = p.sqrt(h)
    upper, rest = halves(p, root)
    square_error = ((h - upper * upper) - 2.0 * upper * rest) - rest * rest
    return root, 0.5 * (square_error + low) / root


def arcsinh(p: Primitives, x: Value) -> Value:
    """Inverse hyperbolic sine: ``log(|x| + sqrt(x**2 + 1))``."""
    size = p.abs(x)
    large = size > 2.0**30
    a = p.where(large, 1.0, size)
    square, error = two_product(p, a, a)
    h, e = two_sum(1.0, square)
    rh, rl = _root_of_pair(p, h, e + error)
    uh, ul = two_sum(rh, a)
    # sqrt(x**2 + 1) = |x| for large x: log(2|x|).
    y = log_of_pair(
        p,
        p.where(large, size, uh),
        p.where(large, 0.0, ul + rl),
        p.where(large, 1.0, 0.0),
    )
    y = p.where(size < 2.0**-28, size, y)
    return p.where(size < INF, p.copysign(y, x), x)


def arccosh(p: Primitives, x: Value) -> Value:
    """Inverse hyperbolic cosine: ``log(1 + t + sqrt(t (t + 2)))`` with ``t = x - 1``."""
    large = x > 2.0**30
    t = p.where(large, 1.0, x) - 1.0
    sh, sl = two_sum(2.0, t)
    square, error = two_product(p, t, sh)
    # The tiny term keeps x = 1 from dividing by zero; it is lost beside any other t.
    rh, rl = _root_of_pair(p, square + 1e-300, error + t * sl)
    fh, fl = fast_two_sum(rh, t)
    fh, fe = two_sum(fh, fl + rl)
    uh, ul = two_sum(1.0, fh)
    y = log_of_pair(
        p,
        p.where(large, x, uh),
        p.where(large, 0.0, ul + fe),
        p.where(large, 1.0, 0.0),
    )
    y = p.where(x == 1.0, 0.0, y)
    return p.where(x >= 1.0, p.where(x == INF, INF, y), NAN)


def arctanh(p: Primitives, x: Value) -> Value:
    """Inverse hyperbolic tangent: ``log1p(2|x| / (1 - |x|)) / 2``."""
    size = p.abs(x)
    n = size + size
    dh, dl = two_sum(1.0, -size)
    inverse = 1.0 / dh
    q = n * inverse
    qh, ql = halves(p, q)
    eh, el = halves(p, dh)
    low = ((((n - qh * eh) - qh * el) - ql * dh) - q * dl) * inverse
    uh, ul = two_sum(1.0, q)
    y = 0.5 * log_of_pair(p, uh, ul + low)
    y = p.where(size < 2.0**-28, size, y)
    y = p.where(size == 1.0, INF, y)
    return p.copysign(p.where(size <= 1.0, y, NAN), x)
