"""The benchmark bicycle: its linearised motion from the rows of rolling, and steps with contact.

Legend: lean and steer are s = (phi, delta), positive to the right, and of the linearised motion
``M s'' + v C1 s' + (g K0 + v^2 K2) s = f`` with the torques f about the line of contact and about
the steering axis. The published model has z down and y to the right, this one z up and y to the
left. Wheels are disks without thickness, which roll without slip: K v = 0.
Source: Meijaard, Papadopoulos, Ruina and Schwab, Linearized dynamics equations for the balance and
steer of a bicycle, Proceedings of the Royal Society A 463, 2007, tables 1 and 2 and section 5.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import archimedes as arc
from archimedes import multibody as mb

__all__ = ["PUBLISHED", "bicycle", "eigenvalues", "lateral_step", "linearised", "ride", "stable"]

GRAVITY, WHEELBASE, TRAIL, TILT = 9.81, 1.02, 0.08, np.pi / 10
REAR, FRONT = 0.3, 0.35
PUBLISHED = {
    "M": [[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]],
    "C1": [[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]],
    "K0": [[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]],
    "K2": [[0.0, 76.59734589573222], [0.0, 2.65431523794604]],
    "weave": 4.29238253634111,
    "capsize": 6.02426201538837,
    # at 5 m/s: castering, weave, capsize
    "eigenvalues": [
        -14.07838969279822,
        -0.77534188219585 - 4.46486771378823j,
        -0.77534188219585 + 4.46486771378823j,
        -0.32286642900409,
    ],
}
#: Where in v (9,) the rate of lean, steer and the turning of the rear wheel are.
LEAN, REAR_WHEEL, STEER = 3, 6, 7
#: Where in v is what moves to the side: sideways, lean, yaw, steer.
SIDEWAYS = [1, LEAN, 5, STEER]


@cache
def bicycle():
    """Return the bicycle, whose origin is where the rear wheel touches the ground."""
    b = mb.Builder("bicycle")
    frame = [[9.2, 0.0, -2.4], [0.0, 11.0, 0.0], [-2.4, 0.0, 2.8]]
    fork = [[0.05892, 0.0, 0.00756], [0.0, 0.06, 0.0], [0.00756, 0.0, 0.00708]]
    ahead = WHEELBASE + TRAIL
    b.add_body("frame", mass=85.0, com=[0.3, 0.0, 0.9], inertia=frame)
    b.add_body("rear", mass=2.0, inertia=[0.0603, 0.12, 0.0603])
    b.attach("rear", "frame", joint="rear", axis=[0, 1, 0], position=[0, 0, REAR])
    b.add_body("fork", mass=4.0, com=[0.9 - ahead, 0.0, 0.7], inertia=fork)
    down = [np.sin(TILT), 0.0, -np.cos(TILT)]
    b.attach("fork", "frame", joint="steer", axis=down, position=[ahead, 0.0, 0.0])
    b.add_body("front", mass=3.0, inertia=[0.1405, 0.28, 0.1405])
    b.attach("front", "fork", joint="front", axis=[0, 1, 0], position=[-TRAIL, 0.0, FRONT])
    return b.build(base="floating")


def rolling_rows(q):
    """Return the matrix K (6, nv) of the velocities where the wheels touch the ground."""
    model, rows = bicycle(), []
    for wheel, radius in (("rear", REAR), ("front", FRONT)):
        axle = mb.frame_pose(model, q, wheel).r.as_matrix()[:, 1]
        down = axle[2] * axle - np.array([0.0, 0.0, 1.0])
        x, y, z = radius * down / np.sqrt(np.sum(down * down))
        zero = 0.0 * x
        arm = np.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
        J = mb.frame_jacobian(model, q, wheel, "aligned")
        rows.append(J[:3] - arm @ J[3:])
    return np.concatenate(rows)


def tilted(lean, steer):
    """Return the configuration (nq,) with both wheels on the ground, to the first order."""
    change = [0.0 * lean] * LEAN + [lean, 0.0, 0.0, 0.0, steer, 0.0]
    return mb.integrate(bicycle(), mb.neutral(bicycle()), np.stack(change))


def moving(q, lean_rate, steer_rate, speed):
    """Return the velocity (nv,) with which the wheels roll."""
    chosen = np.eye(bicycle().nv)[[LEAN, STEER, REAR_WHEEL]]
    rates = np.stack([lean_rate, steer_rate, speed / REAR])
    known = np.concatenate([np.zeros(6), rates])
    return np.linalg.solve(np.concatenate([rolling_rows(q), chosen]), known)


def acceleration(s, rates, torques, speed):
    """Return s'' (2,) of lean and steer, their rates and torques, (2,) each."""
    model, q = bicycle(), tilted(s[0], s[1])
    v = moving(q, rates[0], rates[1], speed)
    K = rolling_rows(q)
    bend = arc.jac(lambda t: rolling_rows(mb.integrate(model, q, t * v)))(0.0 * speed) @ v
    tau = torques[0] * np.eye(model.nv)[LEAN] + torques[1] * np.eye(model.nv)[STEER]
    mass = np.block([[mb.crba(model, q), K.T], [K, np.zeros((6, 6))]])
    left = np.concatenate([tau - mb.rnea(model, q, v, np.zeros(model.nv)), -bend])
    return np.linalg.solve(mass, left)[[LEAN, STEER]]


@cache
def linearised(speed=1.0):
    """Return the matrices M, C1, K0 and K2, from derivatives at rest and at a speed."""
    nothing = np.zeros(2)
    slopes = arc.jac(acceleration, argnums=(0, 1, 2))
    still, _, mobility = slopes(nothing, nothing, nothing, np.float64(0.0))
    turned, damped, _ = slopes(nothing, nothing, nothing, np.float64(speed))
    M = np.linalg.inv(mobility)
    return {
        "M": M,
        "C1": -M @ damped / speed,
        "K0": -M @ still / GRAVITY,
        "K2": -M @ (turned - still) / speed**2,
    }


def state_matrix(matrices, speed):
    """Return A (4, 4) of the lean and steer and their rates: x' = A x."""
    M, C1, K0, K2 = (np.asarray(matrices[key]) for key in ("M", "C1", "K0", "K2"))
    right = np.concatenate([-(GRAVITY * K0 + speed**2 * K2), -speed * C1], axis=1)
    return np.concatenate([np.eye(4)[2:], np.linalg.solve(M, right)])


def eigenvalues(speed):
    """Return the eigenvalues (4,) in 1/s of the linearised motion, by their real parts."""
    return np.sort_complex(np.linalg.eigvals(state_matrix(linearised(), speed)))


def stable(growth, low, high):
    """Return the speed between two at which the largest growth in 1/s passes zero."""
    from scipy.optimize import brentq

    return brentq(lambda speed: np.max(growth(speed).real), low, high, xtol=1e-13)


SHAPES = [
    mb.cylinder(wheel, radius, 0.0, rotation=[[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    for wheel, radius in (("rear", REAR), ("front", FRONT))
]


def step(x, h):
    """Return the state after a step with contact: disks that touch the ground and never slip."""
    return mb.contact_step(bicycle(), x, h, SHAPES, mb.Ground(friction=np.inf))


@cache
def lateral_kernel():
    """Return the derivative of a step in what moves to the side, as a function of speed and h."""
    model = bicycle()

    def end(change, speed, h):
        q = mb.neutral(model)
        v = moving(q, 0.0 * speed, 0.0 * speed, speed) + change[model.nv :]
        y = step(mb.State(mb.integrate(model, q, change[: model.nv]), v), h)
        return np.concatenate([mb.difference(model, q, y.q), y.v])

    slope = arc.jac(end)
    # Place and heading do not matter.
    chosen = [LEAN, STEER, *(model.nv + k for k in SIDEWAYS)]
    return lambda speed, h: slope(np.zeros(2 * model.nv), speed, h)[np.ix_(chosen, chosen)]


def lateral_step(speed, h):
    """Return the eigenvalues (4,) in 1/s of a step with contact, by its derivative."""
    found = np.linalg.eigvals(lateral_kernel()(np.float64(speed), h))
    # Two more are zero: velocities across the wheels do not outlast a step.
    found = found[np.argsort(np.abs(found))[2:]]
    return np.sort_complex(np.log(found.astype(complex)) / h)


def ride(speed, seconds, h, lean=1e-6):
    """Return lean and steer (2,) at the end of a ride that begins with a lean."""
    model = bicycle()
    q = tilted(np.float64(lean), np.float64(0.0))
    x = mb.State(q, moving(q, np.float64(0.0), np.float64(0.0), np.float64(speed)))
    run = arc.compile(lambda x: arc.fori_loop(0, round(seconds / h), lambda k, x: step(x, h), x))
    end = run(x)
    up = mb.frame_pose(model, end.q, "frame").r.as_matrix()
    return np.array([np.arctan2(up[2, 1], up[2, 2]), end.q[8]])


def published_ride(speed, seconds, lean=1e-6):
    """Return lean and steer (2,) at the end of the same ride by the published matrices."""
    from scipy.linalg import expm

    return (expm(seconds * state_matrix(PUBLISHED, speed)) @ [lean, 0.0, 0.0, 0.0])[:2]
