"""The linear system of small motions about a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.operation.named_numbers import named_numbers
from archimedes.errors import ShapeDtypeError
from archimedes.function import jac
from archimedes.function.identity.store import Current, form_of, prepared
from archimedes.function.prepared_functions import prepared_function

__all__ = ["linearize"]


def linearize(
    dynamics: Callable[..., Any],
    x: Any,
    u: Any = None,
    outputs: Callable[..., Any] | None = None,
    *,
    t: Any = 0.0,
    args: tuple[Any, ...] = (),
    dt: Any = None,
) -> StateSpace:
    """Return the `StateSpace` of small motions about x, u, with the names and units of structs.

    ``dynamics(t, x, u, *args)`` returns dx/dt with the structure of x (with ``dt``, the next
    state); ``outputs(t, x, u, *args)`` any tree of numbers, without it the outputs are the states.
    Without ``u`` functions are called as ``(t, x, *args)``. The derivatives are exact, and
    themselves have derivatives in x, u and args.

    >>> swing = lambda t, x, u: {"angle": x["speed"], "speed": u - np.sin(x["angle"])}
    >>> system = linearize(swing, {"angle": np.pi, "speed": 0.0}, 0.0)
    >>> system.states, system.A.round(6)
    (('angle', 'speed'), array([[0., 1.],
           [1., 0.]]))
    """
    if not callable(dynamics):
        raise TypeError(f"dynamics must be a function (t, x, u, *args), got {dynamics!r}")
    xs, us = named_numbers(x, "x"), named_numbers(() if u is None else u, "u")
    n, m = xs.vector.shape[0], us.vector.shape[0]
    driven, states, controls = u is not None, xs.unravel, us.unravel

    def of(function: Callable[..., Any]) -> Any:
        def make(current: Current) -> Any:
            def flat(z: Any, t: Any, args: Any) -> Any:
                given = (states(z[:n]), *((controls(z[n:]),) if driven else ()))
                return tree.ravel(current.functions[0](t, *given, *args))[0] * 1.0

            name = getattr(function, "__name__", "function")
            return jac(prepared_function(flat, (current,), name))

        return prepared("linearize", (function,), form_of((x, u)), make)

    z = np.concatenate([xs.vector, us.vector])
    AB = of(dynamics)(z, t, args)
    if AB.shape[0] != n:
        raise ShapeDtypeError(
            f"dynamics returns {AB.shape[0]} numbers for a state of {n}: it must return dx/dt with "
            "the structure of x"
        )
    names = {"states": xs.names, "state_units": xs.units, "inputs": us.names}
    if outputs is None:
        CD = np.concatenate([np.eye(n), np.zeros((n, m))], axis=1)
        seen = (xs.names, xs.units)
    else:
        CD = of(outputs)(z, t, args)
        example = outputs(t, x, *(() if u is None else (u,)), *args)
        seen = named_numbers(example, "y")[2:]
    return StateSpace(
        AB[:, :n],
        AB[:, n:],
        CD[:, :n],
        CD[:, n:],
        dt,
        **names,
        input_units=us.units,
        outputs=seen[0],
        output_units=seen[1],
    )
