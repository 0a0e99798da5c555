"""Radau IIA of order 5 as a fixed step: order, stability, failures."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import discretize, solve_ode
from archimedes.simulate.methods import implicit


def pendulum(t, x):
    return np.stack([x[1], -np.sin(x[0]) + 0.1 * np.cos(t)])


def test_the_table_satisfies_the_simplifying_conditions():
    # C(3), B(5) and D(2) give order 5 (Hairer & Wanner II, theorem IV.5.1).
    a, c, b = implicit._A, implicit._C, implicit._A[-1]
    for k in range(1, 4):
        assert a @ c ** (k - 1) == pytest.approx(c**k / k, abs=1e-15)
    for k in range(1, 6):
        assert b @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-15)
    for k in range(1, 3):
        assert (b * c ** (k - 1)) @ a == pytest.approx(b * (1 - c**k) / k, abs=1e-15)


def test_order_five():
    x0 = np.array([1.0, 0.0])
    fine = discretize(pendulum, dt=2.0, method="dop853", n_steps=400)(0.0, x0)
    counts = np.array([4, 8, 16])
    errors = [
        np.abs(discretize(pendulum, dt=2.0, method="radau5", n_steps=n)(0.0, x0) - fine).max()
        for n in counts.tolist()
    ]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert 4.5 < slope < 5.6


@pytest.mark.parametrize("z", [-0.5, -30.0, -1e4, -1e9])
def test_linear_steps_are_the_stability_function(z):
    # R(z) of Radau IIA(5) is the (2, 3) Pade approximant of exp: it vanishes at infinity.
    step = discretize(lambda t, x: z * x, dt=1.0, method="radau5")
    w = mpmath.mpf(z)
    over = 1 + 2 * w / 5 + w**2 / 20
    under = 1 - 3 * w / 5 + 3 * w**2 / 20 - w**3 / 60
    # The step adds a change of about -1 to 1.
    assert float(step(0.0, 1.0)) == pytest.approx(float(over / under), rel=1e-12, abs=4e-15)


def test_oscillations_are_damped_at_any_frequency():
    for w in (0.1, 3.0, 1e3, 1e6):
        turn = lambda t, x, w: w * np.stack([-x[1], x[0]])
        x = discretize(turn, dt=1.0, method="radau5")(0.0, np.array([1.0, 0.0]), w)
        assert np.hypot(*x) <= 1.0


def test_a_stiff_system_with_large_steps():
    # Prothero and Robinson: x follows cos t however stiff the way there is.
    stiff = lambda t, x: -1e6 * (x - np.cos(t)) - np.sin(t)
    step = discretize(stiff, dt=2.0, method="radau5", n_steps=20)
    assert float(step(0.0, 1.0)) == pytest.approx(np.cos(2.0), abs=1e-8)


def test_backends_derivatives_and_trees():
    step = discretize(lambda t, s: {"x": s["v"], "v": -np.sin(s["x"])}, dt=0.1, method="radau5")
    s = {"x": np.array(0.3), "v": np.array(1.0)}
    native = arc.compile(step, backend="llvm")(0.0, s)
    plain = arc.compile(step, backend="interpreter")(0.0, s)
    assert native["x"] == plain["x"]
    assert native["v"] == plain["v"]
    move = lambda x: step(0.0, {"x": x, "v": 1.0})["x"]
    difference = (move(0.3 + 1e-5) - move(0.3 - 1e-5)) / 2e-5
    assert arc.grad(move)(0.3) == pytest.approx(float(difference), rel=1e-9)


def test_solve_ode_takes_it_with_dt_and_interpolates():
    end = solve_ode(pendulum, (0.0, 2.0), np.array([1.0, 0.0]), method="radau5", dt=0.05)
    fine = solve_ode(pendulum, (0.0, 2.0), np.array([1.0, 0.0]), rtol=1e-12, atol=1e-12)
    assert end.success
    assert np.abs(end(1.234) - fine(1.234)).max() < 1e-6
    with pytest.raises(ValueError, match="fixed steps only"):
        solve_ode(pendulum, (0.0, 2.0), np.array([1.0, 0.0]), method="radau5")


def test_an_iteration_that_does_not_converge_gives_nan():
    step = discretize(lambda t, x: np.exp(40.0 * x), dt=1.0, method="radau5")
    assert np.isnan(step(0.0, 1.0))
