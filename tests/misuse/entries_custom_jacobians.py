"""Functions with their own Jacobians: wrong shapes, structs, values from outside."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0])


def refused(says):
    """Return the entry of a mistake in a rule, which is one eagerly, too."""
    errors = {"error": TraceError, "eager_error": TraceError}
    return entry("own Jacobians", **errors, says=says, line=False)


def squares(rule):
    f = arc.custom_jac(lambda x: x**2)
    f.defjac(rule)
    return f


@entry("own Jacobians")
def a_function_called_without_derivatives(run):
    return run(lambda x: squares(lambda x: (np.diag(2.0 * x),))(x) + x)(X)


@entry(
    "own Jacobians", error=TraceError, eager_error=TraceError, says=["(3, 3) is needed"], line=False
)
def a_vector_for_a_matrix(run):
    return run(lambda x: arc.jac(squares(lambda x: (2.0 * x,)))(x))(X)


@entry(
    "own Jacobians",
    error=TraceError,
    eager_error=TraceError,
    says=["must return a tuple of 1"],
    line=False,
)
def a_matrix_for_a_tuple(run):
    return run(lambda x: arc.jac(squares(lambda x: np.diag(2.0 * x)))(x))(X)
