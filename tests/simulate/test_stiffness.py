"""Explicit methods notice that a system is stiff and say so; ``method="auto"`` changes over."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import solve_ode

HINT = "the system looks stiff"


def fast_slow(t, x, rate=1e6):
    return -rate * (x - np.cos(t))


def robertson(t, x):
    a, b, c = 0.04 * x[0], 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
    return np.stack([b - a, a - b - c, c])


def lorenz(t, x):
    return np.stack(
        [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]]
    )


def van_der_pol(t, x, mu):
    return np.stack([x[1], mu * (1.0 - x[0] ** 2) * x[1] - x[0]])


@pytest.mark.parametrize("method", ["dop853", "dopri5", "tsit5", "bs3"])
def test_an_explicit_method_says_that_a_system_is_stiff(method):
    found = solve_ode(fast_slow, (0.0, 1.0), 1.0, method=method, args=(1e5,), rtol=1e-6)
    assert found.success and found.stats["steps"] > 5000
    assert HINT in found.message and "method='rodas5p'" in found.message
    few = solve_ode(fast_slow, (0.0, 1.0), 1.0, method=method, max_steps=2000)
    assert not few.success and HINT in few.message
    at = solve_ode(fast_slow, (0.0, 1.0), 1.0, method=method, args=(1e5,), t_eval=[0.5, 1.0])
    assert HINT in at.message


def test_a_batch_says_how_many_are_stiff():
    rates = np.array([1.0, 1e5, 2e5])
    found = solve_ode(fast_slow, (0.0, 1.0), np.ones(3), args=(rates,), in_axes=0, t_eval=[1.0])
    assert "2 of 3 look stiff" in found.message


@pytest.mark.parametrize("method", ["dop853", "dopri5", "tsit5", "bs3"])
def test_long_solves_that_are_not_stiff_get_no_hint(method):
    chaos = solve_ode(lorenz, (0.0, 60.0), [1.0, 1.0, 1.0], method=method, rtol=1e-7)
    assert chaos.stats["steps"] > 1000 and HINT not in chaos.message
    swing = lambda t, x: np.stack([x[1], -x[0]])
    long = solve_ode(swing, (0.0, 2000.0), [1.0, 0.0], method=method, rtol=1e-6, t_eval=[2000.0])
    assert long.stats["steps"] > 1000 and HINT not in long.message


def test_a_stiff_method_gets_no_hint():
    assert HINT not in solve_ode(fast_slow, (0.0, 1.0), 1.0, method="rodas5p").message


# ---- auto --------------------------------------------------------------------------------


def test_auto_on_a_stiff_system():
    found = solve_ode(fast_slow, (0.0, 1.0), 1.0, method="auto")
    explicit = 150_000
    assert found.success and found.stats["steps"] < explicit / 500
    assert found.stats["stiff_steps"] > 10 and HINT not in found.message
    assert found.x[-1] == pytest.approx(np.cos(1.0), abs=1e-5)
    end = solve_ode(robertson, (0.0, 1e5), [1.0, 0.0, 0.0], method="auto", atol=1e-12)
    exact = solve_ode(robertson, (0.0, 1e5), [1.0, 0.0, 0.0], method="rodas5p", atol=1e-14)
    assert end.stats["steps"] < 2000
    assert end.x[-1] == pytest.approx(exact.x[-1], rel=1e-5)


def test_auto_on_a_system_that_is_not_stiff():
    tight = {"rtol": 1e-10, "atol": 1e-12}
    found = solve_ode(lorenz, (0.0, 3.0), [1.0, 1.0, 1.0], method="auto", **tight)
    exact = solve_ode(lorenz, (0.0, 3.0), [1.0, 1.0, 1.0], rtol=1e-12, atol=1e-13)
    assert found.stats["stiff_steps"] == 0
    assert found.x[-1] == pytest.approx(exact.x[-1], abs=1e-5)
    explicit = solve_ode(
        lorenz, (0.0, 3.0), [1.0, 1.0, 1.0], method="tsit5", rtol=1e-10, atol=1e-12
    )
    assert found.stats["steps"] == explicit.stats["steps"]


def test_auto_goes_there_and_back():
    # Relaxation oscillations: slow and stiff, then fast and not.
    found = solve_ode(van_der_pol, (0.0, 100.0), [2.0, 0.0], method="auto", args=(50.0,), rtol=1e-6)
    exact = solve_ode(
        van_der_pol, (0.0, 100.0), [2.0, 0.0], method="rodas5p", args=(50.0,), rtol=1e-10
    )
    assert 0 < found.stats["stiff_steps"] < found.stats["steps"]
    assert found(40.0) == pytest.approx(exact(40.0), abs=1e-3)
    times = np.linspace(0.0, 30.0, 40)
    at = solve_ode(
        van_der_pol, (0.0, 100.0), [2.0, 0.0], method="auto", args=(50.0,), rtol=1e-6, t_eval=times
    )
    assert at.x == pytest.approx(exact(times), abs=1e-3)


@pytest.mark.long
def test_auto_in_batches_recordings_and_derivatives():
    rates = np.array([1.0, 1e4])
    many = solve_ode(
        fast_slow, (0.0, 1.0), np.ones(2), args=(rates,), in_axes=0, method="auto", t_eval=[1.0]
    )
    for k in range(2):
        alone = solve_ode(fast_slow, (0.0, 1.0), 1.0, args=(rates[k],), method="auto", t_eval=[1.0])
        assert np.array_equal(alone.x, many.x[k])
        assert many.stats["stiff_steps"][k] == alone.stats["stiff_steps"]

    def end(start, rate):
        return arc.odeint(fast_slow, (0.0, 0.5), start, "auto", args=(rate,), rtol=1e-7)

    assert arc.compile(end)(1.0, 1e4) == end(1.0, 1e4)
    # dx/dstart = exp(-rate t).
    assert arc.grad(end)(1.0, 2.0) == pytest.approx(np.exp(-1.0), rel=1e-5)
    slope = arc.jac(end, argnums=1)(1.0, 1e3)
    step = 1.0
    expected = (end(1.0, 1e3 + step) - end(1.0, 1e3 - step)) / (2.0 * step)
    assert slope == pytest.approx(expected, rel=0.05)


def test_auto_with_events():
    event = arc.Event(lambda t, x: x - 0.9, terminal=True)
    found = solve_ode(fast_slow, (0.0, 1.0), 1.0, method="auto", events=event)
    assert found.t[-1] == pytest.approx(np.arccos(0.9), abs=1e-5)
