"""``least_squares``: SciPy's call, with exact Jacobians and trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from archimedes.optimize.fits.levenberg_marquardt import lm_solve
from archimedes.optimize.fits.results import LMResult

__all__ = ["least_squares"]

#: "hess-lm" is the name that users of the original type.
METHODS = ("hess-lm", "lm")
_OPTIONS = (
    *("tol", "maxiter", "maxtime", "ftol", "xtol", "gtol"),
    *("max_nfev", "damping", "loss", "f_scale", "jac"),
)


def least_squares(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    bounds: Any = None,
    method: str = "hess-lm",
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> LMResult:
    """Minimise the sum of squares of ``func(x, *args)`` from ``x0``: :func:`lm_solve`.

    ``method`` is "hess-lm" or "lm": both are the Levenberg-Marquardt method, and take ``bounds``.
    ``options``, a dict or by name: tol (for all of ftol, xtol, gtol), maxiter, maxtime (s),
    max_nfev, damping, and, for data with outliers, loss ("soft_l1", "huber", "cauchy", "arctan")
    and f_scale, as in SciPy.

    >>> import numpy as np
    >>> t = np.array([0.0, 1.0, 2.0, 3.0])
    >>> misfit = lambda p, y: p["a"] + p["b"] * t - y
    >>> fit = least_squares(misfit, {"a": 0.0, "b": 0.0}, (1 + 2 * t,))
    >>> round(float(fit.x["b"]), 6), fit.status.name
    (2.0, 'ROUNDING_REACHED')
    """
    if method not in METHODS:
        raise ValueError(
            f"least_squares: method={method!r} is not one of {METHODS}; for SciPy's "
            "methods write scipy.optimize.least_squares(f, x0, jac=arc.jac(f), method=...)"
        )
    given = {**(options or {}), **more}
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"least_squares: unknown options {unknown}; there are {_OPTIONS}")
    tol = given.pop("tol", None)
    if tol is not None:
        given = {**dict.fromkeys(("ftol", "xtol", "gtol"), tol), **given}
    return lm_solve(func, x0, args, bounds=bounds, **given)
