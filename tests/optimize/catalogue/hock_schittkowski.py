"""Test problems of W. Hock, K. Schittkowski, "Test examples for nonlinear programming codes"
(Lecture Notes in Economics and Mathematical Systems 187, Springer 1981), by their numbers.

Optima are those of the book, with two known corrections: problem 112 has -47.7610908 (not
-47.707579) and 106 has 7049.2480205 (not 7049.330923), which all later codes find.
Left out are problems with long tables of data, and 13, 25 and 47: without multipliers, without
slopes at the start, and without a lower end.
``equal`` constraints vanish, ``positive`` ones are not negative.
"""

from __future__ import annotations

import numpy as np

from tests.optimize.catalogue.problem import make, vector

__all__ = ["PROBLEMS"]

A56, B56 = np.arcsin(np.sqrt(1 / 4.2)), np.arcsin(np.sqrt(5 / 7.2))
C112 = [-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179]


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


def obj83(a, b, c, d, e):
    return 5.3578547 * c**2 + 0.8356891 * a * e + 37.293239 * a - 40792.141


def limits83(a, b, c, d, e):
    one = 85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e
    two = 80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c**2
    three = 9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d
    return [one, 92 - one, two - 90, 110 - two, three - 20, 25 - three]


#: Colville's problems 1 and 2 (86 and its dual 117): matrices C (5, 5), A (10, 5), vectors.
C86 = np.array(
    [
        [30, -20, -10, 32, -10],
        [-20, 39, -6, -31, 32],
        [-10, -6, 10, -6, -10],
        [32, -31, -6, 39, -20],
        [-10, 32, -10, -20, 30.0],
    ]
)
A86 = np.array(
    [
        [-16, 2, 0, 1, 0],
        [0, -2, 0, 4, 2],
        [-3.5, 0, 2, 0, 0],
        [0, -2, 0, -4, -1],
        [0, -9, -2, 1, -2.8],
        [2, 0, -4, 0, 0],
        [-1, -1, -1, -1, -1],
        [-1, -2, -3, -2, -1],
        [1, 2, 3, 4, 5],
        [1, 1, 1, 1, 1],
    ]
)
D86, E86 = np.array([4.0, 8, 10, 6, 2]), np.array([-15.0, -27, -36, -18, -12])
B86 = np.array([-40, -2, -0.25, -4, -4, -1, -40, -60, 5, 1])


def obj117(x):
    y, z = x[:10], x[10:]
    return -(B86 @ y) + z @ (C86 @ z) + 2 * np.sum(D86 * z**3)


def limits117(x):
    y, z = x[:10], x[10:]
    return 2 * (C86 @ z) + 3 * D86 * z**2 + E86 - A86.T @ y


def dosing(*least):
    """Problems 95 to 98, which differ in the right-hand sides."""

    def positive(a, b, c, d, e, f):
        rows = (
            *(17.1 * a + 38.2 * b + 204.2 * c + 212.3 * d + 623.4 * e + 1495.5 * f,),
            *(17.9 * a + 36.8 * b + 113.9 * c + 169.7 * d + 337.8 * e + 1385.2 * f,),
            *(-273 * b - 70 * d - 819 * e + 26000 * d * e,),
            159.9 * a - 311 * b + 587 * d + 391 * e + 2198 * f - 14000 * a * f,
        )
        bent = (
            -169 * a * c - 3580 * c * e - 3810 * d * e - 18500 * d * f - 24300 * e * f,
            -139 * a * c - 2450 * d * e - 16600 * d * f - 17200 * e * f,
            *(0, 0),
        )
        return [row + more - limit for row, more, limit in zip(rows, bent, least)]

    return {
        "obj": lambda a, b, c, d, e, f: (
            4.3 * a + 31.8 * b + 63.3 * c + 15.8 * d + 68.5 * e + 4.7 * f
        ),
        "x0": np.zeros(6),
        "positive": positive,
        "bounds": (0, [0.31, 0.046, 0.068, 0.042, 0.028, 0.0134]),
    }


def geometric(alpha):
    """Problems 101 to 103, which differ in one exponent."""

    def obj(a, b, c, d, e, f, g):
        return (
            10 * a / b * d**2 / f**3 * g**alpha
            + 15 * c * d / (a * b**2 * e * g**0.5)
            + 20 * b * f / (a**2 * d * e**2)
            + 25 * a**2 * b**2 * e**0.5 * g / (c * f**2)
        )

    def positive(a, b, c, d, e, f, g):
        cost = obj(a, b, c, d, e, f, g)
        return [
            1
            - 0.5 * a**0.5 * g / (c * f**2)
            - 0.7 * a**3 * b * f * g**0.5 / c**2
            - 0.2 * c * f ** (2 / 3) * g**0.25 / (b * d**0.5),
            1
            - 1.3 * b * f / (a**0.5 * c * e)
            - 0.8 * c * f**2 / (d * e)
            - 3.1 * b**0.5 * f ** (1 / 3) / (a * d**2 * e),
            1
            - 2 * a * e * g ** (1 / 3) / (c**1.5 * f)
            - 0.1 * b * e / (c**0.5 * f * g**0.5)
            - b * c**0.5 * e / a
            - 0.65 * c * e * g / (b**2 * f),
            1
            - 0.2 * b * e**0.5 * g ** (1 / 3) / (a**2 * d)
            - 0.3 * a**0.5 * b**2 * c * d ** (1 / 3) * g**0.25 / e ** (2 / 3)
            - 0.4 * c * e * g**0.75 / (a**3 * b**2)
            - 0.5 * d * g**0.5 / c**2,
            *(cost - 100, 3000 - cost),
        ]

    bounds = ([0.1] * 6 + [0.01], 10)
    return {"obj": obj, "x0": [6.0] * 7, "positive": positive, "bounds": bounds}


def limits108(a, b, c, d, e, f, g, h, i):
    return [
        *(1 - c**2 - d**2, 1 - i**2, 1 - e**2 - f**2, 1 - a**2 - (b - i) ** 2),
        *(1 - (a - e) ** 2 - (b - f) ** 2, 1 - (a - g) ** 2 - (b - h) ** 2),
        *(1 - (c - e) ** 2 - (d - f) ** 2, 1 - (c - g) ** 2 - (d - h) ** 2),
        *(1 - g**2 - (h - i) ** 2, a * d - b * c, c * i, -e * i, e * h - f * g),
    ]


def rows112(a, b, c, d, e, f, g, h, i, j):
    return [a + 2 * b + 2 * c + f + j - 2, d + 2 * e + f + g - 1, c + g + h + 2 * i + j - 1]


def limits114(a, b, c, d, e, f, g, h, i, j):
    one, two = 35.82 - 0.222 * j - 0.9 * i, -133 + 3 * g - 0.99 * j
    three = 1.12 * a + 0.13167 * a * h - 0.00667 * a * h**2 - 0.99 * d
    four = 57.425 + 1.098 * h - 0.038 * h**2 + 0.325 * f - 0.99 * g
    room = 1 / 0.99 - 0.99
    return [
        *(one, two, -one + (1 / 0.9 - 0.9) * i, -two + room * j),
        *(three, four, -three + room * d, -four + room * g),
    ]


def limits116(a, b, c, d, e, f, g, h, i, j, k, m, n):
    return [
        *(c - b, b - a, 1 - 0.002 * g + 0.002 * h, k + m + n - 50, 250 - k - m - n),
        n - 1.262626 * j + 1.231059 * c * j,
        e - 0.03475 * b - 0.975 * b * e + 0.00975 * b**2,
        f - 0.03475 * c - 0.975 * c * f + 0.00975 * c**2,
        e * g - a * h - d * g + d * h,
        1 - 0.002 * (b * i + e * h - a * h - f * i) - e - f,
        b * i - c * j - f * i - 500 * b + 500 * f + b * j,
        b - 0.9 - 0.002 * (b * j - c * j),
        d - 0.03475 * a - 0.975 * a * d + 0.00975 * a**2,
        k - 1.262626 * h + 1.231059 * a * h,
        m - 1.262626 * i + 1.231059 * b * i,
    ]


def limits118(x):
    steps = x[3:] - x[:-3] + 7
    sums = np.array([sum(x[3 * k : 3 * k + 3]) for k in range(5)])
    return np.concatenate(
        [steps, np.array([13, 14, 13.0] * 4) - steps, sums - np.array([60.0, 50, 70, 85, 100])]
    )


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
        others=(360.379767,),
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
        others=(-81.91909609,),
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
        equal=rows112,
        bounds=(1e-6, None),
    ),
    113: make(obj113, [2, 3, 5, 5, 1, 2, 7, 3, 6, 10], 24.3062091, positive=limits113),
    2: make(rosenbrock, [-2, 1], 0.0504261879, bounds=([None, 1.5], None), others=(4.941229318,)),
    16: make(
        rosenbrock,
        [-2, 1],
        0.25,
        positive=lambda a, b: [a + b**2, a**2 + b],
        bounds=([-0.5, None], [0.5, 1]),
        others=(23.14466094,),
    ),
    20: make(
        rosenbrock,
        [-2, 1],
        81.5 - 25 * R3,
        positive=lambda a, b: [a + b**2, a**2 + b, a**2 + b**2 - 1],
        bounds=([-0.5, None], [0.5, None]),
        others=(83.5 - 25 * R3,),
    ),
    33: make(
        lambda a, b, c: (a - 1) * (a - 2) * (a - 3) + c,
        [0, 0, 3],
        np.sqrt(2) - 6,
        positive=lambda a, b, c: [c**2 - a**2 - b**2, a**2 + b**2 + c**2 - 4],
        bounds=(0, [None, None, 5]),
        others=(-4.0,),
    ),
    44: make(
        lambda a, b, c, d: a - b - c - a * c + a * d + b * c - b * d,
        [0, 0, 0, 0],
        -15.0,
        positive=lambda a, b, c, d: [
            *(8 - a - 2 * b, 12 - 4 * a - b, 12 - 3 * a - 4 * b),
            *(8 - 2 * c - d, 8 - c - 2 * d, 5 - c - d),
        ],
        bounds=(0, None),
        others=(-13.0,),
    ),
    55: make(
        lambda a, b, c, d, e, f: a + 2 * b + 4 * e + np.exp(a * d),
        [1, 2, 0, 0, 0, 2],
        19 / 3,
        equal=lambda a, b, c, d, e, f: [
            *(a + 2 * b + 5 * e - 6, a + b + c - 3, d + e + f - 2),
            *(a + d - 1, b + e - 2, c + f - 2),
        ],
        bounds=(0, [1, None, None, 1, None, None]),
        others=(20 / 3,),
    ),
    83: make(
        obj83,
        [78, 33, 27, 27, 27],
        -30665.53867,
        positive=limits83,
        bounds=([78, 33, 27, 27, 27], [102, 45, 45, 45, 45]),
    ),
    86: vector(
        lambda x: E86 @ x + x @ (C86 @ x) + np.sum(D86 * x**3),
        [0, 0, 0, 0, 1],
        -32.34867897,
        positive=lambda x: A86 @ x - B86,
        bounds=(0, None),
    ),
    95: make(**dosing(4.97, -1.88, -29.08, -78.02), best=0.01561952536),
    96: make(**dosing(4.97, -1.88, -69.08, -118.02), best=0.01561952536),
    97: make(**dosing(32.97, 25.12, -29.08, -78.02), best=3.1358091, others=(4.0712464,)),
    98: make(**dosing(32.97, 25.12, -124.08, -173.02), best=3.1358091, others=(4.0712464,)),
    101: make(**geometric(-0.25), best=1809.76476),
    102: make(**geometric(0.125), best=911.880571),
    103: make(**geometric(0.5), best=543.667958),
    108: make(
        lambda a, b, c, d, e, f, g, h, i: -0.5 * (a * d - b * c + c * i - e * i + e * h - f * g),
        [1.0] * 9,
        -R3 / 2,
        positive=limits108,
        bounds=([None] * 8 + [0], None),
        others=(-0.6749814289, -0.5),
    ),
    111: make(
        lambda *x: sum(
            np.exp(v) * (c + v - np.log(sum(np.exp(w) for w in x))) for v, c in zip(x, C112)
        ),
        [-2.3] * 10,
        -47.76109026,
        equal=lambda *x: rows112(*(np.exp(v) for v in x)),
        bounds=(-100, 100),
    ),
    114: make(
        lambda a, b, c, d, e, f, g, h, i, j: (
            5.04 * a + 0.035 * b + 10 * c + 3.36 * e - 0.063 * d * g
        ),
        [1745, 12000, 110, 3048, 1974, 89.2, 92.8, 8, 3.6, 145],
        -1768.80696,
        positive=limits114,
        equal=lambda a, b, c, d, e, f, g, h, i, j: [
            1.22 * d - a - e,
            98000 * c / (d * i + 1000 * c) - f,
            (b + e) / a - h,
        ],
        bounds=(
            [1e-5] * 5 + [85, 90, 3, 1.2, 145],
            [2000, 16000, 120, 5000, 2000, 93, 95, 12, 4, 162],
        ),
    ),
    116: make(
        lambda *x: x[10] + x[11] + x[12],
        [0.5, 0.8, 0.9, 0.1, 0.14, 0.5, 489, 80, 650, 450, 150, 150, 150],
        97.588409,
        positive=limits116,
        bounds=(
            [0.1, 0.1, 0.1, 1e-4, 0.1, 0.1, 0.1, 0.1, 500, 0.1, 1, 1e-4, 1e-4],
            [1, 1, 1, 0.1, 0.9, 0.9, 1000, 1000, 1000, 500, 150, 150, 150],
        ),
        others=(97.59103466,),
    ),
    117: vector(
        obj117,
        [0.001] * 6 + [60.0] + [0.001] * 8,
        32.34867897,
        positive=limits117,
        bounds=(0, None),
    ),
    118: vector(
        lambda x: sum(
            2.3 * a + 1e-4 * a**2 + 1.7 * b + 1e-4 * b**2 + 2.2 * c + 1.5e-4 * c**2
            for a, b, c in zip(x[0::3], x[1::3], x[2::3])
        ),
        [20, 55, 15] + [20, 60, 20] * 4,
        664.82045,
        positive=limits118,
        bounds=([8, 43, 3] + [0] * 12, [21, 57, 16] + [90, 120, 60] * 4),
    ),
}
