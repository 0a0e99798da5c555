"""Lead-lag compensators in steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import check_positive
from archimedes.tree import field, struct

__all__ = ["LeadLag"]


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

        input: Any
        output: Any

    lead: Any = field(units="s")
    lag: Any = field(units="s")
    dt: Any = field(units="s")
    gain: Any = 1.0

    def __post_init__(self) -> None:
        check_positive(self.dt, "dt")
        check_positive(self.lag, "lag")

    def start(self, input: Any = 0.0) -> State:
        """Return the state at rest with a constant input.

        Parameters
        ----------
        input : float or array, optional
            Constant input, 0 by default.
        """
        zero = np.zeros(np.shape(self.gain + self.lead + self.lag + input))
        return self.State(input + zero, self.gain * input + zero)

    def step(self, state: State, input: Any) -> tuple[State, Any]:
        """Return the next state and the output.

        Parameters
        ----------
        state : LeadLag.State
            State.
        input : float or array
            Input.
        """
        driven = (2 * self.lead + self.dt) * input - (2 * self.lead - self.dt) * state.input
        output = ((2 * self.lag - self.dt) * state.output + self.gain * driven) / (
            2 * self.lag + self.dt
        )
        return self.State(np.zeros(np.shape(output)) + input, output), output
