"""``minimize``: trees, limits, names, multipliers, options, callbacks and how failures show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import archimedes as arc
from archimedes.installation import install_command
from archimedes.optimize import Multipliers, OptimizeResult, Status, minimize


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def hs71(x):
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def hs71_constraints(x):
    return {"product": np.prod(x), "squares": np.sum(x**2)}


HS71 = {
    "constr": hs71_constraints,
    "bounds": (1.0, 5.0),
    "constr_bounds": {"product": (25.0, None), "squares": (40.0, 40.0)},
}
HS71_START = [1.0, 5.0, 5.0, 1.0]


@pytest.mark.long_cases("COBYQA", "trust*")
@pytest.mark.parametrize("method", ["ipopt", "SLSQP", "trust-constr", "COBYQA"])
def test_one_result_whatever_the_solver(method):
    found = minimize(hs71, HS71_START, method=method, **HS71)
    assert isinstance(found, OptimizeResult)
    assert found.success, found.message
    assert found.fun == pytest.approx(17.0140173, rel=1e-5)
    assert set(found.residuals) == {"constr['product']", "constr['squares']"}
    assert found.violation < 1e-6
    assert found.iterations > 0
    assert found.evaluations["values"] > 0
    assert found.times["solve"] > 0
    if method != "COBYQA":
        # grad f + A^T lam_g + lam_x = 0
        A = arc.jac(lambda x: np.array(list(hs71_constraints(x).values())))(found.x)
        lam = np.array([found.multipliers.constr["product"], found.multipliers.constr["squares"]])
        rest = arc.grad(hs71)(found.x) + A.T @ lam + found.multipliers.bounds
        np.testing.assert_allclose(rest, 0.0, atol=1e-4)


@pytest.mark.long_cases("BFGS", "C*", "N*", "T*", "t*")
@pytest.mark.parametrize(
    "method", ["ipopt", "L-BFGS-B", "BFGS", "Newton-CG", "trust-exact", "TNC", "CG", "Nelder-Mead"]
)
def test_without_constraints(method):
    options = {"maxiter": 2000} if method in ("Nelder-Mead", "TNC") else {}
    found = minimize(rosenbrock, [-1.2, 1.0], method=method, options=options)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


def test_trees_in_and_out():
    @arc.struct
    class Pose:
        pos: np.ndarray
        angle: float

    target = np.array([1.0, -2.0, 3.0])

    def cost(pose, gains):
        return gains["pos"] * np.sum((pose.pos - target) ** 2) + (pose.angle - 0.5) ** 4

    found = minimize(
        cost,
        Pose(np.zeros(3), 2.0),
        ({"pos": 2.0},),
        bounds=(Pose(None, 0.6), Pose([0.5, None, None], None)),
    )
    assert isinstance(found.x, Pose)
    np.testing.assert_allclose(found.x.pos, [0.5, -2.0, 3.0], atol=1e-6)
    assert found.x.angle == pytest.approx(0.6, abs=1e-6)
    assert isinstance(found.multipliers.bounds, Pose)
    assert found.multipliers.bounds.pos[0] == pytest.approx(2.0, rel=1e-4)  # upper: positive
    assert found.multipliers.bounds.angle == pytest.approx(-4 * 0.1**3, rel=1e-3)


def test_constraints_are_equations_without_limits():
    found = minimize(lambda x: np.sum(x**2), np.ones(2), constr=lambda x: x[0] + x[1] - 1.0)
    np.testing.assert_allclose(found.x, 0.5, atol=1e-8)
    assert found.multipliers.constr == pytest.approx(-1.0)


def test_a_list_of_constraints_is_named_by_the_functions():
    def on_line(x):
        return x[0] - x[1]

    found = minimize(
        lambda x: np.sum((x - 3.0) ** 2),
        np.zeros(2),
        constr=[on_line, lambda x: x[0]],
        constr_bounds=[(0.0, 0.0), (None, 1.0)],
    )
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    assert set(found.residuals) == {"constr['on_line']", "constr['constr1']"}


def test_static_arguments():
    def cost(x, power, kind):
        return np.sum((x - 1.0) ** power) + (0.0 if kind == "plain" else x[0])

    found = minimize(cost, np.zeros(2), (2, "tilted"), static_argnames=("power", "kind"))
    np.testing.assert_allclose(found.x, [0.5, 1.0], atol=1e-7)


def test_the_derivatives_are_exact_and_sparse():
    n = 40
    found = minimize(rosenbrock, np.full(n, -1.0), options={"maxiter": 500})
    assert found.success
    theirs = scipy_optimize.rosen(found.x)
    assert found.fun == pytest.approx(theirs, abs=1e-12)


def test_warm_start_takes_fewer_iterations():
    cold = minimize(hs71, HS71_START, **HS71)
    warm = minimize(hs71, cold.x, multipliers=cold.multipliers, **HS71)
    assert warm.success
    assert warm.iterations <= 2 < cold.iterations
    assert warm.fun == pytest.approx(cold.fun, rel=1e-7)


def test_the_callback_sees_each_iteration_and_can_stop():
    seen = []

    def watch(iteration):
        seen.append((iteration.number, iteration.fun, iteration.x["x"].shape))
        return iteration.number == 3

    found = minimize(lambda p: rosenbrock(p["x"]), {"x": np.array([-1.2, 1.0])}, callback=watch)
    assert [number for number, *_ in seen] == [0, 1, 2, 3]
    assert found.status is Status.INTERRUPTED
    assert not found.success
    assert found.fun == min(fun for _, fun, _ in seen)


def test_an_error_in_the_callback_or_the_functions_is_raised():
    def broken(iteration):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        minimize(rosenbrock, [-1.2, 1.0], callback=broken)


def test_ctrl_c_returns_the_best_point_so_far(request):
    # Whoever ran before in this process may have left a handler of its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def slow(iteration):
        time.sleep(0.05)
        if iteration.number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    found = minimize(rosenbrock, [-1.2, 1.0], callback=slow)
    assert found.status is Status.INTERRUPTED
    assert 2 <= found.iterations <= 4
    assert found.fun < rosenbrock(np.array([-1.2, 1.0]))


FAILURES = {
    "infeasible": (lambda x: x**2, 1.0, {"constr": lambda x: x**2, "constr_bounds": (-3, -2)}),
    "unbounded": (lambda x: -x, 1.0, {}),
    "iteration limit": (rosenbrock, [-1.2, 1.0], {"options": {"maxiter": 3}}),
    "time limit": (
        rosenbrock,
        [-1.2, 1.0],
        {"options": {"maxtime": 0.02}, "callback": lambda _: time.sleep(0.01)},
    ),
    "nan": (lambda x: np.log(x), -1.0, {}),
    "nan on the way": (lambda x: np.sqrt(x) * 1e3 + np.log(x - 0.5), 5.0, {}),
    "overdetermined": (
        lambda x: x[0] ** 2,
        np.ones(1),
        {"constr": lambda x: np.array([x[0] - 1.0, x[0] ** 2 - 4.0])},
    ),
}
STATUSES = {
    "infeasible": (Status.INFEASIBLE,),
    "unbounded": (Status.UNBOUNDED,),
    "iteration limit": (Status.ITERATION_LIMIT,),
    "time limit": (Status.TIME_LIMIT,),
    "nan": (Status.NOT_FINITE,),
    "nan on the way": (Status.NOT_FINITE, Status.STALLED, Status.INFEASIBLE, Status.UNBOUNDED),
    "overdetermined": (Status.OVERDETERMINED, Status.INFEASIBLE),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_say_so(name):
    obj, x0, more = FAILURES[name]
    found = minimize(obj, x0, **more)
    assert not found.success
    assert found.status in STATUSES[name], found
    assert len(found.message) > 20
    assert "FAILED" in str(found)


def test_infeasible_names_the_constraint():
    found = minimize(
        lambda x: np.sum(x**2),
        np.zeros(2),
        constr={"sum": lambda x: x[0] + x[1], "far": lambda x: x[0] - x[1] ** 2},
        constr_bounds={"sum": (None, 1.0), "far": (9.0, None)},
        bounds=(-1.0, 1.0),
    )
    assert not found.success
    assert "constr['far']" in found.message


def test_badly_scaled_problems_are_solved_or_say_so():
    def cost(x):
        return 1e8 * (x[0] * 1e-6 - 1.0) ** 2 + 1e-6 * (x[1] - 1e3) ** 2

    found = minimize(cost, np.array([0.0, 0.0]))
    if found.success:
        np.testing.assert_allclose(found.x[0], 1e6, rtol=1e-3)
    else:
        assert found.status in (Status.STALLED, Status.ITERATION_LIMIT)


ERRORS = {
    "crossed bounds": ({"bounds": (1.0, 0.0)}, r"bounds: no number lies between .* of \[0\]"),
    "bounds of the wrong shape": (
        {"bounds": (np.zeros(3), None)},
        r"bounds\[0\] must hold numbers that broadcast to shape \(2,\)",
    ),
    "bounds not a pair": ({"bounds": 3.0}, r"bounds must be a pair"),
    "limits without constraints": ({"constr_bounds": (0, 1)}, "there is no constr: give"),
    "nan in bounds": ({"bounds": (np.nan, None)}, r"bounds\[0\] holds nan"),
    "unknown method": ({"method": "simplex"}, "method='simplex' is not one of"),
    "unknown option": (
        {"options": {"tolerance": 1e-3}, "method": "ipopt"},
        "takes no 'tolerance'",
    ),
    "bad option": ({"options": {"tol": -1.0}}, r"options\['tol'\] = -1.0 must be a positive"),
    "constraints for BFGS": (
        {"constr": lambda x: x[0], "method": "BFGS"},
        "'BFGS' takes no constraints",
    ),
    "bounds for BFGS": ({"bounds": (0, 1), "method": "BFGS"}, "'BFGS' takes no bounds"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name, request):
    more, message = ERRORS[name]
    if more.get("method") == "ipopt":
        request.getfixturevalue("ipopt")
    with pytest.raises(ValueError, match=message):
        minimize(lambda x: np.sum(x**2), np.ones(2), **more)


def test_more_errors():
    with pytest.raises(ValueError, match=r"x0\['b'\]\[1\] is nan"):
        minimize(lambda p: np.sum(p["b"] ** 2), {"b": np.array([1.0, np.nan])})
    with pytest.raises(ValueError, match="obj must return one number"):
        minimize(lambda x: x**2, np.ones(2))
    with pytest.raises(TypeError, match=r"minimize\(f, x0\)"):
        minimize(3.0, np.ones(2))
    with pytest.raises(ValueError, match=r"multipliers\.bounds must hold numbers that broadcast"):
        minimize(rosenbrock, np.ones(2), multipliers=Multipliers(None, np.zeros(5)))


def test_a_result_is_not_its_unknowns():
    found = minimize(lambda x: np.sum(x**2), np.ones(2))
    for use in (np.asarray, lambda r: r[0], list, len, float, lambda r: r + np.ones(2)):
        with pytest.raises(TypeError, match=r"\.x$|unsupported operand"):
            use(found)


def test_threads_take_turns():
    results = {}

    def work(k):
        results[k] = minimize(rosenbrock, np.full(3, -1.0 - k / 10)).fun

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(fun < 1e-10 for fun in results.values())


@pytest.mark.long
@pytest.mark.parametrize("without", ["casadi", "ipyopt"])
def test_either_wheel_brings_ipopt(without):
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        f"u.find_spec = lambda n, p=None: None if n == {without!r} else real(n, p)\n"
        "import ctypes.util; ctypes.util.find_library = lambda name: None\n"
        "from archimedes.optimize.solvers.ipopt import library; print(library()._name)\n"
        "from archimedes.optimize import minimize\n"
        "print(minimize(lambda x: (x - 1) ** 4 + x**2, 3.0).success)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    name, success = done.stdout.split()
    assert without not in name.rpartition("/")[2] and success == "True", done.stderr


def test_without_ipopt_the_error_says_what_to_install():
    code = (
        "import sys, numpy as np\n"
        "sys.modules['casadi'] = sys.modules['ipyopt'] = None\n"
        "import ctypes.util; ctypes.util.find_library = lambda name: None\n"
        "import importlib.util as u; u.find_spec = lambda name, package=None: None\n"
        "from archimedes.optimize import minimize\n"
        "try: minimize(lambda x: x**2, 1.0, method='ipopt')\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert install_command("optimize") in done.stdout, done.stderr
