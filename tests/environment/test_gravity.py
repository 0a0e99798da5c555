"""Gravity against published values, boule, pyshtools and identities."""

from __future__ import annotations

import boule
import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import (
    WGS84,
    Ellipsoid,
    J2Gravity,
    NormalGravity,
    PointMassGravity,
    SphericalHarmonicGravity,
    ThirdBodyGravity,
    UniformGravity,
    geodetic_to_ecef,
    gravity_gradient_torque,
    ned,
)
from tests.environment.backends import check_batched, check_everywhere
from tests.optional_packages import import_or_skip


def centrifugal(p, omega=WGS84.omega):
    return omega**2 * p * [1.0, 1.0, 0.0]


def random_field(degree, seed=0):
    rng = np.random.default_rng(seed)
    C, S = (np.tril(1e-6 * rng.normal(size=(degree + 1, degree + 1))) for _ in range(2))
    C[0, 0], S[:, 0] = 1.0, 0.0
    return SphericalHarmonicGravity(3.986e14, 6378136.3, C, S)


def random_points(count, radius=7e6, seed=1):
    p = np.random.default_rng(seed).normal(size=(count, 3))
    return radius * p / np.linalg.norm(p, axis=-1, keepdims=True)


MODELS = {
    "uniform": UniformGravity(np.array([0.0, 0.0, 9.81])),
    "point mass": PointMassGravity(),
    "J2": J2Gravity(),
    "normal": NormalGravity(),
    "harmonics": random_field(5),
}


@pytest.mark.parametrize(
    ("lat", "alt", "size"),
    [
        (0, 0, 9.780325335904),
        (45, 0, 9.806197769377),
        (90, 0, 9.832184937863),
        (45, 1000, 9.8031128969358),
        (45, 10000, 9.7754141882275),
        (60, 4e5, 8.6923870263914),
    ],
)
def test_normal_gravity_published(lat, alt, size):
    p = geodetic_to_ecef(np.deg2rad(lat), 0.3, alt)
    g = NormalGravity()(p) + centrifugal(p)
    assert np.linalg.norm(g) == pytest.approx(size, rel=1e-13)


def test_normal_gravity_against_boule():
    lat, alt = np.random.default_rng(0).uniform([-90, 0], [90, 0.0], (100_000, 2)).T
    p = geodetic_to_ecef(np.deg2rad(lat), 0.0, alt)
    g = NormalGravity()(p) + centrifugal(p)
    expected = 1e-5 * boule.WGS84.normal_gravity((0.0, lat, alt))
    np.testing.assert_allclose(np.linalg.norm(g, axis=-1), expected, rtol=2e-9)
    # On the surface gravity is normal to the ellipsoid: that is what makes it level.
    down = ned(np.deg2rad(lat), np.zeros_like(lat)).rotate(g)
    np.testing.assert_allclose(down[:, :2], 0.0, atol=2e-14)


def test_normal_gravity_of_a_sphere_at_rest_is_a_point_mass():
    p = random_points(20)
    ball = Ellipsoid(6371e3, 0.0, 3.986e14)
    np.testing.assert_allclose(NormalGravity(ball)(p), PointMassGravity(3.986e14)(p), rtol=1e-14)


@pytest.mark.parametrize("flattening", [1e-9, 1e-4, 0.01, 0.1])
def test_normal_field_has_no_divergence(flattening):
    """Series and closed form of the Legendre functions meet: Laplace's equation holds."""
    planet = Ellipsoid(6e6, flattening, 4e14, 1e-4)
    for p in random_points(10, 9e6):
        J = arc.jac(NormalGravity(planet))(p)
        assert abs(np.trace(J)) < 2e-13 * np.abs(J).max()
        np.testing.assert_allclose(J, J.T, atol=1e-14 * np.abs(J).max())


def test_harmonics_against_pyshtools():
    pyshtools = import_or_skip("pyshtools")
    model = random_field(20)
    field = np.array([model.C, model.S])
    for p in random_points(50):
        r = np.linalg.norm(p)
        lat, lon = np.arcsin(p[2] / r), np.arctan2(p[1], p[0])
        out = pyshtools.gravmag.MakeGravGridPoint(
            field, model.mu, model.radius, r, np.rad2deg(lat), np.rad2deg(lon)
        )
        south = [np.sin(lat) * np.cos(lon), np.sin(lat) * np.sin(lon), -np.cos(lat)]
        east = [-np.sin(lon), np.cos(lon), 0.0]
        expected = np.stack([p / r, south, east], axis=-1) @ out
        np.testing.assert_allclose(model(p), expected, rtol=0, atol=1e-12 * 8)


def test_harmonics_of_degree_two_are_J2():
    C = np.diag([1.0, 0.0, 0.0])
    C[2, 0] = -WGS84.J2 / np.sqrt(5.0)
    C[1, 1] = C[2, 2] = 0.0
    model = SphericalHarmonicGravity(C=C, S=np.zeros((3, 3)))
    p = random_points(30)
    np.testing.assert_allclose(model(p), J2Gravity()(p), rtol=1e-14, atol=2e-15)


def test_harmonics_at_the_poles_and_their_gradient():
    model = random_field(8)
    for p in (np.array([0.0, 0.0, 7e6]), np.array([0.0, 0.0, -7e6]), np.array([7e6, 0.0, 0.0])):
        J = arc.jac(model)(p)
        assert np.all(np.isfinite(J))
        np.testing.assert_allclose(J, J.T, atol=1e-18)
        assert abs(np.trace(J)) < 1e-19


def test_the_program_does_not_grow_with_the_square_of_the_degree():
    p = np.array([7e6, 1e5, 2e5])
    sizes = [arc.compile(random_field(n)).statistics(p).total for n in (8, 16)]
    assert sizes[1] < 2.5 * sizes[0]


@pytest.mark.parametrize("name", MODELS)
def test_backends_and_batches(name):
    p = random_points(9)
    check_everywhere(MODELS[name], p[0])
    check_batched(MODELS[name], p)
    np.testing.assert_allclose(MODELS[name](p)[3], MODELS[name](p[3]), rtol=1e-14, atol=1e-14)


def test_third_body_loses_nothing_to_cancellation():
    sun = np.array([1.4e11, 3e10, 1e10])
    model = ThirdBodyGravity(1.327e20, lambda t: sun)
    p = np.array([7e6, -1e6, 2e6])
    import mpmath as mp

    with mp.workdps(40):
        d = [mp.mpf(float(a)) - mp.mpf(float(b)) for a, b in zip(sun, p)]
        far, near = (mp.sqrt(sum(mp.mpf(float(c)) ** 2 for c in v)) ** 3 for v in (sun, d))
        exact = [mp.mpf(1.327e20) * (dk / near - mp.mpf(float(s)) / far) for dk, s in zip(d, sun)]
    np.testing.assert_allclose(model(p, 0.0), np.array(exact, float), rtol=1e-14)


def test_gravity_gradient_is_the_moment_of_the_field():
    """The moment of point masses in the field, to the order of size over distance."""
    masses = np.array([2.0, 3.0, 1.5, 4.0])
    at = np.random.default_rng(2).normal(size=(4, 3))
    at = at - (masses @ at) / masses.sum()
    J = sum(m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(masses, at))
    r = np.array([5e6, -4e6, 3e6])
    gradient = arc.jac(PointMassGravity(3.986e14))(r)
    moment = sum(m * np.cross(a, gradient @ a) for m, a in zip(masses, at))
    np.testing.assert_allclose(gravity_gradient_torque(3.986e14, r, J), moment, rtol=1e-12)


def test_errors_name_argument_and_remedy():
    with pytest.raises(ValueError, match="p_E is the centre of the planet"):
        PointMassGravity()(np.zeros(3))
    with pytest.raises(ValueError, match=r"PointMassGravity\.mu must be positive"):
        PointMassGravity(-1.0)
    with pytest.raises(ValueError, match="C and S must be square"):
        SphericalHarmonicGravity(C=np.ones((3, 2)), S=np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"J2Gravity\.radius must be positive"):
        J2Gravity(radius=0.0)
