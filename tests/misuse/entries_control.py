"""Regulators and blocks in recorded code, and what they cannot take."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.control import PID, LeadLag, discretize_linear, dlqr, lqr
from tests.misuse.catalogue import entry

A, B, EYE, ONE = np.array([[1.0, 0.1], [0.2, 0.9]]), np.array([[0.0], [0.1]]), np.eye(2), np.eye(1)
ERRORS = np.array([0.5, -0.2, 0.1])


@entry("control", rtol=1e-9)
def a_regulator_of_a_matrix_that_is_traced(run):
    return run(lambda A: dlqr(A, B, EYE, ONE))(A)


@entry("control")
def a_block_made_inside_with_traced_gains(run):
    def outputs(kp, errors):
        pid = PID(kp, 1.0, dt=0.1, upper=0.4)
        return arc.scan(pid.step, pid.start(), errors)[1]

    return run(outputs)(2.0, ERRORS)


@entry("control")
def a_block_with_whole_numbers(run):
    block = LeadLag(lead=1, lag=2, dt=1)
    return run(lambda u: block.step(block.start(), u)[1])(3)


@entry("control", error=ValueError, eager_error=ValueError, says=["B must be"], line=False)
def an_input_matrix_of_another_size(run):
    return run(lambda A: lqr(A, np.ones((3, 1)), EYE, ONE)[0])(A)


@entry("control", error=ValueError, eager_error=ValueError, says=["R must be"], line=False)
def a_weight_that_is_zero(run):
    return run(lambda A: lqr(A, B, EYE, 0 * ONE)[0])(A)


@entry("control", error=ValueError, eager_error=ValueError, says=["method must be"], line=False)
def a_method_that_there_is_not(run):
    return run(lambda A: discretize_linear(A, B, EYE, np.zeros((2, 1)), 0.1, "bilinear"))(A)
