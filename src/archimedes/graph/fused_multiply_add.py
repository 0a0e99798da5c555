"""``a * b + c`` with one rounding, in plain arithmetic: the meaning of the ``fma`` op.

float64: the product and two sums are split into rounded values and their exact errors (Dekker
1971; Knuth, TAOCP 2, 4.2.2), and the small parts are added with rounding to odd, after which one
ordinary rounding is right (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008, figure 5). The proof
needs that nothing overflows or underflows on the way: outside ``SMALL`` .. ``LARGE`` exact
rationals are used. float32: the product is exact in float64, and a sum rounded to odd there
rounds rightly to float32 (the same paper, theorem 3.3).
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

__all__ = ["fused_multiply_add"]

#: Factors, products and summands of these magnitudes leave room for their errors.
SMALL, LARGE = 2.0**-450, 2.0**450
SMALLEST_SUM = 2.0**-900
#: Splits 53 bits into 26 and 27 (Dekker 1971).
SPLITTER = 2.0**27 + 1.0


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once, for float64 or float32 scalars or arrays.

    Zeros, infinities and nans follow IEEE 754: ``inf * 0 + c`` is nan, and an exact zero sum of
    unlike signs is +0.

    >>> x = np.float64(1.0 + 2.0**-30)
    >>> float(fused_multiply_add(x, x, -(x * x))) == 2.0**-60
    True
    """
    if type(a) is type(b) is type(c) is np.float64:
        return np.float64(_scalar(float(a), float(b), float(c)))
    wide = np.broadcast_arrays(a, b, c)
    compute = _single if wide[0].dtype == np.float32 else _double
    with np.errstate(all="ignore"):
        return compute(*(x.ravel() for x in wide)).reshape(wide[0].shape)[()]


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and its error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product and its error."""
    p = a * b
    t = SPLITTER * a
    a1 = t - (t - a)
    a2 = a - a1
    t = SPLITTER * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _scalar(a: float, b: float, c: float) -> float:
    """One float64 instance on Python's floats, several times quicker than arrays of one item."""
    size_a, size_b, size_c = abs(a), abs(b), abs(c)
    ordinary = SMALL < size_a < LARGE and SMALL < size_b < LARGE
    if not ordinary or not (SMALLEST_SUM < size_c < LARGE or c == 0.0):
        return _special(a, b, c)
    uh, ul = _two_product(a, b)
    th, tl = _two_sum(c, ul)
    vh, vl = _two_sum(uh, th)
    z, error = _two_sum(tl, vl)
    if error != 0.0:
        (bits,) = struct.unpack("<q", struct.pack("<d", z))
        if not bits & 1:
            bits += 1 if (error > 0.0) == (z > 0.0) else -1
            (z,) = struct.unpack("<d", struct.pack("<q", bits))
    return vh + z


def _special(a: float, b: float, c: float) -> float:
    """One float64 instance of any kind, by exact rationals where it is finite."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0.0 or b == 0.0:
        return a * b + c  # no rounding before the sum
    if not math.isfinite(c):
        return c
    from fractions import Fraction  # rarely needed, and slow to import

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        # The quotient of two ints is rounded once; a sum that cancels is +0.
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _to_odd(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Round ``value + error`` to odd: of the two neighbours, the one whose last bit is set."""
    bits = value.view(np.int64)
    inexact = (error != 0.0) & (bits & 1 == 0)
    step = np.where((error > 0.0) == (value > 0.0), 1, -1)
    return np.where(inexact, bits + step, bits).view(np.float64)


def _double(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    uh, ul = _two_product(a, b)
    th, tl = _two_sum(c, ul)
    vh, vl = _two_sum(uh, th)
    result = vh + _to_odd(*_two_sum(tl, vl))
    size_a, size_b, size_c = np.abs(a), np.abs(b), np.abs(c)
    ordinary = (size_a > SMALL) & (size_a < LARGE) & (size_b > SMALL) & (size_b < LARGE)
    ordinary &= ((size_c > SMALLEST_SUM) & (size_c < LARGE)) | (c == 0.0)
    for at in np.flatnonzero(~ordinary):
        result[at] = _special(float(a[at]), float(b[at]), float(c[at]))
    return result


def _single(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    total, error = _two_sum(a.astype(np.float64) * b, c.astype(np.float64))
    # Of an infinity or a nan the error is nan, which is not to be rounded with.
    odd = _to_odd(total, np.where(np.isfinite(total), error, 0.0))
    return odd.astype(np.float32)
