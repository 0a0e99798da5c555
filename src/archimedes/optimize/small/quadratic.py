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
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.function import Compiled, stop_gradient, while_loop
from archimedes.optimize.problems.results import Multipliers, Status
from archimedes.optimize.problems.sensitivity import attach_derivatives
from archimedes.optimize.small.linear_algebra import (
    LimitedRows,
    in_loops,
    pivots,
    records_loops,
    row_maxima,
    scale,
    times,
)
from archimedes.optimize.small.quadratic_steps import (
    INFEASIBLE,
    ITERATION_LIMIT,
    NOT_CONVEX,
    NOT_FINITE,
    SOLVED,
    STALLED,
    equilibrate,
)
from archimedes.tree import struct

__all__ = ["QPSolution", "solve_qp", "solve_rows"]


@struct
class QPSolution:
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

    x: Any
    lam_a: Any
    lam_x: Any
    fun: Any
    status: Any
    iterations: Any
    residual: Any

    @property
    def success(self) -> Any:
        """Whether it was solved."""
        return self.status == SOLVED

    @property
    def message(self) -> str:
        """What happened, and what to do about it; of numbers, outside recorded code."""
        return Status(int(self.status)).message

    @property
    def multipliers(self) -> Multipliers:
        """``lam_a`` and ``lam_x`` under the names of other results."""
        return Multipliers(self.lam_a, self.lam_x)


def solve_qp(
    P: Any,
    q: Any,
    A: Any = None,
    low: Any = None,
    high: Any = None,
    lower: Any = None,
    upper: Any = None,
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
    P, q, A = (np.asarray(v) if isinstance(v, (list, tuple)) else v for v in (P, q, A))
    n = np.shape(q)[0] if np.ndim(q) == 1 else 0
    if n == 0 or np.shape(P) != (n, n):
        raise ValueError(
            f"solve_qp: P has shape {np.shape(P)} and q {np.shape(q)}, not (n, n), (n,)"
        )
    if not is_traced(P):
        _check_convex(np.asarray(P, dtype=float))
    if A is None and not (low is None and high is None):
        raise ValueError(
            "solve_qp: low and high are limits of A @ x, and there is no A; limits of x itself are "
            "lower and upper"
        )
    A = np.zeros((0, n)) if A is None else A
    if np.ndim(A) != 2 or np.shape(A)[1] != n:
        raise ValueError(f"solve_qp: A has shape {np.shape(A)}, not (m, {n})")
    m = np.shape(A)[0]
    edges = [
        _edge(low, m, -np.inf, "low"),
        _edge(high, m, np.inf, "high"),
        _edge(lower, n, -np.inf, "lower"),
        _edge(upper, n, np.inf, "upper"),
    ]
    for below, above, names in ((0, 1, "low and high"), (2, 3, "lower and upper")):
        if not is_traced(edges[below], edges[above]):
            _check_edges(edges[below], edges[above], names)
    # Bounds that are not there cost nothing.
    bounded = lower is not None or upper is not None
    if guess is not None and not isinstance(guess, QPSolution):
        kind = type(guess).__name__
        raise TypeError(f"solve_qp: guess must be the QPSolution of a program nearby, got {kind}")
    given = () if guess is None else (guess.x, guess.lam_a, guess.lam_x)
    for value, size, name in zip(given, (n, m, n), ("x", "lam_a", "lam_x")):
        if np.shape(value) != (size,):
            raise ValueError(f"solve_qp: guess.{name} has shape {np.shape(value)}, not ({size},)")
    data = (P, q, A, *edges, *given)
    # Of plain numbers nobody wants derivatives, whose rule takes matrices apart.
    slopes, check = is_traced(*data), is_traced(P)
    loops = records_loops(n, m + n if bounded else m)
    settings = (bounded, int(max_iter), float(tol), loops, slopes, check)
    return _kernel(*settings)(*data)


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


def _is_convex(P: Any, tol: float) -> Any:
    """Return whether P is symmetric and positive semidefinite, or not finite, to a tolerance."""
    size = row_maxima(P, np.ones(P.shape[0]))
    allowed = max(1e-9, tol) * np.max(size)
    # An unknown of its own size: one large number must not hide a negative one.
    unit = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
    shifted = scale(P, unit, unit) + max(1e-9, tol) * np.eye(P.shape[0])
    convex = np.all(pivots(shifted) > 0.0) & np.all(np.abs(P - P.T) <= allowed)
    return convex | ~np.isfinite(allowed)


def _check_edges(below: np.ndarray, above: np.ndarray, names: str) -> None:
    """Raise where limits are nan, crossed, or such that nothing satisfies them."""
    both = np.stack([below, above])
    if np.any(np.isnan(both)):
        k = int(np.argmax(np.isnan(both).any(axis=0)))
        raise ValueError(
            f"solve_qp: {names} hold nan at number {k}; write None or an infinity where there is "
            "no limit"
        )
    wrong = (below > above) | (below == np.inf) | (above == -np.inf)
    if np.any(wrong):
        k = int(np.argmax(wrong))
        raise ValueError(
            f"solve_qp: {names} are crossed: number {k} is {below[k]:.6g} below and "
            f"{above[k]:.6g} above"
        )


def _edge(given: Any, size: int, missing: float, name: str) -> Any:
    value = missing if given is None else given
    try:
        return np.broadcast_to(np.asarray(value) * 1.0, (size,))
    except ValueError:
        raise ValueError(
            f"solve_qp: {name} has shape {np.shape(value)}, which does not broadcast to ({size},)"
        ) from None


_kernels: dict[tuple[bool, int, float, bool, bool, bool], Compiled] = {}


def _kernel(
    bounded: bool, max_iter: int, tol: float, loops: bool, slopes: bool, check: bool
) -> Compiled:
    """Return the solver as a recorded function: numbers take the way that recordings take.

    ``slopes`` gives its results derivatives; ``check`` has it look at P, which nobody has seen.
    """
    key = (bounded, max_iter, tol, loops, slopes, check)
    if key not in _kernels:
        if max_iter < 1 or not tol > 0:
            raise ValueError(f"solve_qp: max_iter={max_iter} and tol={tol} must be positive")

        def solve_qp(
            P: Any, q: Any, A: Any, low: Any, high: Any, lower: Any, upper: Any, *guess: Any
        ) -> Any:
            n, rows = q.shape[0], A.shape[0]
            given = ([P, q, A], (lower, upper, low, high))
            held = tree.map(stop_gradient, given)
            P_, q_, C, l_all, u_all = _whole(held, bounded)
            start = None
            if guess:
                x, lam_a, lam_x = tree.map(stop_gradient, guess)
                start = (x, np.concatenate([lam_a, lam_x]) if bounded else lam_a)
            found = _solve(P_, q_, C, l_all, u_all, max_iter, tol, start)
            parts = tree.map(stop_gradient, (found.x, found.lam_a, found.lam_x))
            if slopes:
                parts = attach_derivatives(_cost_and_rows, n, rows)(*parts, *given)
            x, lam_a, lam_x = parts
            fun = 0.5 * (x @ times(P, x)) + q @ x
            status = found.status
            if check:
                status = np.where(_is_convex(held[0][0], tol), status, NOT_CONVEX)
            return replace(found, x=x, lam_a=lam_a, lam_x=lam_x, fun=fun, status=status)

        made = in_loops(solve_qp) if loops else Compiled(solve_qp, freeze=True)
        # First calls are short: they run on code made in a hurry.
        made.drafts = True
        _kernels[key] = made
    return _kernels[key]


def solve_rows(
    P: Any,
    q: Any,
    A: Any,
    low: Any,
    high: Any,
    lower: Any,
    upper: Any,
    max_iter: int,
    tol: float,
) -> QPSolution:
    """Solve as part of a larger recording: no checks, no derivatives of the solution.

    Programs of one size are one function there, however often they are solved.
    """
    loops = records_loops(q.shape[0], A.shape[0] + q.shape[0])
    key = (max_iter, tol, loops)
    if key not in _parts:

        def solve_rows(P: Any, q: Any, A: Any, low: Any, high: Any, lower: Any, upper: Any) -> Any:
            given = ([P, q, A], (lower, upper, low, high))
            P_, q_, C, l_all, u_all = _whole(given, True)
            return _solve(P_, q_, C, l_all, u_all, max_iter, tol)

        _parts[key] = in_loops(solve_rows) if loops else Compiled(solve_rows, freeze=True)
        _parts[key].inline_limit = 0
    return _parts[key](P, q, A, low, high, lower, upper)


_parts: dict[tuple[int, float, bool], Compiled] = {}


def _whole(given: Any, bounded: bool) -> Any:
    """Return P, q, C and its limits, bounds among them where there are any."""
    (P, q, A), (lower, upper, low, high) = given
    if not bounded:
        return P, q, LimitedRows(A, False), low, high
    return P, q, LimitedRows(A, True), np.concatenate([low, lower]), np.concatenate([high, upper])


def _cost_and_rows(x: Any, p: Any) -> Any:
    P, q, A = p
    return np.concatenate([np.reshape(0.5 * (x @ times(P, x)) + q @ x, (1,)), times(A, x)])


def _solve(
    P: Any,
    q: Any,
    C: LimitedRows,
    l_all: Any,
    u_all: Any,
    max_iter: int,
    tol: float,
    guess: tuple[Any, Any] | None = None,
) -> QPSolution:
    n, m, rows = q.shape[0], C.count, C.own
    problem, units = equilibrate(P, q, C, l_all, u_all, tol)
    if guess is None:
        point = problem.start()
    else:
        point = problem.resume(guess[0] / units.unknowns, units.scaled_multipliers(guess[1]))

    def going(state: Any) -> Any:
        _, _, verdict, steps = state
        return (verdict.status == ITERATION_LIMIT) & (steps < max_iter)

    def advance(state: Any) -> Any:
        point, sight, verdict, steps = state
        new = problem.step(point, sight, verdict.residual)
        seen = problem.look(new)
        found = problem.judge(new, seen, point.x, sight, verdict)
        # A step that is no number ends it where it was.
        lost = found.status == NOT_FINITE
        stay = replace(verdict, status=np.where(lost, STALLED, verdict.status))
        new, seen, found = tree.map(
            lambda old, new: np.where(lost, old, new), (point, sight, stay), (new, seen, found)
        )
        return new, seen, found, steps + 1

    sight = problem.look(point)
    first = problem.judge(point, sight, point.x, sight, problem.unknown())
    start = (point, sight, first, np.int64(0))
    point, sight, verdict, steps = while_loop(going, advance, start, max_steps=max_iter)
    status = problem.finish(verdict)
    if m:
        never = (l_all > u_all) | (l_all == np.inf) | (u_all == -np.inf)
        status = np.where(np.any(never), INFEASIBLE, status)
        unknown = np.isnan(l_all) | np.isnan(u_all)
        status = np.where(np.any(unknown), NOT_FINITE, status)
    lam = units.multipliers(point.y2 - point.y1 + point.ye)
    return QPSolution(
        x=point.x * units.unknowns,
        lam_a=lam[:rows],
        lam_x=lam[rows:] if m > rows else np.zeros(n),
        fun=np.float64(0.0),
        status=status,
        iterations=steps,
        residual=verdict.residual,
    )
