"""A two-stage rocket: the rocket equation, staging, mass and inertia, the way to orbit."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import WGS84, Air, Ellipsoid, UniformGravity
from archimedes.vehicles import (
    FlatEarth,
    FlightState,
    OrbitGuidance,
    Rocket,
    RotatingEarth,
    two_stage_rocket,
)
from archimedes.vehicles.parts import MassProperties, combined
from tests.environment.backends import check_everywhere

PAD = FlightState(
    np.deg2rad(28.5),
    np.deg2rad(-80.6),
    10.0,
    np.zeros(3),
    np.array([0.0, 0.5 * np.pi - 1e-9, 0.5 * np.pi]),
    np.zeros(3),
)


class Vacuum:
    def __call__(self, alt):
        none = 0.0 * alt
        return Air(none + 200.0, none, none, none + 300.0, none)


EMPTY = RotatingEarth(Ellipsoid(WGS84.a, 0.0), UniformGravity(np.zeros(3)), Vacuum())


def last(run):
    return arc.tree.map(lambda a: a[-1], run.x)


def burn(rocket, command, stage, t, x, end=1500.0):
    """Fly until a stage is empty or the engine stops."""
    empty = arc.Event(lambda t, x: x.propellant[stage], direction=-1, terminal=True)
    return arc.solve_ode(
        lambda t, x: rocket.dynamics(t, x, command(t, x)),
        (t, end),
        x,
        events=empty,
        rtol=1e-8,
        atol=1e-6,
    )


@pytest.mark.long
def test_the_rocket_equation():
    """In empty space each stage adds its exhaust speed times the logarithm of its mass ratio."""
    rocket = two_stage_rocket(world=EMPTY)
    x, t, expected = rocket.state(PAD), 0.0, 0.0
    full = Rocket.Input(1.0)
    for stage in (0, 1):
        before = rocket.mass_properties(x).mass
        run = burn(rocket, lambda t, x: full, stage, t, x)
        t, x = run.t[-1], last(run)
        after = rocket.mass_properties(x).mass
        expected += 9.80665 * rocket.stages[stage].specific_impulse * np.log(before / after)
        assert np.linalg.norm(x.motion.v_E) == pytest.approx(expected, rel=1e-7)
        assert before - after == pytest.approx(rocket.stages[stage].tank.capacity, rel=1e-9)
        x = rocket.separate(x, stage) if stage == 0 else x


@pytest.mark.parametrize("world", [EMPTY, RotatingEarth()], ids=["empty", "turning"])
def test_staging_keeps_momentum_and_the_place_of_what_is_left(world):
    rocket, spin = two_stage_rocket(world=world), np.array([0.0, 0.0, world.ellipsoid.omega])
    x = rocket.state(PAD)
    x = x.replace(
        propellant=np.array([0.0, 4600.0]),
        motion=x.motion.replace(w_B=np.array([0.0, 0.02, -0.01]), v_E=np.array([100.0, 5.0, 3.0])),
    )
    after = rocket.separate(x, 0)
    whole, rest = rocket.mass_properties(x), rocket.mass_properties(after)
    np.testing.assert_array_equal(after.attached, [0.0, 1.0])
    # The part that left: its centre of mass follows from the other two.
    gone = whole.mass - rest.mass
    assert gone == pytest.approx(rocket.stages[0].structure.mass)
    com = (whole.mass * whole.com - rest.mass * rest.com) / gone
    before, att = x.motion, x.motion.att

    def inertial(v_E, p_E):
        return v_E + np.cross(spin, p_E)

    v_whole = inertial(before.v_E, before.pos)
    v_gone = v_whole + att.rotate(np.cross(before.w_B, com - whole.com), inverse=True)
    total = gone * v_gone + rest.mass * inertial(after.motion.v_E, after.motion.pos)
    np.testing.assert_allclose(total, whole.mass * v_whole, rtol=1e-12)
    np.testing.assert_allclose(
        after.motion.pos, before.pos + att.rotate(rest.com - whole.com, inverse=True), rtol=1e-14
    )


def test_staging_over_a_flat_earth():
    """The same stage falls away as on an Earth that stands still."""
    still = RotatingEarth(Ellipsoid(WGS84.a, 0.0, WGS84.mu, 0.0))
    worlds = [still, FlatEarth()]
    changes = []
    for world in worlds:
        rocket = two_stage_rocket(world=world)
        start = arc.tree.replace(PAD, w_B=np.array([0.0, 0.02, -0.01]), v_NED=np.array([9.0, 5, 3]))
        x = rocket.state(start).replace(propellant=np.array([0.0, 4600.0]))
        after = rocket.separate(x, 0)
        was, now = (world.flight(0.0, state.motion) for state in (x, after))
        changes.append(np.array([*(now.v_NED - was.v_NED), now.alt - was.alt]))
    assert np.abs(changes[0][:3]).max() > 0.01
    np.testing.assert_allclose(changes[0], changes[1], atol=1e-5)


def test_mass_and_inertia_of_the_parts():
    rocket = two_stage_rocket()
    x = rocket.state(PAD)
    half = x.replace(propellant=np.array([11250.0, 4600.0]))
    parts = [rocket.payload]
    for stage, content in zip(rocket.stages, (11250.0, 4600.0)):
        parts += [stage.structure, stage.tank.contents(content)]
    expected = combined(parts)
    got = rocket.mass_properties(half)
    assert got.mass == pytest.approx(expected.mass) and got.mass < rocket.mass_properties(x).mass
    np.testing.assert_allclose(got.com, expected.com)
    np.testing.assert_allclose(got.inertia, expected.inertia)
    assert isinstance(got, MassProperties)
    assert np.linalg.eigvalsh(got.inertia).min() > 0.0
    assert got.com[0] != rocket.mass_properties(x).com[0]


def test_gimbal_turns_the_nose():
    rocket = two_stage_rocket()
    x = rocket.state(PAD)
    _, up = rocket.forces(0.0, x, Rocket.Input(1.0, np.array([0.05, 0.0])))
    _, right = rocket.forces(0.0, x, Rocket.Input(1.0, np.array([0.0, 0.05])))
    assert up[1] > 0.0 and abs(up[2]) < 1e-6 * up[1]
    assert right[2] > 0.0 and abs(right[1]) < 1e-6 * right[2]
    _, most = rocket.forces(0.0, x, Rocket.Input(1.0, np.array([0.5, 0.0])))
    _, limit = rocket.forces(0.0, x, Rocket.Input(1.0, np.array([0.1, 0.0])))
    np.testing.assert_allclose(most, limit)


@pytest.mark.long
def test_two_stages_to_orbit():
    rocket, guidance = two_stage_rocket(), OrbitGuidance()

    def command(t, x):
        return guidance.command(rocket, t, x)

    first = burn(rocket, command, 0, 0.0, rocket.state(PAD))
    assert "terminal event" in first.message
    x = rocket.separate(last(first), 0)
    second = burn(rocket, command, 1, first.t[-1], x, end=700.0)
    x = last(second)
    v = x.motion.v_E + np.cross([0.0, 0.0, WGS84.omega], x.motion.pos)
    r = np.linalg.norm(x.motion.pos)
    energy = 0.5 * v @ v - WGS84.mu / r
    a = -0.5 * WGS84.mu / energy
    h = np.linalg.norm(np.cross(x.motion.pos, v))
    perigee = a * (1.0 - np.sqrt(1.0 - h**2 / (WGS84.mu * a))) - WGS84.a
    assert perigee > 150e3, perigee
    assert a == pytest.approx(guidance.radius, rel=2e-3)
    burnt = rocket.state(PAD).propellant - x.propellant
    assert burnt[0] == pytest.approx(22500.0, abs=1e-3) and 0.0 < burnt[1] < 4600.0


def test_backends():
    rocket = two_stage_rocket()
    x = rocket.state(PAD)
    u = Rocket.Input(0.9, np.array([0.01, -0.02]))
    check_everywhere(rocket.dynamics, 3.0, x, u, rtol=1e-10)
    check_everywhere(lambda t, x: OrbitGuidance().command(rocket, t, x), 12.0, x, rtol=1e-9)
