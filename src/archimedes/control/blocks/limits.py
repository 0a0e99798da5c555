"""Saturation and rate limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import check_positive
from archimedes.function import holds_traced
from archimedes.tree import field, struct

__all__ = ["Limiter", "check_limits", "limit"]


def check_limits(lower: Any, upper: Any, rate: Any) -> None:
    """Raise where known limits are crossed or a rate is negative."""
    if not holds_traced((lower, upper)) and not np.all(np.less_equal(lower, upper)):
        raise ValueError(f"lower must not be above upper, got {lower} and {upper}")
    if not holds_traced(rate) and not np.all(np.greater_equal(rate, 0.0)):
        raise ValueError(f"rate must not be negative (inf for no limit), got {rate}")


def limit(value: Any, last: Any, lower: Any, upper: Any, change: Any) -> Any:
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

    dt: Any = field(units="s")
    lower: Any = -np.inf
    upper: Any = np.inf
    rate: Any = np.inf

    def __post_init__(self) -> None:
        check_positive(self.dt, "dt")
        check_limits(self.lower, self.upper, self.rate)

    def step(self, state: Any, input: Any) -> tuple[Any, Any]:
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
