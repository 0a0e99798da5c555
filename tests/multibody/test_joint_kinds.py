"""Every kind of joint in the table: its functions belong together. And a kind added by the page."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.parts.joints import KINDS, Cylindrical, Screw
from archimedes.spatial.axis_rotations import rotation_matrix

from .random_trees import random_inertia

MOVING = [
    kind
    for kind in KINDS.values()
    if kind.nv and len(kind.parts(Screw(second_axis=(1, 0, 0)))) == 1
]
SCREWS = [Screw((0.0, 0.0, 1.0), 0.3), Screw((0.0, -1.0, 0.0), -0.2), Screw((0.6, 0.0, 0.8), 0.1)]
STEP = 1e-6


def state(kind, seed=0):
    rng = np.random.default_rng(seed)
    ends = np.full(kind.nq, -2.0), np.full(kind.nq, 2.0)
    return [*kind.draw(rng, *ends)], rng.normal(size=kind.nv).tolist()


def screw_of(kind, screw):
    anchor = (0.1, -0.3, 0.2) if kind.anchored else (0.0, 0.0, 0.0)
    return Screw(screw.axis, screw.pitch, anchor)


@pytest.mark.parametrize("screw", SCREWS)
@pytest.mark.parametrize("kind", MOVING, ids=repr)
def test_columns_are_how_the_pose_moves(kind, screw):
    screw, (q, v) = screw_of(kind, screw), state(kind)
    ends = [kind.pose(screw, kind.integrate(q, [s * STEP * x for x in v])) for s in (1.0, -1.0)]
    middle = kind.pose(screw, q)
    W = middle.R.T @ (ends[0].R - ends[1].R) / (2.0 * STEP)
    linear = middle.R.T @ (ends[0].p - ends[1].p) / (2.0 * STEP)
    moved = sum(s.array * x for s, x in zip(kind.columns(screw, q), v, strict=True))
    np.testing.assert_allclose([*linear, W[2, 1], W[0, 2], W[1, 0]], moved, atol=1e-8)


@pytest.mark.parametrize("screw", SCREWS)
@pytest.mark.parametrize("kind", MOVING, ids=repr)
def test_factors_are_the_rotation(kind, screw):
    q, _ = state(kind)
    factors = kind.factors(screw, q)
    if factors is not None:
        R = np.eye(3)
        for factor in factors:
            R = R @ rotation_matrix(factor)
        np.testing.assert_allclose(R, kind.pose(screw, q).R, atol=1e-15)


@pytest.mark.parametrize("kind", MOVING, ids=repr)
def test_coordinates_move_on_a_manifold(kind):
    q, v = state(kind)
    small = [0.1 * x for x in v]
    there = kind.integrate(q, small)
    np.testing.assert_allclose(kind.difference(q, there), small, atol=1e-14)
    np.testing.assert_allclose(kind.tangent(q, kind.rates(q, v)), v, atol=1e-14)
    later, before = (kind.integrate(q, [s * STEP * x for x in v]) for s in (1.0, -1.0))
    rates = (np.array(later) - before) / (2.0 * STEP)
    np.testing.assert_allclose(kind.rates(q, v), rates, atol=1e-8)
    slope = kind.difference_slope(np.array(small))
    ends = [kind.difference(q, kind.integrate(there, [s * STEP * x for x in v])) for s in (1, -1)]
    np.testing.assert_allclose(slope @ v, np.subtract(*ends) / (2.0 * STEP), atol=1e-8)


def arm(joint, **values):
    """Return a chain with a joint of a kind, or of two, between two hinges."""
    rng = np.random.default_rng(3)
    b = mb.Builder()
    for name in ("lower", "nut", "upper"):
        b.add_body(name, *random_inertia(rng))
    b.attach("lower", joint="first", axis=[0, 1, 0])
    joint(b, **values)
    b.attach("upper", "nut", joint="last", axis=[1, 0, 0], position=[0.3, 0.0, 0.1])
    return b.build()


def by_kind(b, kind="cylindrical"):
    b.attach("nut", "lower", joint="nut", kind=kind, axis=[0.6, 0.0, 0.8], position=[0.2, 0, 0])


def by_two(b):
    """A slider with a hinge on it, along and about the same axis."""
    b.add_massless("slider")
    at = {"axis": [0.6, 0.0, 0.8]}
    b.attach("slider", "lower", joint="slide", kind="prismatic", position=[0.2, 0, 0], **at)
    b.attach("nut", "slider", joint="turn", kind="revolute", **at)


@pytest.mark.parametrize("function", [mb.rnea, mb.aba, mb.rnea_derivatives])
def test_a_cylindrical_joint_is_a_slider_and_a_hinge(function):
    rng = np.random.default_rng(5)
    x = [rng.normal(size=4) for _ in range(3)]
    ours, theirs = (function(model, *x) for model in (arm(by_kind), arm(by_two)))
    for one, other in zip(np.atleast_1d(ours), np.atleast_1d(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12 * max(1.0, np.abs(other).max()))


class Threaded(Cylindrical):
    """The kind that CONTRIBUTING.md adds: a class, and a row of the table."""


def test_a_kind_is_added_by_a_class_and_a_row(monkeypatch):
    """Builders, files, closures, derivatives and recorded programs know it from the table."""
    monkeypatch.setitem(KINDS, "threaded", Threaded("threaded", urdf="threaded"))
    ours, theirs = arm(by_kind, kind="threaded"), arm(by_kind)
    rng = np.random.default_rng(5)
    x = [rng.normal(size=4) for _ in range(3)]
    np.testing.assert_array_equal(mb.aba(ours, *x), mb.aba(theirs, *x))
    slopes = [arc.jac(lambda q, m=m: mb.aba(m, q, x[1], x[2]))(x[0]) for m in (ours, theirs)]
    np.testing.assert_array_equal(*slopes)
    assert mb.Closure("lower", "upper", "threaded").rows.shape == (4, 6)
    assert "threaded" in str(ours) and ours.links[1].kind is KINDS["threaded"]
    assert mb.random_configuration(ours, rng).shape == (4,)
