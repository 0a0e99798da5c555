"""``qpsol``: quadratic programs given as functions of trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable, is_traced
from archimedes.function import grad, hess, jac
from archimedes.function.derivatives.transforms import is_linear, is_quadratic
from archimedes.function.recording_store import Current, compile_frozen, find_or_make, form_of
from archimedes.optimize.problems.unknowns import as_unknowns, as_vector, check_order, read_limits
from archimedes.optimize.small.quadratic import QPSolution, solve_qp
from archimedes.typing import Array, Tree

__all__ = ["qpsol"]

Unravel = Callable[[Array], Tree]


def qpsol(
    obj: Callable[..., Any],
    constr: Callable[..., Any] | None,
    x0: Tree,
    lba: Tree = None,
    uba: Tree = None,
    lam_a0: Tree = None,
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
    check_callable(obj, "qpsol: obj", "(x, *args)")
    if constr is not None:
        check_callable(constr, "qpsol: constr", "(x, *args) or None")
    args = args if isinstance(args, tuple) else (args,)
    if not is_traced(x0):
        x0 = as_unknowns(x0)  # raises where it is no tree of finite numbers
    origin, unravel = tree.ravel(tree.map(lambda leaf: np.zeros(np.shape(leaf)), x0))
    box = (None, None) if bounds is None else read_limits(bounds, x0, "bounds")
    cost = _prepare(obj, "obj", origin, unravel, args)
    P, q, fixed = (f(origin, *args) for f in (cost.curvature, cost.slope, cost.value))
    A, low, high, back, rows = np.zeros((0, origin.size)), None, None, lambda lam: lam, None
    if constr is not None:
        rows = _prepare(constr, "constr", origin, unravel, args)
        example = rows.whole(origin, *args)
        constant, back = tree.ravel(example)
        low = as_vector(lba, example, -np.inf, "lba") - constant
        high = as_vector(uba, example, np.inf, "uba") - constant
        check_order(low, high, example, "lba and uba")
        A = rows.slope(origin, *args)
    guess = None
    if warm_start and lam_a0 is not None and constr is not None:
        at = tree.ravel(x0)[0] * 1.0, tree.ravel(lam_a0)[0] * 1.0
        guess = QPSolution(*at, np.zeros(origin.size), 0.0, 0, 0, 0.0)
    solution = solve_qp(P, q, A, low, high, *box, tol=tol, max_iter=max_iter, guess=guess)
    x, fun = solution.x, solution.fun + fixed
    if not is_traced(x0, args, solution) and solution.status == 0:
        cost.compare(cost.value(x, *args), fun)
        if rows is not None:
            rows.compare(rows.value(x, *args), A @ x + rows.value(origin, *args))
    lam_a, lam_x = back(solution.lam_a), unravel(solution.lam_x)
    return replace(solution, x=unravel(x), lam_a=lam_a, lam_x=lam_x, fun=fun)


def _prepare(
    function: Callable[..., Any], name: str, origin: Array, unravel: Unravel, args: tuple[Any, ...]
) -> _Model:
    """Return a function that is quadratic or linear, recorded once; raise if it is not."""
    form, kind = form_of((unravel(origin), args)), "quadratic" if name == "obj" else "linear"
    make = lambda current: _Model(current, unravel, name, kind)  # noqa: E731
    model = find_or_make(f"{kind} {name}", (function,), form, make)
    if model.fits is None:
        # Arguments of this form do not change it.
        check = is_quadratic if kind == "quadratic" else is_linear
        model.fits = check(model.value)(origin, *args)
    if not model.fits:
        which = "second derivatives" if kind == "quadratic" else "derivatives"
        raise ValueError(
            f"qpsol: {name} is not {kind}: its {which} change with x, or x decides what is "
            "computed (np.abs, np.maximum, np.where); use minimize"
        )
    return model


class _Model:
    """The objective or the constraints as a function of a vector, with its derivatives."""

    fits: bool | None = None

    def __init__(self, current: Current, unravel: Unravel, name: str, kind: str) -> None:
        def whole(x: Array, *args: Any) -> Any:
            return current.functions[0](unravel(x), *args)

        self.name, self.kind = name, kind
        #: As the user returns it, and flat.
        self.whole = whole = compile_frozen(whole, (current,), name)
        if kind == "quadratic":
            self.value, self.slope, self.curvature = whole, grad(whole), hess(whole)
        else:
            self.value = compile_frozen(lambda x, *args: tree.ravel(whole(x, *args))[0] * 1.0)
            self.slope = jac(self.value)

    def compare(self, value: Array, model: Array) -> None:
        """Compare the function with its model at the solution, for what loops decide inside."""
        value, model = np.asarray(value, dtype=float), np.asarray(model, dtype=float)
        if np.any(np.abs(value - model) > 1e-6 * (1.0 + np.max(np.abs(model), initial=0.0))):
            k = int(np.argmax(np.abs(value - model)))
            raise ValueError(
                f"qpsol: {self.name} is not {self.kind}: at the solution of its {self.kind} model "
                f"it is {np.ravel(value)[k]:.6g}, the model {np.ravel(model)[k]:.6g}; use minimize"
            )
