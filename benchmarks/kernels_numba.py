"""The 6-dof rigid body as one would write it for numba: a function of numbers, a loop over bodies.

Symbols as in ``models.rigid_bodies``: q = (a, b, c, d) attitude, v and w velocities in body axes.
Vectors are tuples, which numba keeps in registers: three times as fast as small arrays. One
thread, no fastmath; divisions by zero give infinity, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["numba_rigid_bodies", "numba_rk4"]


@cache
def _functions() -> SimpleNamespace:
    """Make the functions that the loops below are written with."""
    import numba

    jit = numba.njit(error_model="numpy")

    @jit
    def inverse(J):
        """Return the inverse of a 3x3 matrix, row by row: cofactors over the determinant."""
        a, b, c = J[0, 0], J[0, 1], J[0, 2]
        d, e, f = J[1, 0], J[1, 1], J[1, 2]
        g, h, i = J[2, 0], J[2, 1], J[2, 2]
        A, B, C = e * i - f * h, f * g - d * i, d * h - e * g
        s = 1.0 / (a * A + b * B + c * C)
        return (
            A * s, (c * h - b * i) * s, (b * f - c * e) * s,
            B * s, (a * i - c * g) * s, (c * d - a * f) * s,
            C * s, (b * g - a * h) * s, (a * e - b * d) * s,
        )  # fmt: skip

    @jit
    def rate(x, F, M, m, J, K):
        """Return the rate of a state of 13 numbers; K is the inverse of J."""
        _, _, _, a, b, c, d, vx, vy, vz, wx, wy, wz = x
        squared = a * a + b * b + c * c + d * d
        s, k = 2.0 / squared, 1.0 - squared
        tx, ty, tz = c * vz - d * vy, d * vx - b * vz, b * vy - c * vx
        hx = J[0, 0] * wx + J[0, 1] * wy + J[0, 2] * wz
        hy = J[1, 0] * wx + J[1, 1] * wy + J[1, 2] * wz
        hz = J[2, 0] * wx + J[2, 1] * wy + J[2, 2] * wz
        nx = M[0] - (wy * hz - wz * hy)
        ny = M[1] - (wz * hx - wx * hz)
        nz = M[2] - (wx * hy - wy * hx)
        return (
            vx + s * (a * tx + c * tz - d * ty),
            vy + s * (a * ty + d * tx - b * tz),
            vz + s * (a * tz + b * ty - c * tx),
            k * a - 0.5 * (b * wx + c * wy + d * wz),
            k * b + 0.5 * (a * wx + c * wz - d * wy),
            k * c + 0.5 * (a * wy + d * wx - b * wz),
            k * d + 0.5 * (a * wz + b * wy - c * wx),
            F[0] / m - (wy * vz - wz * vy),
            F[1] / m - (wz * vx - wx * vz),
            F[2] / m - (wx * vy - wy * vx),
            K[0] * nx + K[1] * ny + K[2] * nz,
            K[3] * nx + K[4] * ny + K[5] * nz,
            K[6] * nx + K[7] * ny + K[8] * nz,
        )

    @jit
    def vector(a, n):
        return a[n, 0], a[n, 1], a[n, 2]

    @jit
    def state(x, n):
        return (
            x[n, 0], x[n, 1], x[n, 2], x[n, 3], x[n, 4], x[n, 5], x[n, 6],
            x[n, 7], x[n, 8], x[n, 9], x[n, 10], x[n, 11], x[n, 12],
        )  # fmt: skip

    @jit
    def store(x, n, values):
        for k in range(13):
            x[n, k] = values[k]

    @jit
    def along(x, s, d):
        """Return x + s d."""
        return (
            x[0] + s * d[0], x[1] + s * d[1], x[2] + s * d[2], x[3] + s * d[3],
            x[4] + s * d[4], x[5] + s * d[5], x[6] + s * d[6], x[7] + s * d[7],
            x[8] + s * d[8], x[9] + s * d[9], x[10] + s * d[10], x[11] + s * d[11],
            x[12] + s * d[12],
        )  # fmt: skip

    return SimpleNamespace(
        jit=jit, inverse=inverse, rate=rate, vector=vector, state=state, store=store, along=along
    )


@cache
def _batches() -> tuple[Any, Any]:
    """Loops over bodies: with mass and inertia in common, and with their own."""
    f = _functions()
    inverse, rate, vector, state, store = f.inverse, f.rate, f.vector, f.state, f.store

    @f.jit
    def shared(x, F, M, m, J, out):
        K = inverse(J)
        for n in range(len(x)):
            store(out, n, rate(state(x, n), vector(F, n), vector(M, n), m, J, K))

    @f.jit
    def own(x, F, M, m, J, out):
        for n in range(len(x)):
            K = inverse(J[n])
            store(out, n, rate(state(x, n), vector(F, n), vector(M, n), m[n], J[n], K))

    return shared, own


def numba_rigid_bodies(
    n: int, mass_and_inertia: tuple[float, np.ndarray] | None = None
) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
    """Rates of ``n`` bodies from arrays x, F_B, M_B, and m, J_B where these are not given here."""
    shared, own = _batches()
    out = np.empty((n, 13))

    def run(arrays: Sequence[np.ndarray]) -> np.ndarray:
        if mass_and_inertia is None:
            own(*arrays, out)
        else:
            shared(*arrays, *mass_and_inertia, out)
        return out

    return run


def numba_rk4(parameters: tuple[Any, ...], dt: float, steps: int) -> Callable[..., np.ndarray]:
    """States of many bodies after so many steps, under the same F_B, M_B, m, J_B."""
    f = _functions()
    inverse, rate, state, store, along = f.inverse, f.rate, f.state, f.store, f.along

    @f.jit
    def simulate(x0, F, M, m, J):
        K = inverse(J)
        out = np.empty_like(x0)
        for n in range(len(out)):
            x = state(x0, n)
            for _ in range(steps):
                a = rate(x, F, M, m, J, K)
                b = rate(along(x, 0.5 * dt, a), F, M, m, J, K)
                c = rate(along(x, 0.5 * dt, b), F, M, m, J, K)
                d = rate(along(x, dt, c), F, M, m, J, K)
                x = along(x, dt / 6.0, along(along(along(a, 2.0, b), 2.0, c), 1.0, d))
            store(out, n, x)
        return out

    return lambda x0: simulate(x0, *parameters)
