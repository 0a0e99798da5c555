"""Test problems of W. Hock, K. Schittkowski, "Test examples for nonlinear programming codes"
(Lecture Notes in Economics and Mathematical Systems 187, Springer 1981), by their numbers.

Optima are those of the book, with two known corrections: problem 112 has -47.7610908 (not
-47.707579) and 106 has 7049.2480205 (not 7049.330923), which all later codes find.
Left out are problems whose published optimum is not the minimum next to the book's start (2, 16,
20, 33, 44, 47, 55), and those with long tables of data.
``equal`` constraints vanish, ``positive`` ones are not negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROBLEMS", "Problem"]

INF = np.inf
A56, B56 = np.arcsin(np.sqrt(1 / 4.2)), np.arcsin(np.sqrt(5 / 7.2))
C112 = [-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179]


@dataclass(frozen=True)
class Problem:
    obj: Callable[..., Any]
    x0: Any
    best: float
    equal: Callable[..., Any] | None = None
    positive: Callable[..., Any] | None = None
    bounds: Any = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``minimize`` besides the objective and the start."""
        given: dict[str, Any] = {"bounds": self.bounds}
        kinds = {"equal": (self.equal, (0, 0)), "positive": (self.positive, (0, None))}
        kinds = {name: kind for name, kind in kinds.items() if kind[0] is not None}
        if kinds:
            given["constr"] = {
                name: (lambda x, f=f: np.array(f(*x))) for name, (f, _) in kinds.items()
            }
            given["constr_bounds"] = {name: limits for name, (_, limits) in kinds.items()}
        return given


def rosenbrock(a, b):
    return 100 * (b - a**2) ** 2 + (1 - a) ** 2


def wood(a, b, c, d):
    return (
        *(100 * (b - a**2) ** 2 + (1 - a) ** 2 + 90 * (d - c**2) ** 2 + (1 - c) ** 2,),
        10.1 * ((b - 1) ** 2 + (d - 1) ** 2) + 19.8 * (b - 1) * (d - 1),
    )


def reactor(a, b, c):
    return -32.174 * (
        255 * np.log((a + b + c + 0.03) / (0.09 * a + b + c + 0.03))
        + 280 * np.log((b + c + 0.03) / (0.07 * b + c + 0.03))
        + 290 * np.log((c + 0.03) / (0.13 * c + 0.03))
    )


def network(limit):
    def equal(a, b, c, d):
        return [
            1000 * np.sin(-c - 0.25) + 1000 * np.sin(-d - 0.25) + 894.8 - a,
            1000 * np.sin(c - 0.25) + 1000 * np.sin(c - d - 0.25) + 894.8 - b,
            1000 * np.sin(d - 0.25) + 1000 * np.sin(d - c - 0.25) + 1294.8,
        ]

    return {
        "equal": equal,
        "positive": lambda a, b, c, d: [d - c + limit, c - d + limit],
        "bounds": ([0, 0, -limit, -limit], [1200, 1200, limit, limit]),
    }


def power(a, b, c, d):
    return 3 * a + 1e-6 * a**3 + 2 * b + 2e-6 / 3 * b**3


def spheres(a, b, c, d, e):
    return [
        a**2 + b**2 + c**2 + d**2 + e**2 - 10,
        b * c - 5 * d * e,
        a**3 + b**3 + 1,
    ]


BOX80 = ([-2.3, -2.3, -3.2, -3.2, -3.2], [2.3, 2.3, 3.2, 3.2, 3.2])


def chain(a, b, c, d, e):
    return (a - b) ** 2 + (b + c - 2) ** 2 + (d - 1) ** 2 + (e - 1) ** 2


def rows52(a, b, c, d, e):
    return [a + 3 * b, c + d - 2 * e, b - e]


def transformer(a, b, c, d, e, f):
    one, two = a + b + c, a + 1.57 * b + d
    return (
        0.0204 * a * d * one
        + 0.0187 * b * c * two
        + 0.0607 * a * d * e**2 * one
        + 0.0437 * b * c * f**2 * two
    )


def transformer_limits(a, b, c, d, e, f):
    one, two = a + b + c, a + 1.57 * b + d
    return [
        0.001 * a * b * c * d * e * f - 2.07,
        1 - 0.00062 * a * d * e**2 * one - 0.00058 * b * c * f**2 * two,
    ]


def obj100(a, b, c, d, e, f, g):
    return (
        (a - 10) ** 2
        + 5 * (b - 12) ** 2
        + c**4
        + 3 * (d - 11) ** 2
        + 10 * e**6
        + 7 * f**2
        + g**4
        - 4 * f * g
        - 10 * f
        - 8 * g
    )


def limits100(a, b, c, d, e, f, g):
    return [
        127 - 2 * a**2 - 3 * b**4 - c - 4 * d**2 - 5 * e,
        282 - 7 * a - 3 * b - 10 * c**2 - d + e,
        196 - 23 * a - b**2 - 6 * f**2 + 8 * g,
        -4 * a**2 - b**2 + 3 * a * b - 2 * c**2 - 5 * f + 11 * g,
    ]


def obj104(a, b, c, d, e, f, g, h):
    return 0.4 * a**0.67 * g**-0.67 + 0.4 * b**0.67 * h**-0.67 + 10 - a - b


def limits104(a, b, c, d, e, f, g, h):
    cost = obj104(a, b, c, d, e, f, g, h)
    return [
        1 - 0.0588 * e * g - 0.1 * a,
        1 - 0.0588 * f * h - 0.1 * a - 0.1 * b,
        1 - 4 * c / e - 2 / (c**0.71 * e) - 0.0588 * g / c**1.3,
        1 - 4 * d / f - 2 / (d**0.71 * f) - 0.0588 * h / d**1.3,
        cost - 1,
        4.2 - cost,
    ]


def limits106(a, b, c, d, e, f, g, h):
    return [
        1 - 0.0025 * (d + f),
        1 - 0.0025 * (e + g - d),
        1 - 0.01 * (h - e),
        a * f - 833.33252 * d - 100 * a + 83333.333,
        b * g - 1250 * e - b * d + 1250 * d,
        c * h - 1250000 - c * e + 2500 * e,
    ]


def obj113(a, b, c, d, e, f, g, h, i, j):
    return (
        *(a**2 + b**2 + a * b - 14 * a - 16 * b + (c - 10) ** 2 + 4 * (d - 5) ** 2,),
        *((e - 3) ** 2 + 2 * (f - 1) ** 2 + 5 * g**2 + 7 * (h - 11) ** 2,),
        2 * (i - 10) ** 2 + (j - 7) ** 2 + 45,
    )


def limits113(a, b, c, d, e, f, g, h, i, j):
    return [
        105 - 4 * a - 5 * b + 3 * g - 9 * h,
        -10 * a + 8 * b + 17 * g - 2 * h,
        8 * a - 2 * b - 5 * i + 2 * j + 12,
        -3 * (a - 2) ** 2 - 4 * (b - 3) ** 2 - 2 * c**2 + 7 * d + 120,
        -5 * a**2 - 8 * b - (c - 6) ** 2 + 2 * d + 40,
        -0.5 * (a - 8) ** 2 - 2 * (b - 4) ** 2 - 3 * e**2 + f + 30,
        -(a**2) - 2 * (b - 2) ** 2 + 2 * a * b - 14 * e + 6 * f,
        3 * a - 6 * b - 12 * (i - 8) ** 2 + 7 * j,
    ]


def make(obj, x0, best, **more):
    def total(x):
        value = obj(*x)
        return sum(value) if isinstance(value, tuple) else value

    return Problem(total, np.array(x0, dtype=float), best, **more)


R3 = np.sqrt(3.0)
PROBLEMS = {
    1: make(rosenbrock, [-2, 1], 0.0, bounds=([None, -1.5], None)),
    3: make(lambda a, b: b + 1e-5 * (b - a) ** 2, [10, 1], 0.0, bounds=([None, 0], None)),
    4: make(lambda a, b: (a + 1) ** 3 / 3 + b, [1.125, 0.125], 8 / 3, bounds=([1, 0], None)),
    5: make(
        lambda a, b: np.sin(a + b) + (a - b) ** 2 - 1.5 * a + 2.5 * b + 1,
        [0, 0],
        -R3 / 2 - np.pi / 3,
        bounds=([-1.5, -3], [4, 3]),
    ),
    6: make(lambda a, b: (1 - a) ** 2, [-1.2, 1], 0.0, equal=lambda a, b: [10 * (b - a**2)]),
    7: make(
        lambda a, b: np.log(1 + a**2) - b,
        [2, 2],
        -R3,
        equal=lambda a, b: [(1 + a**2) ** 2 + b**2 - 4],
    ),
    8: make(lambda a, b: -1.0, [2, 1], -1.0, equal=lambda a, b: [a**2 + b**2 - 25, a * b - 9]),
    9: make(
        lambda a, b: np.sin(np.pi * a / 12) * np.cos(np.pi * b / 16),
        [0, 0],
        -0.5,
        equal=lambda a, b: [4 * a - 3 * b],
    ),
    10: make(
        lambda a, b: a - b,
        [-10, 10],
        -1.0,
        positive=lambda a, b: [-3 * a**2 + 2 * a * b - b**2 + 1],
    ),
    11: make(
        lambda a, b: (a - 5) ** 2 + b**2 - 25,
        [4.9, 0.1],
        -8.498464223,
        positive=lambda a, b: [-(a**2) + b],
    ),
    12: make(
        lambda a, b: 0.5 * a**2 + b**2 - a * b - 7 * a - 7 * b,
        [0, 0],
        -30.0,
        positive=lambda a, b: [25 - 4 * a**2 - b**2],
    ),
    14: make(
        lambda a, b: (a - 2) ** 2 + (b - 1) ** 2,
        [2, 2],
        9 - 2.875 * np.sqrt(7),
        positive=lambda a, b: [-0.25 * a**2 - b**2 + 1],
        equal=lambda a, b: [a - 2 * b + 1],
    ),
    15: make(
        rosenbrock,
        [-2, 1],
        306.5,
        positive=lambda a, b: [a * b - 1, a + b**2],
        bounds=(None, [0.5, None]),
    ),
    17: make(
        rosenbrock,
        [-2, 1],
        1.0,
        positive=lambda a, b: [b**2 - a, a**2 - b],
        bounds=([-0.5, None], [0.5, 1]),
    ),
    18: make(
        lambda a, b: 0.01 * a**2 + b**2,
        [2, 2],
        5.0,
        positive=lambda a, b: [a * b - 25, a**2 + b**2 - 25],
        bounds=([2, 0], [50, 50]),
    ),
    19: make(
        lambda a, b: (a - 10) ** 3 + (b - 20) ** 3,
        [20.1, 5.84],
        -6961.81381,
        positive=lambda a, b: [
            (a - 5) ** 2 + (b - 5) ** 2 - 100,
            -((b - 5) ** 2) - (a - 6) ** 2 + 82.81,
        ],
        bounds=([13, 0], [100, 100]),
    ),
    21: make(
        lambda a, b: 0.01 * a**2 + b**2 - 100,
        [-1, -1],
        -99.96,
        positive=lambda a, b: [10 * a - b - 10],
        bounds=([2, -50], [50, 50]),
    ),
    22: make(
        lambda a, b: (a - 2) ** 2 + (b - 1) ** 2,
        [2, 2],
        1.0,
        positive=lambda a, b: [-a - b + 2, -(a**2) + b],
    ),
    23: make(
        lambda a, b: a**2 + b**2,
        [3, 1],
        2.0,
        positive=lambda a, b: [
            *(a + b - 1, a**2 + b**2 - 1, 9 * a**2 + b**2 - 9, a**2 - b, b**2 - a)
        ],
        bounds=(-50, 50),
    ),
    24: make(
        lambda a, b: ((a - 3) ** 2 - 9) * b**3 / (27 * R3),
        [1, 0.5],
        -1.0,
        positive=lambda a, b: [a / R3 - b, a + R3 * b, -a - R3 * b + 6],
        bounds=(0, None),
    ),
    26: make(
        lambda a, b, c: (a - b) ** 2 + (b - c) ** 4,
        [-2.6, 2, 2],
        0.0,
        equal=lambda a, b, c: [(1 + b**2) * a + c**4 - 3],
    ),
    27: make(
        lambda a, b, c: 0.01 * (a - 1) ** 2 + (b - a**2) ** 2,
        [2, 2, 2],
        0.04,
        equal=lambda a, b, c: [a + c**2 + 1],
    ),
    28: make(
        lambda a, b, c: (a + b) ** 2 + (b + c) ** 2,
        [-4, 1, 1],
        0.0,
        equal=lambda a, b, c: [a + 2 * b + 3 * c - 1],
    ),
    29: make(
        lambda a, b, c: -a * b * c,
        [1, 1, 1],
        -16 * np.sqrt(2),
        positive=lambda a, b, c: [-(a**2) - 2 * b**2 - 4 * c**2 + 48],
    ),
    30: make(
        lambda a, b, c: a**2 + b**2 + c**2,
        [1, 1, 1],
        1.0,
        positive=lambda a, b, c: [a**2 + b**2 - 1],
        bounds=([1, -10, -10], 10),
    ),
    31: make(
        lambda a, b, c: 9 * a**2 + b**2 + 9 * c**2,
        [1, 1, 1],
        6.0,
        positive=lambda a, b, c: [a * b - 1],
        bounds=([-10, 1, -10], [10, 10, 1]),
    ),
    32: make(
        lambda a, b, c: (a + 3 * b + c) ** 2 + 4 * (a - b) ** 2,
        [0.1, 0.7, 0.2],
        1.0,
        positive=lambda a, b, c: [6 * b + 4 * c - a**3 - 3],
        equal=lambda a, b, c: [1 - a - b - c],
        bounds=(0, None),
    ),
    34: make(
        lambda a, b, c: -a,
        [0, 1.05, 2.9],
        -np.log(np.log(10)),
        positive=lambda a, b, c: [b - np.exp(a), c - np.exp(b)],
        bounds=(0, [100, 100, 10]),
    ),
    35: make(
        lambda a, b, c: (
            *(9 - 8 * a - 6 * b - 4 * c + 2 * a**2 + 2 * b**2 + c**2,),
            2 * a * b + 2 * a * c,
        ),
        [0.5, 0.5, 0.5],
        1 / 9,
        positive=lambda a, b, c: [3 - a - b - 2 * c],
        bounds=(0, None),
    ),
    36: make(
        lambda a, b, c: -a * b * c,
        [10, 10, 10],
        -3300.0,
        positive=lambda a, b, c: [72 - a - 2 * b - 2 * c],
        bounds=(0, [20, 11, 42]),
    ),
    37: make(
        lambda a, b, c: -a * b * c,
        [10, 10, 10],
        -3456.0,
        positive=lambda a, b, c: [72 - a - 2 * b - 2 * c, a + 2 * b + 2 * c],
        bounds=(0, 42),
    ),
    38: make(wood, [-3, -1, -3, -1], 0.0, bounds=(-10, 10)),
    39: make(
        lambda a, b, c, d: -a,
        [2, 2, 2, 2],
        -1.0,
        equal=lambda a, b, c, d: [b - a**3 - c**2, a**2 - b - d**2],
    ),
    40: make(
        lambda a, b, c, d: -a * b * c * d,
        [0.8, 0.8, 0.8, 0.8],
        -0.25,
        equal=lambda a, b, c, d: [a**3 + b**2 - 1, a**2 * d - c, d**2 - b],
    ),
    41: make(
        lambda a, b, c, d: 2 - a * b * c,
        [2, 2, 2, 2],
        52 / 27,
        equal=lambda a, b, c, d: [a + 2 * b + 2 * c - d],
        bounds=(0, [1, 1, 1, 2]),
    ),
    42: make(
        lambda a, b, c, d: (a - 1) ** 2 + (b - 2) ** 2 + (c - 3) ** 2 + (d - 4) ** 2,
        [1, 1, 1, 1],
        28 - 10 * np.sqrt(2),
        equal=lambda a, b, c, d: [a - 2, c**2 + d**2 - 2],
    ),
    43: make(
        lambda a, b, c, d: a**2 + b**2 + 2 * c**2 + d**2 - 5 * a - 5 * b - 21 * c + 7 * d,
        [0, 0, 0, 0],
        -44.0,
        positive=lambda a, b, c, d: [
            8 - a**2 - b**2 - c**2 - d**2 - a + b - c + d,
            10 - a**2 - 2 * b**2 - c**2 - 2 * d**2 + a + d,
            5 - 2 * a**2 - b**2 - c**2 - 2 * a + b + d,
        ],
    ),
    45: make(
        lambda a, b, c, d, e: 2 - a * b * c * d * e / 120,
        [2, 2, 2, 2, 2],
        1.0,
        bounds=(0, [1, 2, 3, 4, 5]),
    ),
    46: make(
        lambda a, b, c, d, e: (a - b) ** 2 + (c - 1) ** 2 + (d - 1) ** 4 + (e - 1) ** 6,
        [np.sqrt(2) / 2, 1.75, 0.5, 2, 2],
        0.0,
        equal=lambda a, b, c, d, e: [a**2 * d + np.sin(d - e) - 1, b + c**4 * d**2 - 2],
    ),
    48: make(
        lambda a, b, c, d, e: (a - 1) ** 2 + (b - c) ** 2 + (d - e) ** 2,
        [3, 5, -3, 2, -2],
        0.0,
        equal=lambda a, b, c, d, e: [a + b + c + d + e - 5, c - 2 * (d + e) + 3],
    ),
    49: make(
        lambda a, b, c, d, e: (a - b) ** 2 + (c - 1) ** 2 + (d - 1) ** 4 + (e - 1) ** 6,
        [10, 7, 2, -3, 0.8],
        0.0,
        equal=lambda a, b, c, d, e: [a + b + c + 4 * d - 7, c + 5 * e - 6],
    ),
    50: make(
        lambda a, b, c, d, e: (a - b) ** 2 + (b - c) ** 2 + (c - d) ** 4 + (d - e) ** 2,
        [35, -31, 11, 5, -5],
        0.0,
        equal=lambda a, b, c, d, e: [
            *(a + 2 * b + 3 * c - 6, b + 2 * c + 3 * d - 6, c + 2 * d + 3 * e - 6)
        ],
    ),
    51: make(
        chain,
        [2.5, 0.5, 2, -1, 0.5],
        0.0,
        equal=lambda a, b, c, d, e: [a + 3 * b - 4, c + d - 2 * e, b - e],
    ),
    52: make(
        lambda a, b, c, d, e: (4 * a - b) ** 2 + (b + c - 2) ** 2 + (d - 1) ** 2 + (e - 1) ** 2,
        [2, 2, 2, 2, 2],
        1859 / 349,
        equal=rows52,
    ),
    53: make(chain, [2, 2, 2, 2, 2], 176 / 43, equal=rows52, bounds=(-10, 10)),
    56: make(
        lambda a, b, c, d, e, f, g: -a * b * c,
        [1, 1, 1, A56, A56, A56, B56],
        -3.456,
        equal=lambda a, b, c, d, e, f, g: [
            a - 4.2 * np.sin(d) ** 2,
            b - 4.2 * np.sin(e) ** 2,
            c - 4.2 * np.sin(f) ** 2,
            a + 2 * b + 2 * c - 7.2 * np.sin(g) ** 2,
        ],
    ),
    60: make(
        lambda a, b, c: (a - 1) ** 2 + (a - b) ** 2 + (b - c) ** 4,
        [2, 2, 2],
        0.03256820025,
        equal=lambda a, b, c: [a * (1 + b**2) + c**4 - 4 - 3 * np.sqrt(2)],
        bounds=(-10, 10),
    ),
    61: make(
        lambda a, b, c: 4 * a**2 + 2 * b**2 + 2 * c**2 - 33 * a + 16 * b - 24 * c,
        [0, 0, 0],
        -143.6461422,
        equal=lambda a, b, c: [3 * a - 2 * b**2 - 7, 4 * a - c**2 - 11],
    ),
    62: make(
        reactor,
        [0.7, 0.2, 0.1],
        -26272.51448,
        equal=lambda a, b, c: [a + b + c - 1],
        bounds=(0, 1),
    ),
    63: make(
        lambda a, b, c: 1000 - a**2 - 2 * b**2 - c**2 - a * b - a * c,
        [2, 2, 2],
        961.7151721,
        equal=lambda a, b, c: [8 * a + 14 * b + 7 * c - 56, a**2 + b**2 + c**2 - 25],
        bounds=(0, None),
    ),
    64: make(
        lambda a, b, c: 5 * a + 50000 / a + 20 * b + 72000 / b + 10 * c + 144000 / c,
        [1, 1, 1],
        6299.842428,
        positive=lambda a, b, c: [1 - 4 / a - 32 / b - 120 / c],
        bounds=(1e-5, None),
    ),
    65: make(
        lambda a, b, c: (a - b) ** 2 + (a + b - 10) ** 2 / 9 + (c - 5) ** 2,
        [-5, 5, 0],
        0.9535288567,
        positive=lambda a, b, c: [48 - a**2 - b**2 - c**2],
        bounds=([-4.5, -4.5, -5], [4.5, 4.5, 5]),
    ),
    66: make(
        lambda a, b, c: 0.2 * c - 0.8 * a,
        [0, 1.05, 2.9],
        0.5181632741,
        positive=lambda a, b, c: [b - np.exp(a), c - np.exp(b)],
        bounds=(0, [100, 100, 10]),
    ),
    71: make(
        lambda a, b, c, d: a * d * (a + b + c) + c,
        [1, 5, 5, 1],
        17.0140173,
        positive=lambda a, b, c, d: [a * b * c * d - 25],
        equal=lambda a, b, c, d: [a**2 + b**2 + c**2 + d**2 - 40],
        bounds=(1, 5),
    ),
    72: make(
        lambda a, b, c, d: 1 + a + b + c + d,
        [1, 1, 1, 1],
        727.67937,
        positive=lambda a, b, c, d: [
            0.0401 - 4 / a - 2.25 / b - 1 / c - 0.25 / d,
            0.010085 - 0.16 / a - 0.36 / b - 0.64 / c - 0.64 / d,
        ],
        bounds=(0.001, [4e5, 3e5, 2e5, 1e5]),
    ),
    73: make(
        lambda a, b, c, d: 24.55 * a + 26.75 * b + 39 * c + 40.5 * d,
        [1, 1, 1, 1],
        29.894378,
        positive=lambda a, b, c, d: [
            2.3 * a + 5.6 * b + 11.1 * c + 1.3 * d - 5,
            12 * a
            + 11.9 * b
            + 41.8 * c
            + 52.1 * d
            - 21
            - 1.645 * np.sqrt(0.28 * a**2 + 0.19 * b**2 + 20.5 * c**2 + 0.62 * d**2),
        ],
        equal=lambda a, b, c, d: [a + b + c + d - 1],
        bounds=(0, None),
    ),
    74: make(power, [0, 0, 0, 0], 5126.4981, **network(0.55)),
    75: make(power, [0, 0, 0, 0], 5174.4129, **network(0.48)),
    76: make(
        lambda a, b, c, d: (
            *(a**2 + 0.5 * b**2 + c**2 + 0.5 * d**2 - a * c + c * d,),
            -a - 3 * b + c - d,
        ),
        [0.5, 0.5, 0.5, 0.5],
        -4.681818181,
        positive=lambda a, b, c, d: [
            *(5 - a - 2 * b - c - d, 4 - 3 * a - b - 2 * c + d, b + 4 * c - 1.5)
        ],
        bounds=(0, None),
    ),
    77: make(
        lambda a, b, c, d, e: (
            *((a - 1) ** 2 + (a - b) ** 2 + (c - 1) ** 2,),
            (d - 1) ** 4 + (e - 1) ** 6,
        ),
        [2, 2, 2, 2, 2],
        0.24150513,
        equal=lambda a, b, c, d, e: [
            a**2 * d + np.sin(d - e) - 2 * np.sqrt(2),
            b + c**4 * d**2 - 8 - np.sqrt(2),
        ],
    ),
    78: make(
        lambda a, b, c, d, e: a * b * c * d * e, [-2, 1.5, 2, -1, -1], -2.91970041, equal=spheres
    ),
    79: make(
        lambda a, b, c, d, e: (
            *((a - 1) ** 2 + (a - b) ** 2 + (b - c) ** 2,),
            (c - d) ** 4 + (d - e) ** 4,
        ),
        [2, 2, 2, 2, 2],
        0.0787768209,
        equal=lambda a, b, c, d, e: [
            a + b**2 + c**3 - 2 - 3 * np.sqrt(2),
            b - c**2 + d + 2 - 2 * np.sqrt(2),
            a * e - 2,
        ],
    ),
    80: make(
        lambda a, b, c, d, e: np.exp(a * b * c * d * e),
        [-2, 2, 2, -1, -1],
        0.0539498478,
        equal=spheres,
        bounds=BOX80,
    ),
    81: make(
        lambda a, b, c, d, e: np.exp(a * b * c * d * e) - 0.5 * (a**3 + b**3 + 1) ** 2,
        [-2, 2, 2, -1, -1],
        0.0539498478,
        equal=spheres,
        bounds=BOX80,
    ),
    93: make(
        transformer,
        [5.54, 4.4, 12.02, 11.82, 0.702, 0.852],
        135.075961,
        positive=transformer_limits,
        bounds=(0, None),
    ),
    100: make(obj100, [1, 2, 0, 4, 0, 1, 1], 680.6300573, positive=limits100),
    104: make(
        obj104,
        [6, 3, 0.4, 0.2, 6, 6, 1, 0.5],
        3.9511634396,
        positive=limits104,
        bounds=(0.1, 10),
    ),
    106: make(
        lambda a, b, c, *_: a + b + c,
        [5000, 5000, 5000, 200, 350, 150, 225, 425],
        7049.2480205,
        positive=limits106,
        bounds=([100, 1000, 1000, 10, 10, 10, 10, 10], [1e4] * 3 + [1e3] * 5),
    ),
    110: make(
        lambda *x: (
            sum(np.log(v - 2) ** 2 + np.log(10 - v) ** 2 for v in x) - np.prod(np.array(x)) ** 0.2
        ),
        [9.0] * 10,
        -45.77846971,
        bounds=(2.001, 9.999),
    ),
    112: make(
        lambda *x: sum(v * (c + np.log(v / sum(x))) for v, c in zip(x, C112)),
        [0.1] * 10,
        -47.7610908,
        equal=lambda a, b, c, d, e, f, g, h, i, j: [
            *(a + 2 * b + 2 * c + f + j - 2, d + 2 * e + f + g - 1, c + g + h + 2 * i + j - 1)
        ],
        bounds=(1e-6, None),
    ),
    113: make(obj113, [2, 3, 5, 5, 1, 2, 7, 3, 6, 10], 24.3062091, positive=limits113),
}
