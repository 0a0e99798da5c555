"""Bodies that touch each other: distances, a cradle, stacks, energy that never grows.

How many balls of a cradle fly off: `closed_forms`.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact.collision import pair_touches

SIDES, RADIUS, LENGTH = np.array([0.5, 0.3, 0.7]), 0.2, 0.8
SHAPES = {
    "sphere": lambda name: mb.sphere(name, RADIUS),
    "capsule": lambda name: mb.capsule(name, RADIUS, LENGTH),
    "box": lambda name: mb.box(name, SIDES),
}


def loose(names, mass=1.0, inertia=(0.1, 0.1, 0.1), **values):
    b = mb.Builder()
    for name in names:
        b.add_body(name, mass=mass, inertia=[*inertia])
        b.attach(name, joint=name, kind="free")
    return b.build(**values)


def energy(model, x):
    return mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)


def mujoco_distance(first, second):
    """Return the distance of two shapes, and the places between which it is, as MuJoCo has it."""
    from tests.multibody.mujoco_peer import mujoco

    sizes = {
        "sphere": f"{RADIUS}",
        "capsule": f"{RADIUS} {LENGTH / 2}",
        "box": " ".join(map(str, SIDES / 2)),
    }
    bodies = "".join(
        f'<body><freejoint/><geom type="{kind}" size="{sizes[kind]}"/></body>'
        for kind in (first, second)
    )
    peer = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data = mujoco.MjData(peer)

    def distance(q):
        data.qpos[:] = q
        mujoco.mj_kinematics(peer, data)
        ends = np.zeros(6)
        return mujoco.mj_geomDistance(peer, data, 0, 1, 10.0, ends), ends

    return distance


@pytest.mark.parametrize(
    ("first", "second"),
    [(a, b) for k, a in enumerate(SHAPES) for b in [*SHAPES][k:] if (a, b) != ("box", "box")],
)
def test_distances(first, second):
    """The nearest of the places of contact is as far as MuJoCo says; its normal leads there."""
    distance_of = mujoco_distance(first, second)
    model = loose("ab")
    shapes = SHAPES[first]("a"), SHAPES[second]("b")
    found = arc.compile(lambda q: pair_touches(model, q, *shapes))
    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(60):
        q = mb.random_configuration(model, rng)
        q[:3], q[7:10] = 0.0, 0.9 * rng.normal(size=3)
        distance, ends = distance_of(q)
        if distance < 0.02:  # overlapping: there is more than one way out
            continue
        tried += 1
        gap, normal, place, *_ = min(found(q), key=lambda touch: float(touch[0]))
        assert gap == pytest.approx(distance, abs=1e-6)
        np.testing.assert_allclose(normal * gap, ends[:3] - ends[3:], atol=1e-5)
        np.testing.assert_allclose(place, 0.5 * (ends[:3] + ends[3:]), atol=1e-2)
    assert tried > 20


def test_boxes_that_meet():
    """Pushed together until they nearly touch: the same distance, along the same normal."""
    distance_of = mujoco_distance("box", "box")
    model = loose("ab")
    found = arc.compile(lambda q: pair_touches(model, q, mb.box("a", SIDES), mb.box("b", SIDES)))
    rng = np.random.default_rng(0)
    for _ in range(40):
        q = mb.random_configuration(model, rng)
        q[:3] = 0.0
        toward, near, far = rng.normal(size=3), 0.0, 2.0
        toward /= np.sqrt(toward @ toward)
        while far - near > 1e-5:
            middle = 0.5 * (near + far)
            q[7:10] = middle * toward
            near, far = (middle, far) if distance_of(q)[0] < 1e-5 else (near, middle)
        q[7:10] = far * toward
        distance, _ = distance_of(q)
        gap, normal, *_ = min(found(q), key=lambda touch: float(touch[0]))
        assert gap == pytest.approx(distance, abs=1e-4)
        # pushed on along the normal they are apart by as much
        q[:3] += 0.01 * normal
        assert distance_of(q)[0] == pytest.approx(gap + 0.01, abs=1e-3)


def test_boxes_face_to_face():
    """Four corners of what two faces share, whatever the boxes' attitudes."""
    model = loose("ab")
    shapes = mb.box("a", [1.0, 0.6, 0.4]), mb.box("b", [0.5, 1.2, 0.3])
    rng = np.random.default_rng(1)
    for _ in range(5):
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        R = R * np.sign(np.linalg.det(R))
        attitude = arc.spatial.RotationMatrix(R.T).as_quat().array
        place = R @ np.array([0.2, 0.1, 0.35 + 1e-3])
        q = np.concatenate([np.zeros(3), attitude, place, attitude])
        touches = pair_touches(model, q, *shapes)
        corners = {tuple(np.round(R.T @ t[2], 6)[:2].tolist()) for t in touches}
        # x: -0.05 to 0.45; y: -0.3 to 0.3, the shorter one's
        assert corners == {(-0.05, 0.3), (-0.05, -0.3), (0.45, 0.3), (0.45, -0.3)}
        for gap, normal, *_ in touches:
            assert gap == pytest.approx(1e-3, abs=1e-12)
            np.testing.assert_allclose(normal, -R[:, 2], atol=1e-12)


def test_boxes_edge_to_edge():
    """Two edges that cross: one place, halfway, along the normal of both."""
    model = loose("ab")
    shape = [mb.box(name, [1.0, 1.0, 1.0]) for name in "ab"]
    c, s = np.cos(np.pi / 8), np.sin(np.pi / 8)
    up = np.sqrt(2.0) + 0.01
    q = np.array([0, 0, 0, c, s, 0, 0, 0, 0, up, c, 0, s, 0])  # turned by 45 deg about x and y
    gap, normal, place, *_ = pair_touches(model, q, *shape)[0]
    assert gap == pytest.approx(0.01, abs=1e-12)
    np.testing.assert_allclose(normal, [0, 0, -1], atol=1e-12)
    np.testing.assert_allclose(place, [0, 0, np.sqrt(0.5) + 0.005], atol=1e-12)
    assert min(t[0] for t in pair_touches(model, q, *shape)[1:]) > 100.0


def cradle(count):
    b = mb.Builder("cradle")
    for k in range(count):
        b.add_body(f"ball{k}", mass=1.0, com=[0, 0, -1.0], inertia=[4e-3] * 3)
        b.attach(f"ball{k}", joint=f"string{k}", axis=[0, 1, 0], position=[0.2 * k, 0, 0])
    balls = [mb.sphere(f"ball{k}", 0.1, [0, 0, -1.0]) for k in range(count)]
    pairs = [mb.Pair(a, b, friction=0.0) for a, b in itertools.pairwise(balls)]
    return b.build(), pairs


def test_balls_from_both_sides_are_treated_alike():
    model, pairs = cradle(5)
    still = model.replace(gravity=np.zeros(3))
    x = mb.State(np.zeros(5), np.array([-1.0, 0, 0, 0, 1.0]))
    after = mb.contact_step(still, x, 1e-6, pairs=pairs, restitution=1.0)
    np.testing.assert_allclose(after.v, -x.v, atol=1e-12)


@pytest.mark.long
def test_a_cradle_swings():
    """Ten seconds: the energy stays, and it is the outer balls that swing."""
    model, pairs = cradle(3)
    x = mb.rest_state(model, [0.3, 0.0, 0.0])

    def step(k, x):
        return mb.contact_step(model, x, 1e-3, pairs=pairs, restitution=1.0)

    def scene(x):
        def ten(x, _):
            x = arc.fori_loop(0, 10, step, x)
            return x, (energy(model, x), x.q)

        return arc.scan(ten, x, length=1000)

    _, (total, q) = arc.compile(scene)(x)
    # semi-implicit Euler: the energy swings with the step, and comes back
    assert np.abs(total - total[0]).max() < 2e-3
    assert q[:, 0].max() > 0.28 and q[:, 2].min() < -0.28
    assert np.abs(q[:, 1]).max() < 0.03


def stack(count, side=0.2, shift=0.02):
    model = loose([f"box{k}" for k in range(count)], inertia=[side**2 / 6] * 3)
    q = mb.neutral(model)
    for k in range(count):
        q[7 * k], q[7 * k + 2] = shift * k, side * (k + 0.5)
    boxes = [mb.box(f"box{k}", [side] * 3) for k in range(count)]
    return model, q, boxes, [mb.Pair(a, b, friction=0.5) for a, b in itertools.pairwise(boxes)]


def rest(model, q, boxes, pairs, seconds, step=5e-3):
    def one(k, x):
        return mb.contact_step(model, x, step, boxes[:1], mb.Ground(friction=0.5), pairs=pairs)

    run = arc.compile(lambda x: arc.fori_loop(0, round(seconds / step), one, x))
    return run(mb.rest_state(model, q))


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "seconds"), [(2, 0.25), pytest.param(3, 10.0, marks=pytest.mark.long)]
)
def test_stacked_boxes_rest(count, seconds):
    model, q, boxes, pairs = stack(count)
    end = rest(model, q, boxes, pairs, seconds)
    assert np.abs(end.v).max() < 1e-12
    assert np.abs(mb.difference(model, q, end.q)).max() < 1e-12


@pytest.mark.long
def test_a_stack_topples_beyond_its_edge():
    """The upper of two boxes stays while its centre is above the lower one, and falls beyond."""
    for shift, falls in ((0.098, False), (0.102, True)):
        model, q, boxes, pairs = stack(2, shift=shift)
        end = rest(model, q, boxes, pairs, 0.5)
        moved = np.abs(mb.difference(model, q, end.q)).max()
        assert moved > 0.01 if falls else moved < 1e-9


@pytest.mark.long
def test_energy_never_grows_in_a_pile():
    """A box, a capsule and a ball fall on each other and the ground."""
    model = loose(["box", "capsule", "ball"], inertia=(0.01, 0.012, 0.014))
    shapes = [
        mb.box("box", [0.4, 0.3, 0.2]), mb.capsule("capsule", 0.08, 0.3), mb.sphere("ball", 0.1),
    ]  # fmt: skip
    q = mb.neutral(model)
    q[:7] = [0, 0, 0.15, 0.98, 0.1, 0.05, 0.1]
    q[7:14] = [0.05, 0.02, 0.45, 0.7, 0.65, 0.1, 0.0]
    q[14:17] = [-0.05, 0.0, 0.7]
    pairs, ground = mb.every_pair(shapes, friction=0.4), mb.Ground(friction=0.4)

    def scene(x):
        def one(x, _):
            x = mb.contact_step(
                model, x, 1e-3, shapes, ground, pairs=pairs, recovery=0.0, restitution=0.3
            )
            return x, energy(model, x)

        return arc.scan(one, x, length=1500)

    start = mb.rest_state(model, q)
    end, total = arc.compile(scene)(start)
    # semi-implicit Euler itself: a step of free fall gains m g^2 h^2 / 2 at most per body
    assert np.diff(total).max() < 3 * 0.5 * 9.81**2 * 1e-6 * 1.1
    assert total[-1] < energy(model, start) - 3.0
    assert np.isfinite(end.q).all()


@pytest.mark.parametrize("kind", ["ground", "half-space", "box"])
def test_a_ball_rolls_on_what_moves_or_not(kind):
    """A plane that falls freely carries nothing; one that is fixed makes a ball roll by 5/7."""
    angle, r = 0.3, 0.1
    b = mb.Builder()
    b.add_body("ball", mass=2.0, inertia=[0.4 * 2.0 * r * r] * 3)
    b.attach("ball", joint="ball", kind="free")
    b.add_frame("table", "world", rotation=turn_y(angle))
    model = b.build()
    n, down = turn_y(angle)[:, 2], turn_y(angle)[:, 0]
    q = mb.neutral(model)
    q[:3] = r * n
    ball = mb.sphere("ball", r)
    values = {
        "ground": {"contacts": [ball], "ground": mb.Ground(normal=n, friction=0.6)},
        "half-space": {"pairs": [mb.Pair(ball, mb.half_space("table"), friction=0.6)]},
        "box": {
            "pairs": [
                mb.Pair(mb.box("table", [2, 2, 1], position=[0, 0, -0.5]), ball, friction=0.6)
            ]
        },
    }[kind]
    step = 1e-4
    after = mb.contact_step(model, mb.rest_state(model, q), step, **values)
    twist = mb.frame_twist(model, after.q, after.v, "ball", "aligned")
    assert twist[:3] @ down == pytest.approx(5 / 7 * 9.81 * np.sin(angle) * step, rel=1e-9)
    assert twist[4] * r == pytest.approx(twist[:3] @ down, rel=1e-9)


def turn_y(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def test_compliant_forces_are_equal_and_opposite():
    model = loose("ab")
    q = np.array([0.1, 0, 0, 1, 0, 0, 0, 0.28, 0.05, 0, 0.9, 0.1, 0.3, 0.2])
    v = np.random.default_rng(0).normal(size=12)
    pair = [mb.Pair(mb.sphere("a", 0.1), mb.capsule("b", 0.1, 0.3))]
    forces = mb.contact_forces(model, q, v, pairs=pair)
    a = mb.aba(model, q, v, np.zeros(12), forces=forces)
    freely = mb.aba(model, q, v, np.zeros(12))
    change = mb.centroidal_matrix(model, q) @ (a - freely)
    assert np.abs(forces["a"]).max() > 1.0
    np.testing.assert_allclose(change, 0.0, atol=1e-9)


@pytest.mark.parametrize("other", ["box", "capsule"])
@pytest.mark.parametrize("lying", [0.0, 1.0])
def test_a_capsule_that_touches_at_one_place_is_one_spring(other, lying):
    """Standing on its end, or across another: its three places were one, and counted each."""
    model, deep = loose("a"), 1e-3
    along_x = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    under = {
        "box": mb.box("world", [0.2, 0.2, 0.2]),
        "capsule": mb.capsule("world", 0.1, 1, along_x),
    }
    q = mb.neutral(model)
    q[2] = 0.2 + 0.1 * (1.0 - lying) - deep
    q[3:7] = [np.cos(np.pi / 4 * lying), np.sin(np.pi / 4 * lying), 0, 0]
    length = 0.2 if not (lying and other == "box") else 0.0
    pair = mb.Pair(mb.capsule("a", 0.1, length), under[other])
    force = mb.contact_forces(model, q, np.zeros(6), pairs=[pair])["a"]
    assert np.linalg.norm(force[:3]) == pytest.approx(1e6 * deep**1.5, rel=1e-6)


def test_a_box_on_its_corner_is_one_spring():
    """As on the ground: the corner was chosen four times, and counted each."""
    model, deep = loose("a"), 1e-3
    corner = np.array([0.05, 0.1, 0.15])
    turned = arc.spatial.RotationMatrix(up_along(corner)).as_quat().array
    q = np.concatenate([[0.02, 0.01, 0.5 + np.linalg.norm(corner) - deep], turned])
    crate, table = mb.box("a", 2.0 * corner), mb.box("world", [1.0, 1.0, 1.0])
    on_table = mb.contact_forces(model, q, np.zeros(6), pairs=[mb.Pair(crate, table)])["a"]
    on_ground = mb.contact_forces(model, q, np.zeros(6), [crate], mb.Ground(point=[0, 0, 0.5]))["a"]
    np.testing.assert_allclose(on_table[:3], on_ground[:3], rtol=1e-9, atol=1e-9)
    assert np.linalg.norm(on_table[:3]) == pytest.approx(1e6 * deep**1.5, rel=1e-6)


def up_along(way):
    """Return the matrix from the world to a body, with this way of the body up in the world."""
    z = way / np.linalg.norm(way)
    x = np.cross([0.0, 1.0, 0.0], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def test_refusals():
    model = loose("ab")
    a, b = mb.sphere("a", 0.1), mb.sphere("b", 0.1)
    x = mb.rest_state(model)
    with pytest.raises(ValueError, match="Pair: both shapes are on frame 'a'"):
        mb.Pair(a, a)
    with pytest.raises(ValueError, match="two half-spaces cannot be in contact"):
        mb.Pair(mb.half_space("a"), mb.half_space("b"))
    with pytest.raises(ValueError, match="contacts need a ground"):
        mb.contact_step(model, x, 1e-3, [a])
    with pytest.raises(ValueError, match="nothing that could touch"):
        mb.contact_step(model, x, 1e-3)
    with pytest.raises(ValueError, match="box size must be positive"):
        mb.box("a", [1, 0, 1])
    with pytest.raises(ValueError, match="no frame 'c'"):
        mb.contact_step(model, x, 1e-3, pairs=[mb.Pair(a, mb.sphere("c", 0.1))])
    with pytest.raises(ValueError, match="neither moves"):
        fixed = mb.Pair(mb.sphere("world", 0.1), mb.sphere("post", 0.1))
        made = mb.Builder()
        made.add_body("a", 1.0, inertia=[1, 1, 1])
        made.attach("a", joint="a", kind="free")
        made.add_frame("post", "world")
        mb.contact_step(made.build(), mb.rest_state(made.build()), 1e-3, pairs=[fixed])
    assert b.kind == "points"


def test_programs_of_stacks_do_not_grow_with_their_pairs():
    # Pairs of boxes share one program, and the product of Jacobians is a loop: 45,214 before.
    def nodes(count):
        model, q, boxes, pairs = stack(count)

        def step(x):
            return mb.contact_step(model, x, 5e-3, boxes[:1], mb.Ground(friction=0.5), pairs=pairs)

        return len(arc.compile(step).graph(mb.rest_state(model, q)).op)

    assert nodes(5) < 20_000
