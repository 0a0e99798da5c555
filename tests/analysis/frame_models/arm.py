"""A robot arm with a camera: transformations, nested functions, comprehensions, einsum."""

import numpy as np


def rotz(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


class Pose:
    def __init__(self, R, t):
        self.R, self.t = R, t

    def __matmul__(self, other):
        return Pose(self.R @ other.R, self.R @ other.t + self.t)

    def inv(self):
        return Pose(self.R.T, -self.R.T @ self.t)

    def apply(self, p):
        return self.R @ p + self.t


def forward(q, lengths):
    X_WA = Pose(rotz(q[0]), np.zeros(3))
    X_AB = Pose(rotz(q[1]), np.array([lengths[0], 0.0, 0.0]))
    X_BT = Pose(np.eye(3), np.array([lengths[1], 0.0, 0.0]))
    X_WB = X_WA @ X_AB
    X_WT = X_WB @ X_BT
    return X_WA, X_WB, X_WT


def seen_by_camera(X_WC, X_WT, points_T):
    X_CT = X_WC.inv() @ X_WT
    points_C = np.array([X_CT.apply(p_T) for p_T in points_T])
    return points_C[:, :2] / points_C[:, 2:]


def grasp_error(X_WT, p_WG_W):
    p_WT_W = X_WT.t
    p_TG_W = p_WG_W - p_WT_W
    p_TG_T = X_WT.R.T @ p_TG_W
    return p_TG_T


def tip_velocity(axes_W, p_TJ_W, rates):
    v_W = np.zeros(3)
    for axis_W, r_W, rate in zip(axes_W, p_TJ_W, rates):
        v_W = v_W + rate * np.cross(axis_W, -r_W)
    return v_W


def rotate_cloud(R_WT, cloud_T):
    cloud_W = np.einsum("ij,nj->ni", R_WT, cloud_T)
    centre_W = cloud_W.mean(axis=0)
    spread_W = cloud_W - centre_W
    covariance = np.einsum("ni,nj->ij", spread_W, spread_W)
    return centre_W, covariance


def contact_wrench(X_WT, p_contact_T, f_contact_W):
    R_WT = X_WT.R

    def to_world(r_T):
        return R_WT @ r_T

    arm_W = to_world(p_contact_T)
    m_W = np.cross(arm_W, f_contact_W)
    f_T, m_T = R_WT.T @ f_contact_W, R_WT.T @ m_W
    return {"f_T": f_T, "m_T": m_T, "work": lambda v_W: f_contact_W @ v_W}


def inertia_in_world(R_WA, R_WB, J_A, J_B, m, r_W):
    J_W = R_WA @ J_A @ R_WA.T + R_WB @ J_B @ R_WB.T
    return J_W + m * (r_W @ r_W * np.eye(3) - np.outer(r_W, r_W))
