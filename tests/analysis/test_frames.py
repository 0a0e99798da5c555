"""Frames by monogram names: rules one by one, what is left alone, and what cannot be read."""

from __future__ import annotations

import math
import sys
import textwrap
from pathlib import Path

import pytest

import archimedes as arc

NAMES = (
    "R_BE, R_BN, R_AB, R_BC, R_EB, q_BE, X_AB, X_BC, X_WB, J_B, J_E, v_B, v_E, v_N, v_A, v_C, w_B, "
    "w_E, p_B, p_E, p_W, p_A, F_B, F_E, M_B, p_AB_E, p_BC_E, p_CB_E, p_AB, p_BC, a_B, x, m, t, g, "
    "points_B, c, i, j"
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
    q_BE * x.q_BC
    x.other.kinematics(w_E)
    p_E[i] + t * v_B[i]
    p_E[i + 1] - v_B[i]
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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("R_BE @ v_N", "R_BE takes E to B; v_N is in N: meant R_BN?"),
        ("R_BE @ v_B", "R_BE takes E to B; v_B is in B: meant R_BE.T?"),
        ("R_BE.T @ v_E", "R_BE.T takes B to E; v_E is in E: meant R_BE?"),
        ("v_B + 2 * p_E", "v_B is in B, 2 * p_E in E: rotate one of them: R_BE @ (2 * p_E)"),
        ("np.cross(v_C, v_B)", "v_C is in C, v_B in B: rotate one of them: R_BC.T @ v_B"),
        ("q_BE.rotate(v_B)", "q_BE takes E to B; v_B is in B: meant inverse=True?"),
        ("X_AB.apply(p_A)", "X_AB takes B to A; p_A is in A: meant X_AB.inv()?"),
        ("R_AB @ R_EB @ v_B", "R_AB takes B to A; R_EB takes B to E: meant R_EB.T?"),
        ("J_B @ w_E", "J_B is in B, w_E in E: rotate one of them: R_BE @ w_E"),
        (
            "v_E @ R_BE",
            "a vector on the left of R_BE, which takes E to B, must be in B; v_E is in E",
        ),
    ],
)
def test_a_finding_says_what_would_be_right(body, message):
    text = f"def f({NAMES}):\n    return {body}"
    assert arc.check_frames(text)[0].message.startswith(message)


def test_what_is_assigned_must_agree_with_its_name():
    body = """
    v_E = R_BE @ v_E
    R_EB = R_BE
    v_B, v_E = v_E, v_B
    x.v_B = v_E
    x["v_B"] = v_E
    F_B += F_E
    J_E = J_B
    p_AC_E = p_AB_E + p_CB_E
    v_B[:] = v_E
    w_B = w_B if c else w_E
    points_B.append(v_E)
    R_BE[:, 0] = v_E
    if (u_E := v_B) is None: pass
    v_B: object = v_E
    w_B = np.where(c, w_E, w_B)
    p_AC = p_BC - p_AB
    """
    found = lines(textwrap.dedent(body).strip())
    assert sorted(set(found)) == list(range(1, 17))


def test_histories_and_components_that_are_written_one_by_one():
    body = """
    for i in range(3):
        p_E[i + 1] = p_E[i] + v_B[i] * t
        v_E[i + 1] = v_E[i] + (R_BE.T @ F_B)[i] / m
        for j in range(3):
            v_E[i] += R_EB[i][j] * v_B[j]
            v_E[i] += R_EB[i, j] * v_B[j]
            v_E[i] += x[i][j] * v_B[j]
            v_E[i] = v_B[i]
    """
    assert lines(textwrap.dedent(body).strip()) == [2, 8]


def test_names_without_a_suffix_take_what_they_are_given():
    body = """
    v = R_BE @ v_E
    v = v / m
    total = np.zeros(3)
    for k in range(3):
        total = total + v
        total += v_E
    u = v_B if c else v_E
    s = u + v_E
    for v in x:
        s = v + v_E
    R = R_BE.T
    s = R @ v_E
    f = lambda a, b_E: a + b_E
    f(v_B, v_B)
    v = [v_B]
    v.append(v_B)
    s = v[0] + v_E
    """
    assert lines(textwrap.dedent(body).strip()) == [6, 12, 14, 17]


def test_attitudes_without_a_suffix_are_known_by_their_use():
    body = """
    a = x.att.rotate(v_B, inverse=True) + v_E
    b = x.att.rotate(v_B)
    y.att.rotate(v_B)
    x.att = y.att
    c = x.att.rotate(v_E)
    d = z.att.as_matrix()
    e = d @ v_E + v_B
    g = d.T @ v_E
    z.att.kinematics(w_E)
    turn.rotate(v_B) + v_B
    turn.rotate(v_E) + v_E
    """
    assert lines(textwrap.dedent(body).strip(), NAMES + ", y, z, turn") == [2, 5, 8, 9]


def test_functions_are_called_with_vectors_in_their_frames():
    text = """
    import numpy as np

    def drag(v_B, *, w_B=None):
        return -v_B

    def gravity_E(p):
        return -p

    def to_body(R_BE, v_E):
        return R_BE @ v_E

    def scale(v, k):
        return k * v

    def rotate(R, v):
        return R @ v

    class Motor:
        def __init__(self, axis_B):
            self.axis = axis_B

        def torque(self, w_B):
            return self.axis + w_B

        @staticmethod
        def of(axis_B):
            return Motor(axis_B)

    def f(v_B, v_E, w_E, v_N, p_E, R_BE, R_BN, R_NE, motor: Motor):
        drag(v_E)
        drag(v_B, w_B=w_E)
        gravity_E(p_E) + v_B
        to_body(R_BN, v_N) + v_B
        to_body(R_BN, v_E)
        to_body(R_NE, v_E) + v_N
        to_body(R_NE, v_E) + v_B
        scale(v_B, 2) + v_B
        scale(v_B, 2) + v_E
        rotate(R_BE, v_E) + v_B
        rotate(R_BE, v_B)
        Motor(v_E)
        motor.torque(w_E)
        Motor.of(v_E)
        Motor(v_B).torque(v_E)
        drag(*v_E)
        to_body(v_E, R_BE)
        return drag(R_BE @ v_E) + v_E
    """
    lines_ = textwrap.dedent(text).splitlines()
    first = next(k for k, line in enumerate(lines_) if line.startswith("def f("))
    found = [finding.line - 1 - first for finding in arc.check_frames(textwrap.dedent(text))]
    assert found == [1, 2, 3, 5, 7, 9, 11, 12, 13, 14, 15, 17, 18]


def test_functions_of_this_package_are_known_by_their_signatures():
    text = """
    from archimedes import environment as env
    from archimedes.environment import air_path_angles, ecef_to_geodetic, ecef_to_eci
    from archimedes.spatial import RigidBody, parallel_axis
    def f(v_B, v_E, p_E, p_NED, p_ECEF, J_B, J_A, r_A, r_B, R_AB, angle, m, x):
        ecef_to_geodetic(p_E)
        ecef_to_geodetic(p_ECEF)
        ecef_to_geodetic(p_NED)
        air_path_angles(v_E)
        p_I, v_I = ecef_to_eci(p_E, v_E, angle=angle)
        p_E, v_E = env.ecef_to_eci(p_E, v_E, angle=angle)
        RigidBody.Input(F_B=v_E, M_B=v_B, m=m, J_B=J_B)
        RigidBody.State(p_E, x.att, v_E, v_B)
        env.ned(0.0, 0.0).rotate(p_NED)
        parallel_axis(J_A, m, r_A)
        parallel_axis(J_A, m, r_B)
    """
    found = [finding.line - 5 for finding in arc.check_frames(textwrap.dedent(text))]
    assert sorted(set(found)) == [3, 4, 6, 7, 8, 9, 11]


@pytest.mark.parametrize(
    "text",
    [
        "def f(V_B, V_E, I_B, I_C, R_BE): return V_B - V_E, I_B + I_C, V_B - R_BE * I_B",
        "def f(v_A, v_B, m_A, m_B, n): return (m_A * v_A + m_B * v_B) / (m_A + m_B) - v_A + v_B",
        "def f(v_N, v_E, c, s): return v_N * c + v_E * s",
        "def f(C_L, C_D, C_M, K_P, K_I, T_0, N_x, S_REF): return C_L + C_D + C_M + K_P + K_I + T_0",
        "def f(t_B, t_E, speed_B, speed_E): return t_B - t_E, speed_B - speed_E",
        "def f(J_W, J_B, F_W, F_B): return J_W.T @ F_W + J_B.T @ F_B",
        "def f(v_B: float, v_E: float): return v_B + v_E",
        "def f(R_BE, v_T): return (R_BE - R_BE.T) / 2, R_BE.T @ R_BE",
        "def f(F_B, F_N, F_W): return F_B + F_N + F_W",
        "x_MAX, T_END, v_REF = 1.0, 2.0, 3.0\nprint(x_MAX + T_END - v_REF)",
        "def f(v_B_max, v_E_max, R_BE_inv, v_B): return v_B_max + v_E_max, R_BE_inv @ v_B",
        "def f(v_b, p_e, R_be): return v_b + p_e, R_be @ v_b",
        "def f(q_BE, q_EN, v_N): return (q_EN * q_BE).rotate(v_N), (q_BE * q_EN).rotate(v_N)",
        "def f(v_B, v_E, frame): return v_B if frame == 'body' else v_E",
        "import pandas as pd\ndef f(data, v_B): return data.apply(v_B).T + data.rotate(3)",
        "def f(v_B, v_E): v_B = 3.0; v_E = 2.0; return v_B + v_E",
        "def f(p_AB, p_AC): p_AM = 0.5 * (p_AB + p_AC); p_AB = 1e-3 * p_AB; return p_AM",
        "def f(R_BN, v_NED, R_NED_ECEF, v_ECEF): return R_BN @ (v_NED + R_NED_ECEF @ v_ECEF)",
        "# frames: E = NED\ndef f(v_E, v_NED, R_BE): return R_BE @ (v_E + v_NED)",
        "# frames: R_BE takes B to E\ndef f(R_BE, v_B, v_E): return R_BE @ v_B + v_E",
        "def f(R_AB, T_AB, p_A): return R_AB @ T_AB + p_A, R_AB.T @ (p_A - T_AB)",
        "def f(C_B_I, C_I_B, v_B, v_I): return C_B_I @ v_I + v_B, C_B_I.transpose() @ v_B + v_I",
        "def f(X_BG, X_WB, p_GP):\n    p_BP = X_BG @ p_GP\n    p_WP = X_WB @ p_BP",
        "def f(r_BN_N, dcm_BN, r_CB_B):\n    r_CN_N = r_BN_N + dcm_BN.T @ r_CB_B",
        "def f(R_WB, r_B, p_W):\n    p_i_W = p_W[None, :] + (R_WB @ r_B.T).T\n    return p_i_W",
        "def f(v_BN_N, omega_BN_B, omega_RN_R, R_BR): return omega_BN_B - R_BR @ omega_RN_R",
        "def f(R_BE0, R_BE, v_E, v_E0): return R_BE0 @ v_E, R_BE @ v_E0, R_BE0.T @ R_BE0 @ v_E",
        "def f(X_WB1, X_B1B2, p_B2, p_B1): return (X_WB1 @ X_B1B2).apply(p_B2), X_WB1.apply(p_B1)",
        "import numpy as np\ndef f(omega_E, p_I, v_I): return v_I - np.cross(omega_E, p_I)",
        "def f(X_TR, X_TE, y_TR): return X_TR @ X_TE.T, X_TE.T @ y_TR",
        "def f(R_EB, P_B, M_B, A_B): return R_EB @ P_B @ R_EB.T + R_EB @ M_B @ R_EB.T, A_B",
        "from math import *\ndef f(u_B, w_B, th):\n    v_E = u_B * cos(th) + w_B * sin(th)",
        "import archimedes\ndef f(u_B, v_B, cpsi, spsi):\n    x_E = u_B * cpsi - v_B * spsi",
        "def f(dp_E_dv_B, v_B, p_E): return p_E + dp_E_dv_B @ v_B",
        "import numpy as np\ndef f(R_BE, w_B, dt):\n"
        "    R_BE = (np.eye(3) - skew(w_B) * dt) @ R_BE\n    dR_BE = -skew(w_B) @ R_BE",
        "def f(states, x_B): states.rotate(x_B)\nclass A:\n    def rotate(self, v): return v",
    ],
)
def test_what_is_no_frame_is_left_alone(text):
    report = arc.check_frames(text + "\n")
    assert report.ok, str(report)


def test_comments_silence_a_statement_or_a_function():
    text = """
    def f(v_B, v_E):
        a = v_B + v_E  # frames: ignore
        b = v_B + v_E  # frames: ignore (flat Earth)
        # frames: ignore: the axes coincide here
        c = (v_B
             + v_E)
        d = v_B + v_E
        e = "# frames: ignore", v_B + v_E
        return a, b, c, d, e

    def g(v_B, v_E):  # frames: ignore
        return v_B + v_E
    """
    assert [finding.line for finding in arc.check_frames(textwrap.dedent(text))] == [8, 9]


def test_files_folders_pages_and_functions_can_be_checked(tmp_path):
    (tmp_path / "drag.py").write_text("def drag(v_B):\n    return -v_B\n")
    model = tmp_path / "model.py"
    model.write_text("from drag import drag\ndef f(v_E):\n    return drag(v_E)\n")
    page = tmp_path / "page.md"
    page.write_text("Text\n```python\nv_B + v_E\n```\n```\nv_B + v_E\n```\n```python\n...(\n```\n")
    for target in (model, str(model), tmp_path, [model, tmp_path / "drag.py"]):
        report = arc.check_frames(target)
        assert [(f.file, f.line) for f in report] == [(str(model), 3)]
    assert [f.line for f in arc.check_frames(page)] == [3]
    report = arc.check_frames(faulty)
    assert report[0].file == __file__ and report[0].expression == "v_B + v_E"
    own = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert own[report[0].line - 1].strip() == "return v_B + v_E"
    assert arc.check_frames(arc.compile(faulty)) == report
    assert report[0] in arc.check_frames(sys.modules[__name__])
    assert arc.check_frames("v_B + v_E")[0].file == "<source>"
    assert isinstance(report, arc.FrameReport) and not report.ok
    assert str(arc.check_frames("x = 1")) == "nothing to report for 1 source"


def faulty(v_B, v_E):
    return v_B + v_E


def test_what_cannot_be_read_is_said(tmp_path):
    broken, latin, deep = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"
    broken.write_text("x = 1\ndef f(:\n")
    latin.write_bytes(b"x = '\xe9\xff'\n")
    deep.write_text("x = " + "(" * 250 + "1" + ")" * 250 + "\n")
    (tmp_path / "d.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "e.py").write_text("x = " + "-" * 5000 + "1\n")
    report = arc.check_frames(tmp_path)
    assert [Path(f.file).name for f in report] == ["a.py", "b.py", "c.py", "d.py", "e.py"]
    assert report[0].line == 2 and report[0].message.startswith("cannot be read: ")
    assert all("cannot be read" in f.message or "nested too deeply" in f.message for f in report)
    with pytest.raises(FileNotFoundError, match=r"check_frames: nowhere\.py: no such file"):
        arc.check_frames("nowhere.py")
    with pytest.raises(TypeError, match="takes a file, a folder, source text or a function, got 3"):
        arc.check_frames(3)
    with pytest.raises(ValueError, match="the source of sin is not available"):
        arc.check_frames(math.sin)


def test_hostile_sources_are_answered():
    sums = "x = " + " + ".join(["v_B"] * 3000) + " + v_E\n"
    chain = "if a:\n    x = v_B\n" + "elif a:\n    x = v_B + v_E\n" * 300
    calls = "".join(f"def f{k}(v):\n    return f{k + 1}(v) + f{k + 1}(v)\n" for k in range(200))
    ring = "def f(v): return g(v)\ndef g(v): return f(v)\nclass A(B): pass\nclass B(A): pass\n"
    loops = "".join("    " * k + f"for i{k} in x:\n" for k in range(18))
    assert len(arc.check_frames(sums)) == 1
    assert len(arc.check_frames(chain)) == 300
    assert arc.check_frames(calls + "f0(v_B)\n" + ring + "f(v_B) + A(v_B)\n").ok
    assert len(arc.check_frames(loops + "    " * 18 + "s = v_B + v_E\n")) == 1
    assert arc.check_frames("from . import x\nfrom .... import y\nimport a.b.c as d\nd.f(v_B)").ok
    assert arc.check_frames("").ok and arc.check_frames("# nothing\n").ok


@pytest.mark.long
def test_a_hundred_thousand_lines():
    block = "def f{k}(R_BE, v_E, v_B):\n    a = R_BE @ v_E\n    b = a + v_B\n    return a + v_E\n"
    report = arc.check_frames("".join(block.replace("{k}", str(k)) for k in range(25_000)))
    assert [f.line for f in report] == list(range(4, 100_001, 4))
