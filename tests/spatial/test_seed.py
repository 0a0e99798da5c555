"""The published examples run as printed, with the repairs of the conventions."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import (
    Attitude,
    EarthReferencedBody,
    EulerAngles,
    KinematicTree,
    Quaternion,
    RigidBody,
    Transformation,
    euler_to_dcm,
)
from archimedes.tree import struct

RPY = np.array([0.1, 0.2, 0.3])


def test_quickstart_attitudes():
    rpy = EulerAngles([0.1, 0.2, 0.3], seq="xyz")
    R_BE = rpy.as_matrix()
    v_E = np.array([1.0, 0.0, 0.0])
    v_B = R_BE @ v_E
    np.testing.assert_allclose(R_BE.T @ v_B, v_E, atol=1e-16)
    np.testing.assert_allclose(rpy.as_quat().as_matrix() @ v_E, v_B, atol=1e-16)


def test_quickstart_rigid_body():
    rpy = EulerAngles([0.1, 0.2, 0.3], seq="xyz")
    x = RigidBody.State(pos=np.zeros(3), att=rpy, v_B=np.array([10.0, 0.0, 0.0]), w_B=np.zeros(3))
    u = RigidBody.Input(
        F_B=np.array([0.0, 0.0, 10.0]), M_B=np.array([0.0, 1.0, 0.0]), m=10.0, J_B=np.eye(3)
    )
    by_angles = RigidBody.dynamics(0, x, u)
    by_quaternion = RigidBody.dynamics(0, x.replace(att=rpy.as_quat()), u)
    assert isinstance(by_angles.att, EulerAngles)
    assert isinstance(by_quaternion.att, Quaternion)
    for name in ("pos", "v_B", "w_B"):
        np.testing.assert_allclose(
            getattr(by_angles, name), getattr(by_quaternion, name), atol=1e-15
        )
    np.testing.assert_allclose(by_angles.v_B, [0.0, 0.0, 1.0])
    np.testing.assert_allclose(by_angles.w_B, [0.0, 1.0, 0.0])


def test_polymorphic_function():
    def body_frame_kinematics(att: Attitude, v_B, w_B):
        return att.as_matrix().T @ v_B, att.kinematics(w_B)

    rpy = EulerAngles(RPY, "xyz")
    v_B, w_B = np.array([10.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    dp, drpy = body_frame_kinematics(rpy, v_B, w_B)
    dp_q, dq = body_frame_kinematics(rpy.as_quat(), v_B, w_B)
    np.testing.assert_allclose(dp, dp_q, atol=1e-14)
    assert isinstance(drpy, EulerAngles)
    assert isinstance(dq, Quaternion)


def test_gravity_in_body_axes():
    phi, m, g0 = 0.4, 2.0, 9.81
    F_grav_B = EulerAngles(phi, "x").as_matrix() @ np.array([0, 0, m * g0])
    np.testing.assert_allclose(F_grav_B, m * g0 * np.array([0, np.sin(phi), np.cos(phi)]))
    p_B = np.random.default_rng(0).normal(size=(3, 7))
    p_E = EulerAngles(phi, "x").as_matrix().T @ p_B
    np.testing.assert_allclose(EulerAngles(phi, "x").rotate(p_B, inverse=True), p_E)


def test_printed_conversions():
    rpy = EulerAngles([0.1, 0.2, 0.3], seq="xyz")
    assert repr(rpy.as_quat()) == "Quaternion([0.98334744 0.0342708  0.10602051 0.14357218])"
    assert repr(rpy.as_euler("zyx")) == (
        "EulerAngles([0.2857717  0.22012403 0.03787988], seq='zyx')"
    )
    assert str(rpy.as_matrix()) == (
        "[[ 0.93629336  0.28962948 -0.19866933]\n"
        " [-0.27509585  0.95642509  0.0978434 ]\n"
        " [ 0.21835066 -0.03695701  0.97517033]]"
    )


def test_printed_kinematics():
    att = Quaternion.from_euler(RPY, "xyz")
    assert repr(att.kinematics(np.array([0.0, 0.1, 0.0]))) == (
        "Quaternion([-0.00530103 -0.00717861  0.04916737  0.00171354])"
    )
    rates = EulerAngles(RPY, "xyz").kinematics(np.array([0.0, 1.0, 0.0]))
    assert repr(rates) == "EulerAngles([0.02023724 0.99500417 0.10186391], seq='xyz')"


def test_printed_jacobian():
    def to_body(rpy, v_E):
        return Quaternion.from_euler(rpy, seq="xyz").as_matrix() @ v_E

    J = arc.jac(to_body)(RPY, np.array([10.0, 0.0, 0.0]))
    assert str(J) == (
        "[[ 0.         -1.89796061 -2.89629478]\n"
        " [ 2.18350663  0.93473365 -9.56425086]\n"
        " [ 2.75095847  9.31615797  0.36957014]]"
    )


def test_printed_rigid_body():
    x = RigidBody.State(
        pos=np.array([0.0, 0.0, 10.0]), att=Quaternion.identity(), v_B=np.zeros(3), w_B=np.zeros(3)
    )
    u = RigidBody.Input(
        F_B=np.array([0.0, 0.0, 9.8]), M_B=np.array([0.0, 0.1, 0.0]), m=10.0, J_B=np.eye(3)
    )
    printed = (
        "RigidBody.State(pos=array([0., 0., 0.]), att=Quaternion([0. 0. 0. 0.]), "
        "v_B=array([0.  , 0.  , 0.98]), w_B=array([0. , 0.1, 0. ]))"
    )
    assert repr(RigidBody.dynamics(0.0, x, u)) == printed
    assert repr(arc.compile(RigidBody.dynamics)(0.0, x, u)) == printed


def elementary(axis: str, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return {
        "x": np.array([[1, 0, 0], [0, c, s], [0, -s, c]]),
        "y": np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]),
        "z": np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]),
    }[axis]


def test_sequences():
    a, b, c = RPY
    np.testing.assert_allclose(
        euler_to_dcm(RPY, "xyz"),
        elementary("x", a) @ elementary("y", b) @ elementary("z", c),
        atol=1e-16,
    )
    # Orbital elements: ECI to perifocal is R3(argument) R1(inclination) R3(node).
    np.testing.assert_allclose(
        EulerAngles([a, b, c], "zxz").as_matrix(),
        elementary("z", a) @ elementary("x", b) @ elementary("z", c),
        atol=1e-16,
    )
    # Wind to body: R_BW = Ry(alpha) Rz(-beta), passive; only the intrinsic order is exact.
    alpha, beta = 0.15, 0.05
    R_BW = elementary("y", alpha) @ elementary("z", -beta)
    np.testing.assert_allclose(EulerAngles([-beta, alpha], "ZY").as_matrix(), R_BW, atol=1e-16)
    V_B = 100.0 * np.array(
        [np.cos(alpha) * np.cos(beta), np.sin(beta), np.sin(alpha) * np.cos(beta)]
    )
    np.testing.assert_allclose(R_BW @ [100.0, 0, 0], V_B, rtol=1e-14)
    assert np.abs(EulerAngles([-beta, alpha], "zy").as_matrix() - R_BW).max() > 1e-3
    with pytest.raises(ValueError, match="three letters"):
        EulerAngles(RPY, "xyz").as_euler("x")


def test_rotor_moment():
    w_B, w_rot_B, M_B = np.array([0.1, 0.2, 0.3]), np.array([50.0, 0, 0]), np.array([0, 1.0, 0])
    h_int_B = np.diag([2.0, 1.0, 1.0]) @ w_rot_B
    M_eff_B = M_B - np.cross(w_B, h_int_B)
    x = RigidBody.State(np.zeros(3), Quaternion.identity(), np.zeros(3), w_B)
    u = RigidBody.Input(np.zeros(3), M_eff_B, 1.0, np.eye(3))
    np.testing.assert_allclose(RigidBody.dynamics(0.0, x, u).w_B, M_eff_B, rtol=1e-15)


def test_earth_referenced_body():
    body = EarthReferencedBody()
    att = Quaternion.from_euler(RPY)
    x = body.State(np.array([7e6, 1e5, -2e5]), att, np.array([1.0, 7e3, 2.0]), np.ones(3))
    u = body.Input(F_E=np.array([1.0, 2, 3]), M_B=np.array([0, 1.0, 0]), m=2.0, J_B=np.eye(3))
    Omega = np.array([0.0, 0.0, 7.292e-5])
    for xdot in (body.dynamics(0.0, x, u), arc.compile(body.dynamics)(0.0, x, u)):
        assert isinstance(xdot, EarthReferencedBody.State)
        np.testing.assert_allclose(xdot.pos, x.v_E)
        np.testing.assert_allclose(
            xdot.v_E,
            u.F_E / 2.0 - 2 * np.cross(Omega, x.v_E) - np.cross(Omega, np.cross(Omega, x.pos)),
            rtol=1e-14,
        )
        np.testing.assert_allclose(
            xdot.att.array, att.kinematics(x.w_B - att.as_matrix() @ Omega).array, atol=1e-15
        )


def test_transformation_of_points():
    ktree = KinematicTree("earth")
    X = Transformation(np.array([1.0, 2.0, 3.0]), EulerAngles(RPY, "xyz"))
    ktree.add_frame("body", "earth", X)
    X_BE = ktree.get_transform("earth", "body")
    r_E = np.array([4.0, 5.0, 6.0])
    r_B = X_BE.apply(r_E)
    np.testing.assert_allclose(r_B, X.t + euler_to_dcm(RPY) @ r_E, rtol=1e-15)
    np.testing.assert_allclose(X_BE.inv().apply(r_B), r_E, rtol=1e-14)


@struct
class Aircraft(RigidBody):
    m: float
    J_B: np.ndarray

    @struct
    class Input:
        throttle: float
        rudder: float
        aileron: float
        elevator: float

    def calc_aero(self, x, u):
        return -0.1 * x.v_B, np.stack([u.aileron, u.elevator, u.rudder])

    def calc_eng(self, x, u):
        return np.stack([100.0 * u.throttle, 0.0, 0.0])

    def dynamics(self, t, x, u):
        F_aero_B, M_aero_B = self.calc_aero(x, u)
        F_grav_N = self.m * np.hstack([0, 0, 9.81])
        F_grav_B = x.att.as_matrix() @ F_grav_N
        F_B = F_aero_B + self.calc_eng(x, u) + F_grav_B
        u_rb = RigidBody.Input(F_B=F_B, M_B=M_aero_B, m=self.m, J_B=self.J_B)
        return super().dynamics(t, x, u_rb)


@pytest.mark.parametrize("run", [lambda f: f, arc.compile], ids=["eager", "compiled"])
def test_inheritance(run):
    aircraft = Aircraft(m=12.0, J_B=np.diag([1.0, 2.0, 3.0]))
    att = EulerAngles(RPY, "xyz").as_quat()
    x = RigidBody.State(np.zeros(3), att, np.array([20.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.3]))
    u = Aircraft.Input(throttle=0.5, rudder=0.1, aileron=0.2, elevator=-0.1)
    xdot = run(aircraft.dynamics)(0.0, x, u)
    R = att.as_matrix()
    F = -0.1 * x.v_B + [50.0, 0, 0] + R @ [0, 0, 12.0 * 9.81]
    np.testing.assert_allclose(xdot.v_B, F / 12.0 - np.cross(x.w_B, x.v_B), rtol=1e-14)
    np.testing.assert_allclose(xdot.pos, R.T @ x.v_B, rtol=1e-14)
    h = np.cross(x.w_B, [0.1, 0.4, 0.9])
    np.testing.assert_allclose(xdot.w_B, ([0.2, -0.1, 0.1] - h) / [1, 2, 3], rtol=1e-13)


@struct
class Lag:
    tau: float

    @struct
    class State:
        level: float

    def dynamics(self, x, command):
        return self.State(level=(command - x.level) / self.tau)


@struct
class ComposedAircraft:
    aero: Lag
    engine: Lag
    m: float
    J_B: np.ndarray

    @struct
    class State(RigidBody.State):
        aero: Lag.State
        engine: Lag.State

    @struct
    class Input:
        throttle: float
        elevator: float

    def dynamics(self, t, x, u):
        F_B = np.stack([100.0 * x.engine.level, 0.0, 0.0]) - x.v_B
        F_B = F_B + x.att.rotate(np.hstack([0, 0, 9.81 * self.m]))
        M_B = np.stack([0.0, x.aero.level, 0.0])
        rb = RigidBody.dynamics(t, x, RigidBody.Input(F_B=F_B, M_B=M_B, m=self.m, J_B=self.J_B))
        return self.State(
            pos=rb.pos,
            att=rb.att,
            v_B=rb.v_B,
            w_B=rb.w_B,
            aero=self.aero.dynamics(x.aero, u.elevator),
            engine=self.engine.dynamics(x.engine, u.throttle),
        )


def test_composition():
    aircraft = ComposedAircraft(Lag(0.5), Lag(2.0), m=3.0, J_B=2.0 * np.eye(3))
    x = aircraft.State(
        pos=np.zeros(3),
        att=Quaternion.from_euler(RPY),
        v_B=np.array([1.0, 2, 3]),
        w_B=np.array([0.1, 0, 0]),
        aero=Lag.State(0.2),
        engine=Lag.State(0.1),
    )
    u = aircraft.Input(throttle=0.3, elevator=0.4)
    eager = aircraft.dynamics(0.0, x, u)
    compiled = arc.compile(aircraft.dynamics)(0.0, x, u)
    assert type(compiled) is type(eager) is ComposedAircraft.State
    a, _ = arc.tree.ravel(eager)
    b, _ = arc.tree.ravel(compiled)
    np.testing.assert_allclose(a, b, atol=1e-15)
    assert eager.engine.level == pytest.approx(0.1)
    assert eager.aero.level == pytest.approx(0.4)
