"""odeint and integrator: shapes, recordings and derivatives."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.simulate import SimulationError, integrator, odeint

TIGHT = {"rtol": 1e-12, "atol": 1e-13}
X0, K, END = np.array([1.0, 0.3]), 2.0, 2.0


def pendulum(t, x, k):
    return np.stack([x[1], -k * np.sin(x[0]) + 0.1 * np.cos(t)])


@pytest.fixture(scope="module")
def variational():
    """The state and its derivatives by x0 and k, from the variational equations, at (1, 2)."""

    def rates(t, z):
        x, phi, s = z[:2], z[2:6].reshape(2, 2), z[6:]
        a = np.array([[0.0, 1.0], [-K * np.cos(x[0]), 0.0]])
        return np.concatenate(
            [
                [x[1], -K * np.sin(x[0]) + 0.1 * np.cos(t)],
                (a @ phi).ravel(),
                a @ s + [0.0, -np.sin(x[0])],
            ]
        )

    z0 = np.concatenate([X0, np.eye(2).ravel(), np.zeros(2)])
    found = solve_ivp(rates, (0.0, END), z0, "DOP853", [1.0, END], rtol=1e-13, atol=1e-14)
    return [(z[:2], z[2:6].reshape(2, 2), z[6:]) for z in found.y.T]


# ---- shapes ------------------------------------------------------------------------------


def test_shapes():
    assert odeint(pendulum, (0.0, 1.0), X0, args=(K,)).shape == (2,)
    assert odeint(pendulum, (0.0, 1.0), [1, 0], args=K, t_eval=[0.0, 0.5, 1.0]).shape == (2, 3)
    scalar = odeint(lambda t, x: -x, (0, 1), 1)
    assert np.shape(scalar) == ()
    assert abs(scalar - np.exp(-1.0)) < 1e-8
    assert odeint(lambda t, x: -x, (0, 1), 1, t_eval=[0.0, 1.0]).shape == (2,)
    matrix = odeint(lambda t, x: -x, (0, 1), np.ones((2, 3)), t_eval=[0.0, 0.2, 0.4, 1.0])
    assert matrix.shape == (2, 3, 4)
    tree = odeint(lambda t, x: {"a": -x["a"]}, (0, 1), {"a": np.ones(3)}, t_eval=[0.0, 1.0])
    assert tree["a"].shape == (2, 3)
    listed = odeint(lambda t, x: [x[1], -x[0]], (0.0, np.pi / 2), [0.0, 1.0])
    assert np.allclose(listed, [1.0, 0.0], atol=1e-8)


def test_failure_raises_with_the_part_computed():
    with pytest.raises(SimulationError, match="odeint: the step size became too small") as error:
        odeint(lambda t, x: x**2, (0.0, 2.0), 1.0, t_eval=np.linspace(0.0, 2.0, 5))
    assert np.array_equal(error.value.trajectory.t, [0.0, 0.5, 1.0])
    assert error.value.trajectory.status < 0


def test_interrupts_go_through():
    def stop(part, t):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="odeint: interrupted at t = "):
        odeint(lambda t, x: -x, (0.0, 1.0), 1.0, progress=stop)


def test_options():
    fixed = odeint(lambda t, x: -x, (0.0, 1.0), 1.0, method="euler", dt=0.25)
    assert abs(fixed - 0.75**4) < 1e-15
    with pytest.raises(TypeError, match="unexpected keyword argument 'maxstep'"):
        odeint(lambda t, x: -x, (0.0, 1.0), 1.0, maxstep=1.0)


def test_static_arguments():
    def f(t, x, kind, k):
        return {"decay": -k * x, "growth": k * x}[kind]

    end = odeint(f, (0.0, 1.0), 1.0, args=("growth", 2.0), static_argnames="kind")
    assert abs(end - np.exp(2.0)) < 1e-6
    with pytest.raises(ValueError, match="'sort' is not among the arguments"):
        odeint(f, (0.0, 1.0), 1.0, args=("growth", 2.0), static_argnames="sort")


def test_bound_methods_of_structs():
    @arc.struct
    class Model:
        k: float

        def rate(self, t, x, gain):
            return -self.k * gain * x

    for k in (1.0, 2.0):
        end = odeint(Model(k).rate, (0.0, 1.0), 1.0, args=(0.5,))
        assert abs(end - np.exp(-0.5 * k)) < 1e-8


def test_integrator():
    solve = integrator(pendulum, method="tsit5", t_eval=np.array([0.5, 1.0]), name="swing")
    assert solve.__name__ == "swing"
    expected = odeint(pendulum, (0.0, 1.0), X0, "tsit5", [0.5, 1.0], args=(K,))
    assert np.array_equal(solve(X0, (0.0, 1.0), K), expected)


# ---- inside recordings -------------------------------------------------------------------


def test_recorded_solve_has_the_same_bits():
    t = np.linspace(0.0, END, 5)

    @arc.compile
    def solve(x0, k, end):
        at_times = odeint(pendulum, (0.0, 2.0), x0, t_eval=t, args=(k,))
        return at_times, odeint(pendulum, (0.0, end), x0, args=(k,))

    several, last = solve(X0, K, END)
    assert np.array_equal(several, odeint(pendulum, (0.0, END), X0, t_eval=t, args=(K,)))
    assert np.array_equal(last, odeint(pendulum, (0.0, END), X0, args=(K,)))


def test_recorded_failure_is_nan():
    @arc.compile
    def solve(x0):
        return odeint(lambda t, x: x**2, (0.0, 2.0), x0, t_eval=np.array([0.5, 1.5]))

    found = solve(1.0)
    assert abs(found[0] - 2.0) < 1e-6
    assert np.isnan(found[1])
    few = arc.compile(lambda x0: odeint(lambda t, x: -x, (0.0, 9.0), x0, max_steps=4))
    assert np.isnan(few(1.0))


def test_derivatives_against_the_variational_equations(variational):
    def end(x0, k):
        return odeint(pendulum, (0.0, END), x0, args=(k,), **TIGHT)

    def middle(x0, k):
        return odeint(pendulum, (0.0, END), x0, args=(k,), t_eval=np.array([1.0, END]), **TIGHT)

    by_x0, by_k = arc.jac(end, argnums=(0, 1))(X0, K)
    _, phi, s = variational[1]
    assert np.abs(by_x0 - phi).max() < 1e-9
    assert np.abs(by_k - s).max() < 1e-9
    by_x0 = arc.jac(middle)(X0, K)  # output (2, times) by input (2,)
    for k, (_, phi, _) in enumerate(variational):
        assert np.abs(by_x0[:, k] - phi).max() < 1e-9


@pytest.mark.long
def test_adjoint_equals_forward(variational):
    weights = np.array([1.0, -2.0])

    def cost(x0, k):
        ends = odeint(pendulum, (0.0, END), x0, args=(k,), t_eval=np.array([1.0, END]), **TIGHT)
        return weights @ ends[:, 0] + np.sum(ends[:, 1] ** 2)

    by_x0, by_k = arc.grad(cost, argnums=(0, 1))(X0, K)
    (_, phi1, s1), (x2, phi2, s2) = variational
    assert np.abs(by_x0 - (weights @ phi1 + 2.0 * x2 @ phi2)).max() < 1e-8
    assert abs(by_k - (weights @ s1 + 2.0 * x2 @ s2)) < 1e-8
    for k, direction in enumerate(np.eye(2)):
        forward = arc.jvp(lambda x0: cost(x0, K))(X0, direction)
        assert abs(forward - by_x0[k]) < 1e-12


def test_derivatives_by_times(variational):
    x_end, phi, _ = variational[1]

    def by_times(t0, t1):
        return odeint(pendulum, (t0, t1), X0, args=(K,), **TIGHT)

    by_start, by_end = arc.jac(by_times, argnums=(0, 1))(0.0, END)
    slope = lambda t, x: np.array([x[1], -K * np.sin(x[0]) + 0.1 * np.cos(t)])
    assert np.abs(by_end - slope(END, x_end)).max() < 1e-9
    assert np.abs(by_start + phi @ slope(0.0, X0)).max() < 1e-9

    def by_outputs(times):
        return odeint(pendulum, (0.0, END), X0, args=(K,), t_eval=times, **TIGHT)

    found = arc.jac(by_outputs)(np.array([1.0, END]))
    for k, (x, _, _) in enumerate(variational):
        assert np.abs(found[:, k, k] - slope((1.0, END)[k], x)).max() < 1e-9
        assert np.abs(found[:, k, 1 - k]).max() == 0.0


def test_derivative_through_a_closure():
    def end(k):
        return odeint(lambda t, x: -k * x, (0.0, 1.0), 1.0, **TIGHT)

    assert abs(arc.grad(end)(0.7) + np.exp(-0.7)) < 1e-9


def test_mapped_solves():
    ends = arc.vmap(lambda x0, k: odeint(pendulum, (0.0, END), x0, args=(k,)), in_axes=(0, None))
    starts = np.array([[1.0, 0.3], [0.1, 0.2], [-1.0, 2.0]])
    found = ends(starts, K)
    for k in range(3):
        assert np.array_equal(found[k], odeint(pendulum, (0.0, END), starts[k], args=(K,)))


# ---- how a solve ended -------------------------------------------------------------------


def blow_up(t, x):
    return x**2


def test_the_signature_lists_all_options():
    names = set(inspect.signature(odeint).parameters)
    shared = set(inspect.signature(arc.solve_ode).parameters) - {"dense", "in_axes", "threads"}
    assert shared <= names and "full_output" in names
    # What is not listed is refused; "former" only catches names of another library, to say so.
    parameters = inspect.signature(odeint).parameters.values()
    assert {p.name for p in parameters if p.kind is p.VAR_KEYWORD} <= {"former"}
    with pytest.raises(TypeError, match="tol"):
        odeint(blow_up, (0.0, 0.5), 1.0, tol=1e-3)


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_the_status_in_recorded_code(backend):
    def solve(start):
        x, info = odeint(blow_up, (0.0, 0.9), start, full_output=True, max_steps=2000)
        return np.where(info.success, x, -1.0), info

    recorded = arc.compile(solve, backend=backend)
    for start, good in ((1.0, True), (2.0, False)):
        eager, plain = solve(start)
        kept, info = recorded(start)
        assert bool(info.success) is bool(plain.success) is good
        assert info.status == plain.status == (0 if good else -1)
        assert kept == eager and info.t == plain.t and info.steps == plain.steps
    assert recorded(1.0)[0] == pytest.approx(10.0, rel=1e-6)
    # Without it, nan.
    assert np.isnan(arc.compile(lambda s: odeint(blow_up, (0.0, 0.9), s))(2.0))


def test_the_status_with_times():
    times = np.array([0.25, 0.75])

    def solve(start, times=times):
        return odeint(blow_up, (0.0, 0.9), start, t_eval=times, full_output=True)

    for run in (solve, arc.compile(solve)):
        x, info = run(2.0)
        assert x == pytest.approx([4.0, np.nan], rel=1e-6, nan_ok=True) and not info.success
        x, info = run(1.0)
        assert x == pytest.approx([4.0 / 3.0, 4.0], rel=1e-6) and info.success
    few = arc.compile(lambda s: odeint(blow_up, (0.0, 0.9), s, full_output=True, max_steps=4)[1])
    assert few(1.0).status == -3 and not few(1.0).success
    unsorted = arc.compile(solve)(1.0, times[::-1].copy())[1]
    assert unsorted.status == -6 and not unsorted.success


def test_times_after_a_terminal_event_are_nan():
    stop = arc.Event(lambda t, x: x - 0.5, terminal=True)

    def solve(x0):
        times = np.array([0.5, 0.6, 1.0])
        return odeint(lambda t, x: -x, (0.0, 2.0), x0, t_eval=times, events=stop, full_output=True)

    for run in (solve, arc.compile(solve)):
        x, info = run(1.0)
        assert x == pytest.approx([*np.exp([-0.5, -0.6]), np.nan], abs=1e-8, nan_ok=True)
        assert info.success and info.status == 1
        assert info.t == pytest.approx(np.log(2.0), abs=1e-8)


def test_inputs_with_a_traced_span():
    def solve(end):
        return odeint(lambda t, x, u: u - x, (0.0, end), 1.0, inputs=lambda t: np.sin(t))

    assert arc.compile(solve)(1.0) == solve(1.0)
    step = 1e-6
    slope = (solve(1.0 + step) - solve(1.0 - step)) / (2.0 * step)
    assert arc.grad(solve)(1.0) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("times", [None, [0.5, 2.0]])
def test_a_recorded_solve_makes_as_many_fixed_steps_as_there_are(times):
    # 12,000 steps; after 10,000 the result was nan.
    t_eval = None if times is None else np.array(times)

    def solve(x):
        found = odeint(lambda t, x: -x, (0.0, 2.0), x, method="rk4", dt=2.0 / 12_000, t_eval=t_eval)
        return found if times is None else found[-1]

    expected = np.exp(-2.0)
    assert float(arc.compile(solve)(1.0)) == pytest.approx(expected, rel=1e-12)
    assert float(arc.grad(solve)(1.0)) == pytest.approx(expected, rel=1e-12)
