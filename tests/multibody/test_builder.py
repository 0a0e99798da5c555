"""Robots put together by hand: what is built, how it prints, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb
from archimedes.spatial import EulerAngles

from .random_trees import random_inertia


def arm(links=3):
    b = mb.Builder("arm")
    rng = np.random.default_rng(0)
    for k in range(links):
        b.add_body(f"link{k}", *random_inertia(rng))
        parent = f"link{k - 1}" if k else "world"
        b.attach(
            f"link{k}", parent, joint=f"j{k}", axis=[0, 1, 0], position=[0, 0, 0.5], lower=-1.0,
            upper=2.0,
        )  # fmt: skip
    return b


def test_names_and_sizes():
    model = arm().build()
    assert (model.nq, model.nv) == (3, 3)
    assert model.joint_names == ("j0", "j1", "j2")
    assert model.body_names == ("link0", "link1", "link2")
    assert model.frame_names == ("link0", "link1", "link2")
    floating = mb.Builder("drone")
    floating.add_body("hull", 1.0, inertia=[1, 1, 1])
    floating.add_body("arm", 1.0, inertia=[1, 1, 1])
    floating.attach("arm", "hull", joint="shoulder")
    model = floating.build(base="floating")
    assert model.joint_names == ("root_joint", "shoulder")
    assert (model.nq, model.nv) == (8, 7)
    assert np.array_equal(mb.neutral(model), [0, 0, 0, 1, 0, 0, 0, 0])
    assert model.q_slice("shoulder") == slice(7, 8)


def test_printed_as_a_tree():
    b = arm(2)
    b.add_body("tool", 0.25)
    b.weld("tool", "link1", position=[0, 0, 0.1])
    b.add_body("follower", 0.5, inertia=[1, 1, 1])
    b.attach("follower", "link0", joint="f", mimic=mb.Mimic("j1", -2.0, 0.1))
    text = str(b.build())
    first, *rest = text.splitlines()
    assert first.startswith("arm: 3 bodies, ") and first.endswith("kg, nq=2, nv=2")
    assert rest[0].startswith("└─ j0 (revolute, -57.3 to 114.6 deg) → link0, ")
    assert rest[1].startswith("   ├─ j1 (revolute, -57.3 to 114.6 deg) → link1, ")
    assert rest[1].endswith("+ tool")
    assert rest[2] == "   └─ f (revolute, -2 j1 + 5.73 deg) → follower, 0.5 kg"


def test_welded_bodies_are_one():
    """A body in two halves moves like the whole."""
    J = np.diag([0.1, 0.2, 0.25])
    whole = mb.Builder()
    whole.add_body("a", 2.0, [0.3, 0, 0], J)
    whole.attach("a", joint="j", kind="spherical")
    halves = mb.Builder()
    halves.add_body("a", 1.0, [0.3, 0, 0], 0.5 * J)
    halves.attach("a", joint="j", kind="spherical")
    turn = EulerAngles([0.2, -0.4, 0.7], "xyz")
    R = turn.as_matrix().T
    halves.add_body(
        "b", 1.0, R.T @ np.array([0.3, 0, 0] - np.array([1.0, 2, 3])), R.T @ (0.5 * J) @ R
    )
    halves.weld("b", "a", rotation=turn, position=[1.0, 2, 3])
    q, v, a = np.array([1, 0.2, 0.3, 0.4]), np.ones(3), np.ones(3)
    ours, theirs = (mb.rnea(x.build(), q, v, a) for x in (whole, halves))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert halves.build().frame_names == ("a", "b")
    assert halves.build().body_names == ("a",)


def test_locked_joints_are_welds():
    b, locked = arm(), arm()
    locked.lock({"j1": 0.7})
    full, reduced = b.build(), locked.build()
    assert reduced.joint_names == ("j0", "j2")
    q = np.array([0.2, 0.7, -0.4])
    M = mb.crba(full, q)[np.ix_([0, 2], [0, 2])]
    np.testing.assert_allclose(mb.crba(reduced, q[[0, 2]]), M, atol=1e-12)
    pose = mb.frame_pose(reduced, q[[0, 2]], "link2").as_matrix()
    np.testing.assert_allclose(pose, mb.frame_pose(full, q, "link2").as_matrix(), atol=1e-15)


def test_locking_takes_followers_along():
    """A universal joint and a gripper with fingers that follow, locked: the same motion."""
    b = mb.Builder("gripper")
    joints = [
        ("world", {}),
        ("b0", {"kind": "universal", "axis": [0, 1, 0], "second_axis": [1, 0, 0]}),
        ("b1", {"upper": 0.6}),
        ("b1", {"mimic": mb.Mimic("j2", -1.0, 0.1)}),
        ("b3", {"mimic": mb.Mimic("j3", 2.0)}),
    ]
    for k, (parent, values) in enumerate(joints):
        b.add_body(f"b{k}", *random_inertia(np.random.default_rng(k)))
        b.attach(f"b{k}", parent, joint=f"j{k}", position=[0.1, 0.2, 0.3], **values)
    full = b.build()
    with pytest.raises(ValueError, match="lock: joint 'j3' follows 'j2'; lock that one"):
        b.lock({"j3": 0.1})
    with pytest.raises(ValueError, match=r"lock: joint 'j2' at .* is beyond its upper limit"):
        b.lock({"j2": 0.7})
    b.lock({"j1": [0.3, 0.4], "j2": 0.5})
    reduced = b.build()
    assert reduced.joint_names == ("j0",)
    q, own = np.array([0.2, 0.3, 0.4, 0.5]), np.array([0.2])
    pose = mb.frame_pose(reduced, own, "b4").as_matrix()
    np.testing.assert_allclose(pose, mb.frame_pose(full, q, "b4").as_matrix(), atol=1e-15)
    np.testing.assert_allclose(mb.crba(reduced, own)[0, 0], mb.crba(full, q)[0, 0], rtol=1e-13)


def test_locking_leaves_tendons_and_couplings_their_lengths():
    b = arm()
    b.add_tendon("cord", {"j0": 0.5, "j1": -0.3}, stiffness=8.0, rest=0.1)
    b.add_tendon("short", {"j1": 1.0}, stiffness=3.0)
    b.closures += [mb.Coupling({"j0": 1.0, "j1": 2.0, "j2": -1.0}, offset=0.4)]
    b.actuators += [mb.Motor("j1"), mb.Motor("j2")]
    full = b.build()
    b.lock({"j1": 0.7})
    reduced = b.build()
    q, own = np.array([0.2, 0.7, -0.4]), np.array([0.2, -0.4])
    pulled = mb.passive_torque(full, q, np.zeros(3))[[0, 2]]
    np.testing.assert_allclose(mb.passive_torque(reduced, own, np.zeros(2)), pulled, atol=1e-15)
    errors = [mb.constraint_error(m, m.closures, x) for m, x in ((full, q), (reduced, own))]
    np.testing.assert_allclose(*errors, atol=1e-15)
    assert [a.joint for a in reduced.actuators] == ["j2"]
    assert b.report.ignored == ["arm: an actuator of 'j1', which is locked"]
    b.lock({"j0": 0.0})
    with pytest.raises(ValueError, match="holds joint 'j2' already"):
        b.lock({"j2": 0.0})


def test_merged_and_removed():
    b = arm(2)
    b.merge(arm(1), "link1", prefix="left_", position=[0.1, 0, 0])
    b.merge(arm(1), "link1", prefix="right_", position=[-0.1, 0, 0])
    model = b.build()
    assert model.joint_names == ("j0", "j1", "left_j0", "right_j0")
    b.remove("left_link0")
    assert b.build().joint_names == ("j0", "j1", "right_j0")
    b.remove("link1")
    assert b.build().joint_names == ("j0",)


def test_two_robots_in_one_world():
    b = mb.Builder()
    for name in ("one", "two"):
        b.add_body(name, 1.0, inertia=[1, 1, 1])
        b.attach(name, joint=f"{name}_free", kind="free")
    model = b.build()
    assert (model.nq, model.nv) == (14, 12)
    M = mb.crba(model, mb.neutral(model))
    np.testing.assert_allclose(M, np.eye(12))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda b: b.add_body("link0"), "'link0' already exists"),
        (lambda b: b.attach("link9"), "child 'link9' is not a body"),
        (lambda b: b.attach("link0", "link2", joint="x"), "attached already by joint 'j0'"),
        (lambda b: b.add_body("x", mass=-1.0), "body 'x': mass must be finite and not negative"),
        (lambda b: b.add_body("x", 1.0, inertia=[1, 1, -1]), "body 'x': inertia has negative"),
        (lambda b: b.lock({"nothing": 0.0}), "there is no joint 'nothing'"),
        (lambda b: b.build(base="flying"), "base='flying' is not one of 'fixed', 'floating'"),
        (lambda b: b.build(base="floating"), "'arm' cannot float: all is attached to the world"),
    ],
)
def test_refusals(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(arm())


def test_refusals_of_joints():
    b = mb.Builder()
    b.add_body("a", 1.0, inertia=[1, 1, 1])
    for message, values in {
        "kind='hinge' is not a kind of joint": {"kind": "hinge"},
        "axis must not be zero": {"axis": [0, 0, 0]},
        "axis must have shape": {"axis": [0, 1]},
        "rotation must be orthogonal": {"rotation": 2 * np.eye(3)},
    }.items():
        with pytest.raises(ValueError, match=message):
            b.attach("a", joint="j", **values)
    with pytest.raises(TypeError, match="unknown value 'dampening'"):
        b.attach("a", joint="j", dampening=1.0)
    b.attach("a", joint="j")
    b.add_body("b", 1.0, inertia=[1, 1, 1])
    with pytest.raises(ValueError, match="universal joint needs a second_axis"):
        b.attach("b", "a", joint="k", kind="universal")


def test_loops_and_two_roots():
    b = mb.Builder()
    for name in "abc":
        b.add_body(name, 1.0, inertia=[1, 1, 1])
    b.attach("a", "b", joint="ab")
    b.attach("b", "c", joint="bc")
    with pytest.raises(ValueError, match="'c' already carries 'a'"):
        b.attach("c", "a", joint="ca")
    b.add_body("d")
    with pytest.raises(ValueError, match=r"2 roots, \['c', 'd'\]: attach all but one"):
        b.build()


def test_inertias_that_no_body_has():
    b = mb.Builder()
    b.add_body("a", 1.0, inertia=[1, 1, 3])
    b.attach("a", joint="j")
    with pytest.raises(ValueError, match="'a', with all that is welded to it, has an inertia"):
        b.build()
    assert b.build(physical=False).nv == 1


def test_wrong_shapes_name_the_argument():
    model = arm().build()
    with pytest.raises(ValueError, match=r"q must have shape \(3,\) or \(..., 3\) for 'arm'"):
        mb.rnea(model, np.zeros(4), np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="tau must have shape"):
        mb.aba(model, np.zeros(3), np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="no frame 'link7'; did you mean"):
        mb.frame_pose(model, np.zeros(3), "link7")
    with pytest.raises(ValueError, match="axes='local' is not one of 'body', 'world', 'aligned'"):
        mb.frame_jacobian(model, np.zeros(3), "link1", axes="local")
    with pytest.raises(ValueError, match="forces must have shape"):
        mb.rnea(model, *np.zeros((3, 3)), forces=np.zeros(6))
    with pytest.raises(ValueError, match=r"Model masses must have shape \(3,\)"):
        model.replace(masses=np.ones(2))


def test_what_a_follower_has_acts_on_what_it_follows():
    """Damping, friction, armature and springs of a mimic joint, against the two free joints."""

    def build(mimic):
        b = mb.Builder()
        for name in "ab":
            b.add_body(name, 1.0, [0.1, 0.2, 0.3], [0.1, 0.1, 0.1])
        numbers = {"damping": 0.1, "armature": 0.05, "stiffness": 1.0, "rest": 0.2, "friction": 0.1}
        b.attach("a", joint="a", axis=[0, 1, 0], **numbers)
        more = {"damping": 0.3, "armature": 0.2, "stiffness": 2.0, "rest": 0.4, "friction": 0.5}
        b.attach("b", "a", joint="b", axis=[1, 0, 0], position=[0.1, 0, 0], mimic=mimic, **more)
        return b.build()

    coupled, free = build(mb.Mimic("a", -2.0, 0.3)), build(None)
    G = np.array([[1.0], [-2.0]])
    for q in (0.7, -0.2):
        own, both = np.array([q]), np.array([q, 0.3 - 2.0 * q])
        v, a = np.array([0.5]), np.array([0.2])
        torque = G.T @ mb.rnea(free, both, G @ v, G @ a, passive=True)
        np.testing.assert_allclose(mb.rnea(coupled, own, v, a, passive=True), torque, rtol=1e-13)
        M = G.T @ mb.crba(free, both) @ G
        np.testing.assert_allclose(mb.crba(coupled, own), M, rtol=1e-13)


def test_mimics_that_cannot_be():
    def build(*follows):
        b = mb.Builder()
        for k, other in enumerate(follows):
            b.add_body(f"b{k}", 1.0, inertia=[1, 1, 1])
            b.attach(f"b{k}", joint=f"j{k}", mimic=other and mb.Mimic(other, 2.0, 1.0))
        return b.build()

    chain = build(None, "j0", "j1")
    assert [(k.scale, k.offset) for k in chain.links] == [(1, 0), (2, 1), (4, 3)]
    with pytest.raises(ValueError, match="and that follows it in turn"):
        build("j1", "j0")
    with pytest.raises(ValueError, match="follows 'nobody', which is not a joint that moves"):
        build("nobody")
