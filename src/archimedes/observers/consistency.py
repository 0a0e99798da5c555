"""Whether errors are as large as a filter says."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import symmetric_matrix, vector
from archimedes.observers.charts import chart_of

__all__ = ["consistency_bounds", "nees"]


def nees(x_true: Any, x: Any, P: Any) -> Any:
    """Return the normalized estimation error squared, ``e^T P^-1 e`` with e = x_true - x.

    Errors of attitudes are rotations, as in the filters. It is chi-square distributed with n
    degrees of freedom if the filter is consistent (Bar-Shalom et al., "Estimation with applications
    to tracking and navigation", 5.4.2). For many at once: ``arc.vmap(nees)``.

    Parameters
    ----------
    x_true : array (n,) or tree
        True state.
    x : array (n,) or tree
        Estimate.
    P : array (n, n)
        Its covariance.

    Examples
    --------
    >>> nees([1.0, 2.0], [0.0, 0.0], np.diag([1.0, 4.0]))
    np.float64(2.0)
    """
    chart, x = chart_of(x)
    if chart.plain:
        x_true = vector(x_true, "x_true", chart.size)
    e = chart.minus(x_true, x)
    return e @ np.linalg.solve(symmetric_matrix(P, "P", chart.size, eigenvalues="positive"), e)


def consistency_bounds(size: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Return the limits within which the mean of independent NEES or NIS values should lie.

    A consistent filter is within them with the given probability.

    Parameters
    ----------
    size : int
        Number of states, or of measurements.
    count : int
        Number of values that are averaged.
    level : float, optional
        Probability, 0.95 by default.

    Examples
    --------
    >>> low, high = consistency_bounds(6, 1000)
    >>> round(low, 3), round(high, 3)
    (5.787, 6.217)
    """
    from scipy.stats import chi2

    if size < 1 or count < 1 or not 0.0 < level < 1.0:
        raise ValueError(f"size={size}, count={count} must be positive, level={level} below one")
    tail = 0.5 * (1.0 - level)
    low, high = (float(chi2.ppf(p, size * count)) / count for p in (tail, 1.0 - tail))
    return low, high
