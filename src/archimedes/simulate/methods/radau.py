"""Radau IIA of order 5: three implicit stages, L-stable, for fixed steps of stiff systems.

Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", table IV.5.6, and
section IV.8 for the unknowns Z.

Symbols: Z_i = X_i - x, the changes of the state up to stage i, stacked (3 n,).

    Z = h (A kron I) F,    F_i = f(t + c_i h, x + Z_i);    x(t + h) = x + Z_3
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.function.linear_combinations import weighted
from archimedes.simulate.methods.linear_systems import linearised
from archimedes.simulate.methods.method_table import Derivative, Method, Step, register
from archimedes.simulate.methods.newton import FAILED, simplified_newton

__all__ = ["RADAU5"]

NEWTON_STEPS = 20
_ROOT = math.sqrt(6.0)
_C = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_A = np.array(
    [
        [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
        [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
        [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
    ]
)
#: From the stages to the coefficients of the polynomial through them and x.
_TO_COEFFICIENTS = np.array(
    [
        [10.048809399827416, -1.382142733160749, 1 / 3],
        [-25.62959144707664, 10.296258113743306, -8 / 3],
        [15.580782047249224, -8.914115380582556, 10 / 3],
    ]
)


def _start(f: Derivative, t: Any, x: Any) -> Any:
    """Return a placeholder: no step needs anything from the one before."""
    return np.zeros_like(x)


def _step(f: Derivative, t: Any, x: Any, h: Any, memory: Any) -> Step:
    """Take one step; nan where Newton's iteration does not converge, since no step is repeated."""
    solve = linearised(f, t, x)[1].stage_solver(_A, h)

    def residual(Z: Any) -> Any:
        changes = Z.reshape(3, x.size)
        slopes = [f(t + c * h, x + z) for c, z in zip(_C, changes)]
        return h * np.concatenate([weighted(row, slopes) for row in _A]) - Z

    base = np.concatenate([x, x, x])
    Z, error = simplified_newton(residual, base, np.zeros_like(base), solve, NEWTON_STEPS)
    stages = Z.reshape(3, x.size)
    x_new = np.where(error <= FAILED, x + stages[-1], np.nan)
    return Step(x_new, None, memory, stages)


def _dense(f: Derivative, t: Any, x: Any, h: Any, step: Step) -> Any:
    """Return the coefficients of the collocation polynomial."""
    return np.stack([weighted(row, step.stages) for row in _TO_COEFFICIENTS])


RADAU5 = register(
    Method(
        name="radau5",
        order=5,
        error_order=None,
        dense_order=3,
        dense_degree=3,
        start=_start,
        step=_step,
        dense=_dense,
        stiff=True,
    )
)
