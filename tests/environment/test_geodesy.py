"""Geodetic coordinates against extended precision, ERFA, and pymap3d."""

from __future__ import annotations

import erfa
import mpmath as mp
import numpy as np
import pymap3d
import pytest

import archimedes as arc
from archimedes.environment import (
    SPHERICAL_EARTH,
    WGS84,
    Ellipsoid,
    ecef_to_geodetic,
    enu,
    geodetic_rates,
    geodetic_to_ecef,
    local_tangent_plane,
    ned,
)
from tests.environment.backends import check_batched, check_everywhere

PUBLISHED = [
    ((45, 45, 1000), (3194919.145061, 3194919.145061, 4488055.515647)),
    ((-33.8688, 151.2093, 58), (-4646093.477288, 2553229.535817, -3534404.710910)),
    ((89.95, -45, 3048), (3950.858827, -3950.858827, 6359797.876300)),
    ((30, -120, 4e5), (-2937333.400403, -5087610.688268, 3370373.735384)),
    ((51.6, 10, 2e7), (16143846.045806, 2846595.630279, 20649150.024156)),
]


def exact_inverse(p, lat, ellipsoid=WGS84):
    """Latitude and height in 40 digits, by Newton's method from a good latitude."""
    with mp.workdps(40):
        a, f = mp.mpf(ellipsoid.a), mp.mpf(ellipsoid.f)
        e2, phi = f * (2 - f), mp.mpf(float(lat))
        rho, z = mp.hypot(float(p[0]), float(p[1])), mp.mpf(float(p[2]))
        for _ in range(6):
            s, c = mp.sin(phi), mp.cos(phi)
            W = mp.sqrt(1 - e2 * s * s)
            residual = z * c - rho * s + e2 * a / W * s * c
            phi += residual / (rho * c + z * s - a * W + a * (1 - e2) / W**3)
        s, c = mp.sin(phi), mp.cos(phi)
        return phi, rho * c + z * s - a * mp.sqrt(1 - e2 * s * s)


def points(rng, low, high, count):
    lat = rng.uniform(-np.pi / 2, np.pi / 2, count)
    near = 10.0 ** rng.uniform(-18, -1, count)
    lat[::3] = (np.pi / 2 - near[::3]) * rng.choice([-1, 1], len(lat[::3]))
    lat[1::3] = near[1::3] * rng.choice([-1, 1], len(lat[1::3]))
    return geodetic_to_ecef(lat, rng.uniform(-np.pi, np.pi, count), rng.uniform(low, high, count))


@pytest.mark.parametrize(("place", "position"), PUBLISHED)
def test_published_positions(place, position):
    lat, lon, alt = place
    p = geodetic_to_ecef(np.deg2rad(lat), np.deg2rad(lon), alt)
    np.testing.assert_allclose(p, position, atol=6e-7)
    back = ecef_to_geodetic(p)
    np.testing.assert_allclose(np.rad2deg(back[:2]), [lat, lon], rtol=0, atol=1e-13)
    assert back[2] == pytest.approx(alt, abs=4e-9, rel=1e-15)


@pytest.mark.parametrize(
    ("low", "high"), [(-6.3e6, -1e4), (-1e4, 1e5), (1e5, 1e7), (1e7, 5e7), (5e7, 1e9)]
)
def test_inverse_against_extended_precision(low, high):
    """Within 3e-9 m or 4 ulp, and 1e-15 rad, from deep inside the Earth to beyond GEO."""
    p = points(np.random.default_rng(int(high) % 97), low, high, 300)
    lat, lon, alt = ecef_to_geodetic(p)
    for k in range(len(p)):
        phi, h = exact_inverse(p[k], lat[k])
        assert abs(phi - float(lat[k])) < 1e-15
        assert abs(h - float(alt[k])) < max(3e-9, 4 * np.spacing(abs(float(h))))
        assert abs(mp.atan2(p[k, 1], p[k, 0]) - float(lon[k])) < 1e-15


def test_poles_equator_and_axis():
    for z in (WGS84.b, -WGS84.b, 1e5, -1e5, 1e9):
        lat, lon, alt = ecef_to_geodetic(np.array([0.0, 0.0, z]))
        assert (lat, lon) == (np.copysign(np.pi / 2, z), 0.0)
        assert alt == pytest.approx(abs(z) - WGS84.b, abs=2e-9)
    for x in (WGS84.a, 1e5, 4.2e7):
        assert ecef_to_geodetic(np.array([x, 0.0, 0.0])) == (0.0, 0.0, x - WGS84.a)


def test_against_erfa_and_pymap3d():
    rng = np.random.default_rng(3)
    lat, lon = rng.uniform(-np.pi / 2, np.pi / 2, 100_000), rng.uniform(-np.pi, np.pi, 100_000)
    alt = rng.uniform(-1e4, 1e6, 100_000)
    p = geodetic_to_ecef(lat, lon, alt)
    np.testing.assert_allclose(p, erfa.gd2gc(1, lon, lat, alt), rtol=0, atol=5e-9)
    x, y, z = pymap3d.geodetic2ecef(lat, lon, alt, deg=False)
    np.testing.assert_allclose(p, np.stack([x, y, z], -1), rtol=0, atol=5e-9)
    elon, elat, ealt = erfa.gc2gd(1, p)
    back = ecef_to_geodetic(p)
    np.testing.assert_allclose(back[0], elat, rtol=0, atol=2e-12)
    np.testing.assert_allclose(back[1], elon, rtol=0, atol=1e-15)
    np.testing.assert_allclose(back[2], ealt, rtol=0, atol=2e-7)


def test_sphere_and_another_planet():
    p = np.array([1e6, -2e6, 6e6])
    lat, lon, alt = ecef_to_geodetic(p, SPHERICAL_EARTH)
    assert lat == pytest.approx(np.arctan2(6e6, np.hypot(1e6, 2e6)), abs=1e-15)
    assert alt == pytest.approx(np.linalg.norm(p) - SPHERICAL_EARTH.a, abs=3e-9)
    saturn = Ellipsoid(6.0268e7, 0.09796)
    p = geodetic_to_ecef(0.7, 1.0, 1e6, saturn)
    lat, lon, alt = ecef_to_geodetic(p, saturn)
    assert (lat, lon) == (pytest.approx(0.7, abs=1e-15), pytest.approx(1.0, abs=1e-15))
    assert alt == pytest.approx(1e6, abs=3e-8)


@pytest.mark.parametrize(
    "p",
    [
        [WGS84.a, 0.0, 0.0],
        [0.0, 0.0, WGS84.b],
        [0.0, 0.0, -7e6],
        [3e6, 4e6, 0.0],
        [7e6, 1e-200, 0.0],
        [4e6, -3e6, 5e6],
    ],
)
def test_derivatives_are_finite_and_right(p):
    p = np.array(p)
    lat, lon, alt = ecef_to_geodetic(p)
    first, _, third = arc.jac(ecef_to_geodetic)(p)
    R = ned(lat, lon).as_matrix()
    # Height grows along the normal; latitude along north over the meridian's radius.
    np.testing.assert_allclose(third, -R[2], atol=1e-15)
    if np.hypot(p[0], p[1]) > 0.0:
        np.testing.assert_allclose(first, R[0] / (WGS84.meridian_radius(lat) + alt), atol=1e-22)
    H = arc.hess(lambda p: ecef_to_geodetic(p)[2])(p)
    assert np.all(np.isfinite(H))
    if np.hypot(p[0], p[1]) > 0.0:
        # The curvature of the parallel surface: one over the two radii plus the height.
        N, M = WGS84.prime_vertical_radius(lat) + alt, WGS84.meridian_radius(lat) + alt
        expected = np.outer(R[0], R[0]) / M + np.outer(R[1], R[1]) / N
        np.testing.assert_allclose(H, expected, atol=1e-20)
    assert all(np.all(np.isfinite(part)) for part in arc.jac(ecef_to_geodetic)(p))


def test_backends_and_batches():
    p = points(np.random.default_rng(5), -1e4, 1e7, 17)
    check_everywhere(ecef_to_geodetic, p[4])
    check_everywhere(geodetic_to_ecef, 0.3, -2.0, 1234.5)
    check_everywhere(lambda p: ned(*ecef_to_geodetic(p)[:2]).as_matrix(), p[2])
    check_batched(ecef_to_geodetic, p)


def test_local_frames():
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(-1.5, 1.5, 50), rng.uniform(-3, 3, 50)
    N, U = ned(lat, lon).as_matrix(), enu(lat, lon).as_matrix()
    np.testing.assert_allclose(
        N @ np.swapaxes(N, -1, -2), np.broadcast_to(np.eye(3), N.shape), atol=1e-15
    )
    np.testing.assert_array_equal(U, N[:, [1, 0, 2]] * [[1], [1], [-1]])
    up = geodetic_to_ecef(lat, lon, 10.0) - geodetic_to_ecef(lat, lon, 0.0)
    np.testing.assert_allclose(ned(lat, lon).rotate(up), np.tile([0, 0, -10.0], (50, 1)), atol=5e-9)


def test_tangent_plane_against_pymap3d():
    site, place = (0.6, -1.2, 300.0), (0.61, -1.19, 5000.0)
    p = geodetic_to_ecef(*place)
    east, north, up = pymap3d.geodetic2enu(*place, *site, deg=False)
    plane = local_tangent_plane(*site, axes="enu")
    np.testing.assert_allclose(plane.apply(p), [east, north, up], atol=1e-8)
    np.testing.assert_allclose(plane.inv().apply(plane.apply(p)), p, atol=5e-9)
    down = local_tangent_plane(*site).apply(p)
    np.testing.assert_allclose(down, [north, east, -up], atol=1e-8)


def test_rates_are_the_derivative_of_the_coordinates():
    place = (0.5, 0.2, 9000.0)
    v = np.array([100.0, -30.0, 5.0])
    v_E = ned(*place[:2]).rotate(v, inverse=True)
    jac = arc.jac(ecef_to_geodetic)(geodetic_to_ecef(*place))
    rates = geodetic_rates(place[0], place[2], v)
    np.testing.assert_allclose(rates, [row @ v_E for row in jac], rtol=1e-12)


def test_errors_name_argument_and_remedy():
    with pytest.raises(ValueError, match=r"lat must be from.*np\.deg2rad"):
        geodetic_to_ecef(45.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"p_E must have shape \(3,\)"):
        ecef_to_geodetic(np.zeros(4))
    with pytest.raises(ValueError, match="p_E must be finite"):
        ecef_to_geodetic(np.array([np.nan, 0, 0]))
    with pytest.raises(ValueError, match=r"Ellipsoid\.f must be a flattening.*1 / it"):
        Ellipsoid(6378137.0, 298.257)
    with pytest.raises(ValueError, match=r"Ellipsoid\.a must be positive"):
        Ellipsoid(-1.0)
    with pytest.raises(ValueError, match="axes='xyz' is not one of"):
        local_tangent_plane(0.0, 0.0, axes="xyz")
