"""DAEs with Rodas5P: closed forms, published solutions, IDA; and which equations it is for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.identity.store import store
from archimedes.simulate.dae import SMALL, InconsistentStart, solve_dae
from archimedes.simulate.dae_residuals import residual_of
from archimedes.simulate.problem.state_layout import layout_of
from archimedes.simulate.solves.initial_values import Problem
from archimedes.simulate.solves.instances import one_instance
from archimedes.simulate.statuses import INTERRUPTED, NON_FINITE, TOO_MANY_STEPS
from archimedes.simulate.stepping.run_state import Setup
from archimedes.simulate.stepping.solve_kernels import Kernels


def circle(t, x, xdot):
    return np.stack([xdot[0] + x[1], x[0] ** 2 + x[1] ** 2 - 1.0])


def circle_at(t):
    return np.stack([-np.sin(t), np.cos(t)], axis=-1)


def transistors(t, y, v):
    """Transistor amplifier: M is singular, but every derivative is in it (HW, eq. VI.1.14)."""
    C = 1e-6 * np.arange(1.0, 6.0)
    g = lambda u: 1e-6 * (np.exp(u / 0.026) - 1.0)
    source, supply, R = 0.1 * np.sin(200.0 * np.pi * t), 6.0, 9000.0
    first, second = g(y[1] - y[2]), g(y[4] - y[5])
    return np.stack(
        [
            C[0] * (v[1] - v[0]) + source / 1000.0 - y[0] / 1000.0,
            C[0] * (v[0] - v[1]) + supply / R - y[1] * (2.0 / R) - 0.01 * first,
            -C[1] * v[2] + first - y[2] / R,
            C[2] * (v[4] - v[3]) + supply / R - y[3] / R - 0.99 * first,
            C[2] * (v[3] - v[4]) + supply / R - y[4] * (2.0 / R) - 0.01 * second,
            -C[3] * v[5] + second - y[5] / R,
            C[4] * (v[7] - v[6]) + supply / R - y[6] / R - 0.99 * second,
            C[4] * (v[6] - v[7]) - y[7] / R,
        ]
    )


TRANSISTORS = [0.0, 3.0, 3.0, 6.0, 3.0, 3.0, 6.0, 0.0]
#: At t = 0.2: Mazzia, Magherini, Test Set for Initial Value Problem Solvers, release 2.4 (2008).
AMPLIFIED = [
    *(-0.5562145012262709e-2, 3.006522471903042, 2.849958788608128, 2.926422536206241),
    *(2.704617865010554, 2.761837778393145, 4.770927631616772, 1.236995868091548),
]


def test_transistor_amplifier_against_the_published_solution():
    found = solve_dae(transistors, (0.0, 0.2), TRANSISTORS, rtol=1e-9, atol=1e-11)
    assert found.success and found.stats["method"] == "rodas5p"
    assert found.x[-1] == pytest.approx(AMPLIFIED, abs=1e-6)


def test_outputs_and_dense_output():
    times = np.linspace(0.0, 1.2, 50)
    found = solve_dae(circle, (0.0, 1.2), [0.0, 1.0], t_eval=times, rtol=1e-10, atol=1e-10)
    assert found.t.tolist() == times.tolist()
    assert found.x == pytest.approx(circle_at(times), abs=1e-8)
    steps = solve_dae(circle, (0.0, 1.2), [0.0, 1.0], rtol=1e-10, atol=1e-10)
    assert steps(times) == pytest.approx(circle_at(times), abs=1e-8)
    back = solve_dae(circle, (0.0, -1.2), [0.0, 1.0], rtol=1e-10, atol=1e-10)
    assert back.x[-1] == pytest.approx(circle_at(-1.2), abs=1e-8)


def test_order_of_convergence_in_differential_and_algebraic_states():
    def residual(t, x, xdot):
        # x0 = sin(t), x1 = exp(x0 / 2) cos(t): depends on t, nonlinear in both.
        algebraic = x[1] * np.exp(-0.5 * x[0]) - np.cos(t)
        return np.stack([xdot[0] - x[1] * np.exp(-0.5 * x[0]), algebraic + algebraic**3])

    start = np.array([0.0, 1.0])
    equations = residual_of(residual, layout_of(start), ())
    plan = dataclasses.replace(equations.kernels().plan, adaptive=False)
    fixed = Kernels(plan)
    errors = []
    for h in (0.05, 0.025):
        setup = Setup(0.0, 1.2, h, np.inf, np.ones(2), np.ones(2), 0)
        found = Problem(fixed, setup, one_instance(start, ()), 1000).solve(None, dense=True)
        first = np.sin(found.t)
        exact = np.stack([first, np.exp(0.5 * first) * np.cos(found.t)], axis=1)
        errors.append(np.abs(found.x - exact).max(axis=0))
    assert (np.log2(errors[0] / errors[1]) > 4.6).all()


def test_masses_and_parameters_are_arguments_of_one_kernel():
    def residual(t, x, xdot, mass, k):
        return {"a": mass @ xdot["a"] + k * x["a"], "b": x["b"] - x["a"].sum()}

    mass = np.array([[2.0, 1.0], [0.0, 4.0]])
    start = {"a": np.array([1.0, 2.0]), "b": 3.0}
    count = []
    for factor in (1.0, 2.0):
        args = (factor * mass, 0.5)
        found = solve_dae(residual, (0.0, 1.0), start, args=args, rtol=1e-10, atol=1e-12)
        assert found.stats["method"] == "rodas5p"
        # mass x' = -k x is upper triangular: the second decays alone and drives the first.
        p, q = 0.5 / (2.0 * factor), 0.5 / (4.0 * factor)
        second = 2.0 * np.exp(-q)
        drive = 2.0 * q * 0.5 / (p - q)
        first = (1.0 - drive) * np.exp(-p) + drive * np.exp(-q)
        assert found.x["a"][-1] == pytest.approx([first, second], abs=1e-8)
        assert found.x["b"][-1] == pytest.approx(first + second, abs=1e-8)
        count.append(len(store))
    assert count[0] == count[1]


FORMS = {
    "a matrix": (lambda t, x, v: np.array([[1.0, 2.0], [0.0, 0.0]]) @ v - x, True),
    "a branch in x": (lambda t, x, v: v - np.where(x > 0.0, 1.0, 2.0) * x, True),
    "masses that depend on x": (lambda t, x, v: x * v - x, False),
    "masses that switch in time": (lambda t, x, v: np.where(t < 1.0, 1.0, 2.0) * v - x, False),
    "masses that switch in x": (lambda t, x, v: np.where(x > 0.0, 1.0, 2.0) * v - x, False),
    "a square": (lambda t, x, v: v**2 - x, False),
    "a floor": (lambda t, x, v: np.floor(v) + v - x, False),
    "a branch": (lambda t, x, v: v - np.where(v > 0.0, 1.0, 2.0) * x, False),
    "a sign": (lambda t, x, v: v - np.copysign(1.0, v) * x, False),
    "a remainder": (lambda t, x, v: np.fmod(v, 1.0) - x, False),
    "an absolute value": (lambda t, x, v: np.abs(v) - x, False),
    "a bound": (lambda t, x, v: np.maximum(v, 0.0) - x, False),
}


@pytest.mark.parametrize("name", FORMS)
def test_which_equations_have_a_mass_matrix(name):
    residual, linear = FORMS[name]
    x = np.array([1.0, 0.5])
    assert residual_of(residual, layout_of(x), ()).form(0.0, x).linear is linear


def test_choosing_the_method():
    with pytest.raises(ValueError, match="method='dop853' must be 'rodas5p' or 'ida'"):
        solve_dae(circle, (0.0, 1.0), [0.0, 1.0], method="dop853")
    with pytest.raises(ValueError, match="this residual has another form: write method='ida'"):
        solve_dae(lambda t, x, v: x * v - x, (0.0, 1.0), [1.0, 1.0], method="rodas5p")


def test_rodas5p_and_ida_agree():
    pytest.importorskip("sksundae")
    both = [
        solve_dae(transistors, (0.0, 0.01), TRANSISTORS, method=m, rtol=1e-9, atol=1e-11)
        for m in ("rodas5p", "ida")
    ]
    assert [found.stats["method"] for found in both] == ["rodas5p", "ida"]
    assert both[0].x[-1] == pytest.approx(both[1].x[-1], abs=1e-6)
    other = solve_dae(lambda t, x, v: (1.0 + x) * v + x, (0.0, 1.0), [1.0], rtol=1e-9)
    assert other.stats["method"] == "ida"
    # (1 + x) x' = -x: log(x) + x = 1 - t.
    assert np.log(other.x[-1]) + other.x[-1] == pytest.approx([0.0], abs=1e-6)
    large = solve_dae(lambda t, x, v: v + x, (0.0, 1.0), np.ones(SMALL + 1))
    assert large.stats["method"] == "ida"
    assert large.x[-1] == pytest.approx(np.full(SMALL + 1, np.exp(-1.0)), abs=1e-6)


def test_inconsistent_starts():
    with pytest.raises(InconsistentStart, match=r"equation 1 of the residual is 1\.25, not 0"):
        solve_dae(circle, (0.0, 1.0), [0.5, np.sqrt(2.0)])
    # No equation here is without derivatives, but a combination of two is.
    wrong = [0.5, *TRANSISTORS[1:]]
    with pytest.raises(InconsistentStart):
        solve_dae(transistors, (0.0, 0.1), wrong)
    fixed = solve_dae(circle, (0.0, 0.1), [0.6, 0.5], correct=True)
    assert fixed.x[0] == pytest.approx([0.6, 0.8], abs=1e-12)


def test_failures_and_interrupts_keep_what_was_computed():
    few = solve_dae(circle, (0.0, 1.0), [0.0, 1.0], max_steps=3)
    assert few.status == TOO_MANY_STEPS and len(few.t) == 4

    def lost(t, x, xdot):
        return np.stack([xdot[0] - np.sqrt(0.5 - t), x[1] - x[0]])

    found = solve_dae(lost, (0.0, 1.0), [0.0, 0.0])
    assert found.status == NON_FINITE and 0.4 < found.t[-1] <= 0.5

    def interrupt(part, t):
        raise KeyboardInterrupt

    stopped = solve_dae(circle, (0.0, 1.0), [0.0, 1.0], progress=interrupt)
    assert stopped.status == INTERRUPTED


def test_structs():
    @arc.struct
    class State:
        angle: float
        side: np.ndarray

    def residual(t, x, xdot):
        return State(xdot.angle - 1.0, x.side - np.stack([np.cos(x.angle), np.sin(x.angle)]))

    found = solve_dae(residual, (0.0, 1.0), State(0.0, np.array([1.0, 0.0])))
    assert found.x.side[-1] == pytest.approx([np.cos(1.0), np.sin(1.0)], abs=1e-9)
