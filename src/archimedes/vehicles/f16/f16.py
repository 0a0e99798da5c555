"""The F-16: six degrees of freedom, tables for air and engine, in any world.

Legend: CX CY CZ are force coefficients along body axes, CL CM CN moment coefficients about the
reference point, all with wing area, span b and mean chord c; surfaces are positive where they give
a negative moment (elevator trailing edge down pitches down). Power is in percent, 0 idle, 50
military, 100 full afterburner; throttle from 0 to 1. Thrust depends on power, altitude and Mach
number, and power follows the throttle with a lag. Left out: leading-edge flaps, speed brake, the
supersonic range, structural modes, fuel burn.
Source: Stevens, Lewis and Johnson, Aircraft Control and Simulation, 3rd edition, section 3.5 and
appendices A.4 and A.5, with the tables of `f16_tables.toml`; NASA/TM-2015-218675, check case 11.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.analysis.units.quantity import declare
from archimedes.checks import as_array, check_struct
from archimedes.environment.tables import read_tables
from archimedes.function import interpolant
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Tree
from archimedes.vehicles.parts.actuators import check_body, check_part
from archimedes.vehicles.vehicle_folders import FolderScene, PartConfig, VehicleConfig, World
from archimedes.vehicles.worlds import FlightState, RotatingEarth, Surroundings

__all__ = ["F16", "F16Aerodynamics", "F16Engine"]


#: Wind-tunnel data: coefficients over angles, thrust over altitude and Mach number.
TABLES = T = read_tables("archimedes.vehicles.f16", "f16_tables.toml")


def _of_alpha(values: np.ndarray) -> Any:
    return interpolant(T.ALPHA, values, outside="extrapolate")


def _of(first: np.ndarray, values: np.ndarray) -> Any:
    return interpolant([first, T.ALPHA], values, outside="extrapolate")


CX, CM = _of(T.ELEVATOR, T.CX), _of(T.ELEVATOR, T.CM)
CL, CN = _of(T.SIDESLIP, T.CL), _of(T.SIDESLIP, T.CN)
CZ = _of_alpha(T.CZ)
CL_AILERON, CL_RUDDER = _of(T.BETA, T.CL_AILERON), _of(T.BETA, T.CL_RUDDER)
CN_AILERON, CN_RUDDER = _of(T.BETA, T.CN_AILERON), _of(T.BETA, T.CN_RUDDER)
CX_Q, CZ_Q, CM_Q = _of_alpha(T.CX_Q), _of_alpha(T.CZ_Q), _of_alpha(T.CM_Q)
CY_R, CL_R, CN_R = _of_alpha(T.CY_R), _of_alpha(T.CL_R), _of_alpha(T.CN_R)
CY_P, CL_P, CN_P = _of_alpha(T.CY_P), _of_alpha(T.CL_P), _of_alpha(T.CN_P)


@struct
class F16Aerodynamics:
    """Tables of the F-16 below Mach 1: -10 to 45 degrees of attack, 30 degrees of sideslip.

    Beyond the tables their outermost slopes are continued.

    Parameters
    ----------
    area : float, optional
        Reference area in m^2.
    span : float, optional
        Wing span in m.
    chord : float, optional
        Mean aerodynamic chord in m.
    reference : float, optional
        Position of the moment reference point in fractions of the chord.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16Aerodynamics, FlatEarth, FlightState
    >>> level = FlightState(0, 0, 0.0, np.array([100.0, 0, 0]), np.array([0, 0.1, 0]), np.zeros(3))
    >>> world = FlatEarth()
    >>> around = world.surroundings(0.0, world.state(level))
    >>> force, moment = F16Aerodynamics().coefficients(around, 0.0, 0.0, 0.0, xcg=0.3)
    >>> force.round(3)
    array([ 0.001,  0.   , -0.462])
    """

    area: float = field(units="m^2", default=27.870912)
    span: float = field(units="m", default=9.144)
    chord: float = field(units="m", default=3.450336)
    reference: float = field(units="", default=0.35)

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_struct(self, positive="area span chord")

    def coefficients(
        self, around: Surroundings, elevator: Scalar, aileron: Scalar, rudder: Scalar, xcg: Scalar
    ) -> tuple[Any, Any]:
        """Return force and moment coefficients (3,) about the centre of mass.

        Parameters
        ----------
        around : Surroundings
            Air, and motion relative to it.
        elevator : float
            Elevator angle in rad.
        aileron : float
            Aileron angle in rad.
        rudder : float
            Rudder angle in rad.
        xcg : float
            Position of the centre of mass in fractions of the chord. 0.35 is the reference point;
            in front of it (smaller values) the aircraft is more stable.
        """
        alpha, beta = (np.rad2deg(angle) for angle in around.angles)
        de, da, dr = (np.rad2deg(angle) for angle in (elevator, aileron, rudder))
        da, dr = da / 20.0, dr / 30.0
        # A vehicle at rest has no coefficients; any speed does, since pressure makes them zero.
        speed = np.maximum(around.airspeed, 1e-3)
        p, q, r = (around.w_air_B[..., k] / (2.0 * speed) for k in range(3))
        p, q, r = self.span * p, self.chord * q, self.span * r
        # Not np.abs: what is odd in beta has a derivative at zero too.
        side = np.where(beta < 0.0, -1.0, 1.0)
        size = side * beta

        cx = CX(de, alpha) + q * CX_Q(alpha)
        cy = -0.02 * beta + 0.021 * da + 0.086 * dr + r * CY_R(alpha) + p * CY_P(alpha)
        cz = CZ(alpha) * (1.0 - np.deg2rad(beta) ** 2) - 0.19 * de / 25.0 + q * CZ_Q(alpha)
        arm = self.reference - xcg
        cl = side * CL(size, alpha) + da * CL_AILERON(beta, alpha) + dr * CL_RUDDER(beta, alpha)
        cl = cl + r * CL_R(alpha) + p * CL_P(alpha)
        cm = CM(de, alpha) + q * CM_Q(alpha) + cz * arm
        cn = side * CN(size, alpha) + da * CN_AILERON(beta, alpha) + dr * CN_RUDDER(beta, alpha)
        cn = cn + r * CN_R(alpha) + p * CN_P(alpha) - cy * arm * self.chord / self.span
        return np.stack([cx, cy, cz], axis=-1), np.stack([cl, cm, cn], axis=-1)

    def wrench(
        self, around: Surroundings, elevator: Scalar, aileron: Scalar, rudder: Scalar, xcg: Scalar
    ) -> tuple[Any, Any]:
        """Return force in N and moment about the centre of mass in N m, in body axes.

        Parameters
        ----------
        around : Surroundings
            Air, and motion relative to it.
        elevator : float
            Elevator angle in rad.
        aileron : float
            Aileron angle in rad.
        rudder : float
            Rudder angle in rad.
        xcg : float
            Position of the centre of mass in fractions of the chord. 0.35 is the reference point;
            in front of it (smaller values) the aircraft is more stable.
        """
        coefficients = self.coefficients(around, elevator, aileron, rudder, xcg)
        c_F, c_M = (declare(c, "") for c in coefficients)
        push = (around.dynamic_pressure * self.area)[..., None]
        return push * c_F, push * c_M * np.array([self.span, self.chord, self.span])


FOOT, POUND = 0.3048, 4.4482216152605


def _of_mach_and_altitude(values: np.ndarray) -> Any:
    return interpolant([T.MACH, T.ALTITUDE * FOOT], values * POUND, outside="extrapolate")


IDLE, MILITARY, MAXIMUM = map(_of_mach_and_altitude, (T.IDLE, T.MILITARY, T.MAXIMUM))


@struct
class F16Engine:
    """A jet engine with thrust along the x axis of the body, through the centre of mass.

    Parameters
    ----------
    angular_momentum : float, optional
        Angular momentum of the rotor about the x axis in kg m^2/s: 160 slug ft^2/s in the source,
        zero in NASA's check cases.
    lag : bool, optional
        Whether the power lags behind the throttle. True by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16Engine
    >>> engine = F16Engine()
    >>> round(float(engine.commanded(0.5)), 2)
    32.47
    """

    angular_momentum: float = field(units="kg m^2/s", default=216.9309)
    lag: bool = field(static=True, default=True)

    def commanded(self, throttle: Scalar) -> Any:
        """Return the power in percent that a throttle setting asks for.

        Parameters
        ----------
        throttle : float
            Throttle from 0 to 1.
        """
        return np.where(throttle <= 0.77, 64.94 * throttle, 217.38 * throttle - 117.38)

    def power_rate(self, power: Scalar, throttle: Scalar) -> Any:
        """Return the rate of the power in percent per second: a lag that depends on the difference.

        Parameters
        ----------
        power : float
            Power of the engine in percent.
        throttle : float
            Throttle from 0 to 1.
        """
        command = self.commanded(throttle)
        high = command >= 50.0
        burning = power >= 50.0
        target = np.where(high, np.where(burning, command, 60.0), np.where(burning, 40.0, command))
        gap = target - power
        slow = np.clip(1.9 - 0.036 * gap, 0.1, 1.0)
        return np.where(burning, 5.0, slow) * gap

    def thrust(self, power: Scalar, around: Surroundings) -> Any:
        """Return the thrust in N.

        Parameters
        ----------
        power : float
            Power of the engine in percent.
        around : Surroundings
            Air, and motion relative to it.
        """
        mach, alt = around.mach, around.alt
        military = MILITARY(mach, alt)
        below = IDLE(mach, alt) + (military - IDLE(mach, alt)) * power / 50.0
        above = military + (MAXIMUM(mach, alt) - military) * (power - 50.0) / 50.0
        return declare(np.where(power < 50.0, below, above), "N")


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
    xcg: Scalar = field(units="", default=0.25)
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

        throttle: Any = field(units="")
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
        mach: Any = field(units="")
        alpha: Any = field(units="rad")
        beta: Any = field(units="rad")
        load_factor: Any = field(units="")
        thrust: Any = field(units="N")

    def __post_init__(self) -> None:
        """Check the parts, and mass and inertia where they are known."""
        check_body(self)
        check_part(self.aero, "F16.aero", ("wrench",))
        check_part(self.engine, "F16.engine", ("commanded", "thrust", "angular_momentum", "lag"))

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
