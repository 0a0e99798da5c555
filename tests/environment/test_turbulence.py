"""Turbulence: variances and spectra of many samples against the specifications."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.signal import welch

import archimedes as arc
from archimedes import tree
from archimedes.environment import DrydenTurbulence, VonKarmanTurbulence
from tests.environment.backends import check_everywhere

V, ALT = 50.0, 300.0
MODELS = [DrydenTurbulence, VonKarmanTurbulence]
SPECIFICATIONS = ["MIL-F-8785C", "MIL-HDBK-1797"]


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


@pytest.mark.long
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


def published_spectra(model, specification, w, b, altitude):
    """One-sided spectra of u, v, w, p, q, r over w in rad/s, as each specification prints them.

    Lengths and intensities too are the printed ones, in ft, for 15 m/s at 20 ft, below 1,000 ft.
    """
    h = altitude / 0.3048
    sigma_w = 1.5
    sigma_u = sigma_v = sigma_w / (0.177 + 0.000823 * h) ** 0.4
    L_u = 0.3048 * h / (0.177 + 0.000823 * h) ** 1.2
    if specification == "MIL-F-8785C":
        L_v, L_w = L_u, altitude
        roll = 0.8 * (np.pi * L_w / (4 * b)) ** (1 / 3) / (V * L_w)
    else:
        L_v, L_w = L_u / 2, altitude / 2
        roll = 0.8 * (2 * np.pi * L_w / (4 * b)) ** (1 / 3) / (2 * V * L_w)

    def across(sigma, L):
        x, scale = L * w / V, sigma**2 * L / (np.pi * V)
        if specification == "MIL-F-8785C" and model is DrydenTurbulence:
            return scale * (1 + 3 * x**2) / (1 + x**2) ** 2
        if specification == "MIL-F-8785C":
            return scale * (1 + 8 / 3 * (1.339 * x) ** 2) / (1 + (1.339 * x) ** 2) ** (11 / 6)
        if model is DrydenTurbulence:
            return 2 * scale * (1 + 12 * x**2) / (1 + 4 * x**2) ** 2
        return 2 * scale * (1 + 8 / 3 * (2.678 * x) ** 2) / (1 + (2.678 * x) ** 2) ** (11 / 6)

    x = L_u * w / V
    along = 1 / (1 + x**2) if model is DrydenTurbulence else (1 + (1.339 * x) ** 2) ** (-5 / 6)
    v, up = across(sigma_v, L_v), across(sigma_w, L_w)
    four, three = (n * b * w / (np.pi * V) for n in (4, 3))
    return {
        "u": 2 * sigma_u**2 * L_u / (np.pi * V) * along,
        "v": v,
        "w": up,
        "p": sigma_w**2 * roll / (1 + four**2),
        "q": (w / V) ** 2 / (1 + four**2) * up,
        "r": (w / V) ** 2 / (1 + three**2) * v,
    }


def linear_steps(air, altitude, dt):
    """A, B, C, D of x+ = A x + B noise, gust = C x + D noise, at one airspeed and altitude."""
    flat, unravel = tree.ravel(air.initial())

    def step(z, noise):
        x, gust = air.step(unravel(z), noise, V, altitude, dt)
        return np.concatenate([tree.ravel(x)[0], gust.v_B, gust.w_B])

    by_state, by_noise = arc.jac(step, argnums=(0, 1))(flat, np.zeros(4))
    n = len(flat)
    return by_state[:n], by_noise[:n], by_state[n:], by_noise[n:]


@pytest.mark.parametrize("specification", SPECIFICATIONS)
@pytest.mark.parametrize("model", MODELS)
def test_transfer_functions_against_the_published_spectra(model, specification):
    """|H|^2 of the filters as they are stepped, with white noise of spectrum dt / pi."""
    b, altitude, dt = 10.0, 200.0, 0.005
    air = model(wingspan=b, specification=specification)
    A, B, C, D = linear_steps(air, altitude, dt)
    w = np.geomspace(0.02, 40.0, 60)
    z = np.exp(1j * w * dt)
    H = [C @ np.linalg.solve(zk * np.eye(len(A)) - A, B) + D for zk in z]
    power = np.sum(np.abs(H) ** 2, axis=-1) * dt / np.pi
    # Dryden's filters are exact but for sampling, (w dt)^2 / 12; von Karman's are fits.
    tolerance = 0.006 if model is DrydenTurbulence else 0.022
    for k, (name, expected) in enumerate(
        published_spectra(model, specification, w, b, altitude).items()
    ):
        assert np.abs(power[:, k] / expected - 1.0).max() < tolerance, name


@pytest.mark.parametrize("dt", [0.001, 0.02, 0.5])
@pytest.mark.parametrize("specification", SPECIFICATIONS)
@pytest.mark.parametrize("model", MODELS)
def test_variances_of_the_specification_for_any_step(model, specification, dt):
    """By the Lyapunov equation of the steps: sigma^2, and the integral of the rolling spectrum."""
    b, altitude = 10.0, 200.0
    air = model(wingspan=b, specification=specification)
    A, B, C, D = linear_steps(air, altitude, dt)
    P = solve_discrete_lyapunov(A, B @ B.T)
    variance = np.diag(C @ P @ C.T + D @ D.T)
    roll = published_spectra(model, specification, np.zeros(1), b, altitude)["p"]
    sigma = np.array([1.5 / (0.177 + 0.000823 * altitude / 0.3048) ** 0.4] * 2 + [1.5])
    np.testing.assert_allclose(variance[:3], sigma**2, rtol=1e-6)
    # The integral of 1 / (1 + (w T)^2) is pi / (2 T), T = 4 b / (pi V).
    np.testing.assert_allclose(variance[3], roll * np.pi**2 * V / (8 * b), rtol=1e-9)


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_rolling_gusts_have_the_variance_of_the_specification(specification):
    air = DrydenTurbulence(wingspan=10.0, specification=specification)
    roll = flights(air, 1000, 60, 0.2)[20:, :, 3]
    w = np.linspace(0.0, 4000.0, 200_001)
    density = published_spectra(DrydenTurbulence, specification, w, 10.0, ALT)["p"]
    assert np.var(roll) == pytest.approx(np.trapezoid(density, w), rel=0.05)


def test_pitching_and_yawing_gusts_are_slopes_of_the_others():
    air, dt = DrydenTurbulence(wingspan=0.1), 0.001
    gusts = flights(air, 3, 400, dt)
    slope = np.diff(gusts[..., :3], axis=0) / (V * dt)
    # Over times longer than the wing needs to pass, the mean of the rate is that of the slope.
    for axis, gust, sign in ((4, 2, -1.0), (5, 1, 1.0)):
        np.testing.assert_allclose(
            np.mean(gusts[1:, :, axis], axis=0), sign * np.mean(slope[..., gust], axis=0), atol=0.02
        )


@pytest.mark.parametrize("spec", SPECIFICATIONS)
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
