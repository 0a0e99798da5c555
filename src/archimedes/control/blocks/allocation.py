"""From forces and moments to effectors: a mixer, and allocation within limits.

Johansen, Fossen, "Control allocation - a survey", Automatica 49 (2013), sections 2.2 and 2.3.
"""

from __future__ import annotations

import numpy as np

from archimedes.checks import check_limits, check_not_negative, check_positive, is_traced
from archimedes.control.matrix_checks import check_sizes, matrix, vector
from archimedes.optimize.small.quadratic import solve_qp
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["Allocator", "Mixer"]


@struct
class Mixer:
    """Commands ``mix @ demand``, scaled back together if one of them exceeds its limits.

    All commands are scaled by the same factor about `neutral`, so that the direction of the demand
    is kept. The mixer has no state: pass any value, also None.

    Parameters
    ----------
    mix : array (m, k)
        Matrix that takes a demand to the commands of m effectors.
    lower : float or array, optional
        Lower limit. -inf by default.
    upper : float or array, optional
        Upper limit. inf by default.
    neutral : float or array (m,), optional
        Commands about which all are scaled, 0 by default.

    Examples
    --------
    >>> mixer = Mixer.of([[1.0, 1.0], [1.0, -1.0]], lower=0.0, upper=1.0, neutral=0.5)
    >>> _, commands = mixer.step(None, np.array([0.4, 0.0]))
    >>> commands.round(6)
    array([0.7, 0.7])
    """

    mix: Array
    lower: Scalar = -np.inf
    upper: Scalar = np.inf
    neutral: Scalar = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mix", matrix(self.mix, "mix"))
        check_limits(self.lower, self.upper, "lower and upper")
        known = (self.neutral, self.lower, self.upper)
        if not is_traced(known) and np.any(np.clip(*known) != self.neutral):
            raise ValueError(f"neutral must lie between lower and upper, got {self.neutral}")

    @classmethod
    def of(cls, effects: ArrayLike, **limits: Scalar) -> Mixer:
        """Return the mixer with the smallest commands for given effects (the pseudo-inverse).

        Parameters
        ----------
        effects : array (k, m)
            Effect of each of the m effectors on the k demands.
        **limits
            Limits: `lower`, `upper` and `neutral` of the mixer.
        """
        return cls(np.linalg.pinv(matrix(effects, "effects")), **limits)

    def step(self, state: Tree, input: ArrayLike) -> tuple[Tree, Array]:
        """Return the state as it is, and the commands (m,).

        Parameters
        ----------
        state : tree
            State of the block. It has none, so that any value will do, and is returned.
        input : array (k,)
            Demand.
        """
        wanted = self.mix @ vector(input, "input", self.mix.shape[1])
        up = np.where(wanted > 0.0, self.upper - self.neutral, np.inf)
        down = np.where(wanted < 0.0, self.neutral - self.lower, np.inf)
        size = np.where(wanted == 0.0, 1.0, np.abs(wanted))
        room = np.min(np.minimum(np.minimum(up, down) / size, 1.0))
        return state, self.neutral + room * wanted


@struct
class Allocator:
    """Control allocation: commands within limits whose effects come nearest to a demand.

    It minimizes ``sum(weights (effects u - demand)^2) + ease sum(costs (u - preferred)^2)`` with
    ``lower <= u <= upper`` and ``|u - last| <= rate dt``. The number of iterations is bounded and
    there are no branches on data, so that it maps over thousands of instances and generates C.

    Parameters
    ----------
    effects : array (k, m)
        Effect of each of the m effectors on the k demands.
    lower : float or array, optional
        Lower limit. -inf by default.
    upper : float or array, optional
        Upper limit. inf by default.
    rate : float or array, optional
        Largest change per second. inf by default.
    dt : float, optional
        Length of a step in s, 1 by default.
    weights : float or array (k,), optional
        Weight of each demand, 1 by default.
    costs : float or array (m,), optional
        Cost of each command, 1 by default.
    preferred : float or array (m,), optional
        Commands that cost nothing, 0 by default.
    ease : float, optional
        Weight of the costs relative to the demands, 1e-6 by default.
    max_iter : int, optional
        Largest number of iterations.

    Examples
    --------
    >>> allocator = Allocator([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]], lower=-1.0, upper=1.0)
    >>> _, commands = allocator.step(allocator.start(), np.array([1.5, 0.5]))
    >>> (allocator.effects @ commands).round(4)
    array([1.5, 0.5])
    """

    effects: Array
    lower: Scalar = -np.inf
    upper: Scalar = np.inf
    rate: Scalar = np.inf
    dt: Scalar = field(default=1.0, units="s")
    weights: Scalar = 1.0
    costs: Scalar = 1.0
    preferred: Scalar = 0.0
    ease: float = field(static=True, default=1e-6)
    max_iter: int = field(static=True, default=20)

    def __post_init__(self) -> None:
        effects = matrix(self.effects, "effects")
        object.__setattr__(self, "effects", effects)
        check_limits(self.lower, self.upper, "lower and upper")
        check_not_negative(self.rate, "rate")
        check_positive(self.dt, "dt", "s")
        check_positive(self.ease, "ease")
        k, m = effects.shape
        check_sizes(self, {"weights": k, "costs": m, "lower": m, "upper": m})

    def start(self) -> Array:
        """Return the preferred command, as far as the limits allow."""
        zero = np.zeros(self.effects.shape[1])
        return np.minimum(np.maximum(self.preferred + zero, self.lower), self.upper)

    def step(self, state: ArrayLike, input: ArrayLike) -> tuple[Array, Array]:
        """Return the commands, as state and as output.

        Parameters
        ----------
        state : array (m,)
            Commands of the last step.
        input : array (k,)
            Demand.
        """
        k, m = self.effects.shape
        last, demand = vector(state, "state", m), vector(input, "input", k)
        weighted = self.effects.T * (self.weights + np.zeros(k))
        costs = self.ease * (self.costs + np.zeros(m))
        P = weighted @ self.effects + np.diag(costs)
        q = -(weighted @ demand) - costs * self.preferred
        change = self.rate * self.dt
        low = np.minimum(np.maximum(self.lower + np.zeros(m), last - change), self.upper)
        high = np.maximum(np.minimum(self.upper + np.zeros(m), last + change), low)
        solution = solve_qp(P, q, lower=low, upper=high, max_iter=self.max_iter)
        # Rounding must not carry a command beyond its limit.
        commands = np.minimum(np.maximum(solution.x, low), high)
        return commands, commands
