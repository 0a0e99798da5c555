"""The campaign of the GPU's benchmark: an F-16 that is disturbed in level flight."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.simulate import Normal
from archimedes.vehicles import F16, FlightState, load, trim

__all__ = ["DISPERSED", "SECONDS", "flight_of"]

#: Seconds that each flight takes.
SECONDS = 10.0

#: Errors of instruments, of the pilot's hand and of what was loaded.
DISPERSED = {
    "speed": Normal(0.0, 5.0),
    "rates": Normal(np.zeros(3), 0.05),
    "elevator": Normal(0.0, 0.005),
    "aileron": Normal(0.0, 0.005),
    "throttle": Normal(0.0, 0.02),
}


def flight_of() -> Any:
    """Return the model of a campaign: ten seconds of the F-16 after a disturbance.

    Full equations over a turning Earth, tables of aerodynamics and engine; Tsitouras 5(4) to 1e-6.
    """
    plane = load("f16")
    wanted = FlightState(
        lat=np.deg2rad(36.0),
        lon=np.deg2rad(-75.7),
        alt=3000.0,
        v_NED=np.array([170.0, 0.0, 0.0]),
        rpy=np.array([0.0, 0.05, 0.0]),
        w_B=np.zeros(3),
    )
    steady = trim(plane, wanted, F16.Input(throttle=0.15, elevator=-0.03), {"power": 10.0})
    flown, power, control = steady.flight, steady.state.power, steady.input

    def flight(params: Any) -> Any:
        placed = tree.replace(
            flown,
            v_NED=flown.v_NED + np.stack([params["speed"], 0.0, 0.0]),
            w_B=flown.w_B + params["rates"],
        )
        begin = plane.state(placed, power)
        u = tree.replace(
            control,
            elevator=control.elevator + params["elevator"],
            aileron=control.aileron + params["aileron"],
            throttle=control.throttle + params["throttle"],
        )
        end = arc.odeint(
            plane.dynamics, (0.0, SECONDS), begin, method="tsit5", rtol=1e-6, atol=1e-6, args=(u,)
        )
        seen = plane.outputs(SECONDS, end, u)
        return {"airspeed": seen.airspeed, "alpha": seen.alpha, "w_B": end.motion.w_B}

    return flight
