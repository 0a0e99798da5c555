"""Forty faults in three models that were written after the rules: found where they are."""

from __future__ import annotations

import pytest

import archimedes as arc

MODELS = {}
MODELS["rocket"] = """
import numpy as np
from dataclasses import dataclass

@dataclass
class Rocket:
    mass: float
    J_B: np.ndarray
    arm_B: np.ndarray

    def rates(self, p_I, v_I, R_BI, w_B, gimbal_B, wind_I):
        thrust_B = 1e5 * gimbal_B
        v_rel_I = v_I - wind_I
        v_rel_B = R_BI @ v_rel_I
        q = 0.5 * 1.2 * np.dot(v_rel_B, v_rel_B)
        drag_B = -q * 0.3 * v_rel_B / np.linalg.norm(v_rel_B)
        F_B = thrust_B + drag_B
        g_I = -3.986e14 * p_I / np.linalg.norm(p_I) ** 3
        a_I = R_BI.T @ F_B / self.mass + g_I
        M_B = np.cross(self.arm_B, thrust_B)
        h_B = self.J_B @ w_B
        dw_B = np.linalg.solve(self.J_B, M_B - np.cross(w_B, h_B))
        R_dot_BI = -skew(w_B) @ R_BI
        return v_I, a_I, R_dot_BI, dw_B

def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
"""
FAULTS = [
    ("rocket", a, b)
    for a, b in [
        ("v_rel_I = v_I - wind_I", "v_rel_I = R_BI @ v_I - wind_I"),
        ("v_rel_B = R_BI @ v_rel_I", "v_rel_B = R_BI.T @ v_rel_I"),
        ("v_rel_B = R_BI @ v_rel_I", "v_rel_B = v_rel_I"),
        ("drag_B = -q * 0.3 * v_rel_B /", "drag_B = -q * 0.3 * v_rel_I /"),
        ("F_B = thrust_B + drag_B", "F_B = thrust_B + drag_B + self.mass * g_I"),
        ("R_BI.T @ F_B / self.mass", "R_BI @ F_B / self.mass"),
        ("a_I = R_BI.T @ F_B / self.mass", "a_I = F_B / self.mass"),
        ("np.cross(self.arm_B, thrust_B)", "np.cross(p_I, thrust_B)"),
        ("h_B = self.J_B @ w_B", "h_B = self.J_B @ v_I"),
        ("M_B - np.cross(w_B, h_B)", "M_B - np.cross(v_I, h_B)"),
        ("q = 0.5 * 1.2 * np.dot(v_rel_B, v_rel_B)", "q = 0.5 * 1.2 * np.dot(v_rel_B, v_rel_I)"),
        ("g_I = -3.986e14 * p_I", "g_I = -3.986e14 * R_BI @ p_I"),
    ]
]
MODELS["nav"] = """
import numpy as np

def propagate(p_N, v_N, R_NB, f_B, w_B, b_a_B, b_g_B, g_N, dt):
    f_true_B = f_B - b_a_B
    w_true_B = w_B - b_g_B
    a_N = R_NB @ f_true_B + g_N
    p_next_N = p_N + dt * v_N + 0.5 * dt**2 * a_N
    v_next_N = v_N + dt * a_N
    R_next_NB = R_NB @ expm(w_true_B * dt)
    return p_next_N, v_next_N, R_next_NB

def gps_residual(p_N, R_NB, lever_B, gps_N):
    antenna_N = p_N + R_NB @ lever_B
    return gps_N - antenna_N

def camera_residual(R_CB, R_NB, p_N, landmark_N, p_cam_B, z_C):
    p_B = R_NB.T @ (landmark_N - p_N)
    p_C = R_CB @ (p_B - p_cam_B)
    return z_C - p_C / p_C[2]

def expm(phi):
    return np.eye(3)
"""
FAULTS += [
    ("nav", a, b)
    for a, b in [
        ("f_true_B = f_B - b_a_B", "f_true_B = f_B - g_N"),
        ("a_N = R_NB @ f_true_B + g_N", "a_N = R_NB.T @ f_true_B + g_N"),
        ("a_N = R_NB @ f_true_B + g_N", "a_N = R_NB @ (f_true_B + g_N)"),
        ("p_N + dt * v_N", "p_N + dt * f_true_B"),
        ("v_next_N = v_N + dt * a_N", "v_next_N = v_N + dt * f_true_B"),
        ("antenna_N = p_N + R_NB @ lever_B", "antenna_N = p_N + lever_B"),
        ("antenna_N = p_N + R_NB @ lever_B", "antenna_N = p_N + R_NB.T @ lever_B"),
        ("return gps_N - antenna_N", "return gps_N - lever_B"),
        ("R_NB.T @ (landmark_N - p_N)", "R_NB @ (landmark_N - p_N)"),
        ("R_CB @ (p_B - p_cam_B)", "R_CB @ (landmark_N - p_cam_B)"),
        ("p_C = R_CB @ (p_B - p_cam_B)", "p_C = p_B - p_cam_B"),
        ("R_CB @ (p_B - p_cam_B)", "R_CB.T @ (p_B - p_cam_B)"),
        ("z_C - p_C / p_C[2]", "z_C - p_B / p_B[2]"),
    ]
]
MODELS["sat"] = """
import numpy as np
from archimedes.spatial import Quaternion

def control(q_BI, w_B, sun_I, mag_I, J_B, wheel_B):
    sun_B = q_BI.rotate(sun_I)
    mag_B = q_BI.rotate(mag_I)
    z_B = np.array([0.0, 0.0, 1.0])
    axis_B = np.cross(z_B, sun_B)
    tau_B = 0.1 * axis_B - 0.5 * w_B
    dipole_B = np.cross(mag_B, tau_B) / np.dot(mag_B, mag_B)
    torque_B = np.cross(dipole_B, mag_B)
    h_B = J_B @ w_B + wheel_B
    h_I = q_BI.rotate(h_B, inverse=True)
    return torque_B, h_I

def orbit(p_I, v_I, R_LI):
    h_I = np.cross(p_I, v_I)
    v_L = R_LI @ v_I
    n_L = R_LI @ h_I
    return v_L, n_L, h_I
"""
FAULTS += [
    ("sat", a, b)
    for a, b in [
        ("sun_B = q_BI.rotate(sun_I)", "sun_B = q_BI.rotate(sun_I, inverse=True)"),
        ("mag_B = q_BI.rotate(mag_I)", "mag_B = mag_I"),
        ("np.cross(z_B, sun_B)", "np.cross(z_B, sun_I)"),
        ("tau_B = 0.1 * axis_B - 0.5 * w_B", "tau_B = 0.1 * axis_B - 0.5 * sun_I"),
        ("np.cross(mag_B, tau_B) /", "np.cross(mag_I, tau_B) /"),
        ("np.dot(mag_B, mag_B)", "np.dot(mag_B, mag_I)"),
        ("np.cross(dipole_B, mag_B)", "np.cross(dipole_B, mag_I)"),
        ("h_B = J_B @ w_B + wheel_B", "h_B = J_B @ sun_I + wheel_B"),
        ("h_I = q_BI.rotate(h_B, inverse=True)", "h_I = q_BI.rotate(h_B)"),
        ("h_I = q_BI.rotate(h_B, inverse=True)", "h_I = q_BI.rotate(sun_I, inverse=True)"),
        ("v_L = R_LI @ v_I", "v_L = R_LI.T @ v_I"),
        ("n_L = R_LI @ h_I", "n_L = R_LI @ v_L"),
        ("v_L = R_LI @ v_I", "v_L = v_I"),
        ("np.cross(p_I, v_I)", "np.cross(p_I, R_LI @ v_I)"),
        ("return v_L, n_L, h_I", "return v_L + h_I, n_L, h_I"),
    ]
]


#: Not found: a rotation that is multiplied by a number might be a resistance.
MISSED = "g_I = -3.986e14 * R_BI @ p_I"


@pytest.mark.parametrize("name", list(MODELS))
def test_models_without_faults_are_clean(name):
    report = arc.check_frames(MODELS[name])
    assert report.ok, str(report)


def test_faults_are_found_in_their_lines():
    missed = []
    for name, right, wrong in FAULTS:
        assert MODELS[name].count(right) == 1, right
        text = MODELS[name].replace(right, wrong)
        line = text[: text.index(wrong)].count("\n") + 1
        if not any(finding.line == line for finding in arc.check_frames(text)):
            missed.append(wrong)
    assert len(FAULTS) == 40 and missed == [MISSED]
