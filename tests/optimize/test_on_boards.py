"""Small programs on an emulated Cortex-M give the bits of this machine."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import LinearMPC
from archimedes.embedded import run_in_qemu
from archimedes.embedded.boards import BOARDS
from archimedes.optimize import solve_qp
from tests.embedded.toolchain import needs
from tests.optimize.test_quadratic import V, allocation
from tests.optimize.test_sequential_quadratic import TARGETS, arm

STEP, HORIZON = 0.2, 6


def receding_horizon(x):
    """A step of linear model-predictive control: a double integrator, |u| <= 1, |speed| <= 0.5."""
    A, B = np.array([[1.0, STEP], [0.0, 1.0]]), np.array([STEP**2 / 2, STEP])
    powers = [np.linalg.matrix_power(A, k) for k in range(HORIZON + 1)]
    free = np.concatenate(powers[1:])
    forced = np.zeros((2 * HORIZON, HORIZON))
    for k in range(HORIZON):
        for j in range(k + 1):
            forced[2 * k : 2 * k + 2, j] = powers[k - j] @ B
    P = 2.0 * (forced.T @ forced + 0.1 * np.eye(HORIZON))
    q = 2.0 * forced.T @ (free @ x)
    speed = (free @ x)[1::2]
    found = solve_qp(P, q, forced[1::2], -0.5 - speed, 0.5 - speed, -1.0, 1.0, max_iter=20)
    return found.x[0], found.status


def effectors(v):
    return allocation(v).x


CASES = {
    "allocation": (effectors, [(v,) for v in V[:4]]),
    "inverse kinematics": (arm, [(t,) for t in TARGETS[:2]]),
    "receding horizon": (receding_horizon, [(np.array([1.0, -0.2 * k]),) for k in range(3)]),
}


@pytest.mark.long
@needs(*BOARDS["cortex-m4"].programs)
@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_this_machine(name):
    function, inputs = CASES[name]
    run = run_in_qemu(function, inputs, board="cortex-m4")
    host = arc.compile(function, backend="interpreter")
    for got, arguments in zip(run, inputs):
        for a, b in zip(arc.tree.leaves(got), arc.tree.leaves(host(*arguments))):
            np.testing.assert_array_equal(a, b)
    # Seen: 1.7 million for the receding horizon, doubles being software on this processor.
    assert 0 < max(run.instructions) < 20_000_000


def equations(v):
    rows = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 0.0, 0.0]])
    found = solve_qp(np.eye(4), np.zeros(4), rows, v, v, -2.0, 2.0, tol=1e-4)
    return found.x, found.status


def steered(x):
    A, B = np.array([[1.0, STEP], [0.0, 1.0]]), np.array([[STEP**2 / 2], [STEP]])
    slow = {"x_lower": np.array([-9.0, -0.5]), "x_upper": np.array([9.0, 0.5])}
    mpc = LinearMPC(A, B, np.eye(2), 0.1 * np.eye(1), horizon=HORIZON, tol=1e-4, **slow)
    state, u = mpc.step(mpc.start(), x)
    return u, state.status


@pytest.mark.long
@needs(*BOARDS["cortex-m4"].programs)
@pytest.mark.parametrize("function", [equations, steered])
def test_single_precision_is_enough_for_its_tolerance(function):
    """Doubles are software there; in float a predictive step takes a sixteenth of the work."""
    inputs = [(np.array([1.0, -0.2 * k]),) for k in range(3)]
    run = run_in_qemu(function, inputs, board="cortex-m4", float_type=np.float32)
    for (x, status), arguments in zip(run, inputs):
        assert status == 0
        np.testing.assert_allclose(x, function(*arguments)[0], atol=1e-4)
    # Seen: 105,000 for the predictive step.
    assert max(run.instructions) < 1_000_000
