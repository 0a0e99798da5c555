"""The special functions, on plain and traced arrays alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function.elementary_functions import apply_elementary, require_fixed

__all__ = ["betaln", "digamma", "erf", "erfc", "gamma", "gammaln", "polygamma", "psi"]


def erf(x: Any) -> Any:
    """Return the error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    Elementwise; float32 stays, other real dtypes give float64. So do all functions here.

    >>> from archimedes.special import erf
    >>> round(float(erf(0.5)), 12)
    0.520499877813
    """
    return apply_elementary("erf", x)


def erfc(x: Any) -> Any:
    """Return 1 - erf(x), accurate where that is small.

    >>> from archimedes.special import erfc
    >>> round(float(erfc(0.5)), 12)
    0.479500122187
    """
    return apply_elementary("erfc", x)


def gamma(x: Any) -> Any:
    """Return the gamma function; nan at the poles below zero, inf with the sign of x at zero.

    >>> from archimedes.special import gamma
    >>> round(float(gamma(5.0)), 12)
    24.0
    """
    return apply_elementary("gamma", x)


def gammaln(x: Any) -> Any:
    """Return the logarithm of the size of the gamma function.

    >>> from archimedes.special import gammaln
    >>> round(float(gammaln(10.0)), 12)
    12.801827480081
    """
    return apply_elementary("gammaln", x)


def digamma(x: Any) -> Any:
    """Return the derivative of gammaln; nan at the poles below zero.

    >>> from archimedes.special import digamma
    >>> round(float(digamma(1.0)), 12)
    -0.577215664902
    """
    return apply_elementary("digamma", x)


psi = digamma


def polygamma(n: int, x: Any) -> Any:
    """Return the n-th derivative of digamma, n a whole number from 0 to 10.

    Below zero only up to n = 2, as far as second derivatives need it: nan beyond.

    >>> polygamma(1, 1.0)
    np.float64(1.6449340668482264)
    """
    require_fixed(n, "the order of polygamma")
    if not isinstance(n, (int, np.integer)) or not 0 <= n <= 10:
        raise ValueError(f"polygamma: the order n must be a whole number from 0 to 10, got {n!r}")
    order = np.float32(n) if getattr(x, "dtype", None) == np.float32 else float(n)
    return digamma(x) if n == 0 else apply_elementary("polygamma", order, x)


def betaln(a: Any, b: Any) -> Any:
    """Return the logarithm of the size of the beta function, gamma(a) gamma(b) / gamma(a + b).

    By the difference of logarithms: its error is relative to the largest of them.

    >>> from archimedes.special import betaln
    >>> round(float(betaln(2.0, 3.0)), 12)
    -2.484906649788
    """
    return gammaln(a) + gammaln(b) - gammaln(np.add(a, b))
