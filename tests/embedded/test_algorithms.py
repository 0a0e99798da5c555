"""Whole algorithms in C: the bits of Python, and the numbers of other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import RegularGridInterpolator
from scipy.linalg import solve_discrete_are
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

import archimedes as arc

from . import algorithms
from .algorithms import CASES
from .running import Steps, assert_same_bits, leaves_of
from .toolchain import needs

pytestmark = needs("gcc")
STEPS = 5


def generate(name: str, **more):
    case = CASES[name]
    return arc.codegen(case.function, case.args, **{**case.keywords, **more})


@pytest.mark.parametrize("float_type", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_verified_against_the_interpreter(name, float_type):
    project = generate(name, float_type=float_type, verify=True)
    assert project.verification.samples == 48
    assert "same bits as Python" in repr(project)


@pytest.mark.parametrize("scratch", ["stack", "workspace"])
@pytest.mark.parametrize("name", CASES)
def test_steps_in_c_are_steps_in_python(name, scratch):
    """The state goes on for some steps; Python runs its own compiled function."""
    case = CASES[name]
    project = generate(name, options={"scratch": scratch})
    c, f = Steps(project, ("-O2",)), arc.compile(case.function)
    arguments = dict(zip(f.signature.positional, case.args))
    state = case.keywords.get("state", ())
    for _ in range(STEPS if state else 1):
        result = f(*arguments.values())
        for ours, theirs in zip(c.run(), leaves_of(result), strict=True):
            assert_same_bits(ours, theirs, name)
        values = result if isinstance(result, tuple) else (result,)
        named = dict(zip(case.keywords.get("return_names", ()), values))
        for key in (state,) if isinstance(state, str) else state:
            arguments[key] = named[key]


@pytest.mark.parametrize("name", CASES)
def test_integers_of_32_bits(name):
    generate(name, int_type=np.int32, verify=True)


# ---- independent numbers -----------------------------------------------------------------------


def test_extended_kalman_filter_is_the_textbook_one():
    """Joseph form with hand-written Jacobians, explicit inverse."""
    est, y, dt, Q, R = CASES["ekf"].args
    F = np.eye(4) + dt * np.eye(4, k=2)
    x, P = F @ est.x, F @ est.P @ F.T + Q
    r = np.linalg.norm(x[:2])
    H = np.array([[x[0] / r, x[1] / r, 0, 0], [-x[1] / r**2, x[0] / r**2, 0, 0]])
    K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
    x = x + K @ (y - np.array([r, np.arctan2(x[1], x[0])]))
    P = (np.eye(4) - K @ H) @ P
    outputs = Steps(generate("ekf")).run()
    np.testing.assert_allclose(outputs[0], x, rtol=1e-12)
    np.testing.assert_allclose(outputs[1], P, rtol=1e-11, atol=1e-13)


def test_biquad_is_scipys():
    _, u, b, a = CASES["biquad"].args
    c = Steps(generate("biquad"))
    blocks = [c.run()[1] for _ in range(STEPS)]
    wanted = lfilter(b, a, np.tile(u, STEPS))
    np.testing.assert_allclose(np.concatenate(blocks), wanted, rtol=1e-12, atol=1e-14)


def test_rigid_body_is_scipys():
    """Newton and Euler's equations written out, integrated by SciPy to 1e-12."""
    x, u, dt = CASES["body"].args
    J = np.asarray(u.J_B)

    def rates(t, s):
        q, v, w = s[3:7], s[7:10], s[10:13]
        R = Rotation.from_quat(q[[1, 2, 3, 0]]).as_matrix()  # body to inertial
        wx = np.array([0.0, *w])
        dq = 0.5 * np.array(
            [
                -wx[1:] @ q[1:],
                *(q[0] * wx[1:] + np.cross(q[1:], wx[1:])),
            ]
        )
        dv = u.F_B / u.m - np.cross(w, v)
        dw = np.linalg.solve(J, u.M_B - np.cross(w, J @ w))
        return np.concatenate([R @ v, dq, dv, dw])

    start = np.concatenate([x.pos, x.att.array, x.v_B, x.w_B])
    exact = solve_ivp(rates, (0.0, 10 * dt), start, rtol=1e-12, atol=1e-12, method="DOP853").y[
        :, -1
    ]
    np.testing.assert_allclose(np.concatenate(Steps(generate("body")).run()), exact, atol=2e-9)


def test_table_is_scipys():
    scipys = RegularGridInterpolator((algorithms.MACH, algorithms.ALPHA), algorithms.CL)
    c = Steps(generate("lift"))
    rng = np.random.default_rng(1)
    for mach, alpha in zip(rng.uniform(0, 1, 20), rng.uniform(-0.17, 0.34, 20)):
        c.set("mach", mach)
        c.set("alpha", alpha)
        wanted = 1000.0 * 16.0 * scipys([mach, alpha])[0]
        np.testing.assert_allclose(c.run()[0], wanted, rtol=1e-11, atol=1e-8)


def test_frames_are_scipys():
    q, gimbal, p = CASES["camera"].args
    turn = Rotation.from_euler("xyz", gimbal).as_matrix()
    body = Rotation.from_quat(q.array[[1, 2, 3, 0]]).as_matrix()
    wanted = body @ (turn @ p + [1.0, 0.0, 0.2]) + [0.0, 0.0, -100.0]
    np.testing.assert_allclose(Steps(generate("camera")).run()[0], wanted, rtol=1e-12)


def test_implicit_function_is_the_root():
    c = Steps(generate("kepler"))
    for M in np.linspace(0.1, 3.0, 7):
        c.set("M", M)
        root = brentq(lambda E, M=M: E - 0.3 * np.sin(E) - M, 0.0, 4.0, xtol=1e-14)
        np.testing.assert_allclose(c.run()[0], root, rtol=1e-13)


def test_regulator_counts_and_saturates():
    c = Steps(generate("regulator"))
    for k in range(1, 4):
        integral, steps, u = c.run()
        assert int(steps) == k
        np.testing.assert_array_equal(u, [1.5, 1.5])  # 2 * 1 is beyond the limit
        np.testing.assert_array_equal(integral, [0.0, 0.0])  # and nothing winds up
    c.set("r", np.full(2, 0.5))
    assert c.run()[2].tolist() == [1.0, 1.0]
    assert c.run()[2].tolist() == [1.0 + 0.5 * 0.005, 1.0 + 0.5 * 0.005]


def test_riccati_recursion_converges_to_scipys():
    A, B = algorithms.A_CART, algorithms.B_CART
    c = Steps(generate("lqr"))
    for _ in range(300):
        x, P, u = c.run()
    exact = solve_discrete_are(A, B, np.eye(2), np.eye(1))
    np.testing.assert_allclose(P, exact, rtol=1e-10)
    assert np.linalg.norm(x) < 1e-6 and np.linalg.norm(u) < 1e-6
