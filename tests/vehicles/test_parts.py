"""Actuators, tanks and masses."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.vehicles.parts import (
    FirstOrderActuator,
    MassProperties,
    SecondOrderActuator,
    Tank,
    combined,
    cylinder,
)
from tests.environment.backends import check_everywhere


def test_first_order_is_a_lag_with_limits():
    servo = FirstOrderActuator(0.1)
    times = np.linspace(0.0, 0.5, 6)
    run = arc.solve_ode(lambda t, x: servo.rates(x, 1.0), (0.0, 0.5), 0.0, t_eval=times)
    np.testing.assert_allclose(run.x, 1.0 - np.exp(-times / 0.1), atol=1e-7)
    slow = FirstOrderActuator(0.1, rate_limit=0.5, lower=-0.2, upper=0.2)
    run = arc.solve_ode(lambda t, x: slow.rates(x, 1.0), (0.0, 2.0), 0.0, t_eval=[0.2, 2.0])
    assert run.x[0] == pytest.approx(0.1, abs=1e-6)
    assert run.x[1] == pytest.approx(0.2, abs=1e-4)


def test_second_order_oscillates_as_it_should():
    servo = SecondOrderActuator(20.0, damping=0.5)
    times = np.linspace(0.0, 0.5, 11)
    run = arc.solve_ode(
        lambda t, x: servo.rates(x, 1.0), (0.0, 0.5), servo.initial(0.0), t_eval=times
    )
    w = 20.0 * np.sqrt(0.75)
    expected = 1 - np.exp(-10 * times) * (np.cos(w * times) + 10 / w * np.sin(w * times))
    np.testing.assert_allclose(run.x.position, expected, atol=1e-6)


def test_second_order_keeps_rate_and_position_limits():
    servo = SecondOrderActuator(50.0, damping=0.3, rate_limit=2.0, lower=-0.5, upper=0.5)
    start, times = servo.initial(0.0), np.linspace(0.0, 1.0, 1001)
    run = arc.solve_ode(lambda t, x: servo.rates(x, 9.0), (0.0, 1.0), start, t_eval=times)
    assert np.all(servo.position(run.x) <= 0.5)
    assert servo.position(run.x)[-1] == pytest.approx(0.5, abs=1e-3)
    assert np.max(np.diff(run.x.position) / 1e-3) < 2.0 + 1e-6


def test_parts_put_together_against_point_masses():
    rng = np.random.default_rng(0)
    clouds = [(rng.uniform(1, 2, 5), rng.normal(size=(5, 3))) for _ in range(3)]

    def properties(masses, places):
        com = masses @ places / masses.sum()
        arms = places - com
        J = sum(m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(masses, arms))
        return MassProperties(masses.sum(), com, J)

    whole = combined([properties(*cloud) for cloud in clouds])
    expected = properties(*(np.concatenate(x) for x in zip(*clouds)))
    np.testing.assert_allclose(whole.com, expected.com, rtol=1e-13)
    np.testing.assert_allclose(whole.inertia, expected.inertia, rtol=1e-12)


def test_tank_empties_to_the_bottom():
    tank = Tank(1000.0, np.array([-5.0, 0.0, 0.0]), 4.0, 1.0)
    half = tank.contents(500.0)
    np.testing.assert_allclose(half.com, [-4.0, 0.0, 0.0])
    np.testing.assert_allclose(half.inertia, cylinder(500.0, 1.0, 2.0))
    assert tank.contents(-3.0).mass == 0.0
    check_everywhere(tank.contents, 321.0)
    assert np.all(np.isfinite(arc.jac(lambda m: tank.contents(m).inertia)(0.0)))


def test_errors():
    with pytest.raises(ValueError, match="lower limit above upper limit"):
        FirstOrderActuator(0.1, lower=1.0, upper=-1.0)
    with pytest.raises(ValueError, match=r"SecondOrderActuator\.frequency must be positive"):
        SecondOrderActuator(0.0)
    with pytest.raises(ValueError, match=r"Tank\.capacity must be positive"):
        Tank(0.0, np.zeros(3), 1.0, 1.0)
