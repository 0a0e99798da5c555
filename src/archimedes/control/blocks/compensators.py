"""Blocks for one signal: saturation and rate limit, lead-lag compensator, digital filter."""

from __future__ import annotations

import numpy as np

from archimedes.checks import check_limits, check_not_negative, check_positive, is_traced
from archimedes.control.matrix_checks import vector
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar

__all__ = ["IIRFilter", "LeadLag", "Limiter"]


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
        check_positive(self.dt, "dt", "s")
        check_limits(self.lower, self.upper, "lower and upper")
        check_not_negative(self.rate, "rate")

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
        check_positive(self.dt, "dt", "s")
        check_positive(self.lag, "lag", "s")

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
        if not is_traced(a) and not (np.all(np.isfinite(a)) and a[0] != 0.0):
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
