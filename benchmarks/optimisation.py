"""Optimal control against CasADi with IPOPT, and batches of small programs against their peers.

Both solve the same Hermite-Simpson program, in the same scaled unknowns, from the same guess to the
same tolerance: ours by ``method="ipm"``, CasADi by IPOPT with MUMPS. CasADi's functions are SX
(``expand``), evaluated by its virtual machine. "Set-up" is the first solve with one iteration, in a
fresh process: cold, and with kernels on disk (the best of four processes). Set-up and solves are
seconds of processor time, the best of several solves for small meshes. CasADi is given up after
``OPTIMISATION_LIMIT`` seconds (90); its IPOPT then starts from our solution and multipliers, to
say by its own functions and derivatives whether that is an optimum: how far it moves (the largest
change of a scaled unknown), and the cost it ends with.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.optimisation_problems import PROBLEMS
from benchmarks.optimisation_timing import (
    LIMIT,
    NODES,
    SOLVED,
    TOL,
    best_time,
    processor_time,
    states_along,
)
from benchmarks.report import ROOT, Table, _environment_of_child

__all__ = ["measure", "measure_batches", "tables"]

#: Processes whose best set-up from disk counts.
SETUPS = 3


def measure_ours(
    name: str, nodes: int, only_setup: bool = False, kept: str = ""
) -> dict[str, float]:
    """Time our side; the solution goes into the file ``kept``."""
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
        "x": lambda s: states_along(problem, s),
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

    found["jacobian"] = best_time(slopes)
    found["hessian"] = best_time(lambda: evaluator.curvature(x, 1.0, lam))
    if nodes <= SOLVED:
        options = {"maxiter": 1000, "tol": TOL}
        run = lambda: made.solve(start, intervals=nodes, options=options)
        found["solve"], solution = processor_time(run, nodes)
        found |= {"cost": solution.fun, "iterations": solution.iterations}
        found["in functions"] = sum(solution.times[k] for k in ("values", "slopes", "curvature"))
    if kept:
        answer = solution.answer
        np.savez(kept, scale=solution.scale, x=answer.x, lam_g=answer.lam_g, lam_x=answer.lam_x)
    return found


def _child(function: str, *arguments: Any, limit: float | None = None, **more: str) -> Any:
    """Call a function of the benchmark in a fresh process; None where that takes too long.

    It finds .pyc files, as it does everywhere but where their writing is turned off.
    """
    module = "optimisation" if function in globals() else "optimisation_casadi"
    code = (
        f"import json; from benchmarks.{module} import {function} as f; "
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
        kept = f"{folder}/solution.npz"
        warm = _child("measure_ours", name, nodes, False, kept, **own)
        peer = _child("measure_casadi", name, nodes, kept, limit=LIMIT)
        stays = None
        if peer is None and "solve" in warm:
            stays = _child("check_point", name, nodes, kept, limit=LIMIT)
    warm["setup"] = min(each["setup"] for each in [*found, warm])
    return {"cold": cold, "warm": warm, "casadi": peer, "stays": stays}


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
    found = {"QP ours": best_time(lambda: batch(Q), 1.0) / count}
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
    found["NLP ours"] = best_time(lambda: many(targets), 1.0) / count
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
    return best_time(lambda: loop(**given), 0.5) / count


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
        return [
            *(*row, "", f"{solved} / {none}", ""),
            *(f"{total} / - s", f"{cost} / {_verdict(m['stays'])}"),
        ]
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


def _verdict(stays: dict[str, Any] | None) -> str:
    """Say where IPOPT goes from our solution."""
    if stays is None:
        return "-"
    found = f"{stays['cost']:.7g} from our point: moved {stays['moved']:.0e}"
    end = "" if stays["solved"] else f", {stays['status']}"
    return f"{found}, {stays['iterations']} iterations{end}"


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
