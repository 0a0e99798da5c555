"""CVODE, IDA and DAEs against closed forms and SciPy's Radau."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.errors import ArchimedesError
from archimedes.simulate.dae import InconsistentStart, solve_dae
from archimedes.simulate.events.event import Event
from archimedes.simulate.ode import solve_ode
from archimedes.simulate.ode_arrays import odeint
from archimedes.simulate.statuses import TOO_MANY_STEPS

pytest.importorskip("sksundae")


def robertson(t, y):
    first, second = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return np.stack([-first, first - second, second])


def robertson_dae(t, y, ydot):
    rates = robertson(t, y)
    return np.stack([ydot[0] - rates[0], ydot[1] - rates[1], y[0] + y[1] + y[2] - 1.0])


@pytest.fixture(scope="module")
def reference():
    start = [1.0, 0.0, 0.0]
    return solve_ivp(robertson, (0, 1e5), start, method="Radau", rtol=1e-11, atol=1e-16).y[:, -1]


@pytest.mark.parametrize("method", ["cvode", "ida"])
def test_stiff_system(method, reference):
    span, times = (0.0, 1e5), [0.0, 0.0, 10.0, 1e5]
    found = solve_ode(robertson, span, [1.0, 0.0, 0.0], method=method, atol=1e-14)
    assert found.success and found.stats["method"] == method
    assert found.x[-1] == pytest.approx(reference, rel=1e-6)
    at = solve_ode(robertson, span, [1.0, 0.0, 0.0], method=method, atol=1e-14, t_eval=times)
    assert at.t.tolist() == times
    assert at.x[-1] == pytest.approx(reference, rel=1e-6)
    last = odeint(robertson, span, [1.0, 0.0, 0.0], method=method, atol=1e-14)
    assert last == pytest.approx(reference, rel=1e-6)


def test_structs_arguments_and_going_back():
    @arc.struct
    class State:
        a: float
        b: np.ndarray

    def dynamics(t, x, k):
        return State(-k * x.a, k * x.b)

    start = State(1.0, np.array([1.0, 2.0]))
    found = solve_ode(dynamics, (0.0, -1.0), start, method="cvode", args=(0.5,))
    assert found.x.a[-1] == pytest.approx(np.exp(0.5), rel=1e-6)
    assert found.x.b[-1] == pytest.approx(np.exp(-0.5) * start.b, rel=1e-6)


def test_failures_return_what_was_computed():
    found = solve_ode(lambda t, x: x**2, (0.0, 2.0), 1.0, method="cvode")
    assert not found.success and 0.9 < found.t[-1] < 1.01
    few = solve_ode(robertson, (0.0, 1e5), [1.0, 0.0, 0.0], method="cvode", max_steps=10)
    assert few.status == TOO_MANY_STEPS and len(few.t) == 11
    nan = solve_ode(lambda t, x: np.sqrt(0.5 - t) * x, (0.0, 1.0), 1.0, method="ida")
    assert nan.status < 0 and nan.t[-1] < 0.6


def test_what_cannot_be_done_is_said(monkeypatch):
    with pytest.raises(ArchimedesError, match="method='cvode' has no events"):
        solve_ode(
            robertson, (0.0, 1.0), [1.0, 0.0, 0.0], method="cvode", events=Event(lambda t, x: x[0])
        )
    with pytest.raises(ArchimedesError, match="runs outside the kernels"):
        arc.jac(lambda x: odeint(robertson, (0.0, 1.0), x, method="cvode"))(
            np.array([1.0, 0.0, 0.0])
        )
    monkeypatch.setitem(sys.modules, "sksundae.cvode", None)
    with pytest.raises(ArchimedesError, match="pip install scikit-sundae"):
        solve_ode(robertson, (0.0, 1.0), [1.0, 0.0, 0.0], method="cvode")


@pytest.mark.parametrize("method", ["ida", "rodas5p"])
def test_robertson_as_a_dae(reference, method):
    found = solve_dae(robertson_dae, (0.0, 1e5), [1.0, 0.0, 0.0], method=method, atol=1e-14)
    assert found.success and found.stats["method"] == method
    assert found.x[-1] == pytest.approx(reference, rel=1e-6)
    assert found.x.sum(axis=1) == pytest.approx(np.ones(len(found.t)), abs=1e-8)


@pytest.mark.parametrize("method", ["ida", "rodas5p"])
def test_mass_matrix_of_a_semi_explicit_system(method):
    # x' = z, 0 = z - cos(t) + k x: x' = cos(t) - k x.
    def residual(t, x, xdot, k):
        mass = np.array([[1.0, 0.0], [0.0, 0.0]])
        return mass @ xdot - np.stack([x[1], np.cos(t) - k * x[0] - x[1]])

    times = np.linspace(0.0, 3.0, 7)
    options = {"method": method, "t_eval": times, "args": (2.0,), "rtol": 1e-10, "atol": 1e-12}
    found = solve_dae(residual, (0.0, 3.0), [0.0, 1.0], **options)
    exact = (2.0 * np.cos(times) + np.sin(times) - 2.0 * np.exp(-2.0 * times)) / 5.0
    assert found.x[:, 0] == pytest.approx(exact, abs=1e-7)
    assert found.x[:, 1] == pytest.approx(np.cos(times) - 2.0 * exact, abs=1e-7)


def test_inconsistent_starts():
    message = "equation 2 of the residual is 0.1, not 0, at t = 0.* correct=True"
    with pytest.raises(InconsistentStart, match=message):
        solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.1])
    with pytest.raises(InconsistentStart, match=r"equation 0 of the residual is 0\.04, not 0"):
        solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.0], xdot0=[0.0, 0.0, 0.0])
    assert solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.0], xdot0=[-0.04, 0.04, 0.0]).success
    fixed = solve_dae(robertson_dae, (0.0, 1.0), [0.9, 0.0, 0.7], correct=True)
    assert fixed.x[0] == pytest.approx([0.9, 0.0, 0.1], abs=1e-12)
    with pytest.raises(InconsistentStart, match="no algebraic values near these satisfy it"):
        solve_dae(
            lambda t, x, v: np.stack([v[0] + x[0], x[1] ** 2 + 1.0]),
            (0.0, 1.0),
            [1.0, 1.0],
            correct=True,
        )


def test_wrong_shapes():
    with pytest.raises(ValueError, match="2 equations for the 3 numbers of the state"):
        solve_dae(lambda t, x, v: v[:2], (0.0, 1.0), [1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="xdot0 must have the structure and shapes of x0"):
        solve_dae(robertson_dae, (0.0, 1.0), [1.0, 0.0, 0.0], xdot0=[0.0, 0.0])


def test_interruption_keeps_what_was_computed():
    def interrupt(part, t):
        if part > 0.3:
            raise KeyboardInterrupt

    found = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, method="cvode", progress=interrupt)
    assert "interrupted" in found.message and 0.2 < found.t[-1] < 1.0
