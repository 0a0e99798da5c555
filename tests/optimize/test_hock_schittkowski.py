"""Published optima: the Hock-Schittkowski collection."""

from __future__ import annotations

import pytest

from archimedes.optimize import minimize
from tests.marking import long_but
from tests.optimize.hock_schittkowski import PROBLEMS

#: One of each kind: bounds, a square system, equations and inequalities, all together.
QUICK = (5, 8, 14, 71)


def test_there_are_enough():
    assert len(PROBLEMS) >= 60


@pytest.mark.parametrize("number", long_but(QUICK, PROBLEMS))
def test_published_optimum(number):
    problem = PROBLEMS[number]
    found = minimize(problem.obj, problem.x0, **problem.arguments())
    assert found.success, found.message
    assert found.violation < 1e-6
    assert found.fun == pytest.approx(problem.best, rel=2e-6, abs=2e-6)
