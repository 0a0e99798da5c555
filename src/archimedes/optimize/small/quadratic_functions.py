"""``qpsol``: quadratic programs given as functions of trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function import compile, grad, hess, is_traced, jac
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
    the row is an equation (without both: zero). See :func:`solve_qp`, which does it, also in
    recorded code and under ``vmap``. ``x0`` gives the structure; with multipliers ``lam_a0`` of a
    program nearby it is also where the iteration resumes (``warm_start``). ``verbose`` and ``name``
    are accepted as users of the original give them. ``solver`` is one of other packages, if
    installed: "osqp", "clarabel" or "piqp"; these take numbers only.

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
    curvature = hess(cost)
    P, q = curvature(origin, *given), grad(cost)(origin, *given)
    if not any(map(is_traced, tree.leaves((P, given)))):
        _check_curvature(P, curvature(origin + 1.0, *given))
    A, low, high, back = _rows(constr, unravel, origin, given, lba, uba)
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
    if not any(map(is_traced, tree.leaves((x0, given, found)))):
        _check_quadratic(cost, found, fixed, given)
    return replace(
        found,
        x=unravel(found.x),
        lam_a=back(found.lam_a),
        lam_x=unravel(found.lam_x),
        fun=found.fun + fixed,
    )


def _rows(
    constr: Any, unravel: Any, origin: Any, args: tuple[Any, ...], lba: Any, uba: Any
) -> tuple[Any, Any, Any, Callable[[Any], Any]]:
    """Return A, its limits, and the function that gives multipliers the constraints' structure."""
    if constr is None:
        return np.zeros((0, origin.size)), None, None, lambda lam: lam

    def rows(x: Any, *args: Any) -> Any:
        return tree.ravel(constr(unravel(x), *args))[0] * 1.0

    example = compile(constr)(unravel(origin), *args)
    constant, back = tree.ravel(example)
    slopes = jac(rows)
    A = slopes(origin, *args)
    if not any(map(is_traced, tree.leaves((A, args)))):
        _check_linear(A, slopes(origin + 1.0, *args))
    both = lba is None and uba is None
    low = vector_like(0.0 if both else lba, example, -np.inf, "lba") - constant
    high = vector_like(0.0 if both else uba, example, np.inf, "uba") - constant
    if not (is_traced(low) or is_traced(high)):
        check_order(low, high, example, "lba and uba")
    return A, low, high, back


def _check_curvature(P: np.ndarray, elsewhere: np.ndarray) -> None:
    off = float(np.abs(P - elsewhere).max(initial=0.0))
    if off > 1e-6 * (1.0 + float(np.abs(P).max(initial=0.0))):
        raise ValueError(
            f"qpsol: obj is not quadratic: its second derivatives at x = 0 and at x = 1 differ by "
            f"{off:.3g}; use minimize"
        )


def _check_linear(A: np.ndarray, elsewhere: np.ndarray) -> None:
    off = float(np.abs(A - elsewhere).max(initial=0.0))
    if off > 1e-6 * (1.0 + float(np.abs(A).max(initial=0.0))):
        raise ValueError(
            f"qpsol: constr is not linear: its derivatives at x = 0 and at x = 1 differ by "
            f"{off:.3g}; use minimize"
        )


def _check_quadratic(cost: Any, found: QPSolution, fixed: Any, args: Any) -> None:
    """Compare the model with the function, where there is a solution."""
    if found.status != 0:
        return
    value, model = float(cost(found.x, *args)), float(found.fun + fixed)
    if abs(value - model) > 1e-6 * (1.0 + abs(model)):
        raise ValueError(
            f"qpsol: obj is not quadratic: at the solution of its quadratic model it is "
            f"{value:.6g}, the model {model:.6g}; use minimize"
        )
