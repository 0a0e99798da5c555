"""Every conversion against SciPy on 10^5 random rotations, as a batch and one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from archimedes.spatial import (
    EulerAngles,
    ModifiedRodrigues,
    Quaternion,
    RotationMatrix,
    RotationVector,
    dcm_to_euler,
    dcm_to_mrp,
    dcm_to_quaternion,
    dcm_to_rotvec,
    euler_to_dcm,
    euler_to_euler,
    euler_to_quaternion,
    mrp_to_dcm,
    mrp_to_quaternion,
    quaternion_exp,
    quaternion_inverse,
    quaternion_log,
    quaternion_multiply,
    quaternion_to_dcm,
    quaternion_to_euler,
    quaternion_to_mrp,
    rotvec_to_dcm,
)
from tests.spatial.samples import (
    SEQUENCES,
    SHORT,
    conditioning,
    passive,
    turns,
    up_to_sign,
    wrapped,
)

N = 100_000
TOL = 1e-14


@pytest.fixture(scope="module")
def rotations():
    return Rotation.random(N, random_state=7)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler(rotations, seq):
    q, reference = turns(rotations), rotations.as_euler(seq)
    angles = quaternion_to_euler(q, seq)
    error = np.abs(wrapped(angles - reference)).max(axis=-1)
    assert np.max(error * np.minimum(1.0, conditioning(reference, seq))) < TOL
    assert np.abs(euler_to_dcm(angles, seq) - passive(rotations)).max() < TOL
    assert up_to_sign(euler_to_quaternion(angles, seq), q) < TOL
    middle = angles[:, 1]
    low, high = (0.0, np.pi) if seq[0] == seq[2] else (-np.pi / 2, np.pi / 2)
    assert low <= middle.min() and middle.max() <= high
    assert np.abs(angles).max() <= np.pi


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_beyond_a_turn(seq):
    angles = np.random.default_rng(1).uniform(-10, 10, (1000, 3))
    reference = Rotation.from_euler(seq, angles)
    assert np.abs(euler_to_dcm(angles, seq) - passive(reference)).max() < TOL
    assert up_to_sign(euler_to_quaternion(angles, seq), turns(reference)) < TOL
    new = SEQUENCES[(SEQUENCES.index(seq) + 5) % 24]
    again = euler_to_dcm(euler_to_euler(angles, seq, new), new)
    assert np.abs(again - passive(reference)).max() < TOL
    back = dcm_to_euler(passive(reference), seq)
    assert np.abs(euler_to_dcm(back, seq) - passive(reference)).max() < TOL


@pytest.mark.parametrize("seq", SHORT)
def test_one_and_two_axes(seq):
    angles = np.random.default_rng(2).uniform(-4, 4, (1000, len(seq)))
    reference = Rotation.from_euler(seq, angles)
    assert up_to_sign(euler_to_quaternion(angles, seq), turns(reference)) < TOL
    assert np.abs(EulerAngles(angles, seq).as_matrix() - passive(reference)).max() < TOL
    one = EulerAngles(angles[0] if len(seq) > 1 else angles[0, 0], seq)
    np.testing.assert_allclose(one.as_matrix(), passive(reference[0]), atol=TOL)


def test_other_conversions(rotations):
    q, R = turns(rotations), passive(rotations)
    v, s = rotations.as_rotvec(), rotations.as_mrp()
    assert np.abs(quaternion_to_dcm(q) - R).max() < TOL
    assert up_to_sign(dcm_to_quaternion(R), q) < TOL
    assert np.abs(quaternion_log(q) - v).max() < TOL
    assert up_to_sign(quaternion_exp(v), q) < TOL
    assert np.abs(quaternion_to_mrp(q) - s).max() < TOL
    assert up_to_sign(mrp_to_quaternion(s), q) < TOL
    assert np.abs(rotvec_to_dcm(v) - R).max() < TOL
    assert np.abs(mrp_to_dcm(s) - R).max() < TOL
    # rotation vectors and parameters jump at half turns, where the matrix decides the sign
    inside = rotations.magnitude() < np.pi - 1e-6
    assert np.abs(dcm_to_rotvec(R) - v)[inside].max() < TOL
    assert np.abs(dcm_to_mrp(R) - s)[inside].max() < TOL


def test_algebra(rotations):
    q = turns(rotations)
    p = np.roll(q, 1, axis=0)
    other = Rotation.from_quat(p, scalar_first=True)
    assert up_to_sign(quaternion_multiply(q, p), turns(rotations * other)) < TOL
    assert up_to_sign(quaternion_inverse(q), turns(rotations.inv())) < TOL
    a, b = Quaternion(q), Quaternion(p)
    assert np.abs((a * b).as_matrix() - b.as_matrix() @ a.as_matrix()).max() < TOL
    assert np.abs(a.magnitude() - rotations.magnitude()).max() < TOL
    np.testing.assert_allclose(a.magnitude(degrees=True), np.rad2deg(a.magnitude()), rtol=1e-15)
    assert np.abs(a.angle_to(b) - (rotations.inv() * other).magnitude()).max() < 2 * TOL
    vectors = np.random.default_rng(3).normal(size=(N, 3))
    assert np.abs(a.rotate(vectors) - rotations.inv().apply(vectors)).max() < TOL
    assert np.abs(a.rotate(vectors, inverse=True) - rotations.apply(vectors)).max() < TOL


def test_single_equals_batch(rotations):
    """One attitude goes through Python floats, a batch through arrays: same numbers."""
    few = rotations[:20]
    batch = Quaternion(turns(few))
    for i in range(20):
        one = batch[i]
        np.testing.assert_allclose(one.as_matrix(), batch.as_matrix()[i], atol=1e-15)
        np.testing.assert_allclose(one.log(), batch.log()[i], atol=1e-15)
        np.testing.assert_allclose(one.as_mrp().array, batch.as_mrp().array[i], atol=1e-15)
        for seq in SEQUENCES:
            np.testing.assert_allclose(
                one.as_euler(seq).array, batch.as_euler(seq).array[i], atol=1e-14
            )
        again = Quaternion.from_matrix(one.as_matrix())
        np.testing.assert_allclose(
            again.array, Quaternion.from_matrix(batch.as_matrix()).array[i], atol=1e-15
        )


@pytest.mark.parametrize("cls", [Quaternion, RotationMatrix, RotationVector, ModifiedRodrigues])
def test_classes_from_and_to_everything(rotations, cls):
    few = rotations[:50]
    q, R, v, s = turns(few), passive(few), few.as_rotvec(), few.as_mrp()
    angles = few.as_euler("ZXZ")
    made = [
        cls.from_quat(q),
        cls.from_matrix(R),
        cls.from_euler(angles, "ZXZ"),
        cls.from_euler(np.rad2deg(angles), "ZXZ", degrees=True),
        cls.from_rotvec(v),
        cls.from_rotvec(np.rad2deg(v), degrees=True),
        cls.from_mrp(s),
        cls.from_quat(Quaternion(3.0 * q)),
        cls.from_euler(EulerAngles(angles, "ZXZ")),
        cls.exp(v),
    ]
    for attitude in made:
        assert type(attitude) is cls
        assert attitude.shape == (50,)
        np.testing.assert_allclose(attitude.as_matrix(), R, atol=TOL)
        assert up_to_sign(attitude.as_quat().array, q) < TOL
        np.testing.assert_allclose(attitude.as_rotvec().array, v, atol=2 * TOL)
        np.testing.assert_allclose(attitude.log(), v, atol=2 * TOL)
        np.testing.assert_allclose(
            attitude.as_rotvec(degrees=True).array, np.rad2deg(v), atol=100 * TOL
        )
        np.testing.assert_allclose(attitude.as_mrp().array, s, atol=TOL)
        np.testing.assert_allclose(attitude.as_euler("ZXZ").as_matrix(), R, atol=2 * TOL)
        degrees = attitude.as_euler("ZXZ", degrees=True)
        np.testing.assert_allclose(degrees.array, np.rad2deg(angles), atol=1e-10)
        np.testing.assert_allclose(degrees.as_matrix(), R, atol=2 * TOL)


def test_euler_class_from_everything(rotations):
    few = rotations[:50]
    R = passive(few)
    for seq in ("xyz", "ZYX", "zxz"):
        for attitude in (
            EulerAngles.from_quat(turns(few), seq),
            EulerAngles.from_matrix(R, seq=seq),
            EulerAngles.from_rotvec(few.as_rotvec(), seq),
            EulerAngles.from_mrp(few.as_mrp(), seq),
            EulerAngles.from_euler(Quaternion(turns(few)).as_euler("yxz"), seq),
            EulerAngles.from_euler(few.as_euler(seq, degrees=True), seq, degrees=True),
        ):
            assert attitude.seq == seq
            np.testing.assert_allclose(attitude.as_matrix(), R, atol=TOL)
