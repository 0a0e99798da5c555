"""CasADi's side of the benchmark of optimal control: the same program in our scaled unknowns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.optimisation_problems import PROBLEMS, Problem
from benchmarks.optimisation_timing import SOLVED, TOL, best_time, processor_time, states_along

__all__ = ["check_point", "measure_casadi"]

#: IPOPT from a point and multipliers that are to be an optimum: nothing pushes it away from there.
STAYING = {
    "warm_start_init_point": "yes",
    **dict.fromkeys(
        [
            f"warm_start_{name}"
            for name in ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
        ],
        1e-10,
    ),
    "warm_start_mult_bound_push": 1e-10,
    "mu_init": 1e-7,
    # To say whether a point is an optimum takes first derivatives; the others take a minute.
    "hessian_approximation": "limited-memory",
    "max_iter": 60,
}


def _options(**more: Any) -> dict[str, Any]:
    ipopt = {"print_level": 0, "sb": "yes", "tol": TOL, "bound_relax_factor": 1e-10, **more}
    return {"print_time": False, **{f"ipopt.{name}": value for name, value in ipopt.items()}}


def _program(problem: Problem, nodes: int, scale: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Return the program as CasADi takes it, and what its solvers are called with."""
    import casadi as ca

    nx, nu = problem.initial.size, problem.controls
    x0, x1 = ca.SX.sym("x0", nx), ca.SX.sym("x1", nx)
    u0, um, u1, h = ca.SX.sym("u0", nu), ca.SX.sym("um", nu), ca.SX.sym("u1", nu), ca.SX.sym("h")
    f = lambda x, u: ca.vertcat(*problem.rate(ca, x, u))
    f0, f1 = f(x0, u0), f(x1, u1)
    xm = (x0 + x1) / 2 + h / 8 * (f0 - f1)
    defect = x1 - x0 - h / 6 * (f0 + 4 * f(xm, um) + f1)
    cost = [problem.running(ca, x, u) for x, u in ((x0, u0), (xm, um), (x1, u1))]
    total = h / 6 * (cost[0] + 4 * cost[1] + cost[2])
    rows = [] if problem.path is None else [problem.path(x0), problem.path(xm)]
    each = ca.Function("each", [x0, x1, u0, um, u1, h], [defect, total, ca.vertcat(*rows)])
    z = ca.MX.sym("z", scale.size)
    v = z * scale
    X = ca.reshape(v[2 : 2 + nx * (nodes + 1)], nx, nodes + 1)
    U = ca.reshape(v[2 + nx * (nodes + 1) :], nu, 2 * nodes + 1)
    step = (v[1] - v[0]) / nodes
    out = each.map(nodes)(
        *(X[:, :-1], X[:, 1:], U[:, 0:-1:2], U[:, 1::2], U[:, 2::2], ca.repmat(step, 1, nodes))
    )
    sizes = scale[2 : 2 + nx]
    g = [ca.vec(out[0] / ca.repmat(sizes, 1, nodes))]
    low, high = [np.zeros(nx * nodes)], [np.zeros(nx * nodes)]
    if rows:
        g += [ca.vec(out[2]), problem.path(X[:, -1])]
        low.append(np.full(2 * nodes + 1, problem.path_low))
        high.append(np.full(2 * nodes + 1, np.inf))
    J = ca.sum2(out[1]) + problem.final_cost(v[1], X[:, -1])
    given = _arguments(problem, nodes, scale)
    given |= {"lbg": np.concatenate(low), "ubg": np.concatenate(high)}
    return {"x": z, "f": J, "g": ca.vertcat(*g)}, given


def _arguments(problem: Problem, nodes: int, scale: np.ndarray) -> dict[str, Any]:
    nx, nu = problem.initial.size, problem.controls

    def full(states: np.ndarray, control: float, tf: float) -> np.ndarray:
        return np.concatenate([[0.0, tf], states.ravel(), np.full(nu * (2 * nodes + 1), control)])

    def limits(values: Any, missing: float) -> np.ndarray:
        given = [None] * nx if values is None else values
        return np.tile([missing if v is None else v for v in given], (nodes + 1, 1)).astype(float)

    low, high = limits(problem.state_low, -np.inf), limits(problem.state_high, np.inf)
    low[0] = high[0] = problem.initial
    for k, value in enumerate(problem.final):
        if value is not None:
            low[-1, k] = high[-1, k] = value
    guess = np.stack([states_along(problem, s) for s in np.linspace(0, 1, nodes + 1)])
    lower = full(low, problem.control[0], problem.tf[0])
    upper = full(high, problem.control[1], problem.tf[1])
    start = np.clip(full(guess, problem.control[2], problem.tf[2]), lower, upper)
    return {"x0": start / scale, "lbx": lower / scale, "ubx": upper / scale}


def measure_casadi(name: str, nodes: int, kept: str) -> dict[str, float]:
    """Time CasADi on the same program; ``kept`` is the file of our solution (for its scales)."""
    import casadi as ca

    scale = np.load(kept)["scale"]
    begin = time.process_time()
    nlp, given = _program(PROBLEMS[name], nodes, scale)
    options = {"expand": True}
    one = ca.nlpsol("one", "ipopt", nlp, {**options, **_options(max_iter=1)})
    one(**given)
    found = {"setup": time.process_time() - begin}
    point = one(**given)["x"]
    jac, hess = one.get_function("nlp_jac_g"), one.get_function("nlp_hess_l")
    lam = np.ones(nlp["g"].shape[0])
    found["jacobian"] = best_time(lambda: jac(point, []))
    found["hessian"] = best_time(lambda: hess(point, [], 1.0, lam))
    if nodes <= SOLVED:
        solver = ca.nlpsol("solver", "ipopt", nlp, {**options, **_options(max_iter=1000)})
        found["solve"], result = processor_time(lambda: solver(**given), nodes)
        found["cost"] = float(result["f"])
        found["iterations"] = solver.stats()["iter_count"]
    return found


def check_point(name: str, nodes: int, kept: str) -> dict[str, Any]:
    """Start IPOPT from our solution and its multipliers: an optimum is where it stays.

    Returns its verdict, its iterations, the cost it ends with, and how far it went: the largest
    change of a (scaled) unknown.
    """
    import casadi as ca

    ours, problem = np.load(kept), PROBLEMS[name]
    # Set up in a second without ``expand``; time does not matter here.
    nlp, given = _program(problem, nodes, ours["scale"])
    solver = ca.nlpsol("solver", "ipopt", nlp, _options(**STAYING))
    start = {"x0": ours["x"], "lam_x0": ours["lam_x"], "lam_g0": _reordered(ours["lam_g"], problem)}
    result = solver(**{**given, **start})
    stats = solver.stats()
    return {
        "solved": bool(stats["success"]),
        "status": stats["return_status"],
        "iterations": int(stats["iter_count"]),
        "cost": float(result["f"]),
        "moved": float(np.max(np.abs(np.asarray(result["x"]).ravel() - ours["x"]))),
    }


def _reordered(lam: np.ndarray, problem: Problem) -> np.ndarray:
    """Return multipliers, listed by intervals, in the order of CasADi's rows: by kinds."""
    nx = problem.initial.size
    each = nx if problem.path is None else nx + 2
    nodes = lam.size // each
    table = lam[: nodes * each].reshape(nodes, each)
    return np.concatenate([table[:, :nx].ravel(), table[:, nx:].ravel(), lam[nodes * each :]])
