"""Aerodynamic forces and moments of the F-16, and its afterburning turbofan.

Legend: CX CY CZ are force coefficients along body axes, CL CM CN moment coefficients about the
reference point, all with wing area, span b and mean chord c; surfaces are positive where they give
a negative moment (elevator trailing edge down pitches down). Power is in percent, 0 idle, 50
military, 100 full afterburner; throttle from 0 to 1. Thrust depends on power, altitude and Mach
number, and power follows the throttle with a lag.
Source: Stevens, Lewis and Johnson, Aircraft Control and Simulation, 3rd edition, section 3.5 and
appendices A.4 and A.5, with the tables of `f16_tables.toml`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import check_struct
from archimedes.environment.tables import read_tables
from archimedes.function import interpolant
from archimedes.tree import field, struct
from archimedes.typing import Scalar
from archimedes.vehicles.worlds import Surroundings

__all__ = ["F16Aerodynamics", "F16Engine"]

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
    reference: float = 0.35

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
        side, size = np.where(beta < 0.0, -1.0, 1.0), np.abs(beta)

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
        c_F, c_M = self.coefficients(around, elevator, aileron, rudder, xcg)
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
        return np.where(power < 50.0, below, above)
