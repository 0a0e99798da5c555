"""What a one-step method is, and the table of all of them.

A method works on flat vectors: the state is ``x`` of shape (n,), its derivative ``f(t, x)`` too.
Everything in it is plain NumPy plus ``archimedes.function`` (loops, ``jac``), written once for
one instance: recorded, it becomes part of one native kernel, and mapped over a batch it is the
lane kernel. Nothing in a method may depend on whether it is being recorded.

Symbols: t time, x state at t, h step (negative when going back in time), theta = (time - t) / h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from archimedes.simulate.methods.pieces import piece

__all__ = ["METHODS", "Method", "Step", "evaluate_dense", "register", "rms_norm"]

#: f(t, x) -> derivative, shape (n,)
Derivative = Callable[[Any, Any], Any]


class Step(NamedTuple):
    """The result of one trial step; whether it is accepted is not the method's business.

    ``x``: the new state (n,). ``error``: estimate of the local error, absolute, (n,) (or what the
    method's own ``norm`` takes); None for methods without one. A step that could not be made
    (Newton's iteration did not converge) has a nan or inf in ``error``: it is rejected and tried
    again with a smaller h. ``memory``: what the next step needs if this one is accepted, of the
    same tree, shapes and dtypes as it was given. ``stages``: whatever ``dense`` needs.
    """

    x: Any
    error: Any
    memory: Any
    stages: Any
    #: h times the size of the Jacobian, as far as the method knows it; see ``stiffness.py``.
    stiffness: Any = None


@piece()
def rms_norm(error: Any, scale: Any) -> Any:
    """Root mean square of error / scale (Hairer, Norsett, Wanner I, eq. II.4.11).

    >>> float(rms_norm(np.array([3.0, 4.0]), np.array([1.0, 1.0])))
    3.5355339059327378
    """
    ratio = error / scale
    return np.sqrt(np.sum(ratio * ratio) / ratio.size)


@dataclass(frozen=True, eq=False)
class Method:
    """An integration method that advances the state by one step at a time.

    Parameters
    ----------
    name : str
        Name, the key in `METHODS`.
    order : int
        Order of the solution.
    error_order : int or None
        Order of the error estimate. The step size control uses 1/(error_order + 1) as its exponent.
        None for methods of fixed step size only.
    dense_order : int
        Order of the interpolant.
    dense_degree : int
        Degree of the interpolant, a polynomial in theta, the fraction of the step.
    start : callable
        ``start(f, t, x)`` returns what the first step needs, and the first step after every
        discontinuity: any tree of arrays, such as f(t, x) if the last stage of a step is the first
        of the next.
    step : callable
        ``step(f, t, x, h, memory)`` returns a `Step`. An iterative method gets a sixth argument
        ``scale`` (n,) if the step size is controlled: the local error that is allowed.
    dense : callable
        ``dense(f, t, x, h, step)`` returns the coefficients c (degree, n) of the interpolant ``x(t
        + theta h) = x + sum_k theta^k c[k-1]``. It may evaluate f, since it is called only for
        steps that contain outputs.
    norm : callable, optional
        ``norm(error, scale)`` measures the error. A step is accepted if the result is at most 1. By
        default the root mean square.
    stiff : bool, optional
        Whether the method suits stiff systems. Messages that suggest another method use it.
    iterative : bool, optional
        Whether `step` takes ``scale``, to know when its iteration has converged.
    stability : float, optional
        Extent of the stability region of an explicit method along the negative real axis.
    counts : callable, optional
        Function of the memory that returns counts for the statistics of a solution.
    drive : callable, optional
        Loop of a solver that has its own: (kernels, setup, x0, args, times, max_steps, monitor) to
        `driver.Result`, with every step if times is None.
    most_steps : int, optional
        Default of `max_steps`. None means the common default.

    Examples
    --------
    >>> from archimedes.simulate import METHODS, solve_ode
    >>> _ = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, method="tsit5")
    >>> METHODS["tsit5"].order, METHODS["tsit5"].error_order
    (5, 4)
    """

    name: str
    order: int
    error_order: int | None
    dense_order: int
    dense_degree: int
    start: Callable[[Derivative, Any, Any], Any]
    step: Callable[..., Step]
    dense: Callable[[Derivative, Any, Any, Any, Step], Any]
    norm: Callable[[Any, Any], Any] = rms_norm
    #: For stiff systems: used in messages that say what to try instead.
    stiff: bool = False
    #: Whether ``step`` takes ``scale``, to know when an iteration has converged.
    iterative: bool = False
    #: How far the stability region of an explicit method reaches along the negative real axis.
    stability: float | None = None
    #: What the memory of the last step says for the statistics of a solve.
    counts: Callable[[Any], dict[str, Any]] | None = None
    #: Solvers with a loop of their own: (kernels, setup, x0, args, times, max_steps, monitor) ->
    #: driver.Result, with every step where times is None.
    drive: Callable[..., Any] | None = None
    #: Steps that a solve makes unless ``max_steps`` says more; None: as many as solves in kernels.
    most_steps: int | None = None


#: Every method by name; filled by ``register`` when the module that has it is imported.
METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method to the table under its name."""
    METHODS[method.name] = method
    return method


def evaluate_dense(coefficients: Any, theta: Any) -> Any:
    """Return sum over k of theta^k c[k-1] for coefficients (degree, n), by Horner's rule.

    >>> evaluate_dense(np.array([[1.0], [2.0]]), 0.5)
    array([1.])
    """
    total = coefficients[-1] * theta
    for row in coefficients[-2::-1]:
        total = (total + row) * theta
    return total
