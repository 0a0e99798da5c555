"""Digital filters that step."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.matrix_checks import vector
from archimedes.function import holds_traced
from archimedes.tree import struct

__all__ = ["IIRFilter"]


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

    b: Any
    a: Any

    def __post_init__(self) -> None:
        a, b = vector(self.a, "a"), vector(self.b, "b")
        size = max(a.shape[0], b.shape[0])
        if min(a.shape[0], b.shape[0]) == 0:
            raise ValueError("a and b must have at least one coefficient each")
        if not holds_traced(a) and not (np.all(np.isfinite(a)) and a[0] != 0.0):
            raise ValueError(f"a must hold finite numbers, the first of them not zero, got {a}")
        pad = [np.concatenate([c, np.zeros(size - c.shape[0])]) / a[0] for c in (b, a)]
        object.__setattr__(self, "b", pad[0])
        object.__setattr__(self, "a", pad[1])

    def start(self) -> Any:
        """Return the state at rest."""
        return np.zeros(self.a.shape[0] - 1)

    def step(self, state: Any, input: Any) -> tuple[Any, Any]:
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
