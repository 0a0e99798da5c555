"""``qpsol``: quadratic programs given as functions of trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function import compile, grad, hess, is_traced, jac
from archimedes.function.derivatives.linearity import is_linear, is_quadratic
from archimedes.optimize.problems.limits import check_order, limits, vector_like
from archimedes.optimize.problems.unknowns import as_unknowns
from archimedes.optimize.small.quadratic import QPSolution, solve_qp
from archimedes.optimize.small.quadratic_peers import solve_by_peer

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
    solver: str | None = None,
) -> QPSolution:
    """Minimise a quadratic ``obj(x, *args)`` with ``lba <= constr(x, *args) <= uba``, linear.

    x0 is any tree of numbers, whose structure x and bounds have; where lba and uba are equal
    the row is an equation, and where they are None it has no limit. Whether the functions are
    quadratic and linear is read from their recording, not from values. See :func:`solve_qp`, which
    does it, also in recorded code and under ``vmap``. ``x0`` gives the structure; with multipliers
    ``lam_a0`` of a program nearby it is also where the iteration resumes (``warm_start``).
    ``verbose`` and ``name`` are accepted as users of the original give them. ``solver`` is one of
    other packages, if installed: "osqp", "clarabel" or "piqp"; these take numbers only.

    >>> cost = lambda x: (x["a"] - 1.0) ** 2 + (x["b"] - 2.0) ** 2
    >>> found = qpsol(cost, lambda x: x["a"] + x["b"], {"a": 0.0, "b": 0.0}, uba=2.0)
    >>> {k: round(float(v), 6) for k, v in found.x.items()}
    {'a': 0.5, 'b': 1.5}
    """
    del verbose, name
    if not callable(obj) or not (constr is None or callable(constr)):
        raise TypeError("qpsol: obj and constr must be functions (constr may be None)")
    given = args if isinstance(args, tuple) else (args,)
    if not any(map(is_traced, tree.leaves(x0))):
        x0 = as_unknowns(x0)  # raises where it is no tree of finite numbers
    origin, unravel = tree.ravel(tree.map(lambda leaf: np.zeros(np.shape(leaf)), x0))
    n = origin.size

    def cost(x: Any, *args: Any) -> Any:
        return obj(unravel(x), *args)

    lower, upper = limits(bounds, x0, "bounds")
    box = (None, None) if bounds is None else (lower, upper)
    if not is_quadratic(cost)(origin, *given):
        raise ValueError(
            "qpsol: obj is not quadratic: its second derivatives change with x, or x decides what "
            "is computed (np.abs, np.maximum, np.where); use minimize"
        )
    P, q = hess(cost)(origin, *given), grad(cost)(origin, *given)
    A, low, high, back, values = _rows(constr, unravel, origin, given, lba, uba)
    if solver is None:
        guess = None
        if warm_start and lam_a0 is not None and constr is not None:
            at = tree.ravel(x0)[0] * 1.0, tree.ravel(lam_a0)[0] * 1.0
            guess = QPSolution(at[0], at[1], np.zeros(n), 0.0, 0, 0, 0.0)
        found = solve_qp(P, q, A, low, high, *box, tol=tol, max_iter=max_iter, guess=guess)
    elif any(map(is_traced, tree.leaves((P, q, A, low, high, lower, upper)))):
        raise TraceError(
            f"qpsol: solver={solver!r} takes numbers, it cannot be part of recorded code: leave "
            "solver= out"
        )
    else:
        free = np.zeros(0)
        edges = (free, free, lower, upper) if constr is None else (low, high, lower, upper)
        found = solve_by_peer(solver, P, q, A, edges, tol, max_iter)
    fixed = cost(origin, *given)
    if not any(map(is_traced, tree.leaves((x0, given, found)))) and found.status == 0:
        _check_model("obj", "quadratic", cost(found.x, *given), found.fun + fixed)
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


def _rows(
    constr: Any, unravel: Any, origin: Any, args: tuple[Any, ...], lba: Any, uba: Any
) -> tuple[Any, Any, Any, Callable[[Any], Any], Callable[..., Any]]:
    """Return A, its limits, the function that gives multipliers their structure, and the rows."""
    if constr is None:
        return np.zeros((0, origin.size)), None, None, lambda lam: lam, lambda *args: np.zeros(0)

    def rows(x: Any, *args: Any) -> Any:
        return tree.ravel(constr(unravel(x), *args))[0] * 1.0

    example = compile(constr)(unravel(origin), *args)
    constant, back = tree.ravel(example)
    if not is_linear(rows)(origin, *args):
        raise ValueError(
            "qpsol: constr is not linear: its derivatives change with x, or x decides what is "
            "computed (np.abs, np.maximum, np.where); use minimize"
        )
    low = vector_like(lba, example, -np.inf, "lba") - constant
    high = vector_like(uba, example, np.inf, "uba") - constant
    if not (is_traced(low) or is_traced(high)):
        check_order(low, high, example, "lba and uba")
    return jac(rows)(origin, *args), low, high, back, rows


def _check_model(name: str, kind: str, value: Any, model: Any) -> None:
    """Compare a function with its model at the solution, for what loops decide inside."""
    value, model = np.asarray(value, dtype=float), np.asarray(model, dtype=float)
    if np.any(np.abs(value - model) > 1e-6 * (1.0 + np.max(np.abs(model), initial=0.0))):
        k = int(np.argmax(np.abs(value - model)))
        raise ValueError(
            f"qpsol: {name} is not {kind}: at the solution of its {kind} model it is "
            f"{np.ravel(value)[k]:.6g}, the model {np.ravel(model)[k]:.6g}; use minimize"
        )
