"""RigidBody: torque-free motion against closed forms, attitudes of every kind, call styles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import archimedes as arc
from archimedes.spatial import (
    EulerAngles,
    Motion,
    Quaternion,
    RigidBody,
    RotationMatrix,
    SpatialInertia,
    exhaust_thrust,
    gyroscopic_moment,
    moment_about_cm,
    parallel_axis,
)
from archimedes.tree import struct
from tests.spatial.samples import ANGLES, CLASSES


def simulate(x0, u, times, events=None):
    """Integrate with SciPy's DOP853; return states and event times."""
    flat, unravel = arc.tree.ravel(x0)
    dynamics = arc.compile(RigidBody.dynamics)

    def rhs(t, vector):
        return arc.tree.ravel(dynamics(t, unravel(vector), u))[0]

    hits = None if events is None else [lambda t, vector: events(unravel(vector))]
    span = (times[0], times[-1])
    out = solve_ivp(rhs, span, flat, "DOP853", times, rtol=1e-12, atol=1e-13, events=hits)
    assert out.success
    return [unravel(y) for y in out.y.T], out.t_events[0] if hits else None


def free(w, J, att=None):
    x = RigidBody.State(
        np.zeros(3), att or Quaternion.from_euler(ANGLES), np.array([1.0, -2.0, 0.5]), np.array(w)
    )
    return x, RigidBody.Input(np.zeros(3), np.zeros(3), 2.0, J)


def test_conservation():
    """Energy, momentum and angular momentum over many turns; figure: drift below 1e-10."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    x0, u = free([1.0, 2.0, -0.5], A @ A.T + np.eye(3))
    states, _ = simulate(x0, u, np.linspace(0, 50, 20))
    for method in ("kinetic_energy", "linear_momentum", "angular_momentum"):
        first = getattr(RigidBody, method)(x0, u)
        for x in states:
            drift = np.abs(getattr(RigidBody, method)(x, u) - first).max()
            assert drift < 1e-10 * np.abs(first).max()
    assert abs(states[-1].att.array @ states[-1].att.array - 1.0) < 1e-12
    # Without force the centre of mass moves on a straight line.
    v_N = RigidBody.linear_momentum(x0, u) / 2.0
    np.testing.assert_allclose(states[-1].pos, 50 * v_N, rtol=1e-9)


@pytest.mark.parametrize("cls", CLASSES)
def test_axisymmetric_closed_form(cls):
    """The rate precesses about the symmetry axis at (C - A)/A w3; for every representation."""
    A, C = 2.0, 3.0
    w0 = np.array([0.3, 0.0, 0.5])
    att = cls.from_quat(Quaternion.from_euler([0.1, 0.2, 0.3]))
    x0, u = free(w0, np.diag([A, A, C]), att)
    times = np.linspace(0, 2, 5)
    states, _ = simulate(x0, u, times)
    rate = (C - A) / A * w0[2]
    h_N = RigidBody.angular_momentum(x0, u)
    for t, x in zip(times, states):
        expected = [0.3 * np.cos(rate * t), 0.3 * np.sin(rate * t), 0.5]
        np.testing.assert_allclose(x.w_B, expected, atol=1e-11)
        # Closed form of the attitude: turn about h by |h|/A t, and back about the body axis.
        spin = Quaternion.exp(h_N / A * t)
        back = Quaternion.exp([0.0, 0.0, -rate * t])
        closed = spin * att.as_quat() * back
        assert closed.angle_to(x.att) < 1e-10


def triaxial(w0, J):
    """Landau and Lifshitz, Mechanics, section 37: amplitudes, rate and modulus."""
    I1, I2, I3 = J
    E2, M2 = np.dot(J, w0**2), np.dot(J**2, w0**2)
    amplitude = np.sqrt(
        [
            (E2 * I3 - M2) / (I1 * (I3 - I1)),
            (E2 * I3 - M2) / (I2 * (I3 - I2)),
            (M2 - E2 * I1) / (I3 * (I3 - I1)),
        ]
    )
    rate = np.sqrt((I3 - I2) * (M2 - E2 * I1) / (I1 * I2 * I3))
    m = (I2 - I1) * (E2 * I3 - M2) / ((I3 - I2) * (M2 - E2 * I1))
    return amplitude, rate, m


def test_triaxial_against_jacobi():
    J = np.array([1.0, 2.0, 3.0])
    w0 = np.array([0.4, 0.0, 0.9])
    amplitude, rate, m = triaxial(w0, J)
    assert 0 < m < 1
    np.testing.assert_allclose(amplitude[[0, 2]], w0[[0, 2]])
    times = np.linspace(0, 30, 40)
    states, _ = simulate(*free(w0, np.diag(J)), times)
    sn, cn, dn, _ = ellipj(rate * times, m)
    closed = amplitude * np.stack([cn, sn, dn], axis=-1)
    found = np.array([x.w_B for x in states])
    assert np.abs(found - closed).max() < 1e-10


def test_dzhanibekov_flip_period():
    """Spin about the middle axis tumbles; half its period is 2 K(m) / rate."""
    J = np.array([1.0, 2.0, 3.0])
    w0 = np.array([1e-3, 1.0, 1.1e-3])
    _, rate, m = triaxial(w0, J)
    assert 0 < m < 1
    x0, u = free(w0, np.diag(J))
    states, flips = simulate(x0, u, np.linspace(0, 100, 3), events=lambda x: x.w_B[1])
    assert len(flips) >= 4
    np.testing.assert_allclose(np.diff(flips), 2 * ellipk(m) / rate, rtol=1e-8)
    first = RigidBody.angular_momentum(x0, u)
    np.testing.assert_allclose(RigidBody.angular_momentum(states[-1], u), first, atol=1e-10)


def test_call_styles():
    x, u = free([0.1, 0.2, 0.3], np.eye(3))
    on_class = RigidBody.dynamics(0.0, x, u)
    assert RigidBody().dynamics(0.0, x, u) == on_class
    assert RigidBody.dynamics(RigidBody(), 0.0, x, u) == on_class
    assert RigidBody.dynamics(t=0.0, x=x, u=u) == on_class
    assert RigidBody.dynamics is RigidBody.dynamics

    @struct
    class Vehicle(RigidBody):
        size: float

    @struct
    class Deep(Vehicle):
        def dynamics(self, t, x, u):
            return super().dynamics(t, x, u)

    assert Vehicle(size=1.0).dynamics(0.0, x, u) == on_class
    assert Deep(size=1.0).dynamics(0.0, x, u) == on_class
    assert Vehicle.dynamics(0.0, x, u) == on_class
    assert arc.compile(RigidBody().dynamics)(0.0, x, u) == arc.compile(RigidBody.dynamics)(0, x, u)


def test_baumgarte():
    x, u = free([0.0, 0.0, 0.0], np.eye(3), Quaternion([2.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(RigidBody.dynamics(0.0, x, u).att.array, [-6.0, 0, 0, 0])
    off = RigidBody(baumgarte=0.0).dynamics(0.0, x, u)
    np.testing.assert_array_equal(off.att.array, np.zeros(4))
    half = arc.compile(RigidBody(baumgarte=0.5).dynamics)(0.0, x, u)
    np.testing.assert_allclose(half.att.array, [-3.0, 0, 0, 0])


def test_plain_arrays_for_attitude():
    x, u = free([0.1, 0.2, 0.3], np.eye(3))
    for array, attitude in (
        (ANGLES, EulerAngles(ANGLES)),
        (Quaternion.from_euler(ANGLES).array, Quaternion.from_euler(ANGLES)),
    ):
        plain = RigidBody.dynamics(0.0, x.replace(att=array), u)
        typed = RigidBody.dynamics(0.0, x.replace(att=attitude), u)
        assert isinstance(plain.att, np.ndarray)
        np.testing.assert_array_equal(plain.att, typed.att.array)
        np.testing.assert_array_equal(plain.pos, typed.pos)


def test_full_inertia_and_rates():
    """Any symmetric positive definite inertia; mass and inertia rates as pseudo-forces."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 3))
    J = A @ A.T + np.eye(3)
    F, M, v, w = rng.normal(size=(4, 3))
    dJ = 0.1 * (A + A.T)
    x = RigidBody.State(np.zeros(3), Quaternion.random(1), v, w)
    xdot = RigidBody.dynamics(0.0, x, RigidBody.Input(F, M, 3.0, J, 0.2, dJ))
    np.testing.assert_allclose(3.0 * xdot.v_B, F - 0.2 * v - 3.0 * np.cross(w, v), rtol=1e-13)
    np.testing.assert_allclose(J @ xdot.w_B, M - dJ @ w - np.cross(w, J @ w), rtol=1e-12)


def test_spatial_vector_equation_is_the_same():
    """f = I a + v x* I v with the centre of mass at the origin, and away from it."""
    rng = np.random.default_rng(2)
    F, M, v, w = rng.normal(size=(4, 3))
    J = np.diag([1.0, 2.0, 2.5])
    x = RigidBody.State(np.zeros(3), Quaternion.random(1), v, w)
    xdot = RigidBody.dynamics(0.0, x, RigidBody.Input(F, M, 3.0, J))
    inertia = SpatialInertia(3.0, np.zeros(3), J)
    force = inertia.equation_of_motion(Motion(xdot.v_B, xdot.w_B), Motion(v, w))
    np.testing.assert_allclose(force.linear, F, rtol=1e-13)
    np.testing.assert_allclose(force.angular, M, rtol=1e-13)
    # The same body described at a point r away from its centre of mass.
    r = np.array([0.3, -0.2, 0.5])
    offset = SpatialInertia(3.0, -r, J)
    moved = Motion(v + np.cross(w, r), w)
    acceleration = Motion(xdot.v_B + np.cross(xdot.w_B, r), xdot.w_B)
    force = offset.equation_of_motion(acceleration, moved)
    np.testing.assert_allclose(force.linear, F, rtol=1e-12)
    np.testing.assert_allclose(force.angular - np.cross(-r, force.linear), M, rtol=1e-12)
    assert offset.kinetic_energy(moved) == pytest.approx(
        RigidBody.kinetic_energy(x, RigidBody.Input(F, M, 3.0, J))
    )


def test_batch_of_bodies():
    rng = np.random.default_rng(3)
    n = 6
    states = RigidBody.State(
        *rng.normal(size=(1, n, 3)),
        Quaternion.random(1, (n,)),
        rng.normal(size=(n, 3)),
        rng.normal(size=(n, 3)),
    )
    J = np.stack([np.diag(d) for d in rng.uniform(1, 2, (n, 3))])
    inputs = RigidBody.Input(
        rng.normal(size=(n, 3)),
        rng.normal(size=(n, 3)),
        rng.uniform(1, 2, n),
        J,
        np.zeros(n),
        np.zeros((n, 3, 3)),
    )
    together = RigidBody.dynamics(0.0, states, inputs)
    for k in range(n):
        pick = lambda leaf, k=k: leaf[k]
        one = RigidBody.dynamics(0.0, arc.tree.map(pick, states), arc.tree.map(pick, inputs))
        for a, b in zip(arc.tree.leaves(one), arc.tree.leaves(together), strict=True):
            np.testing.assert_allclose(a, b[k], atol=1e-14)


def test_rocket_equation():
    """With the thrust of the exhaust and dm_dt = 0 in the input: dv = c ln(m0/m)."""
    c, flow, m0 = 3000.0, -5.0, 1000.0

    def rhs(t, y):
        m = m0 + flow * t
        F = exhaust_thrust(flow, np.array([-c, 0.0, 0.0]))
        x = RigidBody.State(np.zeros(3), Quaternion.identity(), y, np.zeros(3))
        return RigidBody.dynamics(t, x, RigidBody.Input(F, np.zeros(3), m, np.eye(3))).v_B

    out = solve_ivp(rhs, (0, 100), np.array([50.0, 0, 0]), "DOP853", rtol=1e-11, atol=1e-9)
    assert out.y[0, -1] == pytest.approx(50.0 + c * np.log(m0 / (m0 + flow * 100)), rel=1e-10)


def test_reaction_wheel_keeps_total_momentum():
    """A wheel spun up inside turns the body the other way; the total is constant in N."""
    J, axis, torque = np.diag([2.0, 3.0, 4.0]), np.array([0.0, 0.6, 0.8]), 0.1

    def rhs(t, y):
        x = RigidBody.State(np.zeros(3), Quaternion(y[:4]), np.zeros(3), y[4:7])
        M = gyroscopic_moment(x.w_B, y[7] * axis, torque * axis)
        xdot = RigidBody.dynamics(t, x, RigidBody.Input(np.zeros(3), M, 1.0, J))
        return np.hstack([xdot.att.array, xdot.w_B, torque])

    y0 = np.hstack([Quaternion.from_euler(ANGLES).array, 0.1, -0.2, 0.05, 1.0])
    out = solve_ivp(rhs, (0, 20), y0, "DOP853", rtol=1e-11, atol=1e-12)

    def total(y):
        return Quaternion(y[:4]).rotate(J @ y[4:7] + y[7] * axis, inverse=True)

    np.testing.assert_allclose(total(out.y[:, -1]), total(y0), atol=1e-9)


def test_moment_transfer_and_parallel_axis():
    r, F, M = np.array([0.1, 0.2, 0.3]), np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.0, 0.1])
    np.testing.assert_allclose(moment_about_cm(M, F, r), M - np.cross(r, F))
    points = np.random.default_rng(4).normal(size=(5, 3))
    points -= points.mean(axis=0)
    about = lambda q: sum(np.eye(3) * (p @ p) - np.outer(p, p) for p in points - q)
    np.testing.assert_allclose(parallel_axis(about(np.zeros(3)), 5.0, r), about(r), rtol=1e-13)


def test_matrix_attitude_state():
    """A rotation matrix as state: nine numbers, kept orthogonal by the exact kinematics."""
    x0, u = free([0.3, -0.2, 0.4], np.diag([1.0, 2.0, 3.0]), RotationMatrix(np.eye(3)))
    states, _ = simulate(x0, u, np.linspace(0, 5, 3))
    R = states[-1].att.array
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-10)
