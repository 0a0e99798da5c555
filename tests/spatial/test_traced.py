"""Compiled functions give what eager ones give, to rounding, for every operation listed."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import spatial
from archimedes.spatial import (
    EulerAngles,
    Force,
    ModifiedRodrigues,
    Motion,
    Quaternion,
    QuaternionSpline,
    RigidBody,
    RotationMatrix,
    RotationVector,
    SpatialInertia,
    Transformation,
)
from tests.spatial.samples import SEQUENCES

ONE = Quaternion.random(4)
MANY = Quaternion.random(5, (3, 2))
W = np.array([0.1, -0.2, 0.3])
R = ONE.as_matrix()
V = ONE.log()
S = ONE.as_mrp().array
ANGLES = ONE.as_euler("xyz").array
AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.8, 0.6, 0.0]])


def as_class(attitude, name):
    cls = getattr(spatial, name)
    return cls.from_quat(attitude)


UNARY = {
    "as_matrix": lambda a: a.as_matrix(),
    "as_quat": lambda a: a.as_quat(),
    "as_euler": lambda a: a.as_euler("zyx"),
    "as_euler proper": lambda a: a.as_euler("ZXZ"),
    "as_rotvec": lambda a: a.as_rotvec(),
    "as_mrp": lambda a: a.as_mrp(),
    "log": lambda a: a.log(),
    "inv": lambda a: a.inv(),
    "square": lambda a: a * a,
    "normalize": lambda a: a.normalize(),
    "magnitude": lambda a: a.magnitude(),
    "angle_to": lambda a: a.angle_to(a.inv()),
    "approx_equal": lambda a: a.approx_equal(a),
    "kinematics": lambda a: a.kinematics(W),
    "angular_velocity": lambda a: a.angular_velocity(a.kinematics(W)),
    "rotate": lambda a: a.rotate(W),
    "rotate back": lambda a: a.rotate(W, inverse=True),
    "left_jacobian": lambda a: a.left_jacobian(),
    "right_jacobian": lambda a: a.right_jacobian(inverse=True),
    "arithmetic": lambda a: (2.0 * a + a / 3.0 - a) * 0.5,
    "slerp": lambda a: spatial.slerp(a, a.inv(), 0.3),
    "power": lambda a: a**0.3,
    "as_davenport": lambda a: a.as_davenport(AXES, "intrinsic"),
}


@pytest.mark.parametrize(
    "name",
    ["Quaternion", "EulerAngles", "RotationMatrix", "RotationVector", "ModifiedRodrigues"],
)
@pytest.mark.parametrize("operation", UNARY)
@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_attitudes(name, operation, batch):
    attitude = as_class(MANY if batch else ONE, name)
    function = UNARY[operation]
    same(arc.compile(function)(attitude), function(attitude))


ARRAYS = {
    "davenport_to_quaternion": (ANGLES, AXES),
    "quaternion_to_davenport": (ONE.array, AXES),
    "quaternion_normalize": (ONE.array,),
    "quaternion_conjugate": (ONE.array,),
    "quaternion_inverse": (ONE.array,),
    "quaternion_multiply": (ONE.array, MANY.array[0, 0]),
    "quaternion_to_dcm": (ONE.array,),
    "quaternion_exp": (V,),
    "quaternion_log": (ONE.array,),
    "quaternion_kinematics": (ONE.array, W),
    "quaternion_kinematics_matrix": (ONE.array,),
    "quaternion_to_mrp": (ONE.array,),
    "quaternion_to_euler": (ONE.array,),
    "dcm_to_quaternion": (R,),
    "dcm_to_euler": (R,),
    "dcm_to_rotvec": (R,),
    "dcm_to_mrp": (R,),
    "dcm_kinematics": (R, W),
    "dcm_angular_velocity": (R, np.arange(9.0).reshape(3, 3)),
    "dcm_normalize": (1.01 * R,),
    "euler_to_dcm": (ANGLES,),
    "euler_to_quaternion": (ANGLES,),
    "euler_kinematics": (ANGLES,),
    "rotvec_to_dcm": (V,),
    "rotvec_kinematics": (V,),
    "so3_left_jacobian": (V,),
    "so3_right_jacobian": (V,),
    "mrp_to_dcm": (S,),
    "mrp_to_quaternion": (S,),
    "mrp_shadow": (S,),
    "mrp_normalize": (3.0 * S,),
    "mrp_kinematics": (S,),
    "se3_exp": (np.arange(6.0) / 3,),
    "se3_log": (Transformation(W, ONE).as_matrix(),),
    "se3_adjoint": (Transformation(W, ONE).as_matrix(),),
    "se3_left_jacobian": (np.arange(6.0) / 3,),
    "se3_right_jacobian": (np.arange(6.0) / 3,),
    "slerp": (ONE.array, MANY.array[0, 0], 0.4),
    "squad": (*MANY.array.reshape(6, 4)[:4], 0.4),
    "squad_controls": (MANY.array.reshape(6, 4),),
    "mean": (MANY.array.reshape(6, 4),),
    "align_vectors": (np.eye(3), R.T),
    "mass_rate_force": (-2.0, W),
    "exhaust_thrust": (-2.0, W),
    "inertia_rate_moment": (np.eye(3), W),
    "cm_velocity": (W, W + 1.0, W + 2.0),
    "reference_velocity": (W, W + 1.0, W + 2.0),
    "moment_about_cm": (W, W + 1.0, W + 2.0),
    "parallel_axis": (np.eye(3), 2.0, W),
    "gyroscopic_moment": (W, W + 1.0),
    "rotating_frame_acceleration": (W, W + 1.0, W + 2.0),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_functions(name):
    function = getattr(spatial, name)
    same(arc.compile(function)(*ARRAYS[name]), function(*ARRAYS[name]))


def same_bits(function, *args):
    """Native code, alone and as a batch of one, gives the interpreter's bits."""
    reference = arc.compile(function, backend="interpreter")(*args)
    native = arc.compile(function, backend="llvm")
    batch = arc.tree.map(lambda x: np.stack([x] * 3), args)
    several = arc.tree.map(lambda x: x[1], arc.vmap(native)(*batch))
    for result in (native(*args), several):
        for x, y in zip(arc.tree.leaves(result), arc.tree.leaves(reference), strict=True):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("name", ARRAYS)
def test_functions_to_the_bit(name):
    same_bits(getattr(spatial, name), *ARRAYS[name])


@pytest.mark.parametrize("attitude", [ONE, ONE.as_euler("zxz"), ONE.as_rotvec(), ONE.as_mrp()])
def test_rigid_body_to_the_bit(attitude):
    state = spatial.RigidBody.State(V, attitude, W, W + 1.0)
    u = spatial.RigidBody.Input(V, W, 2.0, np.diag([1.0, 2.0, 2.5]))
    same_bits(lambda x, u: spatial.RigidBody.dynamics(0.0, x, u), state, u)


def test_every_public_function_is_listed():
    elsewhere = {"euler_to_euler"}  # takes the sequences too: below
    public = {n for n in spatial.__all__ if n.islower()}
    assert public - set(ARRAYS) == elsewhere


@pytest.mark.parametrize("seq", SEQUENCES)
def test_sequences(seq):
    """As angles of every sequence, from many attitudes at once."""
    q = Quaternion.random(1, (50,))
    same(arc.compile(lambda q: q.as_euler(seq))(q), q.as_euler(seq), atol=4e-15)
    angles = q.as_euler(seq).array
    convert = lambda a: spatial.euler_to_euler(a, seq, "yzx")
    same(arc.compile(convert)(angles), convert(angles), atol=1e-13)
    rates = lambda a: spatial.euler_kinematics(a, seq=seq)
    compare_relative(arc.compile(rates)(angles), rates(angles))


def compare_relative(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def same(compiled, eager, atol=2e-15):
    a, b = arc.tree.flatten(compiled), arc.tree.flatten(eager)
    assert a[1] is b[1]
    for x, y in zip(a[0], b[0], strict=True):
        assert np.shape(x) == np.shape(y)
        scale = max(1.0, float(np.abs(np.where(np.isfinite(y), y, 0)).max(initial=0.0)))
        np.testing.assert_allclose(x, y, atol=atol * scale, rtol=0)


def test_scalars_in_lists():
    """Arrays put together from traced numbers, the ways users do it."""

    def build(a, b, c):
        return (
            EulerAngles([a, b, c], "xyz").as_matrix(),
            Quaternion(np.array([1.0, a, b, c])).as_matrix(),
            RotationVector(np.hstack([a, b, 0.0])).as_matrix(),
            EulerAngles(a, "z").rotate([b, c, 1.0]),
            Quaternion.from_euler([a, 0.0, 1], "zyx"),
        )

    same(arc.compile(build)(0.1, 0.2, 0.3), build(0.1, 0.2, 0.3))


def test_structs():
    X = Transformation(W, ONE)
    twist, wrench = Motion(W, W + 1.0), Force(W - 1.0, W)
    inertia = SpatialInertia(2.0, W, np.diag([1.0, 2.0, 2.5]))

    def everything(X, twist, wrench, inertia):
        return (
            X @ X.inv() @ X,
            X.apply(W),
            X.log(),
            X.adjoint(),
            X.apply_motion(twist),
            X.apply_force(wrench),
            X.interpolate(X @ X, 0.3),
            twist.cross(twist),
            twist.cross(wrench),
            twist.dot(wrench),
            inertia @ twist,
            inertia.solve(wrench),
            inertia.transform(X) + inertia,
            inertia.as_matrix(),
            inertia.kinetic_energy(twist),
        )

    args = (X, twist, wrench, inertia)
    same(arc.compile(everything)(*args), everything(*args), atol=4e-15)


def test_rigid_body():
    u = RigidBody.Input(W, W + 1.0, 2.0, np.diag([1.0, 2.0, 2.5]), 0.1, 0.1 * np.eye(3))
    for att in (ONE, ONE.as_euler("xyz"), ONE.as_rotvec(), ONE.array, RotationMatrix(R), MRP):
        x = RigidBody.State(W, att, W + 2.0, W - 1.0)
        same(arc.compile(RigidBody.dynamics)(0.0, x, u), RigidBody.dynamics(0.0, x, u), atol=4e-15)
        for method in ("kinetic_energy", "linear_momentum", "angular_momentum"):
            function = getattr(RigidBody, method)
            same(arc.compile(function)(x, u), function(x, u), atol=4e-15)


MRP = ModifiedRodrigues(S)


def test_spline_with_traced_time_and_knots():
    times = np.arange(4.0)
    knots = Quaternion.exp(np.array([[0.0, 0, 0], [0.3, 0.2, 0], [0.5, -0.1, 0.2], [0.1, 0, 0]]))
    spline = QuaternionSpline(times, knots)
    for t in (0.4, 2.5):
        same(arc.compile(spline)(t), spline(t))
        fitted = lambda q, t: QuaternionSpline(times, q).angular_acceleration(t)
        same(arc.compile(fitted)(knots, t), fitted(knots, t), atol=1e-13)
    many = np.linspace(-0.5, 3.5, 7)
    same(arc.compile(spline.angular_velocity)(many), spline.angular_velocity(many))


def test_vectorised_over_a_batch():
    """`vmap` of the single-attitude code equals the batch code."""
    q = Quaternion.random(2, (20,))
    vectors = np.random.default_rng(0).normal(size=(20, 3))
    turn = arc.vmap(lambda q, v: q.rotate(v))
    same(turn(q, vectors), q.rotate(vectors))
    same(arc.vmap(lambda q: q.as_euler("zxz"))(q), q.as_euler("zxz"), atol=4e-15)
