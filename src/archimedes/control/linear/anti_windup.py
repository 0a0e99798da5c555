"""Anti-windup for any linear controller: it follows what the actuators really did.

The states of the controller are an observer of its own output (K. Astrom, B. Wittenmark, "Computer
controlled systems", 3rd ed., sect. 3.6; M. Kothare and others, Automatica 30, 1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import checks
from archimedes.control.blocks.compensators import limit
from archimedes.control.linear.matrix_equations import solve_dare
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.matrix_checks import matrix, vector
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["AntiWindup"]


@struct
class AntiWindup:
    """A linear controller in discrete time whose outputs have limits, with anti-windup.

    Where the output u = C x + D e is limited to v, the state follows
    x+ = A x + B e + gain (v - u): integrals do not run away, and the controller takes over without
    a jump when the limit is left. Any `StateSpace` will do: designs of `lqg`, `hinfsyn` or `tf`.

    Parameters
    ----------
    controller : StateSpace
        Controller in discrete time, with n states, m inputs and p outputs.
    lower : float or array (p,), optional
        Lower limit of the outputs. -inf by default.
    upper : float or array (p,), optional
        Upper limit of the outputs. inf by default.
    rate : float or array (p,), optional
        Largest change of the outputs per second. inf by default.
    gain : array (n, p), optional
        How the state follows what was limited. By default that of the filter that explains best
        what was put out: B D^-1 where D is invertible and this is stable (Hanus' conditioning).

    Examples
    --------
    >>> from archimedes.control import AntiWindup, tf
    >>> pi = tf([2.0, 1.0], [1.0, 0.0]).to_ss().discretize(0.1)  # 2 + 1 / s
    >>> block = AntiWindup(pi, lower=-1.0, upper=1.0)
    >>> state, output = block.step(block.start(), [3.0])
    >>> output
    array([1.])
    """

    @struct
    class State:
        """The state of the controller, and the output of the last step.

        Parameters
        ----------
        x : array (n,)
            State of the controller.
        output : array (p,)
            Output of the last step.
        """

        x: Array
        output: Array

    controller: StateSpace
    lower: Scalar = -np.inf
    upper: Scalar = np.inf
    rate: Scalar = np.inf
    gain: Any = field(default=None)

    def __post_init__(self) -> None:
        system = self.controller
        if not isinstance(system, StateSpace) or system.dt is None:
            raise ValueError(
                "controller must be a StateSpace in discrete time: use ss(system).discretize(dt)"
            )
        checks.check_limits(self.lower, self.upper, "lower and upper")
        checks.check_not_negative(self.rate, "rate")
        if self.gain is None:
            gain = _follow_output(system)
        else:
            gain = matrix(self.gain, "gain", system.nstates, system.noutputs)
        object.__setattr__(self, "gain", gain)

    def start(self, x: ArrayLike | None = None, output: ArrayLike | None = None) -> State:
        """Return the state at the start.

        Parameters
        ----------
        x : array (n,), optional
            State of the controller, zero by default.
        output : array (p,), optional
            Output before the first step, from which the rate is limited; zero by default.
        """
        n, p = self.controller.nstates, self.controller.noutputs
        return self.State(
            np.zeros(n) if x is None else vector(x, "x", n),
            np.zeros(p) if output is None else vector(output, "output", p),
        )

    def step(self, state: State, input: ArrayLike) -> tuple[State, Array]:
        """Return the next state and the output (p,).

        Parameters
        ----------
        state : AntiWindup.State
            State.
        input : array (m,)
            Input of the controller, mostly the control error.
        """
        following, wanted = self.controller.step(state.x, input)
        dt: Any = self.controller.dt
        output: Any = limit(wanted, state.output, self.lower, self.upper, self.rate * dt)
        return self.State(following + self.gain @ (output - wanted), output), output


def _follow_output(system: StateSpace) -> Array:
    """Return the gain of the filter that estimates the state from the output, driven by noise e."""
    A, B, C, D = system
    if not system.nstates:
        return np.zeros((0, system.noutputs))
    # What D does not reach is exact but for this.
    noise = 1e-10 * (np.sum(D * D) + np.sum((C @ B) * (C @ B)) + 1e-20)
    R = D @ D.T + noise * np.eye(system.noutputs)
    try:
        P = solve_dare(A.T, C.T, B @ B.T, R, B @ D.T)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"AntiWindup: the output does not show every unstable mode of the controller: {error}. "
            "Use minreal(controller), or give gain"
        ) from None
    return np.linalg.solve(R + C @ P @ C.T, C @ P @ A.T + D @ B.T).T
