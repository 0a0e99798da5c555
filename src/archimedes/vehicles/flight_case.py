"""A flight as data: vehicle, start, controls, duration; one function flies any of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.function.reproducible import call
from archimedes.simulate import Trajectory
from archimedes.tree import field, struct
from archimedes.vehicles.ground import simulate_flight
from archimedes.vehicles.surroundings import FlightState

__all__ = ["FlightCase", "FlightRecord", "fly"]


@struct
class FlightCase:
    """A flight to be flown. Earth, air and wind are those of the world of the vehicle.

    Parameters
    ----------
    vehicle : vehicle
        Vehicle with ``world``, ``state(flight, ...)`` and ``dynamics(t, x, u)``.
    start : FlightState
        Where the flight begins.
    duration : float
        Duration in s.
    controls : Input or callable, optional
        Inputs of the vehicle, or a function of time that returns them; with sampled parts, a
        function of time, their memory and further arguments.
    inner : dict, optional
        Other fields of the state, by name.
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
    """

    vehicle: Any = field()
    start: FlightState = field()
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


def fly(case: FlightCase, t_eval: Any = None, **options: Any) -> FlightRecord:
    """Fly a case.

    A flight that reaches the ground ends there, and ``trajectory.message`` says so.

    Parameters
    ----------
    case : FlightCase
        What is flown.
    t_eval : array (m,), optional
        Times at which the state is wanted. By default the times of the steps.
    **options
        Options of :func:`solve_ode`: method, rtol, atol, events, sampled, args, ... With sampled
        parts, such as an autopilot, ``controls(t, memory)`` makes the inputs of the vehicle from
        their memory.

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
    x0 = call(lambda start, inner: vehicle.state(start, **inner), case.start, case.inner)

    def dynamics(t: Any, x: Any, *given: Any) -> Any:
        return vehicle.dynamics(t, x, controls(t, *given) if callable(controls) else controls)

    trajectory = simulate_flight(
        vehicle, dynamics, case.duration, x0, case.ground, t_eval=t_eval, **options
    )
    motion = getattr(trajectory.x, "motion", trajectory.x)
    return FlightRecord(trajectory.t, vehicle.world.flight(trajectory.t, motion), trajectory)
