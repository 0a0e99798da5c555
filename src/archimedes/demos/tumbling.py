"""The body of the demonstration: it spins about its intermediate axis and flips over and over.

Legend: J are the principal moments of inertia, H the angular momentum, E the kinetic energy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate import Trajectory, solve_ode
from archimedes.simulate.events.event import Event
from archimedes.spatial import Quaternion, RigidBody
from archimedes.typing import Scalar

#: Seconds of each simulation, and how many states are asked for.
DURATION, OUTPUTS = 40.0, 1000
BATCH_OUTPUTS = 41
TOLERANCES = {"rtol": 1e-10, "atol": 1e-12}
J = np.array([1.0, 2.0, 3.0])


def body() -> tuple[RigidBody.State, RigidBody.Input]:
    """Return a body of 10 kg, free of forces, that spins about its y axis, but not quite."""
    x = RigidBody.State(
        pos=np.zeros(3),
        att=Quaternion.identity(),
        v_B=np.array([0.1, 0.0, 0.0]),
        w_B=np.array([0.02, 2.0, 0.01]),
    )
    return x, RigidBody.Input(F_B=np.zeros(3), M_B=np.zeros(3), m=10.0, J_B=np.diag(J))


def dynamics(t: Scalar, x: RigidBody.State, u: RigidBody.Input) -> RigidBody.State:
    """Return dx/dt; a rate of the quaternion that keeps its norm is left to the solver."""
    return RigidBody(baumgarte=0.0).dynamics(t, x, u)


#: The body flips where its rate about y passes through zero.
FLIP = Event(lambda t, x, u: x.w_B[1])


def simulate(events: Event | None = None) -> Trajectory:
    """Simulate one body."""
    x, u = body()
    options: dict[str, Any] = {"args": (u,), "events": events, **TOLERANCES}
    times = np.linspace(0.0, DURATION, OUTPUTS)
    return solve_ode(dynamics, (0.0, DURATION), x, t_eval=times, **options)


def disperse(count: int, seed: int = 1) -> RigidBody.State:
    """Return the initial states of `count` bodies, each turning a little differently."""
    spread = np.random.default_rng(seed).normal(scale=0.01, size=(count, 3))
    many = tree.map(lambda leaf: np.tile(leaf, (count, 1)), body()[0])
    return many.replace(w_B=many.w_B + spread)


def simulate_batch(x0: RigidBody.State) -> Trajectory:
    """Simulate many bodies in one call, each with its own steps."""
    times = np.linspace(0.0, DURATION, BATCH_OUTPUTS)
    options: dict[str, Any] = {"args": (body()[1],), "in_axes": (0, None), **TOLERANCES}
    return solve_ode(dynamics, (0.0, DURATION), x0, t_eval=times, **options)


def drifts(traj: Trajectory) -> dict[str, float]:
    """Return how far what is conserved has drifted at most, relative to its first value."""
    _, u = body()
    x = traj.x
    energy = RigidBody.kinetic_energy(x, u)
    q = np.asarray(x.att.array)
    errors = {
        "energy": np.abs(energy / energy[..., :1] - 1.0),
        "quaternion norm": np.abs(np.linalg.norm(q, axis=-1) - 1.0),
    }
    for name in ("linear momentum", "angular momentum"):
        h = getattr(RigidBody, name.replace(" ", "_"))(x, u)
        size = np.linalg.norm(h[..., :1, :], axis=-1)
        errors[name] = np.linalg.norm(h - h[..., :1, :], axis=-1) / size
    return {name: float(np.max(values)) for name, values in errors.items()}


def flip_interval() -> float:
    """Return the time between flips in s, in closed form.

    Source: L. D. Landau and E. M. Lifshitz, Mechanics, section 37, equation (37.12): half a period
    of the rates, 4 K(k). Valid for H^2 > 2 E J2; otherwise the axes 1 and 3 change places.
    """
    from scipy.special import ellipk

    w = body()[0].w_B
    twice_energy, h_squared = np.sum(J * w**2), np.sum((J * w) ** 2)
    j1, j2, j3 = J if h_squared > twice_energy * J[1] else J[::-1]
    a = (j3 - j2) * (h_squared - twice_energy * j1)
    m = (j2 - j1) * (twice_energy * j3 - h_squared) / a
    return float(2.0 * ellipk(m) * np.sqrt(j1 * j2 * j3 / a))


def scipy_rates(t: float, x: np.ndarray) -> list[float]:
    """Return dx/dt as one writes it for SciPy: 13 plain numbers, no arrays to make or cut."""
    _, _, _, q0, q1, q2, q3, u, v, w, p, q, r = x.tolist()
    a, b, c = 1.0 - 2.0 * (q2 * q2 + q3 * q3), 2.0 * (q1 * q2 - q0 * q3), 2.0 * (q1 * q3 + q0 * q2)
    d, e, f = 2.0 * (q1 * q2 + q0 * q3), 1.0 - 2.0 * (q1 * q1 + q3 * q3), 2.0 * (q2 * q3 - q0 * q1)
    g, h, i = 2.0 * (q1 * q3 - q0 * q2), 2.0 * (q2 * q3 + q0 * q1), 1.0 - 2.0 * (q1 * q1 + q2 * q2)
    return [
        a * u + b * v + c * w,
        d * u + e * v + f * w,
        g * u + h * v + i * w,
        0.5 * (-q1 * p - q2 * q - q3 * r),
        0.5 * (q0 * p + q2 * r - q3 * q),
        0.5 * (q0 * q - q1 * r + q3 * p),
        0.5 * (q0 * r + q1 * q - q2 * p),
        r * v - q * w,
        p * w - r * u,
        q * u - p * v,
        (2.0 - 3.0) / 1.0 * q * r,
        (3.0 - 1.0) / 2.0 * r * p,
        (1.0 - 2.0) / 3.0 * p * q,
    ]


def scipy_solution(rtol: float = 1e-10, atol: float = 1e-12) -> np.ndarray:
    """Return the states (OUTPUTS, 13) by SciPy's DOP853."""
    from scipy.integrate import solve_ivp

    x, _ = body()
    start = np.concatenate([x.pos, x.att.array, x.v_B, x.w_B])
    times = np.linspace(0.0, DURATION, OUTPUTS)
    options: dict[str, Any] = {"method": "DOP853", "t_eval": times, "rtol": rtol, "atol": atol}
    return solve_ivp(scipy_rates, (0.0, DURATION), start, **options).y.T
