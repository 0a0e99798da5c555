"""Faults planted in real models are found at their line; right variants stay silent."""

from __future__ import annotations

from pathlib import Path

import pytest

import archimedes as arc

MODELS = Path(__file__).parent / "frame_models"
VEHICLES = Path(arc.__file__).parent / "vehicles"
SPATIAL = Path(arc.__file__).parent / "spatial"

#: file, what stands there, the fault in its place. Each was made by somebody, somewhere.
FAULTS = [
    # a quadrotor with matrices
    ("quadrotor", "R_NB @ F_B / MASS", "R_BN @ F_B / MASS"),
    ("quadrotor", "R_BN @ (v_N - wind_N)", "R_NB @ (v_N - wind_N)"),
    ("quadrotor", "R_BN @ (v_N - wind_N)", "v_N - wind_N"),
    ("quadrotor", "F_B = F_B + drag_B(v_air_B)", "F_B = F_B + drag_B(v_N - wind_N)"),
    ("quadrotor", "a_N = g_N + R_NB @ F_B / MASS", "a_N = g_N + F_B / MASS"),
    ("quadrotor", "F_B = F_B + drag_B(v_air_B)", "F_B = F_B + drag_B(v_air_B) + MASS * g_N"),
    ("quadrotor", "M_B - np.cross(w_B, h_B)", "M_B - np.cross(w_B, R_NB @ h_B)"),
    ("quadrotor", "    R_BN = R_NB.T", "    R_BN = dcm(phi, theta, psi)"),
    # inertial navigation
    ("navigation", "s.q_BE.rotate(reading.f_B, inverse=True)", "s.q_BE.rotate(reading.f_B)"),
    ("navigation", "w_IB_B - s.q_BE.rotate(self.w_IE_E)", "w_IB_B - self.w_IE_E"),
    ("navigation", "np.cross(self.w_IE_E, s.v_E)", "np.cross(w_IB_B, s.v_E)"),
    ("navigation", "a_E = f_E + g_E", "a_E = reading.f_B + g_E"),
    ("navigation", "s.p_E + s.R_EB @ self.lever_B", "s.p_E + self.lever_B"),
    ("navigation", "s.R_EB @ self.lever_B", "s.R_EB.T @ self.lever_B"),
    ("navigation", "np.cross(m_B, expected_B)", "np.cross(m_B, m_reference_E)"),
    ("navigation", "v_E=v_E, q_BE", "v_E=f_E + self.lever_B, q_BE"),
    ("navigation", "local.rotate(self.state.v_E)", "local.rotate(self.state.v_E, inverse=True)"),
    ("navigation", "as_matrix().T", "as_matrix()"),
    # a robot arm with a camera
    ("arm", "X_WB = X_WA @ X_AB", "X_WB = X_AB @ X_WA"),
    ("arm", "X_CT = X_WC.inv() @ X_WT", "X_CT = X_WC @ X_WT"),
    ("arm", "X_CT.apply(p_T) for", "X_WT.apply(p_T) for"),
    ("arm", "p_WG_W - p_WT_W", "p_WT_W - p_WG_W"),
    ("arm", "X_WT.R.T @ p_TG_W", "X_WT.R @ p_TG_W"),
    ("arm", '"ij,nj->ni", R_WT, cloud_T', '"ji,nj->ni", R_WT, cloud_T'),
    ("arm", "np.cross(arm_W, f_contact_W)", "np.cross(p_contact_T, f_contact_W)"),
    ("arm", '{"f_T": f_T, "m_T": m_T', '{"f_T": f_T, "m_T": m_W'),
    ("arm", "R_WA @ J_A @ R_WA.T", "R_WA.T @ J_A @ R_WA"),
    ("arm", "R_WB @ J_B @ R_WB.T", "J_B"),
    # a rendezvous
    ("rendezvous", "r_L = R_LI @ dp_I", "r_L = dp_I"),
    ("rendezvous", "np.cross(w_LI_L, r_L)", "np.cross(w_LI_L, dp_I)"),
    ("rendezvous", "F_B=force_B + m * g_B", "F_B=force_B + m * g_I"),
    ("rendezvous", "x.att.rotate(h_B, inverse=True)", "x.att.rotate(h_B)"),
    ("rendezvous", "q_LI.rotate(sun_I)", "q_LI.inv().rotate(sun_I)"),
    ("rendezvous", "chaser.command(x, wanted_L, R_LI)", "chaser.command(x, wanted_L, R_LI.T)"),
    # an aircraft
    ("aircraft", "rotate(R_BW, F_W)", "rotate(R_BW.T, F_W)"),
    ("aircraft", "sum([F_aero_B, F_prop_B, weight_B])", "sum([F_aero_B, F_prop_B, m * v_N])"),
    ("aircraft", "a_B += np.cross(dw_B, r_B)", "a_B += np.cross(dw_B, reading_S)"),
    ("aircraft", "att.kinematics(w_B)", "att.kinematics(R_BN.T @ w_B)"),
    ("aircraft", "R_NB[:, 0]", "R_NB[0, :]"),
    ("aircraft", "R_NB.inv().apply(v_N)", "R_NB.apply(v_N)"),
    # vehicles and bodies of this package
    ("worlds", "v_NED=x.att.rotate(x.v_B, inverse=True)", "v_NED=x.att.rotate(x.v_B)"),
    ("worlds", "v_air_B=x.att.rotate(x.v_E - wind_E)", "v_air_B=x.v_E - wind_E"),
    ("worlds", "w_air_B=x.w_B - x.att", "w_air_B=x.v_E - x.att"),
    ("worlds", "replace(x, pos=pos, v_B=x.v_B", "replace(x, pos=pos, v_B=x.v_E"),
    ("worlds", "F_E = x.att.rotate(F_B, inverse=True)", "F_E = F_B"),
    ("worlds", "EarthReferencedBody.Input(F_E, M_B", "EarthReferencedBody.Input(F_B, M_B"),
    ("satellite/satellite", "rotate(F_B, inverse=True)", "rotate(F_B)"),
    ("rigid_body", "w_B - att.rotate(Omega_E)", "w_B - Omega_E"),
]

#: Not found: nothing in this method says from which frame the attitude leads.
MISSED = [("rendezvous", "x.att.rotate(force_I)", "x.att.rotate(force_L)")]


def source_of(name: str) -> Path:
    for folder in (MODELS, VEHICLES, SPATIAL):
        if (folder / f"{name}.py").exists():
            return folder / f"{name}.py"
    raise FileNotFoundError(name)


def planted_line(name: str, old: str, new: str) -> tuple[str, int]:
    text = source_of(name).read_text(encoding="utf-8")
    assert old in text, old
    changed = text.replace(old, new, 1)
    return changed, text[: text.index(old)].count("\n") + 1


def find(name: str, old: str, new: str) -> tuple[list[int], int]:
    text, line = planted_line(name, old, new)
    return [finding.line for finding in arc.check_frames(text)], line


def test_at_most_two_faults_of_forty_are_missed():
    assert len(FAULTS) >= 40 and len(MISSED) <= 2
    assert [fault for fault in MISSED if find(*fault)[0]] == []


@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_planted_fault_is_found_at_its_line(name, old, new):
    lines, line = find(name, old, new)
    assert lines == [line]


#: Other ways to write the same physics, each of them right.
RIGHT = [
    ("quadrotor", "R_NB @ F_B / MASS", "R_BN.T @ F_B / MASS"),
    ("quadrotor", "R_NB @ F_B / MASS", "(F_B @ R_BN) / MASS"),
    ("quadrotor", "R_NB @ F_B / MASS", "np.einsum('ij,j->i', R_NB, F_B) / MASS"),
    ("quadrotor", "R_NB @ F_B / MASS", "np.linalg.solve(R_BN, F_B) / MASS"),
    ("quadrotor", "R_BN @ (v_N - wind_N)", "R_BN @ v_N - R_BN @ wind_N"),
    ("quadrotor", "R_BN @ (v_N - wind_N)", "np.matmul(R_NB.transpose(), v_N - wind_N)"),
    ("quadrotor", "np.linalg.solve(J_B, M_B", "np.linalg.inv(J_B) @ (0.0 + M_B"),
    ("quadrotor", "F_B = F_B + drag_B(v_air_B)", "F_B += drag_B(R_BN @ (v_N - wind_N))"),
    (
        "quadrotor",
        "a_N = g_N + R_NB",
        "total_N = sum([m * x for m, x in []], g_N); a_N = g_N + R_NB",
    ),
    ("quadrotor", "offsets_N = p_N - p_N[0]", "offsets_N = np.diff(p_N, axis=0)"),
    ("navigation", "s.q_BE.rotate(reading.f_B, inverse=True)", "s.q_BE.inv().rotate(reading.f_B)"),
    ("navigation", "s.q_BE.rotate(reading.f_B, inverse=True)", "s.R_EB @ reading.f_B"),
    (
        "navigation",
        "s.q_BE.rotate(reading.f_B, inverse=True)",
        "s.q_BE.as_matrix().T @ reading.f_B",
    ),
    ("navigation", "s.q_BE.rotate(self.w_IE_E)", "s.R_EB.T @ self.w_IE_E"),
    ("navigation", "f_E + g_E + coriolis_E", "np.sum([f_E, g_E, coriolis_E], axis=0)"),
    ("navigation", "s.R_EB @ self.lever_B", "self.lever_B @ s.R_EB.T"),
    ("navigation", "local.rotate(self.state.v_E)", "local.as_matrix() @ self.state.v_E"),
    (
        "navigation",
        "local = ned(lat, lon)",
        "local = R_NE = ned(lat, lon).as_matrix()\n        local = ned(lat, lon)",
    ),
    ("navigation", "q_BE=s.q_BE * turn", "q_BE=Quaternion.from_matrix(s.R_EB.T)"),
    ("arm", "X_WB @ X_BT", "X_WA @ X_AB @ X_BT"),
    ("arm", "X_WC.inv() @ X_WT", "(X_WT.inv() @ X_WC).inv()"),
    ("arm", "p_WG_W - p_WT_W", "-p_WT_W + p_WG_W"),
    ("arm", "p_WG_W - p_WT_W", "p_WG_W - X_WT.t"),
    ("arm", "X_WT.R.T @ p_TG_W", "X_WT.inv().R @ p_TG_W"),
    ("arm", '"ij,nj->ni", R_WT, cloud_T', '"nj,ij->ni", cloud_T, R_WT'),
    ("arm", 'np.einsum("ij,nj->ni", R_WT, cloud_T)', "cloud_T @ R_WT.T"),
    ("arm", 'np.einsum("ij,nj->ni", R_WT, cloud_T)', "(R_WT @ cloud_T.T).T"),
    ("arm", 'np.einsum("ij,nj->ni", R_WT, cloud_T)', "np.stack([R_WT @ p_T for p_T in cloud_T])"),
    ("arm", "R_WA @ J_A @ R_WA.T", "np.linalg.multi_dot([R_WA, J_A, R_WA.T])"),
    ("rendezvous", "np.stack([x_I, y_I, z_I])", "np.column_stack([x_I, y_I, z_I]).T"),
    ("rendezvous", "r_L = R_LI @ dp_I", "r_L = dp_I @ R_LI.T"),
    ("rendezvous", "R_LI @ (v_I - v_target_I)", "R_LI @ v_I - R_LI @ v_target_I"),
    (
        "rendezvous",
        "Relative(rel.v_L, drift_L + u_L)",
        "rel.replace(r_L=rel.v_L, v_L=drift_L + u_L)",
    ),
    ("rendezvous", "force_I = R_LI.T @ force_L", "force_I = (lambda f_L: R_LI.T @ f_L)(force_L)"),
    ("rendezvous", "q_LI.rotate(sun_I)", "q_LI.inv().rotate(sun_I, inverse=True)"),
    ("aircraft", "rotate(R_BW, F_W)", "R_BW @ F_W"),
    ("aircraft", "R_BN.T @ v_B", "att.rotate(v_B, inverse=True)"),
    ("aircraft", "R_NB[:, 0]", "R_NB @ np.array([1.0, 0.0, 0.0])"),
    ("aircraft", "R_NB[:, 0]", "R_NB.T[0, :]"),
    ("aircraft", "unit(v_N)", "v_N / np.sqrt(np.sum(v_N * v_N))"),
    (
        "aircraft",
        "sum([F_aero_B, F_prop_B, weight_B])",
        "np.sum([F_aero_B, F_prop_B, weight_B], 0)",
    ),
    ("aircraft", "F_B / m - np.cross(w_B, v_B)", "F_B / m + np.cross(v_B, w_B)"),
    (
        "worlds",
        "v_air_B=x.att.rotate(x.v_E - wind_E)",
        "v_air_B=x.att.as_matrix() @ (x.v_E - wind_E)",
    ),
    ("worlds", "F_E = x.att.rotate(F_B, inverse=True)", "F_E = x.att.inv().rotate(F_B)"),
]


@pytest.mark.parametrize(("name", "old", "new"), RIGHT)
def test_a_right_variant_is_silent(name, old, new):
    assert find(name, old, new)[0] == []
