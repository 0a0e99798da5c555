"""Where vehicles move: a flat Earth, or an ellipsoid that rotates. A vehicle works in either.

A world knows its state of motion, what surrounds a vehicle in it (air, gravity, and its motion
through them), and how the state changes under a force and a moment. Choosing another world changes
no vehicle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import environment as env
from archimedes.checks import as_array, check_vector
from archimedes.spatial import EarthReferencedBody, EulerAngles, Quaternion, RigidBody
from archimedes.spatial.components import cross
from archimedes.tree import field, replace, struct
from archimedes.typing import Matrix, Scalar, Tree, Vec3

__all__ = ["FlatEarth", "FlightState", "RotatingEarth", "Surroundings"]


@struct
class FlightState:
    """Position and motion of a vehicle in the terms of flight.

    Parameters
    ----------
    lat : float
        Geodetic latitude in rad.
    lon : float
        Longitude in rad.
    alt : float
        Altitude in m.
    v_NED : array (3,)
        Velocity in m/s relative to the ground: north, east, down.
    rpy : array (3,)
        Roll, pitch and yaw in rad relative to north-east-down.
    w_B : array (3,)
        Angular velocity in rad/s relative to inertial axes, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import FlightState
    >>> v_NED, rpy = np.array([170.0, 0.0, 0.0]), np.zeros(3)
    >>> level = FlightState(0.6, -1.3, 3000.0, v_NED, rpy, np.zeros(3))
    >>> level.replace(alt=5000.0).alt
    5000.0
    """

    lat: Any = field(units="rad")
    lon: Any = field(units="rad")
    alt: Any = field(units="m")
    v_NED: Any = field(units="m/s")
    rpy: Any = field(units="rad")
    w_B: Any = field(units="rad/s")


@struct
class Surroundings:
    """Air and gravity at the vehicle, and its motion relative to the air.

    Parameters
    ----------
    air : Air
        State of the air.
    alt : float
        Altitude in m.
    v_air_B : array (3,)
        Velocity through the air in m/s, in body axes.
    w_air_B : array (3,)
        Angular velocity relative to the Earth in rad/s, in body axes.
    g_B : array (3,)
        Gravitational attraction in m/s^2, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import FlatEarth, FlightState
    >>> level = FlightState(0, 0, 0.0, np.array([100.0, 0, 0]), np.zeros(3), np.zeros(3))
    >>> world = FlatEarth()
    >>> around = world.surroundings(0.0, world.state(level))
    >>> float(around.airspeed), round(float(around.mach), 3), round(float(around.dynamic_pressure))
    (100.0, 0.294, 6125)
    """

    air: env.Air = field()
    alt: Any = field(units="m")
    v_air_B: Any = field(units="m/s")
    w_air_B: Any = field(units="rad/s")
    g_B: Any = field(units="m/s^2")

    @property
    def airspeed(self) -> Any:
        """True airspeed in m/s; its derivative at rest is zero."""
        v2 = np.sum(self.v_air_B * self.v_air_B, axis=-1)
        still = v2 == 0.0
        return np.where(still, 0.0, np.sqrt(np.where(still, 1.0, v2)))

    @property
    def mach(self) -> Any:
        """Mach number."""
        return self.airspeed / self.air.speed_of_sound

    @property
    def dynamic_pressure(self) -> Any:
        """Dynamic pressure in Pa."""
        return 0.5 * self.air.density * np.sum(self.v_air_B * self.v_air_B, axis=-1)

    @property
    def angles(self) -> tuple[Any, Any]:
        """Angle of attack and of sideslip in rad."""
        return env.air_path_angles(self.v_air_B)


@struct
class FlatEarth:
    """A flat Earth with uniform gravity: axes north, east and down from a site at altitude zero.

    The state is `RigidBody.State`: ``pos`` in NED axes (altitude is ``-pos[2]``), the attitude of
    the body in them, velocity and angular velocity in body axes.

    Parameters
    ----------
    gravity : callable, optional
        Gravity model of the position.
    atmosphere : callable, optional
        Atmosphere model of the altitude.
    wind : callable, optional
        Wind model. No wind by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import ConstantWind
    >>> from archimedes.vehicles import FlatEarth, load
    >>> drone = load("multirotor", world=FlatEarth(wind=ConstantWind(np.array([3.0, 0.0, 0.0]))))
    >>> drone.world.wind.v_NED
    array([3., 0., 0.])
    """

    gravity: Any = field(default_factory=env.UniformGravity)
    atmosphere: Any = field(default_factory=env.StandardAtmosphere1976)
    wind: Any = field(default_factory=env.ConstantWind)

    State = RigidBody.State

    def state(self, flight: FlightState) -> RigidBody.State:
        """Return the motion for a flight state.

        North is ``lat`` and east ``lon`` times the radius of the Earth; give zeros for the site
        itself.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        """
        att = EulerAngles(as_array(flight.rpy, "rpy"), "xyz")
        pos = [flight.lat * env.WGS84.a, flight.lon * env.WGS84.a, -1.0 * flight.alt]
        v_B = att.rotate(check_vector(flight.v_NED, 3, "v_NED"))
        w_B = check_vector(flight.w_B, 3, "w_B")
        pos_N = np.stack([as_array(x) for x in pos])
        return RigidBody.State(pos_N, Quaternion.from_euler(att), v_B, w_B)

    def flight(self, t: Scalar, x: RigidBody.State) -> FlightState:
        """Return the flight state of a motion, the inverse of `state`.

        Parameters
        ----------
        t : float
            Time in s.
        x : RigidBody.State
            Motion.
        """
        return FlightState(
            lat=x.pos[..., 0] / env.WGS84.a,
            lon=x.pos[..., 1] / env.WGS84.a,
            alt=-x.pos[..., 2],
            v_NED=x.att.rotate(x.v_B, inverse=True),
            rpy=x.att.as_euler("xyz").array,
            w_B=x.w_B,
        )

    def surroundings(self, t: Scalar, x: RigidBody.State) -> Surroundings:
        """Return air and gravity at the vehicle.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            Motion in the world.
        """
        alt = -x.pos[..., 2]
        return Surroundings(
            air=self.atmosphere(alt),
            alt=alt,
            v_air_B=x.v_B - x.att.rotate(self.wind(t, alt)),
            w_air_B=x.w_B,
            g_B=x.att.rotate(self.gravity(x.pos)),
        )

    def rates(self, t: Scalar, x: Tree, F_B: Vec3, M_B: Vec3, m: Scalar, J_B: Matrix) -> Any:
        """Return the derivative of the motion under a force and a moment.

        Parameters
        ----------
        t : float
            Time in s.
        x : RigidBody.State
            Motion.
        F_B : array (3,)
            Force in N, in body axes, without gravity, which is added.
        M_B : array (3,)
            Moment in N m about the centre of mass, in body axes.
        m : float
            Mass in kg.
        J_B : array (3, 3)
            Inertia in kg m^2 about the centre of mass, in body axes.
        """
        weight = as_array(m)[..., None] * x.att.rotate(self.gravity(x.pos))
        return RigidBody.dynamics(t, x, RigidBody.Input(F_B + weight, M_B, m, J_B))

    def shifted(self, x: RigidBody.State, shift_B: Vec3) -> RigidBody.State:
        """Return the motion of another point of the body.

        Parameters
        ----------
        x : State
            Motion in the world.
        shift_B : array (3,)
            Position of the other point in m, in body axes.
        """
        pos = x.pos + x.att.rotate(shift_B, inverse=True)
        return replace(x, pos=pos, v_B=x.v_B + cross(x.w_B, shift_B))


@struct
class RotatingEarth:
    """A rotating ellipsoid with any gravity model.

    The state is `EarthReferencedBody.State`: position and velocity relative to the Earth in its
    axes, the attitude of the body in them, and the inertial angular velocity in body axes.

    Parameters
    ----------
    ellipsoid : Ellipsoid, optional
        Shape and rotation of the Earth. `WGS84` by default.
    gravity : callable, optional
        Gravity model of the position, in Earth-fixed axes.
    atmosphere : callable, optional
        Atmosphere model of the altitude.
    wind : callable, optional
        Wind model. No wind by default.

    Examples
    --------
    >>> from archimedes.environment import PointMassGravity
    >>> from archimedes.vehicles import RotatingEarth, load
    >>> plane = load("f16", world=RotatingEarth(gravity=PointMassGravity()))
    >>> plane.world.ellipsoid.a
    6378137.0
    """

    ellipsoid: env.Ellipsoid = field(default_factory=lambda: env.WGS84)
    gravity: Any = field(default_factory=env.J2Gravity)
    atmosphere: Any = field(default_factory=env.StandardAtmosphere1976)
    wind: Any = field(default_factory=env.ConstantWind)

    State = EarthReferencedBody.State

    def state(self, flight: FlightState) -> EarthReferencedBody.State:
        """Return the motion for a flight state.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        """
        local = env.ned(flight.lat, flight.lon)
        att = EulerAngles(as_array(flight.rpy, "rpy"), "xyz")
        return EarthReferencedBody.State(
            env.geodetic_to_ecef(flight.lat, flight.lon, flight.alt, self.ellipsoid),
            Quaternion.from_matrix(att.as_matrix() @ local.as_matrix()),
            local.rotate(check_vector(flight.v_NED, 3, "v_NED"), inverse=True),
            check_vector(flight.w_B, 3, "w_B"),
        )

    def flight(self, t: Scalar, x: EarthReferencedBody.State) -> FlightState:
        """Return the flight state of a motion, the inverse of `state`.

        Parameters
        ----------
        t : float
            Time in s.
        x : EarthReferencedBody.State
            Motion.
        """
        lat, lon, alt = env.ecef_to_geodetic(x.pos, self.ellipsoid)
        local = env.ned(lat, lon)
        R_BN = x.att.as_matrix() @ np.swapaxes(local.as_matrix(), -1, -2)
        rpy = EulerAngles.from_matrix(R_BN, "xyz").array
        return FlightState(lat, lon, alt, local.rotate(x.v_E), rpy, x.w_B)

    def surroundings(self, t: Scalar, x: EarthReferencedBody.State) -> Surroundings:
        """Return air and gravity at the vehicle.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            Motion in the world.
        """
        lat, lon, alt = env.ecef_to_geodetic(x.pos, self.ellipsoid)
        wind_E = env.ned(lat, lon).rotate(self.wind(t, alt), inverse=True)
        return Surroundings(
            air=self.atmosphere(alt),
            alt=alt,
            v_air_B=x.att.rotate(x.v_E - wind_E),
            w_air_B=x.w_B - x.att.rotate(self._spin()),
            g_B=x.att.rotate(self.gravity(x.pos)),
        )

    def rates(self, t: Scalar, x: Tree, F_B: Vec3, M_B: Vec3, m: Scalar, J_B: Matrix) -> Any:
        """Return the derivative of the motion under a force and a moment.

        Parameters
        ----------
        t : float
            Time in s.
        x : EarthReferencedBody.State
            Motion.
        F_B : array (3,)
            Force in N, in body axes, without gravity, which is added.
        M_B : array (3,)
            Moment in N m about the centre of mass, in body axes.
        m : float
            Mass in kg.
        J_B : array (3, 3)
            Inertia in kg m^2 about the centre of mass, in body axes.
        """
        F_E = x.att.rotate(F_B, inverse=True) + as_array(m)[..., None] * self.gravity(x.pos)
        body = EarthReferencedBody(rot_earth=self.ellipsoid.omega)
        return body.dynamics(t, x, EarthReferencedBody.Input(F_E, M_B, m, J_B))

    def shifted(self, x: EarthReferencedBody.State, shift_B: Vec3) -> EarthReferencedBody.State:
        """Return the motion of another point of the body.

        Parameters
        ----------
        x : State
            Motion in the world.
        shift_B : array (3,)
            Position of the other point in m, in body axes.
        """
        turning = cross(x.w_B - x.att.rotate(self._spin()), shift_B)  # relative to the Earth
        pos = x.pos + x.att.rotate(shift_B, inverse=True)
        return replace(x, pos=pos, v_E=x.v_E + x.att.rotate(turning, inverse=True))

    def _spin(self) -> Any:
        rate = as_array(self.ellipsoid.omega)
        return np.stack([0.0 * rate, 0.0 * rate, rate])
