"""A flight as data: vehicle, start, controls, duration; one function flies any of them.

A flight ends at the altitude of the ground under the vehicle.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_type
from archimedes.display import Readable, text_table, wrap
from archimedes.errors import StructError
from archimedes.function import vmap
from archimedes.function.reproducible import call
from archimedes.simulate import Event, Trajectory, solve_ode
from archimedes.simulate.trajectory.showing import value_rows
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Scalar, Tree
from archimedes.vehicles.worlds import FlightState

__all__ = ["FlightCase", "FlightRecord", "fly", "ground_event"]

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

#: The status of a solve that a terminal event ended.
ENDED_BY_EVENT = 1

#: A vehicle that starts on the ground may sink by this much, in m, before its flight ends.
STANDING = 1e-3


def ground_event(vehicle: Any, alt: Scalar = 0.0) -> Event:
    """Return a terminal event for `solve_ode`: the centre of mass falls below an altitude.

    Parameters
    ----------
    vehicle
        Any vehicle of this package, or one with a `world`.
    alt
        Altitude of the ground in m, above the ellipsoid or above the plane of a flat Earth.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> from archimedes.vehicles import FlatEarth, FlightState, Projectile, ground_event
    >>> ball = Projectile(mass=1.0, inertia=np.eye(3), world=FlatEarth())
    >>> x0 = ball.state(FlightState(0.0, 0.0, 45.0, np.zeros(3), np.zeros(3), np.zeros(3)))
    >>> fall = arc.solve_ode(ball.dynamics, (0.0, 10.0), x0, events=ground_event(ball))
    >>> round(float(fall.t[-1]), 3)
    3.029
    """
    return Event(lambda t, x, *args: altitude(vehicle, t, x) - alt, direction=-1, terminal=True)


def altitude(vehicle: Any, t: Scalar, x: Tree) -> Any:
    """Return the altitude in m of a vehicle in a state."""
    if hasattr(vehicle, "world"):
        return vehicle.world.flight(t, getattr(x, "motion", x)).alt
    return vehicle.outputs(t, x).altitude


def simulate_flight(
    vehicle: Any,
    dynamics: Callable[..., Any],
    duration: float,
    x0: Tree,
    ground: Scalar | None,
    **options: Any,
) -> Trajectory:
    """Solve for a flight that ends after its duration or, with a message, at the ground.

    `ground` is an altitude in m, or None where there is none to hit; `options` go to `solve_ode`.
    """
    # Feet that carry a vehicle know their ground themselves.
    if ground is None or getattr(vehicle, "ground", None) is not None:
        return solve_ode(dynamics, (0.0, duration), x0, **options)
    start = np.min(altitude(vehicle, 0.0, x0))  # of the lowest one in a batch
    if start < ground - STANDING:
        raise ValueError(
            f"the flight starts at an altitude of {float(start):.6g} m, below the ground at "
            f"{float(ground):.6g} m: set ground to the altitude of the ground there, or to None "
            "(null in a file) for a flight without ground"
        )
    level = ground if start > ground + STANDING else ground - STANDING
    own = options.pop("events", None) or []
    events = list(own) if isinstance(own, (list, tuple)) else [own]
    events.append(ground_event(vehicle, level))
    flown = solve_ode(dynamics, (0.0, duration), x0, events=events, **options)
    ended = np.ndim(flown.status) == 0 and flown.status == ENDED_BY_EVENT
    if ended and flown.events["event"][-1] == len(events) - 1:
        flown.message = _describe_impact(vehicle, flown)
    return flown


def _describe_impact(vehicle: Any, flown: Trajectory) -> str:
    t = float(flown.events["t"][-1])
    message = f"the flight ended at the ground after {t:.6g} s"
    if not hasattr(vehicle, "world"):
        return message
    x = tree.map(lambda leaf: leaf[-1], flown.events["x_before"])
    v_NED = vehicle.world.flight(t, getattr(x, "motion", x)).v_NED
    return f"{message}, at {float(np.sqrt(np.sum(v_NED * v_NED))):.4g} m/s"


@struct
class FlightCase(Readable):
    """A flight to be flown. Earth, air and wind are those of the world of the vehicle.

    Parameters
    ----------
    vehicle : vehicle
        Vehicle with ``world``, ``state(flight, ...)`` and ``dynamics(t, x, u)``.
    start : FlightState or State
        Where the flight begins, in the terms of flight, or as a state of the vehicle, such as
        ``trim(...).state``.
    duration : float
        Duration in s.
    controls : Input or callable, optional
        Inputs of the vehicle, or a function that returns them: ``controls(t)`` of the time,
        ``controls(t, x)`` of time and state of the vehicle (feedback). Sampled parts and `args` of
        `fly` add their memory and the arguments: ``controls(t, x, memory)``.
    inner : dict, optional
        Other fields of the state, by name, if `start` is a `FlightState`.
    ground : float or None, optional
        Altitude in m at which the flight ends. None flies on below it. 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import FlightCase, FlightState, Projectile, fly
    >>> ball = Projectile(mass=1.0, inertia=np.eye(3), area=0.01, drag=0.5)
    >>> start = FlightState(0.0, 0.0, 1000.0, np.zeros(3), np.zeros(3), np.zeros(3))
    >>> fly(FlightCase(ball, start, 5.0), t_eval=np.array([5.0])).flight.alt.round(1)
    array([889.6])

    Feedback: a multirotor climbs to 10 m and stays there.

    >>> from archimedes.vehicles import GeometricController, load
    >>> drone, controller = load("multirotor"), GeometricController()
    >>> goal = np.array([0.0, 0.0, -10.0])
    >>> hover = lambda t, x: controller.command(drone, x, goal, np.zeros(3), np.zeros(3), 0.0)
    >>> case = FlightCase(drone, start.replace(alt=9.0), 5.0, hover)
    >>> fly(case, t_eval=np.array([5.0])).flight.alt.round(1)
    array([10.])
    """

    vehicle: Any = field()
    start: Any = field()
    duration: float = field(units="s")
    controls: Any = None
    inner: Any = field(default_factory=dict)
    ground: Any = field(units="m", default=0.0)


class FlightRecord(NamedTuple):
    """A flight that was flown.

    Parameters
    ----------
    t : array (m,)
        Times in s.
    flight : FlightState
        Flight states over time.
    trajectory : Trajectory
        The trajectory.

    Examples
    --------
    >>> from archimedes.vehicles import FlightRecord
    >>> FlightRecord._fields  # as `fly` returns them
    ('t', 'flight', 'trajectory')
    """

    t: np.ndarray
    flight: FlightState
    trajectory: Trajectory

    def as_trajectory(self) -> Trajectory:
        """Return the flight states as a trajectory, which `arc.plot` draws."""
        return Trajectory(self.t, self.flight)

    def __repr__(self) -> str:
        table = text_table(value_rows(self.as_trajectory()))
        return f"{wrap(f'FlightRecord: {self.trajectory.message}')}\n{table}"

    def report(self) -> str:
        """Return everything as text, the states of all parts of the vehicle included."""
        return f"{self!r}\n\n{self.trajectory.report()}"


def fly(case: FlightCase, t_eval: ArrayLike | None = None, **options: Any) -> FlightRecord:
    """Fly a case.

    A flight that reaches the ground ends there, and ``trajectory.message`` says so. The trajectory
    also has the inputs, and knows its vehicle: ``arc.view(record.trajectory)`` shows both.

    Parameters
    ----------
    case : FlightCase
        What is flown.
    t_eval : array (m,), optional
        Times at which the state is wanted. By default the times of the steps.
    **options
        Options of :func:`solve_ode`: method, rtol, atol, events, sampled, args, ... With sampled
        parts, such as an autopilot, ``controls(t, memory)`` or ``controls(t, x, memory)`` makes the
        inputs of the vehicle from their memory.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import FlightCase, FlightState, Projectile, fly
    >>> ball = Projectile(mass=1.0, inertia=np.eye(3))
    >>> start = FlightState(0.0, 0.0, 1000.0, np.zeros(3), np.zeros(3), np.zeros(3))
    >>> record = fly(FlightCase(ball, start, duration=1.0), t_eval=np.array([0.0, 1.0]))
    >>> record.flight.alt.round(3)
    array([1000.   ,  995.111])
    >>> fly(FlightCase(ball, start, duration=30.0)).trajectory.message
    'the flight ended at the ground after 14.302 s, at 139.8 m/s'
    """
    vehicle, controls = case.vehicle, case.controls
    x0 = first_state(case)

    def dynamics(t: Scalar, x: Tree, *args: Any) -> Any:
        u = steer(controls, t, x, *args) if callable(controls) else controls
        check_inputs(vehicle, u)
        return vehicle.dynamics(t, x, u)

    options["t_eval"] = t_eval
    trajectory = simulate_flight(vehicle, dynamics, case.duration, x0, case.ground, **options)
    trajectory.model = vehicle
    if trajectory.u is None and controls is not None and trajectory.t.ndim == 1:
        trajectory.u = inputs_along(controls, trajectory, options.get("args", ()))
    motion = getattr(trajectory.x, "motion", trajectory.x)
    return FlightRecord(trajectory.t, vehicle.world.flight(trajectory.t, motion), trajectory)


def first_state(case: FlightCase) -> Any:
    """Return the state of the vehicle in which a flight begins."""
    vehicle, start, inner = case.vehicle, case.start, case.inner
    kind = getattr(type(vehicle), "State", None)
    if kind is not None and isinstance(start, kind):
        if inner:
            raise StructError(
                f"FlightCase.inner gives {', '.join(inner)}, which FlightCase.start, a state of "
                "the vehicle, already has: leave out inner, or start from a FlightState"
            )
        return start
    check_type(start, "FlightCase.start", FlightState, "or give a state of the vehicle")
    known = [*inspect.signature(vehicle.state).parameters][1:]
    for name in inner:
        if name not in known:
            what = f"a {type(vehicle).__name__} has {', '.join(known) or 'no others'}"
            raise StructError(
                f"FlightCase.inner has {name!r}, which is no field of its state: {what}"
            )
    return call(lambda start, inner: vehicle.state(start, **inner), start, inner)


def check_inputs(vehicle: Any, u: object) -> None:
    """Raise where inputs lack what a vehicle with a class of inputs reads from them."""
    kind = getattr(type(vehicle), "Input", None)
    names = list(getattr(kind, "__dataclass_fields__", ()))
    if not all(hasattr(u, name) for name in names):
        vehicle_name = type(vehicle).__name__
        raise StructError(
            f"FlightCase.controls must be {vehicle_name}.Input({', '.join(names)}), or a function "
            f"that returns it; got {reprlib.repr(u)}"
        )


def inputs_along(controls: Any, trajectory: Trajectory, args: Any) -> Any:
    """Return the inputs of the vehicle at the times of a trajectory."""
    if callable(controls):
        rest = args if isinstance(args, tuple) else (args,)
        return vmap(lambda t, x: steer(controls, t, x, *rest))(trajectory.t, trajectory.x)
    repeat = lambda leaf: np.repeat(np.asarray(leaf)[None], len(trajectory.t), axis=0)  # noqa: E731
    return tree.map(repeat, controls)


def steer(controls: Callable[..., Any], t: Scalar, x: Tree, *args: Any) -> Any:
    """Return the inputs of the vehicle; `controls` takes the state if it asks for one more."""
    try:
        parameters = inspect.signature(controls).parameters.values()
    except (TypeError, ValueError):  # of some builtins
        return controls(t, x, *args)
    kinds = [p.kind for p in parameters]
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in POSITIONAL]
    if inspect.Parameter.VAR_POSITIONAL in kinds or len(needed) == 2 + len(args):
        return controls(t, x, *args)
    if len(needed) == 1 + len(args):
        return controls(t, *args)
    rest = f", and {len(args)} more for sampled parts and args" if args else ""
    raise ValueError(
        f"FlightCase.controls takes {len(needed)} arguments {needed}: write controls(t) or "
        f"controls(t, x){rest}"
    )
