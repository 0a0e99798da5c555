"""An aircraft: wind axes, helpers without suffixes, generators, lever arms, tables."""

import math

import numpy as np
from scipy.spatial.transform import Rotation

from archimedes.spatial import EulerAngles

S_REF, B_REF, C_REF = 27.87, 9.14, 3.45
C_L0, C_LA, C_D0, C_M0, C_MA = 0.2, 4.6, 0.02, 0.01, -0.6
X_AC, T_MAX, K_P, K_I = 0.3, 70e3, 1.2, 0.1


def unit(v):
    return v / np.linalg.norm(v)


def rotate(R, v):
    return R @ v


def wind_to_body(alpha, beta):
    R_BW = EulerAngles([-beta, alpha], "ZY").as_matrix()
    return R_BW


def aero(v_air_B, rho, alpha, beta):
    q_bar = 0.5 * rho * float(v_air_B @ v_air_B)
    C_L = C_L0 + C_LA * alpha
    C_D = C_D0 + 0.05 * C_L**2
    F_W = q_bar * S_REF * np.array([-C_D, 0.0, -C_L])
    R_BW = wind_to_body(alpha, beta)
    F_B = rotate(R_BW, F_W)
    M_B = q_bar * S_REF * C_REF * np.array([0.0, C_M0 + C_MA * alpha, 0.0])
    return F_B, M_B


def propulsion(throttle, r_engine_B, tilt):
    axis_B = np.array([math.cos(tilt), 0.0, -math.sin(tilt)])
    F_B = throttle * T_MAX * axis_B
    return F_B, np.cross(r_engine_B, F_B)


def total(parts):
    forces, moments = zip(*parts)
    return sum(forces), sum(moments)


def equations(t, v_B, w_B, att, wind_N, m, J_B, throttle, r_engine_B):
    R_BN = att.as_matrix()
    v_air_B = v_B - rotate(R_BN, wind_N)
    u, v, w = v_air_B
    alpha, beta = math.atan2(w, u), math.asin(v / np.linalg.norm(v_air_B))
    F_aero_B, M_aero_B = aero(v_air_B, 1.225, alpha, beta)
    F_prop_B, M_prop_B = propulsion(throttle, r_engine_B, tilt=0.02)
    weight_B = R_BN @ np.array([0.0, 0.0, 9.81 * m])
    F_B = sum([F_aero_B, F_prop_B, weight_B])
    M_B = M_aero_B + M_prop_B
    dv_B = F_B / m - np.cross(w_B, v_B)
    dw_B = np.linalg.inv(J_B) @ (M_B - np.cross(w_B, J_B @ w_B))
    v_N = R_BN.T @ v_B
    return v_N, dv_B, att.kinematics(w_B), dw_B


def accelerometer(dv_B, w_B, dw_B, v_B, g_B, r_B, R_SB):
    a_B = dv_B + np.cross(w_B, v_B) - g_B
    a_B += np.cross(dw_B, r_B) + np.cross(w_B, np.cross(w_B, r_B))
    reading_S = R_SB @ a_B
    return reading_S


def heading_error(track_N, v_N, R_NB):
    nose_N = R_NB[:, 0]
    along_N = unit(v_N)
    side = np.cross(unit(track_N), along_N)[2]
    return math.asin(side), float(nose_N @ along_N)


def from_scipy(angles, v_B):
    R_NB = Rotation.from_euler("ZYX", angles)
    v_N = R_NB.apply(v_B)
    back_B = R_NB.inv().apply(v_N)
    return v_N, back_B - v_B


def north_east(v_N, v_E, v_D, course):
    along = v_N * np.cos(course) + v_E * np.sin(course)
    return along, np.hypot(v_N, v_E), v_N - v_E - v_D
