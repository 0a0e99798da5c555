"""Models for the tests of campaigns, where worker processes can import them."""

from __future__ import annotations

import os

import numpy as np

import archimedes as arc
from archimedes.simulate import Normal, RandomAttitude, Uniform, odeint
from archimedes.spatial import Quaternion, RigidBody


@arc.struct
class Shot:
    speed: float = arc.field(units="m/s")
    angle: float = arc.field(units="rad")
    att: Quaternion = arc.field()
    wind: np.ndarray = arc.field(units="m/s")
    gravity: float = 9.81


@arc.struct
class Hit:
    range: float = arc.field(units="m")
    path: np.ndarray = arc.field(units="m")


DISPERSED = Shot(
    speed=Normal(30.0, 1.0),
    angle=Uniform(0.6, 0.9),
    att=RandomAttitude(Quaternion),
    wind=Normal(np.zeros(3), 0.5),
)


def shoot(shot: Shot) -> Hit:
    """Step a shot in wind for a while; every operation counts for its bits."""
    v = np.stack([shot.speed * np.cos(shot.angle), 0.0, shot.speed * np.sin(shot.angle)])
    v = v + shot.att.rotate(shot.wind)
    p, path = np.zeros(3), []
    for _ in range(8):
        v = v - 0.1 * (0.02 * v * np.sqrt(np.sum(v * v)) + np.array([0.0, 0.0, shot.gravity]))
        p = p + 0.1 * v
        path.append(p)
    return Hit(range=np.sqrt(np.sum(p * p)), path=np.stack(path))


def counted(shot: Shot) -> Hit:
    """The same, leaving a line in a file for each call."""
    with open(os.environ["CAMPAIGN_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{float(shot.speed).hex()}\n")
    return shoot(shot)


def failing(shot: Shot) -> float:
    if shot.speed > 31.0:
        raise ZeroDivisionError("the barrel burst")
    return shot.speed


BODY = RigidBody.Input(np.zeros(3), np.zeros(3), 10.0, np.diag([1.0, 2.0, 3.0]))
TUMBLING = RigidBody.State(
    pos=Normal(np.zeros(3), 1.0),
    att=RandomAttitude(Quaternion),
    v_B=Normal(np.zeros(3), 0.1),
    w_B=Normal([0.02, 2.0, 0.01], 0.01),
)


def tumble(x0: RigidBody.State) -> RigidBody.State:
    """Six degrees of freedom for ten seconds, with adaptive steps."""
    return odeint(lambda t, x: RigidBody.dynamics(t, x, BODY), (0.0, 10.0), x0)


#: By name: the model, what it is given, and whether it is recorded.
MODELS = {
    "python": (counted, DISPERSED, False),
    "native": (shoot, DISPERSED, True),
    "six-dof": (tumble, TUMBLING, True),
}
