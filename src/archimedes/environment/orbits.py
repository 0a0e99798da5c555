r"""Orbits of two bodies: Kepler's elements, anomalies, and motion along any conic.

Legend: e is the eccentricity, p the semi-latus rectum, q = p / (1 + e) the distance of the
periapsis, nu the true anomaly, E and M the eccentric and the mean anomaly (hyperbolic ones for
e > 1). c0 to c3 are Stumpff functions of z = beta s^2. The universal anomaly s takes the place of
E on every conic: E = s sqrt(beta) on an ellipse. Lengths are in units of the distance r0 of the
starting point, times in units of sqrt(r0^3 / mu), so that beta = r0 / a and sigma is the radial
velocity; Kepler's equation is ``s + (1 - beta) s^3 c3 + sigma s^2 c2 = T``. From the periapsis,
sigma = 0 and beta = 1 - e. Nothing in it is singular at e = 0 or e = 1.
Sources: Vallado, Fundamentals of Astrodynamics and Applications, 4th ed., 2013, sections 2.2 to
2.5 (algorithms 8 to 10); Curtis, Orbital Mechanics for Engineering Students, 3rd ed., 2014,
sections 3.7 and 4.4; Battin, An Introduction to the Mathematics and Methods of Astrodynamics, 1999,
section 4.5 (universal functions).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from archimedes.checks import as_array, as_finite, check_struct, check_that, check_vector, concrete
from archimedes.environment.geodesy import WGS84
from archimedes.environment.gravity import check_away_from_centre
from archimedes.function import scan, stop_gradient
from archimedes.spatial.components import components, cross, dot, join, scaled_norm
from archimedes.spatial.stumpff import arctan_ratio, stumpff
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Vec3

__all__ = [
    "KeplerElements",
    "eccentric_to_mean",
    "eccentric_to_true",
    "kepler_propagate",
    "mean_to_eccentric",
    "mean_to_true",
    "true_to_eccentric",
    "true_to_mean",
]

TURN = 2.0 * np.pi
#: Below this eccentricity, or sine of the inclination, an orbit counts as round, or equatorial:
#: what is left is the rounding of position and velocity.
ROUNDING = 1e-15
#: Steps of Halley's method from the starting values of `_since_periapsis`, one more than is needed
#: for double precision on every conic.
STEPS = 7


# ---- Kepler's equation ---------------------------------------------------------------------------


def _time(s: Scalar, beta: Scalar, sigma: Scalar = 0.0) -> tuple[Any, Any]:
    """Return the time T that takes the universal anomaly s, and its derivative, the distance."""
    c1, c2, c3 = stumpff((1, 2, 3), beta * s * s, signed=True)
    round_part = (1.0 - beta) * s * s
    return s + round_part * s * c3 + sigma * s * s * c2, 1.0 + round_part * c2 + sigma * s * c1


def _since_periapsis(T: Scalar, q: Scalar, e: Scalar, beta: Scalar) -> Any:
    """Return s with ``q s + e s^3 c3 = T`` to some digits of rounding; |s sqrt(beta)| <= pi.

    The root of ``q s + e s^3 / 6 = T`` is the starting value: on a hyperbola it is above the
    solution, as is the one for large anomalies, ``sinh F = N / (e - L / sinh L)`` with the lower
    bound ``sinh L = N / e``. The function is convex, and Halley's method descends.
    """
    size, root = np.abs(T), np.sqrt(np.where(beta == 0.0, 1.0, np.abs(beta)))
    least = np.maximum(q, 1e-30)
    x = 1.5 * size / least * np.sqrt(0.5 * e / least)
    flat = x < 1e-6
    start = size / least * np.where(flat, 1.0, 3.0 * np.sinh(np.arcsinh(x) / 3.0) / (x + flat))
    N, open_e = root * root * root * size, np.maximum(e, 1.0)
    L = np.arcsinh(N / open_e)
    ratio = np.where(L < 1e-6, 1.0, L / np.where(L < 1e-6, 1.0, np.sinh(L)))
    largest = np.where(beta > 0.0, np.pi, np.arcsinh(N / np.maximum(open_e - ratio, 1e-16))) / root
    largest = np.where(beta == 0.0, start, largest)

    def halley(s: Scalar, _: object) -> tuple[Any, None]:
        c1, c2, c3 = stumpff((1, 2, 3), beta * s * s, signed=True)
        f, slope, bend = q * s + e * s * s * s * c3 - size, q + e * s * s * c2, e * s * c1
        below = 2.0 * slope * slope - f * bend
        below = np.where(below > 0.0, below, 2.0 * slope * slope + (slope == 0.0))
        return np.clip(s - 2.0 * f * slope / below, 0.0, largest), None

    s, _ = scan(halley, np.minimum(start, largest), length=STEPS)
    return np.where(T < 0.0, -s, s)


def _starting_anomaly(T: Scalar, beta: Scalar, sigma: Scalar) -> tuple[Any, Any]:
    """Return the universal anomaly after T less whole revolutions, and these; by the periapsis."""
    e = np.sqrt(np.maximum((1.0 - beta) ** 2 + beta * sigma * sigma, 0.0))
    q = np.maximum(2.0 - beta - sigma * sigma, 0.0) / (1.0 + e)
    root = np.sqrt(np.where(beta == 0.0, 1.0, np.abs(beta)))
    along = sigma * root
    angle = np.where(
        beta > 0.0, np.arctan2(along, 1.0 - beta), np.arcsinh(along / np.maximum(e, 1.0))
    )
    s0 = np.where(beta == 0.0, sigma, angle / root)
    (c3,) = stumpff((3,), beta * s0 * s0, signed=True)
    passed = q * s0 + e * s0 * s0 * s0 * c3 + T
    period = TURN / np.maximum(root * root * root, 1e-300)
    still = T == 0.0
    turns = np.where((beta > 0.0) & ~still, np.rint(passed / period), 0.0)
    s = _since_periapsis(passed - turns * period, q, e, beta) - s0
    return np.where(still, 0.0, s), turns


def _universal_anomaly(T: Scalar, beta: Scalar, sigma: Scalar = 0.0) -> tuple[Any, Any]:
    """Return the universal anomaly after T less whole revolutions, and the number of these."""
    T, beta, sigma = np.broadcast_arrays(T, beta, sigma) if np.shape(T) != () else (T, beta, sigma)
    s, turns = stop_gradient(_starting_anomaly(*map(stop_gradient, (T, beta, sigma))))
    closed = np.where(turns == 0.0, 1.0, beta)
    T = T - turns * (TURN / (closed * np.sqrt(closed)))
    # The solution is constant under differentiation: each Newton step doubles the order to which
    # derivatives are right, so after two they hold to the third.
    for _ in range(2):
        time, distance = _time(s, beta, sigma)
        s = s - (time - T) / distance
    return s, turns


def _turns(angle: Scalar, e: Scalar) -> Any:
    """Return the whole revolutions in an angle; a hyperbola has none."""
    return stop_gradient(np.where(e < 1.0, np.rint(angle / TURN), 0.0))


def _anomaly_of_true(nu: Scalar, e: Scalar) -> Any:
    """Return the universal anomaly from the periapsis, for -pi <= nu <= pi."""
    half = 0.5 * nu
    sine = np.sin(half)
    ratio = arctan_ratio((1.0 - e) * sine * sine, np.sqrt(1.0 + e) * np.cos(half), signed=True)
    return 2.0 * sine * ratio


def _true_of_anomaly(s: Scalar, e: Scalar) -> Any:
    c0, c1 = stumpff((0, 1), 0.25 * (1.0 - e) * s * s, signed=True)
    return 2.0 * np.arctan2(0.5 * np.sqrt(1.0 + e) * s * c1, c0)


def _check_anomaly(angle: Scalar, e: Scalar, name: str) -> tuple[Any, Any, Any]:
    """Return an anomaly, the eccentricity, and sqrt(|1 - e|)."""
    angle, e = as_finite(angle, name), as_finite(e, "e")
    check_that(lambda x: (x >= 0.0) & (x != 1.0), e, "e", _NO_ANOMALY)
    return angle, e, np.sqrt(np.abs(1.0 - e))


_NO_ANOMALY = (
    "must not be negative, nor 1: a parabola has no eccentric or mean anomaly; use "
    "KeplerElements(...).time_since_periapsis there"
)


def check_true_anomaly(nu: Scalar, e: Scalar, name: str = "nu") -> None:
    """Raise where a known true anomaly lies beyond the asymptotes of a hyperbola."""
    values, e_values = concrete(as_finite(nu, name)), concrete(as_finite(e, "e"))
    if values is None or e_values is None:
        return
    open_e = np.maximum(e_values, 1.0)
    limit = np.where(e_values < 1.0, np.inf, np.arccos(-1.0 / open_e))
    if np.any(np.abs(values) >= limit):
        raise ValueError(
            f"{name} must lie within the asymptotes, |{name}| < arccos(-1/e) = "
            f"{np.asarray(limit).tolist()} rad for e = {e_values.tolist()}, got {values.tolist()}"
        )


def true_to_eccentric(nu: Scalar, e: Scalar) -> Any:
    """Return the eccentric anomaly of a true anomaly; on a hyperbola the hyperbolic anomaly.

    Parameters
    ----------
    nu : array_like
        True anomaly in rad. Whole revolutions on an ellipse are kept.
    e : array_like
        Eccentricity, not 1. The arguments broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import true_to_eccentric
    >>> float(np.rad2deg(true_to_eccentric(np.deg2rad(120.0), 0.37255)).round(3))
    99.011
    """
    nu, e, root = _check_anomaly(nu, e, "nu")
    check_true_anomaly(nu, e)
    turns = _turns(nu, e)
    return root * _anomaly_of_true(nu - TURN * turns, e) + TURN * turns


def eccentric_to_true(E: Scalar, e: Scalar) -> Any:
    """Return the true anomaly of an eccentric anomaly, or of a hyperbolic one if ``e > 1``.

    Parameters
    ----------
    E : array_like
        Eccentric anomaly in rad, or hyperbolic anomaly. Whole revolutions are kept.
    e : array_like
        Eccentricity, not 1. The arguments broadcast.

    Examples
    --------
    >>> from archimedes.environment import eccentric_to_true
    >>> round(float(eccentric_to_true(2.0, 0.5)), 6)
    2.43158
    """
    E, e, root = _check_anomaly(E, e, "E")
    turns = _turns(E, e)
    return _true_of_anomaly((E - TURN * turns) / root, e) + TURN * turns


def eccentric_to_mean(E: Scalar, e: Scalar) -> Any:
    """Return the mean anomaly, ``E - e sin E``, or ``e sinh E - E`` if ``e > 1``.

    Both are computed without the cancellation of their terms.

    Parameters
    ----------
    E : array_like
        Eccentric anomaly in rad, or hyperbolic anomaly. Whole revolutions are kept.
    e : array_like
        Eccentricity, not 1. The arguments broadcast.

    Examples
    --------
    >>> from archimedes.environment import eccentric_to_mean
    >>> round(float(eccentric_to_mean(2.0, 0.5)), 6)
    1.545351
    """
    E, e, root = _check_anomaly(E, e, "E")
    turns = _turns(E, e)
    time, _ = _time((E - TURN * turns) / root, 1.0 - e)
    return root * root * root * time + TURN * turns


def mean_to_eccentric(M: Scalar, e: Scalar) -> Any:
    """Solve Kepler's equation, ``E - e sin E = M``, or ``e sinh E - E = M`` if ``e > 1``.

    The solution is exact to rounding for every eccentricity, and derivatives to third order are.

    Parameters
    ----------
    M : array_like
        Mean anomaly in rad. Whole revolutions are kept.
    e : array_like
        Eccentricity, not 1. The arguments broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import mean_to_eccentric
    >>> float(np.rad2deg(mean_to_eccentric(np.deg2rad(235.4), 0.4)).round(6))
    220.512075
    """
    M, e, root = _check_anomaly(M, e, "M")
    s, turns = _universal_anomaly(M / (root * root * root), 1.0 - e)
    return root * s + TURN * turns


def true_to_mean(nu: Scalar, e: Scalar) -> Any:
    """Return the mean anomaly of a true anomaly.

    Parameters
    ----------
    nu : array_like
        True anomaly in rad. Whole revolutions on an ellipse are kept.
    e : array_like
        Eccentricity, not 1. The arguments broadcast.

    Examples
    --------
    >>> from archimedes.environment import true_to_mean
    >>> round(float(true_to_mean(2.0, 0.1)), 6)
    1.812564
    """
    return eccentric_to_mean(true_to_eccentric(nu, e), e)


def mean_to_true(M: Scalar, e: Scalar) -> Any:
    """Return the true anomaly of a mean anomaly.

    Parameters
    ----------
    M : array_like
        Mean anomaly in rad. Whole revolutions on an ellipse are kept.
    e : array_like
        Eccentricity, not 1. The arguments broadcast.

    Examples
    --------
    >>> from archimedes.environment import mean_to_true, true_to_mean
    >>> round(float(mean_to_true(true_to_mean(2.0, 3.0 / 4.0), 3.0 / 4.0)), 12)
    2.0
    """
    return eccentric_to_true(mean_to_eccentric(M, e), e)


def _check_state(p_I: Vec3, v_I: Vec3) -> tuple[Any, Any]:
    """Return position and velocity (..., 3) that broadcast against each other."""
    p, v = check_away_from_centre(p_I, "p_I"), check_vector(v_I, 3, "v_I")
    try:
        np.broadcast_shapes(tuple(p.shape), tuple(v.shape))
    except ValueError:
        raise ValueError(
            "p_I and v_I must be one state or batches of the same shape, got shapes "
            f"{tuple(p.shape)} and {tuple(v.shape)}"
        ) from None
    return p, v


# ---- motion --------------------------------------------------------------------------------------


def kepler_propagate(p_I: Vec3, v_I: Vec3, dt: Scalar, mu: Scalar = WGS84.mu) -> tuple[Any, Any]:
    """Return position and velocity after a time, under the attraction of a point mass alone.

    The orbit may be any conic, a radial one too. No elements are involved: values and derivatives,
    such as those of the transition matrix, are regular on round and equatorial orbits.

    Parameters
    ----------
    p_I : array (..., 3)
        Position in m from the attracting mass, in axes that do not rotate.
    v_I : array (..., 3)
        Velocity in m/s, in the same axes.
    dt : array_like
        Time in s, also negative. It broadcasts against the batch.
    mu : float, optional
        Gravitational parameter in m^3/s^2. By default that of the Earth.

    Returns
    -------
    (array, array)
        Position in m and velocity in m/s.

    Examples
    --------
    Example 2-4 of Vallado:

    >>> import numpy as np
    >>> from archimedes.environment import kepler_propagate
    >>> p, v = np.array([1131.340, -2282.343, 6672.423]), np.array([-5.64305, 4.30333, 2.42879])
    >>> p_I, v_I = kepler_propagate(1e3 * p, 1e3 * v, 40 * 60.0, 3.986004418e14)
    >>> (1e-3 * p_I).round(3)
    array([-4219.753,  4363.029, -3958.767])
    """
    p_I, v_I = _check_state(p_I, v_I)
    dt, mu = as_finite(dt, "dt"), as_finite(mu, "mu")
    check_that(lambda x: x > 0.0, mu, "mu", "must be positive, in m^3/s^2")
    r, v = components(p_I, 3), components(v_I, 3)
    r0 = np.sqrt(dot(r, r))
    speed = np.sqrt(mu / r0)  # of a round orbit here
    rate = speed / r0
    sigma = dot(r, v) / (r0 * speed)
    beta = 2.0 - dot(v, v) / (speed * speed)
    s, _ = _universal_anomaly(rate * dt, beta, sigma)
    c1, c2 = stumpff((1, 2), beta * s * s, signed=True)
    fall, rise = s * s * c2, s * c1
    distance = 1.0 + (1.0 - beta) * fall + sigma * rise
    f, g = 1.0 - fall, (rise + sigma * fall) / rate
    f_rate, g_rate = -rise / distance * rate, 1.0 - fall / distance
    return (
        join([f * a + g * b for a, b in zip(r, v)]),
        join([f_rate * a + g_rate * b for a, b in zip(r, v)]),
    )


@struct
class KeplerElements:
    r"""An orbit of two bodies and a point on it, by Kepler's elements: any conic, or a batch.

    The first element is the semi-latus rectum, ``p = a (1 - e^2)``, which a parabola has too;
    `from_classical` takes the semi-major axis. Angles are in rad.

    Parameters
    ----------
    p : array_like
        Semi-latus rectum in m.
    e : array_like
        Eccentricity: 0 for a round orbit, 1 for a parabola, more for a hyperbola.
    i : array_like, optional
        Inclination to the xy plane, 0 to pi. 0 by default.
    raan : array_like, optional
        Right ascension of the ascending node, from the x axis. 0 by default.
    argp : array_like, optional
        Argument of the periapsis, from the node. 0 by default.
    nu : array_like, optional
        True anomaly, from the periapsis. 0 by default.
    mu : float, optional
        Gravitational parameter in m^3/s^2. By default that of the Earth.

    Examples
    --------
    Example 2-6 of Vallado:

    >>> import numpy as np
    >>> from archimedes.environment import KeplerElements
    >>> angles = np.deg2rad([87.87, 227.89, 53.38, 92.335])
    >>> orbit = KeplerElements(11067790.0, 0.83285, *angles)
    >>> p_I, v_I = orbit.as_cartesian()
    >>> (1e-3 * p_I).round(1)
    array([6525.4, 6861.5, 6449.1])
    >>> later = orbit.propagate(orbit.period)
    >>> bool(np.allclose(later.as_cartesian()[0], p_I))
    True
    """

    p: Any = field(units="m")
    e: Any = field(units="")
    i: Any = field(units="rad", default=0.0)
    raan: Any = field(units="rad", default=0.0)
    argp: Any = field(units="rad", default=0.0)
    nu: Any = field(units="rad", default=0.0)
    mu: Any = field(units="m^3/s^2", default=WGS84.mu)

    def __post_init__(self) -> None:
        """Check the elements where they are known."""
        check_struct(self, positive="p mu", not_negative="e")
        for name in ("e", "i", "raan", "argp", "nu"):
            as_finite(getattr(self, name), f"KeplerElements.{name}")
        check_true_anomaly(self.nu, self.e, "KeplerElements.nu")

    @classmethod
    def from_classical(
        cls,
        a: Scalar,
        e: Scalar,
        i: Scalar = 0.0,
        raan: Scalar = 0.0,
        argp: Scalar = 0.0,
        nu: Scalar | None = None,
        *,
        M: Scalar | None = None,
        mu: Scalar = WGS84.mu,
    ) -> Self:
        """Make an orbit of its semi-major axis, with a true or a mean anomaly.

        Parameters
        ----------
        a : array_like
            Semi-major axis in m, negative for a hyperbola.
        e : array_like
            Eccentricity, not 1.
        i, raan, argp : array_like, optional
            Inclination, right ascension of the ascending node and argument of the periapsis in
            rad. 0 by default.
        nu : array_like, optional
            True anomaly in rad. 0 by default.
        M : array_like, optional
            Mean anomaly in rad, instead of `nu`.
        mu : float, optional
            Gravitational parameter in m^3/s^2. By default that of the Earth.

        Examples
        --------
        >>> from archimedes.environment import KeplerElements
        >>> round(float(KeplerElements.from_classical(42164.14e3, 0.0).period), 1)
        86164.0
        """
        if nu is not None and M is not None:
            raise ValueError("KeplerElements.from_classical: give nu or M, not both")
        a, e = as_finite(a, "a"), as_finite(e, "e")
        p = a * (1.0 - e) * (1.0 + e)
        values = concrete(p)
        if values is not None and not np.all(values > 0.0):
            raise ValueError(
                "KeplerElements.from_classical: a must be positive for e < 1 and negative for "
                f"e > 1, got a = {concrete(a)} and e = {concrete(e)}; a parabola has no a: give p "
                "to KeplerElements(p, e, ...)"
            )
        if M is not None:
            nu = mean_to_true(M, e)
        return cls(*map(_number, (p, e, i, raan, argp, 0.0 if nu is None else nu, mu)))

    @classmethod
    def from_cartesian(cls, p_I: Vec3, v_I: Vec3, mu: Scalar = WGS84.mu) -> Self:
        """Make the orbit of a position and a velocity.

        `raan` and `argp` are in 0 to 2 pi, `nu` in -pi to pi. On a round orbit the periapsis is put
        at the node, so `argp` is 0 and `nu` the argument of latitude. On an equatorial orbit the
        node is put on the x axis, so `raan` is 0. There these two do not change under
        differentiation, and `e` and `i` are taken as even functions, of derivative zero; so
        propagate a state by `kepler_propagate` if derivatives matter.

        Parameters
        ----------
        p_I : array (..., 3)
            Position in m from the attracting mass, in axes that do not rotate.
        v_I : array (..., 3)
            Velocity in m/s, in the same axes. It must not be along the position.
        mu : float, optional
            Gravitational parameter in m^3/s^2. By default that of the Earth.

        Examples
        --------
        Example 2-5 of Vallado:

        >>> import numpy as np
        >>> from archimedes.environment import KeplerElements
        >>> p_I = 1e3 * np.array([6524.834, 6862.875, 6448.296])
        >>> v_I = 1e3 * np.array([4.901327, 5.533756, -1.976341])
        >>> orbit = KeplerElements.from_cartesian(p_I, v_I)
        >>> round(float(orbit.e), 4), float(np.rad2deg(orbit.nu).round(2))
        (0.8329, 92.34)
        """
        p_I, v_I = _check_state(p_I, v_I)
        mu = as_finite(mu, "mu")
        check_that(lambda x: x > 0.0, mu, "mu", "must be positive, in m^3/s^2")
        x, y, z = (as_array(c) for c in components(p_I, 3))
        r = scaled_norm([x, y, z])
        h_x, h_y, h_z = h = [as_array(c) for c in components(cross(p_I, v_I), 3)]
        momentum, across = scaled_norm(h), scaled_norm([h_x, h_y, 0.0 * h_x])
        check_that(
            lambda h: h > 0.0, momentum, "the angular momentum p_I x v_I",
            "must not be zero: a radial orbit has no plane and no elements; kepler_propagate "
            "follows it",
        )  # fmt: skip
        p = momentum * momentum / mu
        # e cos(nu) and e sin(nu)
        cosine, sine = p / r - 1.0, momentum / mu * np.sum(p_I * v_I, axis=-1) / r
        e = scaled_norm([cosine, sine, 0.0 * sine])
        equatorial, is_round = across <= ROUNDING * momentum, e <= ROUNDING
        width = np.where(equatorial, 1.0, across)
        raan = np.where(equatorial, 0.0, _angle(h_x, np.where(equatorial, -1.0, -h_y)))
        # The argument of latitude, from the node in the direction of motion.
        latitude = np.arctan2(
            np.where(equatorial, np.where(h_z < 0.0, -y, y), momentum * z / width),
            np.where(equatorial, x, (h_x * y - h_y * x) / width),
        )
        nu = np.where(
            is_round, latitude,
            np.arctan2(np.where(is_round, 0.0, sine), np.where(is_round, 1.0, cosine)),
        )  # fmt: skip
        lost = concrete((e >= 1.0) & (np.abs(nu) >= np.pi))
        if lost is not None and np.any(lost):
            raise ValueError(
                "KeplerElements.from_cartesian: the orbit is radial to rounding (1 - e is below "
                f"1e-16 for p_I = {p_I} and v_I = {v_I}), so its elements are lost; "
                "kepler_propagate follows it. Are both in m and m/s?"
            )
        apart = latitude - nu
        argp = np.where(apart < 0.0, apart + TURN, apart)
        i = np.arctan2(across, h_z)
        return cls(*map(_number, (p, e, i, raan, argp, nu, mu)))

    def as_cartesian(self) -> tuple[Any, Any]:
        """Return position (..., 3) in m and velocity (..., 3) in m/s, in axes that do not rotate.

        Examples
        --------
        >>> from archimedes.environment import KeplerElements
        >>> p_I, v_I = KeplerElements(7e6, 0.0).as_cartesian()
        >>> p_I, v_I.round(3)
        (array([7000000.,       0.,       0.]), array([  -0.   , 7546.053,    0.   ]))
        """
        p, e, nu, mu = (as_array(getattr(self, name), name) for name in ("p", "e", "nu", "mu"))
        half = np.cos(0.5 * nu)
        r = p / ((1.0 - e) + 2.0 * e * half * half)  # 1 + e cos(nu), without its cancellation
        cosine, sine, speed = np.cos(nu), np.sin(nu), np.sqrt(mu / p)
        return self._from_orbit_plane(r * cosine, r * sine), self._from_orbit_plane(
            -speed * sine, speed * (e + cosine)
        )

    def _from_orbit_plane(self, x: Scalar, y: Scalar) -> Any:
        """Return the vector (..., 3) of components towards the periapsis and across."""
        raan, i, argp = (as_array(getattr(self, name), name) for name in ("raan", "i", "argp"))
        c, s = np.cos(argp), np.sin(argp)
        x, y = c * x - s * y, s * x + c * y
        z, y = np.sin(i) * y, np.cos(i) * y
        c, s = np.cos(raan), np.sin(raan)
        return np.stack(np.broadcast_arrays(c * x - s * y, s * x + c * y, z), axis=-1)

    @property
    def a(self) -> Any:
        """Semi-major axis in m: negative for a hyperbola, infinite for a parabola."""
        return self._divide(self.p, (1.0 - as_array(self.e)) * (1.0 + as_array(self.e)))

    @property
    def periapsis(self) -> Any:
        """Least distance in m from the attracting mass."""
        return as_array(self.p) / (1.0 + as_array(self.e))

    @property
    def apoapsis(self) -> Any:
        """Largest distance in m from the attracting mass: infinite from a parabola on."""
        closed = as_array(self.e) < 1.0
        return np.where(closed, self._divide(self.p, np.where(closed, 1.0 - self.e, 0.0)), np.inf)

    @property
    def energy(self) -> Any:
        """Energy per mass in J/kg: kinetic and potential, negative for an ellipse."""
        e = as_array(self.e)
        return -0.5 * as_array(self.mu) * (1.0 - e) * (1.0 + e) / as_array(self.p)

    @property
    def angular_momentum(self) -> Any:
        """Angular momentum per mass in m^2/s."""
        return np.sqrt(as_array(self.mu) * as_array(self.p))

    @property
    def mean_motion(self) -> Any:
        """Rate of the mean anomaly in rad/s: 0 for a parabola."""
        return self._rate() * self._root() ** 3

    @property
    def period(self) -> Any:
        """Period in s: infinite from a parabola on."""
        closed = as_array(self.e) < 1.0
        return np.where(closed, self._divide(TURN, np.where(closed, self.mean_motion, 0.0)), np.inf)

    @property
    def eccentric_anomaly(self) -> Any:
        """Eccentric anomaly in rad, or hyperbolic anomaly; 0 for a parabola, which has none."""
        s, turns = self._anomaly()
        return self._root() * s + TURN * turns

    @property
    def mean_anomaly(self) -> Any:
        """Mean anomaly in rad; 0 for a parabola, which has none."""
        s, turns = self._anomaly()
        time, _ = _time(s, 1.0 - as_array(self.e))
        return self._root() ** 3 * time + TURN * turns

    @property
    def time_since_periapsis(self) -> Any:
        """Time in s since the nearest passage of the periapsis: negative on the way to it."""
        s, _ = self._anomaly()
        time, _ = _time(s, 1.0 - as_array(self.e))
        return time / self._rate()

    def propagate(self, dt: Scalar) -> Self:
        """Return the elements after a time, by Kepler's equation: only `nu` changes.

        Parameters
        ----------
        dt : array_like
            Time in s, also negative. It broadcasts against the batch. The result has `nu` in -pi
            to pi.

        Examples
        --------
        >>> import numpy as np
        >>> from archimedes.environment import KeplerElements
        >>> comet = KeplerElements(3e11, 1.0, mu=1.32712440018e20)  # a parabola around the Sun
        >>> comet.propagate(86400.0 * np.array([-30.0, 0.0, 30.0])).nu.round(4)
        array([-0.672,  0.   ,  0.672])
        """
        e, rate = as_array(self.e, "e"), self._rate()
        s, _ = self._anomaly()
        time, _ = _time(s, 1.0 - e)
        s, _ = _universal_anomaly(time + rate * as_finite(dt, "dt"), 1.0 - e)
        return self.replace(nu=_true_of_anomaly(s, e))  # type: ignore[attr-defined]

    def _anomaly(self) -> tuple[Any, Any]:
        """Return the universal anomaly from the nearest periapsis, and whole revolutions."""
        nu, e = as_array(self.nu, "nu"), as_array(self.e, "e")
        turns = _turns(nu, e)
        return _anomaly_of_true(nu - TURN * turns, e), turns

    def _rate(self) -> Any:
        """Return the angular rate in rad/s of a round orbit at the distance of the periapsis."""
        q = self.periapsis
        return np.sqrt(as_array(self.mu) / q) / q

    def _root(self) -> Any:
        """Return sqrt(|1 - e|), of derivative zero at a parabola."""
        size = np.abs(1.0 - as_array(self.e))
        return np.where(size == 0.0, 0.0, np.sqrt(np.where(size == 0.0, 1.0, size)))

    @staticmethod
    def _divide(above: Any, below: Any) -> Any:
        """Return the quotient, infinite and of derivative zero where the divisor is zero."""
        zero = below == 0.0
        return np.where(zero, np.inf, above / np.where(zero, 1.0, below))


def _number(x: Any) -> Any:
    """Return a known number as a float, for printing, and anything else as it is."""
    values = concrete(x)
    return x if values is None or values.ndim else float(values)


def _angle(y: Scalar, x: Scalar) -> Any:
    """Return the angle of the point (x, y) in 0 to 2 pi."""
    angle = np.arctan2(y, x)
    return np.where(angle < 0.0, angle + TURN, angle)
