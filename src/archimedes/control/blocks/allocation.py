"""From forces and moments to effectors: a mixer, and allocation within limits.

Johansen, Fossen, "Control allocation - a survey", Automatica 49 (2013), sections 2.2 and 2.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.blocks.limits import check_limits
from archimedes.control.matrix_checks import check_positive, matrix, vector
from archimedes.function import holds_traced
from archimedes.optimize.small.quadratic import solve_qp
from archimedes.tree import field, struct

__all__ = ["Allocator", "Mixer"]


@struct
class Mixer:
    """Commands = mix @ demand, scaled back as a whole where one would leave its limits.

    ``mix`` (m, k) takes a demand (k,) to m effectors; `Mixer.of(effects)` is the pseudo-inverse
    of the matrix (k, m) of what each effector does. About ``neutral`` all commands are scaled by
    one factor, so that the direction of the demand is kept. Without a state: pass any, also None.

    >>> mixer = Mixer.of([[1.0, 1.0], [1.0, -1.0]], lower=0.0, upper=1.0, neutral=0.5)
    >>> _, commands = mixer.step(None, np.array([0.4, 0.0]))
    >>> commands.round(6)
    array([0.7, 0.7])
    """

    mix: Any
    lower: Any = -np.inf
    upper: Any = np.inf
    neutral: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mix", matrix(self.mix, "mix"))
        check_limits(self.lower, self.upper, 0.0)
        known = (self.lower, self.upper, self.neutral)
        if not holds_traced(known) and not np.all(
            (self.lower <= np.asarray(self.neutral)) & (np.asarray(self.neutral) <= self.upper)
        ):
            raise ValueError(f"neutral must lie between lower and upper, got {self.neutral}")

    @classmethod
    def of(cls, effects: Any, **limits: Any) -> Mixer:
        """Return the mixer of the least commands with these effects (k, m)."""
        return cls(np.linalg.pinv(matrix(effects, "effects")), **limits)

    def step(self, state: Any, input: Any) -> tuple[Any, Any]:
        """Return the state as it is, and the commands (m,)."""
        wanted = self.mix @ vector(input, "input", self.mix.shape[1])
        up = np.where(wanted > 0.0, self.upper - self.neutral, np.inf)
        down = np.where(wanted < 0.0, self.neutral - self.lower, np.inf)
        size = np.where(wanted == 0.0, 1.0, np.abs(wanted))
        room = np.min(np.minimum(np.minimum(up, down) / size, 1.0))
        return state, self.neutral + room * wanted


@struct
class Allocator:
    """Commands (m,) within limits whose effects come nearest to a demand (k,): a small QP.

    Minimises sum(weights (effects u - demand)^2) + ``ease`` sum(costs (u - preferred)^2) with
    ``lower <= u <= upper`` and ``|u - last| <= rate dt``. The state is the last command.
    A bounded number of iterations without branches on data: maps over thousands and generates C.

    >>> allocator = Allocator([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]], lower=-1.0, upper=1.0)
    >>> _, commands = allocator.step(allocator.start(), np.array([1.5, 0.5]))
    >>> (allocator.effects @ commands).round(4)
    array([1.5, 0.5])
    """

    effects: Any
    lower: Any = -np.inf
    upper: Any = np.inf
    rate: Any = np.inf
    dt: Any = field(default=1.0, units="s")
    weights: Any = 1.0
    costs: Any = 1.0
    preferred: Any = 0.0
    ease: float = field(static=True, default=1e-6)
    max_iter: int = field(static=True, default=20)

    def __post_init__(self) -> None:
        effects = matrix(self.effects, "effects")
        object.__setattr__(self, "effects", effects)
        check_limits(self.lower, self.upper, self.rate)
        check_positive(self.dt, "dt")
        if not self.ease > 0.0:
            raise ValueError(f"ease must be above zero, got {self.ease}")
        k, m = effects.shape
        for name, size in (("weights", k), ("costs", m), ("lower", m), ("upper", m)):
            shape = np.shape(getattr(self, name))
            if shape not in ((), (size,)):
                raise ValueError(f"{name} must be a number or a vector ({size},), got {shape}")

    def start(self) -> Any:
        """Return the preferred command, as far as the limits allow."""
        zero = np.zeros(self.effects.shape[1])
        return np.minimum(np.maximum(self.preferred + zero, self.lower), self.upper)

    def step(self, state: Any, input: Any) -> tuple[Any, Any]:
        """Return the commands, as state and as output."""
        k, m = self.effects.shape
        last, demand = vector(state, "state", m), vector(input, "input", k)
        weighted = self.effects.T * (self.weights + np.zeros(k))
        costs = self.ease * (self.costs + np.zeros(m))
        P = weighted @ self.effects + np.diag(costs)
        q = -(weighted @ demand) - costs * self.preferred
        change = self.rate * self.dt
        low = np.minimum(np.maximum(self.lower + np.zeros(m), last - change), self.upper)
        high = np.maximum(np.minimum(self.upper + np.zeros(m), last + change), low)
        found = solve_qp(P, q, lower=low, upper=high, max_iter=self.max_iter)
        # Rounding must not carry a command beyond its limit.
        commands = np.minimum(np.maximum(found.x, low), high)
        return commands, commands
