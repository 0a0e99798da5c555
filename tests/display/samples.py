"""Results that tests of printing and of plots share; none of them is computed."""

from __future__ import annotations

import numpy as np

from archimedes import multibody, sysid, vehicles
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody

T = np.linspace(0.0, 10.0, 400)


def tumbling(lead=(400,)):
    """Return states of a rigid body with inputs and outputs, at random."""
    rng = np.random.default_rng(0)
    draw = lambda n: rng.normal(size=(*lead, n)) / 3.0
    x = RigidBody.State(draw(3), Quaternion(draw(4)), draw(3), draw(3))
    return Trajectory(np.broadcast_to(T[: lead[-1]], lead), x, u=draw(40), y={"a": draw(30)})


def first_order_fit(count=60):
    """Return a fit with many parameters, one of them at a bound."""
    rng = np.random.default_rng(0)
    data = sysid.Timeseries(T, np.ones(400), 1.0 - np.exp(-3.0 * T))
    names, values = tuple(f"gain{k}" for k in range(count)), rng.normal(size=count)
    known = (1e-4 * np.eye(count), np.asarray, values, 400 - count)
    predicted = data.ys + 0.01 * rng.normal(size=(1, 400))
    return sysid.Fit(
        *(dict(zip(names, values)), np.zeros(1), names, *known),
        *(predicted, data, ("gain0",), 1.0, 5, True, "converged", len),
    )


def snake(count=40):
    """Return the builder of a chain: every fifth joint slides."""
    b = multibody.Builder("snake")
    for k in range(count):
        b.add_body(f"link{k}", mass=1.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01])
        kind = "prismatic" if k % 5 == 4 else "revolute"
        parent = "world" if k == 0 else f"link{k - 1}"
        motion = {"kind": kind, "axis": [0, 1, 0], "lower": -1.0, "upper": 1.0}
        b.attach(f"link{k}", parent, joint=f"j{k}", **motion)
    b.report.ignored += [f"snake.urdf: <plugin {k}> is not read" for k in range(50)]
    return b


def flight_record():
    """Return a flight that was not flown."""
    zero = np.zeros((400, 3))
    state = vehicles.FlightState(0.1 * T, 0.0 * T, 1e3 + T, zero, zero, zero)
    return vehicles.FlightRecord(T, state, tumbling())
