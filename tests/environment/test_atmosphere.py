"""Atmospheres against the published standard, its own equations and ambiance."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from ambiance import Atmosphere

import archimedes as arc
from archimedes.environment import (
    ExponentialAtmosphere,
    SmoothAtmosphere,
    StandardAtmosphere1976,
)
from archimedes.environment.atmosphere import GAS_CONSTANT
from tests.environment.backends import check_batched, check_everywhere
from tests.environment.ussa76_species import atmosphere
from tests.truth import TRUTH, needs_truth

STANDARD = StandardAtmosphere1976()

#: Geometric height in m: T in K, p in Pa, density in kg/m^3, speed of sound in m/s.
PUBLISHED = {
    0: (288.15, 101325, 1.22500, 340.294),
    1000: (281.651022, 89876.28, 1.111659, 336.4347),
    5000: (255.675543, 54048.28, 0.736428, 320.5455),
    10000: (223.252093, 26499.9, 0.413510, 299.5318),
    11000: (216.773513, 22699.95, 0.3648015, 295.1537),
    20000: (216.65, 5529.30, 0.0889098, 295.0696),
    32000: (228.489719, 889.0617, 0.0135551),
    50000: (270.65, 79.779, 1.026877e-3),
    71802: (214.649943, 3.95638, 6.42105e-5),
    80000: (198.638576, 1.05247, 1.845796e-5),
}
#: A few lines of the published tables above 86 km: T, p, density.
PUBLISHED_ABOVE = {
    86000: (186.87, 3.7338e-1, 6.958e-6),
    100000: (195.08, 3.2011e-2, 5.604e-7),
    110000: (240.00, 7.1042e-3, 9.708e-8),
    120000: (360.00, 2.5382e-3, 2.222e-8),
}
BORDERS = [0.0, 11019.0, 20063.0, 32162.0, 47350.0, 51413.0, 71802.0, 80000.0, 86000.0]
BORDERS_ABOVE = [91e3, 100e3, 110e3, 120e3, 500e3]


@pytest.mark.parametrize("alt", PUBLISHED)
def test_published_layers(alt):
    air = STANDARD(float(alt))
    values = [air.temperature, air.pressure, air.density, air.speed_of_sound]
    expected = PUBLISHED[alt]
    np.testing.assert_allclose(values[: len(expected)], expected, rtol=1e-5)


@pytest.mark.parametrize("alt", PUBLISHED_ABOVE)
def test_published_upper_part(alt):
    air, (T, p, rho) = STANDARD(float(alt)), PUBLISHED_ABOVE[alt]
    assert air.temperature == pytest.approx(T, rel=1e-3)
    assert air.pressure == pytest.approx(p, rel=3e-3)
    assert air.density == pytest.approx(rho, rel=3e-3)


@needs_truth
def test_published_tables_above_86_km():
    with open(TRUTH / "environment" / "ussa76_published_above86km.csv") as file:
        rows = np.array([[float(x) for x in row.values()] for row in csv.DictReader(file)])
    air = STANDARD(rows[:, 0])
    np.testing.assert_allclose(air.temperature, rows[:, 1], rtol=1e-3)
    np.testing.assert_allclose(air.pressure, rows[:, 2], rtol=3e-3)
    np.testing.assert_allclose(air.density, rows[:, 3], rtol=3e-3)


def test_upper_part_against_its_equations():
    z, T, p, rho = atmosphere(step=20.0)
    air = STANDARD(z)
    np.testing.assert_allclose(air.temperature, T, rtol=1e-12)
    np.testing.assert_allclose(air.pressure, p, rtol=5e-4)
    np.testing.assert_allclose(air.density, rho, rtol=5e-4)


def test_layers_against_ambiance():
    z = np.random.default_rng(0).uniform(-4990.0, 80000.0, 100_000)
    air, other = STANDARD(z), Atmosphere(z)
    np.testing.assert_allclose(air.temperature, other.temperature, rtol=1e-13)
    # Its gas constant differs in the sixth digit.
    np.testing.assert_allclose(air.pressure, other.pressure, rtol=1e-5)
    np.testing.assert_allclose(air.density, other.density, rtol=1e-5)
    np.testing.assert_allclose(air.speed_of_sound, other.speed_of_sound, rtol=1e-6)
    np.testing.assert_allclose(air.dynamic_viscosity, other.dynamic_viscosity, rtol=1e-13)


@pytest.mark.parametrize("alt", [*BORDERS, *BORDERS_ABOVE])
def test_borders_are_continuous_with_finite_slopes(alt):
    below, above = STANDARD(alt - 1e-4), STANDARD(alt + 1e-4)
    for name in ("temperature", "pressure", "density", "speed_of_sound"):
        # The standard's own numbers leave a step of 0.3 mK at 110 km.
        assert getattr(above, name) == pytest.approx(getattr(below, name), rel=2e-6), name
    for name in ("temperature", "density"):
        slope = arc.grad(lambda z, name=name: getattr(STANDARD(z), name))
        assert np.isfinite(slope(alt)) and np.isfinite(arc.grad(slope)(alt))


def test_pressure_carries_the_air_above():
    """dp/dz = -rho g with the standard's own gravity, in every layer."""
    z = np.array([-3000.0, 0.0, 5e3, 15e3, 25e3, 40e3, 49e3, 60e3, 75e3, 79e3])
    slope = arc.vmap(arc.grad(lambda z: STANDARD(z).pressure))(z)
    g = 9.80665 * (6356766.0 / (6356766.0 + z)) ** 2
    np.testing.assert_allclose(slope, -STANDARD(z).density * g, rtol=1e-12)


def test_hot_and_cold_days_keep_the_pressure():
    hot, cold, plain = (StandardAtmosphere1976(dT)(3000.0) for dT in (20.0, -20.0, 0.0))
    assert hot.pressure == cold.pressure == plain.pressure
    for air, T in ((hot, plain.temperature + 20.0), (cold, plain.temperature - 20.0)):
        assert air.temperature == pytest.approx(T, rel=1e-15)
        assert air.density == pytest.approx(air.pressure / (GAS_CONSTANT * T), rel=1e-14)


@pytest.mark.parametrize("model", [StandardAtmosphere1976, SmoothAtmosphere])
def test_offsets_below_absolute_zero(model):
    """Known offsets raise; in recorded code what would be below absolute zero is nan."""
    for offset in (-300.0, -187.0, np.nan, np.inf, np.array([0.0, -200.0])):
        with pytest.raises(ValueError, match=f"{model.__name__}.temperature_offset must be"):
            model(temperature_offset=offset)
    z = np.linspace(-5e3, 1e5, 1001)
    cold = model(temperature_offset=-186.0)(z)
    assert (cold.temperature > 0.0).all()
    assert (cold.density > 0.0).all()

    def air(alt, offset):
        found = model(temperature_offset=offset)(alt)
        return found.density, found.speed_of_sound, found.dynamic_viscosity

    for backend in ("interpreter", "llvm"):
        recorded = arc.compile(air, backend=backend)
        assert np.isnan(recorded(0.0, -300.0)).all()
        np.testing.assert_allclose(recorded(0.0, -100.0), air(0.0, -100.0), rtol=1e-13)


def test_beyond_the_range_the_ends_hold():
    assert STANDARD(2e6).density == STANDARD(1e6).density
    assert STANDARD(-9000.0).pressure == STANDARD(-5000.0).pressure
    assert arc.compile(STANDARD)(2e6).density == arc.compile(STANDARD)(1e6).density


def test_the_smooth_one_stays_close_and_is_smooth():
    smooth, z = SmoothAtmosphere(), np.linspace(-5000.0, 100000.0, 5001)
    a, b = smooth(z), STANDARD(z)
    assert np.abs(a.temperature - b.temperature).max() < 0.7
    np.testing.assert_allclose(a.density, b.density, rtol=3e-3)
    curvature = arc.hess(lambda z: smooth(z).temperature)
    for border in (11000.0, 20000.0, 32000.0):
        assert curvature(border - 1e-6) == pytest.approx(curvature(border + 1e-6), abs=1e-10)


def test_exponential():
    air = ExponentialAtmosphere(density=1.2, scale_height=7000.0, temperature=250.0)(14000.0)
    assert air.density == pytest.approx(1.2 * np.exp(-2.0), rel=1e-15)
    assert air.pressure == pytest.approx(air.density * GAS_CONSTANT * 250.0, rel=1e-15)
    with pytest.raises(ValueError, match=r"ExponentialAtmosphere\.scale_height must be positive"):
        ExponentialAtmosphere(scale_height=-1.0)


@pytest.mark.parametrize("model", [STANDARD, SmoothAtmosphere(), ExponentialAtmosphere()])
def test_backends_and_batches(model):
    for alt in (-4000.0, 0.0, 12345.6, 85999.0, 86001.0, 5e5):
        check_everywhere(model, alt, rtol=3e-13)
    check_batched(model, np.linspace(-5000.0, 3e5, 13))


def test_bad_altitudes():
    with pytest.raises(ValueError, match="alt must be finite"):
        STANDARD(np.nan)
    with pytest.raises(TypeError, match="alt must be an array of real numbers"):
        STANDARD("high")
