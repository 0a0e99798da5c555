"""Models whose derivatives other packages check: each a function of arrays, and where.

The arguments are float64 arrays, which the packages differentiate with respect to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.vehicles import FlightState, Multirotor


class Case(NamedTuple):
    function: Callable[..., Any]
    args: tuple[np.ndarray, ...]


@arc.struct
class Pendulum:
    """A damped pendulum."""

    length: float
    damping: float = 0.1
    name: str = arc.field(default="bob", static=True)

    def dynamics(self, t, x):
        return np.array([x[1], -9.81 / self.length * np.sin(x[0]) - self.damping * x[1]])


def arithmetic(x, w):
    y = np.tanh(x @ w) / (1.0 + x[0] ** 2)
    return y, np.sum(np.where(x > 0.0, x**2, np.exp(x)))


def structs(length, damping, x):
    return Pendulum(length, damping).dynamics(0.0, x)


def solve(length, x0):
    model = Pendulum(length)
    return arc.odeint(model.dynamics, (0.0, 0.5), x0, rtol=1e-9, atol=1e-11)


def _drone():
    model = Multirotor()
    zero = np.zeros(3)
    state = model.state(FlightState(0.0, 0.0, 10.0, zero, zero, zero))
    leaves, treedef = arc.tree.flatten(state)

    def drone(*given):
        *given, speeds = given
        rates = model.dynamics(0.0, treedef.unflatten(given), Multirotor.Input(speeds))
        return tuple(arc.tree.leaves(rates))

    shapes = [np.shape(leaf) for leaf in leaves]
    places = [0.3 * np.cos(np.arange(np.prod(s)) + k).reshape(s) for k, s in enumerate(shapes)]
    places[-1] = np.array([400.0, 410.0, 420.0, 405.0])
    return Case(drone, (*places, np.array([430.0, 400.0, 390.0, 415.0])))


def _arm():
    builder = mb.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        builder.add_body(name, mass=1.2, com=[0.0, 0.0, -0.2], inertia=[0.02, 0.03, 0.01])
        builder.attach(name, parent, axis=[0.0, 1.0, 0.0], position=[0.0, 0.0, -0.4])
    arm = builder.build()
    at = (np.array([0.4, -0.7]), np.array([0.1, 0.2]), np.array([1.0, -0.5]))
    return Case(lambda q, v, tau: mb.aba(arm, q, v, tau), at)


def _table():
    grid = np.linspace(-2.0, 2.0, 9)
    table = arc.interpolant([grid, grid], np.sin(grid)[:, None] * grid, method="cubic")
    return Case(lambda p: table(p[0], p[1]) * p[0], (np.array([0.33, -0.41]),))


CASES = {
    "arithmetic": Case(arithmetic, (np.array([0.3, -1.2, 0.8]), np.array([[0.4, -1.0]] * 3))),
    "structs": Case(structs, (np.array(0.7), np.array(0.2), np.array([0.5, -0.3]))),
    "solve": Case(solve, (np.array(0.8), np.array([0.6, 0.1]))),
    "drone": _drone(),
    "arm": _arm(),
    "table": _table(),
}
