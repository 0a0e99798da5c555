"""Where the Sun is, and how much of it a satellite sees.

Legend: T is the time since J2000 in Julian millennia. Source of the position: the largest terms of
the theory VSOP87 for the Earth, J. Meeus, Astronomical Algorithms, 2nd ed., 1998, chapter 25 and
appendix III. Source of the shadow: Montenbruck and Gill, Satellite Orbits, 2000, section 3.4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_finite, check_positive, check_vector
from archimedes.environment.geodesy import WGS84
from archimedes.environment.gravity import check_away_from_centre
from archimedes.environment.tables import read_tables
from archimedes.spatial.components import scaled_norm
from archimedes.typing import Array, ArrayLike, Scalar, Vec3

__all__ = ["sun_position", "sunlit_fraction"]

ASTRONOMICAL_UNIT = 149597870700.0
SUN_RADIUS = 6.957e8


#: Terms a cos(b + c T) of the Earth's longitude, 1e-8 rad, and distance, 1e-8 au, and of what T
#: multiplies in both. Each row is a, b, c.
TERMS = read_tables("archimedes.environment", "sun_terms.toml")
#: In 1e-8 rad: the Sun is seen where it was when its light left, behind its position by this much.
ABERRATION = 9934.0


def sun_position(day: ArrayLike, fraction: Scalar = 0.0) -> Any:
    """Return the position of the Sun from the Earth.

    The axes are inertial: the mean equator and equinox of date. The direction is the one that light
    comes from; the Sun itself is 0.0057 degrees further along its path. From 1800 to 2200 the
    direction is accurate to 0.002 degrees and the distance to 3e-5 au.

    Parameters
    ----------
    day : array_like
        Julian date in days, in terrestrial time. With UTC instead, the Sun moves by less than 0.001
        degrees.
    fraction : array_like, optional
        Further days. The date is ``day + fraction``; whole or half days and the rest given apart
        keep all digits.

    Returns
    -------
    array (..., 3)
        Position in m.

    Examples
    --------
    >>> from archimedes.environment import sun_position
    >>> p = sun_position(2451545.0)
    >>> (p / 149597870700.0).round(3)
    array([ 0.177, -0.887, -0.385])
    """
    T = ((as_finite(day, "day") - 2451545.0) + as_finite(fraction, "fraction")) / 365250.0
    mean = 175347046.0 - ABERRATION + 628331966747.0 * T + 52919.0 * T * T
    seen_from_sun = 1e-8 * (mean + _sum(TERMS.LONGITUDE, T) + T * _sum(TERMS.LONGITUDE_CHANGE, T))
    lon = np.pi + seen_from_sun
    distance = 1.00013989 + 1e-8 * (_sum(TERMS.DISTANCE, T) + T * _sum(TERMS.DISTANCE_CHANGE, T))
    obliquity = np.deg2rad(23.4392911 - 0.130042 * T)
    across = np.sin(lon)
    direction = [np.cos(lon), np.cos(obliquity) * across, np.sin(obliquity) * across]
    return (ASTRONOMICAL_UNIT * distance)[..., None] * np.stack(direction, axis=-1)


def _sum(terms: np.ndarray, T: Array) -> Any:
    """Return the sum of a cos(b + c T) over the rows a, b, c."""
    a, b, c = terms.T
    return np.sum(a * np.cos(b + c * T[..., None]), axis=-1)


def _angular_radius(radius: Scalar, distance: Scalar) -> Any:
    """Return the angle under which half of a sphere is seen; a right angle on it and inside."""
    outside = distance > radius
    ratio = np.where(outside, radius, 0.0) / np.where(outside, distance, 1.0)
    return np.where(outside, np.arcsin(ratio), 0.5 * np.pi)


def sunlit_fraction(p: Vec3, sun: Vec3, radius: Scalar = WGS84.a) -> Any:
    """Return the fraction of the solar disc, 0 to 1, that is visible from a position.

    In the penumbra the fraction follows from the overlap of two discs.

    Parameters
    ----------
    p : array (..., 3)
        Position in m from the centre of the planet, not the centre itself.
    sun : array (..., 3)
        Position of the Sun in m from the centre of the planet, in the same axes.
    radius : float, optional
        Radius of the planet in m, which is taken as round and without air.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import sunlit_fraction
    >>> sun = np.array([1.5e11, 0.0, 0.0])
    >>> float(sunlit_fraction(np.array([7e6, 0.0, 0.0]), sun))
    1.0
    >>> float(sunlit_fraction(np.array([-7e6, 0.0, 0.0]), sun))
    0.0
    """
    p, sun = check_away_from_centre(p, "p"), check_vector(sun, 3, "sun")
    check_positive(radius, "radius", "m")
    to_sun = sun - p
    r, d = np.sqrt(np.sum(p * p, axis=-1)), np.sqrt(np.sum(to_sun * to_sun, axis=-1))
    a, b = _angular_radius(SUN_RADIUS, d), _angular_radius(radius, r)
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
