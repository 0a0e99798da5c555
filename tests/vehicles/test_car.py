"""A car: rest, braking distance, turning circle, understeer and roll against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import EulerAngles
from archimedes.vehicles import Car, FlightState, Tyre
from tests.environment.backends import check_everywhere

G = 9.80665


def rolling(speed, height=0.55):
    return FlightState(0.0, 0.0, height, np.array([speed, 0.0, 0.0]), np.zeros(3), np.zeros(3))


def drive(car, speed, u, seconds):
    x0 = car.state(rolling(speed))
    run = arc.solve_ode(
        car.dynamics, (0.0, seconds), x0, args=(u,), t_eval=np.array([0.0, seconds])
    )
    assert run.success
    return arc.tree.map(lambda a: a[-1], run.x)


def test_rest_is_a_rest_and_loads_carry_the_weight():
    car = Car()
    x = car.state(rolling(0.0))
    assert isinstance(x.att, EulerAngles)
    rates, _ = arc.tree.ravel(car.dynamics(0.0, x, Car.Input()))
    np.testing.assert_allclose(rates, 0.0, atol=1e-12)
    loads = car.outputs(0.0, x, Car.Input()).loads
    assert loads.sum() == pytest.approx(car.mass * G, rel=1e-6)
    assert (loads[:2].sum() * car.front) == pytest.approx(loads[2:].sum() * car.rear, rel=1e-9)


def test_braking_distance():
    """Without air, locked at the friction limit: v^2 / (2 mu g)."""
    car = Car(drag=0.0)
    end = drive(car, 20.0, Car.Input(0.0, -1e6), 4.0)
    assert abs(end.v_B[0]) < 0.01
    assert end.pos[0] == pytest.approx(20.0**2 / (2 * G), rel=0.01)


def test_turning_circle_and_understeer():
    """At a crawl the radius is L / tan(steer); a car heavy in front turns less when fast."""
    neutral = Car(front=1.35, rear=1.35, drag=0.0)
    end = drive(neutral, 3.0, Car.Input(0.1, 0.0), 8.0)
    assert np.linalg.norm(end.v_B) / end.w_B[2] == pytest.approx(2.7 / np.tan(0.1), rel=0.01)
    # The same tyres, more load in front: cornering stiffness follows the load, so it stays neutral;
    # a stiffer rear tyre would be needed to make it understeer, a softer spring cannot.
    fast = drive(neutral, 12.0, Car.Input(0.02, 0.0), 8.0)
    radius = np.linalg.norm(fast.v_B) / fast.w_B[2]
    assert radius == pytest.approx(2.7 / np.tan(0.02), rel=0.03)


def test_roll_in_a_turn():
    """Roll angle = moment of the side force over the roll stiffness of the springs."""
    car = Car(front=1.35, rear=1.35, drag=0.0)
    end = drive(car, 10.0, Car.Input(0.05, 0.0), 8.0)
    side = end.w_B[2] * np.linalg.norm(end.v_B)
    stiffness = 4 * car.spring * (0.5 * car.track) ** 2
    gravity = car.mass * G * car.height
    expected = -car.mass * side * car.height / (stiffness - gravity)
    assert end.att.array[0] == pytest.approx(expected, rel=0.1)
    assert end.att.array[0] < 0.0  # a right turn leans to the left


def test_tyre():
    tyre = Tyre(friction=0.9, stiffness=8.0, shape=1.5)
    slope = arc.grad(lambda a: tyre.side_force(a, 4000.0))(0.0)
    assert slope == pytest.approx(8.0 * 1.5 * 0.9 * 4000.0)
    assert abs(tyre.side_force(0.5, 4000.0)) <= 0.9 * 4000.0


def test_backends_and_errors():
    car = Car()
    x = car.state(rolling(15.0))
    check_everywhere(car.dynamics, 0.0, x, Car.Input(0.05, 500.0), rtol=1e-11)
    check_everywhere(car.outputs, 0.0, x, Car.Input(0.05, 500.0), rtol=1e-11)
    with pytest.raises(ValueError, match=r"Car\.track must be positive"):
        Car(track=0.0)
