"""Misuse is met with words that name the argument and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import (
    EarthReferencedBody,
    EulerAngles,
    KinematicTree,
    ModifiedRodrigues,
    Motion,
    Quaternion,
    QuaternionSpline,
    RigidBody,
    RotationMatrix,
    RotationVector,
    SpatialInertia,
    Transformation,
    align_vectors,
    dcm_to_quaternion,
    euler_kinematics,
    euler_to_dcm,
    mean,
    mrp_shadow,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_dcm,
    slerp,
)

NAN = np.array([1.0, np.nan, 0.0, 0.0])
BAD_SEQUENCES = {
    "": "one to three",
    "xyzx": "one to three",
    "abc": "one to three",
    "xxy": "not repeat",
    "xYz": "all lower case",
    1: "one to three",
}

CASES = {
    "length": (lambda: Quaternion([1.0, 2.0, 3.0]), r"Quaternion array must have shape \(4,\)"),
    "matrix shape": (lambda: RotationMatrix(np.eye(4)), r"RotationMatrix array must have shape"),
    "vector length": (lambda: RotationVector([1.0]), r"RotationVector array must have shape"),
    "mrp length": (lambda: ModifiedRodrigues([1.0]), r"ModifiedRodrigues array must have shape"),
    "angles length": (lambda: EulerAngles([0.1, 0.2], "xyz"), r"one per letter of seq='xyz'"),
    "scalar for three": (lambda: EulerAngles(0.1, "xyz"), r"one per letter of seq='xyz'"),
    "nan": (lambda: Quaternion(NAN), "Quaternion array must be finite"),
    "infinite angles": (lambda: EulerAngles([np.inf, 0, 0]), "EulerAngles array must be finite"),
    "nan in batch": (lambda: Quaternion(np.stack([NAN, NAN])), "must be finite"),
    "nan quaternion": (lambda: quaternion_to_dcm(NAN), "quaternion q must be finite and not zero"),
    "zero to matrix": (lambda: Quaternion(np.zeros(4)).as_matrix(), "finite and not zero"),
    "zero to angles": (lambda: Quaternion(np.zeros(4)).as_euler("xyz"), "finite and not zero"),
    "zero to vector": (lambda: Quaternion(np.zeros(4)).log(), "finite and not zero"),
    "zero to mrp": (lambda: Quaternion(np.zeros(4)).as_mrp(), "finite and not zero"),
    "zero normalised": (lambda: Quaternion(np.zeros(4)).normalize(), "finite and not zero"),
    "zero inverse": (lambda: Quaternion(np.zeros(4)).inv(), "finite and not zero"),
    "zero in batch": (lambda: quaternion_normalize(np.zeros((3, 4))), "finite and not zero"),
    "product shape": (lambda: quaternion_multiply(np.ones(3), np.ones(4)), r"q1 must have shape"),
    "reflection": (lambda: Quaternion.from_matrix(np.diag([1.0, 1, -1])), "reflection"),
    "not orthogonal": (lambda: dcm_to_quaternion(np.ones((3, 3))), "matrix must be orthogonal"),
    "scaled matrix": (lambda: RotationMatrix(2 * np.eye(3)).as_quat(), "orthogonal"),
    "short target": (lambda: Quaternion.identity().as_euler("xy"), "three letters"),
    "short kinematics": (lambda: EulerAngles(0.1, "x").kinematics(np.ones(3)), "three letters"),
    "lock": (lambda: euler_kinematics([0.1, 0.0, 0.2], seq="zxz"), "gimbal lock"),
    "vectors": (lambda: Quaternion.identity().rotate(np.ones((2, 3))), r"\(3,\) or \(3, N\)"),
    "batch vectors": (
        lambda: Quaternion.random(0, (2,)).rotate(np.ones((3, 2))),
        r"\(3,\) or \(..., 3\)",
    ),
    "shadow of zero": (lambda: mrp_shadow(np.zeros(3)), "mrp must be finite and not zero"),
    "rate shape": (lambda: Quaternion.identity().kinematics(np.ones(4)), "w must have shape"),
    "ragged": (lambda: RotationMatrix([[1.0, 0], [0, 1, 0], [0, 0, 1]]), "different lengths"),
    "mean of one": (lambda: mean(Quaternion.identity()), "batch of attitudes"),
    "weights": (lambda: mean(Quaternion.random(0, (2,)), [1.0, -1.0]), "weights must not be neg"),
    "weights count": (lambda: mean(Quaternion.random(0, (2,)), [1.0]), r"weights must have shape"),
    "align shapes": (lambda: align_vectors(np.ones((2, 3)), np.ones((3, 3))), r"shape \(n, 3\)"),
    "align zero": (lambda: align_vectors(np.zeros((2, 3)), np.zeros((2, 3))), "not all be zero"),
    "slerp shape": (lambda: slerp(np.ones(3), np.ones(4), 0.5), "q0 must have shape"),
    "spline order": (
        lambda: QuaternionSpline([0.0, 2.0, 1.0], Quaternion.random(0, (3,))),
        "times must increase",
    ),
    "spline count": (
        lambda: QuaternionSpline([0.0, 2.0], Quaternion.random(0, (3,))),
        "times, one for each knot, must have shape",
    ),
    "translation": (lambda: Transformation(np.ones(2), Quaternion.identity()), "Transformation t"),
    "last row": (lambda: Transformation.from_matrix(np.ones((4, 4))), "rotation part of matrix"),
    "projective": (lambda: Transformation.from_matrix(np.diag([1.0, 1, 1, 2])), "last row"),
    "motion": (lambda: Motion(np.ones(2), np.ones(3)), "Motion linear must have shape"),
    "spatial mass": (lambda: SpatialInertia(-1.0, np.zeros(3), np.eye(3)), "must be positive"),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    action, words = CASES[name]
    with pytest.raises(ValueError, match=words):
        action()


@pytest.mark.parametrize("seq", BAD_SEQUENCES, ids=repr)
def test_sequences(seq):
    for action in (
        lambda: EulerAngles([0.1, 0.2, 0.3], seq),
        lambda: euler_to_dcm([0.1, 0.2, 0.3], seq),
        lambda: Quaternion.identity().as_euler(seq),
        lambda: Quaternion.from_euler([0.1, 0.2, 0.3], seq),
    ):
        with pytest.raises(ValueError, match=BAD_SEQUENCES[seq]):
            action()


TYPES = {
    "text": (lambda: Quaternion("abcd"), "must be an array of real numbers, got str"),
    "attitude as array": (lambda: quaternion_to_dcm(Quaternion.identity()), "pass its .array"),
    "rates of another": (
        lambda: Quaternion.identity().angular_velocity(RotationVector([0.0, 0, 0])),
        "rates must be those of a Quaternion",
    ),
    "transform product": (lambda: Transformation.identity() @ np.eye(4), "use .apply"),
    "matrix as r": (lambda: Transformation(np.zeros(3), np.eye(3)), r"RotationMatrix\(matrix\)"),
    "motion and force": (lambda: Motion.zero() + 1.0, "do not add"),
    "not an attitude": (lambda: Quaternion.identity().angle_to(3.0), "expected an attitude"),
    "frame name": (lambda: KinematicTree(3), "name must be a text"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name):
    action, words = TYPES[name]
    with pytest.raises(TypeError, match=words):
        action()


GOOD = {"F_B": np.zeros(3), "M_B": np.zeros(3), "m": 1.0, "J_B": np.eye(3)}


@pytest.mark.parametrize("m", [0.0, -1.0, np.nan, np.inf])
def test_mass(m):
    with pytest.raises(ValueError, match=r"RigidBody.Input.m must be positive and finite, in kg"):
        RigidBody.Input(**{**GOOD, "m": m})
    with pytest.raises(ValueError, match=r"EarthReferencedBody.Input.m must be positive"):
        EarthReferencedBody.Input(np.zeros(3), np.zeros(3), m, np.eye(3))


@pytest.mark.parametrize(
    ("J", "words"),
    [
        (np.diag([1.0, 1.0, -1.0]), "positive definite"),
        (np.zeros((3, 3)), "positive definite"),
        (np.array([[1.0, 0.1, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
        (np.eye(2), "shape"),
        (np.full((3, 3), np.nan), "finite"),
    ],
)
def test_inertia(J, words):
    with pytest.raises(ValueError, match=rf"RigidBody.Input.J_B must .*{words}"):
        RigidBody.Input(**{**GOOD, "J_B": J})


def test_rigid_body_state():
    u = RigidBody.Input(**GOOD)
    x = RigidBody.State(np.zeros(3), Quaternion.identity(), np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match=r"x.v_B must have shape"):
        RigidBody.dynamics(0.0, x.replace(v_B=np.zeros(2)), u)
    with pytest.raises(ValueError, match=r"att must be an attitude, an array of 3 .* or of 4"):
        RigidBody.dynamics(0.0, x.replace(att=np.zeros(5)), u)
    with pytest.raises(ValueError, match=r"rpy_attitude is True"):
        RigidBody(rpy_attitude=True).dynamics(0.0, x, u)
    RigidBody(rpy_attitude=True).dynamics(0.0, x.replace(att=np.zeros(3)), u)


def test_checks_cost_nothing_when_traced():
    """Shapes are still checked; values are not known, so zero gives nan instead of an error."""
    with pytest.raises(ValueError, match="Quaternion array must have shape"):
        arc.compile(lambda q: Quaternion(q).as_matrix())(np.ones(3))
    with np.errstate(all="ignore"):
        assert np.isnan(arc.compile(lambda q: Quaternion(q).as_matrix())(np.zeros(4))).all()


def test_construction_accepts_rates():
    """Zero and other lengths are kept: the class holds rates too."""
    assert Quaternion(np.zeros(4)).array.tolist() == [0, 0, 0, 0]
    q = Quaternion([0.0, 3.0, 0.0, 4.0])
    assert q.array.tolist() == [0, 3, 0, 4]
    assert q.as_quat().array.tolist() == [0, 0.6, 0, 0.8]
    np.testing.assert_allclose(q.as_matrix() @ q.as_matrix().T, np.eye(3), atol=1e-15)


def test_angles_that_bring_their_sequence_take_no_other():
    """The issue's own: from_euler(EulerAngles(a, "xyz"), seq="zyx") ignored seq."""
    angles = EulerAngles([0.1, 0.2, 0.3], "xyz")
    expected = angles.as_quat().array
    for cls in (Quaternion, RotationMatrix):
        for seq in (None, "xyz"):
            got = cls.from_euler(angles, seq=seq).as_quat().array
            np.testing.assert_allclose(got, expected, rtol=1e-14)
        with pytest.raises(ValueError, match="bring their own"):
            cls.from_euler(angles, seq="zyx")
        with pytest.raises(ValueError, match="degrees=True"):
            cls.from_euler(angles, degrees=True)
    other = EulerAngles.from_euler(angles, seq="zyx")
    assert other.seq == "zyx"
    np.testing.assert_allclose(other.as_quat().array, expected, rtol=1e-14)


def test_gaps_of_masked_arrays_are_no_numbers():
    gaps = np.ma.array([1.0, 0.0, 0.0, 0.0], mask=[0, 1, 0, 0])
    with pytest.raises(TypeError, match=r"masked array.*x\.filled\(np\.nan\)"):
        Quaternion(gaps)
    assert np.array_equal(Quaternion(gaps.data).array, gaps.data)
