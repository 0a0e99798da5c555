"""Steady flight: the attitude, rates and controls that hold a path, and small motions about it.

Both work for any vehicle with a `world`, a `State(motion, ...)`, `dynamics(t, x, u)` and
`forces(t, x, u)`: states are described in the terms of flight (`FlightState`), which are steady
where the states of a world are not (positions change, quaternions turn).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import MISSING
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice, check_vector, is_traced
from archimedes.control import OperatingPoint, StateSpace
from archimedes.control import linearize as control_linearize
from archimedes.control import trim as control_trim
from archimedes.display import Readable, for_reading, text_table, wrap
from archimedes.function import jvp
from archimedes.function.reproducible import call
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.simulate.trajectory.showing import number_rows
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Tree, Vector
from archimedes.vehicles.worlds import FlightState

__all__ = ["Trim", "linearize", "trim"]

#: In how many parts a turn is tightened while it is searched for.
TIGHTENING = 6


@struct
class Trim(Readable):
    """A steady condition, and how well it is held.

    Parameters
    ----------
    state : State
        State.
    input : Input
        Inputs.
    flight : FlightState
        Position, velocity and attitude.
    residual : array
        What is left of the rates, in the order of `steady`: in m/s^2, rad/s and rad/s^2.
    success : bool
        Whether the condition is held.
    message : str
        What is not.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16, FlightState, load, trim
    >>> v_NED, rpy = np.array([170.0, 0.0, 0.0]), np.array([0, 0.05, 0])
    >>> level = FlightState(0.6, -1.3, 3000.0, v_NED, rpy, np.zeros(3))
    >>> steady = trim(load("f16"), level, F16.Input(0.15, -0.03), {"power": 10.0})
    >>> bool(np.abs(steady.residual).max() < 1e-8), round(float(steady.flight.rpy[1]), 3)
    (True, 0.048)
    """

    state: Any = field()
    input: Any = field()
    flight: FlightState = field()
    residual: Any = field()
    success: bool = field(static=True)
    message: str = field(static=True)

    def __repr__(self) -> str:
        if is_traced(self.residual, self.input, self.flight):
            return "Trim(...)"  # while a function is being recorded there are no numbers
        left = f"largest rate left {np.max(np.abs(self.residual), initial=0.0):.2g}"
        rows = number_rows(self.input)[:8] + number_rows(self.flight)
        head = wrap(f"Trim: {self.message} ({left})")
        return f"{head}\n{textwrap.indent(text_table(rows), '  ')}"


def flight_rates(vehicle: Any, t: Scalar, flight: FlightState, rest: Tree, u: Tree) -> Any:
    """Return the rates of the flight state, and of what else the vehicle's state holds."""
    motion = vehicle.world.state(flight)
    rates = vehicle.dynamics(t, vehicle.State(motion=motion, **rest), u)
    moving = jvp(lambda m: vehicle.world.flight(t, m))(motion, rates.motion)
    return moving, {name: getattr(rates, name) for name in rest}


#: Unknowns and rates of every vehicle; controls and inner states add theirs by name.
UNKNOWNS = ("roll", "pitch", "yaw", "p", "q", "r")
NAMES = ("alt", "v_N", "v_E", "v_D", "roll", "pitch", "yaw", "p", "q", "r")
UNITS = ("m", *["m/s"] * 3, *["rad"] * 3, *["rad/s"] * 3)
RATES = ("speed", "course", "climb", "roll", "pitch", "yaw", "p", "q", "r", "side_force")


def trim(
    vehicle: Any,
    flight: FlightState,
    u: Tree,
    rest: dict[str, Any] | None = None,
    *,
    free: Sequence[str] | None = None,
    steady: Sequence[str] | None = None,
    turn_rate: float = 0.0,
    bounds: Any = None,
    tol: float = 1e-9,
) -> Trim:
    """Find attitude, angular velocity, controls and inner states that hold a velocity.

    Parameters
    ----------
    vehicle : vehicle
        A vehicle of this package, or one like it.
    flight : FlightState
        Position and velocity to hold, and where the search for `rpy` and `w_B` starts.
    u : Input
        Inputs to start from.
    rest : dict, optional
        Other fields of the state of the vehicle, by name, where the search for them starts. Those
        that are left out start as in ``vehicle.state(flight)``.
    free : sequence of str, optional
        Unknowns: "roll", "pitch", "yaw", "p", "q", "r", and inputs and fields of `rest` by name.
        All by default.
    steady : sequence of str, optional
        Rates that vanish: "speed", "course", "climb", "roll", "pitch", "yaw", "p", "q", "r",
        "side_force", and fields of `rest`. All by default.
    turn_rate : float, optional
        Rate of turn in rad/s. The turn is coordinated: without side force.
    bounds : (Input, Input), optional
        Lower and upper limits of the inputs. By default the stops of the vehicle
        (``vehicle.stops``), if it has any.
    tol : float, optional
        Largest residual.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16, FlightState, load, trim
    >>> v_NED, rpy = np.array([170.0, 0.0, 0.0]), np.array([0, 0.05, 0])
    >>> level = FlightState(0.6, -1.3, 3000.0, v_NED, rpy, np.zeros(3))
    >>> steady = trim(load("f16"), level, F16.Input(0.15, -0.03))
    >>> steady.success, round(float(steady.input.throttle), 3)
    (True, 0.21)
    """
    if not np.any(check_vector(flight.v_NED, 3, "flight.v_NED")):
        raise ValueError("trim: flight.v_NED is zero: steady flight needs a velocity to hold")
    if hasattr(vehicle, "Input") and not tree.is_struct(u):
        kind = vehicle.Input.__qualname__
        names = ", ".join(f"{f.name}=..." for f in tree.fields(vehicle.Input))
        raise TypeError(f"trim: u must be of {kind}, got {type(u).__name__}: write {kind}({names})")
    # As everybody writes it.
    steady = None if steady is None else [name.replace(" ", "_") for name in steady]
    start = vehicle.state(flight) if hasattr(vehicle, "state") else None
    rest = _inner_states("trim", vehicle, rest, start)
    rest = {name: np.asarray(value, dtype=float) for name, value in rest.items()}
    controls = [path.lstrip(".") for path in tree.structure(u).paths()]
    inner = tuple(rest)
    _check_names("free", free, (*UNKNOWNS, *controls, *inner))
    watched = _check_names("steady", steady, (*RATES, *inner))
    angles = dict(zip(UNKNOWNS, np.concatenate([flight.rpy, flight.w_B])))

    def in_flight(z: Tree, flight: FlightState) -> tuple[FlightState, Any]:
        numbers = np.stack([z[name] for name in UNKNOWNS])
        at = tree.replace(flight, rpy=numbers[:3], w_B=numbers[3:])
        return at, {name: z[name] for name in inner}

    # The condition is an argument: another one needs no new recording of the vehicle.
    def unsteady(t: Scalar, z: Vector, u: Tree, flight: FlightState, rate: Scalar) -> Any:
        at, rest = in_flight(z, flight)
        return _unsteadiness(vehicle, at, rest, u, rate)

    # A turn is tightened little by little: the search starts near its goal each time.
    parts = np.linspace(1.0 / TIGHTENING, 1.0, TIGHTENING)[:-1] if turn_rate else np.zeros(0)
    z = {**angles, **rest}

    def search(within: dict[str, Any] | None) -> OperatingPoint:
        return control_trim(
            lambda t, z, u, *_: tree.map(np.zeros_like, z),  # its conditions are outputs
            z,
            u,
            unsteady,
            free=None if free is None else [f"u.{k}" if k in controls else f"x.{k}" for k in free],
            rates=dict.fromkeys(z),
            targets=dict.fromkeys(watched, 0.0),
            bounds=within,
            args=(flight, float(turn_rate)),
            through=[(flight, float(part * turn_rate)) for part in parts],
            tol=tol,
        )

    stops = _by_name(getattr(vehicle, "stops", None), u)
    limits = stops if bounds is None else _by_name(bounds, u)
    trim_point = search(limits)
    beyond: dict[str, str] = {}
    if limits and not trim_point.success:
        # A search along bounds may end at a corner; one that may pass them tells what is missing.
        loose = search(None)
        beyond = _beyond(loose, limits)
        trim_point = loose if loose.success and not beyond else trim_point
        beyond = beyond if loose.success else {}
    at, rest = in_flight(trim_point.x, flight)
    state = vehicle.State(motion=call(vehicle.world.state, at), **rest)
    error = np.array(list(trim_point.residuals.values()))
    if trim_point.success:
        # Bounds of the user, or a control that is held, may lie beyond what the vehicle can do.
        passed = _beyond(trim_point, stops or {})
        message = f"trimmed, with {_join_names(passed)}" if passed else "trimmed"
    else:
        message = _message(trim_point, beyond)
    return Trim(state, trim_point.u, at, error, trim_point.success, message)


def _beyond(point: OperatingPoint, limits: dict[str, tuple[float, float]]) -> dict[str, str]:
    """Return the controls that are beyond their limits, and by which numbers."""
    values = np.concatenate([np.ravel(leaf) for leaf in tree.leaves(point.u)])
    texts = {}
    for (name, (low, high)), value in zip(limits.items(), values):
        if not low <= value <= high:
            stop = high if value > high else low
            shown = [_with_units(point, name, v) for v in (value, stop)]
            texts[name.removeprefix("u.")] = f"{shown[0]}, beyond its stop {shown[1]}"
    return texts


def _with_units(point: OperatingPoint, name: str, value: float) -> str:
    """Return the value of a control as a person reads it, angles in deg."""
    units = {column.name: column.units for column in tree_columns(point.u, 0, "u")}
    shown, unit = for_reading(value, units.get(name, ""))
    return f"{shown:.4g} {unit}".rstrip()


def _join_names(beyond: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in beyond.items())


def _message(point: OperatingPoint, beyond: dict[str, str]) -> str:
    """Say what is left, the largest, and which control does not go far enough."""
    left = point.residuals
    worst = max(left, key=lambda name: np.nan_to_num(abs(left[name]), nan=np.inf))
    text = f"no steady flight found: the rate of {worst} is left at {left[worst]:.3g}"
    stops = {
        name.removeprefix("u."): _with_units(point, name, v) for name, v in point.at_bounds.items()
    }
    if beyond:
        text += f"; it would take {_join_names(beyond)}"
    elif stops:
        text += f" ({', '.join(f'{name} is at its stop {v}' for name, v in stops.items())})"
    return f"{text}; change speed or altitude, widen the bounds, or start nearer"


def _by_name(bounds: Any, u: Tree) -> dict[str, Any] | None:
    """Return bounds of the controls, a pair of trees whose leaves may be broader, by names."""
    if bounds is None:
        return None
    limits = {}
    paths = [path.lstrip(".") for path in tree.structure(u).paths()]
    for path, leaf, *ends in zip(paths, tree.leaves(u), *map(tree.leaves, bounds)):
        low, high = (np.broadcast_to(end, np.shape(leaf)) for end in ends)
        for k in np.ndindex(np.shape(leaf)):
            name = f"u.{path}" + (f"[{','.join(map(str, k))}]" if k else "")
            limits[name] = (float(low[k]), float(high[k]))
    return limits


def _check_names(what: str, names: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    """Return the names, by default all, in the order of the known ones."""
    for name in names or ():
        check_choice(name, f"trim: {what}", known)
    return [name for name in known if names is None or name in names]


def _inner_states(what: str, vehicle: Any, rest: dict[str, Any] | None, start: Any) -> Any:
    """Return the fields of the state besides the motion: those given, and then those of `start`."""
    inner = [f for f in tree.fields(vehicle.State) if f.name != "motion"]
    kind, rest = vehicle.State.__qualname__, dict(rest or {})
    for name in rest:
        allowed = [f.name for f in inner]
        check_choice(name, f"{what}: rest", allowed, f"{kind} has these besides the motion")
    for f in inner:
        if f.name not in rest and start is not None:
            rest[f.name] = getattr(start, f.name)
        elif f.name not in rest and f.default is MISSING and f.default_factory is MISSING:
            units = f" in {f.metadata['units']}" if f.metadata.get("units") else ""
            raise TypeError(
                f"{what}: rest has no {f.name!r}, which {kind} has besides the motion: pass "
                f"rest={{{f.name!r}: ...}}{units}"
                + (", or what trim returned in place of flight" if what == "linearize" else "")
            )
    return rest


def _unsteadiness(vehicle: Any, at: FlightState, rest: Any, u: Tree, turn_rate: Scalar) -> Any:
    """Return what vanishes in steady flight, by the names of `RATES` and of the inner states."""
    moving, inner = flight_rates(vehicle, 0.0, at, rest, u)
    turn = turn_rate * np.array([0.0, 0.0, 1.0])
    push = moving.v_NED - cross(turn, at.v_NED)
    along = at.v_NED / np.sqrt(np.sum(at.v_NED**2))
    level = np.hypot(along[0], along[1])
    right = np.array([-along[1], along[0], 0.0]) / np.where(level == 0.0, 1.0, level)
    x = vehicle.State(motion=vehicle.world.state(at), **rest)
    side = vehicle.forces(0.0, x, u)[0][1] / vehicle.mass
    track = [np.sum(push * along), np.sum(push * right), -push[2]]
    rates = (*track, *(moving.rpy - turn), *moving.w_B, side)
    return {**dict(zip(RATES, rates)), **inner}


def linearize(
    vehicle: Any, flight: FlightState | Trim, u: Tree = None, rest: Any = None
) -> StateSpace:
    """Return the linear system of flight state and inner states about a condition.

    Latitude and longitude are left out, since nothing depends on them over the times that modes
    take.

    Parameters
    ----------
    vehicle : vehicle
        A vehicle of this package, or one like it.
    flight : FlightState or Trim
        Flight state of the condition, or what :func:`trim` returned, which has the rest too.
    u : Input, optional
        Inputs of the condition.
    rest : dict, optional
        Other fields of the state of the vehicle, by name.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16, FlightState, linearize, load, trim
    >>> v_NED, rpy = np.array([170.0, 0.0, 0.0]), np.array([0, 0.05, 0])
    >>> level = FlightState(0.6, -1.3, 3000.0, v_NED, rpy, np.zeros(3))
    >>> plane = load("f16")
    >>> steady = trim(plane, level, F16.Input(0.15, -0.03))
    >>> small = linearize(plane, steady)
    >>> small.A.shape, small.inputs
    ((11, 11), ('throttle', 'elevator', 'aileron', 'rudder'))
    """
    start = None
    if isinstance(flight, Trim):
        u, start, flight = flight.input, flight.state, flight.flight
    if u is None:
        raise TypeError("linearize: u is missing: pass the inputs, or what trim returned")
    rest = _inner_states("linearize", vehicle, rest, start)

    def rates(t: Scalar, z: Vector, u: Tree, lat: Scalar, lon: Scalar) -> Any:
        alt, v_NED, rpy, w_B, rest = z
        at = FlightState(lat=lat, lon=lon, alt=alt, v_NED=v_NED, rpy=rpy, w_B=w_B)
        moving, inner = flight_rates(vehicle, 0.0, at, rest, u)
        return moving.alt, moving.v_NED, moving.rpy, moving.w_B, inner

    z = (flight.alt, flight.v_NED, flight.rpy, flight.w_B, rest)
    small = control_linearize(rates, z, u, args=(flight.lat, flight.lon))
    inner = [
        name + (f"[{k}]" if np.size(v) > 1 else "")
        for name, v in rest.items()
        for k in range(np.size(v))
    ]
    names = (*NAMES, *inner)
    units = (*UNITS, *[""] * len(inner))
    return tree.replace(small, states=names, outputs=names, state_units=units, output_units=units)
