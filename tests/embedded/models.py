"""Models that run on emulated processors, in plain NumPy."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.spatial import Quaternion, RigidBody

DT = 0.02


def rigid_body_step(x: RigidBody.State, u: RigidBody.Input) -> RigidBody.State:
    """One step of the 6-dof body, Euler's method on each leaf."""
    rate = RigidBody.dynamics(0.0, x, u)
    return arc.tree.map(lambda value, change: value + DT * change, x, rate)


def rigid_body_inputs(count: int) -> list:
    rng = np.random.default_rng(11)
    inputs = []
    for _ in range(count):
        A = rng.normal(size=(3, 3))
        x = RigidBody.State(
            pos=rng.normal(size=3) * 100.0,
            att=Quaternion(rng.normal(size=4)),
            v_B=rng.normal(size=3) * 10.0,
            w_B=rng.normal(size=3),
        )
        u = RigidBody.Input(
            F_B=rng.normal(size=3) * 50.0,
            M_B=rng.normal(size=3),
            m=float(rng.uniform(1.0, 5.0)),
            J_B=A @ A.T + np.eye(3),
        )
        inputs.append((x, u))
    return inputs


@arc.struct
class Track:
    """Position and velocity in a plane, and their covariance."""

    x: np.ndarray = arc.field(units="m, m, m/s, m/s")
    P: np.ndarray


def _move(x: np.ndarray) -> np.ndarray:
    speed = np.sqrt(x[2] ** 2 + x[3] ** 2)
    return np.array([x[0] + DT * x[2], x[1] + DT * x[3], x[2] - 0.1 * DT * speed * x[2], x[3]])


def _radar(x: np.ndarray) -> np.ndarray:
    return np.array([np.hypot(x[0], x[1]), np.arctan2(x[1], x[0])])


def kalman_step(track: Track, y: np.ndarray, Q: np.ndarray, R: np.ndarray) -> Track:
    """Extended Kalman filter of a target seen by a radar (range and bearing)."""
    x, F = _move(track.x), arc.jac(_move)(track.x)
    P = F @ track.P @ F.T + Q
    H = arc.jac(_radar)(x)
    error = y - _radar(x)
    error = np.array([error[0], np.arctan2(np.sin(error[1]), np.cos(error[1]))])
    S = H @ P @ H.T + R
    K = np.linalg.solve(S, H @ P).T
    return Track(x=x + K @ error, P=(np.eye(4) - K @ H) @ P)


def kalman_inputs(count: int) -> list:
    rng = np.random.default_rng(12)
    inputs = []
    for _ in range(count):
        A = rng.normal(size=(4, 4))
        track = Track(x=rng.normal(size=4) * 100.0, P=A @ A.T + np.eye(4))
        y = np.array([rng.uniform(10.0, 300.0), rng.uniform(-np.pi, np.pi)])
        inputs.append((track, y, 0.01 * np.eye(4), np.diag([4.0, 0.01])))
    return inputs


_MACH = np.array([0.0, 0.4, 0.8, 0.9, 1.0, 1.2, 2.0])
_ALPHA = np.deg2rad(np.array([-10.0, -4.0, 0.0, 5.0, 12.0, 20.0]))
_LIFT = np.sin(2.0 * _ALPHA)[None, :] / np.sqrt(np.abs(1.0 - _MACH**2) + 0.1)[:, None]
lift_coefficient = arc.interpolant((_MACH, _ALPHA), _LIFT, method="linear")


def lift(mach: float, alpha: float, pressure: float) -> dict:
    """Lift per area from a table over Mach number and angle of attack."""
    coefficient = lift_coefficient(mach, alpha)
    return {"coefficient": coefficient, "lift": coefficient * pressure * np.cos(alpha)}


def lift_inputs(count: int) -> list:
    rng = np.random.default_rng(13)
    inside = [(rng.uniform(0, 2), rng.uniform(-0.17, 0.35), 1e4) for _ in range(count - 4)]
    on_the_grid = [(0.8, float(_ALPHA[3]), 1e4), (2.0, float(_ALPHA[-1]), 1e4)]
    return [*inside, *on_the_grid, (-1.0, 0.0, 1e4), (5.0, 2.0, 1e4)]


#: Function and a maker of inputs, by name.
MODELS = {
    "rigid body": (rigid_body_step, rigid_body_inputs),
    "Kalman filter": (kalman_step, kalman_inputs),
    "table lookup": (lift, lift_inputs),
}
