"""An autopilot follows steps, circles pole and date line; flight beyond the tables is stated."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import (
    SPHERICAL_EARTH,
    ConstantWind,
    geodetic_to_ecef,
    local_tangent_plane,
)
from archimedes.vehicles import (
    F16,
    CircleGuidance,
    F16Autopilot,
    FlightCase,
    FlightState,
    RotatingEarth,
    fly,
    linearize,
    trim,
)
from archimedes.vehicles.f16.autopilot import regulator
from archimedes.vehicles.f16.f16 import TABLES as tables
from tests.environment.backends import check_everywhere

SPEED, ALT, DT, RADIUS = 170.0, 3000.0, 0.05, 5556.0
LIMITS = F16.Input(0.0, -0.436, -0.375, -0.523), F16.Input(1.0, 0.436, 0.375, 0.523)


def level(lat=36.0, lon=-75.0, speed=SPEED, alt=ALT, course=0.0, bank=0.0, pitch=0.05):
    return FlightState(
        np.deg2rad(lat),
        np.deg2rad(lon),
        alt,
        speed * np.array([np.cos(course), np.sin(course), 0.0]),
        np.array([bank, pitch, course]),
        np.zeros(3),
    )


@pytest.fixture(scope="module")
def made():
    plane = F16()
    trimmed = trim(plane, level(), F16.Input(0.15, -0.03), {"power": 10.0})
    small = linearize(plane, trimmed.flight, trimmed.input, {"power": trimmed.state.power})
    return plane, trimmed, F16Autopilot.design(plane, trimmed, small)


def test_regulator_of_a_double_integrator():
    """Closed form: weights 1 give the gains (1, sqrt(3))."""
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    np.testing.assert_allclose(regulator(A, B, [1.0, 1.0], [1.0]), [[1.0, np.sqrt(3.0)]])


def test_steps_of_altitude_course_and_speed(made):
    """Up 100 m at 5 s, right 60 degrees at 60 s, 15 m/s faster at 120 s."""
    plane, trimmed, autopilot = made

    def update(t, x, memory):
        alt = np.where(t < 5.0, ALT, ALT + 100.0)
        course = np.where(t < 60.0, 0.0, np.deg2rad(60.0))
        speed = np.where(t < 120.0, SPEED, SPEED + 15.0)
        target = F16Autopilot.Target(alt, course, speed)
        return autopilot.step(memory, plane, t, x, target, DT)

    part = arc.Sampled(update, init=autopilot.initial(), dt=DT)
    case = FlightCase(
        plane, trimmed.flight, 180.0, lambda t, m: m.input, {"power": trimmed.state.power}
    )
    record = fly(case, t_eval=np.linspace(0.0, 180.0, 361), sampled=part)
    assert record.trajectory.success
    t, flight = record.t, record.flight
    course = np.rad2deg(np.arctan2(flight.v_NED[:, 1], flight.v_NED[:, 0]))
    speed = np.linalg.norm(flight.v_NED, axis=1)
    late = (t > 40) & (t < 60)
    np.testing.assert_allclose(flight.alt[late], ALT + 100.0, atol=2.0)
    late = (t > 100) & (t < 120)
    np.testing.assert_allclose(course[late], 60.0, atol=1.0)
    np.testing.assert_allclose(flight.alt[(t > 60) & (t < 120)], ALT + 100.0, atol=3.0)
    late = t > 150
    np.testing.assert_allclose(speed[late], SPEED + 15.0, atol=0.5)
    np.testing.assert_allclose(course[late], 60.0, atol=0.3)
    np.testing.assert_allclose(flight.alt[late], ALT + 100.0, atol=2.0)
    assert flight.alt.max() < ALT + 103.0 and course.max() < 60.5  # little overshoot
    assert np.abs(flight.rpy[:, 0]).max() < 0.75  # the largest bank is 0.7


PLACES = {
    # centre, start, course
    "north pole": ((90.0, 0.0), (90.0 - np.rad2deg(RADIUS / 6399.6e3), 30.0), -0.5 * np.pi),
    "date line": ((0.0, 180.0), (0.0, 180.0 - np.rad2deg(RADIUS / 6378.1e3)), 0.0),
    "south pole": ((-90.0, 0.0), (-90.0 + np.rad2deg(RADIUS / 6399.6e3), 30.0), 0.5 * np.pi),
}


@pytest.fixture(scope="module")
def circling(made):
    plane, _, autopilot = made

    def update(t, x, memory, guidance):
        return autopilot.step(memory, plane, t, x, guidance.target(plane, t, x, ALT, SPEED), DT)

    # One part for all places: the circle is an argument, and the program is made once.
    return arc.Sampled(
        update, init=autopilot.initial(), dt=DT
    ), lambda t, memory, circle: memory.input


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_circles_around_a_pole_and_across_the_date_line(made, circling, place):
    """Once around and a bit: a circle of the right size at the right speed, nothing singular."""
    plane, trimmed, _ = made
    part, controls = circling
    centre, (lat, lon), course = PLACES[place]
    centre = np.deg2rad(centre)
    guidance = CircleGuidance(geodetic_to_ecef(*centre, 0.0), RADIUS)
    bank = np.arctan(SPEED**2 / (9.80665 * RADIUS))
    start = level(lat, lon, course=course, bank=bank)
    seconds = 1.05 * 2.0 * np.pi * RADIUS / SPEED
    times = np.linspace(0.0, seconds, 221)
    case = FlightCase(plane, start, seconds, controls, {"power": trimmed.state.power})
    record = fly(case, t_eval=times, sampled=part, args=(guidance,))
    assert record.trajectory.success
    for leaf in arc.tree.leaves(record.flight):
        assert np.all(np.isfinite(leaf))
    site = local_tangent_plane(*centre)
    p = np.array([site.apply(q) for q in record.trajectory.x.motion.pos])
    np.testing.assert_allclose(np.hypot(p[:, 0], p[:, 1]), RADIUS, atol=10.0)
    np.testing.assert_allclose(record.flight.alt, ALT, atol=3.0)
    turned = np.unwrap(np.arctan2(p[:, 1], p[:, 0]))
    np.testing.assert_allclose(turned - turned[0], SPEED * times / RADIUS, rtol=2e-3, atol=2e-3)
    # The way from above is smooth also where longitude or yaw jump by a turn.
    v = np.diff(record.trajectory.x.motion.pos, axis=0) / np.diff(times)[:, None]
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), SPEED, rtol=5e-3)
    assert np.abs(np.diff(record.flight.lon)).max() > 6.0  # from +180 to -180 degrees
    np.testing.assert_allclose(record.flight.rpy[:, 0], bank, atol=0.03)


@pytest.mark.long
def test_straight_over_the_pole(made):
    """Controls fixed, without wind: the way in Earth-fixed axes bends only with the Earth."""
    plane = F16(world=RotatingEarth(SPHERICAL_EARTH))
    start = level(lat=90.0 - np.rad2deg(5000.0 / SPHERICAL_EARTH.a), lon=10.0)
    trimmed = trim(plane, start, F16.Input(0.15, -0.03), {"power": 10.0})
    assert trimmed.success, trimmed.message
    case = FlightCase(plane, trimmed.flight, 60.0, trimmed.input, {"power": trimmed.state.power})
    record = fly(case, t_eval=np.linspace(0.0, 60.0, 241))
    lat, lon, yaw = np.rad2deg(record.flight.lat), record.flight.lon, record.flight.rpy[:, 2]
    assert lat.max() > 89.9995 and lat[-1] < 89.96
    for leaf in arc.tree.leaves(record.flight):
        assert np.all(np.isfinite(leaf))
    # On the other side longitude is half a turn on, and the same flight heads south.
    assert np.rad2deg(abs(np.angle(np.exp(1j * (lon[-1] - lon[0] - np.pi))))) < 1.0
    assert np.rad2deg(abs(np.angle(np.exp(1j * (yaw[-1] - yaw[0] - np.pi))))) < 1.0
    np.testing.assert_allclose(record.flight.rpy[:, 1], trimmed.flight.rpy[1], atol=2e-4)
    v = record.trajectory.x.motion.v_E
    assert np.linalg.norm(np.diff(v, axis=0), axis=1).max() < 0.05


def test_beyond_the_tables_their_last_slope_is_carried_on(made):
    """Mach 1.2: a trim is found; its thrust is extrapolated, and wave drag is not in the model."""
    plane = made[0]
    around = plane.world.surroundings(0.0, plane.state(level(speed=363.8, alt=9144.0)).motion)
    assert around.mach == pytest.approx(1.2, abs=1e-3)
    table = tables.MILITARY[:, 3] * 4.4482216152605  # at 30,000 ft, by Mach number
    expected = table[-1] + (table[-1] - table[-2]) * (around.mach - 1.0) / 0.2
    assert plane.engine.thrust(50.0, around) == pytest.approx(expected, rel=1e-9)
    fast = level(speed=363.8, alt=9144.0, pitch=0.02)
    found = trim(plane, fast, F16.Input(0.6, -0.02), {"power": 50.0}, bounds=LIMITS)
    assert found.success, found.message
    out = plane.outputs(0.0, found.state, found.input)
    assert out.mach > 1.19 and 0.0 < found.input.throttle < 1.0


def test_backends(made):
    plane, trimmed, autopilot = made
    windy = arc.tree.replace(plane, world=RotatingEarth(wind=ConstantWind(np.array([5.0, 3, 0]))))
    target = F16Autopilot.Target(ALT + 5.0, 0.2, SPEED + 1.0, 0.1)
    x, memory = trimmed.state, autopilot.initial()
    check_everywhere(
        lambda x, m: autopilot.step(m, windy, 0.0, x, target, DT), x, memory, rtol=1e-9
    )


def test_the_autopilot_as_c(made, tmp_path):
    """A sample of the autopilot as C, for a flight computer, gives the interpreter's bits."""
    plane, trimmed, autopilot = made
    target = F16Autopilot.Target(ALT + 5.0, 0.2, SPEED + 1.0, 0.1)

    def sample(x, memory, target):
        return autopilot.step(memory, plane, 0.0, x, target, DT)

    example = (trimmed.state, autopilot.initial(), target)
    assert arc.codegen(sample, example, output_dir=tmp_path, verify=True) is not None


def test_errors(made):
    plane, trimmed, _ = made
    small = linearize(plane, trimmed.flight, trimmed.input, {"power": trimmed.state.power})
    east = arc.tree.replace(
        trimmed, flight=trimmed.flight.replace(v_NED=np.array([0.0, SPEED, 0.0]))
    )
    with pytest.raises(ValueError, match="trim level flight to the north"):
        F16Autopilot.design(plane, east, small)
    with pytest.raises(ValueError, match="the condition is not steady: no steady flight"):
        lost = arc.tree.replace(trimmed, success=False, message="no steady flight found")
        F16Autopilot.design(plane, lost, small)
    with pytest.raises(ValueError, match=r"CircleGuidance\.radius must be positive"):
        CircleGuidance(np.zeros(3), 0.0)
