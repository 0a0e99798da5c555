"""Real-time iterations: they converge to the solution of the problem, and control on the way."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import NonlinearMPC
from archimedes.optimize import OptimalControl


@arc.struct
class Swing:
    angle: float
    rate: float


def pendulum(t, x, u):
    return Swing(x.rate, u["torque"] + 2.0 * np.sin(x.angle))


def problem(**more):
    return OptimalControl(
        pendulum,
        running_cost=lambda t, x, u: 2.0 * x.angle**2 + 0.2 * x.rate**2 + 0.1 * u["torque"] ** 2,
        terminal_cost=lambda t0, x0, tf, xf: 5.0 * xf.angle**2 + xf.rate**2,
        tf=1.6,
        control_bounds=({"torque": -3.0}, {"torque": 3.0}),
        **more,
    )


PROBLEMS = {
    "bounds": problem(),
    "paths and ends": problem(
        state_bounds=(Swing(-np.inf, -0.9), Swing(np.inf, 0.9)),
        path=lambda t, x, u: x.rate * 1.0 + 0.1 * u["torque"],
        path_bounds=(-0.8, 0.8),
        final=Swing(0.1, None),
        boundary=lambda t0, x0, tf, xf: xf.angle + xf.rate,
        boundary_bounds=(-0.5, 0.05),
    ),
    "states": problem(state_bounds=(Swing(-np.inf, -0.9), Swing(np.inf, 0.9))),
}
X0 = Swing(0.8, 0.0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bounds", "paths and ends"])
def test_iterations_converge_to_the_solution(name):
    """Against IPOPT on the same description by multiple shooting."""
    given = PROBLEMS[name]
    mpc = NonlinearMPC(given, Swing(0.0, 0.0), {"torque": 0.0}, intervals=8, moving=False)
    step = arc.compile(mpc.step)
    state = mpc.start(X0)
    for _ in range(25):
        state, u = step(state, X0)
    assert state.status == 0 and state.change < 1e-7
    fixed = OptimalControl(**{**vars_of(given), "initial": X0})
    guess = {"x": X0, "u": {"torque": 0.0}}
    wanted = fixed.solve(guess, intervals=8, scheme="multiple-shooting", options={"tol": 1e-10})
    assert wanted.success, wanted.message
    _, plan, controls = mpc.plan(state)
    np.testing.assert_allclose(controls["torque"], wanted.u["torque"][:-1], atol=2e-5)
    np.testing.assert_allclose(plan.angle, wanted.x.angle, atol=1e-5)
    assert u["torque"] == controls["torque"][0]


def vars_of(given):
    return {name: getattr(given, name) for name in given.__dataclass_fields__}


def fly(mpc, x0, steps):
    """The plant is the model, by fine Runge-Kutta steps; noise-free."""
    plant = arc.discretize(
        lambda t, x, u: pendulum(t, x, {"torque": u}), dt=mpc.dt, method="rk4", n_steps=5
    )

    def sample(carry, _):
        x, state = carry
        state, u = mpc.step(state, x)
        return (plant(0.0, x, u["torque"]), state), (x, u["torque"], state.status)

    return arc.scan(sample, (x0, mpc.start(x0)), length=steps)[1]


@pytest.mark.long
def test_control_on_the_way():
    """One iteration per step balances the pendulum, within limits."""
    mpc = NonlinearMPC(PROBLEMS["states"], Swing(0.0, 0.0), {"torque": 0.0}, intervals=8)
    x, u, status = arc.compile(lambda x0: fly(mpc, x0, 30))(X0)
    assert np.all(status == 0)
    assert np.abs(u).max() <= 3.0 + 1e-9 and np.abs(x.rate).max() < 0.95
    assert abs(x.angle[-1]) < 0.01 and abs(x.rate[-1]) < 0.01
    starts = Swing(np.array([0.8, -0.4]), np.array([0.0, 0.2]))
    many, *_ = arc.vmap(lambda x0: fly(mpc, x0, 6))(starts)
    np.testing.assert_array_equal(many.angle[0], x.angle[:6])


@pytest.mark.long
def test_many_intervals():
    """More unknowns than are factored in straight lines; a cost that is not convex everywhere."""
    bumpy = OptimalControl(
        pendulum,
        running_cost=lambda t, x, u: 1.0 - np.cos(x.angle) + 0.1 * u["torque"] ** 2,
        tf=2.0,
        control_bounds=({"torque": -3.0}, {"torque": 3.0}),
    )
    mpc = NonlinearMPC(bumpy, Swing(0.0, 0.0), {"torque": 0.0}, intervals=20, moving=False)
    step, state = arc.compile(mpc.step), mpc.start(Swing(2.0, 0.0))
    for _ in range(30):
        state, _ = step(state, Swing(2.0, 0.0))
    fixed = OptimalControl(**{**vars_of(bumpy), "initial": Swing(2.0, 0.0)})
    _, x, u = mpc.plan(state)
    s = np.linspace(0.0, 1.0, 21)
    # There are two ways to the top: the same one is compared.
    guess = {
        "x": lambda at: Swing(np.interp(at, s, x.angle), np.interp(at, s, x.rate)),
        "u": lambda at: {"torque": np.interp(at, s[:-1], u["torque"])},
    }
    wanted = fixed.solve(guess, intervals=20, scheme="multiple-shooting", options={"tol": 1e-10})
    assert state.status == 0 and state.change < 1e-5
    np.testing.assert_allclose(u["torque"], wanted.u["torque"][:-1], atol=1e-4)


@pytest.mark.long
def test_times_and_arguments():
    """A reference that moves with time, and a load that is given at each step."""
    tracking = OptimalControl(
        lambda t, x, u, load: u + load,
        running_cost=lambda t, x, u, load: 10.0 * (x - np.sin(t)) ** 2 + 1e-3 * u**2,
        tf=0.5,
    )
    mpc = NonlinearMPC(tracking, 0.0, 0.0, intervals=10)
    state, x = mpc.start(0.0), 0.0
    step = arc.compile(mpc.step)
    for k in range(60):
        state, u = step(state, x, (0.7,))
        assert state.t == pytest.approx(k * mpc.dt)
        x = x + mpc.dt * (u + 0.7)
    assert abs(x - np.sin(60 * mpc.dt)) < 0.02


@pytest.mark.long
def test_the_same_bits_and_c(tmp_path):
    mpc = NonlinearMPC(PROBLEMS["bounds"], Swing(0.0, 0.0), {"torque": 0.0}, intervals=4)
    state = mpc.start(X0)
    fast, slow = (arc.compile(mpc.step, backend=b)(state, X0) for b in ("llvm", "interpreter"))
    for a, b in zip(arc.tree.leaves(fast), arc.tree.leaves(slow)):
        np.testing.assert_array_equal(a, b)

    def torque(angle):
        return mpc.step(state, Swing(angle, 0.0))[1]["torque"]

    slope = (torque(0.6 + 1e-5) - torque(0.6 - 1e-5)) / 2e-5
    assert slope < -0.1 and arc.grad(torque)(0.6) == pytest.approx(slope, rel=1e-4)

    def pilot(X, U, angle, rate):
        state, u = mpc.step(mpc.start().replace(X=X, U=U), Swing(angle, rate))
        return state.X, state.U, u["torque"]

    given = (state.X, state.U, 0.8, 0.0)
    project = arc.codegen(pilot, given, output_dir=tmp_path, return_names=["Xn", "Un", "torque"])
    assert project.verify(samples=3).outputs == 15


MESSAGES = [
    (lambda: NonlinearMPC(pendulum, X0, 0.0), "problem must be an OptimalControl"),
    (
        lambda: NonlinearMPC(
            OptimalControl(pendulum, running_cost=lambda t, x, u: 0.0, tf=(0.1, 1.0)), X0, 0.0
        ),
        "problem.tf is free: give a number",
    ),
    (
        lambda: NonlinearMPC(PROBLEMS["bounds"], X0, {"torque": 0.0}, 0),
        "intervals must be a whole number of at least",
    ),
    (
        lambda: NonlinearMPC(PROBLEMS["bounds"], X0, {"torque": 0.0}, 4).step(
            NonlinearMPC(PROBLEMS["bounds"], X0, {"torque": 0.0}, 4).start(), np.zeros(3)
        ),
        "input holds 3 numbers, the state x 2",
    ),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
