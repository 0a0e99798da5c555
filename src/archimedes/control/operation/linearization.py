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
    """Return the linear system of small motions about an operating point.

    The derivatives are exact, and are themselves differentiable with respect to x, u and args.
    States, inputs and outputs have the names and units of the structs.

    Parameters
    ----------
    dynamics : callable
        Function ``dynamics(t, x, u, *args)`` that returns dx/dt with the structure of x. With `dt`
        it returns the next state. Without `u` it is called as ``dynamics(t, x, *args)``.
    x : tree
        State of the operating point.
    u : tree, optional
        Inputs of the operating point.
    outputs : callable, optional
        Function ``outputs(t, x, u, *args)`` that returns any tree of numbers. By default the
        outputs are the states.
    t : float, optional
        Time in s, 0 by default.
    args : tuple, optional
        Further arguments of the functions.
    dt : float, optional
        Length of a step in s if `dynamics` returns the next state. None, the default, for
        continuous time.

    Examples
    --------
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
