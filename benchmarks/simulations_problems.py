"""Initial value problems with references: what the simulation benchmarks solve.

Each has its rates written once on scalars, for every tool, and where arrays suit NumPy and JAX
better also on arrays. Sources: HNW, HW = Hairer, Norsett, Wanner, Solving Ordinary Differential
Equations I (1993) and II (1996); TS = Mazzia, Magherini, Test Set for Initial Value Problem
Solvers, release 2.4 (2008), whose final states check the references of stiff problems.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROBLEMS", "Problem", "dispersed", "errors", "reference", "robertson_residual"]

Rates = Callable[[Sequence[Any], Callable[[Any], Any]], Sequence[Any]]


@dataclass(frozen=True)
class Problem:
    """dx/dt = rates(x, sqrt) from x0 at time 0, wanted at ``times``.

    ``arrays(xp, x)`` is the same with the arrays of a module xp. atol is ``atol`` * rtol. Tools
    are compared at the achieved errors ``targets``. ``published``: the final state in TS.
    """

    name: str
    rates: Rates
    x0: tuple[float, ...]
    times: np.ndarray
    targets: tuple[float, ...]
    rtols: tuple[float, ...]
    atol: float = 1e-2
    stiff: bool = False
    arrays: Callable[[Any, Any], Any] | None = None
    published: tuple[float, ...] = ()

    def function(self, t: Any, x: Any) -> Any:
        """dx/dt as an array: what Archimedes records."""
        return np.stack(self.rates(x, np.sqrt))


#: Principal moments of inertia of the tumbling body, and its mass, which is at rest or coasts.
MOMENTS, MASS = (1.0, 2.0, 3.0), 10.0


def _tumbling(x: Sequence[Any], sqrt: Any) -> Sequence[Any]:
    """Free rigid body: position, quaternion, v_B, w_B; quaternion rate with unit Baumgarte term."""
    _, _, _, a, b, c, d, u, v, w, p, q, r = x
    squared = a * a + b * b + c * c + d * d
    scale, excess = 2.0 / squared, squared - 1.0
    e, f, g = c * w - d * v, d * u - b * w, b * v - c * u
    A, B, C = MOMENTS
    return (
        u + scale * (a * e + c * g - d * f),
        v + scale * (a * f + d * e - b * g),
        w + scale * (a * g + b * f - c * e),
        -0.5 * (b * p + c * q + d * r) - excess * a,
        0.5 * (a * p + c * r - d * q) - excess * b,
        0.5 * (a * q + d * p - b * r) - excess * c,
        0.5 * (a * r + b * q - c * p) - excess * d,
        r * v - q * w,
        p * w - r * u,
        q * u - p * v,
        (B - C) / A * q * r,
        (C - A) / B * r * p,
        (A - B) / C * p * q,
    )


def _tumbling_arrays(xp: Any, x: Any) -> Any:
    J = xp.asarray(MOMENTS)
    q, e, v, w = x[3:7], x[4:7], x[7:10], x[10:]
    squared = q @ q
    turn = xp.cross(e, v)
    turning = xp.concatenate([-(e @ w)[None], q[0] * w + xp.cross(e, w)])
    return xp.concatenate(
        [
            v + 2.0 / squared * (q[0] * turn + xp.cross(e, turn)),
            0.5 * turning - (squared - 1.0) * q,
            xp.cross(v, w),
            xp.cross(J * w, w) / J,
        ]
    )


class Tumbling(Problem):
    """Its recorded form is the library's rigid body, as a user writes it."""

    def function(self, t: Any, x: Any) -> Any:
        from benchmarks.models import rigid_body

        return rigid_body(x, np.zeros(3), np.zeros(3), MASS, np.diag(MOMENTS))


def _arenstorf(x: Sequence[Any], sqrt: Any) -> Sequence[Any]:
    """Restricted three-body problem (HNW eq. II.0.1)."""
    mu = 0.012277471
    nu = 1.0 - mu
    y, z, u, v = x
    d, e = (y + mu) * (y + mu) + z * z, (y - nu) * (y - nu) + z * z
    d, e = nu / (d * sqrt(d)), mu / (e * sqrt(e))
    return u, v, y + 2.0 * v - d * (y + mu) - e * (y - nu), z - 2.0 * u - d * z - e * z


def _pleiades(x: Sequence[Any], sqrt: Any) -> Sequence[Any]:
    """Seven stars in a plane, of masses 1 to 7 (HNW eq. II.10.3)."""
    accelerations: list[Any] = [0.0] * 14
    for i in range(7):
        for j in range(i + 1, 7):
            a, b = x[j] - x[i], x[7 + j] - x[7 + i]
            squared = a * a + b * b
            pull = 1.0 / (squared * sqrt(squared))
            a, b = a * pull, b * pull
            accelerations[i] = accelerations[i] + (j + 1.0) * a
            accelerations[j] = accelerations[j] - (i + 1.0) * a
            accelerations[7 + i] = accelerations[7 + i] + (j + 1.0) * b
            accelerations[7 + j] = accelerations[7 + j] - (i + 1.0) * b
    return [x[k] for k in range(14, 28)] + accelerations


def _pleiades_arrays(xp: Any, x: Any) -> Any:
    mass, place = xp.arange(1.0, 8.0), x[:14].reshape(2, 7)
    between = place[:, None, :] - place[:, :, None]
    squared = (between * between).sum(axis=0) + xp.eye(7)
    pull = mass / (squared * xp.sqrt(squared))
    return xp.concatenate([x[14:], (between * pull).sum(axis=2).ravel()])


def _van_der_pol(x: Sequence[Any], sqrt: Any) -> Sequence[Any]:
    """TS, with mu = 1000."""
    return x[1], 1e3 * (1.0 - x[0] * x[0]) * x[1] - x[0]


def _hires(x: Sequence[Any], sqrt: Any) -> Sequence[Any]:
    """High irradiance response (HW eq. IV.10.3)."""
    a, b, c, d, e, f, g, h = x
    bound = 280.0 * f * h - 1.81 * g
    return (
        -1.71 * a + 0.43 * b + 8.32 * c + 0.0007,
        1.71 * a - 8.75 * b,
        -10.03 * c + 0.43 * d + 0.035 * e,
        8.32 * b + 1.71 * c - 1.12 * d,
        -1.745 * e + 0.43 * f + 0.43 * g,
        -280.0 * f * h + 0.69 * d + 1.71 * e - 0.43 * f + 0.69 * g,
        bound,
        -bound,
    )


def _robertson(x: Sequence[Any], sqrt: Any) -> Sequence[Any]:
    """HW eq. IV.1.4."""
    a, b, c = x
    first, second, third = 0.04 * a, 3e7 * b * b, 1e4 * b * c
    return third - first, first - third - second, second


def robertson_residual(t: Any, x: Any, xdot: Any) -> Any:
    """The same with the sum of all three as an algebraic equation."""
    first, second, third = 0.04 * x[0], 3e7 * x[1] * x[1], 1e4 * x[1] * x[2]
    return np.stack(
        [
            xdot[0] + first - third,
            xdot[1] - first + third + second,
            x[0] + x[1] + x[2] - 1.0,
        ]
    )


def _decades(first: int, last: int, step: int = 1) -> tuple[float, ...]:
    return tuple(10.0**-k for k in range(first, last + 1, step))


_STARS_X = (3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0, 3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0)
_STARS_V = (0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5, 0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0)

PROBLEMS = {
    p.name: p
    for p in (
        Tumbling(
            "tumbling body",
            _tumbling,
            (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.02, 2.0, 0.01),
            np.linspace(0.0, 10.0, 1000),
            targets=(1e-6, 1e-9),
            rtols=_decades(5, 12),
            arrays=_tumbling_arrays,
        ),
        Problem(
            "Arenstorf orbit",
            _arenstorf,
            (0.994, 0.0, 0.0, -2.00158510637908252240537862224),
            np.linspace(0.0, 17.0652165601579625588917206249, 101),
            targets=(1e-4, 1e-7),
            rtols=_decades(6, 13),
        ),
        Problem(
            "Pleiades",
            _pleiades,
            _STARS_X + _STARS_V,
            np.linspace(0.0, 3.0, 101),
            targets=(1e-4, 1e-7),
            rtols=_decades(5, 12),
            arrays=_pleiades_arrays,
        ),
        Problem(
            "Van der Pol, mu = 1000",
            _van_der_pol,
            (2.0, 0.0),
            np.linspace(0.0, 2000.0, 101),
            targets=(1e-3, 1e-5),
            rtols=_decades(3, 9, 2),
            stiff=True,
            published=(1.706167732170469, -0.8928097010248125e-3),
        ),
        Problem(
            "HIRES",
            _hires,
            (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057),
            np.linspace(0.0, 321.8122, 101),
            targets=(1e-4, 1e-6),
            rtols=_decades(3, 9, 2),
            stiff=True,
            published=(
                0.7371312573325668e-3,
                0.1442485726316185e-3,
                0.5888729740967575e-4,
                0.1175651343283149e-2,
                0.2386356198831331e-2,
                0.6238968252742796e-2,
                0.2849998395185769e-2,
                0.2850001604814231e-2,
            ),
        ),
        Problem(
            "Robertson",
            _robertson,
            (1.0, 0.0, 0.0),
            np.concatenate([[0.0], np.logspace(-5.0, 11.0, 97)]),
            targets=(1e-4, 1e-6),
            rtols=_decades(3, 9, 2),
            atol=1e-6,
            stiff=True,
            published=(0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050),
        ),
    )
}


def dispersed(count: int) -> np.ndarray:
    """Initial states of tumbling bodies that turn a little differently, (count, 13)."""
    spread = np.random.default_rng(1).normal(scale=0.01, size=(count, 3))
    states = np.tile(PROBLEMS["tumbling body"].x0, (count, 1))
    states[:, 10:] += spread
    return states


def errors(found: np.ndarray, exact: np.ndarray) -> float:
    """Largest difference of states (..., n), each number relative to the largest it takes."""
    axes = tuple(range(exact.ndim - 1))
    size = np.abs(exact).max(axis=axes)
    # A number that stays at zero, but for rounding, has no size of its own.
    size = np.where(size < 1e-9, 1.0, size)
    return float(np.max(np.abs(found - exact) / size))


@functools.cache
def reference(name: str) -> np.ndarray:
    """States of a problem at its times, (m, n), more accurate than any tool's.

    Not stiff: extrapolation in long double. Stiff: our Rosenbrock method at its tightest, checked
    against the published final state and, at all times, against SciPy's Radau.
    """
    problem = PROBLEMS[name]
    if not problem.stiff:
        return _extrapolated(problem)
    from benchmarks.simulations_peers import ours, scipy

    exact = ours(problem, "rodas5p")(1e-13)()
    published = np.array(problem.published)
    np.testing.assert_allclose(exact[-1] / published, 1.0, atol=1e-8)
    assert errors(scipy(problem, "Radau")(1e-9)(), exact) < 1e-8
    return exact


def _extrapolated(problem: Problem) -> np.ndarray:
    """Gragg's method, extrapolated (HNW II.9), with halved steps where it does not converge."""
    real = np.longdouble
    f = lambda x: np.array(problem.rates(x, np.sqrt), dtype=real)
    x = np.array(problem.x0, dtype=real)
    rows = [x]
    for left, right in zip(problem.times[:-1], problem.times[1:]):
        t, h = real(left), real(right) - real(left)
        while t < right:
            h = min(h, real(right) - t)
            new = _gragg(f, x, h)
            if new is None:
                h = h / 2
                continue
            x, t = new, t + h
        rows.append(x)
    return np.array(rows).astype(np.float64)


def _gragg(f: Callable[[Any], Any], x: Any, h: Any) -> Any:
    """One step of at most order 16, or None where it does not reach 1e-18."""
    begin = f(x)
    table: list[Any] = []
    for k in range(1, 9):
        count = 2 * k
        s = h / count
        before, now = x, x + s * begin
        for _ in range(count - 1):
            before, now = now, before + 2 * s * f(now)
        row = [0.5 * (before + now + s * f(now))]
        for j in range(1, k):
            ratio = (np.longdouble(k) / (k - j)) ** 2 - 1
            row.append(row[-1] + (row[-1] - table[j - 1]) / ratio)
        if table and np.max(np.abs(row[-1] - row[-2]) / (1.0 + np.abs(x))) < 1e-18:
            return row[-1]
        table = row
    return None
