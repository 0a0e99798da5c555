"""Special functions with SciPy's names: the same bits eagerly, recorded, in batches and in C.

``scipy.special.erf`` and the others work on traced arrays too, and record the same programs; the
functions here give those bits eagerly as well. Their accuracy is in ``docs/recording.md``.

>>> from archimedes import special
>>> special.erf([0.0, 0.5])
array([0.        , 0.52049988])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archimedes.function.reproducible import apply_elementary, require_fixed

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike

__all__ = ["betaln", "digamma", "erf", "erfc", "exp10", "gamma", "gammaln", "polygamma", "psi"]


def erf(x: ArrayLike) -> Array:
    """Return the error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape. Results are float32 for float32, else float64.

    Returns
    -------
    array
        Values between -1 and 1, with the shape of `x`.

    Examples
    --------
    >>> from archimedes.special import erf
    >>> round(float(erf(0.5)), 12)
    0.520499877813
    """
    return apply_elementary("erf", x)


def erfc(x: ArrayLike) -> Array:
    """Return the complementary error function, 1 - erf(x).

    It stays accurate where erf(x) is close to one.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape. Results are float32 for float32, else float64.

    Returns
    -------
    array
        Values between 0 and 2, with the shape of `x`.

    Examples
    --------
    >>> from archimedes.special import erfc
    >>> round(float(erfc(0.5)), 12)
    0.479500122187
    """
    return apply_elementary("erfc", x)


def exp10(x: ArrayLike) -> Array:
    """Return 10 to the power x.

    Powers of ten that are floats (1 to 1e22) are exact. Every other result is within 0.8 units in
    the last place, and takes a third of the operations of ``10.0**x``.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape. Results are float32 for float32, else float64.

    Returns
    -------
    array
        ``10**x``, with the shape of `x`; inf above 308.25, 0 below -323.6.

    Examples
    --------
    >>> from archimedes.special import exp10
    >>> exp10([-1.0, 0.0, 2.0])
    array([  0.1,   1. , 100. ])
    """
    return apply_elementary("exp10", x)


def gamma(x: ArrayLike) -> Array:
    """Return the gamma function.

    It is nan at the poles below zero, and inf with the sign of x at zero.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape. Results are float32 for float32, else float64.

    Returns
    -------
    array
        gamma(x), with the shape of `x`.

    Examples
    --------
    >>> from archimedes.special import gamma
    >>> round(float(gamma(5.0)), 12)
    24.0
    """
    return apply_elementary("gamma", x)


def gammaln(x: ArrayLike) -> Array:
    """Return the logarithm of the absolute value of the gamma function.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape. Results are float32 for float32, else float64.

    Returns
    -------
    array
        ``log(|gamma(x)|)``, with the shape of `x`.

    Examples
    --------
    >>> from archimedes.special import gammaln
    >>> round(float(gammaln(10.0)), 12)
    12.801827480081
    """
    return apply_elementary("gammaln", x)


def digamma(x: ArrayLike) -> Array:
    """Return the digamma function, the derivative of `gammaln`.

    It is nan at the poles below zero.

    Parameters
    ----------
    x : array_like
        Real numbers of any shape. Results are float32 for float32, else float64.

    Returns
    -------
    array
        psi(x), with the shape of `x`.

    Examples
    --------
    >>> from archimedes.special import digamma
    >>> round(float(digamma(1.0)), 12)
    -0.577215664902
    """
    return apply_elementary("digamma", x)


psi = digamma


def polygamma(n: int, x: ArrayLike) -> Array:
    """Return the n-th derivative of the digamma function.

    Parameters
    ----------
    n : int
        Order of the derivative, from 0 (digamma itself) to 10.
    x : array_like
        Real numbers of any shape. Below zero only the orders up to 2 are available, as many as
        second derivatives of `gammaln` need; the result is nan for higher ones.

    Returns
    -------
    array
        The derivative, with the shape of `x`.

    Examples
    --------
    >>> polygamma(1, 1.0)
    np.float64(1.6449340668482264)
    """
    require_fixed(n, "the order of polygamma")
    if not isinstance(n, (int, np.integer)) or not 0 <= n <= 10:
        raise ValueError(f"polygamma: the order n must be a whole number from 0 to 10, got {n!r}")
    order = np.float32(n) if getattr(x, "dtype", None) == np.float32 else float(n)
    return digamma(x) if n == 0 else apply_elementary("polygamma", order, x)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the logarithm of the absolute value of the beta function.

    The beta function is gamma(a) gamma(b) / gamma(a + b). The result is a sum of three
    logarithms, so its error is relative to the largest of them.

    Parameters
    ----------
    a, b : array_like
        Real numbers, which broadcast against each other.

    Returns
    -------
    array
        ``log(|beta(a, b)|)``, with the shape that `a` and `b` broadcast to.

    Examples
    --------
    >>> from archimedes.special import betaln
    >>> round(float(betaln(2.0, 3.0)), 12)
    -2.484906649788
    """
    return gammaln(a) + gammaln(b) - gammaln(np.add(a, b))
