"""A car on four sprung wheels, its attitude in roll, pitch and yaw.

Axes: body x forward, y right, z down, origin at the centre of mass. Each wheel hangs on a spring
and a damper and carries a tyre whose side force follows the magic formula; drive and brake share
what the friction circle leaves. Left out: wheel inertia and spin, camber, steering compliance,
aerodynamic lift. Source: Pacejka, Tire and Vehicle Dynamics, 3rd edition, chapters 1 and 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_not_negative, check_struct
from archimedes.spatial import EulerAngles
from archimedes.spatial.components import cross
from archimedes.tree import field, replace, struct
from archimedes.typing import Matrix, Scalar, Tree
from archimedes.vehicles.parts.actuators import check_body, check_flat, check_part
from archimedes.vehicles.vehicle_folders import FolderScene, PartConfig, VehicleConfig
from archimedes.vehicles.worlds import FlatEarth, FlightState

__all__ = ["Car", "Tyre"]


@struct
class Tyre:
    """Lateral force of a tyre: ``D sin(C atan(B alpha))`` with D = friction times load.

    Small slip angles give a cornering stiffness of ``B C D`` per rad.

    Parameters
    ----------
    friction : float, optional
        Coefficient of friction.
    stiffness : float, optional
        Stiffness factor B.
    shape : float, optional
        Shape factor C.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import Tyre
    >>> Tyre().friction
    1.0
    """

    friction: Scalar = field(units="", default=1.0)
    stiffness: Scalar = field(units="", default=10.0)
    shape: Scalar = field(units="", default=1.4)

    def __post_init__(self) -> None:
        """Check the coefficients where they are known."""
        check_struct(self, not_negative="friction stiffness shape")

    def side_force(self, slip: Scalar, load: Scalar) -> Any:
        """Return the force in N to the right.

        Parameters
        ----------
        slip : float
            Slip angle in rad, positive if the wheel slides to the left.
        load : float
            Load of the wheel in N.
        """
        return self.friction * load * np.sin(self.shape * np.arctan(self.stiffness * slip))


@struct
class Car(FolderScene):
    """A car with four wheels: front left, front right, rear left, rear right.

    Parameters
    ----------
    mass : float, optional
        Mass in kg.
    inertia : array (3, 3), optional
        Inertia in kg m^2 about the centre of mass, in body axes.
    front : float, optional
        Distance in m of the front axle from the centre of mass.
    rear : float, optional
        Distance in m of the rear axle from the centre of mass.
    track : float, optional
        Distance in m between left and right wheels.
    height : float, optional
        Height in m of the centre of mass above the ground at rest.
    spring : float, optional
        Stiffness in N/m of the spring of each wheel.
    damper : float, optional
        Damping in N s/m of each wheel.
    tyre : Tyre, optional
        The tyres.
    front_drive : float, optional
        Fraction of the drive force that acts at the front axle.
    drag : float, optional
        Drag in N per squared speed.
    world : FlatEarth or RotatingEarth, optional
        World with gravity, air and wind.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import Car
    >>> Car.Input(steer=0.02, drive=300.0)
    Car.Input(steer=0.02, drive=300.0)
    """

    mass: Scalar = field(units="kg", default=1500.0)
    inertia: Matrix = field(
        units="kg m^2", default_factory=lambda: np.diag([500.0, 2200.0, 2400.0])
    )
    front: Scalar = field(units="m", default=1.3)
    rear: Scalar = field(units="m", default=1.4)
    track: Scalar = field(units="m", default=1.55)
    height: Scalar = field(units="m", default=0.55)
    spring: Scalar = field(units="N/m", default=3e4)
    damper: Scalar = field(units="N s/m", default=3e3)
    tyre: Any = field(default_factory=Tyre)
    front_drive: Scalar = field(units="", default=0.0)
    drag: Scalar = field(units="N s^2/m^2", default=0.4)
    world: Any = field(default_factory=FlatEarth)

    @struct
    class Input:
        """Steering angle and drive force.

        Parameters
        ----------
        steer : float, optional
            Steering angle of the front wheels in rad, positive to the right.
        drive : float, optional
            Drive force in N, negative to brake.
        """

        steer: Any = field(units="rad", limits=(-0.5, 0.5), default=0.0)
        drive: Any = field(units="N", limits=(-6e3, 6e3), default=0.0)

    @struct
    class Output:
        """Speed, side acceleration, loads of the wheels.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        speed : float
            Speed in m/s.
        side_acceleration : float
            Lateral acceleration in m/s^2.
        loads : array (4,)
            Loads of the wheels in N: front left, front right, rear left, rear right.
        """

        flight: FlightState = field()
        speed: Any = field(units="m/s")
        side_acceleration: Any = field(units="m/s^2")
        loads: Any = field(units="N")

    def __post_init__(self) -> None:
        """Check mass, inertia and lengths where they are known."""
        check_body(self)
        check_struct(self, "front rear track height spring", "damper drag front_drive")
        check_part(self.tyre, "Car.tyre", ("side_force", "friction"))
        check_flat(self.world, "Car")
        check_not_negative(1.0 - self.front_drive, "1 - Car.front_drive", "parts of the drive")

    def state(self, flight: FlightState) -> Any:
        """Return the state of motion, its attitude as roll, pitch and yaw.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        """
        x = self.world.state(flight)
        return replace(x, att=EulerAngles(as_array(flight.rpy, "rpy"), "xyz"))

    def hubs(self) -> Any:
        """Return where the wheels touch the ground (4, 3), in body axes, at rest."""
        half = 0.5 * self.track
        rows = [[x, y, self.height] for x in (self.front, -self.rear) for y in (-half, half)]
        return np.stack([np.stack([as_array(x) for x in row]) for row in rows])

    def static_loads(self, gravity: float = 9.80665) -> Any:
        """Return the loads (4,) in N at rest on level ground.

        Parameters
        ----------
        gravity : float, optional
            Gravitational acceleration in m/s^2.
        """
        base = self.front + self.rear
        weight = 0.5 * self.mass * gravity
        axles = [weight * self.rear / base, weight * self.front / base]
        return np.stack([as_array(axles[k // 2]) for k in range(4)])

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
        F, M, _ = self._wheels(x, u)
        v = self.world.surroundings(t, x).v_air_B
        return F - self.drag * np.abs(v[0]) * v * np.array([1.0, 0.0, 0.0]), M

    def _wheels(self, x: Tree, u: Tree) -> tuple[Any, Any, Any]:
        hubs = self.hubs()
        R = x.att.as_matrix()  # NED to body
        down = R[:, 2]
        v = x.v_B + cross(x.w_B, hubs)
        sunk = hubs @ down + x.pos[2]  # below the ground, in m
        load = self.static_loads() + self.spring * sunk + self.damper * (v @ down)
        load = np.maximum(load, 0.0)
        yaw = np.arctan2(R[0, 1], R[0, 0])
        angles = np.stack([yaw + u.steer, yaw + u.steer, yaw + 0.0 * u.steer, yaw + 0.0 * u.steer])
        # Level with the ground, in NED axes.
        ahead = R @ np.stack([np.cos(angles), np.sin(angles), 0.0 * angles])
        ahead = ahead.T - (ahead.T @ down)[:, None] * down
        ahead = ahead / np.sqrt(np.sum(ahead * ahead, axis=1))[:, None]
        right = cross(down + 0.0 * ahead, ahead)
        forward, sideways = np.sum(v * ahead, axis=1), np.sum(v * right, axis=1)
        # At a crawl the slip angle is softened: a standing wheel has none.
        slip = -np.arctan2(sideways, np.sqrt(forward**2 + 0.5**2))
        side = self.tyre.side_force(slip, load)
        left = np.sqrt(np.maximum((self.tyre.friction * load) ** 2 - side**2, 1e-12))
        wanted = self._drive(u, load, forward)
        push = np.maximum(np.minimum(wanted, left), -left)
        forces = -load[:, None] * down + push[:, None] * ahead + side[:, None] * right
        return np.sum(forces, axis=0), np.sum(cross(hubs, forces), axis=0), load

    def _drive(self, u: Tree, load: Scalar, forward: Scalar) -> Any:
        parts = [self.front_drive] * 2 + [1.0 - self.front_drive] * 2
        split = np.stack([as_array(0.5 * part) for part in parts])
        share = load / np.maximum(np.sum(load), 1.0)
        # Brakes act against the motion on all wheels, and fade at a standstill.
        braking = np.minimum(u.drive, 0.0) * share * np.tanh(forward / 0.1)
        return np.maximum(u.drive, 0.0) * split + braking

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
        return self.world.rates(t, x, F_B, M_B, self.mass, as_array(self.inertia))

    def outputs(self, t: Scalar, x: Tree, u: Tree) -> Any:
        """Return speed, side acceleration and wheel loads.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.
        """
        F_B, _, load = self._wheels(x, u)
        speed = np.sqrt(np.sum(x.v_B * x.v_B))
        return Car.Output(self.world.flight(t, x), speed, F_B[1] / self.mass, load)


class TyreConfig(PartConfig):
    """A tyre in a parameter file."""

    makes = Tyre


class CarConfig(VehicleConfig, type="car"):
    """A parameter file of type car."""

    makes = Car
    tyre: TyreConfig
