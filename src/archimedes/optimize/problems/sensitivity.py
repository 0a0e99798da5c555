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
from archimedes.optimize.problems.tasks import Limits
from archimedes.typing import Array

#: What dependent rows have in their corner, against the squares of their entries.
_CORNER = 1e-13

#: x, lam_g and lam_x.
Solution = tuple[Array, Array, Array]
#: ``func(x, p)`` = [f, *g].
Function = Callable[[Array, list[Array]], Array]


def record_solution(
    solve: Callable[[Array, list[Array], Limits], Solution],
    func: Function,
    start: Array,
    p: list[Array],
    limits: Limits,
    host: bool,
) -> Array:
    """Return x (n,), which ``solve(start, p, limits)`` finds; nan where there is no solution.

    ``host`` says that ``solve`` runs in Python when the code runs; else it is recorded itself.
    """
    n, m = start.size, limits[2].size
    like = (np.zeros(n), np.zeros(m), np.zeros(n))
    held = tree.map(stop_gradient, (start * 1.0, [q * 1 for q in p], limits))
    solution = callback(solve, like, *held) if host else tree.map(stop_gradient, solve(*held))
    return attach_derivatives(func, n, m)(*solution, p, limits)[0]


def attach_derivatives(func: Function, n: int, m: int) -> Callable[..., Solution]:
    """Return ``(x, lam_g, lam_x, p, limits) -> (x, lam_g, lam_x)``: a solution with derivatives.

    What is given as x and multipliers must not depend on p: see ``stop_gradient``.
    """

    @custom_jvp
    def identity(x: Array, lam_g: Array, lam_x: Array, p: list[Array], limits: Limits) -> Solution:
        return x * 1.0, lam_g * 1.0, lam_x * 1.0

    @identity.defjvp
    def derivative(
        primals: tuple[Any, ...], tangents: tuple[Any, ...]
    ) -> tuple[Solution, Solution]:
        solution = identity(*primals)
        # Of the solution itself, so that its changes have derivatives in p, too.
        return solution, _differentiate(func, n, m, (*solution, *primals[3:]), tangents)

    return identity


def _differentiate(
    func: Function, n: int, m: int, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> Solution:
    """Return the changes of x, lam_g and lam_x from the linear system above."""
    x, lam_g, lam_x, p, limits = primals
    _, _, _, dp, dl = tangents

    def lagrangian(x: Array, p: list[Array]) -> Array:
        values = func(x, p)
        return values[0] + (np.sum(lam_g * values[1:]) if m else 0.0)

    def constraints(x: Array, p: list[Array]) -> Array:
        return func(x, p)[1:]

    H = hess(lagrangian)(x, p)
    right_x = -jvp(lambda p: grad(lagrangian)(x, p))(p, dp) if p else np.zeros(n)
    held_x, change_x = _find_held(x, lam_x, *limits[:2], *dl[:2])
    top = np.where(held_x[:, None], np.eye(n), H)
    right = np.where(held_x, change_x, right_x)
    if m:
        A = jac(constraints)(x, p)
        g = constraints(x, p)
        change = jvp(lambda p: constraints(x, p))(p, dp) if p else np.zeros(m)
        held_g, change_g = _find_held(g, lam_g, *limits[2:], *dl[2:])
        beside = np.where(held_x[:, None], 0.0, A.T)
        below = np.where(held_g[:, None], A, 0.0)
        most = np.max(np.abs(A))
        corner = np.where(held_g, -_CORNER * most * most, 1.0)[:, None] * np.eye(m)
        halves = (top, beside), (below, corner)
        top = np.concatenate([np.concatenate(half, axis=1) for half in halves])
        right = np.concatenate([right, np.where(held_g, change_g - change, 0.0)])
    both = np.linalg.solve(top, right)
    dx, dlam = both[:n], both[n:]
    rest = right_x - H @ dx - (A.T @ dlam if m else 0.0)
    return dx, dlam, np.where(held_x, rest, 0.0)


def _find_held(
    values: Array, lam: Array, low: Array, high: Array, dlow: Array, dhigh: Array
) -> tuple[Array, Array]:
    """Return which limits hold, and how those move."""
    at_low = (low == high) | (-lam > values - low)
    at_high = lam > high - values
    # Infinite limits do not move; their tangents are zero anyway.
    return at_low | at_high, np.where(at_low, dlow, np.where(at_high, dhigh, 0.0))
