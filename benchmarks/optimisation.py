"""Optimal control against CasADi with IPOPT, and batches of small programs against their peers.

Both solve the same Hermite-Simpson program, in the same scaled unknowns, from the same guess to the
same tolerance: ours by ``method="ipm"``, CasADi by IPOPT with MUMPS. CasADi's functions are SX
(``expand``), evaluated by its virtual machine. "Set-up" is the first solve with one iteration, in a
fresh process: cold, and with kernels on disk (the best of four processes). Set-up and solves are
seconds of processor time, the best of several solves for small meshes. CasADi is given up after
``OPTIMISATION_LIMIT`` seconds (90).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.optimisation_problems import PROBLEMS, Problem
from benchmarks.report import ROOT, Table, _environment_of_child

__all__ = ["measure", "measure_batches", "tables"]

NODES = [int(n) for n in os.environ.get("OPTIMISATION_NODES", "50,200,1000").split(",")]
#: Larger programs are evaluated, but not solved to the end.
SOLVED = int(os.environ.get("OPTIMISATION_SOLVED", "1000"))
TOL = 1e-6
#: Seconds that CasADi may take for one program, set-up and all.
LIMIT = float(os.environ.get("OPTIMISATION_LIMIT", "90"))
#: Processes whose best set-up from disk counts.
SETUPS = 3


def _best(run: Callable[[], Any], seconds: float = 1.0) -> float:
    best, begin = np.inf, time.perf_counter()
    while best == np.inf or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _processor_time(run: Callable[[], Any], nodes: int) -> tuple[float, Any]:
    """Return the least processor time of a few runs, and the last result."""
    best, result = np.inf, None
    for _ in range(15 if nodes <= 50 else 3 if nodes <= 200 else 1):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return best, result


def _states(problem: Problem, s: float) -> np.ndarray:
    line = problem.initial + s * (problem.guess_end - problem.initial)
    return line + problem.bend * np.sin(np.pi * s)


def measure_ours(name: str, nodes: int, only_setup: bool = False) -> dict[str, float]:
    """Time our side."""
    from archimedes.optimize import OptimalControl

    problem = PROBLEMS[name]
    low, high, guess = problem.control
    begin = time.process_time()
    path = None if problem.path is None else (lambda t, x, u: problem.path(x))
    made = OptimalControl(
        lambda t, x, u: np.stack(problem.rate(np, x, u)),
        running_cost=lambda t, x, u: problem.running(np, x, u) + 0.0 * u[0],
        terminal_cost=lambda t0, x0, tf, xf: problem.final_cost(tf, xf) + 0.0 * tf,
        initial=problem.initial,
        final=problem.final,
        tf=problem.tf[:2],
        control_bounds=(low, high),
        state_bounds=(problem.state_low, problem.state_high),
        path=path,
        path_bounds=None if path is None else (problem.path_low, None),
    )
    start = {
        "x": lambda s: _states(problem, s),
        "u": np.full(problem.controls, guess),
        "tf": problem.tf[2],
    }
    solution = made.solve(start, intervals=nodes, options={"maxiter": 1, "tol": TOL})
    found = {"setup": time.process_time() - begin}
    if only_setup:
        return found
    evaluator, x = solution._task.evaluator, solution.answer.x
    lam = np.ones(evaluator.structure.m)

    def slopes() -> None:
        evaluator._x = None
        evaluator.slopes(x)

    found["jacobian"] = _best(slopes)
    found["hessian"] = _best(lambda: evaluator.curvature(x, 1.0, lam))
    if nodes <= SOLVED:
        options = {"maxiter": 1000, "tol": TOL}
        run = lambda: made.solve(start, intervals=nodes, options=options)
        found["solve"], solution = _processor_time(run, nodes)
        found |= {"cost": solution.fun, "iterations": solution.iterations}
        found["in functions"] = sum(solution.times[k] for k in ("values", "slopes", "curvature"))
    found["scale"] = solution.scale.tolist()  # type: ignore[assignment]
    return found


def measure_casadi(name: str, nodes: int, given_scale: list[float]) -> dict[str, float]:
    """Time CasADi on the same program, in our scaled unknowns."""
    import casadi as ca

    scale = np.array(given_scale)
    problem = PROBLEMS[name]
    nx, nu = problem.initial.size, problem.controls
    begin = time.process_time()
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
    options = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": TOL}
    options |= {"ipopt.bound_relax_factor": 1e-10, "expand": True}
    nlp = {"x": z, "f": J, "g": ca.vertcat(*g)}
    given = _casadi_arguments(problem, nodes, scale)
    given |= {"lbg": np.concatenate(low), "ubg": np.concatenate(high)}
    one = ca.nlpsol("one", "ipopt", nlp, {**options, "ipopt.max_iter": 1})
    one(**given)
    found = {"setup": time.process_time() - begin}
    point = one(**given)["x"]
    jac, hess = one.get_function("nlp_jac_g"), one.get_function("nlp_hess_l")
    lam = np.ones(nlp["g"].shape[0])
    found["jacobian"] = _best(lambda: jac(point, []))
    found["hessian"] = _best(lambda: hess(point, [], 1.0, lam))
    if nodes <= SOLVED:
        solver = ca.nlpsol("solver", "ipopt", nlp, {**options, "ipopt.max_iter": 1000})
        found["solve"], result = _processor_time(lambda: solver(**given), nodes)
        found["cost"] = float(result["f"])
        found["iterations"] = solver.stats()["iter_count"]
    return found


def _casadi_arguments(problem: Problem, nodes: int, scale: np.ndarray) -> dict[str, Any]:
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
    guess = np.stack([_states(problem, s) for s in np.linspace(0, 1, nodes + 1)])
    lower = full(low, problem.control[0], problem.tf[0])
    upper = full(high, problem.control[1], problem.tf[1])
    start = np.clip(full(guess, problem.control[2], problem.tf[2]), lower, upper)
    return {"x0": start / scale, "lbx": lower / scale, "ubx": upper / scale}


def _child(function: str, *arguments: Any, limit: float | None = None, **more: str) -> Any:
    """Call a function of this module in a fresh process; None where that takes too long.

    It finds .pyc files, as it does everywhere but where their writing is turned off.
    """
    code = (
        f"import json, numpy as np; from benchmarks.optimisation import {function} as f; "
        f"print(json.dumps(f(*json.loads({json.dumps(json.dumps(arguments))}))))"
    )
    environment = {**_environment_of_child(), **more}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"a benchmark process failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str, nodes: int) -> dict[str, Any]:
    """Measure one problem: processes of ours with one cache, one of CasADi's."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"PYTHONPYCACHEPREFIX": f"{folder}/pyc"}
        # What is imported where nothing is on disk, but for kernels.
        _child("measure_ours", name, 10, True, ARCHIMEDES_CACHE_DIR=f"{folder}/other", **files)
        own = {"ARCHIMEDES_CACHE_DIR": f"{folder}/kernels", **files}
        cold = _child("measure_ours", name, nodes, True, **own)
        found = [_child("measure_ours", name, nodes, True, **own) for _ in range(SETUPS)]
        warm = _child("measure_ours", name, nodes, **own)
    warm["setup"] = min(each["setup"] for each in [*found, warm])
    peer = _child("measure_casadi", name, nodes, warm.pop("scale"), limit=LIMIT)
    return {"cold": cold, "warm": warm, "casadi": peer}


def measure_batches(count: int = 10_000) -> dict[str, float]:
    """Time batches of control allocations (QP) and of inverse kinematics (NLP), each program."""
    import osqp
    import scipy.sparse as sp
    from scipy.optimize import minimize as scipy_minimize

    import archimedes as arc
    from archimedes.optimize import nlp_solver, solve_qp

    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 5))
    P = B.T @ B + 1e-3 * np.eye(5)
    Q = -rng.normal(size=(count, 3)) @ B
    batch = arc.vmap(lambda q: solve_qp(P, q, lower=-0.5, upper=0.5).x)
    batch(Q)
    found = {"QP ours": _best(lambda: batch(Q), 1.0) / count}
    peer = osqp.OSQP()
    box = np.full(5, 0.5)
    settings = {"verbose": False, "eps_abs": 1e-6, "eps_rel": 1e-6}
    peer.setup(sp.csc_matrix(P), Q[0], sp.identity(5, format="csc"), -box, box, **settings)
    begin = time.perf_counter()
    for q in Q[:1000]:
        peer.update(q=q)
        peer.solve()
    found["QP OSQP"] = (time.perf_counter() - begin) / 1000
    found["QP qpOASES"] = _active_set_loop(P, Q[:500], box)

    lengths = np.array([1.0, 0.8, 0.5])

    def reach(q: Any) -> Any:
        angles = np.cumsum(q)
        return np.array([np.sum(lengths * np.cos(angles)), np.sum(lengths * np.sin(angles))])

    arm = nlp_solver(lambda q, p: np.sum(q**2), lambda q, p: reach(q) - p, method="sqp")
    start = np.array([0.3, 0.3, 0.3])
    radius, angle = rng.uniform(1.2, 2.1, count), rng.uniform(-0.5, 1.2, count)
    targets = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    many = arc.vmap(lambda p: arm(start, p, bounds=(-2.0, 2.0)))
    solved = many(targets)
    found["NLP solved"] = float(np.mean(np.isfinite(solved[:, 0])))
    found["NLP ours"] = _best(lambda: many(targets), 1.0) / count
    # The peer is given native functions too.
    value, slope = arc.compile(reach), arc.jac(reach)
    begin = time.perf_counter()
    for p in targets[:200]:
        rule = {"type": "eq", "fun": lambda q, p=p: value(q) - p, "jac": lambda q: slope(q)}
        scipy_minimize(
            lambda q: q @ q,
            start,
            jac=lambda q: 2 * q,
            method="SLSQP",
            constraints=[rule],
            bounds=[(-2, 2)] * 3,
        )
    found["NLP SLSQP"] = (time.perf_counter() - begin) / 200
    return found


def _active_set_loop(P: np.ndarray, costs: np.ndarray, box: np.ndarray) -> float:
    """Return the time of one program in a loop over qpOASES that is C itself (CasADi's map)."""
    import casadi

    count = len(costs)
    settings = {"printLevel": "none"}
    solver = casadi.conic("S", "qpoases", {"h": casadi.Sparsity.dense(*P.shape)}, settings)
    edges = np.tile(box[:, None], (1, count))
    given = {"h": casadi.repmat(casadi.DM(P), 1, count), "g": costs.T, "lbx": -edges, "ubx": edges}
    loop = solver.map(count, "serial")
    return _best(lambda: loop(**given), 0.5) / count


def _row(name: str, nodes: int) -> list[str]:
    m = measure(name, nodes)
    cold, warm, peer = m["cold"], m["warm"], m["casadi"]
    ours = [f"{cold['setup']:.2f} / {warm['setup']:.2f}", f"{1e3 * warm['jacobian']:.2f}"]
    ours += [f"{1e3 * warm['hessian']:.2f}"]
    solved = f"{1e3 * warm['solve']:.0f} ({warm['iterations']})" if "solve" in warm else "-"
    cost = f"{warm['cost']:.7g}" if "solve" in warm else "-"
    total = f"{cold['setup'] + warm.get('solve', 0.0):.2f}"
    if peer is None:
        none = f"not done after {LIMIT:.0f} s"
        row = [name, str(nodes), f"{ours[0]} / - s", f"{ours[1]} / - ms", f"{ours[2]} / - ms"]
        return [*row, "", f"{solved} / {none}", "", f"{total} / - s", f"{cost} / -"]
    row = [name, str(nodes), f"{ours[0]} / {peer['setup']:.2f} s"]
    row += [f"{ours[1]} / {1e3 * peer['jacobian']:.2f} ms"]
    row += [f"{ours[2]} / {1e3 * peer['hessian']:.2f} ms"]
    row += [f"{peer['jacobian'] / warm['jacobian']:.1f}x, {peer['hessian'] / warm['hessian']:.1f}x"]
    if "solve" not in warm or "solve" not in peer:
        return [*row, "", "", "", ""]
    row += [f"{solved} / {1e3 * peer['solve']:.0f} ms ({peer['iterations']:.0f})"]
    row += [
        f"{peer['solve'] / warm['solve']:.1f}x",
        f"{total} / {peer['setup'] + peer['solve']:.2f} s",
    ]
    return [*row, f"{cost} / {peer['cost']:.7g}"]


def tables() -> list[Table]:
    """Measure in fresh processes."""
    columns = (
        *("problem", "intervals", "set-up: cold / from disk / CasADi"),
        *("Jacobian: ours / CasADi", "Hessian: ours / CasADi", "faster by"),
        *("solve (iterations): ours / CasADi", "faster by"),
        *("set-up (cold) and solve: ours / CasADi", "cost: ours / CasADi"),
    )
    rows = [_row(name, nodes) for name in PROBLEMS for nodes in NODES]
    b = _child("measure_batches")
    small = [
        [
            "control allocation, QP of 5 unknowns",
            f"{1e6 * b['QP ours']:.2f} us",
            f"OSQP {1e6 * b['QP OSQP']:.0f} us",
            f"{b['QP OSQP'] / b['QP ours']:.0f}x",
        ],
        [
            "the same, against a loop in C",
            f"{1e6 * b['QP ours']:.2f} us",
            f"qpOASES {1e6 * b['QP qpOASES']:.0f} us",
            f"{b['QP qpOASES'] / b['QP ours']:.0f}x",
        ],
        [
            f"inverse kinematics, NLP of 3 unknowns ({100 * b['NLP solved']:.1f} % solved)",
            f"{1e6 * b['NLP ours']:.2f} us",
            f"SLSQP {1e6 * b['NLP SLSQP']:.0f} us",
            f"{b['NLP SLSQP'] / b['NLP ours']:.0f}x",
        ],
    ]
    note = __doc__.partition("\n\n")[2].strip() if __doc__ else ""
    return [
        Table("Optimal control", columns, rows, note),
        Table(
            "Batches of small programs",
            ("10,000 at once", "each, ours", "a loop over a peer, each", "ratio"),
            small,
            "Ours on all cores; the peers one after the other, as their interfaces have it.",
        ),
    ]
