"""Steady flight: the attitude, rates and controls that hold a path, and small motions about it.

Both work for any vehicle with a `world`, a `State(motion, ...)` and `dynamics(t, x, u)`: states are
described in the terms of flight (`FlightState`), which are steady where the states of a world are not
(positions change, quaternions turn).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import compile, jac, jvp
from archimedes.spatial.components import cross
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


def trim(
    vehicle: Any,
    flight: FlightState,
    u: Any,
    rest: dict[str, Any] | None = None,
    *,
    turn_rate: float = 0.0,
    bounds: Any = None,
    tol: float = 1e-9,
) -> Trim:
    """Find attitude, body rates, controls and inner states that hold the velocity of `flight`.

    `flight` gives place and velocity, and where to start the search for `rpy` and `w_B`; `u` the
    vehicle's `Input` to start from, all of whose leaves are free; `rest` the other fields of the
    vehicle's state, free too. A turn of `turn_rate` in rad/s is coordinated: no side force.
    `bounds` is a pair of `Input` (lower, upper). The result's `residual` is in m/s^2, rad/s, rad/s^2.
    """
    rest = {} if rest is None else {k: np.asarray(v, dtype=float) for k, v in rest.items()}
    z, unravel = tree.ravel((flight.rpy, flight.w_B, u, rest))

    def residual(z: Any, rate: Any) -> Any:
        rpy, w_B, u, rest = unravel(z)
        return _unsteadiness(vehicle, flight.replace(rpy=rpy, w_B=w_B), rest, u, rate)

    limits = _limits(z, unravel, bounds)
    # A turn is tightened little by little: the search starts near its goal each time.
    for part in np.linspace(1.0 / TIGHTENING, 1.0, TIGHTENING) if turn_rate else [0.0]:
        z, error = _search(residual, z, part * turn_rate, limits)
    rpy, w_B, u, rest = unravel(z)
    at = flight.replace(rpy=rpy, w_B=w_B)
    worst = int(np.argmax(np.abs(error)))
    success = bool(np.abs(error[worst]) < tol)
    message = "trimmed" if success else _complaint(error, worst, rest)
    state = vehicle.State(motion=vehicle.world.state(at), **rest)
    return Trim(state, u, at, error, success, message)


def _unsteadiness(vehicle: Any, at: FlightState, rest: Any, u: Any, turn_rate: Any) -> Any:
    """Return what must vanish in steady flight: accelerations, side force, inner rates."""
    moving, inner = flight_rates(vehicle, 0.0, at, rest, u)
    turn = turn_rate * np.array([0.0, 0.0, 1.0])
    x = vehicle.State(motion=vehicle.world.state(at), **rest)
    side = vehicle.forces(0.0, x, u)[0][1] / vehicle.mass
    return np.concatenate(
        [
            moving.v_NED - cross(turn, at.v_NED),
            moving.rpy - turn,
            moving.w_B,
            np.reshape(side, (1,)),
            *(np.reshape(rate, (-1,)) for rate in inner.values()),
        ]
    )


def _limits(z: Any, unravel: Any, bounds: Any) -> tuple[Any, Any]:
    """Return lower and upper limits of all unknowns: those of the controls, if given."""
    sides = []
    for k, infinity in enumerate((-np.inf, np.inf)):
        rpy, w_B, u, rest = unravel(np.full_like(z, infinity))
        sides.append(tree.ravel((rpy, w_B, u if bounds is None else bounds[k], rest))[0])
    return sides[0], sides[1]


def _search(residual: Any, z: Any, turn_rate: Any, limits: Any) -> tuple[Any, Any]:
    from scipy.optimize import least_squares

    found = least_squares(
        compile(residual),
        np.clip(z, *limits),
        jac(residual),
        bounds=limits,
        x_scale="jac",
        args=(float(turn_rate),),
        **dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15),
    )
    return found.x, found.fun


def _complaint(error: Any, worst: int, rest: Any) -> str:
    names = [
        *("acceleration north", "acceleration east", "acceleration down"),
        *("roll rate", "pitch rate", "turn rate"),
        *("roll acceleration", "pitch acceleration", "yaw acceleration", "side force"),
        *(f"rate of {name}" for name, value in rest.items() for _ in range(np.size(value))),
    ]
    return (
        f"no steady flight found: {names[worst]} is left at {error[worst]:.3g}; widen the bounds, "
        "change speed or altitude, or start nearer"
    )


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
    A, B = jac(rates, argnums=(0, 1), flat=True)(z, u)
    inner = [
        name + (f"[{k}]" if np.size(v) > 1 else "")
        for name, v in rest.items()
        for k in range(np.size(v))
    ]
    names = ("alt", "v_N", "v_E", "v_D", "roll", "pitch", "yaw", "p", "q", "r", *inner)
    inputs = tuple(path.lstrip(".") for path in tree.structure(u).paths())
    return Linearization(A, B, names, inputs)
