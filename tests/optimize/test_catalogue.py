"""Published problems with known minima, by every method: no method may claim what is not so."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.optimize import nlp_solver
from archimedes.optimize.solvers.solver_table import SOLVERS
from tests.long_parameters import long_but
from tests.optimize.catalogue import PROBLEMS

#: One of each kind (bounds, a square system, equations, inequalities, a sum of squares), and those
#: at which a method claimed a minimum that is none.
QUICK = (
    "HS5",
    "HS8",
    "HS14",
    "HS71",
    "beale",
    "MAKELA2",
    "DEMYMALO",
    "PALMER4",
    "ANTWERP",
    "CLIFF",
)
#: COBYQA and trust-constr take seconds for problems of more unknowns than this.
SMALL = 6


def solve(problem, method, solver=None):
    """Solve a problem; None where the method does not take bounds or constraints."""
    arguments = problem.arguments()
    solver = solver or nlp_solver(problem.obj, arguments.get("constr"))
    solver.method = method
    try:
        limits = {"bounds": problem.bounds, "constr_bounds": arguments.get("constr_bounds")}
        return solver.solve(problem.x0, **limits)
    except ValueError as refused:
        assert "takes no" in str(refused)
        return None


def is_true(problem, result):
    """Return whether a claim of success is true."""
    size = max(1.0, np.abs(result.x).max())
    return problem.is_minimum(result.fun) and result.violation <= 1e-6 * size


def test_there_are_enough():
    assert len(PROBLEMS) >= 160


#: IPOPT itself does not end on this one.
HARD_FOR_IPOPT = ("POLAK3",)
#: Here the line search of `ipm` fails for good, and IPOPT goes on where it is installed.
HANDED_OVER = ("ANTWERP", "HS101", "PALMER1", "PALMER4")


@pytest.mark.parametrize("name", long_but(QUICK, PROBLEMS))
@pytest.mark.parametrize("method", ["ipopt", "ipm"])
def test_interior_points_find_the_minimum(method, name, request):
    """So `ipm` solves at least as many as IPOPT: all of them, four of them with its help."""
    if method == "ipm":
        request.getfixturevalue("ipopt" if name in HANDED_OVER else "without_ipopt")
    if method == "ipopt" and name in HARD_FOR_IPOPT:
        pytest.skip("a limit of IPOPT's")
    problem = PROBLEMS[name]
    found = solve(problem, method)
    assert found.success, found.message
    assert is_true(problem, found), found


@pytest.mark.parametrize("name", long_but(QUICK, PROBLEMS))
@pytest.mark.parametrize("method", ["SLSQP", "sqp"])
def test_no_false_claim(method, name):
    """`sqp` ended MAKELA2 at 8.245, SLSQP DEMYMALO at 0."""
    problem = PROBLEMS[name]
    found = solve(problem, method)
    assert not found.success or is_true(problem, found), found


@pytest.mark.long
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_false_claim_by_any_method(name):
    problem = PROBLEMS[name]
    solver = nlp_solver(problem.obj, problem.arguments().get("constr"))
    for method in SOLVERS.values():
        if method.name in ("COBYQA", "trust-constr") and problem.x0.size > SMALL:
            continue
        found = solve(problem, method.name, solver)
        assert found is None or not found.success or is_true(problem, found), (method.name, found)
