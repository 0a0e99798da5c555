"""Steady flight: the attitude, rates and controls that hold a path, and small motions about it.

Both work for any vehicle with a `world`, a `State(motion, ...)`, `dynamics(t, x, u)` and
`forces(t, x, u)`: states are described in the terms of flight (`FlightState`), which are steady
where the states of a world are not (positions change, quaternions turn).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import compile, jac, jvp
from archimedes.spatial.components import cross
from archimedes.spatial.validation import check_vector
from archimedes.tree import field, struct
from archimedes.vehicles.surroundings import FlightState

__all__ = ["Linearization", "Trim", "linearize", "trim"]

#: In how many parts a turn is tightened while it is searched for.
TIGHTENING = 6


@struct
class Trim:
    """A steady condition: state, controls, and how well they hold it."""

    state: Any = field()
    input: Any = field()
    flight: FlightState = field()
    residual: Any = field()
    success: bool = field(static=True)
    message: str = field(static=True)


def flight_rates(vehicle: Any, t: Any, flight: FlightState, rest: dict[str, Any], u: Any) -> Any:
    """Return the rates of the flight state, and of what else the vehicle's state holds."""
    motion = vehicle.world.state(flight)
    rates = vehicle.dynamics(t, vehicle.State(motion=motion, **rest), u)
    moving = jvp(lambda m: vehicle.world.flight(t, m))(motion, rates.motion)
    return moving, {name: getattr(rates, name) for name in rest}


#: Unknowns and rates of every vehicle; controls and inner states add theirs by name.
UNKNOWNS = ("roll", "pitch", "yaw", "p", "q", "r")
RATES = ("speed", "course", "climb", "roll", "pitch", "yaw", "p", "q", "r", "side force")


def trim(
    vehicle: Any,
    flight: FlightState,
    u: Any,
    rest: dict[str, Any] | None = None,
    *,
    free: Sequence[str] | None = None,
    steady: Sequence[str] | None = None,
    turn_rate: float = 0.0,
    bounds: Any = None,
    tol: float = 1e-9,
) -> Trim:
    """Find attitude, body rates, controls and inner states that hold the velocity of `flight`.

    `flight` gives place and velocity, and where to start the search for `rpy` and `w_B`; `u` is the
    vehicle's `Input` to start from, `rest` the other fields of its state. `free` names the unknowns
    ("roll", "pitch", "yaw", "p", "q", "r", controls and fields of `rest` by name), by default all;
    `steady` the rates that shall vanish ("speed", "course", "climb", "roll", "pitch", "yaw", "p",
    "q", "r", "side force", fields of `rest`), by default all. A turn of `turn_rate` in rad/s is
    coordinated: no side force. `bounds` is a pair of `Input` (lower, upper). The `residual` of the
    result is in m/s^2, rad/s and rad/s^2, in the order of `steady`.
    """
    if not np.any(check_vector(flight.v_NED, 3, "flight.v_NED")):
        raise ValueError("trim: flight.v_NED is zero: steady flight needs a velocity to hold")
    rest = {} if rest is None else {k: np.asarray(v, dtype=float) for k, v in rest.items()}
    start, unravel = tree.ravel((flight.rpy, flight.w_B, u, rest))
    inner = [name for name, value in rest.items() for _ in range(np.size(value))]
    controls = [path.lstrip(".") for path in tree.structure(u).paths()]
    moving = _chosen("free", free, (*UNKNOWNS, *controls, *inner))
    watched = _chosen("steady", steady, (*RATES, *inner))

    def fill(z: Any) -> Any:
        full = np.array(start)
        full[moving] = z
        return unravel(full)

    def residual(z: Any, rate: Any) -> Any:
        rpy, w_B, u, rest = fill(z)
        at = tree.replace(flight, rpy=rpy, w_B=w_B)
        return _unsteadiness(vehicle, at, rest, u, rate)[watched]

    limits = tuple(side[moving] for side in _limits(start, unravel, bounds))
    z = start[moving]
    # A turn is tightened little by little: the search starts near its goal each time.
    for part in np.linspace(1.0 / TIGHTENING, 1.0, TIGHTENING) if turn_rate else [0.0]:
        z, error = _search(residual, z, part * turn_rate, limits)
    rpy, w_B, u, rest = fill(z)
    at = tree.replace(flight, rpy=rpy, w_B=w_B)
    worst = int(np.argmax(np.abs(error)))
    success = bool(np.abs(error[worst]) < tol)
    message = "trimmed"
    if not success:
        message = (
            f"no steady flight found: the rate of {(*RATES, *inner)[watched[worst]]} is left at "
            f"{error[worst]:.3g}; widen the bounds, change speed or altitude, or start nearer"
        )
    state = vehicle.State(motion=vehicle.world.state(at), **rest)
    return Trim(state, u, at, error, success, message)


def _chosen(what: str, names: Sequence[str] | None, known: Sequence[str]) -> list[int]:
    """Return the positions of the names, or of all."""
    if names is None:
        return list(range(len(known)))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"trim: {what} names {unknown}, which are not among {tuple(known)}")
    return [k for k, name in enumerate(known) if name in names]


def _unsteadiness(vehicle: Any, at: FlightState, rest: Any, u: Any, turn_rate: Any) -> Any:
    """Return what vanishes in steady flight, in the order of `RATES` and the inner states."""
    moving, inner = flight_rates(vehicle, 0.0, at, rest, u)
    turn = turn_rate * np.array([0.0, 0.0, 1.0])
    push = moving.v_NED - cross(turn, at.v_NED)
    along = at.v_NED / np.sqrt(np.sum(at.v_NED**2))
    level = np.hypot(along[0], along[1])
    right = np.array([-along[1], along[0], 0.0]) / np.where(level == 0.0, 1.0, level)
    x = vehicle.State(motion=vehicle.world.state(at), **rest)
    side = vehicle.forces(0.0, x, u)[0][1] / vehicle.mass
    track = [np.sum(push * along), np.sum(push * right), -push[2]]
    rates = [np.reshape(rate, (-1,)) for rate in inner.values()]
    return np.concatenate([np.stack(track), moving.rpy - turn, moving.w_B, side[None], *rates])


def _limits(z: Any, unravel: Any, bounds: Any) -> tuple[Any, Any]:
    """Return lower and upper limits of all unknowns: those of the controls, if given."""
    sides = []
    for k, infinity in enumerate((-np.inf, np.inf)):
        rpy, w_B, u, rest = unravel(np.full_like(z, infinity))
        sides.append(tree.ravel((rpy, w_B, u if bounds is None else bounds[k], rest))[0])
    return sides[0], sides[1]


def _search(residual: Any, z: Any, turn_rate: Any, limits: Any) -> tuple[Any, Any]:
    from scipy.optimize import least_squares

    error = compile(residual)(np.clip(z, *limits), float(turn_rate))
    if not np.all(np.isfinite(error)):  # SciPy would refuse to begin
        return z, np.where(np.isfinite(error), error, np.inf)
    found = least_squares(
        compile(residual),
        np.clip(z, *limits),
        jac(residual),
        bounds=limits,
        x_scale="jac",
        args=(float(turn_rate),),
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    return found.x, found.fun


@struct
class Linearization:
    """Small motions about a condition: ``dz/dt = A z + B u`` with names for rows and columns."""

    A: Any = field()
    B: Any = field()
    states: tuple[str, ...] = field(static=True)
    inputs: tuple[str, ...] = field(static=True)

    def modes(self) -> list[tuple[complex, dict[str, float]]]:
        """Return eigenvalues with the share of each state in their vector, slowest first."""
        values, vectors = np.linalg.eig(np.asarray(self.A))
        order = np.argsort(np.abs(values))
        shares = [np.abs(vectors[:, k]) / np.abs(vectors[:, k]).max() for k in order]
        named = [dict(zip(self.states, map(float, share))) for share in shares]
        return [(complex(values[k]), share) for k, share in zip(order, named)]


def linearize(vehicle: Any, flight: FlightState, u: Any, rest: Any = None) -> Linearization:
    """Return the Jacobians of the rates of the flight state and inner states at a condition.

    Latitude and longitude are left out: nothing depends on them over the times modes take.
    """
    rest = {} if rest is None else rest
    held = {"lat": flight.lat, "lon": flight.lon}

    def split(z: Any) -> tuple[FlightState, dict[str, Any]]:
        alt, v_NED, rpy, w_B, rest = z
        return FlightState(alt=alt, v_NED=v_NED, rpy=rpy, w_B=w_B, **held), rest

    def rates(z: Any, u: Any) -> Any:
        at, rest = split(z)
        moving, inner = flight_rates(vehicle, 0.0, at, rest, u)
        return moving.alt, moving.v_NED, moving.rpy, moving.w_B, inner

    z = (flight.alt, flight.v_NED, flight.rpy, flight.w_B, rest)
    both = jac(rates, argnums=(0, 1), flat=True)(z, u)
    A, B = both[:, : len(both)], both[:, len(both) :]
    inner = [
        name + (f"[{k}]" if np.size(v) > 1 else "")
        for name, v in rest.items()
        for k in range(np.size(v))
    ]
    names = ("alt", "v_N", "v_E", "v_D", "roll", "pitch", "yaw", "p", "q", "r", *inner)
    inputs = tuple(path.lstrip(".") for path in tree.structure(u).paths())
    return Linearization(A, B, names, inputs)
