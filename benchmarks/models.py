"""Models that the benchmarks trace and run, in plain NumPy: written once, used by every peer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archimedes.spatial import Quaternion, RigidBody

__all__ = ["arm", "articulated_body", "rigid_bodies", "rigid_body", "rigid_body_point"]


def rigid_body(x, F_B, M_B, m, J_B):
    """Time derivative of the 6-dof state (position, quaternion, v_B, w_B), 13 numbers."""
    state = RigidBody.State(pos=x[:3], att=Quaternion(x[3:7]), v_B=x[7:10], w_B=x[10:])
    rate = RigidBody().dynamics(0.0, state, RigidBody.Input(F_B=F_B, M_B=M_B, m=m, J_B=J_B))
    return np.concatenate([rate.pos, rate.att.array, rate.v_B, rate.w_B])


def rigid_bodies(x, F_B, M_B, m, J_B):
    """The same for many states at once, as one would vectorise it in NumPy by hand."""
    q, v, w = x[:, 3:7], x[:, 7:10], x[:, 10:13]
    squared = np.einsum("ni,ni->n", q, q)
    scale = (2.0 / squared)[:, None]
    turn = np.cross(q[:, 1:], v)
    out = np.empty_like(x)
    out[:, :3] = v + scale * (q[:, :1] * turn + np.cross(q[:, 1:], turn))
    out[:, 3] = -0.5 * np.einsum("ni,ni->n", q[:, 1:], w)
    out[:, 4:7] = 0.5 * (q[:, :1] * w + np.cross(q[:, 1:], w))
    out[:, 3:7] -= (squared - 1.0)[:, None] * q
    out[:, 7:10] = F_B / np.reshape(m, (-1, 1)) - np.cross(w, v)
    moments = M_B - np.cross(w, (J_B @ w[..., None])[..., 0])
    out[:, 10:] = np.linalg.solve(J_B, moments[..., None])[..., 0]
    return out


def rigid_body_point(rng):
    """Random arguments of :func:`rigid_body`, with a full inertia matrix."""
    q = rng.normal(size=4)
    A = rng.normal(size=(3, 3))
    x = np.concatenate([rng.normal(size=3), q / np.linalg.norm(q), rng.normal(size=6)])
    return x, rng.normal(size=3), rng.normal(size=3), 2.5, A @ A.T + 3 * np.eye(3)


@dataclass(frozen=True)
class Arm:
    """A serial chain of revolute joints about local z: link placements and spatial inertias."""

    placements: tuple  # X_tree: 6x6 constant motion transforms
    inertias: tuple  # 6x6 spatial inertias


def _cross3(v):
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _transform(R, p):
    """Motion transform from parent to child coordinates (Featherstone 2008, eq. 2.24)."""
    X = np.zeros((6, 6))
    X[:3, :3] = R
    X[3:, 3:] = R
    X[3:, :3] = -R @ _cross3(p)
    return X


def arm(joints=7, seed=0):
    """A random arm whose placements are quarter turns, as in most industrial arms."""
    rng = np.random.default_rng(seed)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    placements, inertias = [], []
    for k in range(joints):
        R = turn if k % 2 else turn.T
        p = np.array([0.0, 0.0, 0.3]) if k % 2 else np.array([0.0, -0.2, 0.0])
        placements.append(_transform(R, p))
        c = rng.normal(size=3) * 0.1
        A = rng.normal(size=(3, 3)) * 0.1
        m = 2.0 + k * 0.1
        C = _cross3(c)
        spatial = np.zeros((6, 6))
        spatial[:3, :3] = A @ A.T + 0.1 * np.eye(3) + m * C @ C.T
        spatial[:3, 3:] = m * C
        spatial[3:, :3] = m * C.T
        spatial[3:, 3:] = m * np.eye(3)
        inertias.append(spatial)
    return Arm(tuple(placements), tuple(inertias))


def _cross_motion(v):
    out = np.zeros((6, 6))
    out[:3, :3] = _cross3(v[:3])
    out[3:, :3] = _cross3(v[3:])
    out[3:, 3:] = _cross3(v[:3])
    return out


def articulated_body(model, q, qd, tau):
    """Joint accelerations by the articulated-body algorithm (Featherstone 2008, table 7.1).

    Written naively with dense 6x6 matrices.
    """
    n = len(model.placements)
    S = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    gravity = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.81])
    X, v, c, IA, pA = [], [], [], [], []
    for i in range(n):
        s, co = np.sin(q[i]), np.cos(q[i])
        joint = np.zeros((6, 6))
        R = np.array([[co, s, 0.0], [-s, co, 0.0], [0.0, 0.0, 1.0]])
        joint[:3, :3] = R
        joint[3:, 3:] = R
        X.append(joint @ model.placements[i])
        vJ = S * qd[i]
        v.append(vJ if i == 0 else X[i] @ v[i - 1] + vJ)
        c.append(_cross_motion(v[i]) @ vJ)
        IA.append(model.inertias[i])
        pA.append(-_cross_motion(v[i]).T @ (model.inertias[i] @ v[i]))
    U, D, u = [None] * n, [None] * n, [None] * n
    for i in reversed(range(n)):
        U[i] = IA[i] @ S
        D[i] = S @ U[i]
        u[i] = tau[i] - S @ pA[i]
        if i > 0:
            Ia = IA[i] - np.outer(U[i], U[i]) / D[i]
            pa = pA[i] + Ia @ c[i] + U[i] * (u[i] / D[i])
            IA[i - 1] = IA[i - 1] + X[i].T @ Ia @ X[i]
            pA[i - 1] = pA[i - 1] + X[i].T @ pa
    a, qdd = None, []
    for i in range(n):
        a = (X[i] @ (gravity if i == 0 else a)) + c[i]
        qdd.append((u[i] - U[i] @ a) / D[i])
        a = a + S * qdd[i]
    return np.array(qdd)
