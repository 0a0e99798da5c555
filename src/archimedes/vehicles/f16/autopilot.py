"""An autopilot of the F-16: altitude, course and airspeed held by feedback of the whole state.

Gains are those of a linear-quadratic regulator about a trimmed condition (Stevens, Lewis and
Johnson, Aircraft Control and Simulation, 3rd edition, section 5.3), one for motions up and along,
one for motions to the side, with the integrals of the three errors. Large errors are cut off, so
that climb and bank stay moderate; a turn is flown coordinated, its rates and pitch known from the
bank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import as_array, check_struct
from archimedes.control import StateSpace, lqr
from archimedes.environment import ecef_to_geodetic, ned
from archimedes.function.reproducible import call
from archimedes.portable_numpy import matmul, norm
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Tree
from archimedes.vehicles.f16.f16 import F16
from archimedes.vehicles.parts.actuators import check_part
from archimedes.vehicles.steady_flight import Trim

__all__ = ["CircleGuidance", "F16Autopilot"]

STANDARD_GRAVITY = 9.80665
#: Errors (and their integrals) and controls that count the same, in SI units and rad.
ALONG = {"alt": 10.0, "v_D": 3.0, "speed": 2.0, "pitch": 0.04, "q": 0.1, "power": 20.0}
ALONG_INTEGRALS, ALONG_CONTROLS = (60.0, 20.0), (0.3, 0.05)
ASIDE = {"beta": 0.02, "roll": 0.2, "p": 0.5, "r": 0.2, "course": 0.1}
ASIDE_INTEGRALS, ASIDE_CONTROLS = (2.0,), (0.1, 0.1)

#: Integrals take up errors below this part of the limit: those of steps would have to be undone.
INTEGRATED = 0.1


def regulator(A: Matrix, B: Matrix, x_scale: Any, u_scale: Any) -> Any:
    """Return the gains K of ``u = -K x`` that make errors and controls of the given sizes least."""
    Q, R = (np.diag(1.0 / np.square(scale)) for scale in (x_scale, u_scale))
    return call(lqr, A, B, Q, R)[0]


def _with_integrals(A: Matrix, B: Matrix, rows: list[int]) -> tuple[Any, Any]:
    """Return the system with the integrals of some states added."""
    n, k = len(A), len(rows)
    whole = np.zeros((n + k, n + k))
    whole[:n, :n] = A
    whole[n:, :n] = np.eye(n)[rows]
    return whole, np.concatenate([B, np.zeros((k, B.shape[1]))])


def _check_condition(trimmed: Trim) -> None:
    if not trimmed.success:
        raise ValueError(f"F16Autopilot.design: the condition is not steady: {trimmed.message}")
    v = np.asarray(trimmed.flight.v_NED)
    if not (v[0] > 0.0 and np.abs(v[1:]).max() < 1e-6 * v[0]):
        raise ValueError(
            "F16Autopilot.design: trim level flight to the north, v_NED = (speed, 0, 0); the "
            f"autopilot then flies any course. Got v_NED = {v}"
        )


@struct
class F16Autopilot:
    """An autopilot that holds altitude, course and airspeed; made by `design`.

    Parameters
    ----------
    along : array (2, 8)
        Gains from errors of altitude, sink rate, airspeed, pitch, q, power and two integrals to
        throttle and elevator.
    aside : array (2, 6)
        Gains from errors of sideslip, roll, p, r, course and one integral to aileron and rudder.
    input : F16.Input
        Inputs of the design condition.
    pitch : float
        Pitch angle of the design condition in rad.
    alpha : float
        Angle of attack of the design condition in rad.
    power : float
        Power of the design condition in percent.
    per_load : float
        Angle of attack in rad that carries one more weight.
    max_altitude_error : float, optional
        Largest error of altitude in m that is acted on.
    max_speed_error : float, optional
        Largest error of airspeed in m/s that is acted on.
    max_bank : float, optional
        Largest bank angle in rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16Autopilot
    >>> F16Autopilot.Target(alt=1500.0, course=np.deg2rad(90.0), airspeed=170.0).bank
    0.0
    """

    along: Any = field()
    aside: Any = field()
    input: Any = field()
    pitch: Any = field(units="rad")
    alpha: Any = field(units="rad")
    power: Any = field(units="%")
    per_load: Any = field(units="rad")
    max_altitude_error: Any = field(units="m", default=60.0)
    max_speed_error: Any = field(units="m/s", default=8.0)
    max_bank: Any = field(units="rad", default=0.7)

    @struct
    class Target:
        """What is to be held.

        Parameters
        ----------
        alt : float
            Altitude in m.
        course : float
            Course in rad.
        airspeed : float
            Airspeed in m/s.
        bank : float, optional
            Bank angle in rad of the desired turn, 0 for a straight path.
        """

        alt: Any = field(units="m")
        course: Any = field(units="rad")
        airspeed: Any = field(units="m/s")
        bank: Any = field(units="rad", default=0.0)

    @struct
    class Memory:
        """The inputs in force, and the integrals of the errors.

        Parameters
        ----------
        input : F16.Input
            Inputs in force.
        integrals : array (3,)
            Integrals of the errors.
        """

        input: Any = field()
        integrals: Any = field()

    @staticmethod
    def design(plane: F16, trimmed: Trim, small: StateSpace) -> F16Autopilot:
        """Return the autopilot for a level condition with course north and its linearization.

        Parameters
        ----------
        plane : F16
            The aircraft.
        trimmed : Trim
            A level condition with course north.
        small : StateSpace
            Its linearization.
        """
        _check_condition(trimmed)
        names, V = list(small.states), float(norm(trimmed.flight.v_NED))
        pitch = float(trimmed.flight.rpy[1])
        alpha = float(call(plane.outputs, 0.0, trimmed.state, trimmed.input).alpha)
        A, B = np.asarray(small.A), np.asarray(small.B)
        at = [names.index(n) for n in ("alt", "v_D", "v_N", "pitch", "q", "power")]
        along = _with_integrals(A[np.ix_(at, at)], B[at][:, :2], [0, 2])
        up = regulator(*along, [*ALONG.values(), *ALONG_INTEGRALS], ALONG_CONTROLS)
        # Sideslip and course instead of velocity to the east and yaw.
        at = [names.index(n) for n in ("v_E", "roll", "yaw", "p", "r")]
        T = np.zeros((5, 5))
        T[0, :3] = 1.0 / V, pitch, -1.0
        T[1, 1] = T[2, 3] = T[3, 4] = 1.0
        T[4, 0] = 1.0 / V
        inner = matmul(T, A[np.ix_(at, at)], np.linalg.inv(T)), matmul(T, B[at][:, 2:])
        aside = _with_integrals(*inner, [4])
        side = regulator(*aside, [*ASIDE.values(), *ASIDE_INTEGRALS], ASIDE_CONTROLS)
        lift = -A[names.index("v_D"), names.index("pitch")] / STANDARD_GRAVITY
        power = as_array(trimmed.state.power)
        return F16Autopilot(up, side, trimmed.input, pitch, alpha, power, 1.0 / lift)

    def initial(self) -> Any:
        """Return the memory at the start: trimmed controls, no integrals."""
        return F16Autopilot.Memory(self.input, np.zeros(3))

    def step(self, memory: Any, plane: F16, t: Scalar, x: Tree, target: Any, dt: Scalar) -> Any:
        """Return the memory after a sample, with the inputs to be held until the next.

        Parameters
        ----------
        memory : F16Autopilot.Memory
            Memory of the autopilot.
        plane : F16
            The aircraft.
        t : float
            Time in s.
        x : State
            State of the vehicle.
        target : F16Autopilot.Target
            What is to be held.
        dt : float
            Time in s until the next sample.
        """
        around, flight = plane.world.surroundings(t, x.motion), plane.world.flight(t, x.motion)
        roll, pitch = flight.rpy[0], flight.rpy[1]
        turn, nose_up = self._turn_rates(roll, pitch, around.airspeed)
        w = around.w_air_B - turn
        sums = memory.integrals
        alt, alt_rest = _clip_error(flight.alt - target.alt, self.max_altitude_error)
        speed, speed_rest = _clip_error(around.airspeed - target.airspeed, self.max_speed_error)
        up = np.stack([alt, flight.v_NED[2], speed, pitch - nose_up, w[1], x.power - self.power])
        off = np.arctan2(flight.v_NED[1], flight.v_NED[0]) - target.course
        off = np.arctan2(np.sin(off), np.cos(off))
        # As far off as makes the largest bank.
        off, off_rest = _clip_error(off, self.max_bank * self.aside[0, 1] / self.aside[0, 4])
        side = np.stack([around.angles[1], roll - target.bank, w[0], w[2], off])
        throttle, elevator = -self.along @ np.concatenate([up, sums[:2]])
        aileron, rudder = -self.aside @ np.concatenate([side, sums[2:]])
        moved = F16.Input(throttle, elevator, aileron, rudder)
        u = tree.map(lambda u, du: u + du, self.input, moved)
        u = tree.map(np.clip, u, *F16().stops)
        return F16Autopilot.Memory(u, sums + dt * np.stack([alt_rest, speed_rest, off_rest]))

    def _turn_rates(self, roll: Scalar, pitch: Scalar, speed: Scalar) -> tuple[Any, Any]:
        """Return the body rates (3,) and the pitch of a level turn without sideslip."""
        roll = np.clip(roll, -1.2, 1.2)
        rate = STANDARD_GRAVITY * np.tan(roll) / np.maximum(speed, 1.0)
        w = np.stack([-np.sin(pitch), np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)])
        heavy = 1.0 / np.cos(roll) - 1.0
        lifted = (self.alpha + self.per_load * heavy) * np.cos(roll)
        return rate * w, self.pitch - self.alpha + lifted


def _clip_error(error: Scalar, limit: Scalar) -> tuple[Any, Any]:
    """Return the error within a limit, and what of it is added to its integral: small errors."""
    near = np.abs(error) < INTEGRATED * limit
    return np.clip(error, -limit, limit), np.where(near, error, 0.0)


@struct
class CircleGuidance:
    """Guidance around a circle on the Earth, also across a pole, the date line and the equator.

    Parameters
    ----------
    centre : array (3,)
        Centre of the circle in m, in Earth-fixed axes.
    radius : float
        Radius in m, measured along the plane that touches the Earth at the centre. Turns are to the
        right.
    lead : float, optional
        Change of course in rad for a distance of one radius from the circle.

    Examples
    --------
    >>> from archimedes.environment import geodetic_to_ecef
    >>> from archimedes.vehicles import CircleGuidance
    >>> circle = CircleGuidance(geodetic_to_ecef(0.6, -1.3, 0.0), 5000.0)
    >>> circle.radius
    5000.0
    """

    centre: Any = field(units="m")
    radius: Any = field(units="m")
    lead: Any = field(units="rad", default=2.0)

    def __post_init__(self) -> None:
        """Check the radius where it is known."""
        check_struct(self, positive="radius")

    def target(self, plane: F16, t: Scalar, x: Tree, alt: Scalar, airspeed: Scalar) -> Any:
        """Return the autopilot's target for a state on a `RotatingEarth`.

        Parameters
        ----------
        plane : F16
            The aircraft.
        t : float
            Time in s.
        x : State
            State of the vehicle.
        alt : float
            Altitude in m.
        airspeed : float
            Airspeed in m/s.
        """
        check_part(plane.world, "CircleGuidance.target: plane.world", ("ellipsoid",))
        lat, lon, _ = ecef_to_geodetic(x.motion.pos, plane.world.ellipsoid)
        inward = ned(lat, lon).rotate(as_array(self.centre) - x.motion.pos)
        distance = np.hypot(inward[0], inward[1])
        off = np.clip(self.lead * (distance / self.radius - 1.0), -1.0, 1.0)
        course = np.arctan2(inward[1], inward[0]) - 0.5 * np.pi + off
        bank = np.arctan(airspeed**2 / (STANDARD_GRAVITY * self.radius))
        return F16Autopilot.Target(alt, course, airspeed, bank)
