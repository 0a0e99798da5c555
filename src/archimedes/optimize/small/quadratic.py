"""Dense quadratic programs: a primal-dual interior-point method in plain NumPy.

    min 1/2 x^T P x + q^T x,   low <= A x <= high,   lower <= x <= upper

Symbols: C = [A; I] (m, n) all rows with limits l, u; s1 = C x - l and s2 = u - C x slacks with
multipliers y1, y2 >= 0; ye multipliers of the rows with l = u; mu the mean of s y; rho, delta
the proximal terms that make P semidefinite and dependent rows harmless. A Newton step reduces to

    (P + rho I + C^T D C) dx = right,   D = y1/s1 + y2/s2,  or 1/delta where l = u

Unknowns, rows and cost are given units first, in which their numbers have size 1
(`quadratic_steps.py`); whether a point is a solution does not depend on units.

Sources: S. Mehrotra, SIAM J. Optim. 2(4), 1992 (predictor and corrector); R. Schwan et al.,
"PIQP: a proximal interior-point quadratic programming solver", CDC 2023 (proximal terms);
B. Stellato et al., "OSQP", Math. Program. Comput. 12, 2020, section 3.4 (certificates).

The iteration is a bounded loop without branches on data, so that it compiles, runs on SIMD
lanes, and becomes C.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.display import Readable
from archimedes.function import Compiled, stop_gradient, while_loop
from archimedes.optimize.problems.results import Multipliers, Status
from archimedes.optimize.problems.sensitivity import attach_derivatives
from archimedes.optimize.problems.unknowns import check_order
from archimedes.optimize.small import linear_algebra as la
from archimedes.optimize.small.quadratic_steps import equilibrate
from archimedes.tree import struct
from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["QPSolution", "solve_qp"]

#: [P, q, A], and the limits (lower, upper, low, high).
Program = tuple[list[Array], tuple[Array, Array, Array, Array]]


@struct
class QPSolution(Readable):
    """The solution of a quadratic program: ``P x + q + A^T lam_a + lam_x = 0``.

    Inside a compiled function its numbers are traced.

    Parameters
    ----------
    x : array (n,)
        Solution.
    lam_a : array (m,)
        Multipliers of the rows of A: positive at upper limits, negative at lower ones.
    lam_x : array (n,)
        Multipliers of the limits of x, likewise.
    fun : float
        Objective at x.
    status : int
        A number of :class:`Status`, 0 if solved.
    iterations : int
        Number of iterations.
    residual : float
        Largest remaining part of the optimality conditions and limits, in units in which the
        program has size 1.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.optimize import solve_qp
    >>> solve_qp(np.eye(2), np.array([-3.0, 4.0]), lower=0.0, upper=1.0).x.round(6)
    array([1., 0.])
    """

    x: Tree
    lam_a: Tree
    lam_x: Tree
    fun: Scalar
    status: Any
    iterations: Any
    residual: Scalar

    @property
    def success(self) -> Any:
        """Whether it was solved."""
        return self.status == Status.SOLVED

    @property
    def message(self) -> str:
        """What happened, and what to do about it; of numbers, outside recorded code."""
        return Status(int(self.status)).message

    @property
    def multipliers(self) -> Multipliers:
        """``lam_a`` and ``lam_x`` under the names of other results."""
        return Multipliers(self.lam_a, self.lam_x)


def solve_qp(
    P: ArrayLike,
    q: ArrayLike,
    A: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    *,
    tol: float = 1e-9,
    max_iter: int = 40,
    guess: QPSolution | None = None,
) -> QPSolution:
    """Minimize ``x @ P @ x / 2 + q @ x`` with ``low <= A @ x <= high``, ``lower <= x <= upper``.

    It works in the same way on numbers, inside compiled functions, mapped and in C, and never takes
    more than `max_iter` iterations. What the numbers do is in ``status``. The solution is
    differentiable with respect to everything it is given.

    Parameters
    ----------
    P : array (n, n)
        Symmetric and positive semidefinite matrix. Another one raises ValueError, or gives
        `Status.NOT_CONVEX` if it is known only when a compiled function runs.
    q : array (n,)
        Linear part of the objective.
    A : array (m, n), optional
        Matrix of the linear constraints. None by default.
    low : float or array (m,), optional
        Lower limit of A x, -inf where there is none.
    high : float or array (m,), optional
        Upper limit of A x. Equal limits are equations.
    lower : float or array (n,), optional
        Lower limit of x.
    upper : float or array (n,), optional
        Upper limit of x.
    tol : float, optional
        Limit on what remains of each condition, relative to the terms whose sum it is, so that
        units do not matter. C code that computes in float needs 1e-5 or more.
    max_iter : int, optional
        Largest number of iterations.
    guess : QPSolution, optional
        Solution of a similar program, such as the last one of a receding horizon. It saves about
        half of the iterations.

    Examples
    --------
    >>> solve_qp(np.eye(2), np.array([-2.0, -1.0]), upper=1.5).x.round(6)
    array([1.5, 1. ])
    """
    parts: list[Any] = [np.asarray(v) if isinstance(v, (list, tuple)) else v for v in (P, q, A)]
    P, q, A = parts
    n = np.shape(q)[0] if np.ndim(q) == 1 else 0
    if n == 0 or np.shape(P) != (n, n):
        shapes = f"{np.shape(P)} and q {np.shape(q)}"
        raise ValueError(f"solve_qp: P has shape {shapes}, not (n, n) and (n,)")
    if not is_traced(P):
        _check_convex(np.asarray(P, dtype=float))
    if A is None and not (low is None and high is None):
        remedy = "there is no A; limits of x itself are lower and upper"
        raise ValueError(f"solve_qp: low and high are limits of A @ x, and {remedy}")
    A = np.zeros((0, n)) if A is None else A
    if np.ndim(A) != 2 or np.shape(A)[1] != n:
        raise ValueError(f"solve_qp: A has shape {np.shape(A)}, not (m, {n})")
    m = np.shape(A)[0]
    rows = _read_limits(low, high, m, "low", "high")
    bounds = _read_limits(lower, upper, n, "lower", "upper")
    # Bounds that are not there cost nothing.
    bounded = lower is not None or upper is not None
    if guess is not None and not isinstance(guess, QPSolution):
        kind = type(guess).__name__
        raise TypeError(f"solve_qp: guess must be the QPSolution of a program nearby, got {kind}")
    start = () if guess is None else (guess.x, guess.lam_a, guess.lam_x)
    for value, size, name in zip(start, (n, m, n), ("x", "lam_a", "lam_x")):
        if np.shape(value) != (size,):
            raise ValueError(f"solve_qp: guess.{name} has shape {np.shape(value)}, not ({size},)")
    data = (P, q, A, *rows, *bounds, *start)
    # Plain numbers need no derivatives, whose rule would be recorded too.
    with_derivatives, check_convexity = is_traced(*data), is_traced(P)
    loops = la.records_loops(n, m + n if bounded else m)
    kernel = _record(bounded, int(max_iter), float(tol), loops, with_derivatives, check_convexity)
    return kernel(*data)


def _check_convex(P: np.ndarray) -> None:
    size = float(np.abs(P).max())
    if not np.isfinite(size):
        return  # the status says so
    if np.abs(P - P.T).max() > 1e-9 * size:
        raise ValueError("solve_qp: P is not symmetric; (P + P.T) / 2 is the same cost, give that")
    try:
        np.linalg.cholesky(P + (1e-9 * size + 1e-300) * np.eye(P.shape[0]))
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(P)[0])
        raise ValueError(
            f"solve_qp: P is not positive semidefinite, its least eigenvalue is {least:.3g}: the "
            "cost has no least value, or many valleys; use minimize, with bounds"
        ) from None


def _is_convex(P: Array, tol: float) -> Array:
    """Return whether P is symmetric and positive semidefinite, or not finite, to a tolerance."""
    size = la.row_maxima(P, np.ones(P.shape[0]))
    allowed = max(1e-9, tol) * np.max(size)
    # An unknown of its own size: one large number must not hide a negative one.
    unit = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
    shifted = la.scale(P, unit, unit) + max(1e-9, tol) * np.eye(P.shape[0])
    convex = np.all(la.find_pivots(shifted) > 0.0) & np.all(np.abs(P - P.T) <= allowed)
    return convex | ~np.isfinite(allowed)


def _read_limits(
    below: ArrayLike | None, above: ArrayLike | None, size: int, *names: str
) -> tuple[Array, Array]:
    """Return a lower and an upper limit as vectors; raise where nothing is between them."""
    both = f"solve_qp: {' and '.join(names)}"
    try:
        low = np.broadcast_to(np.asarray(-np.inf if below is None else below) * 1.0, (size,))
        high = np.broadcast_to(np.asarray(np.inf if above is None else above) * 1.0, (size,))
    except ValueError:
        shapes = " and ".join(str(np.shape(v)) for v in (below, above) if v is not None)
        raise ValueError(f"{both} must broadcast to shape ({size},), got {shapes}") from None
    check_order(low, high, low, both)
    return low, high


@cache
def _record(
    bounded: bool,
    max_iter: int,
    tol: float,
    loops: bool,
    with_derivatives: bool,
    check_convexity: bool,
) -> Compiled:
    """Return the solver as a recorded function: numbers take the way that recordings take.

    ``check_convexity`` has it check P, which was not known when the call was recorded.
    """
    if max_iter < 1 or not tol > 0:
        raise ValueError(f"solve_qp: max_iter={max_iter} and tol={tol} must be positive")

    def solve_qp(P: Array, q: Array, A: Array, *rest: Array) -> QPSolution:
        low, high, lower, upper, *guess = rest
        n, rows = q.shape[0], A.shape[0]
        data = ([P, q, A], (lower, upper, low, high))
        held = tree.map(stop_gradient, data)
        start = None
        if guess:
            x, lam_a, lam_x = tree.map(stop_gradient, tuple(guess))
            start = (x, np.concatenate([lam_a, lam_x]) if bounded else lam_a)
        solution = _solve(held, bounded, max_iter, tol, start)
        parts = tree.map(stop_gradient, (solution.x, solution.lam_a, solution.lam_x))
        if with_derivatives:
            parts = attach_derivatives(_cost_and_rows, n, rows)(*parts, *data)
        x, lam_a, lam_x = parts
        fun = 0.5 * (x @ la.times(P, x)) + q @ x
        status = solution.status
        if check_convexity:
            status = np.where(_is_convex(held[0][0], tol), status, Status.NOT_CONVEX)
        return replace(solution, x=x, lam_a=lam_a, lam_x=lam_x, fun=fun, status=status)

    kernel = la.in_loops(solve_qp) if loops else Compiled(solve_qp, freeze=True)
    # First calls are short: they run on the unoptimized tier.
    kernel.drafts = True
    return kernel


def solve_rows(data: Program, max_iter: int, tol: float) -> QPSolution:
    """Solve as part of a larger recording: no checks, no derivatives of the solution.

    Programs of one size are one function there, however often they are solved.
    """
    (_, q, A), _ = data
    return _record_rows(max_iter, tol, la.records_loops(q.shape[0], A.shape[0] + q.shape[0]))(data)


@cache
def _record_rows(max_iter: int, tol: float, loops: bool) -> Compiled:
    def solve_rows(data: Program) -> QPSolution:
        return _solve(data, True, max_iter, tol)

    kernel = la.in_loops(solve_rows) if loops else Compiled(solve_rows, freeze=True)
    kernel.inline_limit = 0
    return kernel


def _cost_and_rows(x: Array, p: list[Array]) -> Array:
    P, q, A = p
    return np.concatenate([np.reshape(0.5 * (x @ la.times(P, x)) + q @ x, (1,)), la.times(A, x)])


def _solve(
    data: Program,
    bounded: bool,
    max_iter: int,
    tol: float,
    guess: tuple[Array, Array] | None = None,
) -> QPSolution:
    (P, q, A), (lower, upper, l_all, u_all) = data
    C = la.LimitedRows(A, bounded)
    if bounded:
        l_all, u_all = np.concatenate([l_all, lower]), np.concatenate([u_all, upper])
    problem, units = equilibrate(P, q, C, l_all, u_all, tol)
    if guess is None:
        point = problem.start()
    else:
        point = problem.resume(guess[0] / units.unknowns, guess[1] * units.cost / units.rows)

    def going(state: tuple[Any, ...]) -> Array:
        _, _, verdict, steps = state
        return (verdict.status == Status.ITERATION_LIMIT) & (steps < max_iter)

    def advance(state: tuple[Any, ...]) -> tuple[Any, ...]:
        point, sight, verdict, steps = state
        new = problem.step(point, sight, verdict.residual)
        seen = problem.look(new)
        after = problem.judge(new, seen, point.x, sight, verdict)
        # A step that is no number ends it where it was.
        lost = after.status == Status.NOT_FINITE
        stay = replace(verdict, status=np.where(lost, Status.STALLED, verdict.status))
        here, ahead = (point, sight, stay), (new, seen, after)
        return *tree.map(lambda old, new: np.where(lost, old, new), here, ahead), steps + 1

    sight = problem.look(point)
    first = problem.judge(point, sight, point.x, sight, problem.unknown())
    start = (point, sight, first, np.int64(0))
    point, sight, verdict, steps = while_loop(going, advance, start, max_steps=max_iter)
    status = problem.finish(verdict)
    if C.count:
        never = (l_all > u_all) | (l_all == np.inf) | (u_all == -np.inf)
        status = np.where(np.any(never), Status.INFEASIBLE, status)
        unknown = np.isnan(l_all) | np.isnan(u_all)
        status = np.where(np.any(unknown), Status.NOT_FINITE, status)
    lam = (point.y2 - point.y1 + point.ye) * units.rows / units.cost
    lam_x = lam[C.own :] if bounded else np.zeros(q.shape[0])
    multipliers, cost = (lam[: C.own], lam_x), np.float64(0.0)
    return QPSolution(point.x * units.unknowns, *multipliers, cost, status, steps, verdict.residual)
