"""Fits by the largest likelihood: the noise of a filter, Q and R, may depend on parameters too.

Minimised is the sum over samples of  1/2 e^T S^-1 e + 1/2 log det S,  of innovations e and their
covariances S, which both depend on the parameters; the covariance of a fit is the inverse of the
second derivatives there (L. Ljung, "System identification", 2nd ed., 1999, 7.4 and 9.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archimedes.function import compile, hess, vmap
from archimedes.optimize import minimize
from archimedes.sysid.weighted_fits import Problem, Solved

__all__ = ["most_likely"]


def _surprise(e: Any, S: Any) -> Any:
    """Return what one sample adds; one that is missing (e = 0, S = 1) adds nothing."""
    return 0.5 * (e @ np.linalg.solve(S, e)) + np.sum(np.log(np.diagonal(np.linalg.cholesky(S))))


def most_likely(
    along: Callable[[Any], tuple[Any, Any]], problem: Problem, options: Mapping[str, Any] | None
) -> Solved:
    """Maximise the likelihood of innovations (N, m) with covariances (N, m, m), functions of z."""
    held = np.array(problem.start)
    places = np.flatnonzero(problem.free)

    def cost(v: Any) -> Any:
        z = np.array(held)
        z[places] = v
        e, S = along(z)
        return np.sum(vmap(_surprise)(e, S)) / e.shape[0]

    start = held[places]
    if not np.isfinite(compile(cost)(start)):
        raise ValueError(
            "the likelihood is not finite with p_guess: start nearer, or keep Q and R positive "
            "with bounds= (or fit their logarithms)"
        )
    edges = (problem.lower[places], problem.upper[places])
    found = minimize(cost, start, bounds=edges, method="ipm", options=dict(options or {}))
    z = held.copy()
    z[places] = problem.start[places] = found.x
    e = np.asarray(compile(lambda z: along(z)[0])(z))
    H = np.zeros((z.size, z.size))
    H[np.ix_(places, places)] = e.shape[0] * hess(cost)(found.x)
    sizes, V = np.linalg.eigh(0.5 * (H + H.T))
    # As if they were slopes of residuals of variance one.
    slopes = np.sqrt(np.maximum(sizes, 0.0))[:, None] * V.T
    total = float(found.fun * e.shape[0])
    none = np.zeros((0, z.size))
    return Solved(
        z, e.ravel(), slopes, none, total, found.iterations, found.success, found.message, 1.0
    )
