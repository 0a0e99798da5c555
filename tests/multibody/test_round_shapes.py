"""Cylinders and ellipsoids: exact on planes, within 1 % to other shapes; planes of a model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from ..long_parameters import long_but
from .test_contact_pairs import loose

RADIUS, LENGTH, AXES, G = 0.2, 0.5, np.array([0.1, 0.2, 0.3]), 9.81
KINDS = {
    "cylinder": lambda name: mb.cylinder(name, RADIUS, LENGTH),
    "ellipsoid": lambda name: mb.ellipsoid(name, AXES),
    "sphere": lambda name: mb.sphere(name, 0.15),
    "box": lambda name: mb.box(name, [0.3, 0.2, 0.4]),
    "capsule": lambda name: mb.capsule(name, 0.1, 0.4),
    "hull": lambda name: mb.hull(name, 0.3 * np.eye(4, 3), rounding=0.0),
}
GEOMS = {
    "cylinder": "type='cylinder' size='0.2 0.25'",
    "ellipsoid": "type='ellipsoid' size='0.1 0.2 0.3'",
    "sphere": "type='sphere' size='0.15'",
    "box": "type='box' size='0.15 0.1 0.2'",
    "capsule": "type='capsule' size='0.1 0.2'",
    "hull": "type='mesh' mesh='hull'",
}
COUPLES = [
    x for x in itertools.combinations_with_replacement(KINDS, 2) if {*x} & {*list(KINDS)[:2]}
]


def body(mass, inertia, **values):
    b = mb.Builder(**values)
    b.add_body("body", mass=mass, inertia=[*inertia])
    return b.build(base="floating")


@pytest.mark.parametrize("kinds", long_but(COUPLES[:1], COUPLES), ids="-".join)
def test_against_mujoco(kinds):
    """Distances to other shapes are off by at most 1 % of the sizes of what is round."""
    mujoco = pytest.importorskip("mujoco")
    bodies = "".join(
        f"<body name='{name}'><freejoint/><geom name='{name}' {GEOMS[kind]}/></body>"
        for name, kind in zip("ab", kinds, strict=True)
    )
    corners = " ".join(map(str, (0.3 * np.eye(4, 3)).ravel()))
    peer = mujoco.MjModel.from_xml_string(
        "<mujoco><option ccd_tolerance='1e-12' ccd_iterations='500'/>"
        f"<asset><mesh name='hull' vertex='{corners}'/></asset>"
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    data, ends = mujoco.MjData(peer), np.zeros(6)
    model = loose("ab")
    shapes = [KINDS[kind](name) for kind, name in zip(kinds, "ab", strict=True)]
    found = arc.compile(lambda q: mb.distance(model, q, *shapes).distance)
    rng, tried = np.random.default_rng(0), 0
    within = 0.01 * sum({"cylinder": RADIUS, "ellipsoid": AXES.max()}.get(k, 0.0) for k in kinds)
    for _ in range(60):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.7 * rng.normal(size=3)
        data.qpos[:] = q
        mujoco.mj_kinematics(peer, data)
        if "hull" in kinds:  # MuJoCo moves the origin of a mesh to its centre
            k = kinds.index("hull")
            X = mb.frame_pose(model, q, "ab"[k])
            data.geom_xpos[k] = X.t + np.asarray(X.r.as_matrix()) @ peer.mesh_pos[0]
        expected = mujoco.mj_geomDistance(peer, data, 0, 1, 10.0, ends)
        if expected > 1e-3:
            tried += 1
            assert found(q) == pytest.approx(expected, abs=within)
    assert tried > 30


@pytest.mark.parametrize("kind", ["cylinder", "ellipsoid"])
def test_the_ground_is_met_exactly(kind):
    """Gaps in random poses, against the largest reach of the shape; and their derivatives."""
    model, shape, rng = body(1.0, [1, 1, 1]), KINDS[kind]("body"), np.random.default_rng(1)
    normal = np.array([0.2, -0.3, 1.0])
    ground = mb.Ground(normal=normal)
    plane = mb.half_space("world", normal)
    found = arc.compile(lambda q: mb.distance(model, q, shape, ground).distance)
    beside = arc.compile(lambda q: mb.distance(model, q, shape, plane).distance)
    slope = arc.jac(lambda dq, q: found(mb.integrate(model, q, dq)))
    n = normal / np.sqrt(normal @ normal)
    for _ in range(50):
        q = mb.random_configuration(model, rng)
        along = np.asarray(mb.frame_pose(model, q, "body").r.as_matrix()).T @ n
        if kind == "ellipsoid":
            reach = np.sqrt(np.sum((AXES * along) ** 2))
        else:
            reach = RADIUS * np.hypot(along[0], along[1]) + 0.5 * LENGTH * abs(along[2])
        assert found(q) == pytest.approx(q[:3] @ n - reach, abs=1e-13)
        assert beside(q) == pytest.approx(q[:3] @ n - reach, abs=1e-13)
        move = lambda d, q=q: found(mb.integrate(model, q, d))
        near = [(move(d) - move(-d)) / 2e-6 for d in 1e-6 * np.eye(6)]
        np.testing.assert_allclose(slope(np.zeros(6), q), near, atol=1e-8)


def test_a_wheel_rolls_and_a_can_stands():
    """A solid cylinder rolls down by 2/3 g sin; on end it stays where it is."""
    m, r, angle = 2.0, RADIUS, 0.2
    across = m * (3 * r * r + LENGTH**2) / 12
    model, can = body(m, [across, across, 0.5 * m * r * r]), [mb.cylinder("body", r, LENGTH)]
    turned = mb.Ground(normal=[np.sin(angle), 0, np.cos(angle)])
    run = arc.compile(
        lambda x, ground, step, n: arc.fori_loop(
            0, n, lambda k, x: mb.contact_step(model, x, step, can, ground), x
        ),
        static_argnames=("step", "n"),
    )
    lying = np.array([r * np.sin(angle), 0, r * np.cos(angle), np.sqrt(0.5), -np.sqrt(0.5), 0, 0])
    end = run(mb.rest_state(model, lying), turned, step=1e-3, n=200)
    speed = np.linalg.norm(mb.frame_twist(model, end.q, end.v, "body", "aligned")[:3])
    assert speed == pytest.approx(2 / 3 * G * np.sin(angle) * 0.2, rel=2e-4)
    standing = np.array([0, 0, 0.5 * LENGTH, 1, 0, 0, 0])
    end = run(mb.rest_state(model, standing), mb.Ground(), step=1e-3, n=200)
    np.testing.assert_allclose(end.q, standing, atol=1e-6)


def test_an_egg_rocks_at_its_frequency():
    """With half axes a, c about y: w^2 = m g (a^2 / c - c) / (I + m c^2), by Lagrange."""
    m, (a, _, c) = 2.0, (0.3, 0.2, 0.15)
    inertia = m * (a * a + c * c) / 5
    model, egg = body(m, [inertia] * 3), [mb.ellipsoid("body", [a, 0.2, c])]
    w = np.sqrt(G * (a * a / c - c) / (inertia / m + c * c))
    tilt, step = 1e-3, 1e-4
    height = np.hypot(a * np.sin(tilt), c * np.cos(tilt))
    x = mb.rest_state(model, [0, 0, height, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0])
    move = lambda k, x: mb.contact_step(model, x, step, egg, mb.Ground())
    quarter = round(0.5 * np.pi / w / step)
    end = arc.compile(lambda x: arc.fori_loop(0, quarter, move, x))(x)
    left = tilt * np.cos(w * quarter * step)
    assert 2 * end.q[5] == pytest.approx(left, abs=2e-3 * tilt)
    assert end.v[4] == pytest.approx(-tilt * w, rel=2e-3)


def test_planes_carry():
    """A plane is a half-space that meets what moves through `every_pair`."""
    b = mb.Builder()
    b.add_body("floor", mass=1.0, inertia=[1, 1, 1])
    b.add_body("can", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("floor", kind="fixed", joint="bolt", position=[0, 0, -1])
    b.attach("can", kind="free", joint="can")
    b.add_shape("floor", "plane", [1, 1], "collision")
    b.add_shape("can", "cylinder", [0.1, 0.4], "collision")
    model = b.build()
    shapes = mb.contact_shapes(model)
    assert [shape.kind for shape in shapes] == ["half-space", "cylinder"]
    x = mb.rest_state(model, [0, 0, -0.8, 1, 0, 0, 0])
    pairs = mb.every_pair(shapes)
    move = lambda k, x: mb.contact_step(model, x, 2e-3, pairs=pairs)
    end = arc.compile(lambda x: arc.fori_loop(0, 100, move, x))(x)
    assert np.abs(end.v).max() < 1e-5
    # The plane, which does not move, and a ground: no contact.
    alone = mb.contact_step(model, x, 2e-3, shapes, mb.Ground(point=[0, 0, -1]))
    assert np.abs(alone.v).max() < 1e-5


def test_refusals():
    with pytest.raises(
        ValueError, match="cylinder radius must be positive and finite, in m, got 0"
    ):
        mb.cylinder("a", 0.0, 1.0)
    with pytest.raises(ValueError, match="ellipsoid half_axes must be positive and finite"):
        mb.ellipsoid("a", [1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="make a hull, a cylinder or an ellipsoid by the function"):
        mb.Contacts("a", np.zeros((1, 3)), kind="cylinder")
