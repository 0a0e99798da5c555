"""``a * b + c`` with one rounding, in plain arithmetic: the meaning of the ``fma`` op.

float64: the product and two sums are split into rounded values and their exact errors (Dekker
1971; Knuth, TAOCP 2, 4.2.2), and the small parts are added with rounding to odd, after which one
ordinary rounding is right (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008, figure 5). The proof
needs that nothing overflows or underflows on the way: outside ``SMALL`` .. ``LARGE``, and for
single numbers, exact ints are used. float32: the product is exact in float64, and a sum rounded to
odd there rounds rightly to float32 (the same paper, theorem 3.3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

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
        return np.float64(_exact(float(a), float(b), float(c)))
    arrays = np.broadcast_arrays(a, b, c)
    compute = _single if arrays[0].dtype == np.float32 else _double
    with np.errstate(all="ignore"):
        return compute(*(x.ravel() for x in arrays)).reshape(arrays[0].shape)[()]


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded sum and its error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded product and its error."""
    p = a * b
    t = SPLITTER * a
    a1 = t - (t - a)
    a2 = a - a1
    t = SPLITTER * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _exact(a: float, b: float, c: float) -> float:
    """Return one float64 result of any kind: a quotient of ints, which is rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0.0 or b == 0.0:
        return a * b + c  # no rounding before the sum
    if not math.isfinite(c):
        return c
    (a_top, a_below), (b_top, b_below) = a.as_integer_ratio(), b.as_integer_ratio()
    c_top, c_below = c.as_integer_ratio()
    below = a_below * b_below
    top = a_top * b_top * c_below + c_top * below
    try:
        return top / (below * c_below)  # a sum that cancels is +0
    except OverflowError:
        return math.inf if top > 0 else -math.inf


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
        result[at] = _exact(float(a[at]), float(b[at]), float(c[at]))
    return result


def _single(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    total, error = _two_sum(a.astype(np.float64) * b, c.astype(np.float64))
    # Of an infinity or a nan the error is nan, which is not to be rounded with.
    odd = _to_odd(total, np.where(np.isfinite(total), error, 0.0))
    return odd.astype(np.float32)
