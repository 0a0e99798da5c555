"""Python's ``round(x, n)`` of a float: the nearest decimal to its exact value, ties to even.

NumPy rounds ``x * 10**n``, whose own rounding makes spurious ties: 2.675 is below the tie,
so that Python gives 2.67 and NumPy 2.68. Here the rounding error of the product decides
(Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18, 1971).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.trace import trace_error

__all__ = ["round_to_digits"]

_SPLIT = 2.0**27 + 1
#: From here on floats are whole numbers.
_WHOLE = 2.0**52
#: Powers of ten up to this one are exact.
_EXACT_DIGITS = 22


def round_to_digits(x: Any, digits: int) -> Any:
    """Return a traced float64 scalar rounded to ``digits`` decimal places."""
    if abs(digits) > _EXACT_DIGITS:
        raise trace_error(
            f"round(x, {digits}) of a Python float cannot be recorded",
            f"At most {_EXACT_DIGITS} digits can; np.round(x, {digits}) takes any number.",
        )
    scale = 10.0 ** abs(digits)
    if digits < 0:
        scaled = np.divide(x, scale)
        error = np.subtract(x, (np.floor(scaled) + 0.5) * scale)
        return np.where(np.abs(scaled) < _WHOLE, _nearest(scaled, error) * scale, x)
    scaled = np.multiply(x, scale)
    rounded = _nearest(scaled, _product_error(x, scale, scaled)) / scale
    return np.where(np.abs(scaled) < _WHOLE, rounded, x)


def _nearest(value: Any, error: Any) -> Any:
    """Round ``value + error`` to a whole number; the error counts where the value is a tie."""
    near = np.rint(value)
    rest = value - near
    up = np.logical_and(rest == 0.5, error > 0)
    down = np.logical_and(rest == -0.5, error < 0)
    return np.where(up, near + 1.0, np.where(down, near - 1.0, near))


def _halves(x: Any) -> tuple[Any, Any]:
    cut = np.multiply(x, _SPLIT)
    high = cut - (cut - x)
    return high, x - high


def _product_error(a: Any, b: float, product: Any) -> Any:
    """What ``a * b`` lost by rounding to ``product``."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl
