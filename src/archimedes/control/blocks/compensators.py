"""Blocks for one signal: limiter, PID control, lead-lag compensator, digital filter.

PID control: K. Astrom, R. Murray, "Feedback systems", 2008, 10.4 and 10.5 (back-calculation);
K. Astrom, T. Hagglund, "Advanced PID control", 2006, 3.5 (conditional integration).
"""

from __future__ import annotations

import numpy as np

from archimedes import checks
from archimedes.control.matrix_checks import vector
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar

__all__ = ["PID", "IIRFilter", "LeadLag", "Limiter"]


def limit(value: Scalar, last: Scalar, lower: Scalar, upper: Scalar, change: Scalar) -> Scalar:
    """Hold a value within limits, and within ``change`` of the last one, which has priority."""
    held = np.minimum(np.maximum(value, lower), upper)
    return np.minimum(np.maximum(held, last - change), last + change)


@struct
class Limiter:
    """Saturation and rate limit, for numbers or arrays of several channels.

    Parameters
    ----------
    dt : float
        Length of a step in s.
    lower : float or array, optional
        Lower limit. -inf by default.
    upper : float or array, optional
        Upper limit. inf by default.
    rate : float or array, optional
        Largest change per second. inf by default.

    Examples
    --------
    >>> limiter = Limiter(dt=0.1, lower=-1.0, upper=1.0, rate=5.0)
    >>> state, output = limiter.step(0.0, 3.0)
    >>> output
    np.float64(0.5)
    """

    dt: Scalar = field(units="s")
    lower: Scalar = -np.inf
    upper: Scalar = np.inf
    rate: Scalar = np.inf

    def __post_init__(self) -> None:
        checks.check_positive(self.dt, "dt", "s")
        checks.check_limits(self.lower, self.upper, "lower and upper")
        checks.check_not_negative(self.rate, "rate")

    def step(self, state: Scalar, input: Scalar) -> tuple[Scalar, Scalar]:
        """Return the output, as state and as output.

        Parameters
        ----------
        state : float or array
            Output of the last step. Start with the first output.
        input : float or array
            Input.
        """
        output = limit(input, state, self.lower, self.upper, self.rate * self.dt)
        return output, output


@struct
class LeadLag:
    """The lead-lag compensator ``gain (1 + lead s) / (1 + lag s)``, by the Tustin rule.

    Parameters are numbers, or arrays for several channels.

    Parameters
    ----------
    lead : float or array
        Lead time in s. 0 is a lag alone.
    lag : float or array
        Lag time in s.
    dt : float
        Length of a step in s.
    gain : float or array, optional
        Static gain, 1 by default.

    Examples
    --------
    >>> block = LeadLag(lead=0.5, lag=0.1, dt=0.02)
    >>> state, output = block.step(block.start(), 1.0)
    >>> output.round(4)
    np.float64(4.6364)
    """

    @struct
    class State:
        """Input and output of the last step.

        Parameters
        ----------
        input : float or array
            Input of the last step.
        output : float or array
            Output of the last step.
        """

        input: Scalar
        output: Scalar

    lead: Scalar = field(units="s")
    lag: Scalar = field(units="s")
    dt: Scalar = field(units="s")
    gain: Scalar = 1.0

    def __post_init__(self) -> None:
        checks.check_positive(self.dt, "dt", "s")
        checks.check_positive(self.lag, "lag", "s")

    def start(self, input: Scalar = 0.0) -> State:
        """Return the state at rest with a constant input.

        Parameters
        ----------
        input : float or array, optional
            Constant input, 0 by default.
        """
        zero = np.zeros(np.shape(self.gain + self.lead + self.lag + input))
        return self.State(input + zero, self.gain * input + zero)

    def step(self, state: State, input: Scalar) -> tuple[State, Scalar]:
        """Return the next state and the output.

        Parameters
        ----------
        state : LeadLag.State
            State.
        input : float or array
            Input.
        """
        driven = (2 * self.lead + self.dt) * input - (2 * self.lead - self.dt) * state.input
        held = (2 * self.lag - self.dt) * state.output
        output = (held + self.gain * driven) / (2 * self.lag + self.dt)
        return self.State(np.zeros(np.shape(output)) + input, output), output


@struct
class IIRFilter:
    """The digital filter b/a, as `scipy.signal.lfilter` computes it (direct form II, transposed).

    The coefficients are those of `scipy.signal.butter` and its relatives.

    Parameters
    ----------
    b : array
        Coefficients of the numerator in powers of 1/z.
    a : array
        Coefficients of the denominator in powers of 1/z.

    Examples
    --------
    >>> smooth = IIRFilter(b=[0.5, 0.5], a=[1.0])
    >>> state, output = smooth.step(smooth.start(), 1.0)
    >>> output
    np.float64(0.5)
    """

    b: Array
    a: Array

    def __post_init__(self) -> None:
        a, b = vector(self.a, "a"), vector(self.b, "b")
        size = max(a.shape[0], b.shape[0])
        if min(a.shape[0], b.shape[0]) == 0:
            raise ValueError("a and b must have at least one coefficient each")
        if not checks.is_traced(a) and not (np.all(np.isfinite(a)) and a[0] != 0.0):
            raise ValueError(f"a must hold finite numbers, the first of them not zero, got {a}")
        pad = [np.concatenate([c, np.zeros(size - c.shape[0])]) / a[0] for c in (b, a)]
        object.__setattr__(self, "b", pad[0])
        object.__setattr__(self, "a", pad[1])

    def start(self) -> Array:
        """Return the state at rest."""
        return np.zeros(self.a.shape[0] - 1)

    def step(self, state: Array, input: Scalar) -> tuple[Array, Scalar]:
        """Return the next state and the output, of one number.

        Parameters
        ----------
        state : array
            State: max(len(a), len(b)) - 1 numbers.
        input : float
            Input.
        """
        size = self.a.shape[0] - 1
        later = np.concatenate([vector(state, "state", size), np.zeros(1)])
        output = self.b[0] * input + later[0]
        return later[1:] + self.b[1:] * input - self.a[1:] * output, output


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
        checks.check_positive(self.dt, "dt", "s")
        checks.check_limits(self.lower, self.upper, "lower and upper")
        for name in ("kp", "ki", "kd"):
            checks.check_finite(getattr(self, name), name)
        for name in ("rate", "filter_time", "tracking"):
            if getattr(self, name) is not None:
                checks.check_not_negative(getattr(self, name), name)

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
