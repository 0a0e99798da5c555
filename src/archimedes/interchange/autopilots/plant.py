"""The vehicle and its sensors as compiled steps, in the terms that autopilots use.

Axes: NED is north, east, down; body axes are forward, right, down. q is the quaternion, scalar
first, whose rotation takes body to NED coordinates. Latitude and longitude follow from the position
on a `FlatEarth`, and back, by the radii of curvature of WGS84 at home.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import random
from archimedes.environment import WGS84, ecef_to_geodetic, geodetic_to_ecef, ned
from archimedes.function import compile
from archimedes.simulate import discretize
from archimedes.spatial import EulerAngles, Quaternion, RigidBody
from archimedes.tree import field, replace, struct
from archimedes.tree import map as tree_map
from archimedes.vehicles.sensors import AirData, Gnss, Imu, Magnetometer

__all__ = ["Fix", "Plant", "Readings", "Sensors"]


@struct
class Readings:
    """What the inertial sensors read, and the true motion.

    Parameters
    ----------
    force : array (3,)
        Specific force in m/s^2 as the accelerometers read it, in body axes.
    rate : array (3,)
        Angular velocity in rad/s as the gyroscopes read it, in body axes.
    pos : array (3,)
        True position in m from home: north, east, down.
    v_NED : array (3,)
        True velocity in m/s: north, east, down.
    quat : array (4,)
        True attitude: the quaternion, scalar first, that rotates body to NED axes.
    w_B : array (3,)
        True angular velocity in rad/s, in body axes.
    lat : float
        True latitude in rad.
    lon : float
        True longitude in rad.
    alt : float
        True altitude in m.
    airspeed : float
        True airspeed in m/s.

    Examples
    --------
    >>> import archimedes as arc
    >>> traj = loop.run(10.0)  # doctest: +SKIP
    >>> traj.y.force, traj["y.rate[0]"]  # doctest: +SKIP
    """

    force: Any = field(units="m/s^2")
    rate: Any = field(units="rad/s")
    pos: Any = field(units="m")
    v_NED: Any = field(units="m/s")
    quat: Any = field(units="")
    w_B: Any = field(units="rad/s")
    lat: Any = field(units="rad")
    lon: Any = field(units="rad")
    alt: Any = field(units="m")
    airspeed: Any = field(units="m/s")


@struct
class Fix:
    """What satellite navigation reads.

    Parameters
    ----------
    lat : float
        Latitude in rad.
    lon : float
        Longitude in rad.
    alt : float
        Altitude in m.
    v_NED : array (3,)
        Velocity in m/s: north, east, down.
    """

    lat: Any = field(units="rad")
    lon: Any = field(units="rad")
    alt: Any = field(units="m")
    v_NED: Any = field(units="m/s")


@struct
class Sensors:
    """The sensors on board.

    Parameters
    ----------
    imu : Imu
        Accelerometers and gyroscopes.
    magnetometer : Magnetometer
        Magnetometer.
    air_data : AirData
        Static and impact pressure.
    gnss : Gnss
        Satellite navigation.
    field_NED : array (3,)
        Magnetic field at home in T: north, east, down.
    """

    imu: Imu = field()
    magnetometer: Magnetometer = field()
    air_data: AirData = field()
    gnss: Gnss = field()
    field_NED: Any = field(units="T")


class Plant:
    """A vehicle with its sensors, as functions of the channels of an autopilot.

    Each reading has a random key of its own, made of the seed, the sensor and the number of the
    reading, so that runs repeat.

    Parameters
    ----------
    vehicle : Multirotor, F16 or another
        The vehicle, with ``dynamics``, ``forces``, ``mass`` and ``world``.
    commands : callable
        Inputs of the vehicle as a function of the channels (32,).
    sensors : Sensors
        The sensors.
    home : (float, float, float)
        Latitude in rad, longitude in rad and altitude in m of the origin of positions.
    seed : int
        Seed of the errors of the sensors.
    """

    def __init__(
        self, vehicle: Any, commands: Callable[..., Any], sensors: Sensors, home: Any, seed: int
    ) -> None:
        self.vehicle, self.commands, self.sensors = vehicle, commands, sensors
        self.home = tuple(float(value) for value in home)
        self.flat = getattr(vehicle.world, "State", None) is RigidBody.State
        self.keys = np.asarray(random.split(random.key(seed), 4))
        self._steps: dict[int, Any] = {}

    def step(self, t: float, x: Any, channels: Any, dt: float, parts: int) -> Any:
        """Return the state `dt` later, by `parts` steps of the Runge-Kutta method of order 4."""
        if parts not in self._steps:
            vehicle, commands = self.vehicle, self.commands

            def rates(s: Any, x: Any, t: Any, channels: Any, dt: Any) -> Any:
                """Time runs from 0 to 1, so that one program has steps of any length."""
                change = vehicle.dynamics(t + s * dt, x, commands(channels))
                return tree_map(lambda leaf: dt * leaf, change)

            self._steps[parts] = discretize(rates, dt=1.0, n_steps=parts, name="vehicle_step")
        return self._steps[parts](0.0, x, t, channels, dt)

    @cached_property
    def inertial(self) -> Any:
        """Drift and `Readings`: a function of ``(t, x, channels, drift, k, dt, free)``."""
        vehicle, commands, imu, key = self.vehicle, self.commands, self.sensors.imu, self.keys[0]

        def inertial(
            t: Any, x: Any, channels: Any, drift: Any, k: Any, dt: Any, free: Any
        ) -> tuple[Any, Any]:
            u = commands(channels)
            flight = vehicle.world.flight(t, x.motion)
            around = vehicle.world.surroundings(t, x.motion)
            F_B, _ = vehicle.forces(t, x, u)
            turning = vehicle.dynamics(t, x, u).motion.w_B
            # A vehicle that is held is carried by what holds it.
            f_B = np.where(free, F_B / vehicle.mass, -around.g_B)
            draw = random.fold_in(key, k)
            drift, read = imu.step(drift, f_B, flight.w_B, np.where(free, turning, 0.0), draw, dt)
            lat, lon, alt, pos = self._place(x, flight)
            att = EulerAngles(flight.rpy, "xyz")
            readings = Readings(
                force=read.force,
                rate=read.rate,
                pos=pos,
                v_NED=flight.v_NED,
                quat=Quaternion.from_euler(att).array,
                w_B=flight.w_B,
                lat=lat,
                lon=lon,
                alt=alt,
                airspeed=around.airspeed,
            )
            return drift, readings

        return compile(inertial)

    @cached_property
    def slow(self) -> Any:
        """Drift, magnetic field (3,) in T and air data: of ``(t, x, r, drift, k, dt)``."""
        sensors, world, key = self.sensors, self.vehicle.world, self.keys[1]
        field_NED = np.asarray(sensors.field_NED, dtype=float)

        def slow(t: Any, x: Any, readings: Any, drift: Any, k: Any, dt: Any) -> tuple[Any, ...]:
            draws = random.split(random.fold_in(key, k), 2)
            B_B = Quaternion(readings.quat).rotate(field_NED)
            drift, felt = sensors.magnetometer.step(drift, B_B, draws[0], dt)
            around = world.surroundings(t, x.motion)
            around = replace(around, air=world.atmosphere(readings.alt), alt=readings.alt)
            return drift, felt, sensors.air_data.measure(around, draws[1])

        return compile(slow)

    @cached_property
    def fix(self) -> Any:
        """Slow error and `Fix` of satellite navigation: of ``(readings, error, k, dt)``."""
        gnss, key = self.sensors.gnss, self.keys[2]

        def fix(readings: Any, error: Any, k: Any, dt: Any) -> tuple[Any, Any]:
            p_E = geodetic_to_ecef(readings.lat, readings.lon, readings.alt)
            v_E = ned(readings.lat, readings.lon).rotate(readings.v_NED, inverse=True)
            error, read = gnss.step(error, p_E, v_E, random.fold_in(key, k), dt)
            lat, lon, alt = ecef_to_geodetic(read.p_E)
            return error, Fix(lat, lon, alt, ned(lat, lon).rotate(read.v_E))

        return compile(fix)

    def initial(self) -> tuple[Any, Any, Any]:
        """Return the drifts of inertial sensors and magnetometer and the error of navigation."""
        sensors = self.sensors
        error = sensors.gnss.initial(self.keys[3])
        return sensors.imu.initial(), sensors.magnetometer.initial(), error

    def _place(self, x: Any, flight: Any) -> tuple[Any, Any, Any, Any]:
        """Return latitude, longitude, altitude, and the position from home in NED axes."""
        lat0, lon0, alt0 = self.home
        north = WGS84.meridian_radius(lat0) + alt0
        east = (WGS84.prime_vertical_radius(lat0) + alt0) * np.cos(lat0)
        if self.flat:
            pos = x.motion.pos
            return lat0 + pos[0] / north, _wrap(lon0 + pos[1] / east), alt0 - pos[2], pos
        lat, lon, alt = flight.lat, flight.lon, flight.alt
        pos = np.stack([north * (lat - lat0), east * _wrap(lon - lon0), alt0 - alt])
        return lat, lon, alt, pos


def _wrap(angle: Any) -> Any:
    """Return an angle between -pi and pi."""
    return angle - 2.0 * np.pi * np.floor((angle + np.pi) / (2.0 * np.pi))
