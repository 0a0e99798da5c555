"""Quadratic programs solved by packages of others, where they are installed: OSQP, Clarabel, PIQP.

All take  min 1/2 x^T P x + q^T x,  low <= C x <= high,  with C = [A; I], and return x, multipliers
of the rows (positive at upper limits), a number of :class:`Status`, and iterations.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.installation import install_command
from archimedes.optimize.problems.results import Status
from archimedes.optimize.small.quadratic import QPSolution

__all__ = ["PEERS", "solve_by_peer"]

Found = tuple[np.ndarray, np.ndarray, Status, int]
Solver = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, int], Found]


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            f"solver={name!r} needs the package {name}, which is not installed: "
            f"{install_command('quadratic')}, or leave solver= out"
        ) from None


def _osqp(P: Any, q: Any, C: Any, low: Any, high: Any, tol: float, max_iter: int) -> Found:
    from scipy.sparse import csc_matrix, triu

    made = _package("osqp").OSQP()
    # Its iterations are many and cheap; polishing gives the digits.
    settings = {"eps_abs": tol, "eps_rel": tol, "max_iter": 1000 * max_iter, "polishing": True}
    made.setup(csc_matrix(triu(P)), q, csc_matrix(C), low, high, verbose=False, **settings)
    found = made.solve(raise_error=False)
    ends = {1: Status.SOLVED, 2: Status.ACCEPTABLE, 3: Status.INFEASIBLE, 4: Status.INFEASIBLE}
    ends |= {5: Status.UNBOUNDED, 6: Status.UNBOUNDED, 7: Status.ITERATION_LIMIT}
    status = ends.get(int(found.info.status_val), Status.FAILED)
    return np.asarray(found.x), np.asarray(found.y), status, int(found.info.iter)


def _clarabel(P: Any, q: Any, C: Any, low: Any, high: Any, tol: float, max_iter: int) -> Found:
    from scipy.sparse import csc_matrix, triu, vstack

    package = _package("clarabel")
    equal = low == high
    above, below = np.isfinite(high) & ~equal, np.isfinite(low) & ~equal
    rows = vstack([csc_matrix(C[equal]), csc_matrix(C[above]), csc_matrix(-C[below])], "csc")
    limits = np.concatenate([high[equal], high[above], -low[below]])
    cones = [package.ZeroConeT(int(equal.sum()))]
    cones.append(package.NonnegativeConeT(int(above.sum() + below.sum())))
    settings = package.DefaultSettings()
    settings.verbose, settings.max_iter = False, max_iter
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
    found = package.DefaultSolver(csc_matrix(triu(P)), q, rows, limits, cones, settings).solve()
    ends = {
        "Solved": Status.SOLVED,
        "AlmostSolved": Status.ACCEPTABLE,
        "PrimalInfeasible": Status.INFEASIBLE,
        "AlmostPrimalInfeasible": Status.INFEASIBLE,
        "DualInfeasible": Status.UNBOUNDED,
        "AlmostDualInfeasible": Status.UNBOUNDED,
        "MaxIterations": Status.ITERATION_LIMIT,
    }
    status = ends.get(str(found.status).rpartition(".")[2], Status.FAILED)
    z = np.asarray(found.z)
    lam, a = np.zeros(low.size), int(equal.sum())
    b = a + int(above.sum())
    lam[equal] = z[:a]
    lam[above] += z[a:b]
    lam[below] -= z[b:]
    return np.asarray(found.x), lam, status, int(found.iterations)


def _piqp(P: Any, q: Any, C: Any, low: Any, high: Any, tol: float, max_iter: int) -> Found:
    package = _package("piqp")
    made = package.DenseSolver()
    made.settings.verbose, made.settings.max_iter = False, max_iter
    made.settings.eps_abs = made.settings.eps_rel = tol
    equal = low == high
    rest = ~equal
    made.setup(P, q, C[equal], low[equal], C[rest], low[rest], high[rest])
    made.solve()
    found = made.result
    lam = np.zeros(low.size)
    lam[equal] = found.y
    lam[rest] = np.asarray(found.z_u) - np.asarray(found.z_l)
    ends = {
        "PIQP_SOLVED": Status.SOLVED,
        "PIQP_PRIMAL_INFEASIBLE": Status.INFEASIBLE,
        "PIQP_DUAL_INFEASIBLE": Status.UNBOUNDED,
        "PIQP_MAX_ITER_REACHED": Status.ITERATION_LIMIT,
    }
    status = ends.get(found.info.status.name, Status.FAILED)
    return np.asarray(found.x), lam, status, int(found.info.iter)


#: Solvers by the names of their packages.
PEERS: dict[str, Solver] = {"osqp": _osqp, "clarabel": _clarabel, "piqp": _piqp}


def solve_by_peer(
    name: str, P: Any, q: Any, A: Any, edges: tuple[Any, ...], tol: float, max_iter: int
) -> QPSolution:
    """Solve with a package by name; edges = (low, high, lower, upper)."""
    if name not in PEERS:
        raise ValueError(f"solver={name!r} is not one of {tuple(PEERS)}")
    low, high, lower, upper = edges
    bounded = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    C = np.ascontiguousarray(np.concatenate([A, np.eye(q.size)[bounded]]), dtype=float)
    below = np.concatenate([low, lower[bounded]])
    above = np.concatenate([high, upper[bounded]])
    P, q = np.asarray(P, dtype=float), np.asarray(q, dtype=float)
    x, lam, status, count = PEERS[name](P, q, C, below, above, tol, max_iter)
    lam_a, lam_x = lam[: len(A)], np.zeros(q.size)
    lam_x[bounded] = lam[len(A) :]
    rest = np.max(np.abs(P @ x + q + A.T @ lam_a + lam_x), initial=0.0)
    off = np.max(np.maximum(below - C @ x, C @ x - above), initial=0.0)
    fun = 0.5 * x @ P @ x + q @ x
    return QPSolution(x, lam_a, lam_x, fun, np.int64(status), np.int64(count), max(rest, off))
