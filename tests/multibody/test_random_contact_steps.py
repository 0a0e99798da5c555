"""Derivatives of a step with contact at ten thousand random states, and where contacts change.

Legend: a state moves along a random direction d of its tangent space, and of the torques, by s. The
derivative of the step in s is compared with differences of the step at other s, on either side.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact import impulses

STEP, COUNT = 2e-3, 10_000
#: How far derivatives may be off, relative to the largest of a state; differences are, too.
WITHIN = 1e-6


def add_leg(b, name, place):
    """Add a leg of three joints, whose knee has stops."""
    parent = "trunk"
    for part, axis in (("hip", [1, 0, 0]), ("thigh", [0, 1, 0]), ("shin", [0, 1, 0])):
        body, com = f"{name}_{part}", [0, 0, 0.0 if part == "hip" else -0.12]
        b.add_body(body, mass=0.5, com=com, inertia=[4e-3, 4e-3, 1e-3])
        stops = {"lower": -2.0, "upper": -0.5} if part == "shin" else {}
        joint = {"joint": body, "axis": axis, "armature": 0.01, "damping": 0.1, **stops}
        b.attach(body, parent, position=place, **joint)
        parent, place = body, [0, 0, 0.0 if part == "hip" else -0.25]


@cache
def quadruped():
    """Return a trunk on four legs, and its feet."""
    b = mb.Builder("quadruped")
    b.add_body("trunk", mass=10.0, inertia=[0.08, 0.3, 0.35])
    for name, (x, y) in {
        "fl": (0.2, 0.15), "fr": (0.2, -0.15), "hl": (-0.2, 0.15), "hr": (-0.2, -0.15)
    }.items():  # fmt: skip
        add_leg(b, name, [x, y, 0])
        b.add_frame(f"{name}_foot", f"{name}_shin", position=[0, 0, -0.25])
    feet = [mb.sphere(f"{leg}_foot", 0.02) for leg in ("fl", "fr", "hl", "hr")]
    return b.build(base="floating"), feet


def along(s, q, v, u, d):
    """Return configuration and velocity after a step from a state moved by s along d."""
    robot, feet = quadruped()
    x = mb.State(mb.integrate(robot, q, s * d[:18]), v + s * d[18:36])
    torques = np.concatenate([np.zeros(6), u + s * d[36:]])
    x = mb.contact_step(robot, x, STEP, feet, mb.Ground(friction=0.6), torques)
    return np.concatenate([x.q, x.v])


@cache
def kernels():
    """Return the step of many states, and its derivative in s."""
    return arc.vmap(along), arc.vmap(arc.jac(along, argnums=0))


def random_states(count):
    """Return q, v, u and directions: feet near the ground, knees near stops, some in the air."""
    robot, feet = quadruped()
    rng = np.random.default_rng(0)
    q = np.zeros((count, 19))
    spread = rng.choice([3e-3, 0.05, 0.3], size=(count, 1))
    q[:, 3] = 1.0
    q[:, 3:7] += 0.3 * spread * rng.normal(size=(count, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    bend = rng.uniform(0.3, 1.05, size=(count, 1))
    q[:, 7:] = np.tile([0.0, 1.0, -2.0], 4) * bend + spread * rng.normal(size=(count, 12))
    low = np.min([mb.frame_pose(robot, q, foot.frame).t[:, 2] for foot in feet], axis=0)
    q[:, 2] = 0.02 - low + rng.uniform(-1e-3, 3e-3, size=count)
    v = rng.choice([0.0, 0.1, 1.0], size=(count, 1)) * rng.normal(size=(count, 18))
    u = 5.0 * rng.normal(size=(count, 12))
    return q, v, u, rng.normal(size=(count, 48))


def one_sided(states, s, side, derivative, size):
    """Return by how much derivatives are off differences of the second order towards a side.

    At the best of four distances: slow sliding turns quickly, which asks for small ones, and
    rounding for large ones.
    """
    step, errors = kernels()[0], []
    for h in side * np.array([1e-6, 1e-7, 1e-8, 1e-9]):
        f = [step(s + k * h, *states) for k in range(3)]
        near = (-3.0 * f[0] + 4.0 * f[1] - f[2]) / (2.0 * h)
        errors.append(np.abs(near - derivative).max(axis=1) / size)
    return np.min(errors, axis=0)


@pytest.mark.long
def test_ten_thousand_steps_against_differences():
    """The derivative is that of one of the two sides; both are the same at nearly all states.

    At less than one state of a thousand the feet stand and all knees are beyond their stops: that
    holds the robot twice, the search for impulses ends at 1e-4, and no derivative belongs to them.
    """
    states, here = random_states(COUNT), np.zeros(COUNT)
    slope = kernels()[1](here, *states)
    size = np.maximum(np.abs(slope).max(axis=1), 1.0)
    errors = np.stack([one_sided(states, here, side, slope, size) for side in (1, -1)])
    twice = (states[0][:, 9::3] < -2.0).all(axis=1)
    assert np.isfinite(slope).all()
    assert np.median(errors) < 1e-9
    assert errors.min(axis=0)[~twice].max() < WITHIN
    assert np.mean(errors.min(axis=0) > WITHIN) < 1e-3
    assert np.mean(errors.max(axis=0) > WITHIN) < 0.01


@pytest.mark.long
def test_derivatives_where_contacts_change():
    """On either side of a change the derivative is that of this side, up to the change itself.

    Changes are found by bisection of lines through random states: what is bisected is the interval
    over which the derivative changes most. Where an impact begins velocities jump, as in nature;
    these changes are left out. A robot at rest that lands slides in no direction: it is left out.
    """
    states = [x[: COUNT // 2] for x in random_states(COUNT)]
    step, slope = kernels()
    low, high = np.full(COUNT // 2, -1e-3), np.full(COUNT // 2, 1e-3)
    before, after = slope(low, *states), slope(high, *states)
    for _ in range(34):
        middle = 0.5 * (low + high)
        between = slope(middle, *states)
        left = np.abs(between - before).max(axis=1) > np.abs(after - between).max(axis=1)
        low, high = np.where(left, low, middle), np.where(left, middle, high)
        after = np.where(left[:, None], between, after)
        before = np.where(left[:, None], before, between)
    size = np.maximum(np.maximum(np.abs(before), np.abs(after)).max(axis=1), 1.0)
    jumps = np.abs(step(high, *states) - step(low, *states)).max(axis=1) > 1e-9
    changes = (np.abs(after - before).max(axis=1) > 0.01 * size) & ~jumps & states[1].any(axis=1)
    assert changes.sum() > 1000
    for s, side, derivative in ((low, -1, before), (high, 1, after)):
        errors = one_sided(states, s, side, derivative, size)[changes]
        assert np.quantile(errors, 0.99) < WITHIN and errors.max() < 1e-4


def test_a_row_without_load_is_free():
    """Of two rows the first is just pushed by its bound; the other has no load, and moves."""
    G = np.array([[1.0, 0.5], [0.5, 1.0]])

    def pushed(bound):
        low, zero = np.stack([bound, -1.0 + 0.0 * bound]), np.zeros(2)
        return impulses.row_impulses(G, zero, impulses.Rows(low, zero + 1e3, zero))

    np.testing.assert_allclose(pushed(1e-3), [1e-3, 0.0])
    for bound in (1e-3, 1e-13):  # the second is too small to be solved for
        np.testing.assert_allclose(arc.jac(pushed)(bound), [1.0, 0.0], atol=1e-12)
