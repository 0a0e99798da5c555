"""Configurations that keep shapes apart, within limits of joints and of their speeds."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import RotationMatrix, Transformation
from tests.optional_packages import import_or_skip

from .robots import path_of
from .test_inverse_kinematics import PLACE, at, closed, planar_arm

PLACE_ONLY = [1, 1, 1, 0, 0, 0]


def bar():
    b = mb.Builder()
    b.add_body("bar", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bar", joint="hinge", axis=[0, 0, 1], speed_limit=2.0)
    b.add_frame("tip", "bar", position=[1.0, 0.0, 0.0])
    return b.build()


def test_a_bar_stops_before_an_obstacle():
    """Closed form: the angle at which two balls, 1 m and 1.2 m from the hinge, are 0.05 m apart."""
    avoid = [(mb.sphere("tip", 0.1), mb.sphere("world", 0.2, [1.2, 0.0, 0.0]))]
    goal = at([0.0, 1.0, 0.0])
    found = mb.inverse_kinematics(
        bar(), "tip", goal, [-1.5], weights=PLACE_ONLY, avoid=avoid, clearance=0.05
    )
    angle = -np.arccos((1.0 + 1.2**2 - 0.35**2) / 2.4)
    assert not found.success
    np.testing.assert_allclose(found.q, [angle], atol=1e-6)
    assert 0.05 <= found.distance < 0.05 + 1e-6
    np.testing.assert_allclose(found.position_error, 2 * np.sin((np.pi / 2 - angle) / 2), atol=1e-6)


def test_a_start_inside_an_obstacle_comes_out():
    """To the nearest angle that is clear, on the side on which it is."""
    avoid = [(mb.sphere("tip", 0.1), mb.sphere("world", 0.2, [1.2, 0.0, 0.0]))]
    goal = at([np.cos(0.1), np.sin(0.1), 0.0])
    found = mb.inverse_kinematics(bar(), "tip", goal, [0.1], weights=PLACE_ONLY, avoid=avoid)
    assert not found.success and found.distance >= 0.0
    np.testing.assert_allclose(found.q, np.arccos((1.0 + 1.2**2 - 0.3**2) / 2.4), atol=1e-6)


def test_speed_limits():
    """The joint turns by its speed limit times dt, and comes back to its limits no faster."""
    goal = at([0.0, 1.0, 0.0])
    found = mb.inverse_kinematics(bar(), "tip", goal, [0.3], weights=PLACE_ONLY, dt=0.05)
    np.testing.assert_allclose(found.q, [0.4], atol=1e-12)
    assert not found.success
    found = mb.inverse_kinematics(bar(), "tip", goal, [1.5], weights=PLACE_ONLY, dt=0.05)
    np.testing.assert_allclose(found.q, [np.pi / 2], atol=1e-10)
    assert found.success
    limited = planar_arm(lower=-0.2, upper=0.2, speed_limit=1.0)
    found = mb.inverse_kinematics(limited, "tip", goal, [0.5, 0.1], weights=PLACE_ONLY, dt=0.1)
    np.testing.assert_allclose(found.q, [0.4, 0.2], atol=1e-12)


def test_speed_limits_of_a_body_that_turns():
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("ball", joint="ball", kind="spherical", speed_limit=0.5)
    model = b.build()
    q0 = mb.random_configuration(model, np.random.default_rng(3))
    goal = mb.frame_pose(model, mb.integrate(model, q0, [0.3, -0.02, 0.01]), "ball")
    found = mb.inverse_kinematics(model, "ball", goal, q0, dt=0.2)
    moved = mb.difference(model, q0, found.q)
    assert np.abs(moved).max() <= 0.1 + 1e-9 and moved[0] > 0.1 - 1e-6 and not found.success


BALLS = mb.sphere("lower", 0.1), mb.sphere("world", 0.2, [0.8, -0.6, 0.0])


def reached(p):
    arm, start = planar_arm(), (0.2, 1.4)
    return mb.inverse_kinematics(arm, "tip", at(p), start, weights=PLACE_ONLY, avoid=[BALLS])


def test_a_target_beside_an_obstacle():
    """Both in closed form: the angles, and how far the elbow is from the ball."""
    found = reached(PLACE)
    assert found.success
    np.testing.assert_allclose(found.q, closed(PLACE), atol=1e-9)
    elbow = np.array([np.cos(found.q[0]), np.sin(found.q[0]), 0.0])
    apart = np.linalg.norm(elbow - BALLS[1].centers[0]) - 0.3
    np.testing.assert_allclose(found.distance, apart, atol=1e-12)


@pytest.mark.long
def test_derivatives_beside_an_obstacle():
    slope = arc.jac(lambda p: reached(p).q)(PLACE)
    np.testing.assert_allclose(slope, arc.jac(closed)(PLACE), atol=1e-7)


def test_leading_axes():
    """Many starts and targets at once are as one after the other."""
    arm = planar_arm()
    avoid = [mb.Pair(mb.sphere("tip", 0.05), mb.sphere("world", 0.3, [0.0, 1.0, 0.0]))]
    options = {"weights": PLACE_ONLY, "avoid": avoid, "clearance": 0.01}
    rng = np.random.default_rng(1)
    starts, angles = rng.uniform(-1, 1, (4, 1, 2)), rng.uniform(-1, 1, (3, 2))
    goals = mb.frame_pose(arm, angles, "tip")
    many = mb.inverse_kinematics(arm, "tip", goals, starts, **options)
    assert many.q.shape == (4, 3, 2) and many.error.shape == (4, 3, 6)
    assert many.success.shape == many.distance.shape == many.position_error.shape == (4, 3)
    assert many.success.mean() > 0.5
    for i, k in ((0, 0), (3, 2)):
        goal = mb.frame_pose(arm, angles[k], "tip")
        one = mb.inverse_kinematics(arm, "tip", goal, starts[i, 0], **options)
        np.testing.assert_allclose(many.q[i, k], one.q, atol=1e-9)
        assert one.success == many.success[i, k]
    several = mb.inverse_kinematics(arm, ["tip", "lower"], [goals, goals], starts)
    assert several.error.shape == (4, 3, 2, 6)


def test_weights_of_frames():
    """Of two targets that contradict each other, the heavier counts, by the ratio of squares."""
    model = bar()
    goals = [at([np.cos(a), np.sin(a), 0.0]) for a in (0.01, -0.01)]
    weights = np.outer([3.0, 1.0], PLACE_ONLY)
    found = mb.inverse_kinematics(model, ["tip", "tip"], goals, [0.0], weights=weights)
    np.testing.assert_allclose(found.q, [0.008], atol=1e-6)


def test_refusals():
    ball = mb.sphere("tip", 0.1)
    for avoid, message in (
        ([ball], "avoid takes Pairs, or tuples of two shapes, got Contacts"),
        ([(ball, "world")], "the second shape of avoid must be a Contacts"),
        ([(mb.Ground(), ball)], "the first shape of avoid must be a Contacts"),
    ):
        with pytest.raises(TypeError, match=message):
            mb.inverse_kinematics(bar(), "tip", at([0, 1, 0]), avoid=avoid)
    couple = (ball, mb.Ground())
    with pytest.raises(ValueError, match="clearance"):
        mb.inverse_kinematics(bar(), "tip", at([0, 1, 0]), avoid=[couple], clearance=[0.1, 0.2])
    with pytest.raises(ValueError, match="dt must be positive"):
        mb.inverse_kinematics(bar(), "tip", at([0, 1, 0]), dt=0.0)


@pytest.mark.long
def test_an_arm_between_obstacles():
    """Poses by Pinocchio and, with these, distances by MuJoCo: nothing of ours but the result."""
    pin, mujoco = import_or_skip("pinocchio"), import_or_skip("mujoco")
    panda = mb.load(path_of("panda"))
    shapes = {
        "panda_link5": (mb.capsule("panda_link5", 0.06, 0.3), "capsule", "0.06 0.15"),
        "panda_hand": (mb.box("panda_hand", [0.06, 0.2, 0.1]), "box", "0.03 0.1 0.05"),
    }
    ball, block = mb.sphere("world", 0.15, [0.45, 0.1, 0.35]), mb.box("world", [0.4, 0.6, 0.1])
    arm = [shape for shape, *_ in shapes.values()]
    avoid = [(shape, thing) for shape in arm for thing in (ball, block)]
    avoid += [(shape, mb.Ground()) for shape in arm]
    names = ["panda_link5", "panda_hand"]
    bodies = "".join(
        f"<body mocap='true' name='{name}'><geom type='{kind}' size='{size}'/></body>"
        for name, (_, kind, size) in shapes.items()
    )
    peer = mujoco.MjModel.from_xml_string(
        "<mujoco><option ccd_tolerance='1e-12' ccd_iterations='500'/><worldbody>"
        "<geom type='sphere' size='0.15' pos='0.45 0.1 0.35'/>"
        "<geom type='box' size='0.2 0.3 0.05'/><geom type='plane' size='9 9 1'/>"
        f"{bodies}</worldbody></mujoco>"
    )
    scene, robot = mujoco.MjData(peer), pin.buildModelFromUrdf(str(path_of("panda")))
    data = robot.createData()

    def placements(q):
        pin.framesForwardKinematics(robot, data, np.append(q, q[-1]))
        for k, name in enumerate(names):
            X = data.oMf[robot.getFrameId(name)]
            scene.mocap_pos[k] = X.translation
            x, y, z, w = pin.Quaternion(X.rotation).coeffs()
            scene.mocap_quat[k] = [w, x, y, z]
        mujoco.mj_kinematics(peer, scene)
        ends = np.zeros(6)
        return min(
            mujoco.mj_geomDistance(peer, scene, a, b, 10.0, ends) for a in (3, 4) for b in (0, 1, 2)
        ), data.oMf[robot.getFrameId("panda_hand_tcp")].homogeneous.copy()

    rng, goals, starts = np.random.default_rng(0), [], []
    while len(goals) < 100:
        q = mb.random_configuration(panda, rng)
        apart, goal = placements(q)
        if 0.02 < apart < 0.1:
            goals.append(goal)
            starts.append(q + 0.3 * rng.normal(size=panda.nq))
    find = arc.compile(
        lambda goals, starts: mb.inverse_kinematics(
            panda,
            "panda_hand_tcp",
            Transformation(goals[:, :3, 3], RotationMatrix.make(goals[:, :3, :3])),
            starts,
            avoid=avoid,
            clearance=0.02,
        )
    )
    found = find(np.array(goals), np.array(starts))
    assert found.success.mean() >= 0.9
    assert (found.distance < 0.0201).any()
    for k in np.flatnonzero(found.success):
        apart, hand = placements(found.q[k])
        assert apart >= 0.02 - 2e-7
        np.testing.assert_allclose(apart, found.distance[k], atol=2e-7)
        np.testing.assert_allclose(hand, goals[k], atol=1e-9)
        assert (found.q[k] >= panda.lower - 1e-12).all()
        assert (found.q[k] <= panda.upper + 1e-12).all()
