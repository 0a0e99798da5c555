"""Rigid motions and spatial vectors against Pinocchio and against 50-digit matrix exponentials."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import (
    EulerAngles,
    Force,
    Motion,
    Quaternion,
    RotationMatrix,
    SpatialInertia,
    Transformation,
    se3_adjoint,
    se3_exp,
    se3_left_jacobian,
    se3_log,
    se3_right_jacobian,
    so3_left_jacobian,
    so3_right_jacobian,
)
from tests.optional_packages import import_or_skip
from tests.spatial.samples import CLASSES

pin = import_or_skip("pinocchio")

SIZES = [0.0, 1e-12, 1e-8, 1e-4, 1e-2, 0.3, 0.999, 1.001, 1.5, 2.5, 3.1]


def twists(size, n=20):
    rng = np.random.default_rng(int(size * 1000) + 1)
    xi = rng.normal(size=(n, 6))
    phi = xi[:, 3:]
    xi[:, 3:] = size * phi / np.linalg.norm(phi, axis=-1, keepdims=True)
    return xi


def exact_left_jacobian(xi):
    """Sum of ad^k / (k + 1)! with 50 digits: the definition, for motion vectors linear first."""
    with mp.workdps(50):
        v, w = [mp.mpf(float(c)) for c in xi[:3]], [mp.mpf(float(c)) for c in xi[3:]]
        hat = lambda a: mp.matrix([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
        ad = mp.zeros(6)
        for i in range(3):
            for j in range(3):
                ad[i, j] = ad[3 + i, 3 + j] = hat(w)[i, j]
                ad[i, 3 + j] = hat(v)[i, j]
        total, term = mp.eye(6), mp.eye(6)
        for k in range(1, 60):
            term = term * ad / (k + 1)
            total += term
        return np.array(total.tolist(), dtype=float)


@pytest.mark.parametrize("size", SIZES)
def test_exponential_and_logarithm(size):
    for xi in twists(size):
        M = pin.exp6(pin.Motion(xi))
        np.testing.assert_allclose(se3_exp(xi), M.homogeneous, atol=1e-13)
        np.testing.assert_allclose(se3_log(M.homogeneous), pin.log6(M).vector, atol=1e-12)
        np.testing.assert_allclose(se3_log(se3_exp(xi)), xi, atol=1e-13)
        X = Transformation.exp(xi)
        np.testing.assert_allclose(X.as_matrix(), M.homogeneous, atol=1e-13)
        np.testing.assert_allclose(X.log(), xi, atol=1e-13)
        np.testing.assert_allclose(se3_adjoint(M.homogeneous), M.action, atol=1e-13)
        np.testing.assert_allclose(X.adjoint(), M.action, atol=1e-13)


@pytest.mark.parametrize("size", SIZES)
def test_jacobians(size):
    for xi in twists(size, 5):
        left = exact_left_jacobian(xi)
        np.testing.assert_allclose(se3_left_jacobian(xi), left, atol=1e-14)
        np.testing.assert_allclose(se3_right_jacobian(xi), exact_left_jacobian(-xi), atol=1e-14)
        np.testing.assert_allclose(se3_left_jacobian(xi, True) @ left, np.eye(6), atol=2e-13)
        np.testing.assert_allclose(so3_left_jacobian(xi[3:]), left[3:, 3:], atol=1e-15)
        np.testing.assert_allclose(so3_right_jacobian(xi[3:]), left[3:, 3:].T, atol=1e-15)
        M = pin.exp6(pin.Motion(xi))
        np.testing.assert_allclose(se3_right_jacobian(xi, True), pin.Jlog6(M), atol=1e-12)
        if size > 0.1:  # below, Pinocchio's own Jexp6 is off by up to 1e-10
            np.testing.assert_allclose(
                se3_right_jacobian(xi), pin.Jexp6(pin.Motion(xi)), atol=1e-12
            )


def test_batches():
    xi = twists(1.2, 7)
    for function in (se3_exp, se3_left_jacobian, se3_right_jacobian):
        np.testing.assert_allclose(function(xi)[3], function(xi[3]), atol=1e-15)
    np.testing.assert_allclose(se3_log(se3_exp(xi)), xi, atol=1e-14)
    X = Transformation.exp(xi)
    points = np.random.default_rng(0).normal(size=(7, 3))
    moved = X.apply(points)
    for k in range(7):
        np.testing.assert_allclose(moved[k], Transformation.exp(xi[k]).apply(points[k]), atol=1e-14)
    np.testing.assert_allclose(X.inv().apply(moved), points, atol=1e-14)
    np.testing.assert_allclose((X @ X.inv()).as_matrix(), np.tile(np.eye(4), (7, 1, 1)), atol=1e-14)


@pytest.mark.parametrize("cls", CLASSES)
def test_semantics(cls):
    """p_B = t + R_BA p_A for every attitude; products and inverses as for matrices."""
    rng = np.random.default_rng(1)
    X_BA = Transformation(rng.normal(size=3), cls.random(2))
    X_CB = Transformation(rng.normal(size=3), cls.random(3))
    p = rng.normal(size=3)
    R = X_BA.r.as_matrix()
    np.testing.assert_allclose(X_BA.apply(p), X_BA.t + R @ p, atol=1e-15)
    np.testing.assert_allclose(X_BA.apply_vec(p), R @ p, atol=1e-15)
    np.testing.assert_allclose((X_CB @ X_BA).apply(p), X_CB.apply(X_BA.apply(p)), atol=1e-14)
    np.testing.assert_allclose(
        (X_CB @ X_BA).as_matrix(), X_CB.as_matrix() @ X_BA.as_matrix(), atol=1e-14
    )
    np.testing.assert_allclose(X_BA.inv().as_matrix(), np.linalg.inv(X_BA.as_matrix()), atol=1e-14)
    again = Transformation.from_matrix(X_BA.as_matrix())
    assert isinstance(again.r, RotationMatrix)
    np.testing.assert_allclose(again.apply(p), X_BA.apply(p), atol=1e-14)
    cloud = rng.normal(size=(3, 5))
    np.testing.assert_allclose(X_BA.apply(cloud), X_BA.t[:, None] + R @ cloud, atol=1e-14)


def test_identity_and_pose():
    one = Transformation.identity()
    np.testing.assert_array_equal(one.as_matrix(), np.eye(4))
    np.testing.assert_array_equal(one.log(), np.zeros(6))
    pos, att = np.array([1.0, 2.0, 3.0]), EulerAngles([0.1, 0.2, 0.3])
    X_BA = Transformation.from_pose(pos, att)
    np.testing.assert_allclose(X_BA.apply(pos), np.zeros(3), atol=1e-15)
    np.testing.assert_allclose(X_BA.inv().t, pos, rtol=1e-15)


def test_interpolation():
    X0, X1 = Transformation.exp(twists(1.0)[0]), Transformation.exp(twists(1.0)[1])
    for s in (0.0, 0.25, 1.0):
        expected = pin.SE3.Interpolate(
            pin.SE3(X0.inv().as_matrix()), pin.SE3(X1.inv().as_matrix()), s
        )
        np.testing.assert_allclose(
            X0.interpolate(X1, s).inv().as_matrix(), expected.homogeneous, atol=1e-13
        )
    many = X0.interpolate(X1, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(many.as_matrix()[1], X0.interpolate(X1, 0.5).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(X0.interpolate(X0, 0.4).as_matrix(), X0.as_matrix(), atol=1e-15)


def test_spatial_vectors():
    rng = np.random.default_rng(5)
    a, b, f = rng.normal(size=(3, 6))
    V, W, F = Motion.from_array(a), Motion.from_array(b), Force.from_array(f)
    PV, PW, PF = pin.Motion(a), pin.Motion(b), pin.Force(f)
    np.testing.assert_allclose(V.cross(W).array, PV.cross(PW).vector, atol=1e-14)
    np.testing.assert_allclose(V.cross(F).array, PV.cross(PF).vector, atol=1e-14)
    assert V.dot(F) == pytest.approx(PV.dot(PF))
    assert F.dot(V) == V.dot(F)
    X = Transformation.exp(twists(1.3)[2])
    M = pin.SE3(X.as_matrix())
    np.testing.assert_allclose(X.apply_motion(V).array, M.act(PV).vector, atol=1e-14)
    np.testing.assert_allclose(X.apply_force(F).array, M.act(PF).vector, atol=1e-14)
    np.testing.assert_allclose(X.adjoint() @ a, X.apply_motion(V).array, atol=1e-14)
    # Power does not depend on the coordinates.
    assert X.apply_motion(V).dot(X.apply_force(F)) == pytest.approx(V.dot(F))
    np.testing.assert_allclose((V + W - 2.0 * V).array, b - a, atol=1e-15)
    np.testing.assert_allclose((-V).array, -a)
    p, q = rng.normal(size=(2, 3))
    np.testing.assert_allclose(Force.at_point(p, q).angular, np.cross(q, p), atol=1e-15)


def test_spatial_inertia():
    rng = np.random.default_rng(6)
    A = rng.normal(size=(3, 3))
    J, com = A @ A.T + np.eye(3), rng.normal(size=3)
    ours, theirs = SpatialInertia(2.0, com, J), pin.Inertia(2.0, com, J)
    np.testing.assert_allclose(ours.as_matrix(), theirs.matrix(), atol=1e-14)
    a = rng.normal(size=6)
    V, PV = Motion.from_array(a), pin.Motion(a)
    momentum = ours @ V
    np.testing.assert_allclose(momentum.array, (theirs * PV).vector, atol=1e-13)
    np.testing.assert_allclose(ours.solve(momentum).array, a, atol=1e-13)
    assert ours.kinetic_energy(V) == pytest.approx(theirs.vtiv(PV) / 2)
    X = Transformation.exp(twists(0.8)[1])
    M = pin.SE3(X.as_matrix())
    moved = ours.transform(X)
    np.testing.assert_allclose(moved.as_matrix(), M.act(theirs).matrix(), atol=1e-13)
    total = ours + moved
    expected = theirs + M.act(theirs)
    np.testing.assert_allclose(total.as_matrix(), expected.matrix(), atol=1e-13)
    assert moved.kinetic_energy(X.apply_motion(V)) == pytest.approx(ours.kinetic_energy(V))


def test_user_quaternion_is_normalised():
    X = Transformation(np.zeros(3), Quaternion([2.0, 0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(X.as_matrix(), np.eye(4))


def test_points_of_one_and_of_many_transformations():
    """One vector through a batch of three (the issue's own), columns through one, others."""
    attitudes = Quaternion.random(0, (3,))
    matrices = np.asarray(attitudes.as_matrix())
    t, point = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    points = np.arange(9.0).reshape(3, 3)
    ts = np.arange(9.0).reshape(3, 3) / 7
    first = Quaternion(np.asarray(attitudes.array)[0])
    for r, offset, given, expected in (
        (attitudes, t, point, matrices @ point + t),
        (attitudes, ts, point, matrices @ point + ts),
        (attitudes, t, points, np.einsum("nij,nj->ni", matrices, points) + t),
        (first, t, points, matrices[0] @ points + t[:, None]),
        (first, ts, points, points @ matrices[0].T + ts),
        (first, ts, point, matrices[0] @ point + ts),
    ):
        for apply in (lambda x, p: x.apply(p), arc.compile(lambda x, p: x.apply(p))):
            got = apply(Transformation(offset, r), given)
            np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-14)
