"""Motions with contact, planned by iterative LQR through the steps of `contact_step`."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.optimize import ilqr, minimize

G = 9.81


def slider(mass):
    b = mb.Builder()
    b.add_body("rail", mass=0.0)
    b.attach("rail", joint="x", kind="prismatic", axis=[1, 0, 0])
    b.add_body("box", mass=mass, inertia=[0.01] * 3)
    b.attach("box", "rail", joint="z", kind="prismatic", axis=[0, 0, 1])
    return b.build()


@pytest.mark.long
def test_a_box_is_pushed():
    """While it slides the problem is linear: the controls are those of least squares."""
    model, ground, h, steps, mu, mass = slider(2.0), mb.Ground(friction=0.4), 0.02, 25, 0.4, 2.0
    box, goal, weight = [mb.sphere("box", 0.0)], np.array([0.5, 0.3]), np.array([1e4, 1e3])

    def push(x, u):
        return mb.contact_step(model, x, h, box, ground, np.stack([u, 0.0 * u]))

    def miss(x):
        return np.sum(weight * (np.stack([x.q[0], x.v[0]]) - goal) ** 2)

    start = mb.rest_state(model)
    found = ilqr(push, start, np.full(steps, 12.0), lambda x, u: 1e-3 * u**2, miss)
    assert found.success
    # v' = v + h (u / m - mu g), x' = x + h v'
    ahead = h * (steps - np.arange(steps))
    effect = np.stack([h * ahead / mass, np.full(steps, h / mass)])
    drift = -mu * G * np.array([h * np.sum(ahead), h * steps])
    rows = np.concatenate([np.sqrt(weight)[:, None] * effect, np.sqrt(1e-3) * np.eye(steps)])
    right = np.concatenate([np.sqrt(weight) * (goal - drift), np.zeros(steps)])
    wanted = np.linalg.lstsq(rows, right)[0]
    np.testing.assert_allclose(found.u, wanted, atol=1e-6)
    assert found.x.v[1:, 0].min() > 0.0


def hopper():
    """A body of 3 kg above a foot of 0.5 kg, along a vertical rail, with a force between them."""
    b = mb.Builder()
    b.add_body("body", mass=3.0, inertia=[0.01] * 3)
    b.attach("body", joint="height", kind="prismatic", axis=[0, 0, 1])
    b.add_body("foot", mass=0.5, inertia=[0.01] * 3)
    b.attach("foot", "body", joint="leg", kind="prismatic", axis=[0, 0, 1])
    return b.build()


@pytest.mark.long
def test_a_hop_is_the_minimum_of_multiple_shooting():
    """Take off, with a foot that leaves the ground on the way; all states as unknowns give it, too.

    In the air nothing but gravity moves the centre of mass.
    """
    model, ground, h, steps = hopper(), mb.Ground(friction=0.5), 0.01, 40
    foot, leg = [mb.sphere("foot", 0.0)], -0.4
    start = mb.State(np.array([0.4, leg]), np.zeros(2))

    def step(x, u):
        return mb.contact_step(model, x, h, foot, ground, np.stack([0.0 * u, u]))

    def running(x, u):
        return 1e-4 * u**2 + 0.1 * (x.q[1] - leg) ** 2

    def terminal(x):
        return 100.0 * (x.q[0] - 0.6) ** 2 + 10.0 * (x.q[1] - leg) ** 2 + x.v[0] ** 2

    # A guess that hops: steps without contact know nothing of those with it.
    guess = np.where(np.arange(steps) < 15, -70.0, 15.0)
    found = ilqr(step, start, guess, running, terminal, control_bounds=(-120.0, 120.0))
    assert found.success
    soles = found.x.q.sum(axis=1)
    assert np.abs(soles[:15]).max() < 1e-9 and soles.max() > 0.09
    # The centre of mass flies along a parabola, in steps of semi-implicit Euler.
    com = found.x.q @ np.array([3.5, 0.5]) / 3.5
    air = soles[:-2] > 1e-6
    np.testing.assert_allclose(np.diff(com, 2)[air], -G * h**2, atol=1e-9)

    def path(z):
        first = arc.tree.map(lambda leaf: leaf[None], start)
        return arc.tree.map(lambda a, b: np.concatenate([a, b]), first, z["x"])

    def before(z):
        return arc.tree.map(lambda leaf: leaf[:-1], path(z))

    after = arc.tree.map(lambda leaf: leaf[1:], found.x)
    edges = {"x": None, "u": np.full(steps, 120.0)}
    other = minimize(
        lambda z: (
            np.sum(arc.vmap(running)(before(z), z["u"]))
            + terminal(arc.tree.map(lambda leaf: leaf[-1], z["x"]))
        ),
        {"x": after, "u": found.u},
        constr=lambda z: arc.tree.map(
            lambda a, b: a - b, z["x"], arc.vmap(step)(before(z), z["u"])
        ),
        bounds=({"x": None, "u": -edges["u"]}, edges),
    )
    assert other.success
    assert found.fun == pytest.approx(other.fun, rel=1e-6)


LEGS = {"fl": (0.2, 0.15), "fr": (0.2, -0.15), "hl": (-0.2, 0.15), "hr": (-0.2, -0.15)}


def quadruped():
    b = mb.Builder("quadruped")
    b.add_body("trunk", mass=10.0, inertia=[0.08, 0.3, 0.35])
    for leg, (x, y) in LEGS.items():
        parent, place = "trunk", [x, y, 0]
        for part, axis in (("hip", [1, 0, 0]), ("thigh", [0, 1, 0]), ("shin", [0, 1, 0])):
            name, com = f"{leg}_{part}", [0, 0, 0.0 if part == "hip" else -0.1]
            b.add_body(name, mass=0.5, com=com, inertia=[3e-3, 3e-3, 5e-4])
            b.attach(name, parent, joint=name, axis=axis, position=place, armature=0.01)
            parent, place = name, [0, 0, 0.0 if part == "hip" else -0.25]
        b.add_frame(f"{leg}_foot", f"{leg}_shin", position=[0, 0, -0.25])
    return b.build(base="floating")


@pytest.mark.long
def test_a_quadruped_jumps():
    """The state is on a manifold; the contacts open. No control law beside the plan costs less."""
    model, ground, h, steps = quadruped(), mb.Ground(friction=0.7), 0.01, 40
    nv, feet = model.nv, [mb.sphere(f"{leg}_foot", 0.02) for leg in LEGS]
    start = mb.rest_state(
        model, [0, 0, 0.02 + 0.5 * np.cos(0.57), 1, 0, 0, 0] + 4 * [0, 0.57, -1.14]
    )
    goal = mb.State(start.q + 0.15 * np.eye(19)[2], start.v)
    weight = np.concatenate([np.full(6, 10.0), np.full(12, 1.0), np.full(18, 0.1)])

    def step(x, u):
        return mb.contact_step(model, x, h, feet, ground, np.concatenate([np.zeros(6), u]))

    def difference(x0, x1):
        return np.concatenate([mb.difference(model, x0.q, x1.q), x1.v - x0.v])

    def running(x, u):
        return 1e-6 * u @ u + 1e-4 * np.sum(difference(start, x)[3:nv] ** 2)

    def terminal(x):
        return np.sum(weight * difference(goal, x) ** 2)

    jacobian = sum(mb.frame_jacobian(model, start.q, f"{leg}_foot", "aligned")[2] for leg in LEGS)
    stand = mb.gravity_torque(model, start.q) - jacobian * np.sum(model.masses) * G / 4
    found = ilqr(
        *(step, start, np.tile(stand[6:], (steps, 1)), running, terminal),
        control_bounds=(-60.0, 60.0),
        integrate=lambda x, e: mb.State(mb.integrate(model, x.q, e[:nv]), x.v + e[nv:]),
        difference=difference,
        max_iter=200,
    )
    assert found.success
    # Trunk 0.15 m up and level, longer than the legs are.
    assert found.x.q[-1, 2] > 0.55 and np.abs(found.x.q[-1, 4:7]).max() < 0.02
    assert min(mb.frame_pose(model, found.x.q[-1], f"{leg}_foot").t[2] for leg in LEGS) > 0.05

    def fly(u):
        (last, total), path = arc.scan(
            lambda carry, u: ((step(carry[0], u), carry[1] + running(carry[0], u)), carry[0].q),
            (start, 0.0),
            u,
        )
        return total + terminal(last), path

    fly = arc.compile(fly)
    cost, path = fly(found.u)
    assert cost == pytest.approx(found.fun, rel=1e-12)
    np.testing.assert_allclose(path, found.x.q[:-1], atol=1e-12)
    rng = np.random.default_rng(5)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            other = np.clip(found.u + size * rng.normal(size=found.u.shape), -60.0, 60.0)
            assert fly(other)[0] > found.fun * (1.0 - 1e-9)
