"""Where the Sun is, and how much of it a satellite sees.

Source of the position: The Astronomical Almanac, section C, low-precision formulas: 0.01 degrees
and 1e-4 au from 1950 to 2050. Source of the shadow: Montenbruck and Gill, Satellite Orbits, 2000,
section 3.4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment.ellipsoid import WGS84
from archimedes.spatial.components import as_array, scaled_norm
from archimedes.spatial.validation import check_vector

__all__ = ["ASTRONOMICAL_UNIT", "SUN_RADIUS", "sun_position", "sunlit_fraction"]

ASTRONOMICAL_UNIT = 149597870700.0
SUN_RADIUS = 6.957e8


def sun_position(day: Any, fraction: Any = 0.0) -> Any:
    """Return the position (..., 3) of the Sun from the Earth in m, for a Julian date.

    Axes are inertial: the mean equator and equinox of date. The date is ``day + fraction``.

    >>> from archimedes.environment import sun_position
    >>> p = sun_position(2451545.0)
    >>> (p / 149597870700.0).round(3)
    array([ 0.177, -0.887, -0.385])
    """
    n = (as_array(day, "day") - 2451545.0) + fraction
    g = np.deg2rad((357.528 + 0.9856003 * n) % 360.0)
    mean = (280.460 + 0.9856474 * n) % 360.0
    lon = np.deg2rad(mean + 1.915 * np.sin(g) + 0.020 * np.sin(2.0 * g))
    obliquity = np.deg2rad(23.439 - 4e-7 * n)
    distance = ASTRONOMICAL_UNIT * (1.00014 - 0.01671 * np.cos(g) - 0.00014 * np.cos(2.0 * g))
    across = np.sin(lon)
    direction = [np.cos(lon), np.cos(obliquity) * across, np.sin(obliquity) * across]
    return distance[..., None] * np.stack(direction, axis=-1)


def sunlit_fraction(p: Any, sun: Any, radius: Any = WGS84.a) -> Any:
    """Return the part of the Sun's disc, 0 to 1, that is seen from positions p (..., 3).

    `p` and `sun` (..., 3) are in m from the planet's centre, in the same axes; `radius` is the
    planet's, taken as round and without air. Between full shadow and full light (the penumbra) the
    fraction follows from the overlap of two discs.

    >>> import numpy as np
    >>> from archimedes.environment import sunlit_fraction
    >>> sun = np.array([1.5e11, 0.0, 0.0])
    >>> float(sunlit_fraction(np.array([7e6, 0.0, 0.0]), sun))
    1.0
    >>> float(sunlit_fraction(np.array([-7e6, 0.0, 0.0]), sun))
    0.0
    """
    p, sun = check_vector(p, 3, "p"), check_vector(sun, 3, "sun")
    to_sun = sun - p
    r, d = np.sqrt(np.sum(p * p, axis=-1)), np.sqrt(np.sum(to_sun * to_sun, axis=-1))
    a = np.arcsin(np.minimum(SUN_RADIUS / d, 1.0))
    b = np.arcsin(np.minimum(radius / r, 1.0))
    sides = np.cross(p, to_sun)
    across = scaled_norm([sides[..., k] for k in range(3)])  # has a derivative on the axis too
    c = np.arctan2(across, -np.sum(p * to_sun, axis=-1))
    full, none = c >= a + b, c <= b - a
    ring = c <= a - b  # the planet lies wholly before the Sun
    apart = np.where(full | none | ring, np.maximum(a, b), c)
    x = (apart * apart + a * a - b * b) / (2.0 * apart)
    y = np.sqrt(np.maximum(a * a - x * x, 0.0))
    covered = (
        a * a * np.arccos(np.clip(x / a, -1.0, 1.0))
        + b * b * np.arccos(np.clip((apart - x) / b, -1.0, 1.0))
        - apart * y
    )
    partly = 1.0 - covered / (np.pi * a * a)
    outer = np.where(ring, 1.0 - (b / a) ** 2, partly)
    return np.where(full, 1.0, np.where(none, 0.0, outer))
