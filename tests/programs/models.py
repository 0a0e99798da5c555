"""Programs of models: rates of the F-16, and the forward dynamics of a robot arm."""

from __future__ import annotations

from functools import cache

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.vehicles import F16, FlightState, load

from ..multibody.robots import path_of
from .program import Program

__all__ = ["models"]

#: Instances: whole tiles of every width, and an incomplete one.
COUNT = 19


def _recorded(name: str, function, *arrays: np.ndarray) -> Program:
    graph = arc.compile(function).graph(*(x[0] for x in arrays))
    return Program(name, graph, [column for x in arrays for column in x.T])


def _f16() -> Program:
    plane = load("f16")

    def rates(z):
        flight = FlightState(
            lat=1.2 * z[0],
            lon=3.0 * z[1],
            alt=7000.0 + 6500.0 * z[2],
            v_NED=np.stack([180.0 + 60.0 * z[3], 30.0 * z[4], 20.0 * z[5]]),
            rpy=np.stack([0.8 * z[6], 0.3 * z[7], 3.0 * z[8]]),
            w_B=0.2 * np.stack([z[9], z[3], z[6]]),
        )
        u = F16.Input(0.5 + 0.5 * z[11], 0.3 * z[12], 0.3 * z[13], 0.4 * z[14])
        return plane.dynamics(0.0, plane.state(flight, 50.0 + 45.0 * z[10]), u)

    return _recorded("f16_rates", rates, np.random.default_rng(3).uniform(-1.0, 1.0, (COUNT, 15)))


def _robot() -> Program:
    model = mb.load(path_of("xarm7"), "fixed")
    rng = np.random.default_rng(4)
    q = np.array([mb.random_configuration(model, rng) for _ in range(COUNT)])
    return _recorded(
        "xarm7_accelerations",
        lambda q, v, u: mb.aba(model, q, v, u),
        *(q, rng.normal(size=(COUNT, model.nv)), rng.normal(size=(COUNT, model.nv))),
    )


@cache
def models() -> tuple[Program, ...]:
    """Programs as long as users' are."""
    return _f16(), _robot()
