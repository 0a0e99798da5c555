"""Sensors: readings without errors are true; errors have the sizes they are given."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import ecef_to_geodetic, geodetic_to_ecef, ned
from archimedes.spatial import Quaternion
from archimedes.vehicles import FlatEarth, FlightState
from archimedes.vehicles.sensors import (
    AirData,
    Gnss,
    Imu,
    Magnetometer,
    StarTracker,
    TriadErrors,
)
from tests.environment.backends import check_everywhere

KEY = arc.random.key(7)
MANY = arc.random.split(KEY, 4000)


def test_triad_noise_bias_scale_and_limit():
    errors = TriadErrors(
        bias=np.array([0.1, 0.0, -0.2]), scale=np.full(3, 0.01), noise=0.02, limit=2.0
    )
    truth = np.array([1.0, -1.0, 0.5])
    _, readings = arc.vmap(lambda key: errors.step(np.zeros(3), truth, key, 0.01))(MANY)
    np.testing.assert_allclose(readings.mean(0), 1.01 * truth + errors.bias, atol=0.02)
    np.testing.assert_allclose(readings.std(0), 0.2, rtol=0.06)
    _, far = errors.step(np.zeros(3), np.full(3, 9.0), KEY, 0.01)
    np.testing.assert_array_equal(far, 2.0)


def test_triad_drift_walks():
    errors, dt = TriadErrors(walk=0.1), 0.5

    def walk(key):
        drift = errors.initial()
        for k in range(8):
            drift, _ = errors.step(drift, np.zeros(3), arc.random.fold_in(key, k), dt)
        return drift

    ends = arc.vmap(walk)(MANY)
    np.testing.assert_allclose(ends.std(0), 0.1 * np.sqrt(4.0), rtol=0.06)


def test_imu_feels_its_arm():
    imu = Imu(position=np.array([1.0, 0.0, 0.0]))
    w, dw = np.array([0.0, 0.0, 2.0]), np.array([0.0, 0.0, 3.0])
    _, reading = imu.step(imu.initial(), np.zeros(3), w, dw, KEY, 0.01)
    np.testing.assert_allclose(reading.force, [-4.0, 3.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(reading.rate, w)
    check_everywhere(
        lambda f: imu.step(imu.initial(), f, w, dw, KEY, 0.01), np.array([0.1, 0.2, -9.8])
    )


def test_gnss_errors_in_local_axes():
    gnss, p = Gnss(), geodetic_to_ecef(0.6, 1.0, 100.0)
    local = ned(*ecef_to_geodetic(p)[:2])

    def read(key):
        keys = arc.random.split(key, 2)
        _, reading = gnss.step(gnss.initial(keys[0]), p, np.zeros(3), keys[1], 1.0)
        return local.rotate(reading.p_E - p), local.rotate(reading.v_E)

    off, fast = arc.vmap(read)(MANY)
    np.testing.assert_allclose(off.std(0), np.hypot(gnss.wander, gnss.noise), rtol=0.06)
    np.testing.assert_allclose(fast.std(0), gnss.velocity_noise, rtol=0.06)


def test_gnss_wander_is_stationary_and_slow():
    gnss = Gnss(time_constant=10.0)

    def two(key):
        keys = arc.random.split(key, 2)
        first = gnss.initial(keys[0])
        later, _ = gnss.step(first, geodetic_to_ecef(0.0, 0.0, 0.0), np.zeros(3), keys[1], 5.0)
        return first, later

    first, later = arc.vmap(two)(MANY)
    np.testing.assert_allclose(later.std(0), gnss.wander, rtol=0.06)
    for k in range(3):
        assert np.corrcoef(first[:, k], later[:, k])[0, 1] == pytest.approx(np.exp(-0.5), abs=0.05)


def test_star_tracker_turns_by_its_noise():
    tracker, att = StarTracker(), Quaternion.from_euler([0.3, -0.2, 1.0], "xyz")

    def error(key):
        return (att.inv() * tracker.measure(att, key)).as_rotvec().array

    errors = arc.vmap(error)(MANY)
    np.testing.assert_allclose(errors.std(0), tracker.noise, rtol=0.06)
    assert np.abs(errors.mean(0) / tracker.noise).max() < 0.1


def test_air_data_and_the_mach_number_behind_it():
    world = FlatEarth()
    flight = FlightState(
        0.0, 0.0, 3000.0, np.array([200.0, 0, 0]), np.array([0.0, 0.05, 0.0]), np.zeros(3)
    )
    around = world.surroundings(0.0, world.state(flight))
    exact = AirData(pressure_noise=0.0, angle_noise=0.0, temperature_noise=0.0)
    reading = exact.measure(around, KEY)
    assert AirData.mach(reading) == pytest.approx(around.mach, rel=1e-12)
    assert reading.alpha == pytest.approx(0.05, rel=1e-12)
    noisy = arc.vmap(lambda key: AirData().measure(around, key))(MANY)
    assert noisy.static_pressure.std() == pytest.approx(5.0, rel=0.06)
    assert noisy.alpha.std() == pytest.approx(2e-3, rel=0.06)


def test_magnetometer_repeats_with_its_key():
    meter = Magnetometer(TriadErrors(noise=1e-7))
    B = np.array([2e-5, 0.0, 4e-5])
    once, again = (meter.step(meter.initial(), B, KEY, 0.1)[1] for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert np.abs(once - B).max() > 0.0


def test_errors():
    with pytest.raises(ValueError, match=r"TriadErrors\.noise must not be negative"):
        TriadErrors(noise=-1.0)
    with pytest.raises(ValueError, match=r"Gnss\.time_constant must be positive"):
        Gnss(time_constant=0.0)
    with pytest.raises(ValueError, match=r"StarTracker\.noise must not be negative"):
        StarTracker(noise=np.array([-1.0, 0, 0]))
