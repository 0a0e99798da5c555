"""A quadrotor with matrices, loops over rotors, and a wrench from several parts."""

import numpy as np

MASS = 1.2
J_B = np.diag([0.015, 0.016, 0.03])
g_N = np.array([0.0, 0.0, 9.81])
ROTORS = [(0.2, 0.2, 1), (-0.2, -0.2, 1), (0.2, -0.2, -1), (-0.2, 0.2, -1)]
K_T, K_Q, C_D = 1.1e-5, 2.0e-7, 0.35


def dcm(phi, theta, psi):
    cph, sph = np.cos(phi), np.sin(phi)
    cth, sth = np.cos(theta), np.sin(theta)
    cps, sps = np.cos(psi), np.sin(psi)
    R_NB = np.array(
        [
            [cth * cps, sph * sth * cps - cph * sps, cph * sth * cps + sph * sps],
            [cth * sps, sph * sth * sps + cph * cps, cph * sth * sps - sph * cps],
            [-sth, sph * cth, cph * cth],
        ]
    )
    return R_NB


def rotor_wrench(omegas, w_B):
    F_B = np.zeros(3)
    M_B = np.zeros(3)
    for (x, y, spin), rate in zip(ROTORS, omegas):
        r_B = np.array([x, y, 0.0])
        f_B = np.array([0.0, 0.0, -K_T * rate**2])
        gyro_B = np.cross(w_B, np.array([0.0, 0.0, spin * 6e-5 * rate]))
        F_B += f_B
        M_B += np.cross(r_B, f_B) - gyro_B
        M_B[2] += spin * K_Q * rate**2
    return F_B, M_B


def drag_B(v_air_B):
    return -C_D * np.linalg.norm(v_air_B) * v_air_B


def derivatives(t, state, omegas, wind_N):
    v_N, w_B = state[3:6], state[9:12]
    phi, theta, psi = state[6:9]
    R_NB = dcm(phi, theta, psi)
    R_BN = R_NB.T
    v_air_B = R_BN @ (v_N - wind_N)
    F_B, M_B = rotor_wrench(omegas, w_B)
    F_B = F_B + drag_B(v_air_B)
    a_N = g_N + R_NB @ F_B / MASS
    h_B = J_B @ w_B
    dw_B = np.linalg.solve(J_B, M_B - np.cross(w_B, h_B))
    rates = np.array(
        [
            [1.0, np.sin(phi) * np.tan(theta), np.cos(phi) * np.tan(theta)],
            [0.0, np.cos(phi), -np.sin(phi)],
            [0.0, np.sin(phi) / np.cos(theta), np.cos(phi) / np.cos(theta)],
        ]
    )
    return np.concatenate([v_N, a_N, rates @ w_B, dw_B])


def simulate(x0, omegas, wind_N, dt=0.01, steps=100):
    x, history = x0.copy(), []
    for k in range(steps):
        k1 = derivatives(k * dt, x, omegas, wind_N)
        k2 = derivatives(k * dt + dt / 2, x + dt / 2 * k1, omegas, wind_N)
        x = x + dt * k2
        history.append(x)
    p_N = np.array(history)[:, :3]
    offsets_N = p_N - p_N[0]
    return p_N, np.linalg.norm(offsets_N, axis=1)
