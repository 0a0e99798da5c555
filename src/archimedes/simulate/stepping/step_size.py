"""Step size control: the first step, and the PI controller of the others.

HNW: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993.
HW: Hairer, Wanner, Solving Ordinary Differential Equations II, 2nd edition, 1996.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.simulate.methods.method_table import Derivative, rms_norm
from archimedes.simulate.methods.pieces import piece

__all__ = ["SMALLEST_LOG", "error_log", "initial_step", "next_factor", "smallest_step"]

#: The logarithm of 0.9.
LOG_SAFETY = -0.10536051565782628
#: A step grows and shrinks by at most these factors.
GROW, SHRINK = 10.0, 0.2
#: The logarithm of 1e-4: errors below that part of the tolerance do not make steps longer still.
SMALLEST_LOG = -9.210340371976182


def initial_step(
    f: Derivative, t: Any, x: Any, f0: Any, direction: Any, atol: Any, rtol: Any, order: int
) -> Any:
    """Return the size (> 0) of a first step (HNW, II.4, "Starting step size")."""
    scale = atol + np.abs(x) * rtol
    d0, d1 = rms_norm(x, scale), rms_norm(f0, scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1))
    f1 = f(t + direction * h0, x + direction * h0 * f0)
    d2 = rms_norm(f1 - f0, scale) / h0
    steepest = np.maximum(d1, d2)
    flat = ~(steepest > 1e-15)  # also where a trial point gave nan
    power = _root(0.01 / np.where(flat, 1.0, steepest), order)
    return np.minimum(100.0 * h0, np.where(flat, np.maximum(1e-6, h0 * 1e-3), power))


@piece("order")
def _root(x: Any, order: int) -> Any:
    return np.power(x, 1.0 / (order + 1))


@piece()
def error_log(norm: Any, finite: Any) -> Any:
    """Return the log of an error's norm; where that is not finite, the largest there is."""
    return np.log(np.maximum(np.where(finite, norm, 1e300), 1e-10))


@piece("order")
def next_factor(log_error: Any, log_before: Any, accepted: Any, again: Any, order: int) -> Any:
    """Return by how much to change the step after one of this error (log of its norm).

    The PI controller of HW IV.2 eq. (2.43), with beta = 0.2 / (order + 1) as in DOPRI5; a
    rejected step is judged by its own error alone, and the step after it does not grow
    (``again``).
    """
    q = order + 1
    beta = 0.2 / q
    alpha = 1.0 / q - 0.75 * beta
    integral = LOG_SAFETY - alpha * log_error
    wish = np.exp(np.where(accepted, integral + beta * log_before, integral))
    most = np.where(accepted & ~again, GROW, 1.0)
    return np.minimum(most, np.maximum(SHRINK, wish))


def smallest_step(t: Any, span: Any) -> Any:
    """Return the size below which a step from t is not worth trying.

    It is near the spacing of numbers at t, except where all of the span is: there steps may be
    as small as they can.
    """
    return np.minimum(16.0 * float(np.finfo(np.float64).eps) * np.abs(t), 1e-9 * span) + 1e-300
