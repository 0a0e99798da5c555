"""A flight as data: vehicle, start, controls, duration; one function flies any of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.simulate import Trajectory, solve_ode
from archimedes.tree import field, struct
from archimedes.vehicles.surroundings import FlightState

__all__ = ["FlightCase", "FlightRecord", "fly"]


@struct
class FlightCase:
    """What is flown: Earth, air and wind are those of the vehicle's `world`.

    `vehicle` has `world`, `state(flight, ...)` and `dynamics(t, x, u)`; `start` is where it begins,
    `inner` the other fields of its state; `controls` an `Input`, or a function of time
    that returns one (of time, the memory of sampled parts and further arguments, where there are).

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


class FlightRecord(NamedTuple):
    """A flight that was flown: times, states in the terms of flight, and the trajectory.

    >>> from archimedes.vehicles import FlightRecord
    >>> FlightRecord._fields  # as `fly` returns them
    ('t', 'flight', 'trajectory')
    """

    t: np.ndarray
    flight: FlightState
    trajectory: Trajectory


def fly(case: FlightCase, t_eval: Any = None, **options: Any) -> FlightRecord:
    """Fly a case; `options` go to `solve_ode` (method, rtol, atol, events, sampled, args, ...).

    With `sampled` parts, such as an autopilot, ``controls(t, memory)`` makes the vehicle's input of
    their memory.

    >>> import numpy as np
    >>> from archimedes.vehicles import FlightCase, FlightState, Projectile, fly
    >>> ball = Projectile(mass=1.0, inertia=np.eye(3))
    >>> start = FlightState(0.0, 0.0, 1000.0, np.zeros(3), np.zeros(3), np.zeros(3))
    >>> record = fly(FlightCase(ball, start, duration=1.0), t_eval=np.array([0.0, 1.0]))
    >>> record.flight.alt.round(3)
    array([1000.   ,  995.111])
    """
    vehicle, controls = case.vehicle, case.controls
    x0 = vehicle.state(case.start, **case.inner)

    def dynamics(t: Any, x: Any, *given: Any) -> Any:
        return vehicle.dynamics(t, x, controls(t, *given) if callable(controls) else controls)

    trajectory = solve_ode(dynamics, (0.0, case.duration), x0, t_eval=t_eval, **options)
    motion = getattr(trajectory.x, "motion", trajectory.x)
    return FlightRecord(trajectory.t, vehicle.world.flight(trajectory.t, motion), trajectory)
