"""Derivative cases: unary and binary functions, operators, selections."""

from __future__ import annotations

import numpy as np

from .cases import Case

__all__ = ["CASES", "from_rows"]

ANY = np.array([0.3, -1.7, 2.6])
POSITIVE = np.array([0.7, 2.2, 1.3])
UNIT = np.array([0.25, -0.6, 0.91])
PAIR = np.array([0.8, -1.3, 2.1, 1.7, 0.6, -0.9])
POSITIVE_PAIR = np.array([0.8, 1.3, 2.1, 1.7, 0.6, -0.9])
MATRIX = np.array([[0.4, -1.2, 0.7], [1.5, 0.3, -0.8]])
TENSOR = np.array([0.9, -0.4, 1.3, 0.2, -1.1, 0.6, 1.9, -0.7]).reshape(2, 2, 2)


def from_rows(rows: str, x: np.ndarray, smooth: bool = True, jax: bool = True) -> list[Case]:
    """One case for each line, an expression over ``np``, ``arc`` and ``x``; named by its text."""
    lines = [line.strip() for line in rows.splitlines() if line.strip()]
    made = [eval(f"lambda np, arc, x: {line}", {}) for line in lines]
    return [Case(line, fn, x, smooth, jax) for line, fn in zip(lines, made)]


UNARY = """
np.sin(x)
np.cos(x)
np.tan(x)
np.arctan(x)
np.sinh(x)
np.cosh(x)
np.tanh(x)
np.arcsinh(x)
np.exp(x)
np.exp2(x)
np.expm1(x)
np.cbrt(x)
np.sinc(x)
np.square(x)
np.reciprocal(x)
np.negative(x)
np.abs(x)
np.fabs(x)
np.deg2rad(x)
np.rad2deg(x)
np.positive(x) * x
x ** 2
x ** 3
x ** -1
x ** -2.0
2.0 ** x
x * x * x
1.0 / (1.0 + x * x)
np.exp(-0.5 * x ** 2)
1.0 / (1.0 + np.exp(-x))
np.log1p(np.exp(x))
np.sign(x) * x ** 2
np.maximum(x, 0.0) ** 2
np.where(x > 0, np.sin(x), x ** 3)
np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)
np.clip(x, -2.0, 1.0) * x
np.heaviside(x, 0.5) * x
np.copysign(x, -1.0) * x
np.nan_to_num(x) ** 2
np.sin(np.cos(np.tanh(x)))
"""

UNARY_POSITIVE = """
np.sqrt(x)
np.log(x)
np.log2(x)
np.log10(x)
np.log1p(x)
np.arccosh(x + 1.0)
x ** 0.5
x ** 1.5
x ** -0.75
x ** x
np.power(x, 3)
np.sqrt(x) * np.log(x)
"""

UNARY_UNIT = """
np.arcsin(x)
np.arccos(x)
np.arctanh(x)
np.sqrt(1.0 - x ** 2)
"""

# x[:3] and x[3:] are the two operands
BINARY = """
x[:3] + x[3:]
x[:3] - x[3:]
x[:3] * x[3:]
x[:3] / x[3:]
np.arctan2(x[:3], x[3:])
np.hypot(x[:3], x[3:])
np.maximum(x[:3], x[3:]) ** 2
np.minimum(x[:3], x[3:]) ** 2
np.fmax(x[:3], x[3:]) ** 3
np.fmin(x[:3], x[3:]) ** 3
np.logaddexp(x[:3], x[3:])
np.logaddexp2(x[:3], x[3:])
np.remainder(x[:3], x[3:]) ** 2
np.fmod(x[:3], x[3:]) ** 2
x[:3] % 0.75 * x[3:]
np.where(x[:3] > x[3:], x[:3] * x[3:], x[3:] ** 2)
np.sin(x[:3]) * np.exp(x[3:])
(x[:3] - x[3:]) / (x[:3] ** 2 + x[3:] ** 2)
np.arctan2(np.sin(x[:3] + x[3:]), np.cos(x[:3] + x[3:]))
np.clip(x[:3], x[3:] - 1.0, x[3:] + 1.0) ** 2
np.sqrt(x[:3] ** 2 + x[3:] ** 2)
np.select([x[:3] > 1.0, x[:3] > 0.0], [x[:3] ** 2, x[3:] ** 2], 0.5) * x[0]
"""

BINARY_POSITIVE = """
np.power(x[:3], x[3:])
x[:3] ** x[3:]
np.log(x[:3]) * x[3:]
np.exp(x[3:] * np.log(x[:3]))
"""

# the derivative of a step is zero, wherever it exists
STEPS = """
np.floor(x) * x
np.ceil(x) * x
np.trunc(x) * x
np.rint(x) * x
np.round(x) * x
x // 0.7 + x
np.sign(x)
(x > 0) * x
"""

BROADCAST = """
x * x[0]
x + x[:, :1] * x[1]
x[:, None, :] * x[None]
np.tanh(x) * 2.0 - x / 3.0
np.outer(x[0], x[1])
"""

RANK_3 = """
x * x[0]
np.sin(x) @ x
x[:, :1] ** 2 + x[1]
x.transpose(2, 0, 1) * x
"""


def scalar_argument(np, x):
    return np.sin(x) * x**2 + 1.0


def loop_of_products(np, x):
    total = x[0]
    for k in range(1, 3):
        total = total * x[k] + np.sin(total)
    return total


def horner(np, x):
    result = 0.0
    for coefficient in (1.0, -0.5, 0.25, 2.0):
        result = result * x + coefficient
    return result


CASES = [
    *from_rows(UNARY, ANY),
    *from_rows(UNARY_POSITIVE, POSITIVE),
    *from_rows(UNARY_UNIT, UNIT),
    *from_rows(BINARY, PAIR),
    *from_rows(BINARY_POSITIVE, POSITIVE_PAIR),
    *from_rows(STEPS, ANY),
    *from_rows(BROADCAST, MATRIX),
    *(
        Case(f"3-D {case.name}", case.fn, case.x, case.smooth, case.jax)
        for case in from_rows(RANK_3, TENSOR)
    ),
    Case("scalar_argument", scalar_argument, np.array(0.7), jax=True),
    Case("loop_of_products", loop_of_products, ANY, jax=True),
    Case("horner", horner, ANY, jax=True),
]
