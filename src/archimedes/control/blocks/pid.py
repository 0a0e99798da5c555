"""PID control in steps, with limits and anti-windup.

K. Astrom, R. Murray, "Feedback systems", 2008, 10.4 and 10.5 (back-calculation); K. Astrom,
T. Hagglund, "Advanced PID control", 2006, 3.5 (conditional integration).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.blocks.limits import check_limits, limit
from archimedes.control.matrix_checks import check_positive
from archimedes.function import holds_traced
from archimedes.tree import field, struct

__all__ = ["PID"]


@struct
class PID:
    """kp e + ki (integral of e) + kd (rate of e, through a lag of ``filter_time``), limited.

    The output stays within ``lower`` and ``upper`` and changes by at most ``rate`` per second.
    Beyond limits the integral waits for an error that leads back; with ``tracking`` it is led back
    to where the output is instead, with that time constant (0: at once, inf: never, so that it
    winds up). Gains may be arrays for several loops.

    >>> pid = PID(kp=2.0, ki=1.0, dt=0.1, upper=1.0)
    >>> state = pid.start()
    >>> state, output = pid.step(state, 0.2)
    >>> output.round(6)
    np.float64(0.42)
    """

    @struct
    class State:
        """The integral, the filtered rate, and error and output of the last step."""

        integral: Any
        slope: Any
        error: Any
        output: Any

    kp: Any
    ki: Any = 0.0
    kd: Any = 0.0
    dt: Any = field(units="s", kw_only=True)
    filter_time: Any = field(default=0.0, units="s")
    lower: Any = -np.inf
    upper: Any = np.inf
    rate: Any = np.inf
    tracking: Any = field(default=None, units="s")

    def __post_init__(self) -> None:
        check_positive(self.dt, "dt")
        check_limits(self.lower, self.upper, self.rate)
        for name in ("kp", "ki", "kd"):
            gain = getattr(self, name)
            if not holds_traced(gain) and not np.all(np.isfinite(gain)):
                raise ValueError(f"{name} must be finite, got {gain}")
        for name in ("filter_time", "tracking"):
            value = getattr(self, name)
            if (
                value is not None
                and not holds_traced(value)
                and not np.all(np.greater_equal(value, 0.0))
            ):
                raise ValueError(f"{name} must not be negative, in seconds, got {value}")

    def start(self, error: Any = 0.0, output: Any = 0.0) -> State:
        """Return the state in which an error that stays gives an output that begins there."""
        shape = np.shape(self.kp + self.ki + self.kd + error + output)
        zero = np.zeros(shape)
        return self.State(output - self.kp * error + zero, zero, error + zero, output + zero)

    def step(self, state: State, input: Any) -> tuple[State, Any]:
        """Return the next state and the output, for an error ``input``."""
        more = self.ki * self.dt * input
        integral = state.integral + more
        slope = (self.filter_time * state.slope + (input - state.error)) / (
            self.filter_time + self.dt
        )
        wanted = self.kp * input + integral + self.kd * slope
        output = limit(wanted, state.output, self.lower, self.upper, self.rate * self.dt)
        beyond = wanted - output
        if self.tracking is None:
            integral = np.where(beyond * more > 0.0, state.integral, integral)[()]
        else:
            back = self.dt / (self.tracking + self.dt) * beyond
            # Without an integral there is nothing to lead back: the output is that of the error.
            integral = integral - np.where(self.ki != 0.0, back, 0.0)[()]
        return self.State(integral, slope, np.zeros(np.shape(output)) + input, output), output
