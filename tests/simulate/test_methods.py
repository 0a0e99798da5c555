"""Orders of convergence, tableaus and interpolants of the explicit methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from archimedes.simulate import solve_ode
from archimedes.simulate.methods.explicit import TABLEAUS
from archimedes.simulate.methods.method_table import evaluate_dense
from archimedes.simulate.solves.initial_value_problem import find_method
from tests.optional_packages import import_or_skip

NAMES = [tableau.name for tableau in TABLEAUS]
#: Steps over the span, coarse enough for errors well above rounding.
STEPS = {"dop853": (6, 12)}


def pendulum(t, x):
    return np.stack([x[1], -np.sin(x[0]) + 0.1 * np.cos(t)])


START, END, X0 = 0.0, 2.0, np.array([1.0, 0.3])


@pytest.fixture(scope="module")
def reference():
    f = lambda t, x: [x[1], -np.sin(x[0]) + 0.1 * np.cos(t)]
    found = solve_ivp(
        f, (START, END), X0, method="DOP853", rtol=1e-13, atol=1e-15, max_step=0.02,
        dense_output=True,
    )  # fmt: skip
    return found.sol


def slope(errors):
    return np.log2(errors[0] / errors[1])


@pytest.mark.parametrize("name", NAMES)
def test_order_of_convergence(name, reference):
    counts = STEPS.get(name, (40, 80))
    ends, inside = [], []
    for count in counts:
        traj = solve_ode(pendulum, (START, END), X0, method=name, dt=(END - START) / count)
        assert len(traj.t) == count + 1
        ends.append(np.abs(traj.x[-1] - reference(END)).max())
        times = np.concatenate([traj.t[:-1] + part * END / count for part in (0.25, 0.4, 0.8)])
        inside.append(np.abs(traj(times) - reference(times).T).max())
    order = find_method(name).order
    assert order - 0.3 < slope(ends) < order + 1.2
    # The interpolant has the order of the solution, but for DOP853 one less (7 instead of 8).
    assert slope(inside) > min(order, find_method(name).dense_order + 1) - 0.3


@pytest.mark.parametrize("name", [n for n in NAMES if find_method(n).error_order is not None])
def test_order_of_the_error_estimate(name):
    method = find_method(name)
    f = lambda t, x: np.array([x[1], -np.sin(x[0]) + 0.1 * np.cos(t)])
    sizes = (0.4, 0.2) if name == "dop853" else (0.05, 0.025)
    norms = []
    for h in sizes:
        step = method.step(f, 0.0, X0, h, method.start(f, 0.0, X0))
        norms.append(float(method.norm(step.error, np.ones(2))))
    assert abs(slope(norms) - (method.error_order + 1)) < 0.4


@pytest.mark.parametrize("tableau", TABLEAUS, ids=lambda t: t.name)
def test_tableau_is_consistent(tableau):
    assert len(tableau.nodes) == len(tableau.stages)
    for node, row in zip(tableau.nodes, tableau.stages):
        assert abs(sum(row.values()) - node) < 1e-13
    for row in tableau.errors:
        assert abs(sum(row.values())) < 1e-13
    # At theta = 1 the interpolant is the step, for every stage by itself.
    stages = set().union(*tableau.dense, tableau.stages[-1])
    for stage in stages:
        total = sum(row.get(stage, 0.0) for row in tableau.dense)
        assert abs(total - tableau.stages[-1].get(stage, 0.0)) < 1e-11


@pytest.mark.parametrize(
    ("name", "theirs"), [("bs3", "RK23"), ("dopri5", "RK45"), ("dop853", "DOP853")]
)
def test_coefficients_are_those_of_scipy(name, theirs):
    import scipy.integrate as integrate

    tableau = next(t for t in TABLEAUS if t.name == name)
    cls = getattr(integrate, theirs)
    for i, row in enumerate(tableau.stages[: len(cls.C)]):
        for j in range(i):
            assert abs(row.get(j, 0.0) - cls.A[i][j]) < 1e-14


@pytest.mark.long
def test_tsit5_against_diffrax():
    tsit5 = import_or_skip("diffrax").Tsit5
    import warnings

    tableau = next(t for t in TABLEAUS if t.name == "tsit5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = tsit5.tableau
    for row, values in zip(tableau.stages[1:], theirs.a_lower):
        assert np.allclose([row.get(k, 0.0) for k in range(len(values))], values, atol=1e-14)
    error = [tableau.errors[0].get(k, 0.0) for k in range(7)]
    assert np.allclose(np.abs(error), np.abs(theirs.b_error), atol=1e-13)


def test_horner_against_polyval():
    rng = np.random.default_rng(1)
    c, theta = rng.standard_normal((7, 3)), 0.37
    expected = [np.polyval([*c[::-1, k], 0.0], theta) for k in range(3)]
    assert np.allclose(evaluate_dense(c, theta), expected, rtol=1e-14)


def test_unknown_method_lists_the_known():
    with pytest.raises(ValueError, match=r"'rk5' is unknown: write one of .*dop853.*tsit5"):
        solve_ode(pendulum, (0.0, 1.0), X0, method="rk5")
