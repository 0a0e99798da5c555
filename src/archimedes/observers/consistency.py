"""Whether errors are as large as a filter says."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import symmetric_matrix, vector

__all__ = ["nees"]


def nees(x_true: Any, x: Any, P: Any) -> Any:
    """Return the normalised estimation error squared, e^T P^-1 e with e = x_true - x.

    It is chi-square distributed with n degrees of freedom where the filter is consistent
    (Bar-Shalom et al., "Estimation with applications to tracking and navigation", 5.4.2). For
    many at once: ``arc.vmap(nees)``.

    >>> nees([1.0, 2.0], [0.0, 0.0], np.diag([1.0, 4.0]))
    np.float64(2.0)
    """
    x = vector(x, "x")
    e = vector(x_true, "x_true", x.shape[0]) - x
    return e @ np.linalg.solve(symmetric_matrix(P, "P", x.shape[0], eigenvalues="positive"), e)
