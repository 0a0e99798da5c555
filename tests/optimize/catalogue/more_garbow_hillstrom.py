"""J. More, B. Garbow, K. Hillstrom, "Testing unconstrained optimization software", ACM
Transactions on Mathematical Software 7(1), 1981: sums of squares, with the minima of the paper.

Their Rosenbrock and Wood functions are problems 1 and 38 of Hock and Schittkowski.
"""

from __future__ import annotations

import numpy as np

from tests.optimize.catalogue.problem import least_squares, vector

__all__ = ["PROBLEMS"]

BARD = [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.1, 4.39]
GAUSS = [0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989]
MEYER = [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427]
KOWALIK = [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
DOSES = [4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625]
OSBORNE1 = [
    *(0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685),
    *(0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448),
    *(0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406),
]
OSBORNE2 = np.array(
    [
        *(1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679),
        *(0.608, 0.655, 0.616, 0.606, 0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644),
        *(0.624, 0.661, 0.612, 0.558, 0.533, 0.495, 0.500, 0.423, 0.395, 0.375, 0.372, 0.391),
        *(0.396, 0.405, 0.428, 0.429, 0.523, 0.562, 0.607, 0.653, 0.672, 0.708, 0.633, 0.668),
        *(0.645, 0.632, 0.591, 0.559, 0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581),
        *(0.428, 0.292, 0.162, 0.098, 0.054),
    ]
)
TIMES = np.arange(65) / 10


def osborne2(x):
    model = x[0] * np.exp(-TIMES * x[4])
    for k in range(1, 4):
        model = model + x[k] * np.exp(-((TIMES - x[k + 7]) ** 2) * x[k + 4])
    return np.sum((OSBORNE2 - model) ** 2)


def watson(x):
    t, j = np.arange(1, 30)[:, None] / 29, np.arange(x.shape[0])
    slope = (t ** np.maximum(j - 1, 0) * j) @ x
    rest = slope - ((t**j) @ x) ** 2 - 1
    return np.sum(rest**2) + x[0] ** 2 + (x[1] - x[0] ** 2 - 1) ** 2


def penalty2(x):
    n, a = x.shape[0], 1e-5
    y = np.exp((np.arange(2, n + 1)) / 10) + np.exp(np.arange(1, n) / 10)
    e = np.exp(x / 10)
    return (
        (x[0] - 0.2) ** 2
        + a * np.sum((e[1:] + e[:-1] - y) ** 2)
        + a * np.sum((e[1:] - np.exp(-0.1)) ** 2)
        + (np.sum(np.arange(n, 0, -1) * x**2) - 1) ** 2
    )


def trigonometric(x):
    n = x.shape[0]
    i = np.arange(1, n + 1)
    return np.sum((n - np.sum(np.cos(x)) + i * (1 - np.cos(x)) - np.sin(x)) ** 2)


def brown_almost_linear(x):
    n = x.shape[0]
    return np.sum((x[:-1] + np.sum(x) - (n + 1)) ** 2) + (np.prod(x) - 1) ** 2


def boundary_value(x):
    n = x.shape[0]
    h = 1 / (n + 1)
    t = np.arange(1, n + 1) * h
    whole = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return np.sum((2 * x - whole[:-2] - whole[2:] + h**2 * (x + t + 1) ** 3 / 2) ** 2)


def integral_equation(x):
    n = x.shape[0]
    h = 1 / (n + 1)
    t = np.arange(1, n + 1) * h
    cubes = (x + t + 1) ** 3
    K = np.where(t[None] <= t[:, None], (1 - t[:, None]) * t[None], t[:, None] * (1 - t[None]))
    return np.sum((x + h * (K @ cubes) / 2) ** 2)


def broyden_tridiagonal(x):
    whole = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return np.sum(((3 - 2 * x) * x - whole[:-2] - 2 * whole[2:] + 1) ** 2)


def broyden_banded(x):
    total = 0.0
    for i in range(x.shape[0]):
        near = [j for j in range(max(0, i - 5), min(x.shape[0], i + 2)) if j != i]
        total += (x[i] * (2 + 5 * x[i] ** 2) + 1 - sum(x[j] * (1 + x[j]) for j in near)) ** 2
    return total


def chebyquad(x):
    n, total = x.shape[0], 0.0
    before, now = np.ones(n), 2 * x - 1
    for k in range(1, n + 1):
        whole = 0.0 if k % 2 else -1 / (k**2 - 1)
        total += (np.sum(now) / n - whole) ** 2
        before, now = now, 2 * (2 * x - 1) * now - before
    return total


def variably_dimensioned(x):
    total = np.sum(np.arange(1, x.shape[0] + 1) * (x - 1))
    return np.sum((x - 1) ** 2) + total**2 + total**4


def linear(x, m=10):
    total = 2 * np.sum(x) / m + 1
    return np.sum((x - total) ** 2) + (m - x.shape[0]) * total**2


def linear_rank_one(x, m=10):
    total = np.sum(np.arange(1, x.shape[0] + 1) * x)
    return np.sum((np.arange(1, m + 1) * total - 1) ** 2)


TENTHS = np.arange(1, 14) / 10

PROBLEMS = {
    "freudenstein-roth": least_squares(
        lambda a, b: (
            *(-13 + a + ((5 - b) * b - 2) * b,),
            -29 + a + ((b + 1) * b - 14) * b,
        ),
        [0.5, -2],
        0.0,
        others=(48.98425368,),
    ),
    "powell badly scaled": least_squares(
        lambda a, b: (1e4 * a * b - 1, np.exp(-a) + np.exp(-b) - 1.0001), [0, 1], 0.0
    ),
    "brown badly scaled": least_squares(lambda a, b: (a - 1e6, b - 2e-6, a * b - 2), [1, 1], 0.0),
    "beale": least_squares(
        lambda a, b: (1.5 - a * (1 - b), 2.25 - a * (1 - b**2), 2.625 - a * (1 - b**3)),
        [1, 1],
        0.0,
    ),
    "jennrich-sampson": least_squares(
        lambda a, b: (2 + 2 * i - np.exp(i * a) - np.exp(i * b) for i in range(1, 11)),
        [0.3, 0.4],
        124.3621824,
        others=(259.58019,),
    ),
    "helical valley": least_squares(
        lambda a, b, c: (
            10 * (c - 10 * np.arctan2(b, a) / (2 * np.pi)),
            *(10 * (np.sqrt(a**2 + b**2) - 1), c),
        ),
        [-1, 0, 0],
        0.0,
    ),
    "bard": least_squares(
        lambda a, b, c: (
            y - a - i / ((16 - i) * b + min(i, 16 - i) * c) for i, y in enumerate(BARD, 1)
        ),
        [1, 1, 1],
        8.214877e-3,
        others=(17.4286,),
    ),
    "gaussian": least_squares(
        lambda a, b, c: (
            a * np.exp(-b * ((8 - i) / 2 - c) ** 2 / 2) - y
            for i, y in enumerate([*GAUSS, *GAUSS[-2::-1]], 1)
        ),
        [0.4, 1, 0],
        1.12793e-8,
    ),
    "meyer": least_squares(
        lambda a, b, c: (
            a * np.exp(b / (45 + 5 * i + c)) - y
            for i, y in enumerate([*MEYER, 3820, 3307, 2872], 1)
        ),
        [0.02, 4000, 250],
        87.94585517,
    ),
    "box": least_squares(
        lambda a, b, c: (
            np.exp(-t * a) - np.exp(-t * b) - c * (np.exp(-t) - np.exp(-10 * t))
            for t in TENTHS[:10]
        ),
        [0, 10, 20],
        0.0,
    ),
    "powell singular": least_squares(
        lambda a, b, c, d: (
            *(a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2),
        ),
        [3, -1, 0, 1],
        0.0,
    ),
    "kowalik-osborne": least_squares(
        lambda a, b, c, d: (
            y - a * (u**2 + u * b) / (u**2 + u * c + d) for y, u in zip(KOWALIK, DOSES)
        ),
        [0.25, 0.39, 0.415, 0.39],
        3.075056e-4,
    ),
    "brown-dennis": least_squares(
        lambda a, b, c, d: (
            (a + t * b - np.exp(t)) ** 2 + (c + d * np.sin(t) - np.cos(t)) ** 2
            for t in np.arange(1, 21) / 5
        ),
        [25, 5, -5, -1],
        85822.20163,
    ),
    "osborne 1": least_squares(
        lambda a, b, c, d, e: (
            y - a - b * np.exp(-10 * i * d) - c * np.exp(-10 * i * e)
            for i, y in enumerate(OSBORNE1)
        ),
        [0.5, 1.5, -1, 0.01, 0.02],
        5.46489e-5,
    ),
    "biggs": least_squares(
        lambda a, b, c, d, e, f: (
            c * np.exp(-t * a)
            - d * np.exp(-t * b)
            + f * np.exp(-t * e)
            - (np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t))
            for t in TENTHS
        ),
        [1, 2, 1, 1, 1, 1],
        0.0,
        others=(5.65565e-3, 0.3063667),
    ),
    "osborne 2": vector(
        osborne2,
        [1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5],
        4.01377e-2,
        others=(1.789813,),
    ),
    "watson 6": vector(watson, np.zeros(6), 2.28767e-3),
    "watson 9": vector(watson, np.zeros(9), 1.39976e-6),
    "penalty 1": vector(
        lambda x: 1e-5 * np.sum((x - 1) ** 2) + (np.sum(x**2) - 0.25) ** 2,
        np.arange(1, 11),
        7.08765e-5,
    ),
    "penalty 2": vector(penalty2, np.full(10, 0.5), 2.93660e-4),
    "variably dimensioned": vector(variably_dimensioned, 1 - np.arange(1, 11) / 10, 0.0),
    "trigonometric": vector(trigonometric, np.full(10, 0.1), 0.0, others=(2.79506e-5,)),
    "brown almost linear": vector(brown_almost_linear, np.full(10, 0.5), 0.0, others=(1.0,)),
    "boundary value": vector(boundary_value, [k / 11 * (k / 11 - 1) for k in range(1, 11)], 0.0),
    "integral equation": vector(
        integral_equation, [k / 11 * (k / 11 - 1) for k in range(1, 11)], 0.0
    ),
    "broyden tridiagonal": vector(broyden_tridiagonal, np.full(10, -1.0), 0.0),
    "broyden banded": vector(broyden_banded, np.full(10, -1.0), 0.0, others=(3.057278432,)),
    "linear": vector(linear, np.ones(5), 5.0),
    "linear of rank 1": vector(linear_rank_one, np.ones(5), 90 / 42),
    "chebyquad 8": vector(chebyquad, np.arange(1, 9) / 9, 3.51687e-3),
}
