"""Robertson's problem, which several files of tests solve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp


def robertson(t, y):
    first, second = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return np.stack([-first, first - second, second])


@pytest.fixture(scope="session")
def robertson_end():
    """The state at t = 1e5 by SciPy."""
    start = [1.0, 0.0, 0.0]
    return solve_ivp(robertson, (0, 1e5), start, method="Radau", rtol=1e-11, atol=1e-16).y[:, -1]
