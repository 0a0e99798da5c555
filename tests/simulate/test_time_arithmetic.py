"""Time is the sum of the steps: far from t = 0, where numbers are sparse, and for traced times."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import Sampled
from archimedes.simulate.statuses import Status

EPOCH = 1.7e9  # seconds of Unix time; neighbouring numbers are 2.4e-7 apart


def spin(t, x):
    return 1e6 * np.stack([-x[1], x[0]])


@pytest.mark.parametrize("method", ["dop853", "tsit5", "dopri5", "bs3", "rodas5p", "esdirk4"])
def test_fast_rotation_at_a_late_time(method):
    end = EPOCH + 1e-4
    found = arc.solve_ode(spin, (EPOCH, end), [1.0, 0.0], method=method)
    if not found.success:
        assert found.status == Status.STEP_UNDERFLOW
        assert "Neighbouring times are 2.4e-07 apart" in found.message
        return
    # The end is a multiple of the spacing: 1e-4 to three digits only.
    angle = 1e6 * (end - EPOCH)
    assert found.x[-1] == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-5)


def test_the_default_method_gets_it_right():
    angle = 1e6 * (EPOCH + 1e-4 - EPOCH)
    span = (EPOCH, EPOCH + 1e-4)
    whole = arc.solve_ode(spin, span, [1.0, 0.0]).x[-1]
    output = arc.odeint(spin, span, [1.0, 0.0], t_eval=[span[1]])[:, 0]
    for end in (whole, output):
        assert end == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-6)


def test_a_step_that_vanishes_beside_t_is_a_failure():
    found = arc.solve_ode(lambda t, x: 1e12 * spin(t, x), (EPOCH, EPOCH + 1.0), [1.0, 0.0])
    assert found.status == Status.STEP_UNDERFLOW and found.stats["steps"] < 10
    assert "count time from a nearer origin" in found.message
    with pytest.raises(arc.simulate.SimulationError, match="count time from a nearer origin"):
        arc.odeint(lambda t, x: 1e12 * spin(t, x), (EPOCH, EPOCH + 1.0), [1.0, 0.0])
    small = arc.solve_ode(spin, (EPOCH, EPOCH + 1.0), [1.0, 0.0], max_step=1e-8)
    assert small.status == Status.STEP_UNDERFLOW


@pytest.mark.parametrize("dt", [0.1, 0.01, 1e-3, 1e-5])
def test_fixed_steps_at_a_late_time(dt):
    count = 20
    end = EPOCH + count * dt
    found = arc.solve_ode(lambda t, x: x, (EPOCH, end), 1.0, method="rk4", dt=dt, max_steps=1000)
    assert found.success and found.stats["steps"] == count
    assert found.t == pytest.approx(EPOCH + dt * np.arange(count + 1), abs=2.4e-7)
    factor = 1.0 + dt + dt**2 / 2.0 + dt**3 / 6.0 + dt**4 / 24.0
    assert found.x[-1] == pytest.approx(factor**count, rel=3e-7)


def test_fixed_steps_that_vanish():
    for dt in (1e-6, 1e-8):
        found = arc.solve_ode(
            lambda t, x: x, (EPOCH, EPOCH + 1.0), 1.0, method="rk4", dt=dt, max_steps=1000
        )
        assert found.status == Status.STEP_UNDERFLOW and found.stats["steps"] < 2


def test_sampled_parts_at_a_late_time():
    # Two rates that do not divide each other: each part acts at its own times only.
    fast = Sampled(lambda t, x, u: u[0] + 1.0, init=0.0, dt=0.01)
    slow = Sampled(lambda t, x, u: u[1] + 1.0, init=0.0, dt=0.025)
    found = arc.solve_ode(
        lambda t, x, u: 0.0 * x, (EPOCH, EPOCH + 1.0), 1.0, sampled=[fast, slow], max_steps=2000
    )
    assert found.success
    assert found.u[0][-1] in (100.0, 101.0) and found.u[1][-1] in (40.0, 41.0)


def test_a_rate_that_time_cannot_resolve():
    fast = Sampled(lambda t, x, u: u + 1.0, init=0.0, dt=1e-7)
    with pytest.raises(ValueError, match=r"sampled\[0\]: dt = 1e-07 .* neighbouring times"):
        arc.solve_ode(lambda t, x, u: 0.0 * x, (EPOCH, EPOCH + 1.0), 1.0, sampled=fast)


def test_events_at_a_late_time():
    # x[0] = 0 at angles pi/2 + k pi: times are right to the spacing, the state to its tolerance.
    event = arc.Event(lambda t, x: x[0])
    found = arc.solve_ode(spin, (EPOCH, EPOCH + 3e-5), [1.0, 0.0], events=event)
    exact = 1e-6 * np.pi * (0.5 + np.arange(10))
    assert found.success and found.events["t"] - EPOCH == pytest.approx(exact, abs=2.4e-7)
    angle = 1e6 * (found.t[-1] - EPOCH)
    assert found.x[-1] == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-5)


# ---- traced times ------------------------------------------------------------------------


def decay(t, x):
    return -x


def at(times, span=(0.0, 2.0)):
    return arc.compile(lambda t: arc.odeint(decay, span, 1.0, t_eval=t))(np.array(times))


def test_traced_times_in_order():
    times = [0.0, 0.5, 0.5, 2.0]
    assert at(times) == pytest.approx(np.exp(-np.array(times)), abs=1e-8)
    back = arc.compile(lambda t: arc.odeint(decay, (2.0, 0.0), 1.0, t_eval=t))
    assert back(np.array([2.0, 1.0])) == pytest.approx([1.0, np.e], abs=1e-7)


@pytest.mark.parametrize(
    ("times", "bad"),
    [
        ([1.5, 0.2, 2.0], [1]),
        ([2.0, 0.735, 0.1], [1, 2]),
        ([-0.5, 1.0], [0]),
        ([1.0, 2.5], [1]),
        ([np.nan, 1.0], [0]),
        ([0.5, np.nan, 1.0], [1]),
    ],
)
@pytest.mark.parametrize("method", ["dop853", "bs3"])
def test_traced_times_out_of_order_or_span_are_nan(times, bad, method):
    exact = np.exp(-np.array(times))
    exact[bad] = np.nan
    found = arc.compile(lambda t: arc.odeint(decay, (0.0, 2.0), 1.0, method, t))(np.array(times))
    assert found == pytest.approx(exact, abs=1e-5, nan_ok=True)
    with pytest.raises(ValueError, match="t_eval"):
        arc.odeint(decay, (0.0, 2.0), 1.0, t_eval=times)


def test_a_traced_span_without_length():
    for method in ("dop853", "rodas5p"):
        end = arc.compile(lambda t: arc.odeint(decay, (1.0, t), 3.0, method))  # noqa: B023
        assert end(1.0) == 3.0
