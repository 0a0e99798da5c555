"""Trim: states and inputs at which rates and outputs are what they should be.

The search is a bounded least-squares problem in what is free: an equation for each rate and each
output that is prescribed. Where they cannot all be met, what is left has names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.operation.balance import Balance, message_of
from archimedes.control.operation.conditions import (
    Known,
    conditions_of,
    limits_of,
    moving_numbers,
)
from archimedes.control.operation.linearization import linearize
from archimedes.control.operation.model_functions import Model
from archimedes.control.operation.named_numbers import named_numbers
from archimedes.function import holds_traced

__all__ = ["OperatingPoint", "trim"]


@dataclass(frozen=True)
class OperatingPoint:
    """A steady state with its inputs, as `trim` finds it.

    Parameters
    ----------
    x : tree
        State.
    u : tree
        Inputs.
    rates : tree
        dx/dt at the point.
    outputs : tree
        Outputs at the point.
    residuals : dict
        What is left of each prescribed rate (``"rate of NAME"``) and output, by name.
    at_bounds : dict
        Unknowns that are at a bound, with their values.
    success : bool
        Whether all prescribed rates and outputs are met.
    message : str
        What cannot be balanced.
    system : callable
        Function that returns the linearization about the point.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import control
    >>> swing = lambda t, x, u: np.array([x[1], u[0] - np.sin(x[0])])
    >>> held = control.trim(swing, np.array([0.5, 0.0]), np.zeros(1), free=["u[0]"])
    >>> held.success, held.u.round(6), held.rates.round(9) + 0.0
    (True, array([0.479426]), array([0., 0.]))
    """

    x: Any
    u: Any
    rates: Any
    outputs: Any
    residuals: dict[str, float]
    at_bounds: dict[str, float]
    success: bool
    message: str
    system: Callable[[], StateSpace]

    def linearize(self) -> StateSpace:
        """Return the linear system about this point, from the inputs to the outputs."""
        return self.system()

    def report(self) -> str:
        """Return what is left and what is at a bound, one line for each.

        >>> point = trim(lambda t, x, u: u - 2.0 * x, 1.0, 0.0, bounds={"u": (0.0, 1.0)},
        ...              fixed="x")
        >>> print(point.report())
        not balanced: rate of x is left at -1 (u is at its bound 1); widen bounds, free more, or \
start nearer
          rate of x                  -1
          u                        at its bound 1
        """
        lines = [self.message]
        lines += [f"  {name:<20} {value:>+8.3g}" for name, value in self.residuals.items()]
        lines += [f"  {name:<24} at its bound {v:.6g}" for name, v in self.at_bounds.items()]
        return "\n".join(lines)


def trim(
    dynamics: Callable[..., Any],
    x: Any,
    u: Any = None,
    outputs: Callable[..., Any] | None = None,
    *,
    free: Any = None,
    fixed: Any = (),
    rates: Mapping[str, Any] | None = None,
    targets: Mapping[str, Any] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    t: float = 0.0,
    args: tuple[Any, ...] = (),
    through: Sequence[tuple[Any, ...]] = (),
    tol: float = 1e-9,
) -> OperatingPoint:
    """Find a nearby operating point with vanishing rates and prescribed outputs.

    Nothing is raised if there is no such point: ``success`` of the result is False, and ``message``
    names what is left.

    Parameters
    ----------
    dynamics : callable
        Function ``dynamics(t, x, u, *args)`` that returns dx/dt with the structure of x.
    x : tree
        State to start from. Its numbers are named by their paths: ``"alpha"``, ``"v_B[0]"``;
        ``"v_B"`` is all of v_B, and ``"x.NAME"`` and ``"u.NAME"`` tell states and inputs of the
        same name apart.
    u : tree, optional
        Inputs to start from.
    outputs : callable, optional
        Function ``outputs(t, x, u, *args)`` that returns any tree of numbers.
    free : str or sequence of str, optional
        Names of the unknowns. By default all states and inputs.
    fixed : str or sequence of str, optional
        Names of states and inputs that are not unknowns.
    rates : mapping, optional
        Prescribed rates by name: a number, a pair (lower, upper), or None if the rate may have any
        value. All others are zero.
    targets : mapping, optional
        Prescribed outputs by name, likewise. All others may have any value.
    bounds : mapping, optional
        Limits of unknowns by name: pairs (lower, upper).
    t : float, optional
        Time in s, 0 by default.
    args : tuple, optional
        Further arguments of the functions.
    through : sequence of tuple, optional
        Values of `args` to trim for on the way, if `args` is too far from where the search starts.
    tol : float, optional
        Largest residual of a solution, in the units of the rates and outputs.

    Examples
    --------
    >>> level = lambda t, x, u: {"speed": u["thrust"] - 0.1 * x["speed"] ** 2}
    >>> point = trim(level, {"speed": 10.0}, {"thrust": 0.0}, fixed="speed")
    >>> round(float(point.u["thrust"]), 9)
    10.0
    """
    if holds_traced(tree.leaves((x, u, args))):
        raise TypeError(
            "trim runs on numbers, and was given a value of a function that is being recorded: "
            "call it outside, or solve the rates with arc.root, which can be recorded"
        )
    known, start = _known_numbers(x, u)
    model = Model(dynamics, outputs, x, u, args, t)
    # Numbers of the kind that the search has, so that outputs are recorded once.
    seen = None if outputs is None else named_numbers(model.seen(*model.split(start), args), "y")
    moving = moving_numbers(known, free, fixed)
    low, high = (edge[moving] for edge in limits_of(known, bounds))
    wanted = conditions_of(known, seen, rates, targets)
    functions = model.functions(start, moving, wanted)
    balance = Balance(functions, wanted, low, high)
    z = np.clip(start[moving], low, high)
    before = None
    for given in (*through, args):
        found = balance.search(z, given)
        if before is not None and np.any(np.abs(balance.left(found, given)) > tol):
            # A model that jumps (an engine's lag, a table's edge) can hold the search on one side:
            # it starts again from where the last two balances point to.
            ahead = balance.search(np.clip(2.0 * z - before, low, high), given)
            misses = [np.linalg.norm(balance.left(p, given)) for p in (found, ahead)]
            found = ahead if misses[1] < misses[0] else found
        before, z = z, found
    error = balance.left(z, args)
    residuals = {c.name: float(v) for c, v in zip(wanted, error)}
    stuck = {known.full[k]: float(v) for k, v in zip(moving, z)}
    stuck = {k: v for (k, v), on in zip(stuck.items(), (z <= low) | (z >= high)) if on}
    success = bool(np.all(np.abs(error) <= tol))
    reached = {} if success else balance.reached(z, args)
    x, u = functions.split(z)
    with np.errstate(all="ignore"):  # the message says where numbers are not finite
        now = (model.rates(x, u, args), None if outputs is None else model.seen(x, u, args))
    return OperatingPoint(
        x=x,
        u=u,
        rates=now[0],
        outputs=now[1],
        residuals=residuals,
        at_bounds=stuck,
        success=success,
        message="balanced" if success else message_of(residuals, stuck, tol, reached),
        system=lambda: linearize(dynamics, x, u, outputs, t=t, args=args),
    )


def _known_numbers(x: Any, u: Any) -> tuple[Known, np.ndarray]:
    """Return the names of states and inputs, and where the search starts."""
    known = Known(named_numbers(x, "x"), named_numbers(() if u is None else u, "u"))
    start = np.asarray(np.concatenate([known.x.vector, known.u.vector]))
    if not np.all(np.isfinite(start)):
        k = int(np.argmin(np.isfinite(start)))
        raise ValueError(f"trim: {known.full[k]} starts at {start[k]}: give x and u finite numbers")
    return known, start
