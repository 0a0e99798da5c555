"""The ground under a vehicle: the altitude at which its flight ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate import Event, Trajectory, solve_ode

__all__ = ["ground_event", "simulate_flight"]

#: The status of a solve that a terminal event ended.
ENDED_BY_EVENT = 1

#: A vehicle that starts on the ground may sink by this much, in m, before its flight ends.
STANDING = 1e-3


def ground_event(vehicle: Any, alt: Any = 0.0) -> Event:
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


def altitude(vehicle: Any, t: Any, x: Any) -> Any:
    """Return the altitude in m of a vehicle in a state."""
    if hasattr(vehicle, "world"):
        return vehicle.world.flight(t, getattr(x, "motion", x)).alt
    return vehicle.outputs(t, x).altitude


def simulate_flight(
    vehicle: Any, dynamics: Any, duration: Any, x0: Any, ground: Any, **options: Any
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
    given = options.pop("events", None)
    events = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    events.append(ground_event(vehicle, level))
    flown = solve_ode(dynamics, (0.0, duration), x0, events=events, **options)
    if hit_ground(flown, len(events) - 1):
        flown.message = _describe_impact(vehicle, flown)
    return flown


def hit_ground(flown: Trajectory, event: int) -> bool:
    """Return whether one flight ended at the event of this number."""
    ended = np.ndim(flown.status) == 0 and flown.status == ENDED_BY_EVENT
    return bool(ended and flown.events["event"][-1] == event)


def _describe_impact(vehicle: Any, flown: Trajectory) -> str:
    t = float(flown.events["t"][-1])
    message = f"the flight ended at the ground after {t:.6g} s"
    if not hasattr(vehicle, "world"):
        return message
    x = tree.map(lambda leaf: leaf[-1], flown.events["x_before"])
    v_NED = vehicle.world.flight(t, getattr(x, "motion", x)).v_NED
    return f"{message}, at {float(np.sqrt(np.sum(v_NED * v_NED))):.4g} m/s"
