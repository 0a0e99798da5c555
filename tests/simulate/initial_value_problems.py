"""Published initial value problems, with where they end: in closed form, or as published.

Sources:
- DETEST: T. E. Hull, W. H. Enright, B. M. Fellen, A. E. Sedgwick, "Comparing numerical methods for
  ordinary differential equations", SIAM J. Numer. Anal. 9 (1972) 603-637.
- STIFF DETEST: W. H. Enright, T. E. Hull, B. Lindberg, "Comparing numerical methods for stiff
  systems of ODEs", BIT 15 (1975) 10-48.
- Bari: F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release 2.4,
  Universities of Bari and Pisa, 2008 (reference solutions of 16 digits, some right to 12).
- HNW, HW: Hairer, Norsett, Wanner, "Solving Ordinary Differential Equations" I, and Hairer, Wanner,
  II.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import ellipj, jv

__all__ = ["PROBLEMS", "Problem", "by_name"]


@dataclass(frozen=True)
class Problem:
    """dx/dt = f(t, x) from ``start`` at t = 0 to ``end`` at ``t_end``.

    ``small``: the absolute tolerance over the relative one; ``least``: the least absolute tolerance
    that makes sense in double precision. ``growth``: by how much the flow enlarges errors on the
    way, roughly, where that is more than ten.
    """

    name: str
    f: Callable[[Any, Any], Any] = field(repr=False)
    t_end: float
    start: tuple[float, ...] = field(repr=False)
    end: Any = field(repr=False)
    stiff: bool
    small: Any = 1.0
    growth: float = 1.0
    least: float = 0.0

    def atol(self, rtol: float) -> Any:
        """Return the absolute tolerance that goes with a relative one."""
        return np.maximum(rtol * np.asarray(self.small), self.least)


PROBLEMS: list[Problem] = []


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def _add(name: str, f: Any, t_end: float, start: Any, end: Any, stiff: bool, **more: Any) -> None:
    start = tuple(float(x) for x in start)
    PROBLEMS.append(Problem(name, f, t_end, start, np.asarray(end, float), stiff, **more))


def by_name(name: str) -> Problem:
    """Return the problem of this name."""
    return next(problem for problem in PROBLEMS if problem.name == name)


def _linear(name: str, matrix: Any, t_end: float, start: Any, stiff: bool, **more: Any) -> None:
    A = np.array(matrix, float)
    values, vectors = np.linalg.eig(A)
    if np.linalg.cond(vectors) < 1e6:
        modes = np.linalg.solve(vectors, np.array(start, float))
        end = (vectors @ (np.exp(values * t_end) * modes)).real
    else:
        end = expm(A * t_end) @ np.array(start, float)
    _add(name, lambda t, x: A @ x, t_end, start, end, stiff, **more)


def _chain(n: int, rates: Any) -> np.ndarray:
    """Decay of one number into the next: DETEST C1 and C2."""
    rates = np.broadcast_to(rates, n - 1)
    return np.diag([*-rates, 0.0]) + np.diag(rates, -1)


# --- Non-stiff: single equations (DETEST A).
_add("A1 decay", lambda t, x: -x, 20.0, [1.0], [np.exp(-20.0)], False)
_add("A2 Riccati", lambda t, x: -(x**3) / 2.0, 20.0, [1.0], [1.0 / np.sqrt(21.0)], False)
_add(
    "A3 oscillating",
    lambda t, x: x * np.cos(t),
    20.0,
    [1.0],
    [np.exp(np.sin(20.0))],
    False,
    growth=10.0,
)
_add(
    "A4 logistic",
    lambda t, x: x / 4.0 * (1.0 - x / 20.0),
    20.0,
    [1.0],
    [20.0 / (1.0 + 19.0 * np.exp(-5.0))],
    False,
)


def _spiral(t: float) -> float:
    """A5, in polar coordinates: log r + angle is what it was at the start."""
    total = np.log(4.0) + np.pi / 2.0
    return brentq(
        lambda y: np.log(np.hypot(t, y)) + np.arctan2(y, t) - total, -20.0, 20.0, xtol=1e-15
    )


_add(
    "A5 spiral",
    lambda t, x: (x - t) / (x + t),
    20.0,
    [4.0],
    [_spiral(20.0)],
    False,
    growth=20.0,
)

# --- Small systems (DETEST B).
_linear("B2 diffusion of three", [[-1, 1, 0], [1, -2, 1], [0, 1, -1]], 20.0, [2, 0, 1], False)


def _torus(t: Any, x: Any) -> Any:
    r = np.sqrt(x[0] ** 2 + x[1] ** 2)
    return np.array([-x[1] - x[0] * x[2] / r, x[0] - x[1] * x[2] / r, x[0] / r])


_add(
    "B4 torus",
    _torus,
    20.0,
    [3, 0, 0],
    [(2 + np.cos(20)) * np.cos(20), (2 + np.cos(20)) * np.sin(20), np.sin(20)],
    False,
    growth=30.0,
)
_add(
    "B5 Euler's equations",
    lambda t, x: np.array([x[1] * x[2], -x[0] * x[2], -0.51 * x[0] * x[1]]),
    20.0,
    [0, 1, 1],
    ellipj(20.0, 0.51)[:3],
    False,
    growth=20.0,
)

# --- Chains and diffusion (DETEST C).
_linear("C1 decay chain", _chain(10, 1.0), 20.0, [1, *[0] * 9], False)
_linear("C2 quickening chain", _chain(10, np.arange(1.0, 10.0)), 20.0, [1, *[0] * 9], False)
_laplace = np.diag([-2.0] * 10) + np.diag([1.0] * 9, 1) + np.diag([1.0] * 9, -1)
_linear("C3 diffusion of ten", _laplace, 20.0, [1, *[0] * 9], False)


# --- Orbits (DETEST D), of eccentricity 0.1 to 0.9.
def _orbit(t: Any, x: Any) -> Any:
    r3 = (x[0] ** 2 + x[1] ** 2) ** 1.5
    return np.array([x[2], x[3], -x[0] / r3, -x[1] / r3])


def _kepler(e: float, t: float) -> list[float]:
    E = brentq(lambda E: E - e * np.sin(E) - t, t - 2.0, t + 2.0, xtol=1e-15)
    side, rate = np.sqrt(1.0 - e * e), 1.0 / (1.0 - e * np.cos(E))
    return [np.cos(E) - e, side * np.sin(E), -np.sin(E) * rate, side * np.cos(E) * rate]


for _number, _e in enumerate([0.1, 0.3, 0.5, 0.7, 0.9], 1):
    _add(
        f"D{_number} orbit of eccentricity {_e}",
        _orbit,
        20.0,
        [1.0 - _e, 0.0, 0.0, np.sqrt((1.0 + _e) / (1.0 - _e))],
        _kepler(_e, 20.0),
        False,
        growth=400.0,
    )


# --- Equations of second order (DETEST E).
def _bessel(t: float) -> list[float]:
    """E1: y(t) = J_1/2(t + 1), and its derivative."""
    z = t + 1.0
    return [jv(0.5, z), jv(-0.5, z) - 0.5 / z * jv(0.5, z)]


_add(
    "E1 Bessel",
    lambda t, x: np.array([x[1], -(x[1] / (t + 1.0) + (1.0 - 0.25 / (t + 1.0) ** 2) * x[0])]),
    20.0,
    _bessel(0.0),
    _bessel(20.0),
    False,
    growth=2.0,
)
# E5, a pursuit: y' = sinh(log(25 / (25 - t))) = (a - 1 / a) / 2 with a = 25 / (25 - t).
_add(
    "E5 pursuit",
    lambda t, x: np.array([x[1], np.sqrt(1.0 + x[1] ** 2) / (25.0 - t)]),
    20.0,
    [0, 0],
    [12.5 * np.log(5.0) + (5.0**2 - 25.0**2) / 100.0, 0.5 * (5.0 - 0.2)],
    False,
    growth=10.0,
)


# --- HNW I and Bari.
def _three_body(t: Any, x: Any) -> Any:
    """HNW I, eq. II.0.1: Arenstorf's orbits."""
    mu = 0.012277471
    nu = 1.0 - mu
    d1 = ((x[0] + mu) ** 2 + x[1] ** 2) ** 1.5
    d2 = ((x[0] - nu) ** 2 + x[1] ** 2) ** 1.5
    return np.array(
        [
            x[2],
            x[3],
            x[0] + 2.0 * x[3] - nu * (x[0] + mu) / d1 - mu * (x[0] - nu) / d2,
            x[1] - 2.0 * x[2] - nu * x[1] / d1 - mu * x[1] / d2,
        ]
    )


_arenstorf = [0.994, 0.0, 0.0, -2.00158510637908252240537862224]
_add(
    "Arenstorf",
    _three_body,
    17.0652165601579625588917206249,
    _arenstorf,
    _arenstorf,
    False,
    growth=100000.0,
)
_add(
    "Brusselator",
    lambda t, x: np.array([1.0 + x[0] ** 2 * x[1] - 4.0 * x[0], 3.0 * x[0] - x[0] ** 2 * x[1]]),
    20.0,
    [1.5, 3.0],
    _numbers(
        """
        0.4986370712683478291402659846476 4.596780349452011183183066998636
        """
    ),
    False,
    growth=10.0,
)

_MASSES = np.arange(1.0, 8.0)


def _pleiades(t: Any, x: Any) -> Any:
    x, y, vx, vy = x[:7], x[7:14], x[14:21], x[21:]
    dx, dy = x[None, :] - x[:, None], y[None, :] - y[:, None]
    weight = _MASSES / (dx * dx + dy * dy + np.eye(7)) ** 1.5
    return np.concatenate([vx, vy, np.sum(weight * dx, axis=1), np.sum(weight * dy, axis=1)])


_add(
    "Pleiades",
    _pleiades,
    3.0,
    _numbers(
        """
        3 3 -1 -3 2 -2 2 3 -3 2 0 0 -4 4 0 0 0 0 0 1.75 -1.5 0 0 0 -1.25 1 0 0
        """
    ),
    _numbers(
        """
        0.3706139143970502 3.237284092057233 -3.222559032418324 0.6597091455775310
        0.3425581707156584 1.562172101400631 -0.7003092922212495 -3.943437585517392
        -3.271380973972550 5.225081843456543 -2.590612434977470 1.198213693392275
        -0.2429682344935824 1.091449240428980 3.417003806314313 1.354584501625501
        -2.590065597810775 2.025053734714242 -1.155815100160448 -0.8072988170223021
        0.5952396354208710 -3.741244961234010 0.3773459685750630 0.9386858869551073
        0.3667922227200571 -0.3474046353808490 2.344915448180937 -1.947020434263292
        """
    ),
    False,
    growth=2000.0,
)

# --- Stiff: linear (STIFF DETEST A and B).
_linear("SA1 four rates", np.diag([-0.5, -1.0, -100.0, -90.0]), 20.0, [1, 1, 1, 1], True)
_SA3 = [[-1e4, 100, -10, 1], [0, -1000, 10, -10], [0, 0, -1, 10], [0, 0, 0, -0.1]]
_linear("SA3 a triangle of rates", _SA3, 20.0, [1, 1, 1, 1], True)
_linear("SA4 ten rates", np.diag(-(np.arange(1.0, 11.0) ** 5)), 1.0, [1] * 10, True)
_SB1 = [[-1, 1, 0, 0], [-100, -1, 0, 0], [0, 0, -100, 1], [0, 0, -1e4, -100]]
_linear("SB1 fast oscillations", _SB1, 20.0, [1, 0, 1, 0], True)
for _alpha, _number in ((3.0, 2), (8.0, 3), (25.0, 4), (100.0, 5)):
    _pair = np.array([[-10.0, _alpha], [-_alpha, -10.0]])
    _matrix = np.diag([0.0, 0.0, -4.0, -1.0, -0.5, -0.1])
    _matrix[:2, :2] = _pair
    _linear(f"SB{_number} eigenvalues -10 + {_alpha:g}i", _matrix, 20.0, [1] * 6, True)

# --- Stiff: in closed form.
_add(
    "Prothero-Robinson",
    lambda t, x: -1e6 * (x - np.cos(t)) - np.sin(t),
    10.0,
    [1.0],
    [np.cos(10.0)],
    True,
)
_add(
    "Kaps",
    lambda t, x: np.array([-1002.0 * x[0] + 1e3 * x[1] ** 2, x[0] - x[1] * (1.0 + x[1])]),
    5.0,
    [1.0, 1.0],
    [np.exp(-10.0), np.exp(-5.0)],
    True,
    small=1e-3,
)


def _hirschfelder(t: float, k: float = 50.0) -> float:
    return (k * k * np.cos(t) + k * np.sin(t) - k * k * np.exp(-k * t)) / (1.0 + k * k)


_add(
    "Curtiss-Hirschfelder",
    lambda t, x: -50.0 * (x - np.cos(t)),
    1.5,
    [0.0],
    [_hirschfelder(1.5)],
    True,
)

# --- Stiff: Bari and HW II.
_add(
    "van der Pol",
    lambda t, x: np.array([x[1], 1e3 * (1.0 - x[0] ** 2) * x[1] - x[0]]),
    2000.0,
    [2.0, 0.0],
    _numbers(
        """
        1.706167732170483 -0.8928097010247975e-3
        """
    ),
    True,
    small=np.array([1.0, 1e-3]),
)
_add(
    "van der Pol of 1e-6",
    lambda t, x: np.array([x[1], ((1.0 - x[0] ** 2) * x[1] - x[0]) / 1e-6]),
    2.0,
    [2.0, 0.0],
    _numbers(
        """
        1.706167732170483 -0.8928097010248125
        """
    ),
    True,
)


def _robertson(t: Any, x: Any) -> Any:
    slow, back, fast = 0.04 * x[0], 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
    return np.array([-slow + back, slow - back - fast, fast])


_add(
    "Robertson",
    _robertson,
    1e11,
    [1, 0, 0],
    _numbers(
        """
        0.2083340149701255e-7 0.8333360770334713e-13 0.9999999791665050
        """
    ),
    True,
    small=1e-7,
)
_add(
    "Robertson to 40",
    _robertson,
    40.0,
    [1, 0, 0],
    _numbers(
        """
        0.7158270687193941 0.9185534764557338e-5 0.2841637457458413
        """
    ),
    True,
    small=1e-4,
)


def _hires(t: Any, x: Any) -> Any:
    flow = 280.0 * x[5] * x[7]
    return np.array(
        [
            -1.71 * x[0] + 0.43 * x[1] + 8.32 * x[2] + 0.0007,
            1.71 * x[0] - 8.75 * x[1],
            -10.03 * x[2] + 0.43 * x[3] + 0.035 * x[4],
            8.32 * x[1] + 1.71 * x[2] - 1.12 * x[3],
            -1.745 * x[4] + 0.43 * x[5] + 0.43 * x[6],
            -flow + 0.69 * x[3] + 1.71 * x[4] - 0.43 * x[5] + 0.69 * x[6],
            flow - 1.81 * x[6],
            -flow + 1.81 * x[6],
        ]
    )


_add(
    "HIRES",
    _hires,
    321.8122,
    _numbers(
        """
        1 0 0 0 0 0 0 0.0057
        """
    ),
    _numbers(
        """
        0.7371312573325668e-3 0.1442485726316185e-3 0.5888729740967575e-4 0.1175651343283149e-2
        0.2386356198831331e-2 0.6238968252742796e-2 0.2849998395185769e-2 0.2850001604814231e-2
        """
    ),
    True,
    small=1e-4,
)
_add(
    "Oregonator",
    lambda t, x: np.array(
        [
            77.27 * (x[1] + x[0] * (1.0 - 8.375e-6 * x[0] - x[1])),
            (x[2] - (1.0 + x[0]) * x[1]) / 77.27,
            0.161 * (x[0] - x[2]),
        ]
    ),
    360.0,
    [1, 2, 3],
    _numbers(
        """
        1.000814870318523 1228.178521549917 132.0554942846706
        """
    ),
    True,
    growth=20.0,
)


def _e5(t: Any, x: Any) -> Any:
    a, b, c, m = 7.89e-10, 1.1e7, 1.13e3, 1e6
    second, fourth = a * x[0] - m * c * x[1] * x[2], b * x[0] * x[2] - c * x[3]
    # x1 - x2 - x3 stays 0: its equation is written such that rounding keeps it.
    return np.array([-a * x[0] - b * x[0] * x[2], second, second - fourth, fourth])


_add(
    "E5",
    _e5,
    1e13,
    [1.76e-3, 0, 0, 0],
    _numbers(
        """
        0.0 0.8867655517642120e-22 0.8854814626268838e-22 0.0
        """
    ),
    True,
    small=1e-22,
    least=1e-24,
)


def _pollution(t: Any, x: Any) -> Any:
    k = _RATES
    r = [
        k[0] * x[0], k[1] * x[1] * x[3], k[2] * x[4] * x[1], k[3] * x[6], k[4] * x[6],
        k[5] * x[6] * x[5], k[6] * x[8], k[7] * x[8] * x[5], k[8] * x[10] * x[1],
        k[9] * x[10] * x[0], k[10] * x[12], k[11] * x[9] * x[1], k[12] * x[13],
        k[13] * x[0] * x[5], k[14] * x[2], k[15] * x[3], k[16] * x[3], k[17] * x[15],
        k[18] * x[15], k[19] * x[16] * x[5], k[20] * x[18], k[21] * x[18],
        k[22] * x[0] * x[3], k[23] * x[18] * x[0], k[24] * x[19],
    ]  # fmt: skip
    return np.array(
        [
            -r[0] - r[9] - r[13] - r[22] - r[23] + r[1] + r[2] + r[8] + r[10] + r[11] + r[21]
            + r[24],
            -r[1] - r[2] - r[8] - r[11] + r[0] + r[20],
            -r[14] + r[0] + r[16] + r[18] + r[21],
            -r[1] - r[15] - r[16] - r[22] + r[14],
            -r[2] + 2.0 * r[3] + r[5] + r[6] + r[12] + r[19],
            -r[5] - r[7] - r[13] - r[19] + r[2] + 2.0 * r[17],
            -r[3] - r[4] - r[5] + r[12],
            r[3] + r[4] + r[5] + r[6],
            -r[6] - r[7],
            -r[11] + r[6] + r[8],
            -r[8] - r[9] + r[7] + r[10],
            r[8],
            -r[10] + r[9],
            -r[12] + r[11],
            r[13],
            -r[17] - r[18] + r[15],
            -r[19],
            r[19],
            -r[20] - r[21] - r[23] + r[22] + r[24],
            -r[24] + r[23],
        ]
    )  # fmt: skip


_RATES = (
    0.35,
    26.6,
    1.23e4,
    8.6e-4,
    8.2e-4,
    1.5e4,
    1.3e-4,
    2.4e4,
    1.65e4,
    9e3,
    0.022,
    1.2e4,
    1.88,
    1.63e4,
    4.8e6,
    3.5e-4,
    0.0175,
    1e8,
    4.44e11,
    1240.0,
    2.1,
    5.78,
    0.0474,
    1780.0,
    3.12,
)
_add(
    "pollution",
    _pollution,
    60.0,
    _numbers(
        """
        0 0.2 0 0.04 0 0 0.1 0.3 0.01 0 0 0 0 0 0 0 0.007 0 0 0
        """
    ),
    _numbers(
        """
        0.5646255480022769e-1 0.1342484130422339 0.4139734331099427e-8 0.5523140207484359e-2
        0.2018977262302196e-6 0.1464541863493966e-6 0.7784249118997964e-1 0.3245075353396018
        0.7494013383880406e-2 0.1622293157301561e-7 0.1135863833257075e-7 0.2230505975721359e-2
        0.2087162882798630e-3 0.1396921016840158e-4 0.8964884856898295e-2 0.4352846369330103e-17
        0.6899219696263405e-2 0.1007803037365946e-3 0.1772146513969984e-5 0.5682943292316392e-4
        """
    ),
    True,
    small=1e-3,
)
