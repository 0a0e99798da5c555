"""Whole algorithms, as users write them: what the generated code is tested with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import archimedes as arc
from archimedes.spatial import KinematicTree, Quaternion, RigidBody, Transformation


class Case(NamedTuple):
    """A function with example arguments and the keywords that codegen gets."""

    function: Any
    args: tuple[Any, ...]
    keywords: dict[str, Any]


# ---- an extended Kalman filter: bearing and range of a moving point -----------------------------


@arc.struct
class Estimate:
    x: np.ndarray = arc.field(units="m, m/s")
    P: np.ndarray = arc.field(units="m^2, m^2/s^2")


def motion(x, dt):
    return np.concatenate([x[:2] + dt * x[2:], x[2:]])


def sensor(x):
    return np.stack([np.hypot(x[0], x[1]), np.arctan2(x[1], x[0])])


def ekf_step(est, y, dt, Q, R):
    """Predict with constant velocity, correct with a range and a bearing."""
    x = motion(est.x, dt)
    F = arc.jac(motion)(est.x, dt)
    P = F @ est.P @ F.T + Q
    H = arc.jac(sensor)(x)
    S = H @ P @ H.T + R
    K = np.linalg.solve(S, H @ P).T
    A = np.eye(4) - K @ H
    return Estimate(x + K @ (y - sensor(x)), A @ P @ A.T + K @ R @ K.T)


EKF = Case(
    ekf_step,
    (
        Estimate(np.array([10.0, 5.0, 1.0, -0.5]), np.diag([4.0, 4.0, 1.0, 1.0])),
        np.array([11.0, 0.4]),
        0.1,
        np.diag([0.01, 0.01, 0.1, 0.1]),
        np.diag([0.25, 0.001]),
    ),
    {"return_names": ("est",), "state": "est", "parameters": ("Q", "R")},
)


# ---- a biquad filter over a block of samples ----------------------------------------------------


def biquad(z, u, b, a):
    """Direct form II transposed, one block of samples."""

    def sample(z, u):
        y = b[0] * u + z[0]
        return np.stack([b[1] * u - a[1] * y + z[1], b[2] * u - a[2] * y]), y

    return arc.scan(sample, z, u)


BIQUAD = Case(
    biquad,
    (
        np.zeros(2),
        np.sin(np.arange(16.0)),
        np.array([0.2, 0.4, 0.2]),
        np.array([1.0, -0.4, 0.2]),
    ),
    {"return_names": ("z", "y"), "state": "z", "parameters": ("b", "a")},
)


# ---- a regulator with saturation and integral action --------------------------------------------


def regulator(state, r, y, K, limit):
    """State feedback on tracking error and its integral, without wind-up."""
    error = r - y
    raw = K[0] * error + K[1] * state["integral"]
    u = np.clip(raw, -limit, limit)
    free = np.abs(raw) < limit
    integral = np.where(free, state["integral"] + 0.01 * error, state["integral"])
    return {"integral": integral, "steps": state["steps"] + 1}, u


REGULATOR = Case(
    regulator,
    ({"integral": np.zeros(2), "steps": np.int64(0)}, np.ones(2), np.zeros(2), (2.0, 0.5), 1.5),
    {"return_names": ("state", "u"), "state": "state"},
)


# ---- ten Runge-Kutta steps of a rigid body ------------------------------------------------------


def rk4_step(f, x, u, dt):
    def moved(k, h):
        return arc.tree.map(lambda a, b: a + h * b, x, k)

    k1 = f(0.0, x, u)
    k2 = f(0.0, moved(k1, dt / 2), u)
    k3 = f(0.0, moved(k2, dt / 2), u)
    k4 = f(0.0, moved(k3, dt), u)
    return arc.tree.map(
        lambda a, p, q, r, s: a + dt / 6 * (p + 2 * q + 2 * r + s), x, k1, k2, k3, k4
    )


def body_steps(x, u, dt):
    """Move a rigid body by ten steps of dt."""
    return arc.scan(lambda c, _: (rk4_step(RigidBody.dynamics, c, u, dt), None), x, length=10)[0]


BODY = Case(
    body_steps,
    (
        RigidBody.State(
            pos=np.zeros(3),
            att=Quaternion(np.array([1.0, 0.0, 0.0, 0.0])),
            v_B=np.array([10.0, 0.0, 1.0]),
            w_B=np.array([0.1, 0.2, 0.3]),
        ),
        RigidBody.Input(
            F_B=np.array([1.0, 0.0, -9.0]),
            M_B=np.array([0.1, 0.0, 0.0]),
            m=2.0,
            J_B=np.diag([1.0, 2.0, 3.0]),
        ),
        0.01,
    ),
    {"return_names": ("x",), "state": "x"},
)


# ---- state feedback with the gain of a Riccati equation -----------------------------------------

A_CART = np.array([[1.0, 0.1], [0.0, 1.0]])
B_CART = np.array([[0.005], [0.1]])


def lqr_step(x, P):
    """Feedback and one step of the Riccati recursion."""
    S = np.eye(1) + B_CART.T @ P @ B_CART
    K = np.linalg.solve(S, B_CART.T @ P @ A_CART)
    u = -K @ x
    P = np.eye(2) + A_CART.T @ P @ (A_CART - B_CART @ K)
    return A_CART @ x + B_CART @ u, P, u


LQR = Case(
    lqr_step,
    (np.array([1.0, 0.0]), np.eye(2)),
    {"return_names": ("x", "P", "u"), "state": ("x", "P")},
)


# ---- a model with a table of two variables ------------------------------------------------------

MACH = np.linspace(0.0, 1.0, 6)
ALPHA = np.deg2rad(np.linspace(-10.0, 20.0, 7))
CL = np.outer(1.0 + 0.3 * MACH, 0.2 + 5.0 * ALPHA)
lift_table = arc.interpolant((MACH, ALPHA), CL)


def lift(mach, alpha, q, S):
    """Lift from a table over Mach number and angle of attack."""
    return q * S * lift_table(mach, alpha)


LIFT = Case(lift, (0.33, 0.05, 1000.0, 16.0), {"return_names": ("L",)})


# ---- a chain of frames --------------------------------------------------------------------------


def camera_to_ground(q, gimbal, p):
    """Take a point from camera coordinates to the ground frame."""
    frames = KinematicTree("ground")
    frames.add_frame("body", "ground", Transformation.from_pose(np.array([0.0, 0.0, -100.0]), q))
    turn = Quaternion.from_euler(gimbal, seq="xyz")
    frames.add_frame("camera", "body", Transformation.from_pose(np.array([1.0, 0.0, 0.2]), turn))
    return frames.get_transform("camera", "ground").apply(p)


CAMERA = Case(
    camera_to_ground,
    (
        Quaternion(np.array([0.98334744, 0.0342708, 0.10602051, 0.14357218])),
        np.array([0.1, -0.2, 0.3]),
        np.array([10.0, 1.0, 2.0]),
    ),
    {"return_names": ("p_ground",)},
)


# ---- Kepler's equation, solved in the step ------------------------------------------------------

kepler_solver = arc.implicit(lambda E, M, e: E - e * np.sin(E) - M, max_steps=20)


def kepler(M, e):
    """Eccentric anomaly of a mean anomaly, by a bounded Newton iteration."""
    return kepler_solver(M, M, e)


KEPLER = Case(kepler, (1.0, 0.3), {"return_names": ("E",)})


# ---- everything else in one: branches, bools, integers, small solves, static fields -------------


class Modes(NamedTuple):
    gain: float
    matrix: Any


@arc.struct
class Setup:
    table: np.ndarray
    order: int = arc.field(static=True, default=2)
    label: str = arc.field(static=True, default="a")


def mixed(mode, enabled, x, setup, modes):
    """Choose, solve, count."""
    y = arc.switch(mode, [lambda v: v, lambda v: -v, lambda v: v * v], x)
    z = np.linalg.solve(modes.matrix + np.eye(3), y) * modes.gain
    count = np.sum(z > 0)
    shaped = np.reshape(setup.table * setup.order, (2, 2, 2))
    return {"z": np.where(enabled, z, 0.0), "count": count, "any": np.any(z > 1.0), "cube": shaped}


MIXED = Case(
    mixed,
    (
        np.int64(1),
        np.bool_(True),
        np.array([1.0, -2.0, 3.0]),
        Setup(np.arange(8.0)),
        Modes(2.0, np.ones((3, 3))),
    ),
    {},
)

CASES = {
    "ekf": EKF,
    "biquad": BIQUAD,
    "regulator": REGULATOR,
    "lqr": LQR,
    "body": BODY,
    "lift": LIFT,
    "camera": CAMERA,
    "kepler": KEPLER,
    "mixed": MIXED,
}
