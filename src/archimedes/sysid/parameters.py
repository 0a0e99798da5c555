"""Parameters and states as unknowns of a fit, and the result made of its solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.operation.named_numbers import named_numbers
from archimedes.function import holds_traced
from archimedes.optimize.problems.unknowns import limits
from archimedes.sysid.fit_results import Fit
from archimedes.sysid.timeseries import Timeseries
from archimedes.sysid.weighted_fits import Problem, Solved, variances

__all__ = ["Unknowns", "check_given", "finished"]


def check_given(data: Any, p_guess: Any, x0: Any) -> None:
    """Raise where data or guesses cannot be fitted."""
    if holds_traced(tree.leaves((p_guess, x0))):
        raise TypeError(
            "fits run on numbers, and were given a value of a function that is being recorded: "
            "call them outside"
        )
    if not isinstance(data, Timeseries):
        raise TypeError(f"data must be a Timeseries(ts, us, ys), got {type(data).__name__}")
    empty = np.flatnonzero(~np.any(np.isfinite(data.ys), axis=1))
    if empty.size:
        raise ValueError(
            f"data has no measurement of {data.outputs[int(empty[0])]}, all are nan: leave that "
            "output out"
        )
    for value, name in ((p_guess, "p_guess"), (x0, "x0")):
        numbers = named_numbers(value, name)
        if name == "p_guess" and not numbers.names:
            raise ValueError("p_guess holds no numbers to fit")
        bad = np.flatnonzero(~np.isfinite(numbers.vector))
        if bad.size:
            raise ValueError(f"{name} must be finite: {numbers.names[bad[0]]} is not")


@dataclass
class Unknowns:
    """Where parameters and states lie in the vector z, with their bounds."""

    p_guess: Any
    x0: Any
    bounds: Any
    segments: int
    free_x0: bool

    def __post_init__(self) -> None:
        self.p, self.x = named_numbers(self.p_guess, "p"), named_numbers(self.x0, "x0")
        self.n, self.nx = len(self.p.names), len(self.x.names)
        low, high = limits(self.bounds, self.p_guess, "bounds")
        away = np.flatnonzero((self.p.vector < low) | (self.p.vector > high))
        if away.size:
            k = int(away[0])
            raise ValueError(
                f"p_guess is outside its bounds: {self.p.names[k]} is {self.p.vector[k]:.6g}, not "
                f"in [{low[k]:.6g}, {high[k]:.6g}]"
            )
        if np.all(low == high) and not self.free_x0:
            raise ValueError(
                "bounds fix every parameter, so that there is nothing to fit: free one of "
                f"{', '.join(self.p.names) or 'p'}"
            )
        states = np.tile(self.x.vector, self.segments)
        open_ = np.full(states.shape, np.inf)
        if not self.free_x0:
            open_[: self.nx] = 0.0
        self.start = np.concatenate([self.p.vector, states])
        self.lower = np.concatenate([low, np.where(open_ > 0.0, -np.inf, states)])
        self.upper = np.concatenate([high, np.where(open_ > 0.0, np.inf, states)])

    def parameters(self, z: Any) -> Any:
        """Return the tree of parameters in z."""
        return self.p.unravel(z[: self.n])

    def states(self, z: Any) -> Any:
        """Return the states at the beginnings of segments, (segments, nx)."""
        return np.reshape(z[self.n :], (self.segments, self.nx))

    def unravel_x(self, x: Any) -> Any:
        """Return the tree of a state (nx,)."""
        return self.x.unravel(x)


def finished(
    unknowns: Unknowns,
    problem: Problem,
    solved: Solved,
    data: Timeseries,
    predictor: Callable[[Any, Any, Timeseries], np.ndarray],
) -> Fit:
    """Return the result: with covariance, what is not determined, and predictions."""
    n = unknowns.n
    count = int(np.count_nonzero(np.isfinite(data.ys)))
    z = solved.z
    rests = (z <= problem.lower) | (z >= problem.upper)
    free = problem.free & ~rests
    dof = count - int(np.count_nonzero(free)) + len(solved.jump_slopes)
    scale = 2.0 * solved.cost / max(dof, 1) if solved.variance is None else solved.variance
    covariance, blind = variances(solved, free, scale)
    success, message = solved.success, solved.message
    if blind.shape[1]:
        shares = np.abs(blind[:n]).max(axis=1, initial=0.0)
        weak = [k for k, v in zip(unknowns.p.names, shares) if v > 0.1 * shares.max(initial=0.0)]
        success = False
        message = (
            f"the data do not determine {', '.join(weak) or 'the states'}: fix some of them with "
            "equal bounds, or excite the model otherwise"
        )
    if dof < 1:
        success = False
        message = f"{count} measurements are too few for {np.count_nonzero(free)} unknowns"
    p, x0 = unknowns.parameters(z), unknowns.unravel_x(unknowns.states(z)[0])
    bound = problem.free & rests
    return Fit(
        p=p,
        x0=x0,
        names=unknowns.p.names,
        covariance=covariance[:n, :n],
        unravel=unknowns.p.unravel,
        values=z[:n],
        dof=dof,
        predicted=predictor(p, x0, data),
        data=data,
        at_bounds=tuple(name for name, on in zip(unknowns.p.names, bound) if on),
        cost=solved.cost,
        iterations=solved.iterations,
        success=success,
        message=message,
        predictor=lambda other: predictor(p, x0, other),
    )
