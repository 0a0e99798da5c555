"""A user's own attitude class, Cayley (Gibbs) parameters, wherever an attitude is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.spatial import (
    Attitude,
    EarthReferencedBody,
    KinematicTree,
    Quaternion,
    RigidBody,
    Transformation,
)
from archimedes.tree import struct


@struct
class Cayley:
    """g = axis * tan(angle/2): R = (I - [g]x)(I + [g]x)^-1, passive."""

    g: Any

    def as_matrix(self):
        S = self._skew()
        return np.linalg.solve((np.eye(3) + S).T, (np.eye(3) - S).T).T

    def rotate(self, vectors, inverse=False):
        R = self.as_matrix()
        return (R.T if inverse else R) @ vectors

    def inv(self):
        return Cayley(-self.g)

    def kinematics(self, w_B):
        return Cayley(0.5 * (w_B + np.cross(self.g, w_B) + self.g * np.dot(self.g, w_B)))

    def _skew(self):
        x, y, z = self.g
        return np.stack([np.stack([0.0, -z, y]), np.stack([z, 0.0, -x]), np.stack([-y, x, 0.0])])


G = np.array([0.1, -0.2, 0.3])
Q = Quaternion(np.array([1.0, *G])).normalize()
W = np.array([0.3, 0.1, -0.2])


def test_is_an_attitude():
    assert isinstance(Cayley(G), Attitude)
    np.testing.assert_allclose(Cayley(G).as_matrix(), Q.as_matrix(), atol=1e-15)
    assert not isinstance(np.eye(3), Attitude)


def test_in_rigid_body():
    u = RigidBody.Input(np.ones(3), np.array([0.1, 0.2, 0.3]), 2.0, np.diag([1.0, 2.0, 3.0]))
    x = RigidBody.State(np.zeros(3), Cayley(G), np.array([1.0, 2.0, 3.0]), W)
    eager = RigidBody.dynamics(0.0, x, u)
    compiled = arc.compile(RigidBody.dynamics)(0.0, x, u)
    assert isinstance(eager.att, Cayley) and isinstance(compiled.att, Cayley)
    reference = RigidBody.dynamics(0.0, x.replace(att=Q), u)
    for one in (eager, compiled):
        np.testing.assert_allclose(one.pos, reference.pos, atol=1e-14)
        np.testing.assert_allclose(one.w_B, reference.w_B, atol=1e-14)
    np.testing.assert_allclose(
        RigidBody.angular_momentum(x, u),
        RigidBody.angular_momentum(x.replace(att=Q), u),
        atol=1e-14,
    )


def test_integrated():
    """Its motion is that of the quaternion."""
    u = RigidBody.Input(np.zeros(3), np.zeros(3), 2.0, np.diag([1.0, 2.0, 3.0]))
    x0 = RigidBody.State(np.zeros(3), Cayley(G), np.ones(3), W)
    ends = []
    for start in (x0, x0.replace(att=Q)):
        flat, unravel = arc.tree.ravel(start)
        f = arc.compile(RigidBody.dynamics)
        rhs = lambda t, y, f=f, unravel=unravel: arc.tree.ravel(f(t, unravel(y), u))[0]
        out = solve_ivp(rhs, (0, 3), flat, "DOP853", rtol=1e-11, atol=1e-12)
        ends.append(unravel(out.y[:, -1]))
    np.testing.assert_allclose(ends[0].att.as_matrix(), ends[1].att.as_matrix(), atol=1e-9)
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=1e-9)


def test_with_our_classes():
    assert Q.angle_to(Cayley(G)) < 1e-15
    assert Q.approx_equal(Cayley(G))
    np.testing.assert_allclose((Q * Cayley(G)).as_matrix(), (Q * Q).as_matrix(), atol=1e-15)
    assert Quaternion.from_quat(Cayley(G)).angle_to(Q) < 1e-15


def test_in_transformation_and_tree():
    X = Transformation(np.array([1.0, 2.0, 3.0]), Cayley(G))
    same = Transformation(np.array([1.0, 2.0, 3.0]), Q)
    np.testing.assert_allclose((X @ X.inv()).as_matrix(), np.eye(4), atol=1e-15)
    np.testing.assert_allclose((X @ X).log(), (same @ same).log(), atol=1e-14)

    def build(cls):
        ktree = KinematicTree("n")
        ktree.add_frame("a", "n", lambda t: Transformation(np.stack([t, 0.0, 1.0]), cls(t)))
        ktree.add_frame("b", "a", lambda t, x: Transformation.from_pose(x.pos, x.att))
        return ktree

    ours = build(lambda t: Quaternion(np.stack([1.0, 0.1 * t, 0.2, 0.3])))
    theirs = build(lambda t: Cayley(np.stack([0.1 * t, 0.2, 0.3])))
    x = RigidBody.State(np.ones(3), Cayley(G), np.zeros(3), W)
    for t in (0.0, 1.7):
        for question in ("get_transform", "get_twist", "get_acceleration"):
            a = getattr(theirs, question)("n", "b", t, x)
            b = getattr(ours, question)("n", "b", t, x.replace(att=Q))
            c = arc.compile(lambda t, x, q=question: getattr(theirs, q)("n", "b", t, x))(t, x)
            if question == "get_transform":
                a, b, c = a.as_matrix(), b.as_matrix(), c.as_matrix()
            else:
                a, b, c = a.array, b.array, c.array
            np.testing.assert_allclose(a, b, atol=1e-13)
            np.testing.assert_allclose(c, b, atol=1e-13)


def test_in_earth_referenced_body():
    body = EarthReferencedBody()
    u = body.Input(np.ones(3), np.zeros(3), 1.0, np.eye(3))
    x = body.State(np.array([7e6, 0, 0]), Cayley(G), np.zeros(3), W)
    ours = body.dynamics(0.0, x.replace(att=Q), u)
    assert isinstance(body.dynamics(0.0, x, u).att, Cayley)
    np.testing.assert_allclose(arc.compile(body.dynamics)(0.0, x, u).v_E, ours.v_E, atol=1e-15)
