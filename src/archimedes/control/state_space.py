"""Linear systems as structs, and transfer functions as such systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.discretization import discretize_linear
from archimedes.control.matrix_checks import matrix, vector
from archimedes.tree import struct

__all__ = ["StateSpace", "tf2ss"]


@struct
class StateSpace:
    """A x + B u is the rate of the state, or the next state; C x + D u is the output.

    >>> lag = StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], D=[[0.0]]).discretize(0.1)
    >>> x, y = lag.step(np.zeros(1), np.ones(1))
    >>> x.round(6), y
    (array([0.095163]), array([0.]))
    """

    A: Any
    B: Any
    C: Any
    D: Any

    def __post_init__(self) -> None:
        n = matrix(self.A, "A").shape[0]
        put = object.__setattr__
        put(self, "A", matrix(self.A, "A", n, n))
        put(self, "B", matrix(self.B, "B", n))
        put(self, "C", matrix(self.C, "C", None, n))
        put(self, "D", matrix(self.D, "D", self.C.shape[0], self.B.shape[1]))

    def step(self, state: Any, input: Any) -> tuple[Any, Any]:
        """Return the next state and the output, of a system in steps."""
        x, u = self._at(state, input)
        return self.A @ x + self.B @ u, self.C @ x + self.D @ u

    def rates(self, state: Any, input: Any) -> Any:
        """Return dx/dt (n,), of a system in continuous time."""
        x, u = self._at(state, input)
        return self.A @ x + self.B @ u

    def outputs(self, state: Any, input: Any) -> Any:
        """Return y (p,)."""
        x, u = self._at(state, input)
        return self.C @ x + self.D @ u

    def discretize(self, dt: Any, method: str = "zoh") -> StateSpace:
        """Return the system in steps of dt seconds; methods are those of `discretize_linear`."""
        return StateSpace(*discretize_linear(self.A, self.B, self.C, self.D, dt, method))

    def _at(self, state: Any, input: Any) -> tuple[Any, Any]:
        n, m = self.B.shape
        return vector(state, "state", n), vector(input, "input", m)


def tf2ss(num: Any, den: Any) -> StateSpace:
    """Return a `StateSpace` with the transfer function num/den, highest powers first.

    One input, one output, in controllable canonical form; ``num`` must not be longer than ``den``.

    >>> tf2ss([1.0], [1.0, 2.0, 3.0]).A
    array([[-2., -3.],
           [ 1.,  0.]])
    """
    den, num = vector(den, "den"), vector(num, "num")
    n = den.shape[0] - 1
    if n < 1:
        raise ValueError("den must have a power of s or z: two coefficients or more")
    if num.shape[0] > n + 1:
        raise ValueError(f"num must have at most the {n + 1} coefficients of den (proper)")
    num = np.concatenate([np.zeros(n + 1 - num.shape[0]), num]) / den[0]
    den = den / den[0]
    A = np.concatenate([-den[None, 1:], np.eye(n - 1, n)])
    B = np.eye(n, 1)
    return StateSpace(A, B, (num[1:] - num[0] * den[1:])[None, :], num[:1][:, None])
