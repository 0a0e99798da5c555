"""What a one-step method is, and the table of all methods.

A method works on flat vectors: the state is ``x`` of shape (n,), its derivative ``f(t, x)`` too.
Everything in it is plain NumPy plus ``archimedes.function`` (loops, ``jac``), written once for
one instance: recorded, it becomes part of one native kernel, and mapped over a batch the instances
are SIMD lanes of that kernel. Nothing in a method may depend on whether it is being recorded.

**Bits.** NumPy adds up in an order of its own, and its elementary functions are not ours. The loops
of a solve may be recorded or run in Python (``stepping/stepwise.py``), with the same results:
whatever sums up or calls an elementary function is a ``piece``, compiled on its own where the loops
are not recorded.

**Stiffness.** Two stages of a step of an explicit method are taken at (nearly) the same time. How
much their slopes differ, over how much their states do, estimates the largest eigenvalue lambda of
the Jacobian. Where h lambda lies at the border of the method's stability region step after step,
stability bounds the steps and not accuracy. Source: E. Hairer, G. Wanner, "Solving Ordinary
Differential Equations II", section IV.2, "Automatic stiffness detection", and the codes DOPRI5 and
DOP853, for the rule of 15 and 6 steps.

Symbols: t time, x state at t, h step (negative when going back in time), theta = (time - t) / h.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.function import Compiled
from archimedes.records import record
from archimedes.symbolic.core.trace import is_tracing
from archimedes.tree import struct

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar

__all__ = ["METHODS", "Method"]

F = TypeVar("F", bound=Callable[..., Any])


def piece(*static: str, often: bool = False) -> Callable[[F], F]:
    """Decorate a function of arrays: on numbers it is compiled; ``static`` names are fixed.

    One that is called ``often`` is compiled at the first call, others when that is worth it.

    >>> import numpy as np
    >>> float(piece()(lambda x: np.sum(x))(np.ones(3)))
    3.0
    """

    def decorate(function: F) -> F:
        @functools.cache
        def compiled() -> Compiled:
            function_ = Compiled(function, static_argnames=static or None, freeze=True)
            return function_.compile_at_once() if often else function_

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args) if is_tracing() else compiled()(*args)

        return call  # type: ignore[return-value]

    return decorate


#: Rows of a table of coefficients.
Rows = tuple[tuple[float, ...], ...]


def read_tables(method: str) -> dict[str, Rows]:
    """Return the tables of a method in ``coefficients.txt``, by name.

    >>> read_tables("heun")["errors"]
    ((-0.5, 0.5),)
    """

    def number(text: str) -> float:
        numerator, _, denominator = text.partition("/")
        return float(numerator) / float(denominator or 1.0)

    text = Path(__file__).with_name("coefficients.txt").read_text("utf-8")
    tables = re.findall(rf"^\[{method} (\w+)\]([^\[#]*)", text, re.MULTILINE)
    return {
        name: tuple(tuple(map(number, row.split())) for row in rows.split(";"))
        for name, rows in tables
    }


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
def rms_norm(error: Array, scale: Array) -> Any:
    """Root mean square of error / scale (Hairer, Norsett, Wanner I, eq. II.4.11).

    >>> float(rms_norm(np.array([3.0, 4.0]), np.array([1.0, 1.0])))
    3.5355339059327378
    """
    ratio = error / scale
    return np.sqrt(np.sum(ratio * ratio) / ratio.size)


@record
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
        Loop of a solver that has its own: ``drive(kernels, args, samples)`` returns a
        `collectors.Result` with what the `collectors.Samples` ask for.
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
    #: Solvers with a loop of their own: ``(kernels, args, samples) -> Result``.
    drive: Callable[..., Any] | None = None
    #: Steps that a solve makes unless ``max_steps`` says more; None: as many as solves in kernels.
    most_steps: int | None = None


#: Every method by name; filled by ``register`` when the module that has it is imported.
METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method to the table under its name."""
    METHODS[method.name] = method
    return method


def evaluate_dense(coefficients: Array, theta: Scalar) -> Any:
    """Return sum over k of theta^k c[k-1] for coefficients (degree, n), by Horner's rule.

    >>> evaluate_dense(np.array([[1.0], [2.0]]), 0.5)
    array([1.])
    """
    total = coefficients[-1] * theta
    for row in coefficients[-2::-1]:
        total = (total + row) * theta
    return total


#: A system is stiff after HITS steps at the border, unless MISSES steps in a row are not there.
HITS, MISSES = 15, 6
#: The part of the stability region's extent from which on a step is at the border.
BORDER = 0.9


@struct
class Suspicion:
    """Steps at the border of stability so far, and those that were not since the last one."""

    hits: Any
    misses: Any


@piece()
def estimate(h: Scalar, slopes: Array, states: Array, x: Array, slope: Array) -> Any:
    """Return h |lambda| from the differences of two slopes and of the states they belong to.

    Numbers count relative to their size (x, or what the slope moves it by in a step): the fast
    ones are often small.
    """
    scale = np.abs(x) + np.abs(h * slope) + 1e-300
    weight = 1.0 / scale
    slopes, states = slopes * weight, states * weight
    much, little = np.sum(slopes * slopes), np.sum(states * states)
    known = little > 0.0
    return np.abs(h) * np.sqrt(np.where(known, much, 0.0) / np.where(known, little, 1.0))


def count_hits(before: Suspicion, stiffness: Array, extent: float) -> Suspicion:
    """Return the suspicion after one more step; once certain it stays."""
    hit = stiffness > BORDER * extent
    misses = np.where(hit, 0, before.misses + 1)
    forgotten = (misses >= MISSES) & (before.hits < HITS)
    hits = np.where(hit, before.hits + 1, np.where(forgotten, 0, before.hits))
    return Suspicion(hits, misses)


def is_stiff(suspicion: Suspicion) -> Any:
    """Return whether the steps so far make the system stiff."""
    return suspicion.hits >= HITS


#: Steps of a solve, unless ``max_steps`` says more: made in Python they take some 0.2 ms each, and
#: one that chatters at a switch should end within the patience of whoever waits for it.
MOST_STEPS = 100_000


def method_outside(name: str, drive: Callable[..., Any]) -> Method:
    """Return the description of a method whose ``drive`` makes all its steps."""

    def refuse(*_: Any) -> Any:
        raise ArchimedesError(
            f"method={name!r} runs outside the kernels, in solve_ode on numbers only: inside "
            "recorded functions, derivatives and batches use method='rodas5p'"
        )

    return Method(
        name=name,
        order=5,
        error_order=5,
        dense_order=0,
        dense_degree=0,
        start=refuse,
        step=refuse,
        dense=refuse,
        stiff=True,
        drive=drive,
        most_steps=MOST_STEPS,
    )
