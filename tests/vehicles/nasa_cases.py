"""NASA's six-degree-of-freedom check cases as data (NASA/TM-2015-218675, appendix B).

Initial conditions and vehicles are the memorandum's, in its units, converted once.
"""

from __future__ import annotations

import numpy as np

from archimedes.environment import (
    SPHERICAL_EARTH,
    WGS84,
    ConstantWind,
    Ellipsoid,
    LinearShear,
    PointMassGravity,
)
from archimedes.vehicles import FlightCase, FlightState, Projectile, RotatingEarth

FOOT, SLUG = 0.3048, 14.593902937206364
SLUG_FT2 = SLUG * FOOT**2

BALL = {"mass": SLUG, "inertia": 3.6 * SLUG_FT2 * np.eye(3), "area": 0.1963495 * FOOT**2}
BRICK = {
    "mass": 0.155404754 * SLUG,
    "inertia": SLUG_FT2 * np.diag([0.00189422, 0.006211019, 0.007194665]),
}
BRICK_DAMPING = {
    "area": 0.22222 * FOOT**2,
    "lengths": FOOT * np.array([0.33333, 0.66667, 0.33333]),
    "damping": -np.eye(3),
}
ROUND = RotatingEarth(SPHERICAL_EARTH, PointMassGravity(SPHERICAL_EARTH.mu))
ROUND_TURNING = RotatingEarth(
    Ellipsoid(SPHERICAL_EARTH.a, 0.0, SPHERICAL_EARTH.mu, WGS84.omega),
    PointMassGravity(SPHERICAL_EARTH.mu),
)
WEST_WIND = RotatingEarth(wind=ConstantWind(FOOT * np.array([0.0, 20.0, 0.0])))
SHEAR = RotatingEarth(
    wind=LinearShear(FOOT * np.array([0.0, -20.0, 0.0]), np.array([0.0, 0.003, 0.0]))
)


def start(height=30000.0, velocity=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0), rates=(0.0, 0.0, 0.0)):
    """Height in ft, velocity in ft/s, attitude in degrees, rates in degrees per second."""
    return FlightState(
        lat=np.array(0.0),
        lon=np.array(0.0),
        alt=np.array(height * FOOT),
        v_NED=FOOT * np.array(velocity, dtype=float),
        rpy=np.deg2rad(np.array(rpy, dtype=float)),
        w_B=np.deg2rad(np.array(rates, dtype=float)),
    )


TUMBLING = start(rates=(10.0, 20.0, 30.0))
SPIN = np.rad2deg(WGS84.omega)
CASES = {
    "01": FlightCase(Projectile(**BALL), start(), 30.0),
    "02": FlightCase(Projectile(**BRICK), TUMBLING, 30.0),
    "03": FlightCase(Projectile(**BRICK, **BRICK_DAMPING), TUMBLING, 30.0),
    "04": FlightCase(Projectile(**BALL, drag=0.1, world=ROUND), TUMBLING, 30.0),
    "05": FlightCase(Projectile(**BALL, drag=0.1, world=ROUND_TURNING), TUMBLING, 30.0),
    "06": FlightCase(Projectile(**BALL, drag=0.1), start(), 30.0),
    "07": FlightCase(Projectile(**BALL, drag=0.1, world=WEST_WIND), start(), 30.0),
    "08": FlightCase(Projectile(**BALL, drag=0.1, world=SHEAR), start(), 30.0),
    "09": FlightCase(
        Projectile(**BALL, drag=0.1),
        start(0.0, (0.0, 1000.0, -1000.0), (0.0, 0.0, 90.0), (0.0, -SPIN, 0.0)),
        30.0,
    ),
    "10": FlightCase(
        Projectile(**BALL, drag=0.1),
        start(0.0, (1000.0, 0.0, -1000.0), (0.0, 0.0, 0.0), (SPIN, 0.0, 0.0)),
        30.0,
    ),
}
