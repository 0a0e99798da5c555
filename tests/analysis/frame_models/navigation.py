"""An inertial navigation filter: classes, properties, quaternions of this package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archimedes.environment import ecef_to_geodetic, ned
from archimedes.spatial import Quaternion

OMEGA_EARTH = 7.292115e-5


@dataclass
class ImuReading:
    f_B: np.ndarray
    w_IB_B: np.ndarray
    dt: float


@dataclass
class NavState:
    p_E: np.ndarray
    v_E: np.ndarray
    q_BE: Quaternion
    bias_B: np.ndarray

    @property
    def R_EB(self) -> np.ndarray:
        return self.q_BE.as_matrix().T


class Navigator:
    def __init__(self, start: NavState, lever_B: np.ndarray, gravity):
        self.state = start
        self.lever_B = lever_B
        self.gravity = gravity
        self.w_IE_E = np.array([0.0, 0.0, OMEGA_EARTH])
        self.P = np.eye(12)

    def propagate(self, reading: ImuReading) -> NavState:
        s, dt = self.state, reading.dt
        w_IB_B = reading.w_IB_B - s.bias_B
        w_EB_B = w_IB_B - s.q_BE.rotate(self.w_IE_E)
        f_E = s.q_BE.rotate(reading.f_B, inverse=True)
        g_E = self.gravity(s.p_E)
        coriolis_E = -2.0 * np.cross(self.w_IE_E, s.v_E)
        centrifugal_E = -np.cross(self.w_IE_E, np.cross(self.w_IE_E, s.p_E))
        a_E = f_E + g_E + coriolis_E + centrifugal_E
        v_E = s.v_E + a_E * dt
        p_E = s.p_E + 0.5 * (s.v_E + v_E) * dt
        turn = Quaternion.exp(w_EB_B * dt)
        self.state = NavState(p_E=p_E, v_E=v_E, q_BE=s.q_BE * turn, bias_B=s.bias_B)
        return self.state

    def predicted_antenna(self) -> np.ndarray:
        s = self.state
        antenna_E = s.p_E + s.R_EB @ self.lever_B
        return antenna_E

    def update_gnss(self, p_antenna_E, sigma):
        residual_E = p_antenna_E - self.predicted_antenna()
        H = np.zeros((3, 12))
        H[:, :3] = np.eye(3)
        S = H @ self.P @ H.T + sigma**2 * np.eye(3)
        K = self.P @ H.T @ np.linalg.inv(S)
        dx = K @ residual_E
        self.state.p_E = self.state.p_E + dx[:3]
        self.state.v_E += dx[3:6]
        self.P = (np.eye(12) - K @ H) @ self.P
        return residual_E

    def update_magnetometer(self, m_B, m_reference_E, gain):
        expected_B = self.state.q_BE.rotate(m_reference_E)
        error_B = np.cross(m_B, expected_B)
        self.state.bias_B = self.state.bias_B - gain * error_B
        return error_B

    def velocity_ned(self):
        lat, lon, _ = ecef_to_geodetic(self.state.p_E)
        local = ned(lat, lon)
        v_NED = local.rotate(self.state.v_E)
        ground_speed = np.hypot(v_NED[0], v_NED[1])
        return v_NED, ground_speed
