"""PID control in steps, with limits and anti-windup.

K. Astrom, R. Murray, "Feedback systems", 2008, 10.4 and 10.5 (back-calculation); K. Astrom,
T. Hagglund, "Advanced PID control", 2006, 3.5 (conditional integration).
"""

from __future__ import annotations

import numpy as np

from archimedes.checks import check_finite, check_limits, check_not_negative, check_positive
from archimedes.control.blocks.compensators import limit
from archimedes.tree import field, struct
from archimedes.typing import Scalar

__all__ = ["PID"]


@struct
class PID:
    """A PID controller with filtered derivative, limits and anti-windup.

    The gains may be arrays for several loops.

    Parameters
    ----------
    kp : float or array
        Proportional gain.
    ki : float or array, optional
        Integral gain in 1/s, 0 by default.
    kd : float or array, optional
        Derivative gain in s, 0 by default.
    filter_time : float or array, optional
        Time constant in s of the lag through which the error is differentiated, 0 by default.
    lower : float or array, optional
        Lower limit. -inf by default.
    upper : float or array, optional
        Upper limit. inf by default.
    rate : float or array, optional
        Largest change per second. inf by default.
    tracking : float, optional
        Time constant in s of the anti-windup that leads the integral back to where the output is: 0
        at once, inf never. By default the integral stops at the limits instead, until the error
        leads back.
    dt : float
        Length of a step in s.

    Examples
    --------
    >>> pid = PID(kp=2.0, ki=1.0, dt=0.1, upper=1.0)
    >>> state = pid.start()
    >>> state, output = pid.step(state, 0.2)
    >>> output.round(6)
    np.float64(0.42)
    """

    @struct
    class State:
        """The integral, the filtered rate, and error and output of the last step.

        Parameters
        ----------
        integral : float or array
            Integral of the error.
        slope : float or array
            Filtered derivative of the error.
        error : float or array
            Error of the last step.
        output : float or array
            Output of the last step.
        """

        integral: Scalar
        slope: Scalar
        error: Scalar
        output: Scalar

    kp: Scalar
    ki: Scalar = 0.0
    kd: Scalar = 0.0
    dt: Scalar = field(units="s", kw_only=True)
    filter_time: Scalar = field(default=0.0, units="s")
    lower: Scalar = -np.inf
    upper: Scalar = np.inf
    rate: Scalar = np.inf
    tracking: Scalar | None = field(default=None, units="s")

    def __post_init__(self) -> None:
        check_positive(self.dt, "dt", "s")
        check_limits(self.lower, self.upper, "lower and upper")
        for name in ("kp", "ki", "kd"):
            check_finite(getattr(self, name), name)
        for name in ("rate", "filter_time", "tracking"):
            if getattr(self, name) is not None:
                check_not_negative(getattr(self, name), name)

    def start(self, error: Scalar = 0.0, output: Scalar = 0.0) -> State:
        """Return the state from which a constant error begins with a given output.

        Parameters
        ----------
        error : float or array, optional
            Error that stays constant, 0 by default.
        output : float or array, optional
            Output at the start, 0 by default.
        """
        zero = np.zeros(np.shape(self.kp + self.ki + self.kd + error + output))
        return self.State(output - self.kp * error + zero, zero, error + zero, output + zero)

    def step(self, state: State, input: Scalar) -> tuple[State, Scalar]:
        """Return the next state and the output.

        Parameters
        ----------
        state : PID.State
            State.
        input : float or array
            Error.
        """
        more = self.ki * self.dt * input
        integral = state.integral + more
        rise = self.filter_time * state.slope + (input - state.error)
        slope = rise / (self.filter_time + self.dt)
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
