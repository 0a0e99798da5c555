"""Distances of shapes: against MuJoCo, a least-squares solver and closed forms; derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact.collision import core_of, solid

from .test_contact_pairs import loose
from .test_hulls import ROCKS
from .test_hulls import distance as least_squares_distance

KINDS = {
    "sphere": lambda name: mb.sphere(name, 0.2, [0.05, 0.0, 0.1]),
    "capsule": lambda name: mb.capsule(name, 0.1, 0.6),
    "box": lambda name: mb.box(name, [0.5, 0.3, 0.7]),
    "hull": lambda name: mb.hull(name, ROCKS[0], rounding=0.0),
}
GEOMS = {
    "sphere": "<geom name='{}' type='sphere' size='0.2' pos='0.05 0 0.1'/>",
    "capsule": "<geom name='{}' type='capsule' size='0.1 0.3'/>",
    "box": "<geom name='{}' type='box' size='0.25 0.15 0.35'/>",
    "hull": "<geom name='{}' type='mesh' mesh='rock'/>",
}
COUPLES = [*itertools.combinations_with_replacement(KINDS, 2)]


def shapes_of(first, second):
    return KINDS[first]("a"), KINDS[second]("b")


def separation(V, W, n):
    """Return how far two sets of points are apart along a direction."""
    return np.min(V @ n) - np.max(W @ n)


@pytest.mark.long_cases("box-hull", "hull-hull")
@pytest.mark.parametrize("kinds", COUPLES, ids="-".join)
def test_against_mujoco(kinds):
    """Distances and nearest points of shapes that are apart, in random poses."""
    mujoco = pytest.importorskip("mujoco")
    vertices = " ".join(map(str, ROCKS[0].ravel()))
    bodies = "".join(
        f"<body name='{name}'><freejoint/>{GEOMS[kind].format(name)}</body>"
        for name, kind in zip("ab", kinds, strict=True)
    )
    xml = (
        "<mujoco><option ccd_tolerance='1e-12' ccd_iterations='500'/>"
        f"<asset><mesh name='rock' vertex='{vertices}' inertia='convex'/></asset>"
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    model, shapes = loose("ab"), shapes_of(*kinds)
    found = arc.compile(lambda q: mb.distance(model, q, *shapes))
    rng, tried = np.random.default_rng(5), 0
    ends = np.zeros(6)
    for _ in range(40):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.8 * rng.normal(size=3)
        data.qpos[:] = q
        mujoco.mj_kinematics(peer, data)
        expected = mujoco.mj_geomDistance(peer, data, 0, 1, 10.0, ends)
        if expected < 1e-3:
            continue
        tried += 1
        d, n, a, b = found(q)
        assert d == pytest.approx(expected, abs=2e-7)
        np.testing.assert_allclose(a - b, d * n, atol=1e-12)
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        # MuJoCo's nearest points are these, unless edges or faces are nearly parallel.
        np.testing.assert_allclose(np.concatenate([a, b]), ends, atol=1e-3)
    assert tried > 15


@pytest.mark.parametrize("kinds", [("box", "hull"), ("hull", "hull"), ("box", "box")])
def test_against_least_squares(kinds):
    model, shapes = loose("ab"), shapes_of(*kinds)
    found = arc.compile(lambda q: mb.distance(model, q, *shapes))
    rng, tried = np.random.default_rng(6), 0
    for _ in range(30):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.7 * rng.normal(size=3)
        V, W = (core_of(solid(model, q, shape)).V for shape in shapes)
        expected = least_squares_distance(V, W)
        d, n, a, b = found(q)
        if expected > 1e-6:
            tried += 1
            assert d == pytest.approx(expected, abs=1e-9)
            assert separation(V, W, n) == pytest.approx(d, abs=1e-9)
        else:  # the normal is a way out: moved along it by the depth, they touch
            assert d <= 1e-9
            assert separation(V - d * n, W, n) == pytest.approx(0.0, abs=1e-9)
        for point, corners in ((a, V), (b, W)):
            assert d < 0.0 or inside(point, corners)
    assert tried > 10


def inside(point, corners):
    """Return whether a point is a mean of corners, up to rounding."""
    rows = np.vstack([corners.T, np.ones(len(corners))])
    slack = np.hstack([rows, np.eye(4), -np.eye(4)])
    cost = np.concatenate([np.zeros(len(corners)), np.ones(8)])
    return linprog(cost, A_eq=slack, b_eq=[*point, 1.0]).fun < 1e-8


def test_boxes_that_overlap_part_by_the_shortest_way():
    """The least of fifteen directions, the normals of faces and products of edges."""
    model, shapes = loose("ab"), shapes_of("box", "box")
    found = arc.compile(lambda q: mb.distance(model, q, *shapes))
    rng, tried, crossed = np.random.default_rng(7), 0, 0
    for _ in range(200):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.25 * rng.normal(size=3)
        A, B = (solid(model, q, shape) for shape in shapes)
        V, W = core_of(A).V, core_of(B).V
        edges = np.array([np.cross(x, y) for x in A.axes.T for y in B.axes.T])
        ways = np.concatenate([A.axes.T, B.axes.T, edges])
        ways /= np.linalg.norm(ways, axis=1)[:, None]
        ways = np.concatenate([ways, -ways])
        apart = np.array([separation(V, W, n) for n in ways])
        if apart.max() > -1e-6:
            continue
        tried += 1
        crossed += int(np.argmax(apart) % 15 >= 6)
        d, n, a, b = found(q)
        assert d == pytest.approx(apart.max(), abs=1e-9)
        assert separation(V, W, n) == pytest.approx(d, abs=1e-9)
        np.testing.assert_allclose(a - b, d * n, atol=1e-12)
    assert tried > 30 and crossed > 2


@pytest.mark.long_cases("*hull", "box-box", "capsule-box")
@pytest.mark.parametrize("kinds", COUPLES, ids="-".join)
def test_derivatives_are_those_of_differences(kinds):
    model, shapes = loose("ab"), shapes_of(*kinds)

    def moved(e, q):
        return mb.distance(model, mb.integrate(model, q, e), *shapes)[:2]

    slope, value = arc.compile(arc.jac(moved)), arc.compile(moved)
    rng, h, tried = np.random.default_rng(8), 1e-6, 0
    for _ in range(12):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.8 * rng.normal(size=3)
        if value(np.zeros(12), q)[0] < 1e-2:
            continue
        tried += 1
        d_slope, n_slope = slope(np.zeros(12), q)
        for k in range(12):
            up, down = (value(sign * h * np.eye(12)[k], q) for sign in (1.0, -1.0))
            assert d_slope[k] == pytest.approx((up[0] - down[0]) / (2 * h), abs=1e-7)
            np.testing.assert_allclose(n_slope[:, k], (up[1] - down[1]) / (2 * h), atol=1e-4)
    assert tried > 3


def test_closed_forms():
    model = loose("ab")
    q = mb.neutral(model)
    q[7:10] = [0.0, 0.0, 1.0]
    ball = mb.sphere("b", 0.1)
    for shape, top in (
        (mb.sphere("a", 0.3), 0.3),
        (mb.capsule("a", 0.1, 0.8), 0.5),
        (mb.box("a", [1.0, 1.0, 0.4]), 0.2),
        (mb.half_space("a"), 0.0),
        (mb.half_space("world", point=[0.0, 0.0, -0.5]), -0.5),
        (mb.Contacts("a", [[0, 0, 0], [0, 0, 0.3], [0.1, 0, 0]], 0.05), 0.35),
        (mb.hull("a", [[0, 0, 0.7], [1, 0, 0], [-1, 1, 0], [-1, -1, 0]], rounding=0.0), 0.7),
    ):
        d, n, a, b = mb.distance(model, q, ball, shape)
        assert d == pytest.approx(0.9 - top, abs=1e-12)
        np.testing.assert_allclose(n, [0, 0, 1], atol=1e-12)
        np.testing.assert_allclose(a, [0, 0, 0.9], atol=1e-12)
        np.testing.assert_allclose(b, [0, 0, top], atol=1e-12)
        back = mb.distance(model, q, shape, ball)
        assert back.distance == pytest.approx(d, abs=1e-12)
        np.testing.assert_allclose(back.normal, -n, atol=1e-12)
        np.testing.assert_allclose(back.first, b, atol=1e-12)
    d, n, a, b = mb.distance(model, q, ball, mb.Ground(normal=[1.0, 0.0, 0.0], point=[-2, 0, 0]))
    assert d == pytest.approx(1.9)
    np.testing.assert_allclose([a, b], [[-0.1, 0, 1], [-2, 0, 1]], atol=1e-12)


@pytest.mark.long
def test_every_way_of_running_agrees():
    model, shapes = loose("ab"), shapes_of("box", "hull")

    def clearance(q):
        return mb.distance(model, q, *shapes).distance

    rng = np.random.default_rng(9)
    many = np.stack([mb.random_configuration(model, rng) for _ in range(6)])
    recorded, batch = arc.compile(clearance), arc.compile(arc.vmap(clearance))(many)
    for q, together in zip(many, batch, strict=True):
        assert recorded(q) == together
        assert clearance(q) == pytest.approx(together, abs=1e-12)


def test_errors():
    model = loose("ab")
    q, ball, plane = mb.neutral(model), mb.sphere("a", 0.1), mb.half_space("b")
    with pytest.raises(TypeError, match="first must be a Contacts, got str"):
        mb.distance(model, q, "a", ball)
    with pytest.raises(TypeError, match="second must be a Contacts, got str; or a Ground"):
        mb.distance(model, q, ball, "b")
    with pytest.raises(ValueError, match="first and second are half-spaces"):
        mb.distance(model, q, plane, mb.half_space("world"))
    with pytest.raises(ValueError, match="the half-space on 'b' has no distance from the ground"):
        mb.distance(model, q, plane, mb.Ground())
