"""Frames by monogram names: rules one by one, what is left alone, and what cannot be read."""

from __future__ import annotations

import textwrap

import pytest

import archimedes as arc

NAMES = (
    "R_BE, R_BN, R_AB, R_BC, R_EB, q_BE, X_AB, X_BC, X_WB, J_B, J_E, v_B, v_E, v_N, v_A, v_C, w_B, "
    "w_E, p_B, p_E, p_W, p_A, F_B, F_E, M_B, p_AB_E, p_BC_E, p_CB_E, p_AB, p_BC, a_B, x, m, t, g, "
    "points_B, c"
)


def lines(body: str, parameters: str = NAMES) -> list[int]:
    """Return the lines of the body, from 1, that are reported."""
    indented = textwrap.indent(textwrap.dedent(body), "    ")
    text = f"import numpy as np\ndef f({parameters}):\n{indented}"
    return [finding.line - 2 for finding in arc.check_frames(text)]


@pytest.mark.parametrize(
    "expression",
    """
    v_B + R_BE @ v_E
    R_BE.T @ v_B + v_E
    R_AB @ R_BC @ v_C + v_A
    v_B @ R_BE + v_E
    q_BE.rotate(v_E) + v_B
    q_BE.rotate(v_B, inverse=True) + v_E
    q_BE.inv().rotate(v_B) - v_E
    q_BE.as_matrix() @ v_E + v_B
    X_AB.apply(p_B) + p_A
    (X_AB @ X_BC).apply(v_C) + p_A
    X_AB.inv().apply(p_A) + p_B
    X_AB.t + p_A
    X_AB.r.rotate(v_B) + v_A
    J_B @ w_B + M_B
    R_BE @ J_E @ R_BE.T @ w_B + M_B
    np.linalg.solve(J_B, M_B - np.cross(w_B, J_B @ w_B)) + w_B
    np.linalg.inv(R_BE) @ v_B + v_E
    np.einsum("ij,j->i", R_BE, v_E) + v_B
    np.dot(R_BE, v_E) + v_B
    3 * v_B / m + g
    v_B * t + v_B
    v_B / np.linalg.norm(v_E)
    np.linalg.norm(v_B) + np.linalg.norm(v_E)
    v_B[0] + v_E[0]
    np.concatenate([v_B, v_E])
    np.where(c, v_B, v_B) + v_B
    [v_B, v_E][0] + v_B
    points_B[0] + v_B
    sum(R_BE @ v_E for v_E in x) + v_B
    R_BE[:, 2] + v_B
    R_BE[2, :] + v_E
    -v_B + (v_B if c else w_B)
    R_BE @ g + v_B
    v_E.T @ g
    (R_BE @ points_E.T).T + v_B
    x.R_NE @ v_E + v_N
    m * (v_B + t)
    """.strip().splitlines(),
)
def test_what_fits_is_silent(expression):
    assert lines(f"return {expression.strip()}") == []


@pytest.mark.parametrize(
    "expression",
    """
    v_B + R_BE @ v_B
    R_BE.T @ v_E
    R_AB @ R_BE @ R_BC
    v_E @ R_BE
    q_BE.rotate(v_B)
    x.q_BE.rotate(v_N)
    q_BE.rotate(v_E, inverse=True)
    q_BE.inv().rotate(v_E)
    q_BE.as_matrix() @ v_B
    q_BE.rotate(v_E) + v_E
    X_AB.apply(p_A)
    X_AB @ X_AB
    X_AB.inv().apply(p_B)
    X_AB.t + p_B
    X_AB.r.rotate(v_A)
    X_WB.apply(p_W)
    J_B @ w_E
    R_BE @ J_B @ R_BE.T
    np.linalg.solve(J_B, F_E)
    np.linalg.inv(R_BE) @ v_E
    np.einsum("ij,j->i", R_BE, v_B)
    np.einsum("ij,i->j", R_BE, v_E)
    np.dot(R_BE, v_N)
    np.dot(v_B, v_E)
    np.cross(w_B, v_E)
    np.vdot(v_B, v_E)
    v_B @ v_E
    np.sum(v_B * v_E)
    sum([v_B, w_B, v_E])
    v_B + 3 * v_E / m
    v_B - (v_E if c else w_E)
    R_BE[:, 2] + v_E
    R_BE[2, :] + v_B
    np.where(c, v_B, w_B) + v_E
    J_B + J_E
    np.matmul(R_BE, v_N)
    [R_BE @ v_B for _ in x]
    {"v_B": v_E}
    x.replace(v_B=v_E)
    x["v_B"] + v_E
    R_BE.dot(v_B)
    (lambda u_E: R_BE @ u_E)(v_B)
    (R_BE @ points_B.T).T
    np.linalg.multi_dot([R_AB, R_BE, v_B])
    points_B[0] + v_E
    """.strip().splitlines(),
)
def test_what_does_not_fit_is_found(expression):
    assert lines(f"return {expression.strip()}") == [1]
