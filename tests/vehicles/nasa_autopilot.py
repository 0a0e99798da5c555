"""The F-16 of NASA's check cases 13 to 16 under its control laws, as flights with feedback.

The laws are those of ``F16_control.dml`` (revision F) and ``F16_gnc.dml`` (revision C) of
NASA/TM-2015-218675: outer loops for altitude and course, and a linear-quadratic regulator without
states, evaluated continuously. Signals are in the units of the files: feet, knots, degrees, but
body rates in rad/s relative to the Earth. As in simulation 05, pitch and angle of attack are
regulated to those of the trim in case 13, and to the constant of the file in cases 15 and 16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.environment import WGS84
from archimedes.vehicles import F16, F16Engine, FlightCase, FlightState, trim
from tests.vehicles.nasa_cases import FOOT

KNOT, SEA_LEVEL_DENSITY = 1852.0 / 3600.0, 1.225
DESIGN_PITCH = 2.653813535191715  # degrees, of the file
ALONG = np.array(
    [
        [-0.063009074230494, 0.113230403179271, 10.113432224566077, 3.154983341632913],
        [0.997260602961658, -0.025467711176391, 1.213308488207827, 0.208744369535208],
    ]
)
ASIDE = np.array(
    [
        [3.078043941515770, 0.032365863044163, 4.557858908828332, 0.589443156647647],
        [-0.705817452754520, -0.256362860634868, -1.073666149713151, 0.822114635953878],
    ]
)


@arc.struct
class PowerLever(F16Engine):
    """The engine of the check cases: power is 100 times the throttle, at once."""

    angular_momentum: float = 0.0
    lag: bool = arc.field(static=True, default=False)

    def commanded(self, throttle: Any) -> Any:
        """Return the power in percent."""
        return 100.0 * throttle


@arc.struct
class NasaAutopilot:
    """The control law about a trim: altitude in ft, equivalent airspeed in knots."""

    plane: Any
    input: Any
    level: Any  # pitch and angle of attack in degrees
    altitude: Any
    speed: Any

    def command(self, t, x, altitude, speed, course, offset):
        """Return the inputs for commands in feet, knots, degrees and feet right of the course."""
        flight = self.plane.world.flight(t, x.motion)
        around = self.plane.world.surroundings(t, x.motion)
        alpha, beta = np.rad2deg(around.angles[0]), np.rad2deg(around.angles[1])
        roll, pitch, yaw = np.rad2deg(flight.rpy)
        p, q, r = around.w_air_B
        off = beta + yaw - course + np.clip(0.01 * offset, -30.0, 30.0)
        off = np.where(off > 180.0, off - 360.0, np.where(off < -180.0, off + 360.0, off))
        bank = np.clip(-10.0 * off, -30.0, 30.0)
        nose = self.level + np.clip(-0.05 * (flight.alt / FOOT - altitude), -5.0, 5.0)
        up = np.stack([knots(around) - speed, alpha - self.level, q, pitch - nose])
        stick, throttle = -ALONG @ up
        lateral, pedal = -ASIDE @ np.stack([roll - bank, beta, p, r])
        stick = np.clip(stick - np.rad2deg(self.input.elevator) / 25.0, -1.0, 1.0)
        aileron = -21.5 * np.clip(lateral, -1.0, 1.0)
        rudder = -30.0 * np.clip(pedal, -1.0, 1.0) + 0.008 * aileron
        surfaces = np.deg2rad(-25.0) * stick, np.deg2rad(aileron), np.deg2rad(rudder)
        return F16.Input(np.clip(self.input.throttle + throttle, 0.0, 1.0), *surfaces)

    def hold(self, t, x, *, climb=0.0, faster=0.0, course=45.0, offset=0.0):
        """Return the inputs for changes of what was trimmed."""
        return self.command(t, x, self.altitude + climb, self.speed + faster, course, offset)


def knots(around):
    """Equivalent airspeed."""
    return around.airspeed * np.sqrt(around.air.density / SEA_LEVEL_DENSITY) / KNOT


def isometric(lat):
    """The ordinate of a Mercator map of the ellipsoid: on it, a course is a straight line."""
    e = np.sqrt(WGS84.f * (2.0 - WGS84.f))
    return np.arcsinh(np.tan(lat)) - e * np.arctanh(e * np.sin(lat))


def right_of_course(flight, start, course):
    """Distance in ft to the right of the line of constant course through the start."""
    e2 = WGS84.f * (2.0 - WGS84.f)
    across = (flight.lon - start.lon) * np.cos(course)
    across = across - (isometric(flight.lat) - isometric(start.lat)) * np.sin(course)
    radius = WGS84.a / np.sqrt(1.0 - e2 * np.sin(flight.lat) ** 2) + flight.alt
    return across * radius * np.cos(flight.lat) / FOOT


MINUTE_FT = 6076.12  # a nautical mile, as the file has it


def around_the_pole(flight):
    """Course and offset of a circle of 3 nautical miles about the North Pole."""
    away = 60.0 * MINUTE_FT * (90.0 - np.rad2deg(flight.lat))
    return 90.0, away - 3.0 * MINUTE_FT


def around_the_date_line(flight):
    """Course and offset of a circle of 3 nautical miles about latitude 0, longitude 180."""
    lon = np.rad2deg(flight.lon)
    north = 60.0 * MINUTE_FT * np.rad2deg(flight.lat)
    east = 60.0 * MINUTE_FT * np.where(lon > 0.0, lon - 180.0, lon + 180.0) * np.cos(flight.lat)
    return -np.rad2deg(np.arctan2(north, east)), np.hypot(east, north) - 3.0 * MINUTE_FT


def trimmed_flight(lat, lon, alt, v_NED, yaw):
    """The F-16, and its steady flight with wings level: rates hold roll, pitch and yaw."""
    plane = F16(xcg=0.25, engine=PowerLever())
    begin = FlightState(
        lat=np.deg2rad(lat),
        lon=np.deg2rad(lon),
        alt=alt * FOOT,
        v_NED=FOOT * np.array(v_NED),
        rpy=np.deg2rad([0.0, 2.6, yaw]),
        w_B=np.zeros(3),
    )
    found = trim(
        plane,
        begin,
        F16.Input(0.14, -0.05, 0.0, 0.0),
        {"power": 0.0},
        free=("pitch", "p", "q", "r", "throttle", "elevator"),
        steady=("speed", "climb", "roll", "pitch", "yaw", "q"),
    )
    assert found.success, found.message
    speed = knots(plane.world.surroundings(0.0, found.state.motion))
    level = np.rad2deg(found.flight.rpy[1])
    return plane, found, NasaAutopilot(plane, found.input, level, alt, speed)


def case_13(part):
    """Altitude, airspeed, course or offset changes after 5, 5, 15 or 20 s: cases 13.1 to 13.4."""
    plane, found, autopilot = trimmed_flight(
        36.01916667, -75.67444444, 10013.0, [400.0, 400.0, 0.0], 45.0
    )

    def offset(t, x):
        flight = plane.world.flight(t, x.motion)
        right = right_of_course(flight, found.flight, np.deg2rad(45.0))
        return np.where(t >= 20.0, right - 2000.0, 0.0)

    controls = {
        1: lambda t, x: autopilot.hold(t, x, climb=np.where(t >= 5.0, 100.0, 0.0)),
        2: lambda t, x: autopilot.hold(t, x, faster=np.where(t >= 5.0, -5.0, 0.0)),
        3: lambda t, x: autopilot.hold(t, x, course=np.where(t >= 15.0, 60.0, 45.0)),
        4: lambda t, x: autopilot.hold(t, x, offset=offset(t, x)),
    }[part]
    duration = {1: 20.0, 2: 20.0, 3: 31.0, 4: 61.0}[part]
    return FlightCase(plane, found.flight, duration, controls, {"power": 0.0})


def circle(lat, lon, v_NED, yaw, guidance):
    """A circle flown from the first moment: cases 15 and 16."""
    plane, found, autopilot = trimmed_flight(lat, lon, 10000.0, v_NED, yaw)
    autopilot = autopilot.replace(level=DESIGN_PITCH)

    def controls(t, x):
        course, offset = guidance(plane.world.flight(t, x.motion))
        return autopilot.hold(t, x, course=course, offset=offset)

    return FlightCase(plane, found.flight, 180.0, controls, {"power": 0.0})


FEEDBACK_CASES = {
    **{f"13.{part}": lambda part=part: case_13(part) for part in (1, 2, 3, 4)},
    "15": lambda: circle(89.95, -45.0, [0.0, 563.643, 0.0], 90.0, around_the_pole),
    "16": lambda: circle(0.0, -179.95, [563.643, 0.0, 0.0], 0.0, around_the_date_line),
}
