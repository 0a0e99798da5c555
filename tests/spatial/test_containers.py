"""Attitudes as objects: indexing, arithmetic, printing, copying, broadcasting."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from archimedes import tree
from archimedes.spatial import (
    Attitude,
    EulerAngles,
    ModifiedRodrigues,
    Quaternion,
    RotationVector,
)
from tests.spatial.samples import ANGLES, CLASSES

quaternions = arrays(float, 4, elements=st.floats(-1, 1)).filter(lambda q: q @ q > 1e-3)


@pytest.mark.parametrize("cls", CLASSES)
def test_protocol_and_structs(cls):
    one = cls.from_rotvec([0.1, 0.2, 0.3])
    assert isinstance(one, Attitude)
    assert len(tree.leaves(one)) == 1
    doubled = tree.map(lambda x: 2 * x, one)
    assert type(doubled) is cls
    np.testing.assert_array_equal(doubled.array, 2 * one.array)
    assert one == cls.from_rotvec([0.1, 0.2, 0.3])
    assert one != cls.from_rotvec([0.1, 0.2, 0.4])
    assert one.replace(array=2 * one.array).array.shape == one.array.shape


@pytest.mark.parametrize("cls", CLASSES)
def test_copy_pickle_json(cls):
    for attitude in (cls.random(0), cls.random(1, (2, 3))):
        assert copy.copy(attitude) == attitude
        assert copy.deepcopy(attitude) == attitude
        assert pickle.loads(pickle.dumps(attitude)) == attitude
        text = json.dumps(attitude.to_dict())
        assert cls.from_dict(json.loads(text)) == attitude
    with pytest.raises(ValueError, match=f"data of a {cls.__name__}"):
        cls.from_dict({"type": "Other", "array": [1.0]})


def test_json_keeps_settings():
    angles = EulerAngles([10.0, 20.0, 30.0], "ZXZ", degrees=True)
    assert EulerAngles.from_dict(angles.to_dict()) == angles


def test_one_attitude_is_a_sequence_of_components():
    q = Quaternion([0.5, 0.1, 0.2, 0.3])
    assert len(q) == 4
    assert q.shape == ()
    assert list(q) == [0.5, 0.1, 0.2, 0.3]
    assert q[0] == 0.5
    np.testing.assert_array_equal(q[1:], [0.1, 0.2, 0.3])
    w, x, y, z = q
    assert (w, x, y, z) == (0.5, 0.1, 0.2, 0.3)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_batch_is_a_sequence_of_attitudes(cls):
    batch = cls.random(3, (5, 2))
    assert batch.shape == (5, 2)
    assert len(batch) == 5
    assert type(batch[1]) is cls
    assert batch[1].shape == (2,)
    assert batch[1, 0].shape == ()
    assert batch[1:3].shape == (2, 2)
    assert batch[..., 0].shape == (5,)
    assert batch[np.array([0, 3])].shape == (2, 2)
    assert batch[:, None].shape == (5, 1, 2)
    assert [type(b) for b in batch] == [cls] * 5
    np.testing.assert_allclose(batch[4, 1].as_matrix(), batch.as_matrix()[4, 1], atol=1e-15)


def test_index_into_components_of_a_batch_is_refused():
    with pytest.raises(IndexError, match=r"cuts into the components of a Quaternion"):
        Quaternion.random(0, (5,))[0, 1]


def test_repr():
    assert repr(Quaternion.identity()) == "Quaternion([1. 0. 0. 0.])"
    assert repr(EulerAngles(ANGLES)) == "EulerAngles([0.1 0.2 0.3], seq='xyz')"
    assert repr(EulerAngles([10.0], "Z", degrees=True)) == (
        "EulerAngles([10.], seq='Z', degrees=True)"
    )
    assert repr(RotationVector(ANGLES)) == "RotationVector([0.1 0.2 0.3])"
    assert repr(ModifiedRodrigues(ANGLES)) == "ModifiedRodrigues([0.1 0.2 0.3])"


def test_arithmetic_on_components():
    q = Quaternion([1.0, 2.0, 3.0, 4.0])
    for doubled in (2 * q, q * 2, 2.0 * q, np.float64(2) * q, q * np.array(2.0), q / 0.5, q + q):
        assert isinstance(doubled, Quaternion)
        np.testing.assert_array_equal(doubled.array, [2, 4, 6, 8])
    np.testing.assert_array_equal((-q).array, [-1, -2, -3, -4])
    np.testing.assert_array_equal((q - q.array).array, np.zeros(4))
    with pytest.raises(TypeError, match=r"use \.rotate"):
        q * np.ones(3)
    with pytest.raises(TypeError, match=r"use \*"):
        q + EulerAngles(ANGLES)
    with pytest.raises(TypeError, match="seq"):
        EulerAngles(ANGLES, "xyz") + EulerAngles(ANGLES, "zyx")


@settings(max_examples=50, deadline=None)
@given(quaternions, quaternions, quaternions)
def test_group(a, b, c):
    a, b, c = Quaternion(a), Quaternion(b), Quaternion(c)
    assert ((a * b) * c).approx_equal(a * (b * c), 1e-7)
    assert (a * a.inv()).approx_equal(Quaternion.identity(), 1e-7)
    assert (a * b).inv().approx_equal(b.inv() * a.inv(), 1e-7)
    np.testing.assert_allclose(a.mul(b, normalize=True).array @ a.mul(b, True).array, 1.0)
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose((a * b).rotate(v), b.rotate(a.rotate(v)), atol=1e-9)
    np.testing.assert_allclose(a.rotate(a.rotate(v), inverse=True), v, atol=1e-9)


@pytest.mark.parametrize("left", CLASSES)
@pytest.mark.parametrize("right", CLASSES)
def test_mixed_composition(left, right):
    a, b = left.random(5), right.random(6)
    assert type(a * b) is left
    np.testing.assert_allclose((a * b).as_matrix(), b.as_matrix() @ a.as_matrix(), atol=1e-14)
    assert a.approx_equal(right.from_quat(a.as_quat()))
    assert a.angle_to(b) == pytest.approx(b.angle_to(a))


@pytest.mark.parametrize("cls", CLASSES)
def test_inverse(cls):
    a = cls.random(7, (4,))
    np.testing.assert_allclose(a.inv().as_matrix(), np.swapaxes(a.as_matrix(), 1, 2), atol=1e-15)
    assert type(a.inv()) is cls
    assert np.all((a * a.inv()).approx_equal(cls.identity(), 1e-7))


def test_inverse_of_short_sequences():
    for seq in ("x", "ZY", "yx"):
        a = EulerAngles(ANGLES[: len(seq)], seq)
        np.testing.assert_allclose(a.inv().as_matrix(), a.as_matrix().T, atol=1e-16)
    with pytest.raises(ValueError, match="three letters"):
        EulerAngles([0.1], "x") * EulerAngles([0.1], "y")
    product = EulerAngles(0.1, "x").as_quat() * EulerAngles(0.1, "y")
    np.testing.assert_allclose(
        product.as_matrix(), EulerAngles([0.1, 0.1], "XY").as_matrix(), atol=1e-15
    )


@pytest.mark.parametrize("cls", CLASSES)
def test_broadcasting(cls):
    one, row, grid = cls.random(0), cls.random(1, (4,)), cls.random(2, (3, 1))
    assert (one * row).shape == (4,)
    assert (row * grid).shape == (3, 4)
    np.testing.assert_allclose(
        (row * grid).as_matrix()[2, 3], (row[3] * grid[2, 0]).as_matrix(), atol=1e-14
    )
    v = np.random.default_rng(0).normal(size=(3, 4, 3))
    assert row.rotate(v).shape == (3, 4, 3)
    assert grid.rotate(v[0]).shape == (3, 4, 3)
    assert row.rotate(v[0, 0]).shape == (4, 3)
    np.testing.assert_allclose(row.rotate(v)[1, 2], row[2].rotate(v[1, 2]), atol=1e-15)
    assert one.rotate(np.ones((3, 7))).shape == (3, 7)
    assert row.kinematics(np.ones(3)).shape == (4,)
    assert row.kinematics(np.ones((4, 3))).shape == (4,)
    assert row.angular_velocity(row.kinematics(np.ones(3))).shape == (4, 3)
    assert row.magnitude().shape == (4,)
    assert row.left_jacobian().shape == (4, 3, 3)


@pytest.mark.parametrize("cls", CLASSES)
def test_random_is_uniform(cls):
    """The mean matrix of evenly spread rotations is zero; same seed, same rotations."""
    batch = cls.random(np.random.default_rng(3), (20_000,))
    assert np.abs(batch.as_matrix().mean(axis=0)).max() < 0.02
    assert cls.random(5) == cls.random(5)
    assert cls.random(5, 4).shape == (4,)


def test_dtypes():
    assert Quaternion([1, 0, 0, 0]).array.dtype == float
    q32 = Quaternion(np.array([0.5, 0.5, 0.5, 0.5], dtype=np.float32))
    assert q32.as_matrix().dtype == np.float32
    np.testing.assert_allclose(q32.log(), Quaternion(np.full(4, 0.5)).log(), rtol=1e-6)
