"""The simplified Newton iteration of implicit methods: one matrix for all iterations.

Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.8, for the
iteration and its convergence test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import stop_gradient, while_loop
from archimedes.simulate.methods.method_table import rms_norm

__all__ = ["FAILED", "simplified_newton"]

#: Without tolerances (fixed steps), Newton's iteration ends where its error is this small a part of
#: the unknowns.
FIXED_STEP_TOLERANCE = 1e-11
#: With tolerances, it ends where its error is this part of the error that a step may have.
ADAPTIVE_TOLERANCE = 1e-4
#: Errors below this part of the unknowns are rounding, whatever the tolerances.
_ROUNDING = 10.0 * float(np.finfo(np.float64).eps) / ADAPTIVE_TOLERANCE
#: A step of fixed size has failed where Newton's iteration leaves more than this part of the
#: unknowns.
FAILED = 1e-6
_TINY = 1e-300


def simplified_newton(
    residual: Callable[[Any], Any],
    base: Any,
    guess: Any,
    solve: Callable[[Any], Any],
    max_steps: int,
    scale: Any = None,
) -> tuple[Any, Any]:
    """Solve residual(X) = 0 by X += solve(residual(X)); return X and the norm of its error.

    ``solve`` is about the inverse of -d residual / dX. Changes count relative to ``scale``, the
    error that a step may have; without one, relative to abs(X) + abs(base). The iteration contracts
    by a rate, so that after a change d the error is about d rate / (1 - rate) (Hairer & Wanner II,
    IV.8.10). It ends where that is small or where the changes have begun to grow.
    """
    tolerance = FIXED_STEP_TOLERANCE if scale is None else ADAPTIVE_TOLERANCE

    def going(state: Any) -> Any:
        _, size, before, count = state
        rate = size / np.maximum(before, _TINY)
        error = np.where(count > 1, size * rate / np.maximum(1.0 - rate, 0.01), size)
        return (count < 1) | ((error > tolerance) & (size <= 2.0 * before))

    def iterate(state: Any) -> Any:
        X, size, _, count = state
        change = solve(residual(X))
        X = X + change
        least = np.abs(X) + np.abs(base) + _TINY
        unit = least if scale is None else np.maximum(scale, _ROUNDING * least)
        return X, rms_norm(change, unit), size, count + 1

    huge = np.full((), np.inf)
    start = (guess, huge, huge, 0)
    X, size, before, count = while_loop(going, iterate, start, max_steps=max_steps)
    rate = np.where(count > 1, size / np.maximum(before, _TINY), 1.0)
    # A diverging iteration has a rate above 1, and its last change tells how bad it is.
    return X, stop_gradient(size * np.minimum(rate, 1.0))
