"""The search: worst cases that are known, reproducible runs, gradients, models of all kinds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archimedes as arc
from archimedes import requirements as req
from archimedes.simulate import Normal, Uniform

TIMES = np.linspace(0.0, 2.0, 41)


def throw(p):
    up = p["speed"] * np.sin(p["angle"])
    return {"t": TIMES, "alt": up * TIMES - 4.905 * TIMES**2, "speed": p["speed"] + 0.0 * TIMES}


RANGES = {"speed": Uniform(5.0, 9.0), "angle": Uniform(0.2, 2.0)}


@pytest.mark.long
def test_the_worst_case_of_a_throw():
    low = req.always(req.signal("alt", units="m") < 2)
    result = arc.falsify(throw, low, RANGES, max_simulations=600, seed=1)
    assert result.status == "violated"
    assert result.arguments["speed"] == pytest.approx(9.0)
    assert result.arguments["angle"] == pytest.approx(np.pi / 2, abs=2e-3)
    assert (
        result.robustness == low.robustness(result.trajectory) == low.robustness(result.simulate())
    )
    np.testing.assert_array_equal(result.simulate().x["alt"], result.trajectory.x["alt"])
    assert result.simulations <= 601
    assert result.first_violation == 32
    assert result.history[-1][1] == pytest.approx(result.robustness)
    assert "violated by 2.1" in str(result)
    again = arc.falsify(throw, low, RANGES, max_simulations=600, seed=1)
    assert again.robustness == result.robustness
    assert again.simulations == result.simulations
    assert arc.falsify(throw, low, RANGES, stop="first", seed=1).simulations == 33


def test_a_first_violation():
    low = req.always(req.signal("alt", units="m") < 2)
    result = arc.falsify(throw, low, RANGES, stop="first", seed=1)
    assert result.status == "violated"
    assert result.simulations == 33
    np.testing.assert_array_equal(result.simulate().x["alt"], result.trajectory.x["alt"])


def test_what_cannot_be_violated_is_not_found():
    high = req.always(req.signal("alt") < 5)
    result = arc.falsify(throw, high, RANGES, max_simulations=300, gradients=False)
    assert result.status == "not found"
    assert result.first_violation is None
    assert result.robustness == pytest.approx(5.0 - 9.0**2 / 19.62, abs=0.02)


def test_several_requirements_and_other_distributions():
    rules = {"low": req.always(req.signal("alt") < 9), "slow": req.always(req.signal("speed") < 8)}
    ranges = {"speed": Normal(7.0, 0.5), "angle": 1.0}
    result = arc.falsify(throw, rules, ranges, max_simulations=100, gradients=False)
    assert result.status == "violated"
    assert result.verdict.condition == "speed < 8"
    assert result.arguments["angle"] == 1.0


def test_plain_python_models():
    calls = []

    def simulate(p):
        calls.append(float(p["speed"]))
        run = arc.solve_ode(lambda t, x: np.array([x[1], -9.81]), (0.0, 1.0), [0.0, calls[-1]])
        return run

    result = arc.falsify(
        *(simulate, req.always(req.signal("x[0]") < 2), {"speed": Uniform(5.0, 9.0)}),
        vectorize=False,
        max_simulations=60,
        batch=10,
    )
    assert result.status == "violated"
    assert result.gradients == 0
    assert len(calls) >= result.simulations - 1


@pytest.mark.long
@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_differential_equations_with_inputs(hold):
    """Resonance: the worst input of a given size pushes in phase, and gradients find it."""

    def swing(t, x, u, k):
        return np.array([x[1], u[0] - k * x[0]])

    inputs = req.PiecewiseInput([-1.0], [1.0], pieces=4, hold=hold)
    start = Uniform([-0.1, 0.0], [0.1, 0.0])
    ranges = {"x0": start, "inputs": inputs, "args": (Uniform(0.9, 1.1),)}
    rule = req.always(abs(req.signal("x[0]")) < 1.0, between=(0, 4 * np.pi))
    span, options = (0.0, 4 * np.pi), {"method": "rk4", "dt": np.pi / 60}
    result = arc.falsify(swing, rule, ranges, t_span=span, max_simulations=500, **options)
    assert result.status == "violated"
    assert result.gradients > 0
    # The system is linear, so that the worst input is at a corner: all of them, for some k.
    corners = inputs.series(np.zeros(inputs.shape), span).t
    signs = list(itertools.product([-1.0, 1.0], repeat=len(corners)))
    least = min(
        float(
            rule.robustness(arc.solve_ode(swing, span, [0.1, 0.0], inputs=u, args=(k,), **options))
        )
        for u in (arc.InputSeries(corners, np.array(row)[:, None], hold) for row in signs)
        for k in (0.9, 1.0, 1.1)
    )
    assert result.robustness < 0.97 * least < -3.0
    arguments = result.arguments
    run = arc.solve_ode(
        *(swing, span, arguments["x0"]),
        inputs=arguments["inputs"],
        args=arguments["args"],
        dense=True,
        **options,
    )
    np.testing.assert_array_equal(run.x, result.trajectory.x)
    assert rule.robustness(run) == result.robustness


def test_models_that_have_no_derivative_are_searched_without():
    def count(p):
        n = arc.while_loop(lambda c: c[1] > 1.0, lambda c: (c[0] + 1.0, c[1] / 2.0), (0.0, p["a"]))[
            0
        ]
        return {"t": np.arange(2.0), "n": n + np.zeros(2)}

    result = arc.falsify(
        *(count, req.always(req.signal("n") < 6), {"a": Uniform(1.0, 65.0)}), max_simulations=100
    )
    assert result.status == "violated"


def test_input_series_may_be_computed_in_recorded_code():
    t = np.array([0.0, 1.0, 3.0])
    for hold in ("zoh", "foh"):
        f = lambda u, at, hold=hold: arc.InputSeries(t, u, hold)(at)
        u = np.array([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]])
        for at in (-1.0, 0.0, 0.5, 1.0, 2.5, 3.0, 9.0):
            np.testing.assert_array_equal(arc.compile(f)(u, at), f(u, at))
