"""What users of the original type, in optimization and integration."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import archimedes as arc
from archimedes.errors import ShapeDtypeError
from archimedes.optimize import implicit, least_squares, lm_solve, minimize, qpsol, root


def rosenbrock(x):
    return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


# ---- roots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["newton", "hybr", "lm"])
@pytest.mark.parametrize(
    ("f", "x0", "x"),
    [
        (lambda x: (x - 1.0) ** 2, 3.0, 1.0),
        (lambda x: x**2 - 2.0 * x + 1.0, 3.0, 1.0),
        (lambda x: 1.0 - np.cos(x), 0.5, 0.0),
        (lambda x: 1e3 * (x - 20.0) ** 2, 50.0, 20.0),
    ],
)
def test_a_double_root_to_1e_6_by_default(method, f, x0, x):
    assert abs(root(f, x0, method=method) - x) <= 1e-6 * (1.0 + abs(x))


def test_a_double_root_inside_compiled_code_is_the_same():
    f = lambda p: root(lambda x, q: (x - q) ** 2, 3.0, args=(p,))
    assert arc.compile(f)(1.25) == f(1.25) == pytest.approx(1.25, abs=1e-6)


def test_a_fourfold_root_that_rounding_blurs_is_still_a_root():
    # Steps do not get shorter than 1e-5 or so: what was a root before is one now.
    x = root(lambda x: x**4 - 4 * x**3 + 6 * x**2 - 4 * x + 1, 2.0)
    assert abs(x - 1.0) < 1e-2


def test_a_residual_that_fades_is_no_root():
    with pytest.raises(arc.ConvergenceError):
        root(lambda x: np.exp(-x), 0.0)


def test_wrong_shapes_are_shape_errors():
    two = lambda x: np.stack([x[0], x[0]])
    for call in (lambda: root(two, [1.0]), lambda: implicit(two)(np.ones(1))):
        with pytest.raises(ShapeDtypeError, match="returns 2 equations for 1 unknowns"):
            call()
    with pytest.raises(ShapeDtypeError, match="x0"):
        root(lambda x: x, np.zeros(0))
    with pytest.raises(ShapeDtypeError, match="bounds hold 3 numbers, x0 holds 2"):
        root(lambda x: x, np.ones(2), bounds=(np.zeros(3), None))


# ---- fits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm", "hess-lm"])
@pytest.mark.parametrize("bounds", [None, ([-2.0, -2.0], [0.5, 2.0])])
def test_methods_of_scipy_against_scipy(method, bounds):
    found = least_squares(rosenbrock, [-1.2, 1.0], bounds=bounds, method=method)
    limits = (-np.inf, np.inf) if bounds is None else bounds
    known = scipy_optimize.least_squares(
        rosenbrock, [-1.2, 1.0], bounds=limits, ftol=1e-14, xtol=1e-14, gtol=1e-14
    )
    assert found.success, found.message
    np.testing.assert_allclose(found.x, known.x, atol=1e-6)
    assert found.cost == pytest.approx(known.cost, abs=1e-12)


def test_trf_holds_fixed_unknowns_takes_trees_and_losses():
    t = np.linspace(0.0, 2.0, 30)
    data = 2.0 * np.exp(-1.5 * t)
    data[4] += 3.0
    misfit = lambda p: p["a"] * np.exp(-p["b"] * t) + p["c"] - data
    found = least_squares(
        misfit,
        {"a": 1.0, "b": 1.0, "c": 0.0},
        bounds=({"a": 0.0, "b": 0.0, "c": 0.0}, {"a": 9.0, "b": None, "c": 0.0}),
        method="trf",
        loss="cauchy",
        f_scale=0.01,
    )
    assert found.success and found.x["c"] == 0.0
    assert found.x["a"] == pytest.approx(2.0, abs=1e-3)
    assert found.x["b"] == pytest.approx(1.5, abs=1e-3)


def test_trf_says_what_lm_says_of_a_bad_start():
    for method in ("lm", "trf"):
        found = least_squares(lambda x: np.log(x), [-1.0], method=method)
        assert not found.success and found.status.name == "NON_FINITE"
    with pytest.raises(ValueError, match=r"scipy\.optimize\.least_squares"):
        least_squares(rosenbrock, [1.0, 1.0], method="simplex")


def test_history_is_a_dict_for_each_step():
    found = lm_solve(rosenbrock, [-1.2, 1.0])
    assert [h["iteration"] for h in found.history] == list(range(1, found.nit + 1))
    costs = [h["cost"] for h in found.history]
    assert costs == sorted(costs, reverse=True) and costs[-1] == found.cost
    last = found.history[-1]
    assert last["grad_norm"] == np.abs(found.grad).max() and last["nfev"] <= found.nfev
    assert set(last) == {"iteration", "cost", "grad_norm", "step_norm", "damping", "nfev"}


def test_nprint_prints_and_log_level_logs(capsys, caplog):
    quiet = lm_solve(rosenbrock, [-1.2, 1.0])
    assert capsys.readouterr().out == ""
    lm_solve(rosenbrock, [-1.2, 1.0], nprint=2)
    assert len(capsys.readouterr().out.splitlines()) == quiet.nit // 2
    with caplog.at_level(logging.DEBUG, logger="archimedes.optimize"):
        lm_solve(rosenbrock, [-1.2, 1.0], log_level=logging.DEBUG)
    assert len(caplog.records) == quiet.nit and capsys.readouterr().out == ""
    assert "cost" in caplog.records[0].message


def test_diag_scales_the_unknowns_as_in_minpack():
    free = lm_solve(rosenbrock, [-1.2, 1.0], diag=[1.0, 1.0])
    assert free.success and np.abs(free.x - 1.0).max() < 1e-8
    # An unknown with a large scale takes short steps.
    held = lm_solve(rosenbrock, [-1.2, 1.0], diag=[1e6, 1.0], maxiter=1, damping=1.0)
    assert abs(held.x[0] + 1.2) < 1e-6 < abs(held.x[1] - 1.0)
    with pytest.raises(ValueError, match="diag"):
        lm_solve(rosenbrock, [-1.2, 1.0], diag=[1.0, 0.0])
    with pytest.raises(ValueError, match="diag"):
        lm_solve(rosenbrock, [-1.2, 1.0], diag=[1.0, 1.0, 1.0])
    with pytest.raises((TypeError, ValueError), match="nprint"):
        lm_solve(rosenbrock, [-1.2, 1.0], nprint=-1)


# ---- programs and solvers ---------------------------------------------------------------------


def test_sqpmethod_is_sqp():
    cost = lambda x: (x[0] - 1.0) ** 2 + (x[1] - 2.0) ** 2
    found, own = (minimize(cost, np.zeros(2), method=m) for m in ("sqpmethod", "sqp"))
    assert found.success
    np.testing.assert_array_equal(found.x, own.x)
    solver = arc.nlp_solver(cost, method="sqpmethod")
    np.testing.assert_allclose(solver(np.zeros(2)), [1.0, 2.0], atol=1e-8)


def test_qpsol_without_limits_is_unconstrained():
    cost = lambda x: (x[0] - 1.0) ** 2 + (x[1] - 2.0) ** 2
    for constr in (lambda x: x[0] + x[1], None):
        found = qpsol(cost, constr, np.zeros(2))
        np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-9)


def test_integrator_takes_the_state_and_then_the_times():
    solve = arc.integrator(lambda t, x: -x)
    assert solve(np.array([1.0]), (0.0, 1.0))[0] == pytest.approx(np.exp(-1.0), abs=1e-8)
    with pytest.raises((ValueError, TypeError), match="t_span"):
        solve((0.0, 1.0), np.array([1.0]))
