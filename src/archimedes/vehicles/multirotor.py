"""A multirotor, rotor by rotor, and a controller that follows a path.

Axes: body x forward, y right, z down; the world's axes are north, east and down. Left out: blade
flapping beyond a force across the rotor, ground effect, interference between rotors, batteries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment.gravity import check_positive
from archimedes.spatial.components import as_array, cross
from archimedes.spatial.validation import check_inertia, check_mass
from archimedes.tree import field, struct
from archimedes.vehicles.parts.limits import WORLD, check_flat, check_not_negative, check_part
from archimedes.vehicles.parts.rotors import Rotors
from archimedes.vehicles.surroundings import FlightState
from archimedes.vehicles.worlds import FlatEarth

__all__ = ["GeometricController", "Multirotor", "ring"]


def ring(count: int, arm: float, **rotor: Any) -> Rotors:
    """Return `count` rotors evenly around a circle of radius `arm` in m, spinning alternately.

    >>> from archimedes.vehicles import ring
    >>> ring(4, 0.2).positions.round(3)[0]
    array([0.141, 0.141, 0.   ])
    """
    if count < 4 or count % 2:
        raise ValueError(f"ring: count={count} must be even and at least 4 to turn both ways")
    check_positive(arm, "ring: arm", "m")
    angle = 2.0 * np.pi * (np.arange(count) + 0.5) / count
    places = np.stack([arm * np.cos(angle), arm * np.sin(angle), 0.0 * angle], axis=1)
    return Rotors(places, np.where(np.arange(count) % 2 == 0, 1.0, -1.0), **rotor)


@struct
class Multirotor:
    """A rigid frame with rotors, drag, and (optionally) feet.

    `drag` in N s^2/m^2 is that of the frame, per squared speed along each body axis.

    >>> from archimedes.vehicles import Multirotor, ring
    >>> drone = Multirotor(mass=1.2, rotors=ring(4, 0.23))
    >>> float(drone.mass)
    1.2
    """

    mass: Any = field(units="kg", default=1.2)
    inertia: Any = field(units="kg m^2", default_factory=lambda: np.diag([0.012, 0.012, 0.022]))
    rotors: Any = field(default_factory=lambda: ring(4, 0.23, inertia=6e-5))
    drag: Any = field(units="N s^2/m^2", default_factory=lambda: np.array([0.02, 0.02, 0.04]))
    ground: Any = None
    world: Any = field(default_factory=FlatEarth)

    @struct
    class State:
        """Motion in the world, and the speeds of the rotors."""

        motion: Any = field()
        speeds: Any = field(units="rad/s")

    @struct
    class Input:
        """Commanded speeds of the rotors."""

        speeds: Any = field(units="rad/s")

    @struct
    class Output:
        """Flight state, and the thrust of all rotors along -z."""

        flight: FlightState = field()
        thrust: Any = field(units="N")

    def __post_init__(self) -> None:
        """Check the parts, and mass and inertia where they are known."""
        check_mass(self.mass, "Multirotor.mass")
        check_inertia(self.inertia, "Multirotor.inertia")
        check_not_negative(self.drag, "Multirotor.drag", "N s^2/m^2")
        check_part(self.rotors, "Multirotor.rotors", ("rates", "wrench", "distribute"))
        check_part(self.world, "Multirotor.world", WORLD)
        if self.ground is not None:
            check_flat(self.world, "Multirotor.ground")

    @property
    def stops(self) -> tuple[Any, Any]:
        """Return the least and the largest `Input`: rotors turn one way, at `max_speed` at most."""
        return Multirotor.Input(0.0), Multirotor.Input(self.rotors.max_speed)

    def state(self, flight: FlightState, speeds: Any = None) -> Any:
        """Return the state for a place, a velocity and an attitude; rotors hover by default."""
        return Multirotor.State(
            self.world.state(flight), self.hover_speeds() if speeds is None else as_array(speeds)
        )

    def hover_speeds(self, gravity: float = 9.80665) -> Any:
        """Return the speeds (n,) that carry the weight in air of the rotors' density."""
        return self.rotors.distribute(self.mass * gravity, np.zeros(3))

    def forces(self, t: Any, x: Any, u: Any) -> tuple[Any, Any]:
        """Return force (3,) without gravity and moment (3,) in body axes."""
        around = self.world.surroundings(t, x.motion)
        v, rates = around.v_air_B, self.rotors.rates(x.speeds, u.speeds)
        F_B, M_B = self.rotors.wrench(x.speeds, rates, v, around.w_air_B, around.air.density)
        F_B = F_B - as_array(self.drag) * np.abs(v) * v
        if self.ground is not None:
            v_B = x.motion.v_B
            push, turn = self.ground.wrench(around.alt, x.motion.att, v_B, x.motion.w_B)
            F_B, M_B = F_B + push, M_B + turn
        return F_B, M_B

    def dynamics(self, t: Any, x: Any, u: Any) -> Any:
        """Return the derivative of the state."""
        F_B, M_B = self.forces(t, x, u)
        motion = self.world.rates(t, x.motion, F_B, M_B, self.mass, as_array(self.inertia))
        return Multirotor.State(motion, self.rotors.rates(x.speeds, u.speeds))

    def outputs(self, t: Any, x: Any, u: Any = None) -> Any:
        """Return flight state and thrust."""
        thrust = self.rotors.allocation()[0] @ x.speeds**2
        return Multirotor.Output(self.world.flight(t, x.motion), thrust)


@struct
class GeometricController:
    """Thrust and moment that follow a path, without angles that could lock.

    Gains per mass and inertia: `position` in 1/s^2, `velocity` in 1/s, `attitude` in 1/s^2, `rate`
    in 1/s. `least_thrust`, in parts of the weight, is kept up, so that there is thrust to turn with
    even where none is wanted. Source: Lee, Leok and McClamroch, Geometric Tracking Control of a
    Quadrotor UAV on SE(3), IEEE CDC 2010, equations 10 to 16 (the feed-forward of angular
    acceleration left out).

    >>> import numpy as np
    >>> from archimedes.vehicles import FlatEarth, FlightState, GeometricController, load
    >>> drone = load("multirotor", world=FlatEarth())
    >>> hover = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
    >>> x = drone.state(hover)
    >>> goal = np.array([0.0, 0.0, -10.0]), np.zeros(3), np.zeros(3)
    >>> GeometricController().command(drone, x, *goal, 0.0).speeds.shape
    (4,)
    """

    position: Any = field(units="1/s^2", default=6.0)
    velocity: Any = field(units="1/s", default=4.5)
    attitude: Any = field(units="1/s^2", default=120.0)
    rate: Any = field(units="1/s", default=18.0)
    gravity: Any = field(units="m/s^2", default=9.80665)
    least_thrust: Any = 0.2

    def wrench(
        self, vehicle: Multirotor, x: Any, p: Any, v: Any, a: Any, yaw: Any
    ) -> tuple[Any, Any]:
        """Return thrust in N and moment (3,) in N m towards a place, velocity and acceleration.

        `p`, `v`, `a` (3,) are in NED axes, `yaw` in rad; `x` is the state of motion of a vehicle on
        a `FlatEarth`.
        """
        check_flat(vehicle.world, "GeometricController")
        R = x.att.as_matrix().T  # body to NED
        velocity = R @ x.v_B
        push = a + self.position * (p - x.pos) + self.velocity * (v - velocity)
        push = push - self.gravity * np.array([0.0, 0.0, 1.0])  # the specific force wanted
        least = self.least_thrust * self.gravity
        thrust = vehicle.mass * np.maximum(-np.sum(push * R[:, 2]), least)
        size = np.sqrt(np.sum(push * push))
        down = -push / np.maximum(size, 1e-6)
        ahead = np.stack([np.cos(yaw), np.sin(yaw), 0.0 * np.cos(yaw)])
        right = cross(down, ahead)
        right = right / np.maximum(np.sqrt(np.sum(right * right)), 1e-6)
        wanted = np.stack([cross(right, down), right, down], axis=1)
        skew = 0.5 * (wanted.T @ R - R.T @ wanted)
        error = np.stack([skew[2, 1], skew[0, 2], skew[1, 0]])
        J = as_array(vehicle.inertia)
        turning = -self.attitude * error - self.rate * x.w_B
        return thrust, J @ turning + cross(x.w_B, J @ x.w_B)

    def command(
        self, vehicle: Multirotor, x: Any, p: Any, v: Any, a: Any, yaw: Any, working: Any = None
    ) -> Any:
        """Return the vehicle's `Input` for a state `x`; `working` marks rotors that failed."""
        thrust, moment = self.wrench(vehicle, x.motion, p, v, a, yaw)
        return Multirotor.Input(vehicle.rotors.distribute(thrust, moment, working))
