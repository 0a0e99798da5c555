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
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from archimedes.typing import Array, Scalar

#: Points and weights of Legendre-Gauss-Radau quadrature on (0, 1] by their number, the last point
#: being 1. Points are the zeros of P_k - P_(k-1), moved from (-1, 1]; weights the integrals of the
#: Lagrange polynomials through them. They are literals because eigenvalues by LAPACK differ from
#: processor to processor; the tests compute them in 50 digits.
POINTS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (0.3333333333333333, 1.0),
    3: (0.1550510257216822, 0.6449489742783178, 1.0),
    4: (0.08858795951270394, 0.4094668644407347, 0.787659461760847, 1.0),
    5: (
        *(0.05710419611451768, 0.2768430136381238, 0.5835904323689168, 0.8602401356562195),
        *(1.0,),
    ),
    6: (
        *(0.03980985705146874, 0.19801341787360818, 0.43797481024738616, 0.6954642733536361),
        *(0.9014649142011736, 1.0),
    ),
    7: (
        *(0.029316427159784893, 0.1480785996684843, 0.3369846902811543, 0.5586715187715501),
        *(0.7692338620300545, 0.9269456713197411, 1.0),
    ),
    8: (
        *(0.022479386438712497, 0.11467905316090424, 0.26578982278458946, 0.45284637366944464),
        *(0.6473752828868303, 0.8197593082631076, 0.9437374394630779, 1.0),
    ),
    9: (
        *(0.01777991514736345, 0.09132360789979396, 0.21430847939563075, 0.37193216458327233),
        *(0.5451866848034267, 0.7131752428555694, 0.8556337429578544, 0.9553660447100302),
        *(1.0,),
    ),
}
WEIGHTS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (0.75, 0.25),
    3: (0.37640306270046725, 0.5124858261884216, 0.1111111111111111),
    4: (0.22046221117676837, 0.3881934688431719, 0.32884431998005975, 0.0625),
    5: (
        *(0.14371356079122594, 0.28135601514946207, 0.31182652297574126, 0.22310390108357075),
        *(0.04,),
    ),
    6: (
        *(0.10079419262674041, 0.20845066715595387, 0.2604633915947875, 0.24269359423448497),
        *(0.15982037661025547, 0.027777777777777776),
    ),
    7: (
        *(0.07449423555601031, 0.15910211573365074, 0.21235188950297781, 0.22355491450728324),
        *(0.19047493682211558, 0.1196137446126562, 0.02040816326530612),
    ),
    8: (
        *(0.0572544073721286, 0.12482395066493249, 0.17350739781725064, 0.19578608372624678),
        *(0.1882587726945593, 0.15206531032339257, 0.09267907740148965, 0.015625),
    ),
    9: (
        *(0.04535725246164146, 0.10027664901227598, 0.1431933481786156, 0.16884698348796479),
        *(0.1741365013864833, 0.158421887835219, 0.12359468910229653, 0.0738270095231577),
        *(0.012345679012345678,),
    ),
}


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

    def defects(self, interval: Interval) -> Array:
        """Return the defects of the equations of motion over an interval."""
        h, X, U, rate = interval
        points = zip(self.control_points, X[1:], U)
        rates = np.stack([rate(c, x, u) for c, x, u in points])
        return self.differentiation @ X - h * rates

    def visit(self, interval: Interval) -> Visits:
        """Return points of an interval: position from 0 to 1, state, control and weight."""
        return list(zip(self.control_points, interval.X[1:], interval.U, self.weights))

    def interpolate(self, s: Scalar, interval: Interval) -> tuple[Array, Array, Array]:
        """Return state, rate and control at the position s, from 0 to 1, of an interval."""
        h, X, U, _ = interval
        value, slope = lagrange(np.array(self.state_points), np.reshape(s, (1,)))
        control, _ = lagrange(np.array(self.control_points), np.reshape(s, (1,)))
        return value[0] @ X, slope[0] @ X / h, control[0] @ U


@dataclass(frozen=True)
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


def lagrange(points: np.ndarray, at: Array) -> tuple[Array, Array]:
    """Return values and slopes, (len(at), len(points)), of the Lagrange polynomials.

    >>> lagrange(np.array([0.0, 1.0]), np.array([0.25]))
    (array([[0.75, 0.25]]), array([[-1.,  1.]]))
    """

    def multiply(factors: list[Array]) -> Array:
        total = at * 0.0 + 1.0
        for factor in factors:
            total = total * factor
        return total

    values, slopes = [], []
    for j, here in enumerate(points):
        others = np.delete(points, j)
        scale = np.prod(here - others)
        factors = [at - other for other in others]
        values.append(multiply(factors) / scale)
        terms = [multiply(factors[:k] + factors[k + 1 :]) for k in range(len(factors))]
        slopes.append(sum(terms) / scale)
    return np.stack(values, axis=1), np.stack(slopes, axis=1)


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
    return Radau(name, (0.0, *POINTS[k]), POINTS[k], 2 * k - 1)
