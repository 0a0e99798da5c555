"""The F-16: six degrees of freedom, tables for air and engine, in any world.

Source of masses and geometry: Stevens, Lewis and Johnson, Aircraft Control and Simulation, 3rd
edition, appendix A, and NASA/TM-2015-218675, check case 11. Left out: leading-edge flaps, speed
brake, the supersonic range, structural modes, fuel burn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_positive
from archimedes.spatial.components import cross
from archimedes.spatial.validation import check_inertia
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Tree
from archimedes.vehicles.f16.aerodynamics import F16Aerodynamics, F16Engine
from archimedes.vehicles.parts.actuators import WORLD, check_part
from archimedes.vehicles.vehicle_folders import FolderScene, PartConfig, VehicleConfig, World
from archimedes.vehicles.worlds import FlightState, RotatingEarth

__all__ = ["F16"]

SLUG, SLUG_FT2 = 14.593902937206364, 1.3558179483314004
#: How far elevator, aileron and rudder go, in rad (section 3.5: 25, 21.5 and 30 degrees).
SURFACES = tuple(np.deg2rad([25.0, 21.5, 30.0]).tolist())


def _inertia() -> np.ndarray:
    xx, yy, zz, xz = 9496.0, 55814.0, 63100.0, 982.0
    return SLUG_FT2 * np.array([[xx, 0.0, -xz], [0.0, yy, 0.0], [-xz, 0.0, zz]])


@struct
class F16(FolderScene):
    """An F-16 whose parts can be exchanged: ``F16(engine=MyEngine(), world=FlatEarth())``.

    Parameters
    ----------
    mass : float, optional
        Mass in kg.
    inertia : array (3, 3), optional
        Inertia in kg m^2 about the centre of mass, in body axes.
    xcg : float, optional
        Position of the centre of mass in fractions of the chord. 0.35 is the reference point; in
        front of it (smaller values) the aircraft is more stable.
    aero : F16Aerodynamics, optional
        Aerodynamics: an object with ``wrench(around, elevator, aileron, rudder, xcg)``.
    engine : F16Engine, optional
        Engine: an object with ``commanded(throttle)``, ``power_rate(power, throttle)``,
        ``thrust(power, around)``, ``angular_momentum`` and ``lag``.
    world : FlatEarth or RotatingEarth, optional
        World with gravity, air and wind.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16, FlightState
    >>> plane = F16()
    >>> v_NED, rpy = np.array([170.0, 0.0, 0.0]), np.zeros(3)
    >>> level = FlightState(0.6, -1.3, 3000.0, v_NED, rpy, np.zeros(3))
    >>> x = plane.state(level, power=15.0)
    >>> round(float(plane.outputs(0.0, x, F16.Input(throttle=0.2)).mach), 3)
    0.517
    """

    mass: Scalar = field(units="kg", default=637.1595 * SLUG)
    inertia: Matrix = field(units="kg m^2", default_factory=_inertia)
    xcg: Scalar = 0.25
    aero: Any = field(default_factory=F16Aerodynamics)
    engine: Any = field(default_factory=F16Engine)
    world: Any = field(default_factory=RotatingEarth)

    @struct
    class State:
        """Motion in the world, and the engine's power in percent.

        Parameters
        ----------
        motion : State
            Motion in the world.
        power : float
            Power of the engine in percent.
        """

        motion: Any = field()
        power: Any = field(units="%")

    @struct
    class Input:
        """Throttle from 0 to 1 and the angles of the surfaces.

        Parameters
        ----------
        throttle : float
            Throttle from 0 to 1.
        elevator : float, optional
            Elevator angle in rad.
        aileron : float, optional
            Aileron angle in rad.
        rudder : float, optional
            Rudder angle in rad.
        """

        throttle: Any = field()
        elevator: Any = field(units="rad", default=0.0)
        aileron: Any = field(units="rad", default=0.0)
        rudder: Any = field(units="rad", default=0.0)

    @struct
    class Output:
        """What a pilot and an engineer look at.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        airspeed : float
            Airspeed in m/s.
        mach : float
            Mach number.
        alpha : float
            Angle of attack in rad.
        beta : float
            Angle of sideslip in rad.
        load_factor : float
            Load factor along -z.
        thrust : float
            Thrust in N.
        """

        flight: FlightState = field()
        airspeed: Any = field(units="m/s")
        mach: Any = field()
        alpha: Any = field(units="rad")
        beta: Any = field(units="rad")
        load_factor: Any = field()
        thrust: Any = field(units="N")

    def __post_init__(self) -> None:
        """Check the parts, and mass and inertia where they are known."""
        check_positive(self.mass, "F16.mass", "kg")
        check_inertia(self.inertia, "F16.inertia")
        check_part(self.aero, "F16.aero", ("wrench",))
        check_part(self.engine, "F16.engine", ("commanded", "thrust", "angular_momentum", "lag"))
        check_part(self.world, "F16.world", WORLD)

    @property
    def stops(self) -> tuple[Any, Any]:
        """Return the least and the largest `Input`: what throttle and surfaces reach."""
        return F16.Input(0.0, *(-reach for reach in SURFACES)), F16.Input(1.0, *SURFACES)

    def state(self, flight: FlightState, power: Scalar = 0.0) -> Any:
        """Return the state for a position, a velocity and an attitude.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        power : float, optional
            Power of the engine in percent, 0 by default.
        """
        return F16.State(self.world.state(flight), as_array(power, "power"))

    def power(self, x: Tree, u: Tree) -> Any:
        """Return the power that makes thrust: the lagged one, or what the throttle asks for.

        Parameters
        ----------
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.
        """
        return x.power if self.engine.lag else self.engine.commanded(u.throttle)

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
        F_B, M_B = self.aero.wrench(around, u.elevator, u.aileron, u.rudder, self.xcg)
        thrust = as_array(self.engine.thrust(self.power(x, u), around))  # a number will do
        along = np.array([1.0, 0.0, 0.0])
        spin = self.engine.angular_momentum * along
        return F_B + thrust[..., None] * along, M_B - cross(x.motion.w_B, spin + 0.0 * M_B)

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
        rate = self.engine.power_rate(x.power, u.throttle) if self.engine.lag else 0.0 * x.power
        motion = self.world.rates(t, x.motion, F_B, M_B, self.mass, as_array(self.inertia))
        return F16.State(motion, rate)

    def outputs(self, t: Scalar, x: Tree, u: Tree) -> Any:
        """Return flight state, air data, load factor (along -z) and thrust.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.
        """
        around = self.world.surroundings(t, x.motion)
        F_B, _ = self.forces(t, x, u)
        alpha, beta = around.angles
        return F16.Output(
            flight=self.world.flight(t, x.motion),
            airspeed=around.airspeed,
            mach=around.mach,
            alpha=alpha,
            beta=beta,
            load_factor=-F_B[..., 2] / (self.mass * 9.80665),
            thrust=self.engine.thrust(self.power(x, u), around),
        )


class F16AerodynamicsConfig(PartConfig):
    """Sizes that belong to the tables."""

    makes = F16Aerodynamics


class F16EngineConfig(PartConfig):
    """The engine in a parameter file."""

    makes = F16Engine


class F16Config(VehicleConfig, type="f16"):
    """A parameter file of type f16."""

    makes = F16
    aero: F16AerodynamicsConfig
    engine: F16EngineConfig
    world: World
