"""The simplified Newton iteration of implicit methods: one matrix for all iterations.

Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.8, for the
iteration and its convergence test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.function import while_loop
from archimedes.simulate.methods.method_table import rms_norm

__all__ = ["simplified_newton"]

#: Newton's iteration ends where its error is this small relative to the state of the stage, far
#: below any tolerance; a method does not know the tolerances, and the last iterations are cheap.
NEWTON_TOLERANCE = 1e-11
_TINY = 1e-300


def simplified_newton(
    residual: Callable[[Any], Any],
    base: Any,
    guess: Any,
    solve: Callable[[Any], Any],
    max_steps: int,
) -> Any:
    """Solve residual(X) = 0 by X += solve(residual(X)); return X and an estimate of its error.

    ``solve`` is about the inverse of -d residual / dX; changes count relative to
    abs(X) + abs(base). The iteration contracts by a rate, so that after a change d the error is
    about d rate / (1 - rate) (Hairer & Wanner II, IV.8.10). It ends where that is small or where
    the changes have begun to grow.
    """

    def going(state: Any) -> Any:
        _, _, size, before, count = state
        rate = size / np.maximum(before, _TINY)
        error = np.where(count > 1, size * rate / np.maximum(1.0 - rate, 0.01), size)
        return (count < 1) | ((error > NEWTON_TOLERANCE) & (size <= 2.0 * before))

    def iterate(state: Any) -> Any:
        X, _, size, _, count = state
        change = solve(residual(X))
        X = X + change
        scale = np.abs(X) + np.abs(base) + _TINY
        return X, change, rms_norm(change, scale), size, count + 1

    huge = np.full((), np.inf)
    start = (guess, np.zeros_like(guess), huge, huge, 0)
    X, change, size, before, count = while_loop(going, iterate, start, max_steps=max_steps)
    rate = np.where(count > 1, size / np.maximum(before, _TINY), 1.0)
    # A diverging iteration has a rate above 1, and its last change tells how bad it is.
    return X, change * np.minimum(rate, 1.0) + 0.0 * size
