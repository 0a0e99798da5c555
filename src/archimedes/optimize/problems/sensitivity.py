"""Solutions in recorded code: a call of the solver, with derivatives in all it is given.

The derivative does not go through the iterations. At a solution, with the limits that hold taken
as equations (Fiacco, "Introduction to sensitivity and stability analysis in nonlinear
programming", 1983, theorem 2.3.2):

    H dx + A^T dlam = -(d2L/dx dp) dp,    A dx = dlimit - (dg/dp) dp,    dx_i = dbound_i,

where L = f + lam . g, H its Hessian in x, A the Jacobian of g. A limit counts as holding where
its multiplier is larger than the distance to it; this is where the solution has a derivative.
Rows that hold and depend on each other share their multiplier in any way: a small number in their
corner picks one, and dx is what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import callback, custom_jvp, grad, hess, jac, jvp, stop_gradient

__all__ = ["record_solution"]

#: What dependent rows have in their corner, against the squares of their entries.
_CORNER = 1e-13

#: ``(x0, p, limits) -> (x, lam_g, lam_x)``, nan where there is no solution.
Solve = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]


def record_solution(
    solve: Solve,
    func: Callable[..., Any],
    start: Any,
    p: list[Any],
    limits: tuple[Any, ...],
    host: bool,
) -> Any:
    """Return x (n,) where ``func(x, p) = [f, *g]``, limits = (lower, upper, low, high).

    ``host`` says that ``solve`` runs in Python when the code runs; else it is recorded itself.
    """
    n, m = start.size, limits[2].size
    like = (np.zeros(n), np.zeros(m), np.zeros(n))
    held = tree.map(stop_gradient, (start * 1.0, [q * 1 for q in p], limits))
    found = callback(solve, like, *held) if host else tree.map(stop_gradient, solve(*held))
    return attach_derivatives(func, n, m)(*found, p, limits)[0]


def attach_derivatives(func: Callable[..., Any], n: int, m: int) -> Callable[..., Any]:
    """Return ``(x, lam_g, lam_x, p, limits) -> (x, lam_g, lam_x)``: a solution with derivatives.

    What is given as x and multipliers must not depend on p: see ``stop_gradient``.
    """

    @custom_jvp
    def solution(x: Any, lam_g: Any, lam_x: Any, p: Any, limits: Any) -> Any:
        return x * 1.0, lam_g * 1.0, lam_x * 1.0

    @solution.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        found = solution(*primals)
        # Of the solution itself, so that its changes have derivatives in p, too.
        return found, _differentiate(func, n, m, (*found, *primals[3:]), tangents)

    return solution


def _differentiate(func: Any, n: int, m: int, primals: Any, tangents: Any) -> Any:
    """Return the changes of x, lam_g and lam_x from the linear system above."""
    x, lam_g, lam_x, p, limits = primals
    _, _, _, dp, dl = tangents

    def lagrangian(x: Any, p: Any) -> Any:
        values = func(x, p)
        return values[0] + (np.sum(lam_g * values[1:]) if m else 0.0)

    def constraints(x: Any, p: Any) -> Any:
        return func(x, p)[1:]

    H = hess(lagrangian)(x, p)
    right_x = -jvp(lambda p: grad(lagrangian)(x, p))(p, dp) if p else np.zeros(n)
    held_x, moved_x = _holding(x, lam_x, limits[0], limits[1], dl[0], dl[1])
    top = np.where(held_x[:, None], np.eye(n), H)
    right = np.where(held_x, moved_x, right_x)
    if m:
        A = jac(constraints)(x, p)
        g = constraints(x, p)
        change = jvp(lambda p: constraints(x, p))(p, dp) if p else np.zeros(m)
        held_g, moved_g = _holding(g, lam_g, limits[2], limits[3], dl[2], dl[3])
        beside = np.where(held_x[:, None], 0.0, A.T)
        below = np.where(held_g[:, None], A, 0.0)
        most = np.max(np.abs(A))
        corner = np.where(held_g, -_CORNER * most * most, 1.0)[:, None] * np.eye(m)
        top = np.concatenate(
            [np.concatenate([top, beside], axis=1), np.concatenate([below, corner], axis=1)]
        )
        right = np.concatenate([right, np.where(held_g, moved_g - change, 0.0)])
    moved = np.linalg.solve(top, right)
    dx, dlam = moved[:n], moved[n:]
    rest = right_x - H @ dx - (A.T @ dlam if m else 0.0)
    return dx, dlam, np.where(held_x, rest, 0.0)


def _holding(values: Any, lam: Any, low: Any, high: Any, dlow: Any, dhigh: Any) -> tuple[Any, Any]:
    """Tell which limits hold, and how those move."""
    equal = low == high
    at_low = equal | (-lam > values - low)
    at_high = lam > high - values
    # Infinite limits do not move; their tangents are zero anyway.
    return at_low | at_high, np.where(at_low, dlow, np.where(at_high, dhigh, 0.0))
