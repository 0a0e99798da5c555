"""Optimal control problems, each written once for NumPy and for CasADi's symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROBLEMS", "Problem"]


@dataclass(frozen=True)
class Problem:
    """``rate(m, x, u)`` and ``running(m, x, u)`` take the module of sin and cos, and return lists.

    ``path(x)`` is kept above ``path_low``. The guess goes in a straight line, bent by ``bend``.
    """

    rate: Callable[[Any, Any, Any], list[Any]]
    running: Callable[[Any, Any, Any], Any]
    final_cost: Callable[[Any, Any], Any]
    initial: np.ndarray
    final: list[Any]
    guess_end: np.ndarray
    control: tuple[float, float, float]
    controls: int
    tf: tuple[float, float, float]
    state_low: Any = None
    state_high: Any = None
    path: Callable[[Any], Any] | None = None
    path_low: float = 0.0
    bend: np.ndarray | float = 0.0


def cart_pole(m: Any, x: Any, u: Any) -> list[Any]:
    # Kelly, SIAM Review 59(4), 2017, eqs. 6.1 and 6.2.
    m1, m2, length, g = 1.0, 0.3, 0.5, 9.81
    s, c, w = m.sin(x[1]), m.cos(x[1]), x[3]
    below = m1 + m2 * (1 - c**2)
    a = (length * m2 * s * w**2 + u[0] + m2 * g * c * s) / below
    b = -(length * m2 * c * s * w**2 + u[0] * c + (m1 + m2) * g * s) / (length * below)
    return [x[2], x[3], a, b]


def goddard(m: Any, x: Any, u: Any) -> list[Any]:
    # Betts 2010, example 4.9.
    drag = 5.49153484923381010e-5 * x[1] ** 2 * m.exp(-x[0] / 23800.0)
    return [x[1], (u[0] - drag) / x[2] - 32.174, -u[0] / 1580.9425279876559]


def quadrotor(m: Any, x: Any, u: Any) -> list[Any]:
    w, a, b, c = x[3], x[4], x[5], x[6]
    p, q, r = x[10], x[11], x[12]
    thrust = u[0] + u[1] + u[2] + u[3]
    lift = (
        2 * (a * c + w * b) * thrust,
        2 * (b * c - w * a) * thrust,
        (1 - 2 * (a * a + b * b)) * thrust,
    )
    J1, J2, J3 = 0.01, 0.01, 0.02
    moments = (0.2 * (u[1] - u[3]), 0.2 * (u[2] - u[0]), 0.05 * (u[0] - u[1] + u[2] - u[3]))
    return [
        *(x[7], x[8], x[9]),
        0.5 * (-a * p - b * q - c * r),
        0.5 * (w * p + b * r - c * q),
        0.5 * (w * q + c * p - a * r),
        0.5 * (w * r + a * q - b * p),
        lift[0] - 0.1 * x[7],
        lift[1] - 0.1 * x[8],
        lift[2] - 9.81 - 0.1 * x[9],
        (moments[0] - (J3 - J2) * q * r) / J1,
        (moments[1] - (J1 - J3) * r * p) / J2,
        (moments[2] - (J2 - J1) * p * q) / J3,
    ]


def quadrotor_cost(m: Any, x: Any, u: Any) -> Any:
    effort = sum((u[k] - 9.81 / 4) ** 2 for k in range(4))
    return 0.01 * effort + 0.01 * (x[10] ** 2 + x[11] ** 2 + x[12] ** 2)


_HOVER = np.zeros(13)
_HOVER[3] = 1.0
_GOAL = _HOVER.copy()
_GOAL[:3] = [4.0, 2.0, 1.0]

PROBLEMS = {
    "cart-pole swing-up": Problem(
        cart_pole,
        lambda m, x, u: u[0] ** 2,
        lambda tf, x: 0.0,
        np.zeros(4),
        [1.0, np.pi, 0.0, 0.0],
        np.array([1.0, np.pi, 0.0, 0.0]),
        (-20.0, 20.0, 0.0),
        1,
        (2.0, 2.0, 2.0),
        state_low=[-2.0, None, None, None],
        state_high=[2.0, None, None, None],
    ),
    "Goddard rocket": Problem(
        goddard,
        lambda m, x, u: 0.0,
        lambda tf, x: -x[0],
        np.array([0.0, 0.0, 3.0]),
        [None, None, 1.0],
        np.array([18e3, 0.0, 1.0]),
        (0.0, 193.044, 100.0),
        1,
        (20.0, 60.0, 40.0),
        state_low=[0.0, 0.0, 1.0],
        state_high=[3e4, 2e3, 3.0],
        bend=np.array([0.0, 600.0, 0.0]),
    ),
    "quadrotor, 13 states": Problem(
        quadrotor,
        quadrotor_cost,
        lambda tf, x: tf,
        _HOVER,
        list(_GOAL),
        _GOAL,
        (0.0, 6.0, 9.81 / 4),
        4,
        (0.5, 10.0, 3.0),
        path=lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        path_low=0.5,
        bend=np.eye(13)[1] * 0.8,
    ),
}
