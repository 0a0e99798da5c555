"""Base parameters: how many there are, that they give the torques, and that no fewer would."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb

from .random_trees import random_inertia, random_state, random_tree


def planar(count):
    """An arm in a vertical plane."""
    b = mb.Builder()
    rng = np.random.default_rng(0)
    for k in range(count):
        b.add_body(f"link{k}", *random_inertia(rng))
        parent = f"link{k - 1}" if k else "world"
        b.attach(f"link{k}", parent, joint=f"j{k}", axis=[0, 1, 0], position=[0.4, 0, 0])
    return b.build()


def test_a_double_pendulum():
    """Its closed form: first moments and Iyy of both, the mass of the second in the first."""
    base = mb.base_parameters(planar(2))
    assert base.names == (
        "mx(link0) + 0.4 m(link1)", "mz(link0)", "Iyy(link0) + 0.16 m(link1)",
        "mx(link1)", "mz(link1)", "Iyy(link1)",
    )  # fmt: skip
    assert len(base.columns) == 6


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_they_give_the_torques_and_no_fewer_do(seed):
    kinds = ("revolute", "prismatic", "universal", "spherical", "helical")
    model = random_tree(seed, kinds=kinds, armature=False)
    base = mb.base_parameters(model)
    q, v, a = random_state(model, seed)
    Y = mb.torque_regressor(model, q, v, a)
    beta = base.combinations @ mb.inertial_parameters(model)
    torques = mb.rnea(model, q, v, a)
    np.testing.assert_allclose(Y[:, base.columns] @ beta, torques, atol=1e-8)
    rows = [mb.torque_regressor(model, *random_state(model, 100 + k)) for k in range(40)]
    W = np.concatenate(rows)
    assert np.linalg.matrix_rank(W, tol=1e-7 * np.linalg.norm(W)) == len(base.columns)


def test_of_a_free_body_all_ten():
    b = mb.Builder()
    b.add_body("body", mass=1.0, inertia=[0.1, 0.1, 0.1])
    base = mb.base_parameters(b.build(base="floating"))
    assert base.columns.tolist() == list(range(10))
    np.testing.assert_array_equal(base.combinations, np.eye(10))


def test_of_a_six_joint_arm():
    """A Puma 560, whose number of base parameters is 36 with gravity (Mayeda 1990; Khalil)."""
    # modified Denavit-Hartenberg parameters (Craig, Introduction to Robotics): alpha, a, d
    rows = [
        (0.0, 0.0, 0.0), (-np.pi / 2, 0.0, 0.2435), (0.0, 0.4318, -0.0934),
        (np.pi / 2, -0.0203, 0.4331), (-np.pi / 2, 0.0, 0.0), (np.pi / 2, 0.0, 0.0),
    ]  # fmt: skip
    b = mb.Builder("puma")
    rng = np.random.default_rng(0)
    for k, (alpha, a, d) in enumerate(rows):
        c, s = np.cos(alpha), np.sin(alpha)
        R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        b.add_body(f"link{k}", *random_inertia(rng))
        parent = f"link{k - 1}" if k else "world"
        place = np.array([a, 0, 0]) + R @ np.array([0, 0, d])
        b.attach(f"link{k}", parent, joint=f"j{k}", axis=[0, 0, 1], rotation=R, position=place)
    assert len(mb.base_parameters(b.build()).columns) == 36


def test_limits_do_not_matter_and_few_samples_are_refused():
    arm = planar(2)
    locked = arm.replace(lower=np.zeros(2), upper=np.zeros(2))
    assert mb.base_parameters(locked).names == mb.base_parameters(arm).names
    with pytest.raises(ValueError, match="1 samples are too few to tell which of 20"):
        mb.base_parameters(arm, samples=1)
    with pytest.raises(ValueError, match="samples must be positive"):
        mb.base_parameters(arm, samples=-1)
