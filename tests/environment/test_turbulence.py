"""Turbulence: variances and spectra of many samples against the specifications."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import welch

import archimedes as arc
from archimedes import tree
from archimedes.environment import DrydenTurbulence, VonKarmanTurbulence
from tests.environment.backends import check_everywhere

V, ALT = 50.0, 300.0
MODELS = [DrydenTurbulence, VonKarmanTurbulence]


def flights(air, count, steps, dt, seed=0):
    """Gusts (steps, count, 6) of independent flights, one native batch per step."""
    x = tree.map(lambda a: np.zeros((count, *np.shape(a))), air.initial())
    step = arc.vmap(air.step, in_axes=(0, 0, None, None, None))
    key, gusts = arc.random.key(seed), []
    for k in range(steps):
        noise = arc.random.normal(arc.random.fold_in(key, k), (count, 4))
        x, gust = step(x, noise, V, ALT, dt)
        gusts.append(np.concatenate([gust.v_B, gust.w_B], axis=-1))
    return np.array(gusts)


def spectrum(model, axis, length, sigma, w):
    """One-sided spectra of the specifications over frequency in rad/s."""
    T = length / V
    if model is DrydenTurbulence:
        shape = 1.0 if axis == 0 else (1 + 3 * (T * w) ** 2) / (1 + (T * w) ** 2)
        return sigma**2 * (2 if axis == 0 else 1) * T / np.pi * shape / (1 + (T * w) ** 2)
    y = (1.339 * T * w) ** 2
    if axis == 0:
        return sigma**2 * 2 * T / np.pi / (1 + y) ** (5 / 6)
    return sigma**2 * T / np.pi * (1 + 8 / 3 * y) / (1 + y) ** (11 / 6)


@pytest.mark.parametrize("model", MODELS)
def test_variance_of_a_million_samples(model):
    air = model(wingspan=10.0)
    gusts = flights(air, 2000, 700, 0.2)[200:, :, :3]
    T = np.array([float(L) / V for L in air.lengths(ALT)])
    independent = gusts[..., 0].size * 0.2 / (2.0 * T)
    error = np.sqrt(2.0 / independent)
    variance = np.var(gusts, axis=(0, 1)) / np.array(air.intensities(ALT)) ** 2
    assert np.all(np.abs(variance - 1.0) < 4.0 * error), variance


@pytest.mark.parametrize("model", MODELS)
def test_spectra(model):
    air, dt = model(wingspan=10.0), 0.02
    gusts = flights(air, 400, 3072, dt)[1024:]
    f, power = welch(gusts[..., :3], fs=1 / dt, nperseg=2048, axis=0, detrend=False)
    w = 2 * np.pi * f
    # Bands of frequencies well below the one at which sampling folds the spectrum back.
    for low, high in ((4, 12), (12, 40), (40, 120), (120, 200)):
        for axis in range(3):
            L, sigma = float(air.lengths(ALT)[axis]), float(air.intensities(ALT)[axis])
            expected = 2 * np.pi * spectrum(model, axis, L, sigma, w[low:high])
            ratio = np.mean(power[low:high, :, axis] / expected[:, None])
            error = 1.5 / np.sqrt(400 * (high - low))
            assert abs(ratio - 1.0) < 4.0 * error + 0.06, (axis, low, ratio)


def test_rolling_gusts_have_the_variance_of_the_specification():
    air = DrydenTurbulence(wingspan=10.0)
    roll = flights(air, 1000, 60, 0.2)[20:, :, 3]
    w = np.linspace(0.0, 4000.0, 2_000_001)
    L, sigma, b = float(air.lengths(ALT)[2]), float(air.intensities(ALT)[2]), 10.0
    density = sigma**2 / (V * L) * 0.8 * (np.pi * L / (4 * b)) ** (1 / 3)
    expected = np.trapezoid(density / (1 + (4 * b * w / (np.pi * V)) ** 2), w)
    assert np.var(roll) == pytest.approx(expected, rel=0.05)


def test_pitching_and_yawing_gusts_are_slopes_of_the_others():
    air, dt = DrydenTurbulence(wingspan=0.1), 0.001
    gusts = flights(air, 3, 400, dt)
    slope = np.diff(gusts[..., :3], axis=0) / (V * dt)
    # Over times longer than the wing needs to pass, the mean of the rate is that of the slope.
    for axis, gust, sign in ((4, 2, -1.0), (5, 1, 1.0)):
        np.testing.assert_allclose(
            np.mean(gusts[1:, :, axis], axis=0), sign * np.mean(slope[..., gust], axis=0), atol=0.02
        )


@pytest.mark.parametrize("spec", ["MIL-F-8785C", "MIL-HDBK-1797"])
@pytest.mark.parametrize("model", MODELS)
def test_scales_by_altitude(model, spec):
    air = model(wingspan=10.0, wind_20ft=15.0, probability=1e-3, specification=spec)
    foot, half = 0.3048, 1.0 if spec == "MIL-F-8785C" else 0.5
    h = 200.0
    L = [x / foot for x in air.lengths(h * foot)]
    along = h / (0.177 + 0.000823 * h) ** 1.2
    np.testing.assert_allclose(L, [along, half * along, half * h], rtol=1e-14)
    free = 1750.0 if model is DrydenTurbulence else 2500.0
    np.testing.assert_allclose(
        [x / foot for x in air.lengths(9000.0)], [free, half * free, half * free], rtol=1e-14
    )
    sigma = air.intensities(h * foot)
    assert sigma[2] == pytest.approx(1.5)
    assert sigma[0] == pytest.approx(1.5 / (0.177 + 0.000823 * h) ** 0.4)
    np.testing.assert_allclose(air.intensities(15000 * foot), 8.0 * foot, rtol=1e-12)
    # Between 1,000 and 2,000 ft everything is continuous.
    for edge in (1000.0, 2000.0):
        below, above = (air.intensities((edge + d) * foot) for d in (-1e-6, 1e-6))
        np.testing.assert_allclose(above, below, rtol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_backends(model):
    air = model(wingspan=10.0)
    x, _ = air.step(air.initial(), np.array([0.3, -1.0, 2.0, 0.5]), V, ALT, 0.01)
    check_everywhere(air.step, x, np.array([1.0, 2.0, -0.5, 0.1]), V, ALT, 0.01, rtol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match=r"DrydenTurbulence\.wingspan must be positive"):
        DrydenTurbulence(wingspan=0.0)
    with pytest.raises(ValueError, match=r"probability=0\.3 is not one of"):
        DrydenTurbulence(wingspan=1.0, probability=0.3)
    with pytest.raises(ValueError, match="specification='MIL' is not one of"):
        VonKarmanTurbulence(wingspan=1.0, specification="MIL")
    air = DrydenTurbulence(wingspan=1.0)
    with pytest.raises(ValueError, match=r"noise must have shape \(4,\)"):
        air.step(air.initial(), np.zeros(3), V, ALT, 0.01)


@pytest.mark.parametrize(("airspeed", "dt"), [(0.0, 0.01), (50.0, 0.0)])
@pytest.mark.parametrize("model", MODELS)
def test_at_rest_gusts_stay(model, airspeed, dt):
    air = model(wingspan=10.0)
    x, before = air.step(air.initial(), np.ones(4), V, ALT, 0.01)
    _, after = air.step(x, -np.ones(4), airspeed, ALT, dt)
    np.testing.assert_allclose(after.v_B, before.v_B, rtol=2e-2)
