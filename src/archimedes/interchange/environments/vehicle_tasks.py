"""Tasks of vehicles: hover, hold an altitude, point at a goal. Any vehicle of a kind will do."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.environment import WGS84
from archimedes.interchange.environments.environment import Environment
from archimedes.simulate import discretize
from archimedes.spatial import Quaternion
from archimedes.typing import Array, Scalar, Tree
from archimedes.vehicles import (
    F16,
    FlatEarth,
    FlightState,
    Multirotor,
    Satellite,
    load,
    trim,
)

__all__ = ["altitude_hold", "hover", "pointing"]


def hover(vehicle: Multirotor | None = None, dt: float = 0.02, max_steps: int = 500) -> Environment:
    """Return a multirotor that is to hover at a place, 10 m above the ground.

    An episode begins up to 1 m away, tilted and moving. The observation is the place relative to
    the goal and the velocity, north-east-down, the attitude as roll, pitch and yaw, and the angular
    velocity. Actions are commanded speeds of the rotors, up to 30 % from those of hover. The reward
    is 1 at rest at the goal; an episode ends 5 m away from it, or tilted by 90 degrees.

    Parameters
    ----------
    vehicle : Multirotor, optional
        The vehicle, in a flat world. By default a quadrotor of 1.2 kg.
    dt : float, optional
        Length of a step in s, 0.02 by default.
    max_steps : int, optional
        Steps of an episode, 500 by default.

    Examples
    --------
    >>> from archimedes.interchange.environments import hover
    >>> hover()
    <Hover: action 4 numbers, observation (12,), 500 steps at most>
    """
    drone = Multirotor() if vehicle is None else vehicle
    zero = np.zeros(3)
    rest = drone.state(FlightState(0.0, 0.0, 10.0, zero, zero, zero))
    goal, speeds = rest.motion.pos, np.asarray(drone.hover_speeds())
    step = discretize(drone.dynamics, dt)

    def initial(key: Array) -> Tree:
        pos, v, rpy, w = random.uniform(key, (4, 3), -1.0, 1.0)
        x = drone.state(FlightState(0.0, 0.0, 10.0, 0.5 * v, 0.2 * rpy, 0.2 * w))
        return x.replace(motion=x.motion.replace(pos=goal + pos))

    def observe(x: Tree) -> Array:
        flight = drone.world.flight(0.0, x.motion)
        return np.concatenate([x.motion.pos - goal, flight.v_NED, flight.rpy, flight.w_B])

    def reward(x: Tree, u: Tree, x_next: Tree) -> Scalar:
        seen = observe(x_next)
        far, fast, turning = (np.sum(seen[k : k + 3] ** 2) for k in (0, 3, 9))
        return 1.0 / (1.0 + far + 0.1 * fast + 0.1 * turning)

    def terminated(x: Tree) -> Scalar:
        seen = observe(x)
        return (np.sum(seen[:3] ** 2) > 25.0) | (np.cos(seen[6]) * np.cos(seen[7]) < 0.0)

    most = np.repeat([10.0, 20.0, np.pi, 50.0], 3)
    return Environment(
        lambda x, u: step(0.0, x, u),
        initial,
        action=(Multirotor.Input(0.7 * speeds), Multirotor.Input(1.3 * speeds)),
        reward=reward,
        observe=observe,
        observation_limits=(-most, most),
        terminated=terminated,
        max_steps=max_steps,
        name="Hover",
    )


def altitude_hold(
    vehicle: F16 | None = None,
    altitude: float = 1000.0,
    speed: float = 150.0,
    dt: float = 0.05,
    max_steps: int = 400,
) -> Environment:
    """Return an F-16 that is to fly level at an altitude and a speed, to the north.

    It is trimmed first, which takes some seconds. An episode begins up to 30 m too high or low, and
    up to 5 m/s too fast or slow. The observation is the altitude and the velocity relative to what
    is wanted, roll, pitch and yaw, angular velocity, and the power of the engine. Actions are
    throttle, elevator, aileron and rudder about their trim. The reward is 1 in the flight that is
    wanted; an episode ends 200 m away from the altitude, or with a bank of 90 degrees.

    Parameters
    ----------
    vehicle : F16, optional
        The aircraft, in a flat world. By default the F-16 of NASA's check cases.
    altitude : float, optional
        Altitude to hold in m, 1000 by default.
    speed : float, optional
        Speed to hold in m/s, 150 by default.
    dt : float, optional
        Length of a step in s, 0.05 by default.
    max_steps : int, optional
        Steps of an episode, 400 by default.

    Examples
    --------
    >>> from archimedes.interchange.environments import altitude_hold
    >>> altitude_hold()  # doctest: +SKIP
    <AltitudeHold: action 4 numbers, observation (11,), 400 steps at most>
    """
    plane: Any = load("f16", world=FlatEarth()) if vehicle is None else vehicle
    v_NED, rpy = np.array([speed, 0.0, 0.0]), np.array([0.0, 0.05, 0.0])
    wanted = FlightState(0.0, 0.0, altitude, v_NED, rpy, np.zeros(3))
    steady = trim(plane, wanted, F16.Input(throttle=0.15, elevator=-0.03))
    flight, middle = steady.flight, steady.input
    about = F16.Input(0.2, *np.deg2rad([5.0, 3.0, 3.0]))
    low, high = plane.stops
    step = discretize(plane.dynamics, dt, n_steps=2)

    def shifted(sign: float) -> Tree:
        fields = ("throttle", "elevator", "aileron", "rudder")
        moved = {f: getattr(middle, f) + sign * getattr(about, f) for f in fields}
        return F16.Input(
            **{f: np.clip(moved[f], getattr(low, f), getattr(high, f)) for f in fields}
        )

    def initial(key: Array) -> Tree:
        draws = random.uniform(key, (8,), -1.0, 1.0)
        start = FlightState(
            0.0,
            0.0,
            altitude + 30.0 * draws[0],
            v_NED + 5.0 * np.stack([draws[1], 0.0, 0.0]),
            flight.rpy + 0.05 * draws[2:5],
            0.02 * draws[5:8],
        )
        return plane.state(start, steady.state.power)

    def observe(x: Tree) -> Array:
        now = plane.world.flight(0.0, x.motion)
        parts = np.stack([now.alt - altitude]), now.v_NED - v_NED, now.rpy, now.w_B
        return np.concatenate([*parts, np.stack([x.power])])

    def reward(x: Tree, u: Tree, x_next: Tree) -> Scalar:
        seen = observe(x_next)
        off = (seen[0] / 10.0) ** 2 + np.sum((seen[1:4] / 5.0) ** 2) + np.sum(seen[4:6] ** 2)
        return 1.0 / (1.0 + off + np.sum(seen[7:10] ** 2))

    def terminated(x: Tree) -> Scalar:
        seen = observe(x)
        return (np.abs(seen[0]) > 200.0) | (np.cos(seen[4]) < 0.0)

    most = np.array([500.0, *[200.0] * 3, *[np.pi] * 3, *[10.0] * 3, 100.0])
    return Environment(
        lambda x, u: step(0.0, x, u),
        initial,
        action=(shifted(-1.0), shifted(1.0)),
        reward=reward,
        observe=observe,
        observation_limits=(-most, most),
        terminated=terminated,
        max_steps=max_steps,
        name="AltitudeHold",
    )


def pointing(
    vehicle: Satellite | None = None,
    radius: float = 6.9e6,
    dt: float = 0.5,
    max_steps: int = 400,
) -> Environment:
    """Return a satellite in orbit that is to point at an attitude with its wheels, and to stay.

    An episode begins at any attitude, turning by up to 0.02 rad/s about each axis. The observation
    is the vector part of the attitude's quaternion, the short way around, the angular velocity in
    body axes, and the momenta of the wheels. Actions are their torques. The reward is 1 at rest at
    the goal; an episode ends where the satellite turns by more than 0.3 rad/s.

    Parameters
    ----------
    vehicle : Satellite, optional
        The satellite. By default that of ``load("satellite")``.
    radius : float, optional
        Radius of the orbit in m, 6.9e6 by default.
    dt : float, optional
        Length of a step in s, 0.5 by default.
    max_steps : int, optional
        Steps of an episode, 400 by default.

    Examples
    --------
    >>> from archimedes.interchange.environments import pointing
    >>> pointing()
    <Pointing: action 3 numbers, observation (9,), 400 steps at most>
    """
    satellite: Any = load("satellite") if vehicle is None else vehicle
    idle, wheels = satellite.idle(), satellite.wheels
    torque = np.broadcast_to(wheels.max_torque, np.shape(idle.torque))
    momentum = np.broadcast_to(wheels.max_momentum, np.shape(idle.torque))
    velocity = np.sqrt(WGS84.mu / radius) * np.array([0.0, 1.0, 0.0])
    position = radius * np.array([1.0, 0.0, 0.0])
    step = discretize(satellite.dynamics, dt)

    def initial(key: Array) -> Tree:
        keys = random.split(key, 2)
        att = Quaternion(random.normal(keys[0], (4,))).normalize()
        w_B = random.uniform(keys[1], (3,), -0.02, 0.02)
        return Satellite.State(position, velocity, att, w_B, np.zeros_like(momentum))

    def observe(x: Tree) -> Array:
        q = x.att.array
        return np.concatenate([np.where(q[0] < 0.0, -1.0, 1.0) * q[1:], x.w_B, x.h])

    def reward(x: Tree, u: Tree, x_next: Tree) -> Scalar:
        seen = observe(x_next)
        return 1.0 / (1.0 + 10.0 * np.sum(seen[:3] ** 2) + 1e3 * np.sum(seen[3:6] ** 2))

    most = np.array([*[1.0] * 3, *[1.0] * 3, *momentum])
    return Environment(
        lambda x, u: step(0.0, x, idle.replace(torque=u)),
        initial,
        action=(-torque, torque),
        reward=reward,
        observe=observe,
        observation_limits=(-most, most),
        terminated=lambda x: np.sum(x.w_B**2) > 0.09,
        max_steps=max_steps,
        name="Pointing",
    )
