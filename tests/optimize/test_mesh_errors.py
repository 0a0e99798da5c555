"""Errors that solutions report of their meshes: against integration by SciPy and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from archimedes.optimize import OptimalControl, Phases, Status

METHODS = ["trapezoidal", "hermite-simpson", "radau3", "multiple-shooting"]


def van_der_pol(t, x, u):
    return np.array([(1.0 - x[1] ** 2) * x[0] - x[1] + u, x[0]])


BOUNDS = (-0.75, 1.0)
OSCILLATOR = OptimalControl(
    van_der_pol,
    running_cost=lambda t, x, u: x[0] ** 2 + x[1] ** 2 + u**2,
    initial=[0.0, 1.0],
    tf=10.0,
    control_bounds=BOUNDS,
)
#: The shortest way from rest to rest over a distance of 1, with an acceleration of 1: 2 s.
SHORTEST = OptimalControl(
    lambda t, x, u: np.array([x[1], u]),
    terminal_cost=lambda t0, x0, tf, xf: tf,
    initial=[0.0, 0.0],
    final=[1.0, 0.0],
    tf=(0.1, 10.0),
    control_bounds=(-1.0, 1.0),
)
AT_REST = {"x": np.zeros(2), "u": 0.0}
START = {**AT_REST, "tf": 1.5}


def flown_errors(found, dynamics):
    """Return the errors of intervals in the middle and at the end, by DOP853 at 1e-10."""
    t = found.t
    x, _ = found.at(t)
    size = np.abs(found.at(np.linspace(found.t0, found.tf, 500))[0]).max(axis=0)
    errors = []
    for k, (begin, end) in enumerate(itertools.pairwise(t)):
        edge = 1e-12 * (end - begin)

        def rate(s, y, low=begin + edge, high=end - edge):
            return dynamics(s, y, np.clip(found.at(np.clip(s, low, high))[1], *BOUNDS))

        middle = 0.5 * (begin + end)
        y = solve_ivp(
            rate, (begin, end), x[k], "DOP853", rtol=1e-10, atol=1e-12, t_eval=[middle, end]
        ).y
        off = np.abs(y.T - np.stack([found.at(middle)[0], x[k + 1]])) / size
        errors.append(off.max())
    return np.array(errors)


@pytest.mark.parametrize("method", METHODS)
def test_against_an_integration_of_each_interval(method):
    found = OSCILLATOR.solve(AT_REST, intervals=8, scheme=method)
    assert found.success
    np.testing.assert_allclose(found.errors, flown_errors(found, van_der_pol), rtol=0.02)
    assert found.mesh_error == found.errors.max()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("intervals", [15, 30])
def test_switches_of_a_control_within_an_interval(method, intervals):
    found = SHORTEST.solve(START, intervals=intervals, scheme=method)
    assert found.success
    t = np.linspace(0.0, min(found.tf, 2.0), 1001)
    exact = np.where(t < 1.0, t, 2.0 - t)
    error = np.abs(found.at(t)[0][:, 1] - exact).max()
    assert error < 6.0 * found.mesh_error + 1e-12
    assert found.mesh_error < 6.0 * error
    # With 15 intervals the switch lies within one, with 30 at a node.
    assert intervals == 30 or error > 0.01
    assert ("the mesh is coarse" in found.message) == (found.mesh_error > 1e-2)


def test_the_message_tells_of_coarse_meshes():
    coarse = OSCILLATOR.solve(AT_REST, intervals=4)
    assert coarse.success
    assert "but the mesh is coarse: in one of 4 intervals states are off by" in coarse.message
    assert coarse.mesh_error > 0.05
    fine = OSCILLATOR.solve(AT_REST, intervals=60)
    assert "coarse" not in fine.message
    assert fine.mesh_error < 1e-3


def test_a_tolerance_that_is_not_reached_is_no_success():
    short = OSCILLATOR.solve(AT_REST, intervals=8, mesh_tol=1e-6, max_refinements=1)
    assert short.status is Status.COARSE_MESH
    assert not short.success
    assert "mesh_tol = 1e-06" in short.message
    assert f"{short.mesh_error:.2g}" in short.message
    enough = OSCILLATOR.solve(AT_REST, intervals=8, mesh_tol=1e-6)
    assert enough.success
    assert np.max(flown_errors(enough, van_der_pol)) < 2e-6
    switched = SHORTEST.solve(START, intervals=15, mesh_tol=1e-5, max_refinements=12)
    assert switched.success
    assert switched.tf == pytest.approx(2.0, abs=1e-5)


def test_units_do_not_matter():
    def solved(unit):
        problem = OptimalControl(
            lambda t, x, u: np.array([x[1], u - x[0] ** 3 / unit**2]),
            running_cost=lambda t, x, u: (u / unit) ** 2,
            initial=[0.0, 0.0],
            final=[unit, 0.0],
            tf=2.0,
        )
        return problem.solve(AT_REST, intervals=5)

    one, small = solved(1.0), solved(2.0**-10)
    np.testing.assert_allclose(one.errors, small.errors, rtol=1e-3)


def test_intervals_too_stiff_for_small_steps_have_an_estimate():
    stiff = OptimalControl(
        lambda t, x, u: np.array([-1e6 * (x[0] - np.cos(t)), u]),
        running_cost=lambda t, x, u: u**2,
        initial=[1.0, 0.0],
        final=[None, 1.0],
        tf=3.0,
    )
    found = stiff.solve({"x": np.array([1.0, 0.0]), "u": 0.0}, intervals=10, scheme="radau3")
    assert found.success
    assert np.all(np.isfinite(found.errors)) and found.mesh_error > 0.0


def test_phases_tell_of_theirs():
    half = {"running_cost": lambda t, x, u: x[0] ** 2 + x[1] ** 2 + u**2}
    first = OptimalControl(van_der_pol, initial=[0.0, 1.0], tf=5.0, **half)
    second = OptimalControl(van_der_pol, t0=5.0, tf=10.0, **half)
    found = Phases(first, second).solve([AT_REST] * 2, intervals=[2, 30])
    assert found.success
    assert found.mesh_error == max(found[0].mesh_error, found[1].mesh_error) > 1e-2
    assert "in one of 32 intervals" in found.message
