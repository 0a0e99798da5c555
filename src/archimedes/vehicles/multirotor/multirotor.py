"""A multirotor, rotor by rotor, and a controller that follows a path.

Axes: body x forward, y right, z down; the world's axes are north, east and down. Left out: blade
flapping beyond a force across the rotor, ground effect, interference between rotors, batteries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_positive, check_struct
from archimedes.portable_numpy import cos, sin
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Tree, Vec3, Vector
from archimedes.vehicles.parts.actuators import check_body, check_flat, check_part
from archimedes.vehicles.parts.effectors import Rotors
from archimedes.vehicles.vehicle_folders import FolderScene, PartConfig, VehicleConfig, World
from archimedes.vehicles.worlds import FlatEarth, FlightState

__all__ = ["GeometricController", "Multirotor", "ring"]


def ring(count: int, arm: float, **rotor: Any) -> Rotors:
    """Return rotors evenly around a circle, which spin alternately.

    Parameters
    ----------
    count : int
        Number of rotors.
    arm : float
        Radius of the circle in m.
    **rotor
        Fields of `Rotors` that all have in common.

    Examples
    --------
    >>> from archimedes.vehicles import ring
    >>> ring(4, 0.2).positions.round(3)[0]
    array([0.141, 0.141, 0.   ])
    """
    if count < 4 or count % 2:
        raise ValueError(f"ring: count={count} must be even and at least 4 to turn both ways")
    check_positive(arm, "ring: arm", "m")
    angle = 2.0 * np.pi * (np.arange(count) + 0.5) / count
    positions = np.stack([arm * cos(angle), arm * sin(angle), 0.0 * angle], axis=1)
    return Rotors(positions, np.where(np.arange(count) % 2 == 0, 1.0, -1.0), **rotor)


@struct
class Multirotor(FolderScene):
    """A multirotor: a rigid frame with rotors, drag, and optionally feet.

    Parameters
    ----------
    mass : float, optional
        Mass in kg.
    inertia : array (3, 3), optional
        Inertia in kg m^2 about the centre of mass, in body axes.
    rotors : Rotors, optional
        The rotors.
    drag : array (3,), optional
        Drag of the frame in N per squared speed along each body axis.
    ground : GroundContact, optional
        Feet, if there are any.
    world : FlatEarth or RotatingEarth, optional
        World with gravity, air and wind.

    Examples
    --------
    >>> from archimedes.vehicles import Multirotor, ring
    >>> drone = Multirotor(mass=1.2, rotors=ring(4, 0.23))
    >>> float(drone.mass)
    1.2
    """

    mass: Scalar = field(units="kg", default=1.2)
    inertia: Matrix = field(units="kg m^2", default_factory=lambda: np.diag([0.012, 0.012, 0.022]))
    rotors: Any = field(default_factory=lambda: ring(4, 0.23, inertia=6e-5))
    drag: Vec3 = field(units="N s^2/m^2", default_factory=lambda: np.array([0.02, 0.02, 0.04]))
    ground: Any = None
    world: Any = field(default_factory=FlatEarth)

    @struct
    class State:
        """Motion in the world, and the speeds of the rotors.

        Parameters
        ----------
        motion : State
            Motion in the world.
        speeds : array (n,)
            Speeds of the rotors in rad/s.
        """

        motion: Any = field()
        speeds: Any = field(units="rad/s")

    @struct
    class Input:
        """Commanded speeds of the rotors.

        Parameters
        ----------
        speeds : array (n,)
            Commanded speeds of the rotors in rad/s.
        """

        speeds: Any = field(units="rad/s")

    @struct
    class Output:
        """Flight state, and the thrust of all rotors along -z.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        thrust : float
            Thrust of all rotors along -z in N.
        """

        flight: FlightState = field()
        thrust: Any = field(units="N")

    def __post_init__(self) -> None:
        """Check the parts, and mass and inertia where they are known."""
        check_body(self)
        check_struct(self, not_negative="drag")
        check_part(self.rotors, "Multirotor.rotors", ("rates", "wrench", "distribute"))
        if self.ground is not None:
            check_flat(self.world, "Multirotor.ground")

    @property
    def stops(self) -> tuple[Any, Any]:
        """Return the least and the largest `Input`: rotors turn one way, at `max_speed` at most."""
        return Multirotor.Input(0.0), Multirotor.Input(self.rotors.max_speed)

    def state(self, flight: FlightState, speeds: Vector | None = None) -> Any:
        """Return the state for a position, a velocity and an attitude.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        speeds : array (n,), optional
            Speeds of the rotors in rad/s. By default those of hover.
        """
        speeds = self.hover_speeds() if speeds is None else as_array(speeds)
        return Multirotor.State(self.world.state(flight), speeds)

    def hover_speeds(self, gravity: float = 9.80665) -> Any:
        """Return the speeds (n,) in rad/s that carry the weight in air of the rotors' density.

        Parameters
        ----------
        gravity : float, optional
            Gravitational acceleration in m/s^2.
        """
        return self.rotors.distribute(self.mass * gravity, np.zeros(3))

    def forces(self, t: Scalar, x: Tree, u: Tree) -> tuple[Any, Any]:
        """Return force and moment on the vehicle.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.

        Returns
        -------
        (array (3,), array (3,))
            Force in N without gravity, and moment in N m about the centre of mass, in body axes.
        """
        around = self.world.surroundings(t, x.motion)
        v, rates = around.v_air_B, self.rotors.rates(x.speeds, u.speeds)
        F_B, M_B = self.rotors.wrench(x.speeds, rates, v, around.w_air_B, around.air.density)
        F_B = F_B - as_array(self.drag) * np.abs(v) * v
        if self.ground is not None:
            v_B = x.motion.v_B
            push, turn = self.ground.wrench(around.alt, x.motion.att, v_B, x.motion.w_B)
            F_B, M_B = F_B + push, M_B + turn
        return F_B, M_B

    def dynamics(self, t: Scalar, x: Tree, u: Tree) -> Any:
        """Return the derivative of the state.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.
        """
        F_B, M_B = self.forces(t, x, u)
        motion = self.world.rates(t, x.motion, F_B, M_B, self.mass, as_array(self.inertia))
        return Multirotor.State(motion, self.rotors.rates(x.speeds, u.speeds))

    def outputs(self, t: Scalar, x: Tree, u: Tree | None = None) -> Any:
        """Return flight state and thrust.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input, optional
            Inputs of the vehicle.
        """
        thrust = self.rotors.allocation()[0] @ x.speeds**2
        return Multirotor.Output(self.world.flight(t, x.motion), thrust)


@struct
class GeometricController:
    """A controller of thrust and moment that follows a path, without angles that could lock.

    Source: Lee, Leok and McClamroch, Geometric Tracking Control of a Quadrotor UAV on SE(3), IEEE
    CDC 2010, equations 10 to 16, without the feedforward of the angular acceleration. Gains are per
    mass and inertia.

    Parameters
    ----------
    position : float, optional
        Gain of the position in 1/s^2.
    velocity : float, optional
        Gain of the velocity in 1/s.
    attitude : float, optional
        Gain of the attitude in 1/s^2.
    rate : float, optional
        Gain of the angular velocity in 1/s.
    gravity : float, optional
        Gravitational acceleration in m/s^2.
    least_thrust : float, optional
        Smallest thrust in fractions of the weight, so that there is thrust to turn with even where
        none is wanted.

    Examples
    --------
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
    least_thrust: Any = field(units="", default=0.2)

    def wrench(
        self, vehicle: Multirotor, x: Tree, p: Vec3, v: Vec3, a: Vec3, yaw: Scalar
    ) -> tuple[Any, Any]:
        """Return thrust in N and moment (3,) in N m that follow a desired motion.

        Parameters
        ----------
        vehicle : Multirotor
            The vehicle.
        x : RigidBody.State
            Motion of the vehicle on a `FlatEarth`.
        p : array (3,)
            Desired position in m, in NED axes.
        v : array (3,)
            Desired velocity in m/s, in NED axes.
        a : array (3,)
            Desired acceleration in m/s^2, in NED axes.
        yaw : float
            Desired yaw angle in rad.
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
        self,
        vehicle: Multirotor,
        x: Tree,
        p: Vec3,
        v: Vec3,
        a: Vec3,
        yaw: Scalar,
        working: Vector | None = None,
    ) -> Any:
        """Return the inputs of the vehicle that follow a desired motion.

        Parameters
        ----------
        vehicle : Multirotor
            The vehicle.
        x : State
            State of the vehicle.
        p : array (3,)
            Desired position in m, in NED axes.
        v : array (3,)
            Desired velocity in m/s, in NED axes.
        a : array (3,)
            Desired acceleration in m/s^2, in NED axes.
        yaw : float
            Desired yaw angle in rad.
        working : array (n,), optional
            1 for rotors that work, 0 for rotors that failed. All work by default.
        """
        thrust, moment = self.wrench(vehicle, x.motion, p, v, a, yaw)
        return Multirotor.Input(vehicle.rotors.distribute(thrust, moment, working))


class RotorsConfig(PartConfig):
    """Rotors around a circle."""

    makes = staticmethod(ring)
    arm: float = field(units="m")
    thrust: float = field(units="N s^2")
    torque: float = field(units="N m s^2")
    inertia: float = field(units="kg m^2")
    time_constant: float = field(units="s")
    max_speed: float = field(units="rad/s")
    inflow: float = field(units="N s^2/m")
    drag: float = field(units="N s^2/m")
    density: float = field(units="kg/m^3")


class MultirotorConfig(VehicleConfig, type="multirotor"):
    """A parameter file of type multirotor."""

    makes = Multirotor
    rotors: RotorsConfig
    world: World
