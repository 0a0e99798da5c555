"""Forms of `FlightCase.controls`: held inputs, functions of time, feedback, with sampled parts."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.vehicles import (
    FlatEarth,
    FlightCase,
    FlightState,
    Rocket,
    fly,
    load,
    trim,
    two_stage_rocket,
)

ROCKET = two_stage_rocket(world=FlatEarth())
REST = np.zeros(3)
START = FlightState(0.0, 0.0, 100.0, REST, np.array([0.0, 0.5 * np.pi, 0.0]), REST)
END = np.array([2.0])


def flown(controls, **options):
    record = fly(FlightCase(ROCKET, START, 2.0, controls), t_eval=END, **options)
    return float(record.flight.alt[0])


FULL, HALF = flown(Rocket.Input(1.0)), flown(Rocket.Input(0.5))


def by_state(t, x):
    """Half thrust above 101 m, which is soon reached."""
    return Rocket.Input(np.where(x.motion.pos[2] < -101.0, 0.5, 1.0))


def test_inputs_functions_of_time_and_feedback():
    assert flown(lambda t: Rocket.Input(1.0 + 0.0 * t)) == FULL
    assert flown(lambda t, x: Rocket.Input(0.5)) == HALF
    assert HALF < flown(by_state) < FULL


class Law:
    def __call__(self, t, x):
        return by_state(t, x)


def test_other_functions():
    """Compiled functions, methods, objects, defaults and variable arguments."""
    expected = flown(by_state)
    assert flown(arc.compile(by_state)) == pytest.approx(expected)
    assert flown(Law()) == flown(Law().__call__) == expected
    assert flown(lambda *args: by_state(*args)) == expected
    assert flown(lambda t, x, more=2.0: by_state(t, x)) == expected
    assert flown(lambda t, half=0.5: Rocket.Input(half)) == HALF
    assert flown(lambda t, x, *, half=0.5: Rocket.Input(half)) == HALF


def test_arguments_and_memory():
    half = Rocket.Input(0.5)
    assert flown(lambda t, u: u, args=(half,)) == HALF
    assert flown(lambda t, x, u: u, args=(half,)) == HALF
    assert flown(lambda t, k: Rocket.Input(k[0]), args=(np.array([0.5, 7.0]),)) == HALF
    part = arc.Sampled(lambda t, x, memory: memory, init=half, dt=0.5)
    assert flown(lambda t, memory: memory, sampled=part) == pytest.approx(HALF)
    both = flown(
        lambda t, x, memory: Rocket.Input(np.where(x.motion.pos[2] < 0.0, memory.throttle, 0.0)),
        sampled=part,
    )
    assert both == pytest.approx(HALF)


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        (lambda: Rocket.Input(1.0), r"takes 0 arguments \[\]: write controls\(t\) or controls\(t,"),
        (lambda t, x, u: u, r"takes 3 arguments \['t', 'x', 'u'\]: write controls\(t\) or"),
    ],
)
def test_wrong_numbers_of_arguments(controls, message):
    with pytest.raises(ValueError, match=message):
        flown(controls)


def test_wrong_number_with_args():
    with pytest.raises(ValueError, match="and 1 more for sampled parts and args"):
        flown(lambda t: Rocket.Input(1.0), args=(1.0,))


def test_feedback_in_a_batch_of_flights():
    """Cases differ in an argument of the controls; each is what it is alone."""
    gains = np.array([0.5, 1.0])
    record = [
        fly(FlightCase(ROCKET, START, 2.0, lambda t, x, k: Rocket.Input(k)), END, args=(gain,))
        for gain in gains
    ]
    assert [float(r.flight.alt[0]) for r in record] == [HALF, FULL]


def test_the_trajectory_has_inputs_and_vehicle():
    """So that plots and views show what was steered."""
    times = np.linspace(0.0, 2.0, 5)
    held, timed, fed = (
        fly(FlightCase(ROCKET, START, 2.0, controls), times, **options).trajectory
        for controls, options in (
            (Rocket.Input(0.5), {}),
            (lambda t: Rocket.Input(0.25 * t), {}),
            (lambda t, x, k: Rocket.Input(k * x.propellant[0] / 22500.0), {"args": (0.5,)}),
        )
    )
    np.testing.assert_array_equal(held.u.throttle, np.full(5, 0.5))
    assert held.u.gimbal.shape == (5, 2)
    np.testing.assert_array_equal(timed.u.throttle, 0.25 * times)
    np.testing.assert_allclose(fed.u.throttle, 0.5 * fed.x.propellant[:, 0] / 22500.0)
    assert repr(arc.view(fed)) == "View('': Rocket, 0 to 2 s)"
    assert fly(FlightCase(ROCKET, START, 2.0, lambda t: Rocket.Input(0.5))).trajectory.u is not None


@pytest.mark.parametrize(
    ("controls", "got"),
    [(None, "None"), (0.5, r"0\.5"), (lambda t, x: 0.5, r"0\.5"), (lambda t: None, "None")],
    ids=["none", "number", "returns a number", "returns nothing"],
)
def test_controls_that_are_no_inputs(controls, got):
    expected = rf"controls must be Rocket\.Input\(throttle, gimbal\), or a function .*; got {got}"
    with pytest.raises(ValueError, match=expected):
        flown(controls)


def test_tables_of_mass_as_parameters():
    """Derivatives with respect to the numbers of a table, and three stages."""
    from archimedes.vehicles.parts import MassTable

    com, inertia = np.zeros((2, 3)), np.stack([np.eye(3), 2.0 * np.eye(3)])

    def mass(full):
        table = MassTable(np.array([0.0, 10.0]), np.stack([1.0 + 0.0 * full, full]), com, inertia)
        return table.contents(4.0).mass

    assert arc.grad(mass)(11.0) == pytest.approx(0.4)
    tables = tuple(
        MassTable([0.0, 10.0], [m, m + 10.0], com.tolist(), inertia) for m in (3.0, 2.0, 1.0)
    )
    stage = ROCKET.stages[0].replace(tank=tables[0])
    rocket = ROCKET.replace(stages=(stage,) * 3, mass_tables=tables)
    x = rocket.state(START)
    masses = []
    for k in range(3):
        masses.append(float(rocket.mass_properties(x).mass))
        x = rocket.separate(x, k)
    assert masses == [13.0, 12.0, 11.0]


def test_a_flight_from_a_state_of_the_vehicle():
    """A trim holds its power, which a FlightState alone does not say."""
    plane = load("f16")
    level = FlightState(
        0.6, -1.3, 3000.0, np.array([170.0, 0.0, 0.0]), np.array([0, 0.05, 0]), REST
    )
    steady = trim(plane, level, plane.Input(0.15, -0.03), {"power": 10.0})
    ends = [
        fly(FlightCase(plane, start, 2.0, steady.input, inner), END).flight.alt[0]
        for start, inner in (
            (steady.state, {}),
            (steady.flight, {"power": steady.state.power}),
        )
    ]
    assert ends[0] == pytest.approx(3000.0, abs=1e-5)
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)
    twice = FlightCase(plane, steady.state, 2.0, steady.input, {"power": 3.0})
    with pytest.raises(
        ValueError, match=r"inner gives power, which FlightCase.start, a state of the"
    ):
        fly(twice)


def test_starts_that_are_none():
    with pytest.raises(
        ValueError, match="inner has 'pwoer', which is no field of its state: a F16"
    ):
        fly(FlightCase(load("f16"), START, 1.0, None, {"pwoer": 3.0}))
    with pytest.raises((TypeError, ValueError), match=r"FlightCase\.start must be .*FlightState"):
        fly(FlightCase(ROCKET, START.v_NED, 1.0, Rocket.Input(1.0)))
