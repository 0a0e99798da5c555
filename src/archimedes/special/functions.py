"""The special functions, on plain and traced arrays alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.elementary import evaluate
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_content import holds_traced
from archimedes.symbolic.numpy_functions.special_functions import record

__all__ = ["betaln", "digamma", "erf", "erfc", "gamma", "gammaln", "polygamma", "psi"]


def _apply(name: str, *operands: Any) -> Any:
    if any(holds_traced(x) for x in operands):
        return record(name, *operands)
    arrays = [np.asarray(x) for x in operands]
    for x in arrays:
        if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
            raise TypeError(f"special.{name} takes real numbers, got an array of dtype {x.dtype}")
    narrow = all(x.dtype == np.float32 for x in arrays)
    return evaluate(name, *(x if narrow else x.astype(float) for x in arrays))


def erf(x: Any) -> Any:
    """Return the error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    Elementwise; float32 stays, other real dtypes give float64. So do all functions here.
    """
    return _apply("erf", x)


def erfc(x: Any) -> Any:
    """Return 1 - erf(x), accurate where that is small."""
    return _apply("erfc", x)


def gamma(x: Any) -> Any:
    """Return the gamma function; nan at the poles below zero, inf with the sign of x at zero."""
    return _apply("gamma", x)


def gammaln(x: Any) -> Any:
    """Return the logarithm of the size of the gamma function."""
    return _apply("gammaln", x)


def digamma(x: Any) -> Any:
    """Return the derivative of gammaln; nan at the poles below zero."""
    return _apply("digamma", x)


psi = digamma


def polygamma(n: int, x: Any) -> Any:
    """Return the n-th derivative of digamma, n a whole number from 0 to 10.

    Below zero only up to n = 2, as far as second derivatives need it: nan beyond.

    >>> polygamma(1, 1.0)
    np.float64(1.6449340668482264)
    """
    if holds_traced(n):
        raise trace_error(
            "the order of polygamma is fixed when a function is recorded",
            "Declare the argument static (static_argnames).",
        )
    if not isinstance(n, (int, np.integer)) or not 0 <= n <= 10:
        raise ValueError(f"polygamma: the order n must be a whole number from 0 to 10, got {n!r}")
    order = np.float32(n) if getattr(x, "dtype", None) == np.float32 else float(n)
    return digamma(x) if n == 0 else _apply("polygamma", order, x)


def betaln(a: Any, b: Any) -> Any:
    """Return the logarithm of the size of the beta function, gamma(a) gamma(b) / gamma(a + b).

    By the difference of logarithms: its error is relative to the largest of them.
    """
    return gammaln(a) + gammaln(b) - gammaln(np.add(a, b))
