"""Schemes that turn an interval of a trajectory into equations.

Symbols: one interval of length h, s in [0, 1] along it; X (a, nx) states at ``state_points``,
which begin with 0 and end with 1; U (b, nu) controls at ``control_points``; rate(s, x, u) = dx/dt.

Sources: J. T. Betts, "Practical methods for optimal control and estimation using nonlinear
programming" (2nd ed., SIAM 2010), sections 4.5 and 4.7.4; M. Kelly, "An introduction to trajectory
optimization", SIAM Review 59(4), 2017 (interpolants); D. Garg et al., "Direct trajectory
optimization and costate estimation ... using a Radau pseudospectral method", Comput. Optim.
Appl. 49, 2011 (here with the point at the end of the interval, as in Radau IIA).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from archimedes.optimize.optimal_control.radau_points import POINTS, WEIGHTS

__all__ = ["NAMES", "Scheme", "scheme_of"]

Rate = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Scheme:
    """What all schemes have; ``order`` is that of the error of a smooth solution at the nodes."""

    name: str
    state_points: tuple[float, ...]
    control_points: tuple[float, ...]
    order: int

    @property
    def equations(self) -> int:
        """How many defects there are for each state."""
        return len(self.state_points) - 1

    @property
    def shares_controls(self) -> bool:
        """Whether neighbouring intervals have the control at their common node."""
        return self.control_points[0] == 0.0 and self.control_points[-1] == 1.0

    def defects(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        """Return what vanishes on a solution, (number, nx)."""
        raise NotImplementedError

    def visited(self, rate: Rate, h: Any, X: Any, U: Any) -> list[tuple[float, Any, Any, float]]:
        """Return (s, x, u, weight) where running costs and path constraints are taken.

        The weights integrate over the interval, relative to h. The last point is that at s = 1.
        """
        raise NotImplementedError

    def at(self, s: Any, rate: Rate, h: Any, X: Any, U: Any) -> tuple[Any, Any, Any]:
        """Return state, its slope dx/dt, and control on the interpolants."""
        raise NotImplementedError


def _linear(s: Any, U: Any) -> Any:
    return (1.0 - s) * U[0] + s * U[1]


class Trapezoidal(Scheme):
    """x1 - x0 = h/2 (f0 + f1): second order, controls linear, states quadratic."""

    def defects(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        f0, f1 = rate(0.0, X[0], U[0]), rate(1.0, X[1], U[1])
        return (X[1] - X[0] - 0.5 * h * (f0 + f1))[None]

    def visited(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        return [(0.0, X[0], U[0], 0.5), (1.0, X[1], U[1], 0.5)]

    def at(self, s: Any, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        f0, f1 = rate(0.0, X[0], U[0]), rate(1.0, X[1], U[1])
        slope = f0 + s * (f1 - f0)
        return X[0] + h * s * (f0 + 0.5 * s * (f1 - f0)), slope, _linear(s, U)


class HermiteSimpson(Scheme):
    """Simpson's rule with the state at the middle from the cubic: fourth order."""

    def middle(self, h: Any, X: Any, f0: Any, f1: Any) -> Any:
        return 0.5 * (X[0] + X[1]) + h / 8.0 * (f0 - f1)

    def defects(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        f0, f1 = rate(0.0, X[0], U[0]), rate(1.0, X[1], U[2])
        fm = rate(0.5, self.middle(h, X, f0, f1), U[1])
        return (X[1] - X[0] - h / 6.0 * (f0 + 4.0 * fm + f1))[None]

    def visited(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        f0, f1 = rate(0.0, X[0], U[0]), rate(1.0, X[1], U[2])
        xm = self.middle(h, X, f0, f1)
        return [
            (0.0, X[0], U[0], 1.0 / 6.0),
            (0.5, xm, U[1], 4.0 / 6.0),
            (1.0, X[1], U[2], 1.0 / 6.0),
        ]

    def at(self, s: Any, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        f0, f1 = rate(0.0, X[0], U[0]), rate(1.0, X[1], U[2])
        fm = rate(0.5, self.middle(h, X, f0, f1), U[1])
        # The slope is the parabola through the three rates, the state its integral.
        b, c = -3.0 * f0 + 4.0 * fm - f1, 2.0 * f0 - 4.0 * fm + 2.0 * f1
        state = X[0] + h * s * (f0 + s * (b / 2.0 + s * c / 3.0))
        weights = ((1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1))
        control = sum(w * u for w, u in zip(weights, U))
        return state, f0 + s * (b + s * c), control


@dataclass(frozen=True)
class Radau(Scheme):
    """Collocation at Legendre-Gauss-Radau points, the last of them the end of the interval."""

    @cached_property
    def differentiation(self) -> np.ndarray:
        """Slopes at the collocation points of the polynomial through the states: (K, K + 1)."""
        return lagrange(np.array(self.state_points), np.array(self.state_points[1:]))[1]

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the quadrature at the collocation points."""
        return WEIGHTS[len(self.control_points)]

    def defects(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        points = zip(self.control_points, X[1:], U)
        rates = np.stack([rate(c, x, u) for c, x, u in points])
        return self.differentiation @ X - h * rates

    def visited(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        return list(zip(self.control_points, X[1:], U, self.weights))

    def at(self, s: Any, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        value, slope = lagrange(np.array(self.state_points), np.reshape(s, (1,)))
        control, _ = lagrange(np.array(self.control_points), np.reshape(s, (1,)))
        return value[0] @ X, slope[0] @ X / h, control[0] @ U


@dataclass(frozen=True)
class Shooting(Scheme):
    """Multiple shooting: Runge-Kutta steps of order 4 over the interval, constant control."""

    steps: int = 4

    def _states(self, rate: Rate, h: Any, x: Any, u: Any, until: Any = 1.0) -> list[Any]:
        states, d = [x], until / self.steps
        for k in range(self.steps):
            x, s = states[-1], k * d
            k1 = rate(s, x, u)
            k2 = rate(s + d / 2, x + h * d / 2 * k1, u)
            k3 = rate(s + d / 2, x + h * d / 2 * k2, u)
            k4 = rate(s + d, x + h * d * k3, u)
            states.append(x + h * d / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
        return states

    def defects(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        return (X[1] - self._states(rate, h, X[0], U[0])[-1])[None]

    def visited(self, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        states = self._states(rate, h, X[0], U[0])
        n = self.steps
        # Simpson's rule over pairs of steps; path constraints hold at the steps.
        rule = [1.0] + [4.0 if k % 2 else 2.0 for k in range(1, n)] + [1.0]
        return [(k / n, x, U[0], w / (3.0 * n)) for k, (x, w) in enumerate(zip(states, rule))]

    def at(self, s: Any, rate: Rate, h: Any, X: Any, U: Any) -> Any:
        x = self._states(rate, h, X[0], U[0], until=s)[-1]
        return x, rate(s, x, U[0]), U[0]


def lagrange(points: np.ndarray, at: Any) -> tuple[Any, Any]:
    """Return values and slopes, (len(at), len(points)), of the Lagrange polynomials.

    >>> lagrange(np.array([0.0, 1.0]), np.array([0.25]))
    (array([[0.75, 0.25]]), array([[-1.,  1.]]))
    """
    values, slopes = [], []
    for j, here in enumerate(points):
        others = np.delete(points, j)
        scale = np.prod(here - others)
        values.append(_product([at - o for o in others], at) / scale)
        terms = [
            _product([at - o for i, o in enumerate(others) if i != k], at)
            for k in range(len(others))
        ]
        slopes.append(sum(terms) / scale)
    return np.stack(values, axis=1), np.stack(slopes, axis=1)


def _product(factors: list[Any], like: Any) -> Any:
    total = like * 0.0 + 1.0
    for factor in factors:
        total = total * factor
    return total


def radau(k: int) -> Radau:
    """Return the scheme with k collocation points for each interval."""
    return Radau(f"radau{k}", (0.0, *POINTS[k]), POINTS[k], 2 * k - 1)


_PLAIN: dict[str, Scheme] = {
    "trapezoidal": Trapezoidal("trapezoidal", (0.0, 1.0), (0.0, 1.0), 2),
    "hermite-simpson": HermiteSimpson("hermite-simpson", (0.0, 1.0), (0.0, 0.5, 1.0), 4),
    "multiple-shooting": Shooting("multiple-shooting", (0.0, 1.0), (0.0,), 4),
}
#: Names of all schemes; "radau" followed by a number from 1 to 9 has that many points.
NAMES = (*_PLAIN, *(f"radau{k}" for k in range(1, 10)))


@cache
def scheme_of(name: str) -> Scheme:
    """Return a scheme by name.

    >>> scheme_of("radau2").order
    3
    """
    if name not in NAMES:
        raise ValueError(f"method={name!r} is not one of {NAMES}")
    return _PLAIN[name] if name in _PLAIN else radau(int(name.removeprefix("radau")))
