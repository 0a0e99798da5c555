"""``qpsol``: quadratic programs given as functions of trees."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.function import grad, hess, jac
from archimedes.function.derivatives.transforms import is_linear, is_quadratic
from archimedes.function.recording_store import Current, form_of, prepared, prepared_function
from archimedes.optimize.problems.unknowns import as_unknowns, as_vector, check_order, read_limits
from archimedes.optimize.small.quadratic import QPSolution, solve_qp

__all__ = ["qpsol"]


def qpsol(
    obj: Callable[..., Any],
    constr: Callable[..., Any] | None,
    x0: Any,
    lba: Any = None,
    uba: Any = None,
    lam_a0: Any = None,
    args: Any = (),
    verbose: bool = False,
    name: str | None = None,
    warm_start: bool = True,
    *,
    bounds: Any = None,
    tol: float = 1e-9,
    max_iter: int = 40,
) -> QPSolution:
    """Minimize a quadratic objective with a linear constraint, ``lba <= constr(x, *args) <= uba``.

    Whether the functions are quadratic and linear is read from their recording, not from values. It
    calls :func:`solve_qp`, also inside compiled functions and under :func:`vmap`.

    Parameters
    ----------
    obj : callable
        Quadratic objective ``obj(x, *args)``.
    constr : callable or None
        Linear constraint ``constr(x, *args)``.
    x0 : tree
        Unknowns, which give the structure of x. With `lam_a0`, the point from which the iteration
        resumes.
    lba : float or array, optional
        Lower limit of the constraint. None: no limit.
    uba : float or array, optional
        Upper limit of the constraint. Rows with equal limits are equations.
    lam_a0 : array, optional
        Multipliers of a similar program.
    args : tuple, optional
        Further arguments of the functions.
    verbose : bool, optional
        Accepted for compatibility; it has no effect.
    name : str, optional
        Accepted for compatibility; it has no effect.
    warm_start : bool, optional
        Resume from `x0` and `lam_a0`. True by default.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    tol : float, optional
        Tolerance, as in :func:`solve_qp`.
    max_iter : int, optional
        Largest number of iterations.

    Examples
    --------
    >>> cost = lambda x: (x["a"] - 1.0) ** 2 + (x["b"] - 2.0) ** 2
    >>> found = qpsol(cost, lambda x: x["a"] + x["b"], {"a": 0.0, "b": 0.0}, uba=2.0)
    >>> {k: round(float(v), 6) for k, v in found.x.items()}
    {'a': 0.5, 'b': 1.5}
    """
    del verbose, name
    if not callable(obj) or not (constr is None or callable(constr)):
        raise TypeError("qpsol: obj and constr must be functions (constr may be None)")
    given = args if isinstance(args, tuple) else (args,)
    if not is_traced(x0):
        x0 = as_unknowns(x0)  # raises where it is no tree of finite numbers
    origin, unravel = tree.ravel(tree.map(lambda leaf: np.zeros(np.shape(leaf)), x0))
    n = origin.size
    form = form_of((unravel(origin), given))
    cost = prepared("quadratic objective", (obj,), form, lambda now: _Objective(now, unravel))
    lower, upper = read_limits(bounds, x0, "bounds")
    box = (None, None) if bounds is None else (lower, upper)
    if not cost.fits(origin, given):
        raise ValueError(
            "qpsol: obj is not quadratic: its second derivatives change with x, or x decides what "
            "is computed (np.abs, np.maximum, np.where); use minimize"
        )
    P, q = cost.bend(origin, *given), cost.slope(origin, *given)
    A, low, high, back, values = _rows(constr, unravel, origin, given, lba, uba, form)
    guess = None
    if warm_start and lam_a0 is not None and constr is not None:
        at = tree.ravel(x0)[0] * 1.0, tree.ravel(lam_a0)[0] * 1.0
        guess = QPSolution(at[0], at[1], np.zeros(n), 0.0, 0, 0, 0.0)
    found = solve_qp(P, q, A, low, high, *box, tol=tol, max_iter=max_iter, guess=guess)
    fixed = cost.value(origin, *given)
    if not is_traced(x0, given, found) and found.status == 0:
        _check_model("obj", "quadratic", cost.value(found.x, *given), found.fun + fixed)
        if constr is not None:
            model = A @ found.x + values(origin, *given)
            _check_model("constr", "linear", values(found.x, *given), model)
    return replace(
        found,
        x=unravel(found.x),
        lam_a=back(found.lam_a),
        lam_x=unravel(found.lam_x),
        fun=found.fun + fixed,
    )


class _Objective:
    """The objective as a function of a vector, recorded once, with its derivatives."""

    def __init__(self, current: Current, unravel: Callable[[Any], Any]) -> None:
        def cost(x: Any, *args: Any) -> Any:
            return current.functions[0](unravel(x), *args)

        self.value = prepared_function(cost, (current,), "obj")
        self.slope, self.bend = grad(self.value), hess(self.value)
        self._fits: bool | None = None

    def fits(self, origin: Any, args: tuple[Any, ...]) -> bool:
        """Return whether it is quadratic, which arguments of this form do not change."""
        if self._fits is None:
            self._fits = is_quadratic(self.value)(origin, *args)
        return self._fits


class _Constraints:
    """The constraints as a function of a vector, recorded once, with their derivative."""

    def __init__(self, current: Current, unravel: Callable[[Any], Any]) -> None:
        def whole(x: Any, *args: Any) -> Any:
            return current.functions[0](unravel(x), *args)

        #: As the user returns them.
        self.whole = whole = prepared_function(whole, (current,), "constr")
        self.rows = prepared_function(lambda x, *args: tree.ravel(whole(x, *args))[0] * 1.0)
        self.slope = jac(self.rows)
        self._fits: bool | None = None

    def fits(self, origin: Any, args: tuple[Any, ...]) -> bool:
        """Return whether they are linear, which arguments of this form do not change."""
        if self._fits is None:
            self._fits = is_linear(self.rows)(origin, *args)
        return self._fits


def _rows(
    constr: Any,
    unravel: Any,
    origin: Any,
    args: tuple[Any, ...],
    lba: Any,
    uba: Any,
    form: Hashable,
) -> tuple[Any, Any, Any, Callable[[Any], Any], Callable[..., Any]]:
    """Return A, its limits, the function that gives multipliers their structure, and the rows."""
    if constr is None:
        return np.zeros((0, origin.size)), None, None, lambda lam: lam, lambda *args: np.zeros(0)
    made = prepared("linear constraints", (constr,), form, lambda now: _Constraints(now, unravel))
    example = made.whole(origin, *args)
    constant, back = tree.ravel(example)
    if not made.fits(origin, args):
        raise ValueError(
            "qpsol: constr is not linear: its derivatives change with x, or x decides what is "
            "computed (np.abs, np.maximum, np.where); use minimize"
        )
    low = as_vector(lba, example, -np.inf, "lba") - constant
    high = as_vector(uba, example, np.inf, "uba") - constant
    if not is_traced(low, high):
        check_order(low, high, example, "lba and uba")
    return made.slope(origin, *args), low, high, back, made.rows


def _check_model(name: str, kind: str, value: Any, model: Any) -> None:
    """Compare a function with its model at the solution, for what loops decide inside."""
    value, model = np.asarray(value, dtype=float), np.asarray(model, dtype=float)
    if np.any(np.abs(value - model) > 1e-6 * (1.0 + np.max(np.abs(model), initial=0.0))):
        k = int(np.argmax(np.abs(value - model)))
        raise ValueError(
            f"qpsol: {name} is not {kind}: at the solution of its {kind} model it is "
            f"{np.ravel(value)[k]:.6g}, the model {np.ravel(model)[k]:.6g}; use minimize"
        )
