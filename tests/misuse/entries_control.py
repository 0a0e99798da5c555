"""Regulators and blocks in recorded code, and what they cannot take."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.control import (
    PID,
    Allocator,
    GainSchedule,
    LeadLag,
    LinearMPC,
    Mixer,
    StateSpace,
    discretize_linear,
    dlqr,
    frequency_response,
    linearize,
    lqr,
    margins,
    modes,
    solve_lyap,
    trim,
)
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


@entry("control", error=ValueError, eager_error=ValueError, says=["Q must be positive"], line=False)
def a_weight_below_zero(run):
    return run(lambda A: lqr(A, B, np.diag([1.0, -1.0]), ONE)[0])(A)


@entry("control", error=ValueError, eager_error=ValueError, says=["not one of 'zoh'"], line=False)
def a_method_that_there_is_not(run):
    return run(lambda A: discretize_linear(A, B, EYE, np.zeros((2, 1)), 0.1, "bilinear"))(A)


def swing(t, x, u):
    return np.stack([x[1], u[0] - np.sin(x[0])])


@entry("control")
def a_linear_system_about_a_traced_point(run):
    return run(lambda x: linearize(swing, x, np.zeros(1)).A)(np.array([0.3, 0.1]))


@entry("control", rtol=1e-9)
def a_frequency_response_of_traced_matrices(run):
    def size(A):
        return frequency_response(StateSpace(A, B, B.T, ONE), [0.5, 2.0]).magnitude

    return run(size)(-A)


@entry("control", rtol=1e-9)
def a_gain_table_made_inside(run):
    return run(lambda k, v: GainSchedule(([0.0, 1.0],), np.stack([k, 2 * k])).at(v))(EYE, 0.3)


@entry("control", rtol=1e-6)
def an_allocation_with_traced_limits(run):
    def commands(upper):
        block = Allocator(EYE + 0.1, lower=-1.0, upper=upper, ease=0.1)
        return block.step(block.start(), np.array([2.0, 0.2]))[1]

    return run(commands)(0.5)


@entry("control", error=TypeError, says=["trim runs on numbers", "arc.root"], line=False)
def a_trim_of_a_traced_state(run):
    return run(lambda x: trim(swing, x, np.zeros(1)).x)(np.array([0.1, 0.0]))


@entry("control", error=TypeError, says=["modes runs on numbers", "poles()"], line=False)
def modes_of_a_traced_matrix(run):
    return run(lambda A: np.array([m.frequency for m in modes(A)]))(A)


@entry("control", error=TypeError, says=["margins runs on numbers"], line=False)
def margins_of_a_traced_loop(run):
    return run(lambda A: margins(StateSpace(A, B, B.T, ONE)).phase)(-A)


@entry("control", error=ValueError, eager_error=ValueError, says=["input must be"], line=False)
def a_demand_of_another_size(run):
    return run(lambda v: Mixer(EYE).step(None, v)[1])(np.ones(3))


@entry(
    "control", error=ValueError, eager_error=ValueError, says=["Q must be symmetric"], line=False
)
def a_lyapunov_equation_of_a_matrix_that_is_not_symmetric(run):
    return run(lambda A: solve_lyap(A, np.array([[1.0, 1.0], [0.0, 1.0]])))(-A)


@entry("control", rtol=1e-6)
def a_predictive_step_with_traced_limits(run):
    def first(limit):
        mpc = LinearMPC(A, B, EYE, ONE, horizon=2, lower=-limit, upper=limit)
        return mpc.step(mpc.start(), np.array([1.0, 0.5]))[1]

    return run(first)(0.2)


@entry("control", error=ValueError, eager_error=ValueError, says=["x must be"], line=False)
def a_predictive_step_from_a_state_of_another_size(run):
    mpc = LinearMPC(A, B, EYE, ONE, horizon=2)
    return run(lambda x: mpc.step(mpc.start(), x)[1])(np.ones(3))
