"""Configurations for targets: found, within limits, many at once, and said when there is none."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import Quaternion, RotationMatrix, Transformation
from tests.optional_packages import import_or_skip

from .random_trees import random_state, random_tree
from .robots import path_of


@pytest.fixture(scope="module")
def panda():
    return mb.load(path_of("panda"))


def test_a_pose_of_an_arm(panda):
    rng = np.random.default_rng(1)
    find = arc.compile(
        lambda t, R, q0: mb.inverse_kinematics(
            panda, "panda_hand_tcp", Transformation.from_matrix(matrix_of(t, R)), q0
        )
    )
    found = 0
    for _ in range(10):
        q = mb.random_configuration(panda, rng)
        goal = mb.frame_pose(panda, q, "panda_hand_tcp").as_matrix()
        start = q + 0.3 * rng.normal(size=panda.nq)
        result = find(goal[:3, 3], goal[:3, :3], start)
        assert (result.q >= panda.lower - 1e-12).all() and (result.q <= panda.upper + 1e-12).all()
        if result.success:
            found += 1
            reached = mb.frame_pose(panda, result.q, "panda_hand_tcp").as_matrix()
            np.testing.assert_allclose(reached, goal, atol=1e-9)
    assert found >= 9


def matrix_of(t, R):
    T = np.zeros((4, 4))
    T[:3, :3], T[:3, 3], T[3, 3] = R, t, 1.0
    return T


def test_many_targets_at_once():
    model = random_tree(1, kinds=("revolute", "prismatic", "spherical"))
    frame = model.body_names[-1]
    states = [random_state(model, k)[0] for k in range(8)]
    goals = np.stack([mb.frame_pose(model, q, frame).as_matrix() for q in states])

    def find(goal):
        return mb.inverse_kinematics(model, frame, Transformation.from_matrix(goal))

    together = arc.vmap(find)(goals)
    assert together.q.shape == (8, model.nq)
    for k, goal in enumerate(goals):
        if together.success[k]:
            reached = mb.frame_pose(model, together.q[k], frame).as_matrix()
            np.testing.assert_allclose(reached, goal, atol=1e-8)
    assert together.success.mean() >= 0.5


def planar_arm(**values):
    b = mb.Builder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1])
        at = [float(name == "lower"), 0, 0]
        b.attach(name, parent, joint=name, axis=[0, 0, 1], position=at, **values)
    b.add_frame("tip", "lower", position=[1.0, 0.0, 0.0])
    return b.build()


def test_limits_are_kept():
    """Of the two elbows the one that the limits allow; and a place that they forbid."""
    free, bent = planar_arm(), planar_arm(lower=-0.2, upper=3.0)
    goal = mb.frame_pose(free, np.array([1.0, -1.0]), "tip")
    place = [1, 1, 1, 0, 0, 0]
    result = mb.inverse_kinematics(bent, "tip", goal, q0=[0.2, 0.8], weights=place)
    assert result.success
    np.testing.assert_allclose(result.q, [0.0, 1.0], atol=1e-8)
    stopped = mb.inverse_kinematics(bent, "tip", goal, q0=[0.2, 0.8])
    assert not stopped.success
    assert (stopped.q >= -0.2).all()


def test_out_of_reach():
    """As near as possible, and no success."""
    arm = planar_arm()
    far = Transformation.from_matrix(matrix_of([3.0, 0.0, 0.0], np.eye(3)))
    result = mb.inverse_kinematics(arm, "tip", far, q0=[0.3, -0.3], weights=[1, 1, 1, 0, 0, 0])
    assert not result.success
    np.testing.assert_allclose(mb.frame_pose(arm, result.q, "tip").t, [2.0, 0, 0], atol=1e-4)


def test_two_feet():
    b = mb.Builder()
    b.add_body("hull", 5.0, inertia=[1, 1, 1])
    for side, y in (("left", 0.2), ("right", -0.2)):
        b.add_body(side, 1.0, inertia=[0.1, 0.1, 0.1])
        b.attach(side, "hull", joint=side, kind="spherical", position=[0, y, 0])
        b.add_frame(f"{side}_foot", side, position=[0, 0, -0.5])
    model = b.build(base="floating")
    q = random_state(model, 3)[0]
    feet = ("left_foot", "right_foot")
    goals = [mb.frame_pose(model, q, foot) for foot in feet]
    result = mb.inverse_kinematics(model, feet, goals)
    assert result.success and result.error.shape == (2, 6)
    for foot, goal in zip(feet, goals):
        reached = mb.frame_pose(model, result.q, foot).as_matrix()
        np.testing.assert_allclose(reached, goal.as_matrix(), atol=1e-9)


def test_refusals():
    arm = planar_arm()
    with pytest.raises(TypeError, match="target must be a Transformation"):
        mb.inverse_kinematics(arm, "tip", np.zeros(3))
    with pytest.raises(ValueError, match="2 frames and 1 targets"):
        goal = mb.frame_pose(arm, np.zeros(2), "tip")
        mb.inverse_kinematics(arm, ["tip", "upper"], [goal])
    with pytest.raises(TypeError, match="a list of Transformations where frame is a list"):
        mb.inverse_kinematics(arm, ["tip"], goal)
    with pytest.raises(ValueError, match="a name or a list of names, got none"):
        mb.inverse_kinematics(arm, [], [])
    with pytest.raises(ValueError, match="weights must be finite"):
        mb.inverse_kinematics(arm, "tip", goal, weights=np.nan)


def at(p):
    return Transformation(p, RotationMatrix.make(np.eye(3)))


def reached(p, start=(0.4, 1.1)):
    place = [1, 1, 1, 0, 0, 0]
    return mb.inverse_kinematics(planar_arm(), "tip", at(p), start, weights=place).q


def closed(p):
    elbow = np.arccos((p[0] ** 2 + p[1] ** 2) / 2.0 - 1.0)
    turn = np.arctan2(np.sin(elbow), 1.0 + np.cos(elbow))
    return np.stack([np.arctan2(p[1], p[0]) - turn, elbow])


PLACE = mb.frame_pose(planar_arm(), np.array([0.4, 1.1]), "tip").t


def test_derivatives_are_those_of_the_solution():
    """Also where the search starts at it and makes no step: there they were zero."""
    np.testing.assert_allclose(reached(PLACE), closed(PLACE), atol=1e-12)
    np.testing.assert_allclose(arc.jac(reached)(PLACE), arc.jac(closed)(PLACE), atol=1e-10)


@pytest.mark.long
def test_second_derivatives_are_those_of_the_solution():
    ours, exact = (arc.jac(arc.jac(f))(PLACE) for f in (reached, closed))
    np.testing.assert_allclose(ours, exact, atol=1e-10)


def test_targets_far_away_and_heavy_weights():
    """Numbers beside which a damping of any fixed size is lost: no success, and no exception."""
    arm = planar_arm()
    far = mb.inverse_kinematics(arm, "tip", at(np.array([1e10, 0.0, 0.0])), q0=[0.3, 0.5])
    assert not far.success
    goal = mb.frame_pose(arm, np.array([0.4, 1.1]), "tip")
    heavy = mb.inverse_kinematics(arm, "tip", goal, q0=[0.1, 0.5], weights=1e9, tolerance=1e-3)
    assert heavy.success
    np.testing.assert_allclose(heavy.q, [0.4, 1.1], atol=1e-12)


# ---- what a pose is ----------------------------------------------------------------------


def place_and_attitude():
    """Return a place within reach of the Panda, and an attitude that is not its own inverse."""
    return np.array([0.45, 0.15, 0.5]), Quaternion.from_euler([np.pi - 0.3, 0.2, 0.7], "xyz")


def solve(panda, target):
    start = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.8, 0.02, 0.02])[: panda.nq]
    found = mb.inverse_kinematics(panda, "panda_hand_tcp", target, start)
    assert found.success
    return found.q


def test_the_hand_of_pinocchio_is_at_the_position_with_the_attitude(panda):
    """Forward kinematics of another library, whose rotations take body to world coordinates."""
    pin = import_or_skip("pinocchio")
    position, attitude = place_and_attitude()
    q = solve(panda, mb.pose(position, attitude))
    peer = pin.buildModelFromUrdf(str(path_of("panda")))
    data = peer.createData()
    pin.framesForwardKinematics(peer, data, np.resize(q, peer.nq))  # the second finger mimics
    hand = data.oMf[peer.getFrameId("panda_hand_tcp")]
    np.testing.assert_allclose(hand.translation, position, atol=1e-9)
    w, x, y, z = attitude.array
    np.testing.assert_allclose(hand.rotation, pin.Quaternion(w, x, y, z).matrix(), atol=1e-9)


def test_all_kinds_of_attitudes_give_one_pose(panda):
    from scipy.spatial.transform import Rotation

    position, attitude = place_and_attitude()
    pose = mb.pose(position, attitude).as_matrix()
    R_WB = attitude.as_matrix().T
    w, x, y, z = attitude.array
    for same in (
        RotationMatrix(attitude.as_matrix()),
        attitude.as_euler("xyz"),
        R_WB,
        R_WB.tolist(),
        Rotation.from_quat([x, y, z, w]),
    ):
        np.testing.assert_allclose(mb.pose(position, same).as_matrix(), pose, atol=1e-14)
    again = mb.frame_pose(panda, solve(panda, mb.pose(position, attitude)), "panda_hand_tcp")
    np.testing.assert_allclose(again.as_matrix(), pose, atol=1e-9)
    np.testing.assert_allclose(
        Transformation.from_pose(position, attitude).inv().as_matrix(), pose, atol=1e-14
    )
    many = mb.pose(np.stack([position, 2 * position]), Quaternion(np.stack([attitude.array] * 2)))
    np.testing.assert_allclose(many.as_matrix()[0], pose, atol=1e-14)
    many = mb.pose(np.stack([position, 2 * position]), attitude)
    np.testing.assert_allclose(many.as_matrix()[0], pose, atol=1e-14)


def test_from_pose_is_the_mirror_image_and_is_refused(panda):
    position, attitude = place_and_attitude()
    wrong = Transformation.from_pose(position, attitude)
    with pytest.raises(ValueError, match=r"target is the inverse of a pose.*multibody\.pose"):
        solve(panda, wrong)
    right = mb.frame_pose(panda, solve(panda, wrong.inv()), "panda_hand_tcp")
    np.testing.assert_allclose(right.t, position, atol=1e-9)
    with pytest.raises(ValueError, match="target is the inverse of a pose"):
        arc.compile(lambda p: solve(panda, Transformation.from_pose(p, attitude)))(position)


@pytest.mark.parametrize("target", [([0.4, 0.0, 0.5], np.eye(3)), np.eye(4), [0.4, 0.0, 0.5]])
def test_what_is_no_pose_is_told_how_to_become_one(panda, target):
    with pytest.raises(TypeError, match=r"target must be a Transformation.*mb\.pose\(position"):
        mb.inverse_kinematics(panda, "panda_hand_tcp", target)


@pytest.mark.parametrize("attitude", [[0.1, 0.2, 0.3], [1.0, 0, 0, 0], None, "up", 0.0])
def test_numbers_that_may_be_any_attitude_are_refused(attitude):
    with pytest.raises(TypeError, match=r"attitude must be an attitude, such as Quaternion\(q\)"):
        mb.pose([0.0, 0.0, 0.0], attitude)


def test_matrices_that_are_no_rotations_are_refused():
    with pytest.raises(ValueError, match="attitude must be orthogonal"):
        mb.pose([0.0, 0.0, 0.0], 2 * np.eye(3))
    with pytest.raises(ValueError, match="attitude is a reflection"):
        mb.pose([0.0, 0.0, 0.0], np.diag([1.0, 1.0, -1.0]))
