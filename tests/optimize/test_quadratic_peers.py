"""Quadratic programs by packages of others, against our own solver."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.optimize import Status, qpsol
from tests.optional_packages import import_or_skip

RNG = np.random.default_rng(4)
M = RNG.normal(size=(4, 4))
P, Q, A = M @ M.T + np.eye(4), RNG.normal(size=4), RNG.normal(size=(3, 4))


def cost(x):
    return 0.5 * x["a"] @ (P @ x["a"]) + Q @ x["a"]


def rows(x):
    return {"one": A[:2] @ x["a"], "two": A[2] @ x["a"]}


LIMITS = {
    "lba": {"one": -0.1, "two": 0.2},
    "uba": {"one": np.array([0.1, np.inf]), "two": 0.2},
    "bounds": ({"a": np.array([-0.2, -np.inf, -1, -1])}, {"a": 0.3}),
}


@pytest.mark.parametrize("solver", ["osqp", "clarabel", "piqp"])
def test_the_solution_is_ours(solver):
    import_or_skip(solver)
    start = {"a": np.zeros(4)}
    own = qpsol(cost, rows, start, **LIMITS)
    found = qpsol(cost, rows, start, **LIMITS, solver=solver)
    assert found.status == Status.SOLVED
    np.testing.assert_allclose(found.x["a"], own.x["a"], atol=1e-6)
    np.testing.assert_allclose(found.lam_x["a"], own.lam_x["a"], atol=1e-5)
    np.testing.assert_allclose(found.lam_a["one"], own.lam_a["one"], atol=1e-5)
    assert found.fun == pytest.approx(own.fun, abs=1e-7)
    plain = qpsol(cost, None, start, bounds=LIMITS["bounds"], solver=solver)
    assert plain.fun == pytest.approx(qpsol(cost, None, start, bounds=LIMITS["bounds"]).fun)
    none = qpsol(lambda x: x**2, lambda x: np.stack([x, x]), 0.0, [1, -2], [2, -1], solver=solver)
    assert none.status == Status.INFEASIBLE


def test_errors_name_the_remedy(monkeypatch):
    with pytest.raises(ValueError, match="solver='gurobi' is not one of"):
        qpsol(lambda x: x**2, None, 0.0, solver="gurobi")
    with pytest.raises(TraceError, match="leave solver= out"):
        arc.compile(lambda p: qpsol(lambda x: (x - p) ** 2, None, 0.0, solver="osqp").x)(1.0)
    monkeypatch.setitem(sys.modules, "osqp", None)
    with pytest.raises(ImportError, match=r"pip install .*\[quadratic\]"):
        qpsol(lambda x: x**2, None, 0.0, solver="osqp")
