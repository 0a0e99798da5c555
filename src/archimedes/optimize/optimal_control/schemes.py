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

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from archimedes.optimize.collocation import differentiation_matrix, lagrange, radau
from archimedes.records import record
from archimedes.typing import Array, Scalar


class Interval(NamedTuple):
    """One interval: its length, states, controls, and the rates along it."""

    h: Scalar
    X: Array
    U: Array
    rate: Callable[[Scalar, Array, Array], Array]

    def end_rates(self) -> tuple[Array, Array]:
        """Return the rates at both ends."""
        return self.rate(0.0, self.X[0], self.U[0]), self.rate(1.0, self.X[1], self.U[-1])


#: (s, x, u, weight) where running costs and path constraints are taken.
Visits = Sequence[tuple[Scalar, Array, Array, float]]


@record
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

    @property
    def hold(self) -> str | None:
        """What controls do between nodes: "zoh", "foh", or None if neither says it."""
        return {(0.0,): "zoh", (0.0, 1.0): "foh"}.get(self.control_points)

    def defects(self, interval: Interval) -> Array:
        """Return what vanishes on a solution, (number, nx)."""
        raise NotImplementedError

    def visit(self, interval: Interval) -> Visits:
        """Return (s, x, u, weight) where running costs and path constraints are taken.

        The weights integrate over the interval, relative to h. The last point is that at s = 1.
        """
        raise NotImplementedError

    def interpolate(self, s: Scalar, interval: Interval) -> tuple[Array, Array, Array]:
        """Return state, its slope dx/dt, and control on the interpolants."""
        raise NotImplementedError


class Trapezoidal(Scheme):
    """x1 - x0 = h/2 (f0 + f1): second order, controls linear, states quadratic."""

    def defects(self, interval: Interval) -> Array:
        """Return the defects of the equations of motion over an interval."""
        (f0, f1), (h, X, _, _) = interval.end_rates(), interval
        return (X[1] - X[0] - 0.5 * h * (f0 + f1))[None]

    def visit(self, interval: Interval) -> Visits:
        """Return points of an interval: position from 0 to 1, state, control and weight."""
        _, X, U, _ = interval
        return [(0.0, X[0], U[0], 0.5), (1.0, X[1], U[1], 0.5)]

    def interpolate(self, s: Scalar, interval: Interval) -> tuple[Array, Array, Array]:
        """Return state, rate and control at the position s, from 0 to 1, of an interval."""
        (f0, f1), (h, X, U, _) = interval.end_rates(), interval
        state = X[0] + h * s * (f0 + 0.5 * s * (f1 - f0))
        return state, f0 + s * (f1 - f0), (1.0 - s) * U[0] + s * U[1]


class HermiteSimpson(Scheme):
    """Simpson's rule with the state at the middle from the cubic: fourth order."""

    def middle(self, interval: Interval) -> tuple[Array, Array, Array]:
        """Return the rates at both ends and the state at the middle."""
        (f0, f1), (h, X, _, _) = interval.end_rates(), interval
        return f0, f1, 0.5 * (X[0] + X[1]) + h / 8.0 * (f0 - f1)

    def defects(self, interval: Interval) -> Array:
        """Return the defects of the equations of motion over an interval."""
        (f0, f1, xm), (h, X, U, rate) = self.middle(interval), interval
        fm = rate(0.5, xm, U[1])
        return (X[1] - X[0] - h / 6.0 * (f0 + 4.0 * fm + f1))[None]

    def visit(self, interval: Interval) -> Visits:
        """Return points of an interval: position from 0 to 1, state, control and weight."""
        (_, _, xm), (_, X, U, _) = self.middle(interval), interval
        points = zip((0.0, 0.5, 1.0), (X[0], xm, X[1]), U)
        return [(s, x, u, w) for (s, x, u), w in zip(points, (1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0))]

    def interpolate(self, s: Scalar, interval: Interval) -> tuple[Array, Array, Array]:
        """Return state, rate and control at the position s, from 0 to 1, of an interval."""
        (f0, f1, xm), (h, X, U, rate) = self.middle(interval), interval
        fm = rate(0.5, xm, U[1])
        # The slope is the parabola through the three rates, the state its integral.
        b, c = -3.0 * f0 + 4.0 * fm - f1, 2.0 * f0 - 4.0 * fm + 2.0 * f1
        state = X[0] + h * s * (f0 + s * (b / 2.0 + s * c / 3.0))
        weights = ((1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1))
        control = sum(w * u for w, u in zip(weights, U))
        return state, f0 + s * (b + s * c), control


@record
class Radau(Scheme):
    """Collocation at Legendre-Gauss-Radau points, the last of them the end of the interval."""

    @cached_property
    def differentiation(self) -> np.ndarray:
        """Slopes at the collocation points of the polynomial through the states: (K, K + 1)."""
        return differentiation_matrix(self.state_points, self.state_points[1:])

    def defects(self, interval: Interval) -> Array:
        """Return the defects of the equations of motion over an interval."""
        h, X, U, rate = interval
        points = zip(self.control_points, X[1:], U)
        rates = np.stack([rate(c, x, u) for c, x, u in points])
        return self.differentiation @ X - h * rates

    def visit(self, interval: Interval) -> Visits:
        """Return points of an interval: position from 0 to 1, state, control and weight."""
        _, weights = radau(len(self.control_points), (0.0, 1.0))
        return list(zip(self.control_points, interval.X[1:], interval.U, weights.tolist()))

    def interpolate(self, s: Scalar, interval: Interval) -> tuple[Array, Array, Array]:
        """Return state, rate and control at the position s, from 0 to 1, of an interval."""
        h, X, U, _ = interval
        at = np.reshape(s, (1,))
        value, slope = (f(self.state_points, at)[0] for f in (lagrange, differentiation_matrix))
        return value @ X, slope @ X / h, lagrange(self.control_points, at)[0] @ U


@record
class Shooting(Scheme):
    """Multiple shooting: Runge-Kutta steps of order 4 over the interval, constant control."""

    steps: int = 4

    def _integrate(self, interval: Interval, until: Scalar = 1.0) -> list[Array]:
        h, X, U, rate = interval
        states, d = [X[0]], until / self.steps
        for k in range(self.steps):
            states.append(rk4_step(lambda s, x: rate(s, x, U[0]), k * d, states[-1], d, h))
        return states

    def defects(self, interval: Interval) -> Array:
        """Return the defects of the equations of motion over an interval."""
        return (interval.X[1] - self._integrate(interval)[-1])[None]

    def visit(self, interval: Interval) -> Visits:
        """Return points of an interval: position from 0 to 1, state, control and weight."""
        states, n = self._integrate(interval), self.steps
        # Simpson's rule over pairs of steps; path constraints hold at the steps.
        rule = [1.0] + [4.0 if k % 2 else 2.0 for k in range(1, n)] + [1.0]
        u = interval.U[0]
        return [(k / n, x, u, w / (3.0 * n)) for k, (x, w) in enumerate(zip(states, rule))]

    def interpolate(self, s: Scalar, interval: Interval) -> tuple[Array, Array, Array]:
        """Return state, rate and control at the position s, from 0 to 1, of an interval."""
        x, u = self._integrate(interval, until=s)[-1], interval.U[0]
        return x, interval.rate(s, x, u), u


def rk4_step(
    rate: Callable[[Scalar, Array], Array], s: Scalar, x: Array, d: Scalar, h: Scalar
) -> Array:
    """Return the state after a Runge-Kutta step of order 4 over the part d of an interval h."""
    k1 = rate(s, x)
    k2 = rate(s + d / 2, x + h * d / 2 * k1)
    k3 = rate(s + d / 2, x + h * d / 2 * k2)
    k4 = rate(s + d, x + h * d * k3)
    return x + h * d / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


_SCHEMES: dict[str, Scheme] = {
    "trapezoidal": Trapezoidal("trapezoidal", (0.0, 1.0), (0.0, 1.0), 2),
    "hermite-simpson": HermiteSimpson("hermite-simpson", (0.0, 1.0), (0.0, 0.5, 1.0), 4),
    "multiple-shooting": Shooting("multiple-shooting", (0.0, 1.0), (0.0,), 4),
}
#: Names of all schemes; "radau" followed by a number from 1 to 9 has that many points.
NAMES = (*_SCHEMES, *(f"radau{k}" for k in range(1, 10)))


@cache
def find_scheme(name: str) -> Scheme:
    """Return a scheme by name.

    >>> find_scheme("radau2").order
    3
    """
    if name not in NAMES:
        raise ValueError(f"scheme={name!r} is not one of {NAMES}")
    if name in _SCHEMES:
        return _SCHEMES[name]
    k = int(name.removeprefix("radau"))
    points = tuple(radau(k, (0.0, 1.0))[0].tolist())
    return Radau(name, (0.0, *points), points, 2 * k - 1)
