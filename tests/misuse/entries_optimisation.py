"""Minima in recorded code, and functions that solvers cannot use."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry


def bowl(x, k):
    return np.sum((x - k) ** 4) + np.sum(x**2)


SMALL = arc.nlp_solver(bowl, method="sqp")
WHOLE = arc.nlp_solver(bowl, method="sqp", constr=lambda x, k: np.sum(x) - 1.0)


@entry("optimisation")
def a_solver_called_with_its_parameters(run):
    return run(lambda k: SMALL(np.zeros(2), k).round(6))(1.0)


@entry("optimisation")
def a_solver_with_constraints_and_bounds(run):
    return run(lambda k: WHOLE(np.zeros(2), k, bounds=(-1.0, 2.0)).round(6))(1.5)


@entry("optimisation", error=TraceError, says=["pass them to the solver as arguments"], line=False)
def a_parameter_in_a_closure(run):
    def best(k):
        return arc.nlp_solver(lambda x: np.sum((x - k) ** 2), method="sqp")(np.zeros(2)).round(6)

    return run(best)(1.0)


@entry("optimisation", error=TraceError, says=["arc.nlp_solver(f)"], line=False)
def a_result_object_in_recorded_code(run):
    def best(k):
        return arc.minimize(bowl, np.zeros(2), (k,), method="sqp").x.round(6)

    return run(best)(1.0)


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["no number"], line=False)
def crossed_bounds(run):
    return run(lambda k: SMALL(np.zeros(2), k, bounds=(1.0, 0.0)))(1.0)


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["one number"], line=False)
def an_objective_of_two_numbers(run):
    solver = arc.nlp_solver(lambda x, k: x - k, method="sqp")
    return run(lambda k: solver(np.zeros(2), k))(1.0)


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["no numbers"], line=False)
def a_constraint_that_returns_nothing(run):
    solver = arc.nlp_solver(bowl, lambda x, k: None, method="sqp")
    return run(lambda k: solver(np.zeros(2), k))(1.0)


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["no residuals"], line=False)
def residuals_that_are_not_returned(run):
    return arc.optimize.least_squares(lambda x: None, np.ones(2))


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["no A"], line=False)
def limits_of_rows_without_rows(run):
    return run(lambda q: arc.optimize.solve_qp(np.eye(2), q, low=0.0).x)(np.ones(2))


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["not linear"], line=False)
def a_quadratic_program_with_a_product_in_its_constraint(run):
    return arc.qpsol(lambda x: np.sum(x**2), lambda x: x[0] * x[1], np.zeros(2))


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["what x0 is"], line=False)
def a_fixed_point_of_another_shape(run):
    return run(lambda k: arc.optimize.fixed_point(lambda x: np.sum(x) * k, np.ones(2)))(0.1)


@entry("optimisation", error=ValueError, eager_error=ValueError, says=["lower limit"], line=False)
def a_root_between_crossed_bounds(run):
    return run(lambda k: arc.root(lambda x: x - k, 1.0, bounds=(2.0, 0.0)))(1.0)
