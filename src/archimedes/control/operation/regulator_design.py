"""Regulators of nonlinear models about an operating point."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.linear.regulators import dlqr, lqr
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.operation.linearization import linearize
from archimedes.tree import struct

__all__ = ["LQRDesign", "lqr_design"]


@struct
class LQRDesign:
    """A regulator about an operating point: u = u0 - K (x - x0).

    ``system`` is what it was designed for, ``X`` (n, n) the cost of its states.

    >>> import numpy as np
    >>> from archimedes import control
    >>> swing = lambda t, x, u: np.array([x[1], u[0] - np.sin(x[0])])
    >>> design = control.lqr_design(swing, np.zeros(2), np.zeros(1), Q=np.eye(2), R=np.eye(1))
    >>> design.K.round(4), design.system.A.round(4).tolist()
    (array([[0.4142, 1.3522]]), [[0.0, 1.0], [-1.0, 0.0]])
    """

    K: Any
    X: Any
    x: Any
    u: Any
    system: StateSpace

    def step(self, state: Any, input: Any) -> tuple[Any, Any]:
        """Return the state, which it has none of, and u with the structure of ``self.u``."""
        u, back = tree.ravel(self.u)
        away = tree.ravel(input)[0] - tree.ravel(self.x)[0]
        return state, back(u - self.K @ away)


def lqr_design(
    dynamics: Any,
    x: Any,
    u: Any,
    Q: Any,
    R: Any,
    N: Any = None,
    *,
    dt: Any = None,
    t: Any = 0.0,
    args: tuple[Any, ...] = (),
) -> LQRDesign:
    """Linearise ``dynamics(t, x, u, *args)`` about x, u and design a regulator.

    Q and R are matrices, or vectors of weights (diagonals). With ``dt`` the regulator is one for
    inputs held over steps (`dlqr`). Works in recorded code, so that ``arc.vmap`` designs for many
    operating points at once.

    >>> design = lqr_design(lambda t, x, u: np.array([x[1], u[0] + np.sin(x[0])]),
    ...                     np.zeros(2), np.zeros(1), [1.0, 1.0], [1.0])
    >>> design.K.round(4)
    array([[2.4142, 2.4142]])
    """
    system = linearize(dynamics, x, u, t=t, args=args)
    Q, R = (np.diag(M) if np.ndim(M) == 1 else M for M in (Q, R))
    if dt is None:
        K, X = lqr(system.A, system.B, Q, R, N)
    else:
        system = system.discretize(dt)
        K, X = dlqr(system.A, system.B, Q, R, N)
    return LQRDesign(K, X, x, u, system)
