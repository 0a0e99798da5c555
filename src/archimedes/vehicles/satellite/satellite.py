"""A satellite: orbit and attitude, wheels, coils and thrusters.

Legend: I are inertial axes with their origin at the planet's centre; pos and vel are in them, att
is the attitude of the body in them, h the momenta of the wheels relative to the body. Left out:
flexible parts, slosh, the pressure of light, the loss of mass; drag acts along the velocity through
air that turns with the planet, whose density is that at the height over the WGS84 ellipsoid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import environment as env
from archimedes.checks import as_array, check_positive, check_struct
from archimedes.spatial.components import cross, matvec
from archimedes.spatial.rigid_body import attitude_rate
from archimedes.spatial.validation import check_inertia
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Tree
from archimedes.vehicles.parts.actuators import check_part
from archimedes.vehicles.parts.effectors import Magnetorquers, ReactionWheels, Thrusters
from archimedes.vehicles.vehicle_folders import FolderScene, PartConfig, VehicleConfig

__all__ = ["Satellite"]


@struct
class Satellite(FolderScene):
    """A rigid satellite with reaction wheels, magnetorquers and thrusters.

    Parameters
    ----------
    mass : float
        Mass in kg.
    inertia : array (3, 3)
        Inertia in kg m^2 about the centre of mass, in body axes.
    wheels : ReactionWheels, optional
        Reaction wheels.
    coils : Magnetorquers, optional
        Magnetorquers.
    thrusters : Thrusters, optional
        Thrusters, if there are any.
    gravity : callable, optional
        Gravity model of `archimedes.environment`, in Earth-fixed axes.
    gravity_gradient : bool, optional
        Add the gravity-gradient moment of a round field. True by default.
    magnetic_field : callable, optional
        Model of the magnetic field, in Earth-fixed axes.
    atmosphere : callable, optional
        Atmosphere model, for drag. None by default.
    area : float, optional
        Reference area in m^2.
    drag : float, optional
        Drag coefficient.
    angle : float, optional
        Rotation angle of the Earth in rad at t = 0.
    omega : float, optional
        Angular velocity of the Earth in rad/s.
    baumgarte : float, optional
        Gain in 1/s with which the norm of the quaternion is driven to one. 0 by default, since
        solvers keep the norm; a gain far above the rates of the body makes steps short.

    Examples
    --------
    >>> from archimedes.vehicles import load
    >>> satellite = load("satellite")
    >>> satellite.idle().dipole
    array([0., 0., 0.])
    """

    mass: Scalar = field(units="kg")
    inertia: Matrix = field(units="kg m^2")
    wheels: Any = field(default_factory=ReactionWheels)
    coils: Any = field(default_factory=Magnetorquers)
    thrusters: Any = None
    gravity: Any = field(default_factory=env.PointMassGravity)
    gravity_gradient: bool = field(static=True, default=True)
    magnetic_field: Any = field(default_factory=env.MagneticDipole)
    atmosphere: Any = None
    area: Scalar = field(units="m^2", default=0.0)
    drag: Scalar = field(units="", default=2.2)
    angle: Scalar = field(units="rad", default=0.0)
    omega: Scalar = field(units="rad/s", default=env.WGS84.omega)
    baumgarte: Any = field(units="1/s", default=0.0)

    @struct
    class State:
        """Orbit and attitude in inertial axes, wheel momenta.

        Parameters
        ----------
        pos : array (3,)
            Position in m, in inertial axes.
        vel : array (3,)
            Velocity in m/s, in inertial axes.
        att : attitude
            Attitude in inertial axes.
        w_B : array (3,)
            Angular velocity in rad/s relative to inertial axes, in body axes.
        h : array (n,)
            Angular momenta of the wheels in N m s.
        """

        pos: Any = field(units="m")
        vel: Any = field(units="m/s")
        att: Any = field()
        w_B: Any = field(units="rad/s")
        h: Any = field(units="N m s")

    @struct
    class Input:
        """Torques of the wheels' motors, dipoles of the coils, throttles of the thrusters.

        Parameters
        ----------
        torque : array (n,)
            Torques of the motors of the wheels in N m.
        dipole : array (n,), optional
            Dipoles of the coils in A m^2.
        throttle : array (k,), optional
            Throttles of the thrusters, 0 to 1.
        """

        torque: Any = field(units="N m")
        dipole: Any = field(units="A m^2", default_factory=lambda: np.zeros(3))
        throttle: Any = field(units="", default=None)

    @struct
    class Output:
        """Magnetic field in body axes, angular momentum in inertial axes, geodetic altitude.

        Parameters
        ----------
        B_B : array (3,)
            Magnetic field in T, in body axes.
        momentum : array (3,)
            Angular momentum in N m s, in inertial axes.
        altitude : float
            Geodetic altitude in m.
        """

        B_B: Any = field(units="T")
        momentum: Any = field(units="N m s")
        altitude: Any = field(units="m")

    def __post_init__(self) -> None:
        """Check the parts, and mass and inertia where they are known."""
        check_positive(self.mass, "Satellite.mass", "kg")
        check_inertia(self.inertia, "Satellite.inertia")
        check_struct(self, not_negative="area drag")
        check_part(self.wheels, "Satellite.wheels", ("axes", "rates"))
        check_part(self.coils, "Satellite.coils", ("axes", "moment"))

    def idle(self) -> Any:
        """Return the input that does nothing."""
        wheels, coils = (np.zeros(len(part.axes)) for part in (self.wheels, self.coils))
        throttle = None if self.thrusters is None else np.zeros(len(self.thrusters.directions))
        return Satellite.Input(wheels, coils, throttle)

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
        earth = env.earth_attitude(self.angle + self.omega * t)
        J_B = as_array(self.inertia)
        F_B, M_B = self._push(u)
        acceleration = earth.rotate(self.gravity(earth.rotate(x.pos)), inverse=True)
        acceleration = acceleration + x.att.rotate(F_B, inverse=True) / self.mass
        acceleration = acceleration + self._drag(x)
        if self.gravity_gradient:
            mu = getattr(self.gravity, "mu", env.WGS84.mu)
            M_B = M_B + env.gravity_gradient_torque(mu, x.att.rotate(x.pos), J_B)
        M_B = M_B + self.coils.moment(u.dipole, self._field(earth, x))
        dw_B, dh = self.wheels.rates(J_B, x.w_B, x.h, M_B, u.torque)
        turning = attitude_rate(x.att, x.att, x.w_B, self.baumgarte)
        return Satellite.State(x.vel, acceleration, turning, dw_B, dh)

    def outputs(self, t: Scalar, x: Tree, u: Tree | None = None) -> Any:
        """Return field, momentum and altitude.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input, optional
            Inputs of the vehicle.
        """
        earth = env.earth_attitude(self.angle + self.omega * t)
        turning = matvec(as_array(self.inertia), x.w_B) + x.h @ as_array(self.wheels.axes)
        momentum = x.att.rotate(turning, inverse=True)
        return Satellite.Output(self._field(earth, x), momentum, _altitude(x))

    def _field(self, earth: Any, x: Tree) -> Any:
        return x.att.rotate(earth.rotate(self.magnetic_field(earth.rotate(x.pos)), inverse=True))

    def _push(self, u: Tree) -> tuple[Any, Any]:
        if self.thrusters is None or u.throttle is None:
            return np.zeros(3), np.zeros(3)
        F_B, M_B, _ = self.thrusters.wrench(u.throttle)
        return F_B, M_B

    def _drag(self, x: Tree) -> Any:
        if self.atmosphere is None:
            return np.zeros(3)
        v = x.vel - cross(self.omega * np.array([0.0, 0.0, 1.0]), x.pos)
        rho = self.atmosphere(_altitude(x)).density
        return -0.5 * rho * self.area * self.drag / self.mass * np.sqrt(np.sum(v * v)) * v


def _altitude(x: Tree) -> Any:
    """Return the height over the ellipsoid, which turning about its axis does not change."""
    return env.ecef_to_geodetic(x.pos)[2]


class WheelsConfig(PartConfig):
    """Reaction wheels in a parameter file."""

    makes = ReactionWheels


class CoilsConfig(PartConfig):
    """Magnetorquers in a parameter file."""

    makes = Magnetorquers


class ThrustersConfig(PartConfig):
    """Thrusters fixed to the body."""

    makes = Thrusters


class SatelliteConfig(VehicleConfig, type="satellite"):
    """A parameter file of type satellite."""

    makes = Satellite
    wheels: WheelsConfig
    coils: CoilsConfig
    thrusters: ThrustersConfig | None
