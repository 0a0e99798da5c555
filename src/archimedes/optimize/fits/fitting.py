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
    """Minimize the sum of squares of residuals, as :func:`lm_solve` does.

    Parameters
    ----------
    func : callable
        Residuals ``func(x, *args)``, any tree of numbers.
    x0 : float, array or tree
        Starting point.
    args : tuple, optional
        Further arguments of the functions.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    method : {"hess-lm", "lm"}, optional
        Both names stand for the Levenberg-Marquardt method.
    options : mapping, optional
        Options: ``tol`` (for all of ftol, xtol, gtol), ``maxiter``, ``maxtime`` (s), ``max_nfev``,
        ``damping``, and for data with outliers ``loss`` ("soft_l1", "huber", "cauchy", "arctan")
        and ``f_scale``, as in SciPy.
    **more
        The same options by name.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.array([0.0, 1.0, 2.0, 3.0])
    >>> misfit = lambda p, y: p["a"] + p["b"] * t - y
    >>> fit = least_squares(misfit, {"a": 0.0, "b": 0.0}, (1 + 2 * t,))
    >>> round(float(fit.x["b"]), 6), fit.success
    (2.0, True)
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
