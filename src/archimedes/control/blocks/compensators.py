"""Lead-lag compensators in steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import check_positive
from archimedes.tree import field, struct

__all__ = ["LeadLag"]


@struct
class LeadLag:
    """gain (1 + lead s) / (1 + lag s), by the trapezoidal (Tustin) rule in steps of dt.

    Times are in seconds; lead = 0 is a lag alone. Numbers, or arrays for several channels.

    >>> block = LeadLag(lead=0.5, lag=0.1, dt=0.02)
    >>> state, output = block.step(block.start(), 1.0)
    >>> output.round(4)
    np.float64(4.6364)
    """

    @struct
    class State:
        """Input and output of the last step."""

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
        """Return the state at rest with a constant input."""
        zero = np.zeros(np.shape(self.gain + self.lead + self.lag + input))
        return self.State(input + zero, self.gain * input + zero)

    def step(self, state: State, input: Any) -> tuple[State, Any]:
        """Return the next state and the output."""
        driven = (2 * self.lead + self.dt) * input - (2 * self.lead - self.dt) * state.input
        output = ((2 * self.lag - self.dt) * state.output + self.gain * driven) / (
            2 * self.lag + self.dt
        )
        return self.State(np.zeros(np.shape(output)) + input, output), output
