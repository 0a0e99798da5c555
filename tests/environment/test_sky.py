"""Rotation of the Earth, Sun, shadow, magnetic field, frames."""

from __future__ import annotations

import erfa
import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import (
    WGS84,
    ConstantWind,
    ExponentialAtmosphere,
    MagneticDipole,
    MagneticField,
    air_path_angles,
    earth_rotation_angle,
    ecef_to_eci,
    ecef_to_geodetic,
    eci_to_ecef,
    flight_frames,
    geodetic_to_ecef,
    ned,
    read_magnetic_coefficients,
    sun_position,
    sunlit_fraction,
)
from archimedes.environment.sun import ASTRONOMICAL_UNIT, SUN_RADIUS
from archimedes.spatial import EarthReferencedBody, EulerAngles, Quaternion
from tests.environment.backends import check_everywhere

DAYS = np.random.default_rng(0).uniform(2433300.0, 2469000.0, 1000)


def test_rotation_angle_against_erfa():
    difference = earth_rotation_angle(DAYS) - erfa.era00(DAYS, 0.0)
    np.testing.assert_allclose((difference + np.pi) % (2 * np.pi) - np.pi, 0.0, atol=1e-12)
    split = earth_rotation_angle(np.floor(DAYS), DAYS % 1.0) - erfa.era00(np.floor(DAYS), DAYS % 1)
    np.testing.assert_allclose((split + np.pi) % (2 * np.pi) - np.pi, 0.0, atol=5e-14)
    check_everywhere(earth_rotation_angle, 2459000.5, 0.25)


def test_inertial_and_fixed_axes_with_velocities():
    rng = np.random.default_rng(1)
    p, v = 7e6 * rng.normal(size=(20, 3)), 7e3 * rng.normal(size=(20, 3))
    p_E, v_E = eci_to_ecef(p, v, angle=1.234)
    back = ecef_to_eci(p_E, v_E, angle=1.234)
    np.testing.assert_allclose(back[0], p, rtol=1e-14, atol=1e-8)
    np.testing.assert_allclose(back[1], v, rtol=1e-13, atol=1e-11)
    np.testing.assert_allclose(p_E, p @ erfa.rz(1.234, np.eye(3)).T, rtol=1e-14, atol=1e-8)

    # The velocity is the derivative of the position along the motion.
    def path(t):
        return eci_to_ecef(p[0] + v[0] * t, angle=1.234 + WGS84.omega * t)[0]

    np.testing.assert_allclose(arc.jac(path)(0.0), v_E[0], rtol=1e-12)
    assert eci_to_ecef(p[0], angle=0.0)[1] is None


def apparent_sun(days):
    """Direction and distance in au by ERFA, with aberration, in the mean axes of date."""
    around_sun, around_barycentre = erfa.epv00(days, 0.0)
    distance = np.linalg.norm(around_sun["p"], axis=-1)
    speed = around_barycentre["v"] / 173.1446326846693  # speed of light in au per day
    lorentz = np.sqrt(1.0 - np.sum(speed**2, axis=-1))
    seen = erfa.ab(-around_sun["p"] / distance[:, None], speed, distance, lorentz)
    return np.einsum("nij,nj->ni", erfa.pmat06(days, 0.0), seen), distance


@pytest.mark.filterwarnings("ignore:ERFA function")  # says that 1900 to 2100 is its best range
@pytest.mark.parametrize("span", [(1950, 2050), (1900, 2100), (1800, 2200)])
def test_sun_against_erfa(span):
    """The direction is good to 0.002 degrees and the distance to 3e-5 au."""
    first, last = (2451545.0 + 365.25 * (year - 2000) for year in span)
    days = np.random.default_rng(0).uniform(first, last, 5000)
    expected, distance = apparent_sun(days)
    got = sun_position(days) / ASTRONOMICAL_UNIT
    size = np.linalg.norm(got, axis=-1)
    angle = 2.0 * np.arcsin(0.5 * np.linalg.norm(got / size[:, None] - expected, axis=-1))
    assert np.rad2deg(angle).max() < 0.002
    assert np.abs(size - distance).max() < 3e-5


def test_the_sun_without_aberration_is_within_a_hundredth_of_a_degree():
    earth, _ = erfa.epv00(DAYS, 0.0)
    expected = np.einsum("nij,nj->ni", erfa.pmat06(DAYS, 0.0), -earth["p"])
    expected /= np.linalg.norm(expected, axis=-1)[:, None]
    got = sun_position(DAYS)
    got /= np.linalg.norm(got, axis=-1)[:, None]
    angle = np.rad2deg(2.0 * np.arcsin(0.5 * np.linalg.norm(got - expected, axis=-1)))
    assert angle.min() > 0.003
    assert angle.max() < 0.008


def test_the_sun_in_recorded_code():
    check_everywhere(sun_position, 2459000.5, rtol=1e-12)


def test_shadow():
    sun = np.array([ASTRONOMICAL_UNIT, 0.0, 0.0])
    x, R = -8e6, WGS84.a
    y = np.linspace(0.9 * R, 1.1 * R, 400)
    seen = sunlit_fraction(np.stack([np.full_like(y, x), y, 0 * y], -1), sun)
    assert seen[0] == 0.0 and seen[-1] == 1.0 and np.all(np.diff(seen) >= -1e-15)
    # Borders of umbra and penumbra: cones that touch both spheres.
    d = ASTRONOMICAL_UNIT
    dark, half = np.arcsin((SUN_RADIUS - R) / d), np.arcsin((SUN_RADIUS + R) / d)
    umbra = (R + x * np.sin(dark)) / np.cos(dark)
    penumbra = (R - x * np.sin(half)) / np.cos(half)
    edges = np.array([umbra - 1.0, umbra + 50.0, penumbra - 50.0, penumbra + 1.0])
    at = sunlit_fraction(np.stack([np.full(4, x), edges, np.zeros(4)], -1), sun)
    assert at[0] == 0.0 and 0.0 < at[1] < 0.001 and 0.999 < at[2] < 1.0 and at[3] == 1.0
    # Far beyond the tip of the umbra the Earth covers a ring's worth.
    far = np.array([-3e9, 0.0, 0.0])
    ratio = (np.arcsin(R / 3e9) / np.arcsin(SUN_RADIUS / (d + 3e9))) ** 2
    assert sunlit_fraction(far, sun) == pytest.approx(1.0 - ratio, rel=1e-12)
    check_everywhere(sunlit_fraction, np.array([x, 1.0 * R, 0.0]), sun, rtol=1e-9)
    # On the axis of the shadow nothing changes, and that is what derivatives say.
    np.testing.assert_array_equal(arc.jac(sunlit_fraction)(np.array([x, 0.0, 0.0]), sun), 0.0)


def test_field_of_degree_one_is_the_dipole():
    g, h = np.zeros((2, 2)), np.zeros((2, 2))
    g[1, 0], g[1, 1], h[1, 1] = -29404.8, -1450.9, 4652.5
    for p in 7e6 * np.random.default_rng(0).normal(size=(10, 3)):
        np.testing.assert_allclose(MagneticField(g, h)(p), MagneticDipole()(p), rtol=1e-13)
    check_everywhere(MagneticField(g, h), np.array([6e6, 1e6, 3e6]))
    check_everywhere(MagneticDipole(), np.array([6e6, 1e6, 3e6]))


def test_field_is_free_of_sources():
    rng = np.random.default_rng(4)
    g, h = (np.tril(100.0 * rng.normal(size=(7, 7))) for _ in range(2))
    g[0, 0], h[:, 0] = 0.0, 0.0
    J = arc.jac(MagneticField(g, h))(np.array([4e6, -5e6, 2e6]))
    assert abs(np.trace(J)) < 1e-13 * np.abs(J).max()
    np.testing.assert_allclose(J, J.T, atol=1e-13 * np.abs(J).max())


def test_coefficient_files(tmp_path):
    file = tmp_path / "WMM.COF"
    file.write_text(
        "    2020.0            WMM-2020        12/10/2019\n"
        "  1  0  -29404.5       0.0        6.7        0.0\n"
        "  1  1   -1450.7    4652.9        7.7      -25.1\n"
        "999999999999999999999999999999999999999999999999\n"
    )
    model = read_magnetic_coefficients(file)
    assert (model.epoch, model.g[1, 1], model.dh[1, 1]) == (2020.0, -1450.7, -25.1)
    p = np.array([6.5e6, 0.0, 0.0])
    later = model(p, 2022.0)
    now = MagneticField(model.g + 2 * model.dg, model.h + 2 * model.dh)(p)
    np.testing.assert_allclose(later, now, rtol=1e-14)
    (tmp_path / "bad").write_text("hello\n")
    with pytest.raises(ValueError, match="is not a file of magnetic coefficients"):
        read_magnetic_coefficients(tmp_path / "bad")
    for text in ("2020.0\n1 0 1 2 3\n", "2020.0\n1 0 nan 0 0 0\n"):
        (tmp_path / "row").write_text(text)
        with pytest.raises(ValueError, match="each other line must hold n, m, g, h, dg, dh"):
            read_magnetic_coefficients(tmp_path / "row")
    (tmp_path / "huge").write_text("2020.0\n5000000 0 1 1 1 1\n")
    with pytest.raises(ValueError, match="holds a degree beyond 1000"):
        read_magnetic_coefficients(tmp_path / "huge")
    (tmp_path / "order").write_text("2020.0\n1 2 3 4 5 6\n")
    with pytest.raises(ValueError, match="are not a valid degree and order"):
        read_magnetic_coefficients(tmp_path / "order")


def test_flight_frames():
    lat, lon = 0.6, -1.3
    pos = geodetic_to_ecef(lat, lon, 3000.0)
    att_N = EulerAngles(np.array([0.1, 0.2, 0.3]), "xyz")
    R_BE = att_N.as_matrix() @ ned(lat, lon).as_matrix()
    v_N = np.array([100.0, 5.0, -3.0])
    state = EarthReferencedBody.State(
        pos, Quaternion.from_matrix(R_BE), ned(lat, lon).rotate(v_N, inverse=True), np.zeros(3)
    )
    wind = ConstantWind(np.array([10.0, 0.0, 0.0]))
    frames = flight_frames(angle=0.5, wind=wind)
    t = 100.0
    X = frames.get_transform("ned", "body", t=t, state=state)
    np.testing.assert_allclose(X.r.as_matrix(), att_N.as_matrix(), atol=1e-14)
    p_I = frames.get_transform("body", "eci", t=t, state=state).apply(np.zeros(3))
    expected, _ = ecef_to_eci(pos, angle=0.5 + WGS84.omega * t)
    np.testing.assert_allclose(p_I, expected, atol=1e-8)
    # In wind axes the air comes from ahead.
    X = frames.get_transform("ned", "wind", t=t, state=state)


def test_air_path_angles():
    alpha, beta = 0.1, -0.2
    v = 50.0 * np.array([np.cos(alpha) * np.cos(beta), np.sin(beta), np.sin(alpha) * np.cos(beta)])
    np.testing.assert_allclose(air_path_angles(v), [alpha, beta], rtol=1e-14)
    assert np.all(np.isfinite(arc.jac(air_path_angles)(np.zeros(3))))
    assert air_path_angles(np.zeros(3)) == (0.0, 0.0)
    assert ecef_to_geodetic(np.array([WGS84.a, 0, 0]))[2] == 0.0


def test_shadow_on_and_inside_the_sphere():
    """On the surface and below it nothing but the horizon counts; derivatives are finite."""
    sun = np.array([ASTRONOMICAL_UNIT, 0.0, 0.0])
    H = arc.jac(arc.jac(sunlit_fraction))
    R = WGS84.a
    for p in ([R, 0, 0], [0, R, 0], [-R, 0, 0], [1e3, 0, 0], [0, 2 * R, 0], [-2 * R, 0, 1.0]):
        p = np.array(p, float)
        assert np.isfinite(sunlit_fraction(p, sun)) and np.isfinite(H(p, sun)).all()
    assert sunlit_fraction(np.array([R, 0, 0]), sun) == 1.0
    assert sunlit_fraction(np.array([-R, 0, 0]), sun) == 0.0
    with pytest.raises(ValueError, match="p is the centre of the planet"):
        sunlit_fraction(np.zeros(3), sun)
    with pytest.raises(ValueError, match="radius must be positive and finite, in m"):
        sunlit_fraction(np.array([R, 0, 0]), sun, 0.0)


def test_bad_times_and_vectors_of_the_sky():
    for f in (sun_position, earth_rotation_angle):
        with pytest.raises(ValueError, match="day must be finite"):
            f(np.nan)
        with pytest.raises(ValueError, match="fraction must be finite"):
            f(2451545.0, np.inf)
    with pytest.raises(ValueError, match="angle must be finite"):
        ecef_to_eci([7e6, 0.0, 0.0], angle=np.nan)
    with pytest.raises(ValueError, match=r"v_B must have shape \(3,\) or \(..., 3\), got \(2,\)"):
        air_path_angles([1.0, 2.0])
    assert [float(x) for x in air_path_angles([1.0, 0.0, 0.0])] == [0.0, 0.0]


def test_exponential_air_far_out():
    """Above 6,000 km density and pressure are zero; the speed of sound is that of the gas."""
    air = ExponentialAtmosphere()(np.array([0.0, 1e7, 1e9]))
    np.testing.assert_allclose(air.speed_of_sound, air.speed_of_sound[0])
    assert air.density[2] == air.pressure[2] == 0.0
