"""Flights end at the ground: when, how fast, and what says so; times against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import WGS84, PointMassGravity, UniformGravity
from archimedes.spatial import Quaternion
from archimedes.vehicles import (
    FlatEarth,
    FlightCase,
    FlightState,
    Multirotor,
    OrbitGuidance,
    Projectile,
    Rocket,
    RotatingEarth,
    fly,
    ground_event,
    load,
    parts,
)

G = 9.80665
BALL = Projectile(
    mass=1.0, inertia=np.eye(3), world=FlatEarth(gravity=UniformGravity(np.array([0.0, 0.0, G])))
)
REST = np.zeros(3)


def above(alt, up=0.0, lat=0.0):
    return FlightState(lat, 0.0, alt, np.array([3.0, 0.0, -up]), REST, REST)


@pytest.mark.parametrize(("alt", "up", "ground"), [(80.0, 0.0, 0.0), (80.0, 20.0, 30.0)])
def test_a_fall_ends_at_the_ground_when_a_parabola_does(alt, up, ground):
    record = fly(FlightCase(BALL, above(alt, up), 60.0, ground=ground), rtol=1e-10, atol=1e-10)
    speed = np.sqrt(up**2 + 2.0 * G * (alt - ground))
    t = (up + speed) / G
    assert record.t[-1] == pytest.approx(t, rel=1e-9)
    assert record.flight.alt[-1] == pytest.approx(ground, abs=1e-7)
    assert record.trajectory.message == (
        f"the flight ended at the ground after {t:.6g} s, at {np.hypot(speed, 3.0):.4g} m/s"
    )


def test_a_start_on_the_ground_may_rise_first():
    record = fly(FlightCase(BALL, above(0.0, up=15.0), 60.0), rtol=1e-10, atol=1e-10)
    assert record.t[-1] == pytest.approx(2.0 * 15.0 / G, abs=1e-4)  # 1 mm below, at 15 m/s
    sunk = fly(FlightCase(BALL, above(0.0), 60.0))
    assert "ended at the ground" in sunk.trajectory.message and sunk.t[-1] < 0.02


def test_without_ground_a_flight_goes_on():
    record = fly(FlightCase(BALL, above(80.0), 10.0, ground=None))
    assert record.t[-1] == 10.0 and record.flight.alt[-1] < -300.0
    assert "ground" not in record.trajectory.message


def test_a_flight_that_stays_above_says_nothing_of_the_ground():
    record = fly(FlightCase(BALL, above(8000.0), 10.0))
    assert record.trajectory.status == 0 and "ground" not in record.trajectory.message


def test_a_start_below_the_ground_is_refused():
    with pytest.raises(ValueError, match=r"starts at an altitude of -400 m, below the ground at 0"):
        fly(FlightCase(BALL, above(-400.0), 1.0))
    assert fly(FlightCase(BALL, above(-400.0), 1.0, ground=-430.0)).trajectory.status == 0


def test_events_of_ones_own_keep_their_numbers():
    half = arc.Event(lambda t, x: -x.pos[2] - 40.0, direction=-1)
    record = fly(FlightCase(BALL, above(80.0), 60.0), events=half)
    assert list(record.trajectory.events["event"]) == [0, 1]
    stop = arc.Event(lambda t, x: -x.pos[2] - 40.0, direction=-1, terminal=True)
    record = fly(FlightCase(BALL, above(80.0), 60.0), events=[stop])
    assert record.trajectory.status == 1 and "ground" not in record.trajectory.message


def test_the_ground_of_an_ellipsoid_is_its_surface():
    ball = Projectile(mass=1.0, inertia=np.eye(3), world=RotatingEarth())
    record = fly(FlightCase(ball, above(100.0, lat=0.8), 60.0))
    assert record.flight.alt[-1] == pytest.approx(0.0, abs=1e-6)
    radius = np.linalg.norm(record.trajectory.x.pos[-1])
    s = np.sin(record.flight.lat[-1])
    n = WGS84.a / np.sqrt(1.0 - WGS84.e2 * s * s)
    surface = np.hypot(n * np.cos(record.flight.lat[-1]), n * (1.0 - WGS84.e2) * s)
    assert radius == pytest.approx(surface, abs=1e-5)


def test_feet_know_their_ground_themselves():
    feet = np.array([[0.1, 0.1, 0.5], [0.1, -0.1, 0.5], [-0.1, 0.1, 0.5], [-0.1, -0.1, 0.5]])
    drone = Multirotor(ground=parts.GroundContact(-feet))  # upside down: the frame sinks below zero
    still = Multirotor.Input(np.zeros(4))
    start = FlightState(0.0, 0.0, 0.2, REST, REST, REST)
    record = fly(FlightCase(drone, start, 1.0, still, {"speeds": np.zeros(4)}), rtol=1e-5)
    assert record.trajectory.status == 0 and record.flight.alt.min() < 0.0


def test_a_satellite_that_falls_ends_at_the_surface():
    """Straight down from rest, over the equator: the time is that of a radial Kepler orbit."""
    craft = load("satellite", gravity=PointMassGravity(WGS84.mu), omega=0.0, angle=0.0)
    r0 = WGS84.a + 400e3
    wheels = np.zeros(len(craft.wheels.axes))
    x0 = type(craft).State(np.array([r0, 0.0, 0.0]), REST, Quaternion.identity(), REST, wheels)
    fall = arc.solve_ode(
        craft.dynamics, (0.0, 2000.0), x0, args=(craft.idle(),), events=ground_event(craft)
    )
    part = WGS84.a / r0
    t = np.sqrt(r0**3 / (2.0 * WGS84.mu)) * (np.arccos(np.sqrt(part)) + np.sqrt(part * (1 - part)))
    assert fall.t[-1] == pytest.approx(t, rel=1e-7)


def test_stages_fall_away_in_turn():
    """Two stages in empty space: burnt out when the tanks are empty, and only then."""
    rocket = load("rocket")
    pad = FlightState(0.5, 0.0, 10.0, REST, np.array([0.0, 0.5 * np.pi - 1e-6, 1.5]), REST)
    law = OrbitGuidance()
    ascent = arc.solve_ode(
        lambda t, x: rocket.dynamics(t, x, law.command(rocket, t, x)),
        (0.0, 200.0),
        rocket.state(pad),
        events=rocket.staging(),
        rtol=1e-6,
    )
    first = rocket.stages[0]
    empty = first.tank.capacity / first.flow(1.0)
    assert list(ascent.events["event"]) == [0]
    assert ascent.events["t"][0] == pytest.approx(empty, rel=1e-9)
    assert isinstance(ascent.final, Rocket.State) and list(ascent.final.attached) == [0.0, 1.0]
