"""Where rotations are delicate: identity, half turns, gimbal lock, tiny angles, both signs."""

from __future__ import annotations

import warnings

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
    euler_to_dcm,
    euler_to_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_to_euler,
)
from tests.spatial.samples import SEQUENCES, is_proper, passive, turns, wrapped

AXES = np.array(
    [
        *np.eye(3),
        *-np.eye(3),
        [1, 1, 0],
        [1, 0, -1],
        [1, 1, 1],
        [-1, 2, 3],
        [1e-9, 1, 0],
        [1e-17, 0, 1],
    ],
    dtype=float,
)
AXES /= np.linalg.norm(AXES, axis=-1, keepdims=True)


@pytest.mark.parametrize("cls", [Quaternion, RotationMatrix, RotationVector, ModifiedRodrigues])
def test_identity(cls):
    one = cls.identity()
    np.testing.assert_array_equal(one.as_matrix(), np.eye(3))
    np.testing.assert_array_equal(one.as_quat().array, [1, 0, 0, 0])
    np.testing.assert_array_equal(one.log(), np.zeros(3))
    np.testing.assert_array_equal(one.as_mrp().array, np.zeros(3))
    for seq in SEQUENCES:
        np.testing.assert_array_equal(np.abs(one.as_euler(seq).array), np.zeros(3))
    assert one.magnitude() == 0.0


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("off", [0.0, 1e-16, -1e-15, 1e-12, -1e-8, 1e-8])
def test_half_turns(axis, off):
    v = axis * (np.pi + off)
    reference = passive(Rotation.from_rotvec(v))
    for attitude in (
        RotationVector(v),
        Quaternion.from_rotvec(v),
        Quaternion.from_matrix(reference),
        RotationMatrix(reference),
        ModifiedRodrigues.from_rotvec(v),
        ModifiedRodrigues.from_rotvec(v).shadow(),
    ):
        np.testing.assert_allclose(attitude.as_matrix(), reference, atol=1e-15)
        np.testing.assert_allclose(attitude.as_rotvec().as_matrix(), reference, atol=2e-15)
        np.testing.assert_allclose(attitude.as_mrp().as_matrix(), reference, atol=1e-15)
        assert attitude.magnitude() == pytest.approx(np.pi - abs(off), abs=1e-15)
        for seq in SEQUENCES:
            np.testing.assert_allclose(attitude.as_euler(seq).as_matrix(), reference, atol=1e-12)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_gimbal_lock(seq):
    rng = np.random.default_rng(5)
    locks = (0.0, np.pi) if is_proper(seq) else (np.pi / 2, -np.pi / 2)
    offsets = (0.0, 1e-16, -1e-15, 3e-14, 1e-13, -3e-13, 1e-12, 1e-10, 1e-9, 1e-8, -1e-8, 1e-6)
    for lock in locks:
        for off in offsets:
            angles = rng.uniform(-3, 3, (40, 3))
            angles[:, 1] = lock + off
            R = euler_to_dcm(angles, seq)
            np.testing.assert_allclose(R, passive(Rotation.from_euler(seq, angles)), atol=1e-15)
            for found in (
                dcm_to_euler(R, seq),
                quaternion_to_euler(euler_to_quaternion(angles, seq), seq),
            ):
                np.testing.assert_allclose(euler_to_dcm(found, seq), R, atol=1e-12)
                assert np.isfinite(found).all()


@pytest.mark.parametrize("seq", SEQUENCES)
def test_exact_gimbal_lock_as_scipy(seq):
    """In exact lock the last angle is zero, the choice SciPy makes too."""
    rng = np.random.default_rng(6)
    for lock in (0.0, np.pi) if is_proper(seq) else (np.pi / 2, -np.pi / 2):
        angles = rng.uniform(-3, 3, (20, 3))
        angles[:, 1] = lock
        q = turns(Rotation.from_euler(seq, angles))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reference = Rotation.from_quat(q, scalar_first=True).as_euler(seq)
        found = quaternion_to_euler(q, seq)
        np.testing.assert_array_equal(found[:, 2], 0.0)
        np.testing.assert_allclose(wrapped(found - reference), 0.0, atol=1e-14)


@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-8, 1e-12, 1e-16, 1e-30, 1e-100, 1e-160])
def test_tiny_angles(size):
    """Tiny angles keep all their digits, relative to their own size."""
    v = size * np.array([1.0, -2.0, 0.5])
    q = quaternion_exp(v)
    np.testing.assert_allclose(q[1:], 0.5 * v, rtol=1e-6 if size > 1e-4 else 1e-9)
    np.testing.assert_allclose(quaternion_log(q), v, rtol=1e-15, atol=0)
    norm = size * np.sqrt(5.25)
    np.testing.assert_allclose(Quaternion(q).magnitude(), norm, rtol=1e-15, atol=0)
    np.testing.assert_allclose(Quaternion(q).as_mrp().as_rotvec().array, v, rtol=1e-15, atol=0)
    batch = np.stack([q, q])
    np.testing.assert_allclose(quaternion_log(batch), [v, v], rtol=1e-15, atol=0)
    np.testing.assert_allclose(Quaternion(batch).magnitude(), [norm] * 2, rtol=1e-15, atol=0)
    for seq in SEQUENCES:
        if is_proper(seq):
            np.testing.assert_allclose(
                Quaternion(q).as_euler(seq).as_matrix(), Quaternion(q).as_matrix(), atol=1e-12
            )
            continue
        angles = size * np.array([0.3, -0.7, 1.1])
        back = quaternion_to_euler(euler_to_quaternion(angles, seq), seq)
        np.testing.assert_allclose(back, angles, rtol=4e-15 if size < 1e-8 else 1e-12, atol=0)


def test_sign_of_quaternions():
    q = Quaternion.random(3, (200,))
    for other in (-q, q * 2.5, q * -1e-3):
        np.testing.assert_allclose(other.as_matrix(), q.as_matrix(), atol=1e-15)
        np.testing.assert_allclose(other.log(), q.log(), atol=2e-15)
        np.testing.assert_allclose(other.as_mrp().array, q.as_mrp().array, atol=1e-15)
        np.testing.assert_allclose(other.as_euler("xyz").array, q.as_euler("xyz").array, atol=1e-14)
        assert np.all(q.approx_equal(other))
        np.testing.assert_allclose(np.linalg.norm(other.as_quat().array, axis=-1), 1.0, rtol=1e-15)
    assert not np.any(q.approx_equal(q * Quaternion.from_euler(1e-6, "x")))


def test_shadow_set():
    s = ModifiedRodrigues(np.array([0.5, -0.7, 1.1]))
    np.testing.assert_allclose(s.shadow().as_matrix(), s.as_matrix(), atol=1e-15)
    assert np.linalg.norm(s.normalize().array) <= 1.0
    assert s.normalize().approx_equal(s)
    inner = ModifiedRodrigues(np.array([0.1, 0.2, 0.3]))
    assert inner.normalize() == inner
    np.testing.assert_array_equal(
        ModifiedRodrigues(np.zeros((2, 3))).normalize().array, np.zeros((2, 3))
    )


def test_normalize_elsewhere():
    v = RotationVector(np.array([0.0, 0.0, 3.5]))
    np.testing.assert_allclose(v.normalize().array, [0, 0, 3.5 - 2 * np.pi])
    angles = EulerAngles(np.array([4.0, -0.5, -9.0]), "zyx").normalize()
    np.testing.assert_allclose(angles.array, [4 - 2 * np.pi, -0.5, -9 + 2 * np.pi])
    in_degrees = EulerAngles(np.array([350.0, 10, -200]), degrees=True).normalize()
    np.testing.assert_allclose(in_degrees.array, [-10, 10, 160])
    R = Quaternion.random(1).as_matrix()
    drifted = RotationMatrix(R + 1e-3 * np.random.default_rng(0).normal(size=(3, 3))).normalize()
    np.testing.assert_allclose(drifted.array @ drifted.array.T, np.eye(3), atol=1e-15)
    u, _, vt = np.linalg.svd(R + 1e-3 * np.random.default_rng(0).normal(size=(3, 3)))
    np.testing.assert_allclose(drifted.array, u @ vt, atol=1e-14)
