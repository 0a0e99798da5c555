"""The same orbit and tumbling in the rotating and in the inertial frame."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.spatial import (
    EarthReferencedBody,
    EulerAngles,
    Quaternion,
    RigidBody,
    rotating_frame_acceleration,
)

MU = 3.986004418e14
M, J = 50.0, np.diag([2.0, 3.0, 4.0])


def integrate(dynamics, x0, end):
    flat, unravel = arc.tree.ravel(x0)
    rhs = lambda t, y: arc.tree.ravel(dynamics(t, unravel(y)))[0]
    out = solve_ivp(rhs, (0, end), flat, "DOP853", rtol=1e-11, atol=1e-9)
    return unravel(out.y[:, -1])


@pytest.mark.parametrize("make", [Quaternion.from_quat, lambda q: EulerAngles.from_quat(q, "zyx")])
def test_against_inertial_frame(make):
    body, end = EarthReferencedBody(rot_earth=7.292e-5), 600.0
    att_N = Quaternion.from_euler([0.1, 0.2, 0.3])
    pos, vel, w_B = (
        np.array([7e6, 1e5, -2e5]),
        np.array([100.0, 6e3, 4e3]),
        np.array([0.01, 0.02, -0.01]),
    )
    inertial = RigidBody.State(pos, att_N, att_N.rotate(vel), w_B)

    def gravity(r):
        return -MU * M * r / np.sqrt(np.sum(r * r)) ** 3

    def in_space(t, x):
        u = RigidBody.Input(x.att.rotate(gravity(x.pos)), np.zeros(3), M, J)
        return RigidBody.dynamics(t, x, u)

    def on_earth(t, x):
        return body.dynamics(t, x, body.Input(gravity(x.pos), np.zeros(3), M, J))

    Omega = np.array([0.0, 0.0, 7.292e-5])
    ecef = body.State(pos, make(att_N), vel - np.cross(Omega, pos), w_B)
    np.testing.assert_allclose(body.inertial_velocity(ecef), vel, rtol=1e-13)
    a = integrate(arc.compile(in_space), inertial, end)
    b = integrate(arc.compile(on_earth), ecef, end)
    earth = EulerAngles(7.292e-5 * end, "z")
    np.testing.assert_allclose(b.pos, earth.rotate(a.pos), rtol=1e-9, atol=1e-3)
    # attitude in E: first back by the Earth's turn, then the attitude in N
    assert (earth.as_quat() * b.att.as_quat()).angle_to(a.att) < 1e-8
    np.testing.assert_allclose(b.w_B, a.w_B, atol=1e-11)
    v_N = a.att.rotate(a.v_B, inverse=True)
    np.testing.assert_allclose(body.inertial_velocity(b), earth.rotate(v_N), rtol=1e-8)


def test_apparent_accelerations():
    """A point at rest in space circles in the rotating frame."""
    Omega, rate = np.array([0.0, 0.0, 2.0]), np.array([0.0, 0.0, 0.5])
    r = np.array([1.0, 0.0, 0.0])
    v = -np.cross(Omega, r)
    apparent = rotating_frame_acceleration(r, v, Omega)
    np.testing.assert_allclose(apparent, np.cross(Omega, np.cross(Omega, r)))
    with_euler = rotating_frame_acceleration(r, v, Omega, rate)
    np.testing.assert_allclose(with_euler - apparent, -np.cross(rate, r))
