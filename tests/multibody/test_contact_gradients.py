"""Derivatives through contact: of a step, against differences; through a bounce, closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

G = 9.81


def slider():
    """A ball that moves along x and z, and does not turn."""
    b = mb.Builder()
    b.add_body("rail", mass=0.0)
    b.attach("rail", joint="x", kind="prismatic", axis=[1, 0, 0])
    b.add_body("ball", mass=2.0, inertia=[0.01] * 3)
    b.attach("ball", "rail", joint="z", kind="prismatic", axis=[0, 0, 1])
    return b.build()


def flight(p, restitution, seconds, step):
    """Return place and velocity at the end, for (height, vx, vz, mu) at the start."""
    model, ground = slider(), mb.Ground(friction=p[3])
    x = mb.State(np.stack([0.0 * p[0], p[0]]), p[1:3])
    ball = [mb.sphere("ball", 0.0)]

    def one(k, x):
        return mb.contact_step(model, x, step, ball, ground, restitution=restitution)

    x = arc.fori_loop(0, round(seconds / step), one, x)
    return np.concatenate([x.q, x.v])


def closed_form(p, e, seconds):
    """Return the same: a parabola, an impact with friction, a parabola or a slide on the ground."""
    h, vx, vz, mu = p
    w = np.sqrt(vz * vz + 2.0 * G * h)
    t = (vz + w) / G
    after, rest = vx - mu * (1.0 + e) * w, seconds - t
    if e:
        return np.stack(
            [vx * t + after * rest, e * w * rest - G * rest**2 / 2, after, e * w - G * rest]
        )
    slide = vx * t + after * rest - mu * G * rest**2 / 2
    return np.stack([slide, 0.0 * h, after - mu * G * rest, 0.0 * h])


START = np.array([0.5, 2.0, -0.3, 0.3])


@pytest.mark.long_cases("0.0")
@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_gradients_through_a_bounce(restitution):
    """In height, speeds and friction: exact for the steps, first order in the step for the motion.

    The time of impact matters: without it the derivative of the height after the bounce in the
    height before it would have the wrong sign.
    """
    exact = arc.jac(lambda p: closed_form(p, restitution, 0.45))(START)
    errors = []
    for step in (1e-3, 5e-4):
        run = lambda p, step=step: flight(p, restitution, 0.45, step)
        J = arc.jac(run)(START)
        f = arc.compile(run)
        near = np.stack([(f(START + d) - f(START - d)) / 2e-7 for d in 1e-7 * np.eye(4)], axis=1)
        np.testing.assert_allclose(J, near, atol=1e-6)
        errors.append(np.abs(J - exact).max())
    assert errors[0] < 0.01
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)


@pytest.mark.long
def test_the_same_backwards():
    """Reverse mode through the steps gives the same numbers."""
    run = lambda p: flight(p, 0.7, 0.45, 5e-3)
    J = arc.jac(run)(START)
    for k in (0, 3):
        row = arc.grad(lambda p, k=k: run(p)[k])(START)
        np.testing.assert_allclose(row, J[k], atol=1e-10)


def test_gradients_in_the_restitution():
    w = np.sqrt(START[2] ** 2 + 2.0 * G * START[0])
    t = (START[2] + w) / G
    slope = arc.jac(lambda e: flight(START, e, 0.45, 1e-3))(0.7)
    assert slope[1] == pytest.approx(w * (0.45 - t), rel=0.01)
    assert slope[3] == pytest.approx(w, rel=0.01)


@pytest.mark.long
def test_gradients_of_a_bounce_as_an_event():
    """A bounce can be an event of the solver too; its derivatives are exact to its tolerance."""
    model = slider()

    def bounce(t, x):
        return mb.State(x.q, np.stack([x.v[0], -0.7 * x.v[1]]))

    hit = arc.Event(lambda t, x: x.q[1], direction=-1, reset=bounce)

    def run(h):
        x = mb.State(np.stack([0.0 * h, h]), np.array([2.0, -0.3]))
        times = np.array([0.0, 0.45])
        states = arc.odeint(
            model.dynamics, (0.0, 0.45), x, events=[hit], t_eval=times, rtol=1e-9, atol=1e-10
        )
        return states.q[-1, 1]

    frictionless = lambda h: closed_form(np.stack([h, 2.0, -0.3, 0.0]), 0.7, 0.45)[1]
    assert arc.grad(run)(0.5) == pytest.approx(arc.grad(frictionless)(0.5), rel=1e-6)


def crate(mu=0.5):
    b = mb.Builder()
    b.add_body("crate", mass=2.0, inertia=[0.03, 0.04, 0.05])
    return b.build(base="floating"), mb.Ground(friction=mu)


@pytest.mark.long
@pytest.mark.parametrize("motion", ["rests", "slides", "lands on an edge"])
def test_a_step_against_differences(motion):
    """A crate on four corners, which are redundant: derivatives in velocity, mass and friction."""
    model, ground = crate()
    x = mb.rest_state(model, [0, 0, 0.1, 1, 0, 0, 0])
    if motion == "slides":
        x = mb.State(x.q, np.array([1.0, 0.3, 0.0, 0.0, 0.0, 0.2]))
    if motion == "lands on an edge":
        tilted = np.array(
            [0, 0, 0.2 * np.sin(0.1) + 0.1 * np.cos(0.1) + 1e-4, np.cos(0.05), 0, np.sin(0.05), 0]
        )
        x = mb.State(tilted, np.array([0.5, 0.1, -1.0, 0.0, 0.3, 0.0]))
    corners = [[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.15, 0.15)]
    # Corners that slide in different directions share a load in one way only if they are three.
    shape = [mb.Contacts("crate", corners[:3] if motion == "slides" else corners)]
    push = np.array([0.5, 0.2, 0.0, 0.0, 0.0, 0.1])

    def step(p):
        moved = model.replace(masses=p[6:7])
        y = mb.contact_step(
            moved, mb.State(x.q, x.v + p[:6]), 2e-3, shape, ground.replace(friction=p[7]), push
        )
        return np.concatenate([y.v, mb.difference(model, x.q, y.q)])

    p = np.concatenate([1e-3 * np.array([0.2, -0.3, -1.0, 0.0, 0.0, 0.4]), [2.0, 0.5]])
    J = arc.jac(step)(p)
    f = arc.compile(step)
    near = np.stack([(f(p + d) - f(p - d)) / 2e-6 for d in 1e-6 * np.eye(8)], axis=1)
    np.testing.assert_allclose(J, near, atol=1e-5)


@pytest.mark.long
def test_gradients_of_compliant_contact_along_a_motion():
    """Of a ball that lands on a slope, through a solver, against differences."""
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.004] * 3)
    model = b.build(base="floating")
    ground = mb.Ground(normal=[0.2, 0, 1], stiffness=1e4, slip_speed=0.1)
    ball = [mb.sphere("ball", 0.1)]

    def run(p):
        q = np.concatenate([np.stack([0.0 * p[0], 0.0 * p[0], p[0]]), np.array([1.0, 0, 0, 0])])
        rates = lambda t, x: mb.dynamics(
            model, t, x, forces=mb.contact_forces(model, x.q, x.v, ball, ground)
        )
        x = mb.State(q, np.concatenate([p[1:2], np.zeros(5)]))
        times = np.array([0.0, 0.4])
        states = arc.odeint(rates, (0.0, 0.4), x, t_eval=times, rtol=1e-12, atol=1e-13)
        return np.concatenate([states.q[-1], states.v[-1]])

    p = np.array([0.2, 0.5])
    J = arc.jac(run)(p)
    near = np.stack([(run(p + d) - run(p - d)) / 2e-5 for d in 1e-5 * np.eye(2)], axis=1)
    np.testing.assert_allclose(J, near, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("friction", [{}, {"torsional": 0.01, "rolling": 0.002}])
@pytest.mark.parametrize("height, speed", [(0.2, 0.1), (0.05, 0.1), (0.0999, 0.0), (0.2, 0.0)])
def test_second_derivatives_of_a_step(height, speed, friction):
    """Of a ball, as hard to push one way along the ground as the other; against differences."""
    b = mb.Builder("ball")
    b.add_body("ball", mass=1.0, inertia=[4e-3] * 3)
    model, weights = b.build("floating"), np.cos(np.arange(13.0))

    def after(z):
        x = mb.State(np.concatenate([np.zeros(2), z[:1], np.array([1.0, 0, 0, 0])]), z[1:])
        ground = mb.Ground(friction=0.5, **friction)
        x = mb.contact_step(model, x, 0.01, [mb.sphere("ball", 0.1)], ground)
        return np.concatenate([x.q, x.v]) @ weights

    z = np.array([height, *(speed * np.array([3.0, 1.0, -0.5, 2.0, 1.0, 30.0]))])
    slope, h = arc.compile(arc.grad(after)), 1e-6
    differences = [(slope(z + e) - slope(z - e)) / (2.0 * h) for e in h * np.eye(7)]
    np.testing.assert_allclose(arc.hess(after)(z), differences, rtol=1e-6, atol=1e-6)
