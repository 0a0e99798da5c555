"""Test problems of J. J. More, B. S. Garbow, K. E. Hillstrom, "Testing unconstrained optimization
software", ACM Transactions on Mathematical Software 7 (1981), 17-41, by their numbers there.

Each is a vector of residuals, a standard start and the published sums of squares: of minima, and of
infima that are approached at infinity. ``more`` are local minima and infima at infinity that the
paper does not list, and that solvers reach from 10 and 100 times the start; each comes with the
problem that is left there, and a start for it (SciPy solves that, in the tests).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROBLEMS", "Problem"]


@dataclass(frozen=True)
class Problem:
    residuals: Callable[..., Any]
    x0: Any
    #: Published sums of squares, the least one first.
    sums: tuple[float, ...] = (0.0,)
    #: What is left of the residuals at another minimum or at infinity, and a start for it.
    more: tuple[Callable[..., Any], Any] | None = None

    def start(self, factor: float) -> np.ndarray:
        """Return ``factor`` times the standard start; a start of zeros becomes that number."""
        x0 = np.array(self.x0, dtype=float)
        return factor * x0 if np.any(x0) or factor == 1.0 else np.full(x0.size, float(factor))


def rosenbrock(x):
    return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def freudenstein_roth(x):
    a, b = x
    return np.stack([-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b])


def powell_badly_scaled(x):
    return np.stack([1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001])


def brown_badly_scaled(x):
    return np.stack([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])


def beale(x):
    y = np.array([1.5, 2.25, 2.625])
    return y - x[0] * (1 - x[1] ** np.array([1, 2, 3]))


def jennrich_sampson(x):
    i = np.arange(1.0, 11.0)
    return 2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1]))


def helical_valley(x):
    a, b, c = x
    turn = np.arctan(b / a) / (2 * np.pi) + np.where(a > 0, 0.0, 0.5)
    return np.stack([10 * (c - 10 * turn), 10 * (np.sqrt(a**2 + b**2) - 1), c])


BARD = np.array(
    [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39]
)


def bard(x):
    u = np.arange(1.0, 16.0)
    v = 16.0 - u
    return BARD - (x[0] + u / (v * x[1] + np.minimum(u, v) * x[2]))


GAUSSIAN = np.array([0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989])


def gaussian(x):
    t = (8 - np.arange(1.0, 16.0)) / 2
    return x[0] * np.exp(-x[1] * (t - x[2]) ** 2 / 2) - np.concatenate([GAUSSIAN, GAUSSIAN[6::-1]])


MEYER = np.array(
    [
        *(34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744),
        *(8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872.0),
    ]
)


def meyer(x):
    t = 45 + 5 * np.arange(1.0, 17.0)
    return x[0] * np.exp(x[1] / (t + x[2])) - MEYER


def gulf(x):
    t = np.arange(1.0, 11.0) / 100
    y = 25 + (-50 * np.log(t)) ** (2 / 3)
    return np.exp(-(np.abs(y - x[1]) ** x[2]) / x[0]) - t


def box(x):
    t = np.arange(1.0, 11.0) / 10
    return np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))


def powell_singular(x):
    a, b, c, d = x
    return np.stack(
        [a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2],
    )


def wood(x):
    a, b, c, d = x
    return np.stack(
        [
            *(10 * (b - a**2), 1 - a, 90**0.5 * (d - c**2), 1 - c),
            *(10**0.5 * (b + d - 2), (b - d) / 10**0.5),
        ]
    )


KOWALIK_Y = np.array(
    [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
)
KOWALIK_U = np.array([4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])


def kowalik_osborne(x):
    u = KOWALIK_U
    return KOWALIK_Y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])


def brown_dennis(x):
    t = np.arange(1.0, 21.0) / 5
    return (x[0] + t * x[1] - np.exp(t)) ** 2 + (x[2] + x[3] * np.sin(t) - np.cos(t)) ** 2


OSBORNE_1 = np.array(
    [
        *(0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751),
        *(0.718, 0.685, 0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490),
        *(0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406),
    ]
)


def osborne_1(x):
    t = 10 * np.arange(33.0)
    return OSBORNE_1 - (x[0] + x[1] * np.exp(-t * x[3]) + x[2] * np.exp(-t * x[4]))


def biggs(x):
    t = np.arange(1.0, 14.0) / 10
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)
    return x[2] * np.exp(-t * x[0]) - x[3] * np.exp(-t * x[1]) + x[5] * np.exp(-t * x[4]) - y


OSBORNE_2 = np.array(
    [
        *(
            1.366,
            1.191,
            1.112,
            1.013,
            0.991,
            0.885,
            0.831,
            0.847,
            0.786,
            0.725,
            0.746,
            0.679,
            0.608,
        ),
        *(
            0.655,
            0.616,
            0.606,
            0.602,
            0.626,
            0.651,
            0.724,
            0.649,
            0.649,
            0.694,
            0.644,
            0.624,
            0.661,
        ),
        *(
            0.612,
            0.558,
            0.533,
            0.495,
            0.500,
            0.423,
            0.395,
            0.375,
            0.372,
            0.391,
            0.396,
            0.405,
            0.428,
        ),
        *(
            0.429,
            0.523,
            0.562,
            0.607,
            0.653,
            0.672,
            0.708,
            0.633,
            0.668,
            0.645,
            0.632,
            0.591,
            0.559,
        ),
        *(
            0.597,
            0.625,
            0.739,
            0.710,
            0.729,
            0.720,
            0.636,
            0.581,
            0.428,
            0.292,
            0.162,
            0.098,
            0.054,
        ),
    ]
)


def osborne_2(x):
    t = np.arange(65.0) / 10
    peaks = sum(x[k] * np.exp(-((t - x[k + 7]) ** 2) * x[k + 4]) for k in (1, 2, 3))
    return OSBORNE_2 - (x[0] * np.exp(-t * x[4]) + peaks)


def watson(x):
    n = x.shape[0]
    t = np.arange(1.0, 30.0)[:, None] / 29
    j = np.arange(n)
    slopes = np.sum(j[1:] * x[1:] * t ** (j[1:] - 1), axis=1)
    values = np.sum(x * t**j, axis=1)
    return np.concatenate([slopes - values**2 - 1, np.stack([x[0], x[1] - x[0] ** 2 - 1])])


def extended_rosenbrock(x):
    return np.concatenate([10 * (x[1::2] - x[::2] ** 2), 1 - x[::2]])


def extended_powell(x):
    a, b, c, d = x[::4], x[1::4], x[2::4], x[3::4]
    return np.concatenate([a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2])


def penalty_1(x):
    return np.concatenate([1e-5**0.5 * (x - 1), np.sum(x**2)[None] - 0.25])


def penalty_2(x):
    n = x.shape[0]
    i = np.arange(2.0, n + 1.0)
    y = np.exp(i / 10) + np.exp((i - 1) / 10)
    root = 1e-5**0.5
    return np.concatenate(
        [
            x[:1] - 0.2,
            root * (np.exp(x[1:] / 10) + np.exp(x[:-1] / 10) - y),
            root * (np.exp(x[1:] / 10) - np.exp(-0.1)),
            np.sum(np.arange(n, 0.0, -1.0) * x**2)[None] - 1,
        ]
    )


def variably_dimensioned(x):
    s = np.sum(np.arange(1.0, x.shape[0] + 1) * (x - 1))
    return np.concatenate([x - 1, np.stack([s, s**2])])


def trigonometric(x):
    n = x.shape[0]
    i = np.arange(1.0, n + 1)
    return n - np.sum(np.cos(x)) + i * (1 - np.cos(x)) - np.sin(x)


def brown_almost_linear(x):
    n = x.shape[0]
    return np.concatenate([x[:-1] + np.sum(x) - (n + 1), np.prod(x)[None] - 1])


def boundary_value(x):
    n = x.shape[0]
    h = 1 / (n + 1)
    t = h * np.arange(1.0, n + 1)
    wide = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return 2 * x - wide[:-2] - wide[2:] + h**2 * (x + t + 1) ** 3 / 2


def integral_equation(x):
    n = x.shape[0]
    h = 1 / (n + 1)
    t = h * np.arange(1.0, n + 1)
    cube = (x + t + 1) ** 3
    kernel = np.where(t <= t[:, None], (1 - t[:, None]) * t, t[:, None] * (1 - t))
    return x + h / 2 * np.sum(kernel * cube, axis=1)


def broyden_tridiagonal(x):
    wide = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return (3 - 2 * x) * x - wide[:-2] - 2 * wide[2:] + 1


def broyden_banded(x):
    i = np.arange(x.shape[0])
    near = (i >= i[:, None] - 5) & (i <= i[:, None] + 1) & (i != i[:, None])
    return x * (2 + 5 * x**2) + 1 - np.sum(near * (x * (1 + x)), axis=1)


def full_rank(x, m=20):
    n = x.shape[0]
    s = 2 / m * np.sum(x)
    return np.concatenate([x - s - 1, np.zeros(m - n) - s - 1])


def rank_one(x, m=20):
    j = np.arange(1.0, x.shape[0] + 1)
    return np.arange(1.0, m + 1) * np.sum(j * x) - 1


def rank_one_with_zeros(x, m=20):
    n = x.shape[0]
    s = np.sum(np.arange(2.0, n) * x[1:-1])
    return np.concatenate([[-1.0], np.arange(1.0, m - 1) * s - 1, [-1.0]])


def chebyquad(x):
    n = x.shape[0]
    low, high, means = np.ones(n), 2 * x - 1, []
    for k in range(1, n + 1):
        means.append(np.sum(high) / n + (1 / (k * k - 1) if k % 2 == 0 else 0.0))
        low, high = high, 2 * (2 * x - 1) * high - low
    return np.stack(means)


def grid(n):
    return np.arange(1.0, n + 1) / (n + 1)


def jennrich_at_infinity(x):
    i = np.arange(1.0, 11.0)
    return 2 + 2 * i - np.exp(i * x[0])


def bard_at_infinity(x):
    """x[1] = -x[2] at infinity, their sum finite: (u - v) x[1] rules up to the middle."""
    u = np.arange(1.0, 16.0)
    return BARD - x[0] - np.where(u < 8, 0.0, u / (16.0 - u) / x[1])


def box_at_infinity(x):
    t = np.arange(1.0, 11.0) / 10
    return np.exp(-t * x[0]) - x[1] * (np.exp(-t) - np.exp(-10 * t))


def biggs_at_infinity(x):
    t = np.arange(1.0, 14.0) / 10
    return x[0] * np.exp(-t * x[1]) - (np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t))


def osborne_2_without_peaks(x):
    return OSBORNE_2 - x[0] * np.exp(-np.arange(65.0) / 10 * x[1])


OTHER_TRIGONOMETRIC = [0.054, 0.055, 0.057, 0.059, 0.062, 0.26, 0.068, 0.073, 0.078, 0.084]
OSBORNE_2_START = [1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5]

PROBLEMS: dict[str, Problem] = {
    "1 Rosenbrock": Problem(rosenbrock, [-1.2, 1]),
    "2 Freudenstein and Roth": Problem(freudenstein_roth, [0.5, -2], (0, 48.9842536792)),
    "3 Powell badly scaled": Problem(powell_badly_scaled, [0, 1]),
    "4 Brown badly scaled": Problem(brown_badly_scaled, [1, 1]),
    "5 Beale": Problem(beale, [1, 1]),
    "6 Jennrich and Sampson": Problem(
        jennrich_sampson, [0.3, 0.4], (124.362182356,), (jennrich_at_infinity, [0.3])
    ),
    "7 helical valley": Problem(helical_valley, [-1, 0, 0]),
    "8 Bard": Problem(
        bard, [1, 1, 1], (8.21487730658e-3, 17.4286933333), (bard_at_infinity, [0.2, 3])
    ),
    "9 Gaussian": Problem(gaussian, [0.4, 1, 0], (1.12793276962e-8,)),
    "10 Meyer": Problem(meyer, [0.02, 4000, 250], (87.9458551713,)),
    "11 Gulf research": Problem(gulf, [5, 2.5, 0.15]),
    "12 Box": Problem(box, [0, 10, 20], more=(box_at_infinity, [1, 1])),
    "13 Powell singular": Problem(powell_singular, [3, -1, 0, 1]),
    "14 Wood": Problem(wood, [-3, -1, -3, -1]),
    "15 Kowalik and Osborne": Problem(
        kowalik_osborne, [0.25, 0.39, 0.415, 0.39], (3.07505603849e-4, 1.02734e-3)
    ),
    "16 Brown and Dennis": Problem(brown_dennis, [25, 5, -5, -1], (85822.2016264,)),
    "17 Osborne 1": Problem(osborne_1, [0.5, 1.5, -1, 0.01, 0.02], (5.46489469749e-5,)),
    "18 Biggs": Problem(
        biggs, [1, 2, 1, 1, 1, 1], (0, 5.65564992555e-3), (biggs_at_infinity, [1, 1])
    ),
    "19 Osborne 2": Problem(
        osborne_2, OSBORNE_2_START, (4.01377362936e-2,), (osborne_2_without_peaks, [1, 0.1])
    ),
    "20 Watson 6": Problem(watson, [0.0] * 6, (2.28767005355e-3,)),
    "20 Watson 9": Problem(watson, [0.0] * 9, (1.39976013804e-6,)),
    "20 Watson 12": Problem(watson, [0.0] * 12, (4.72238e-10,)),
    "21 extended Rosenbrock": Problem(extended_rosenbrock, [-1.2, 1] * 4),
    "22 extended Powell": Problem(extended_powell, [3, -1, 0, 1] * 2),
    "23 penalty I 4": Problem(penalty_1, np.arange(1.0, 5.0), (2.24997500454e-5,)),
    "23 penalty I 10": Problem(penalty_1, np.arange(1.0, 11.0), (7.08765146709e-5,)),
    "24 penalty II 4": Problem(penalty_2, [0.5] * 4, (9.37629e-6,)),
    "24 penalty II 10": Problem(penalty_2, [0.5] * 10, (2.93660e-4,)),
    "25 variably dimensioned": Problem(variably_dimensioned, 1 - np.arange(1.0, 11.0) / 10),
    "26 trigonometric": Problem(
        trigonometric, [0.1] * 10, (0, 2.79506e-5), (trigonometric, OTHER_TRIGONOMETRIC)
    ),
    "27 Brown almost linear": Problem(brown_almost_linear, [0.5] * 10, (0, 1.0)),
    "28 boundary value": Problem(boundary_value, grid(10) * (grid(10) - 1)),
    "29 integral equation": Problem(integral_equation, grid(10) * (grid(10) - 1)),
    "30 Broyden tridiagonal": Problem(broyden_tridiagonal, [-1.0] * 10),
    "31 Broyden banded": Problem(broyden_banded, [-1.0] * 10),
    "32 full rank": Problem(full_rank, [1.0] * 10, (10.0,)),
    "33 rank one": Problem(rank_one, [1.0] * 10, (190 / 41,)),
    "34 rank one, zero columns": Problem(rank_one_with_zeros, [1.0] * 10, (227 / 37,)),
    "35 Chebyquad 7": Problem(chebyquad, grid(7)),
    "35 Chebyquad 8": Problem(chebyquad, grid(8), (3.51687372568e-3,)),
    "35 Chebyquad 9": Problem(chebyquad, grid(9)),
    "35 Chebyquad 10": Problem(chebyquad, grid(10), (6.50395480149e-3, 4.77271369637e-3)),
}
