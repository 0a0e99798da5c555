"""Steps with contact give no energy: impacts with friction, and joints that are damped much."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from ..long_parameters import long_after


@pytest.mark.parametrize("friction", [0.5, *long_after(0, [0.2, 1.0, 2.0])])
def test_a_rod_that_bounces_gains_nothing(friction):
    """Kane's puzzle: restitution of speeds and friction together gave a third of it on top."""
    b = mb.Builder()
    b.add_body("rod", mass=1.0, inertia=[0.08, 0.08, 0.001])
    rod, step = b.build(base="floating"), 1e-5
    ends = [mb.Contacts("rod", [[0, 0, -0.5], [0, 0, 0.5]])]
    ground = mb.Ground(friction=friction)
    hit = arc.compile(lambda x: mb.contact_step(rod, x, step, ends, ground, restitution=1.0))
    rng, bounced = np.random.default_rng(0), 0
    for _ in range(40):
        angle, q = rng.uniform(0.1, 1.4), mb.neutral(rod)
        q[3:7] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
        q[2] = 0.5 * np.cos(angle) + 1e-8
        R = mb.frame_pose(rod, q, "rod").r.as_matrix()
        v = np.array([*R.T @ [3 * rng.normal(), 0.0, -rng.uniform(0.5, 3)], 0, 5 * rng.normal(), 0])
        before, after = mb.State(q, v), hit(mb.State(q, v))
        energies = [mb.kinetic_energy(rod, x.q, x.v) for x in (before, after)]
        bounced += not np.allclose(after.v, v, atol=1e-2)
        assert energies[1] <= (1 + 1e-3) * energies[0]
    assert bounced > 20


def finger(**values):
    b = mb.Builder()
    b.add_body("finger", mass=0.05, com=[0.03, 0, 0], inertia=[1e-5, 1e-4, 1e-4])
    b.attach("finger", joint="finger", axis=[0, 1, 0], **values)
    return b.build()


@pytest.mark.parametrize("values", [{"damping": 1.0}, {"friction": 0.1}])
def test_joints_are_slowed_down_however_large_the_step(values):
    """They were turned back at thirty times their speed, or for ever at a part of it."""
    model = finger(**values).replace(gravity=np.zeros(3))
    below, v = mb.Ground(point=[0, 0, -10]), [1.0]
    for _ in range(8):
        x = mb.State(np.zeros(1), np.array(v[-1:]))
        v.append(mb.contact_step(model, x, 5e-3, [mb.sphere("finger", 0.01)], below).v[0])
    assert np.all(np.diff(v) <= 0.0) and 0.0 <= v[-1] < 1e-4


def test_forces_on_damped_joints_are_those_at_rest():
    """Pressed on the ground, a finger with much damping stays there, as one without."""
    tip = [mb.sphere("finger", 0.01, [0.06, 0, 0])]
    for damping in (0.0, 1.0):
        model, ground = finger(damping=damping), mb.Ground(point=[0, 0, -0.01])
        x = mb.contact_step(model, mb.rest_state(model), 5e-3, tip, ground)
        assert np.abs(x.v).max() < 1e-12
    # first order in the step: the closed form is v0 exp(-d t / I)
    model = finger(damping=0.01).replace(gravity=np.zeros(3))
    inertia = 1e-4 + 0.05 * 0.03**2
    far = mb.Ground(point=[0, 0, -9])

    def error(steps):
        move = lambda k, x: mb.contact_step(model, x, 0.01 / steps, tip, far)
        x = arc.compile(lambda x: arc.fori_loop(0, steps, move, x))(
            mb.State(np.zeros(1), np.ones(1))
        )
        return x.v[0] - np.exp(-0.01 * 0.01 / inertia)

    errors = [error(100), error(200)]
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.02) and errors[0] < 2e-3


def test_refusals():
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("ball", joint="rail", kind="prismatic")
    b.add_frame("tool", "ball")
    model, ball = b.build(), [mb.sphere("ball", 0.1)]
    x, own = mb.rest_state(model), mb.Pair(mb.sphere("ball", 0.1), mb.sphere("tool", 0.1))
    step = lambda **values: mb.contact_step(model, x, 1e-3, ball, mb.Ground(), **values)
    np.testing.assert_array_equal(step(pairs=[own]).q, step().q)  # parts of one body: no effect
    with pytest.raises(ValueError, match="'ball' and 'tool': neither moves on the other"):
        mb.contact_step(model, x, 1e-3, pairs=[own])
    with pytest.raises(ValueError, match=r"recovery must be between 0 and 1, got 5\.0"):
        step(recovery=5.0)
    with pytest.raises(ValueError, match=r"each point, must have shape .* got \(2,\)"):
        step(restitution=np.array([0.1, 0.2]))
    with pytest.raises(TypeError, match="got a DrivenState: contact_step moves no activations"):
        mb.contact_step(model, mb.driven_state(model, []), 1e-3, ball, mb.Ground())
    with pytest.raises(ValueError, match="Ground slip_speed must be positive"):
        mb.Ground(slip_speed=0.0)
    for values, message in (
        ({"friction": np.inf}, "Ground friction must be finite here"),
        ({"stiffness": np.inf}, "Ground stiffness must be finite here"),
        ({"friction": np.ones(2)}, r"Ground friction must be one number, got an array of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            mb.contact_forces(model, x.q, x.v, ball, mb.Ground(**values))


@pytest.mark.parametrize("kind", ["free", "planar"])
def test_what_spins_flies_straight_on(kind):
    """Momentum is kept exactly: a ball at 30 rad/s was a hundred times as fast after a second."""
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.02, 0.02, 0.02])
    b.attach("ball", joint="ball", kind=kind, axis=[0, 1, 0])
    model = b.build().replace(gravity=np.zeros(3))
    v = np.array([1.0, 2.0, 0.5, 3.0, 10.0, 30.0][: model.nv])
    x = mb.State(mb.integrate(model, mb.neutral(model), 0.1 * v), 1.0 * v)
    x.v[-1] = 30.0
    move = lambda k, x: mb.contact_step(
        model, x, 1e-2, [mb.sphere("ball", 0.1)], mb.Ground(point=[0, 0, -100])
    )
    end = arc.compile(lambda x: arc.fori_loop(0, 100, move, x))(x)
    before, after = (mb.frame_twist(model, y.q, y.v, "ball", "aligned") for y in (x, end))
    np.testing.assert_allclose(after, before, atol=1e-9)
    way = mb.frame_pose(model, end.q, "ball").t - mb.frame_pose(model, x.q, "ball").t
    np.testing.assert_allclose(way, before[:3], atol=1e-9)


def test_what_tumbles_keeps_its_energy():
    """Of a spin about the middle axis 15 % were gained in a second, by gyroscopic forces."""
    b = mb.Builder()
    b.add_body("racket", mass=1.0, inertia=[0.01, 0.02, 0.025])
    model = b.build(base="floating").replace(gravity=np.zeros(3))
    x = mb.State(mb.neutral(model), np.array([0.0, 0.0, 0.0, 1.0, 30.0, 1.0]))
    below = mb.Ground(point=[0, 0, -10])
    move = lambda k, x: mb.contact_step(model, x, 5e-3, [mb.sphere("racket", 0.1)], below)
    end = arc.compile(lambda x: arc.fori_loop(0, 200, move, x))(x)
    before, after = (mb.kinetic_energy(model, y.q, y.v) for y in (x, end))
    assert after == pytest.approx(before, rel=5e-4)
