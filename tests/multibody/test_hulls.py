"""Convex hulls that touch: distances against a least-squares solver, stacks, derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact.collision import pair_touches
from archimedes.multibody.contact.hulls import Core, hull_core, nearest_touch

from .test_contact_pairs import loose, rest

CUBE = np.array([*itertools.product((-0.1, 0.1), repeat=3)])
ENDS = np.array([[0, 0, -0.3], [0, 0, 0.3]])
ROCKS = [np.random.default_rng(k).normal(size=(12, 3)) * [0.3, 0.2, 0.25] for k in range(2)]
CORNERS = np.array([*itertools.product((-0.25, 0.25), (-0.15, 0.15), (-0.35, 0.35))])
OTHERS = {
    "hull": (lambda name: mb.hull(name, ROCKS[1]), hull_core(ROCKS[1], None, "")[0], None),
    "sphere": (lambda name: mb.sphere(name, 0.1), np.zeros((1, 3)), 0.1),
    "capsule": (lambda name: mb.capsule(name, 0.1, 0.6), ENDS, 0.1),
    "box": (lambda name: mb.box(name, 2 * CORNERS[-1]), CORNERS, 0.0),
}  # fmt: skip


def distance(V, W):
    """Return the distance of two convex hulls, by a solver of least squares with limits."""
    weight = 1e4
    A = np.zeros((5, len(V) + len(W)))
    A[:3, : len(V)], A[:3, len(V) :] = V.T, -W.T
    A[3, : len(V)] = A[4, len(V) :] = weight
    x = nnls(A, [0, 0, 0, weight, weight], maxiter=10_000)[0]
    a, b = x[: len(V)], x[len(V) :]
    return np.linalg.norm(a @ V / a.sum() - b @ W / b.sum())


def in_world(model, q, frame, points):
    """Return points (n, 3) of a frame in the axes of the world."""
    return mb.frame_pose(model, q, frame).apply(points.T).T


@pytest.mark.long_cases("hull", "box", "capsule")
@pytest.mark.parametrize("kind", OTHERS)
def test_distances(kind):
    make, W, radius = OTHERS[kind]
    model, shapes = loose("ab"), (mb.hull("a", ROCKS[0]), make("b"))
    radius = shapes[1].radius if radius is None else radius
    touches, interpreted = (
        arc.compile(lambda q: pair_touches(model, q, *shapes), backend=backend)
        for backend in ("llvm", "interpreter")
    )
    rng = np.random.default_rng(2)
    tried = 0
    for _ in range(60):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.6 * rng.normal(size=3)
        V = in_world(model, q, "a", shapes[0].centers)
        moved = in_world(model, q, "b", W)
        expected = distance(V, moved)
        if expected < 1e-3:
            continue
        tried += 1
        found = touches(q)
        gap, normal, *_ = min(found, key=lambda touch: touch[0])
        assert gap == pytest.approx(expected - shapes[0].radius - radius, abs=1e-9)
        # The normal separates them: it is the direction in which they are that far apart.
        assert np.min(V @ normal) - np.max(moved @ normal) == pytest.approx(expected, abs=1e-9)
        assert all(touch[0] >= gap - 1e-9 for touch in found)
    assert tried > 30
    for one, other, eager in zip(touches(q), interpreted(q), pair_touches(model, q, *shapes)):
        for x, y, z in zip(one, other, eager):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_allclose(x, z, rtol=1e-12, atol=1e-12)


def test_depths_within_the_rounding_and_beyond():
    model, shape = loose("ab"), [mb.hull(name, CUBE, rounding=0.01) for name in "ab"]
    for height in (0.21, 0.2, 0.19, 0.1801, 0.1799, 0.15):
        q = mb.neutral(model)
        q[7:10] = [0.03, -0.02, height]
        for gap, normal, place, *_ in pair_touches(model, q, *shape):
            assert gap == pytest.approx(height - 0.2, abs=1e-12)
            np.testing.assert_allclose(normal, [0, 0, -1], atol=1e-9)
            assert place[2] == pytest.approx(0.5 * height, abs=1e-12)


def test_faces_touch_at_the_corners_of_what_they_share():
    """The cores of two cubes, turned by 45 degrees: an octagon, of which four corners are taken."""
    model, shape = loose("ab"), [mb.hull(name, CUBE, rounding=0.01) for name in "ab"]
    q = mb.neutral(model)
    q[9] = 0.2
    q[10:14] = np.cos(np.pi / 8), 0.0, 0.0, np.sin(np.pi / 8)
    places = np.array([touch[2][:2] for touch in pair_touches(model, q, *shape)])
    inside = 0.09
    assert np.abs(places).max() <= inside + 1e-8  # one square
    assert np.abs(places @ [[1, -1], [1, 1]]).max() <= inside * np.sqrt(2.0) + 1e-8  # the other
    assert len({tuple(p) for p in places.round(9).tolist()}) == 4
    shoelace = places[np.argsort(np.arctan2(places[:, 1], places[:, 0]))]
    x, y = shoelace.T
    area = 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))
    assert area > 0.5 * 8 * (np.sqrt(2.0) - 1.0) * inside**2  # at least half of the octagon's


def test_derivatives_of_gap_and_normal():
    V, radius, polygons = hull_core(ROCKS[0], None, "")
    W = hull_core(ROCKS[1], None, "")[0]

    def touch(p, turn):
        moved = W @ turn.T + p
        other = Core(moved, radius, polygons.corners[:1], 0.0 * polygons.normals[:1])
        return nearest_touch(Core(V, radius, polygons.corners, polygons.normals), other)[:2]

    slope = arc.compile(arc.jac(touch))
    for seed in range(6):
        turn = Rotation.random(random_state=seed).as_matrix()
        p = np.random.default_rng(seed).normal(size=3)
        p *= 1.2 / np.linalg.norm(p)
        gap, normal = slope(p, turn)
        h = 1e-6
        ends = [[touch(p + sign * h * e, turn) for sign in (1, -1)] for e in np.eye(3)]
        for k, (a, b) in enumerate(ends):
            assert gap[k] == pytest.approx((a[0] - b[0]) / (2 * h), abs=1e-8)
            np.testing.assert_allclose(normal[:, k], (a[1] - b[1]) / (2 * h), atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 4])
def test_stacked_hulls_rest(count):
    model = loose([f"box{k}" for k in range(count)], inertia=[0.2**2 / 6] * 3)
    q = mb.neutral(model)
    q[::7], q[2::7] = 0.01 * np.arange(count), 0.2 * (np.arange(count) + 0.5)
    cubes = [mb.hull(f"box{k}", CUBE) for k in range(count)]
    pairs = [mb.Pair(b, a, friction=0.5) for a, b in itertools.pairwise(cubes)]
    end = rest(model, q, cubes, pairs, 1.0)
    assert np.abs(end.v).max() < 1e-9
    assert np.abs(mb.difference(model, q, end.q)).max() < 1e-9


@pytest.mark.long
def test_a_rock_comes_to_rest_on_a_face():
    """Thrown, it rolls until it lies on a face; energy is only lost."""
    model = loose("a", inertia=(0.03, 0.04, 0.05))
    shape = [mb.hull("a", ROCKS[0] - ROCKS[0].mean(axis=0))]

    def scene(x):
        def one(x, _):
            x = mb.contact_step(model, x, 1e-3, shape, mb.Ground(friction=0.6), recovery=0.0)
            return x, mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)

        return arc.scan(one, x, length=4000)

    q = mb.neutral(model)
    q[:7] = [0, 0, 0.9, 0.8, 0.6, 0.0, 0.0]
    end, energy = arc.compile(scene)(mb.State(q, np.array([0.5, 0.2, 0.0, 1.0, -2.0, 0.5])))
    # As a step of free fall gains m (g h)^2 / 2 at most.
    assert np.diff(energy).max() < 0.5 * (9.81 * 1e-3) ** 2 * 1.1
    assert np.abs(end.v).max() < 1e-6
    lowest = np.sort(in_world(model, end.q, "a", shape[0].centers)[:, 2])
    assert np.ptp(lowest[:3]) < 1e-4


def test_meshes_of_a_model_are_hulls():
    b = mb.Builder()
    b.add_body("crate", mass=1.0, inertia=[0.01] * 3)
    triangles = [[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7]]
    b.add_shape("crate", "mesh", [2.0, 1.0, 1.0], "collision", surface=mb.Surface(CUBE, triangles))
    (shape,) = mb.contact_shapes(b.build(base="floating"))
    assert shape.kind == "hull" and len(shape.centers) == 8 and len(shape.polygons.corners) == 6
    expected = CUBE * [2.0, 1.0, 1.0]
    expected -= np.sign(expected) * shape.radius
    assert {*map(tuple, shape.centers.round(9))} == {*map(tuple, expected.round(9))}


def test_refusals():
    with pytest.raises(ValueError, match=r"hull on 'a': these 4 points have no volume"):
        mb.hull("a", [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
    with pytest.raises(ValueError, match=r"hull on 'a': these 3 points have no volume"):
        mb.hull("a", np.eye(3))
    with pytest.raises(ValueError, match=r"points must be finite and \(n, 3\), got shape \(8, 2\)"):
        mb.hull("a", CUBE[:, :2])
    with pytest.raises(ValueError, match="points must be finite"):
        mb.hull("a", CUBE * np.nan)
    with pytest.raises(ValueError, match=r"largest ball inside has a radius of 0\.1 m\), got 0\.1"):
        mb.hull("a", CUBE, rounding=0.1)
    with pytest.raises(ValueError, match="hull rounding must not be negative"):
        mb.hull("a", CUBE, rounding=-1.0)
    with pytest.raises(ValueError, match="make a hull, a cylinder or an ellipsoid by the function"):
        mb.Contacts("a", CUBE, kind="hull")
