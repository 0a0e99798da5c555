"""Derivatives against 60-digit differences, at ordinary points and where formulas divide 0 by 0.

An attitude near a base point is ``base * exp(delta)`` with delta a rotation vector; each function
is differentiated with respect to delta, or to its own array.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import (
    EulerAngles,
    ModifiedRodrigues,
    Quaternion,
    QuaternionSpline,
    RotationMatrix,
    RotationVector,
    Transformation,
    align_vectors,
    euler_kinematics,
    mean,
    se3_left_jacobian,
    slerp,
    so3_right_jacobian,
)
from tests.spatial import reference as ref
from tests.spatial.samples import SEQUENCES, is_proper

H = np.sqrt(0.5)
BASES = {
    "identity": [1.0, 0.0, 0.0, 0.0],
    "minus identity": [-1.0, 0.0, 0.0, 0.0],
    "pi about x": [0.0, 1.0, 0.0, 0.0],
    "pi about y": [0.0, 0.0, 1.0, 0.0],
    "pi about z": [0.0, 0.0, 0.0, 1.0],
    "pi about xy": [0.0, 0.6, 0.8, 0.0],
    "pitch up": [H, 0.0, H, 0.0],
    "quarter about x": [H, H, 0.0, 0.0],
    "tiny": [1.0, 1e-9, -2e-9, 1e-160],
    "just inside series": [np.cos(0.49999), np.sin(0.49999), 0.0, 0.0],
    "just outside series": [np.cos(0.50001), np.sin(0.50001), 0.0, 0.0],
    "ordinary": [0.5, -0.1, 0.7, 0.2],
}
ZERO = np.zeros(3)
VECTOR = np.array([0.3, -1.2, 2.0])


def near(base):
    return lambda delta: Quaternion(np.array(base)) * Quaternion.exp(delta)


def near_mp(base):
    return lambda delta: ref.multiply(ref.lift(base), ref.exp(delta))


def check(ours, oracle, x, atol=2e-13):
    J = arc.jac(ours)(np.asarray(x, dtype=float))
    expected = ref.differences(oracle, x)
    np.testing.assert_allclose(J.reshape(expected.shape), expected, atol=atol, rtol=1e-12)


@pytest.mark.parametrize("name", BASES)
def test_matrix(name):
    at, at_mp = near(BASES[name]), near_mp(BASES[name])
    check(lambda d: at(d).as_matrix(), lambda d: ref.matrix(at_mp(d)), ZERO)
    check(lambda q: Quaternion(q).as_matrix(), ref.matrix, BASES[name])
    check(lambda q: Quaternion(q).normalize().array, ref.normalize, BASES[name])
    turned = lambda d: at(d).rotate(VECTOR, inverse=True)
    oracle = lambda d: _apply_transposed(ref.matrix(at_mp(d)))
    check(turned, oracle, ZERO)


def _apply_transposed(m):
    v = ref.lift(VECTOR)
    return [sum(m[3 * i + j] * v[i] for i in range(3)) for j in range(3)]


@pytest.mark.parametrize("name", BASES)
def test_quaternion_of_matrix(name):
    """By way of the matrix; the sign of the result is free, so it is compared as a matrix too."""
    at, at_mp = near(BASES[name]), near_mp(BASES[name])
    sign = 1.0 if np.dot(at(ZERO).as_quat().array, through_matrix(at)(ZERO)) > 0 else -1.0
    check(
        lambda d: sign * through_matrix(at)(d), lambda d: ref.normalize(at_mp(d)), ZERO, atol=1e-12
    )


def through_matrix(at):
    return lambda d: RotationMatrix(at(d).as_matrix()).as_quat().array


@pytest.mark.parametrize("name", BASES)
def test_log_and_parameters(name):
    base = np.array(BASES[name])
    sign = -1.0 if base[0] < 0 else 1.0
    at, at_mp = near(base), near_mp(sign * base)
    check(lambda d: at(d).log(), lambda d: ref.log(at_mp(d)), ZERO)
    check(lambda d: at(d).as_mrp().array, lambda d: ref.mrp(at_mp(d)), ZERO)
    through = lambda d: RotationVector(at(d).log()).as_quat().array
    check(lambda d: sign * through(d), lambda d: ref.normalize(near_mp(base)(d)), ZERO)


ROTVECS = {
    "zero": [0.0, 0.0, 0.0],
    "tiny": [1e-160, 0.0, 1e-9],
    "pi": [0.0, np.pi, 0.0],
    "limit": [0.6, 0.0, 0.8],
    "ordinary": [1.0, -2.0, 0.5],
}


@pytest.mark.parametrize("name", ROTVECS)
def test_from_vectors(name):
    v = np.array(ROTVECS[name])
    check(lambda v: Quaternion.exp(v).array, ref.exp, v)
    check(lambda v: RotationVector(v).as_matrix(), lambda v: ref.matrix(ref.exp(v)), v)
    check(lambda s: ModifiedRodrigues(s).as_quat().array, ref.mrp_quaternion, v)
    check(
        lambda s: ModifiedRodrigues(s).as_matrix(),
        lambda s: ref.matrix(ref.mrp_quaternion(s)),
        v,
    )


@pytest.mark.parametrize("name", ROTVECS)
def test_second_derivatives(name):
    """The functions of the squared angle are smooth: Hessians too are right at zero."""
    v = np.array(ROTVECS[name])
    weights = np.array([0.3, -0.2, 0.5, 0.7])
    H = arc.hess(lambda v: np.dot(weights, Quaternion.exp(v).array))(v)
    gradient = lambda x: ref.differences_mp(
        lambda y: [sum(float(w) * c for w, c in zip(weights, ref.exp(y)))], x
    )
    expected = ref.differences(gradient, v)
    np.testing.assert_allclose(H, expected, atol=1e-12)


EULER_POINTS = {
    "zero": [0.0, 0.0, 0.0],
    "lock": [0.3, np.pi / 2, -0.4],
    "other lock": [0.3, np.pi, -0.4],
    "ordinary": [0.4, 0.9, -2.0],
}


@pytest.mark.parametrize("name", EULER_POINTS)
@pytest.mark.parametrize("seq", SEQUENCES)
def test_from_euler(seq, name):
    """Matrix, quaternion and the inverse rate map are smooth everywhere, gimbal lock included."""
    x = EULER_POINTS[name]
    check(lambda a: EulerAngles(a, seq).as_quat().array, lambda a: ref.euler_quaternion(a, seq), x)
    matrix = lambda a: ref.matrix(ref.euler_quaternion(a, seq))
    check(lambda a: EulerAngles(a, seq).as_matrix(), matrix, x)
    inverse = lambda a: _transpose(matrix(a))
    check(lambda a: EulerAngles(a, seq).inv().as_matrix(), inverse, x)
    rates = np.array([0.3, -0.5, 0.9])
    check(
        lambda a: EulerAngles(a, seq).angular_velocity(rates),
        lambda a: ref.body_rate(a, ref.lift(rates), seq),
        x,
        atol=1e-12,
    )


def _transpose(m):
    return [m[3 * j + i] for i in range(3) for j in range(3)]


@pytest.mark.parametrize("seq", SEQUENCES)
def test_to_euler(seq):
    """The angles as functions of the rotation invert the functions above."""
    points = [[0.4, 0.9, -2.0], [-2.5, 0.3, 0.1]]
    if not is_proper(seq):
        points += [[0.0, 0.0, 0.0], [np.pi - 1e-3, 0.0, 0.0], [1e-160, -1e-9, 1e-12]]
    for x in points:
        q0 = EulerAngles(x, seq).as_quat().array
        J = arc.jac(lambda q: Quaternion(q).as_euler(seq).array)(q0)
        forward = ref.differences(lambda a: ref.euler_quaternion(a, seq), x)
        np.testing.assert_allclose(J @ forward, np.eye(3), atol=2e-13)
        np.testing.assert_allclose(J @ q0, 0.0, atol=2e-13)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_to_euler_finite_in_lock(seq):
    lock = 0.0 if is_proper(seq) else np.pi / 2
    q0 = EulerAngles([0.3, lock, 0.0], seq).as_quat().array
    J = arc.jac(lambda q: Quaternion(q).as_euler(seq).array)(q0)
    assert np.isfinite(J).all()


@pytest.mark.parametrize("name", BASES)
def test_kinematics(name):
    base = np.array(BASES[name])
    sign = -1.0 if base[0] < 0 else 1.0
    w = np.array([0.4, -0.3, 0.8])
    half = lambda q: [c / 2 for c in ref.multiply(q, [0, *ref.lift(w)])]
    check(lambda q: Quaternion(q).kinematics(w, baumgarte=0.0).array, half, base)
    # Rates of the other representations: derivative along exp(w t) at t = 0, again in mpmath.
    at_mp = near_mp(sign * base)

    def along(function):
        return lambda d: ref.directional(
            lambda t: function(ref.multiply(at_mp(d), ref.exp([t * c for c in ref.lift(w)])))
        )

    at = near(base)
    check(lambda d: at(d).as_rotvec().kinematics(w).array, along(ref.log), ZERO, atol=1e-12)
    check(lambda d: at(d).as_mrp().kinematics(w).array, along(ref.mrp), ZERO, atol=1e-12)
    check(lambda d: RotationMatrix(at(d).as_matrix()).kinematics(w).array, along(ref.matrix), ZERO)
    rates = arc.jac(lambda t: (at(ZERO) * Quaternion.exp(t * w)).array)(0.0)
    for made in (
        lambda t: at(ZERO) * Quaternion.exp(t * w),
        lambda t: (at(ZERO) * Quaternion.exp(t * w)).as_rotvec(),
        lambda t: (at(ZERO) * Quaternion.exp(t * w)).as_mrp(),
        lambda t: RotationMatrix((at(ZERO) * Quaternion.exp(t * w)).as_matrix()),
    ):
        start = made(0.0)
        rates = arc.jac(lambda t, made=made: made(t).array)(0.0)
        np.testing.assert_allclose(start.angular_velocity(rates), w, atol=1e-13)
        np.testing.assert_allclose(start.angular_velocity(start.kinematics(w)), w, atol=1e-13)


@pytest.mark.parametrize("name", ["identity", "pi about xy", "ordinary"])
def test_norms(name):
    """The angle is not smooth at zero; its derivative there is finite, elsewhere right."""
    at, at_mp = near(BASES[name]), near_mp(BASES[name])
    assert np.isfinite(arc.grad(lambda d: at(d).magnitude())(ZERO)).all()
    assert np.isfinite(arc.grad(lambda d: at(d).angle_to(at(ZERO)))(ZERO)).all()
    if name == "ordinary":
        angle = lambda d: [ref.mp.sqrt(sum(c * c for c in ref.log(at_mp(d))))]
        check(lambda d: at(d).magnitude(), angle, ZERO)


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("gap", ["coincident", "tiny", "quarter", "nearly half"])
def test_slerp(gap, s):
    q0 = np.array(BASES["ordinary"])
    v = {"coincident": 0.0, "tiny": 1e-10, "quarter": 1.0, "nearly half": 3.1}[gap]
    q1 = (Quaternion(q0) * Quaternion.exp(v * np.array([0.6, 0.0, 0.8]))).array
    S = ref.mp.mpf(s)
    check(lambda q: slerp(q, q1, s), lambda q: ref.slerp(q, ref.lift(q1), S), q0, atol=1e-12)
    check(lambda q: slerp(q0, q, s), lambda q: ref.slerp(ref.lift(q0), q, S), q1, atol=1e-12)
    both = lambda t: ref.slerp(ref.lift(q0), ref.lift(q1), t[0])
    check(lambda t: slerp(q0, q1, t[0]), both, [s])


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.999, 1.001, 3.0])
def test_group_jacobians_by_differentiation(size):
    """Right Jacobians are derivatives of exp: check by automatic differentiation of exp."""
    v = size * np.array([0.6, 0.0, 0.8])
    dq = arc.jac(lambda v: Quaternion.exp(v).array)(v)
    q = Quaternion.exp(v)
    J = np.stack([q.angular_velocity(dq[:, k]) for k in range(3)], axis=-1)
    np.testing.assert_allclose(so3_right_jacobian(v), J, atol=1e-14)
    xi = np.array([1.0, -2.0, 0.5, *v])
    T = Transformation.exp(xi).as_matrix()
    dT = arc.jac(lambda xi: Transformation.exp(xi).as_matrix())(xi)
    S = np.einsum("ijk,jl->ilk", dT, np.linalg.inv(T))
    left = np.stack([S[0, 3], S[1, 3], S[2, 3], S[2, 1], S[0, 2], S[1, 0]])
    np.testing.assert_allclose(se3_left_jacobian(xi), left, atol=1e-13)
    dxi = arc.jac(lambda d: (Transformation.exp(d) @ Transformation.exp(xi)).log())(np.zeros(6))
    np.testing.assert_allclose(dxi @ se3_left_jacobian(xi), np.eye(6), atol=1e-12)


def test_estimates_and_splines():
    """Mean of equal attitudes, alignment of exact data, spline knots: finite and consistent."""
    q = Quaternion(np.tile(BASES["ordinary"], (5, 1))).normalize().array
    J = arc.jac(lambda q: mean(q).array)(q)
    project = np.eye(4) - np.outer(q[0], q[0])
    for k in range(5):
        np.testing.assert_allclose(J[:, k], project / 5, atol=1e-13)
    v_E = np.random.default_rng(0).normal(size=(4, 3))
    turned = lambda d: align_vectors((near(BASES["ordinary"])(d).rotate(v_E.T)).T, v_E)
    J = arc.jac(lambda d: turned(d).attitude.log())(ZERO)
    expected = arc.jac(lambda d: near(BASES["ordinary"])(d).log())(ZERO)
    np.testing.assert_allclose(J, expected, atol=1e-12)
    spline = QuaternionSpline(np.arange(4.0), Quaternion.exp(0.4 * np.eye(4, 3)))
    for t in (0.0, 0.5, 1.0, 2.7):
        rate = arc.jac(lambda t: spline(t).array)(t)
        w = spline(t).angular_velocity(rate)
        np.testing.assert_allclose(w, spline.angular_velocity(t), atol=1e-14)
        acceleration = arc.jac(spline.angular_velocity)(t)
        np.testing.assert_allclose(acceleration, spline.angular_acceleration(t), atol=1e-13)


def test_euler_rates_matrix_inverse():
    for seq in SEQUENCES:
        x = np.array([0.4, 0.9, -2.0])
        product = euler_kinematics(x, seq=seq) @ euler_kinematics(x, inverse=True, seq=seq)
        np.testing.assert_allclose(product, np.eye(3), atol=1e-14)
