"""Torsional and rolling friction: closed forms of a ball, MuJoCo's units, derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

G, R, M, STEP = 9.81, 0.1, 2.0, 1e-3
INERTIA = 0.4 * M * R * R


def ball():
    b = mb.Builder()
    b.add_body("ball", mass=M, inertia=[INERTIA] * 3)
    return b.build(base="floating")


def at(model, twist, angle=0.0):
    """Return a ball that touches an incline, with a velocity in the world's axes."""
    q = mb.neutral(model)
    q[:3] = R * np.array([np.sin(angle), 0.0, np.cos(angle)])
    return mb.State(q, np.array(twist, dtype=float))


def run(x, steps, ground, **values):
    """Return the ball's twist in the world's axes after steps."""
    model = ball()
    move = lambda k, x: mb.contact_step(model, x, STEP, [mb.sphere("ball", R)], ground, **values)
    x = arc.compile(lambda x: arc.fori_loop(0, steps, move, x))(x)
    return np.asarray(mb.frame_twist(model, x.q, x.v, "ball", "aligned"))


@pytest.mark.parametrize("heading", [0.0, 0.6])
def test_a_rolling_ball_is_slowed_by_five_sevenths(heading):
    """Of rolling / r g, the same in every direction; then it stands still."""
    rolling, speed = 2e-3, 1.0
    c, s = np.cos(heading), np.sin(heading)
    x = at(ball(), [speed * c, speed * s, 0.0, -speed / R * s, speed / R * c, 0.0])
    ground = mb.Ground(rolling=rolling)
    slower = 5 / 7 * G * rolling / R
    twist = run(x, 500, ground)
    assert twist[:2] @ [c, s] == pytest.approx(speed - slower * 500 * STEP, rel=1e-6)
    assert twist[:2] @ [-s, c] == pytest.approx(0.0, abs=1e-9)
    steps = round(1.1 * speed / slower / STEP)
    assert np.abs(run(x, steps, ground)).max() < 1e-9


@pytest.mark.parametrize("beyond", [-1e-3, 1e-3])
def test_a_ball_rolls_down_exactly_beyond_rolling_over_r(beyond):
    rolling = 0.02
    angle = np.arctan(rolling / R) + beyond
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    ground = mb.Ground(normal=normal, friction=0.7, rolling=rolling)
    twist = run(at(ball(), np.zeros(6), angle), 20, ground)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    expected = 5 / 7 * G * (np.sin(angle) - rolling / R * np.cos(angle)) * 20 * STEP
    assert twist[:3] @ down == pytest.approx(max(expected, 0.0), abs=1e-9)


def test_a_ball_that_spins_on_the_spot_stops():
    """By torsional m g / INERTIA; rolling friction and sliding have no part in it."""
    torsional, spin = 1e-3, 5.0
    x = at(ball(), [0, 0, 0, 0, 0, spin])
    slower = torsional * M * G / INERTIA
    for rolling in (0.0, 1e-3):
        ground = mb.Ground(torsional=torsional, rolling=rolling)
        twist = run(x, 800, ground)
        np.testing.assert_allclose(twist, [0, 0, 0, 0, 0, spin - slower * 0.8], atol=1e-9)
        assert np.abs(run(x, 2100, ground)).max() < 1e-9


@pytest.mark.long
def test_units_and_meaning_are_those_of_mujoco():
    """A ball that rolls or spins, against MuJoCo's condim 6 with little softness."""
    from .mujoco_peer import mujoco

    torsional, rolling = 2e-3, 1e-3
    peer = mujoco.MjModel.from_xml_string(f"""
    <mujoco><option timestep="1e-4" cone="elliptic" impratio="100"/><worldbody>
      <geom type="plane" size="9 9 1" condim="6" friction="0.7 {torsional} {rolling}"
        solref="0.002 1" solimp="0.99 0.999 0.001"/>
      <body pos="0 0 {R}">
        <freejoint/>
        <inertial mass="{M}" pos="0 0 0" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>
        <geom type="sphere" size="{R}" condim="6" friction="0.7 {torsional} {rolling}"
          solref="0.002 1" solimp="0.99 0.999 0.001"/>
      </body>
    </worldbody></mujoco>""")
    data = mujoco.MjData(peer)
    ground = mb.Ground(torsional=torsional, rolling=rolling)
    # one at a time: both together have one cone there, and two disks here
    for start, k in (([1.0, 0, 0, 0, 10.0, 0], 4), ([0, 0, 0, 0, 0, 8.0], 5)):
        mujoco.mj_resetData(peer, data)
        data.qvel[:] = start
        for _ in range(5000):
            mujoco.mj_step(peer, data)
        lost = start[k] - np.array([run(at(ball(), start), 500, ground)[k], data.qvel[k]])
        assert lost[1] == pytest.approx(lost[0], rel=1e-2) and lost[0] > 0.3


def test_pairs_and_joints_have_it_too():
    """A disk on a turntable with a brake: both resist, and the weaker one slips."""
    b = mb.Builder()
    b.add_body("table", mass=1.0, inertia=[0.01] * 3)
    b.attach("table", joint="table", axis=[0, 0, 1], friction=0.05)
    b.add_body("disk", mass=M, inertia=[INERTIA] * 3)
    b.attach("disk", "table", joint="post", kind="cylindrical", axis=[0, 0, 1])
    model = b.build()
    pair = mb.Pair(
        mb.sphere("disk", R, [0, 0, R]), mb.half_space("table"), torsional=1e-3, friction=0.0
    )
    n = model.nv
    start = mb.rest_state(model)
    spun = mb.frame_twist(model, start.q, np.eye(n)[-1], "disk")[5] != 0.0
    v = np.zeros(n)
    v[-1 if spun else -2] = 5.0
    x = mb.contact_step(model, mb.State(start.q, v), STEP, pairs=[pair])
    spin = mb.frame_twist(model, x.q, x.v, "disk", "aligned")[5]
    # 1e-3 m times the weight is 0.0196 N m: the brake of the table holds
    assert spin == pytest.approx(5.0 - 1e-3 * M * G / INERTIA * STEP, rel=1e-9)
    assert abs(x.v[0]) < 1e-12


def scene(p):
    """Return the velocity after a step of a ball that slides, spins and rolls."""
    model, ground = ball(), mb.Ground(friction=p[6], torsional=p[7], rolling=p[8])
    q = np.array([0, 0, R - 1e-5, 1, 0, 0, 0])
    x = mb.contact_step(model, mb.State(q, p[:6]), STEP, [mb.sphere("ball", R)], ground)
    return x.v


@pytest.mark.parametrize("rolls", [False, True])
def test_derivatives_in_velocities_and_coefficients(rolls):
    v = [0.3, 0.1, -0.1, 0.4, 1.0, 2.0]
    if rolls:  # without sliding, at an angle
        v = [0.3, 0.1, -0.1, -0.1 / R, 0.3 / R, 2.0]
    p = np.array([*v, 0.05 if not rolls else 0.6, 1e-3, 2e-3])
    J, f = arc.jac(scene)(p), arc.compile(scene)
    near = np.stack([(f(p + d) - f(p - d)) / 2e-7 for d in 1e-7 * np.eye(9)], axis=1)
    np.testing.assert_allclose(J, near, rtol=1e-5, atol=1e-5)


def test_the_same_bits_everywhere():
    p = np.array([0.3, 0.1, -0.1, 0.4, 1.0, 2.0, 0.5, 1e-3, 2e-3])
    one = arc.compile(scene, backend="llvm")
    assert np.array_equal(arc.compile(scene, backend="interpreter")(p), one(p))
    many = p + 0.01 * np.random.default_rng(0).normal(size=(8, 1)) * p
    batch = arc.vmap(scene)(many)
    assert all(np.array_equal(one(many[k]), batch[k]) for k in range(8))


def test_compliant_moments():
    """Far above the slip speed they are the coefficients times the force, against the rotation."""
    model, ground = ball(), mb.Ground(torsional=2e-3, rolling=1e-3, friction=0.0, slip_speed=1e-6)
    q = np.array([0, 0, R - 1e-4, 1, 0, 0, 0])
    v = np.array([0, 0, 0, 3.0, 4.0, -2.0])
    force = mb.contact_forces(model, q, v, [mb.sphere("ball", R)], ground)["ball"]
    np.testing.assert_allclose(force[3:] / force[2], [-6e-4, -8e-4, 2e-3], rtol=1e-5)


def test_refusals():
    with pytest.raises(ValueError, match="Ground rolling must not be negative"):
        mb.Ground(rolling=-1.0)
    with pytest.raises(ValueError, match="Pair torsional must not be negative"):
        mb.Pair(mb.sphere("a", 1.0), mb.sphere("b", 1.0), torsional=-1.0)
