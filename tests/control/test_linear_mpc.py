"""Linear predictive control: the regulator it contains, another solver, closed loops, boards."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import LinearMPC, dlqr
from archimedes.embedded import run_in_qemu
from archimedes.embedded.boards import BOARDS
from tests.embedded.toolchain import needs
from tests.optional_packages import import_or_skip

DT = 0.1
A, B = np.array([[1.0, DT], [0.0, 1.0]]), np.array([[DT**2 / 2], [DT]])
Q, R = np.diag([1.0, 0.1]), np.array([[0.05]])
FREE = LinearMPC(A, B, Q, R, horizon=10)
LIMITED = LinearMPC(
    A, B, Q, R, horizon=12, lower=-1.0, upper=1.0, x_lower=[-np.inf, -0.8], x_upper=[np.inf, 0.8]
)
SMOOTH = LinearMPC(A, B, Q, R, horizon=8, lower=-1.0, upper=1.0, change=0.3)
SOFT = LIMITED.replace(soft=100.0)


def test_without_limits_it_is_the_regulator():
    K, _ = dlqr(A, B, Q, R)
    for x in np.random.default_rng(0).normal(size=(5, 2)):
        _, u = FREE.step(FREE.start(), x)
        np.testing.assert_allclose(u, -K @ x, atol=1e-9)
        _, u = FREE.step(FREE.start(), (x, np.array([0.5, 0.0])))
        np.testing.assert_allclose(u, -K @ (x - [0.5, 0.0]), atol=1e-9)


def sparse_solution(mpc, x, last):
    """The same problem with states and inputs as unknowns, by another solver."""
    piqp = import_or_skip("piqp")
    n, m, N = 2, 1, mpc.horizon
    P = np.zeros((N * (n + m),) * 2)
    for k in range(N):
        P[k * m : (k + 1) * m, k * m : (k + 1) * m] = mpc.R
        place = N * m + k * n
        P[place : place + n, place : place + n] = mpc.Q if k < N - 1 else mpc.P
    E, e = np.zeros((N * n, len(P))), np.zeros(N * n)
    for k in range(N):
        rows = slice(k * n, (k + 1) * n)
        E[rows, N * m + k * n : N * m + (k + 1) * n] = -np.eye(n)
        E[rows, k * m : (k + 1) * m] = mpc.B
        if k:
            E[rows, N * m + (k - 1) * n : N * m + k * n] = mpc.A
    e[:n] = -mpc.A @ x
    D = np.eye(N, len(P)) - np.eye(N, len(P), k=-1) * (np.arange(len(P)) < N)
    change = np.full(N, float(np.max(mpc.change)))
    first = np.append(last, np.zeros(N - 1))
    big = 1e30  # its infinity
    limits = [
        np.concatenate([np.full(N, u), np.tile(v + np.zeros(n), N)]).clip(-big, big)
        for u, v in ((mpc.lower, mpc.x_lower), (mpc.upper, mpc.x_upper))
    ]
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.max_iter = 1000
    rows = (D, (first - change).clip(-big, big), (first + change).clip(-big, big))
    solver.setup(P, np.zeros(len(P)), E, e, *rows, *limits)
    assert solver.solve() == piqp.PIQP_SOLVED
    return solver.result.x[:N]


@pytest.mark.long
@pytest.mark.parametrize("mpc", [LIMITED, SMOOTH], ids=["states", "changes"])
def test_plans_against_another_solver(mpc):
    for x in ([2.0, 0.0], [-1.0, 0.5], [0.1, 0.0]):
        state, _ = mpc.step(mpc.start(0.2), np.array(x))
        assert state.status == 0
        wanted = sparse_solution(mpc, np.array(x), 0.2)
        np.testing.assert_allclose(state.plan[:, 0], wanted, atol=2e-6)


def closed_loop(mpc, x0, steps=60):
    def sample(carry, _):
        x, state = carry
        state, u = mpc.step(state, x)
        return (A @ x + B @ u, state), (x, u, state.status, state.iterations)

    return arc.scan(sample, (x0, mpc.start()), length=steps)[1]


@pytest.mark.long
def test_limits_hold_and_plans_are_resumed():
    run = arc.compile(lambda x0: closed_loop(LIMITED.replace(horizon=8), x0))
    x, u, status, warm = run(np.array([2.0, 0.0]))
    assert np.all(status == 0)
    assert np.abs(u).max() <= 1.0 and np.abs(x[:, 1]).max() <= 0.8 + 1e-7
    assert np.abs(x[-1]).max() < 1e-2
    cold = arc.compile(lambda x0: closed_loop(LIMITED.replace(horizon=8, warm_start=False), x0))
    x_cold, _, _, iterations = cold(np.array([2.0, 0.0]))
    np.testing.assert_allclose(x, x_cold, atol=1e-5)
    # Seen: 4.4 against 8.4 in the mean.
    assert warm[1:].mean() < 0.7 * iterations[1:].mean()
    assert warm[1:].max() <= iterations[1:].max()


@pytest.mark.long
def test_limits_that_cannot_hold():
    """At three times the speed limit: a hard limit has no plan, a soft one brakes."""
    state, u = LIMITED.step(LIMITED.start(0.25), np.array([0.0, 3.0]))
    assert state.status != 0 and u == 0.25
    state, u = SOFT.step(SOFT.start(), np.array([0.0, 3.0]))
    assert state.status == 0 and u[0] == pytest.approx(-1.0, abs=1e-6)
    x, *_ = closed_loop(SOFT.replace(horizon=6), np.array([2.0, 0.0]), 30)
    hard, *_ = closed_loop(LIMITED.replace(horizon=6), np.array([2.0, 0.0]), 30)
    np.testing.assert_allclose(x, hard, atol=1e-4)  # an exact penalty: the same where it can


@pytest.mark.long
@pytest.mark.parametrize("mpc", [SMOOTH, SOFT], ids=["changes", "soft"])
def test_the_same_bits_and_derivatives(mpc):
    x = np.array([0.7, -0.3])
    mpc = mpc.replace(horizon=4)
    state = mpc.start()
    fast, slow = (arc.compile(mpc.step, backend=b)(state, x) for b in ("llvm", "interpreter"))
    for a, b in zip(arc.tree.leaves(fast), arc.tree.leaves(slow)):
        np.testing.assert_array_equal(a, b)
    many = arc.vmap(mpc.step, in_axes=(None, 0))(state, np.stack([x, 0.5 * x]))
    np.testing.assert_array_equal(many[1][0], fast[1])

    def first(x):
        return mpc.step(state, x)[1]

    slope = arc.jac(first)(x)
    wanted = [(first(x + h) - first(x - h)) / 2e-4 for h in 1e-4 * np.eye(2)]
    np.testing.assert_allclose(slope, np.stack(wanted, axis=1), atol=1e-3)


SMALL = LinearMPC(
    A, B, Q, R, horizon=6, lower=-1.0, upper=1.0, x_lower=[-np.inf, -0.5], x_upper=[np.inf, 0.5]
)


def flight_computer(plan, lam_a, lam_x, u, x):
    """A step with the numbers of its state one by one, as a program on a board carries them."""
    start = SMALL.start()
    state, u = SMALL.step(start.replace(plan=plan, lam_a=lam_a, lam_x=lam_x, u=u), x)
    return state.plan, state.lam_a, state.lam_x, u, state.status


@pytest.mark.long
@needs(*BOARDS["cortex-m4"].programs)
@pytest.mark.parametrize("board", ["cortex-m4", "cortex-m7"])
def test_a_step_on_a_board(board):
    """A receding horizon on an emulated Cortex-M: the bits of this machine."""
    host = arc.compile(flight_computer, backend="interpreter")
    state, x, inputs = SMALL.start(), np.array([1.0, -0.2]), []
    parts = (state.plan, state.lam_a, state.lam_x, state.u)
    for _ in range(4):
        inputs.append((*parts, x))
        *parts, status = host(*inputs[-1])
        assert status == 0
        x = A @ x + B @ parts[-1]
    run = run_in_qemu(flight_computer, inputs, board=board)
    for got, arguments in zip(run, inputs):
        for a, b in zip(arc.tree.leaves(got), arc.tree.leaves(host(*arguments))):
            np.testing.assert_array_equal(a, b)
    # Seen: 1.18 million for the first step, 0.87 million for those that resume a plan on the M4,
    # whose doubles are software; 104 and 75 thousand on the M7.
    most = {"cortex-m4": 1_500_000, "cortex-m7": 150_000}[board]
    assert max(run.instructions[1:]) < run.instructions[0] < most


MESSAGES = [
    (lambda: LinearMPC(A, B, Q, R, horizon=0), "horizon must be a whole number of at least 1"),
    (lambda: LinearMPC(A, B, -Q, R, horizon=3), "Q must be positive semidefinite"),
    (lambda: LinearMPC(A, B, Q, 0 * R, horizon=3), "R must be positive definite"),
    (lambda: LinearMPC(A, B, Q, R, horizon=3, lower=1.0, upper=0.0), "lower and upper:"),
    (lambda: LinearMPC(A, B, Q, R, horizon=3, x_lower=[0.0]), r"x_lower must be a number or a vec"),
    (lambda: LinearMPC(A, B, Q, R, horizon=3, soft=0.0), "soft must be positive"),
    (lambda: FREE.step(FREE.start(), np.zeros(3)), r"x must be a vector of shape \(2,\)"),
    (lambda: FREE.step(FREE.start(), ()), r"input must be x, or a tuple"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
