"""Every event is found: fast event functions, pairs of crossings within a step, truth values."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import Event, odeint, solve_ode
from archimedes.simulate.statuses import Status


def clock(t, x):
    return np.ones_like(x)


def wave(t, x, frequency=1.0):
    return np.sin(2.0 * np.pi * frequency * (t - 0.1))


WAVE = Event(wave)


@pytest.mark.parametrize("method", ["dop853", "tsit5", "bs3", "rodas5p", "esdirk4"])
def test_an_event_faster_than_the_state(method):
    found = solve_ode(clock, (0.0, 10.0), 0.0, method=method, events=WAVE)
    exact = 0.1 + 0.5 * np.arange(20)
    assert found.success and found.events["t"] == pytest.approx(exact, abs=1e-9)


@pytest.mark.long
def test_waves_of_any_frequency():
    for frequency in (0.01, 0.3, 7.3, 31.0, 203.7):
        found = solve_ode(
            lambda t, x, f: np.ones_like(x), (0.0, 10.0), 0.0, args=(frequency,), events=WAVE
        )
        first = np.ceil(-2.0 * frequency * 0.1 + 1e-12)
        exact = 0.1 + np.arange(first, 2.0 * frequency * 9.9) / (2.0 * frequency)
        exact = exact[(exact > 1e-12) & (exact <= 10.0)]
        assert found.events["t"] == pytest.approx(exact, abs=1e-9)


def test_a_long_first_step_and_fixed_steps():
    exact = 0.1 + 0.5 * np.arange(20)
    for options in ({"first_step": 10.0}, {"method": "rk4", "dt": 2.5}):
        found = solve_ode(clock, (0.0, 10.0), 0.0, events=WAVE, **options)
        assert found.events["t"] == pytest.approx(exact, abs=1e-9)
    back = solve_ode(clock, (10.0, 0.0), 0.0, events=WAVE)
    assert back.events["t"] == pytest.approx(exact[::-1], abs=1e-9)


@pytest.mark.long
def test_sums_of_waves_against_a_fine_grid():
    rng = np.random.default_rng(3)
    event = Event(lambda t, x, a, w, p: np.sum(a * np.sin(w * t + p)) + 0.1)
    t = np.linspace(0.0, 8.0, 200_001)
    for _ in range(20):
        a, w, p = rng.normal(size=(3, 4)) * np.array([[1.0], [6.0], [2.0]])
        values = np.sin(t[:, None] * w + p) @ a + 0.1
        changes = t[np.flatnonzero(np.diff(np.sign(values)) != 0.0)]
        found = solve_ode(
            lambda t, x, a, w, p: np.ones_like(x), (0.0, 8.0), 0.0, args=(a, w, p), events=event
        )
        assert found.events["t"] == pytest.approx(changes, abs=6e-5)


@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6, 1e-8])
def test_two_crossings_close_together(eps):
    event = Event(lambda t, x, eps: x[0] + 1.0 - eps)
    found = solve_ode(
        lambda t, x, eps: np.stack([x[1], -x[0]]),
        (0.0, 6.0),
        [1.0, 0.0],
        args=(eps,),
        events=event,
        rtol=1e-12,
        atol=1e-13,
    )
    exact = np.pi + np.arccos(1.0 - eps) * np.array([-1.0, 1.0])
    assert found.events["t"] == pytest.approx(exact, abs=1e-4 * np.sqrt(eps))


def test_a_short_excursion():
    # Negative for 1/25 of the span: longer than a hundredth, so it must be seen.
    event = Event(lambda t, x: 1.0 - 2.0 * np.exp(-(((t - 6.2) / 0.24) ** 2)))
    found = solve_ode(clock, (0.0, 10.0), 0.0, events=event)
    half = 0.24 * np.sqrt(np.log(2.0))
    assert found.events["t"] == pytest.approx([6.2 - half, 6.2 + half], abs=1e-9)
    # A shorter one is certain with a shorter max_step.
    narrow = Event(lambda t, x: 1.0 - 2.0 * np.exp(-(((t - 6.2) / 1e-3) ** 2)))
    found = solve_ode(clock, (0.0, 10.0), 0.0, events=narrow, max_step=1e-3)
    half = 1e-3 * np.sqrt(np.log(2.0))
    assert found.events["t"] == pytest.approx([6.2 - half, 6.2 + half], abs=1e-9)


def test_a_direction_among_many_crossings():
    up = Event(lambda t, x: np.sin(2.0 * np.pi * (t - 0.1)), direction=1)
    down = Event(lambda t, x: np.sin(2.0 * np.pi * (t - 0.1)), direction=-1)
    found = solve_ode(clock, (0.0, 10.0), 0.0, events=[up, down])
    assert found.events["t"] == pytest.approx(0.1 + 0.5 * np.arange(20), abs=1e-9)
    assert found.events["event"].tolist() == [0, 1] * 10
    third = solve_ode(
        clock, (0.0, 10.0), 0.0, events=Event(up.fn, direction=-1, terminal=True), first_step=5.0
    )
    assert third.status == Status.EVENT and third.t[-1] == pytest.approx(0.6, abs=1e-9)


@pytest.mark.long
def test_the_same_events_in_a_batch_and_recorded():
    rates = np.array([1.0, 2.0, 3.0])

    def g(t, x, rate):
        return np.sin(2.0 * np.pi * rate * (t - 0.1))

    count = Event(g, reset=lambda t, x, rate: x + 1.0)

    def still(t, x, rate):
        return 0.0 * x

    many = solve_ode(
        still, (0.0, 5.0), np.zeros(3), in_axes=0, args=(rates,), events=count, t_eval=[5.0]
    )
    assert many.x[:, -1].tolist() == [10.0, 20.0, 30.0]
    end = arc.compile(lambda r: odeint(still, (0.0, 5.0), 0.0, args=(r,), events=count))
    assert [float(end(r)) for r in rates] == [10.0, 20.0, 30.0]


# ---- truth values ------------------------------------------------------------------------


def falling(t, x):
    return -x


def test_a_truth_value_fires_where_it_changes():
    found = solve_ode(falling, (0.0, 2.0), 1.0, events=Event(lambda t, x: x < 0.5))
    assert found.events["t"] == pytest.approx([np.log(2.0)], abs=1e-8)
    # From False to True is up.
    for direction, count in ((1, 1), (-1, 0), (0, 1)):
        event = Event(lambda t, x: x < 0.5, direction=direction)
        assert len(solve_ode(falling, (0.0, 2.0), 1.0, events=event).events["t"]) == count
    stop = Event(lambda t, x: (x < 0.5) & (t > 0.9), terminal=True)
    ended = solve_ode(falling, (0.0, 2.0), 1.0, events=stop)
    assert ended.status == Status.EVENT and ended.t[-1] == pytest.approx(0.9, abs=1e-12)


def test_a_truth_value_that_changes_often():
    event = Event(lambda t, x: np.sin(2.0 * np.pi * (t - 0.1)) > 0.0)
    found = solve_ode(clock, (0.0, 10.0), 0.0, events=event)
    assert found.events["t"] == pytest.approx(0.1 + 0.5 * np.arange(20), abs=1e-9)


def test_bouncing_with_a_truth_value():
    below = Event(
        lambda t, x: (x[0] < 0.0) & (x[1] < 0.0), direction=1, reset=lambda t, x: x * [1.0, -1.0]
    )
    found = solve_ode(lambda t, x: np.stack([x[1], -9.81]), (0.0, 2.0), [1.0, 0.0], events=below)
    first = np.sqrt(2.0 / 9.81)
    assert found.events["t"] == pytest.approx([first, 3.0 * first], abs=1e-8)


def test_an_event_function_that_becomes_nan():
    event = Event(lambda t, x: np.sqrt(0.5 - t))
    found = solve_ode(clock, (0.0, 1.0), 0.0, events=event)
    assert found.status == Status.NON_FINITE and "event function" in found.message


def test_rest_and_touch_do_not_fire():
    quiet = Event(lambda t, x: 0.0 * x)
    touch = Event(lambda t, x: (t - 1.0) ** 2)
    flat = Event(lambda t, x: np.maximum(t - 1.0, 0.0))
    found = solve_ode(clock, (0.0, 2.0), 0.0, events=[quiet, touch, flat])
    assert found.success and found.events["t"].size == 0


def test_functions_that_write_into_the_state_they_are_given():
    def below(t, x):
        x -= 0.5
        return x[0]

    def bounce(t, x):
        x[1] = -0.8 * x[1]
        return x

    def count(t, x, u):
        x *= 0.0
        u += 1.0
        return u

    stop = Event(below, terminal=True)
    assert odeint(falling, (0.0, 1.0), np.ones(1), events=stop) == pytest.approx([0.5])
    fall = lambda t, x: np.stack([x[1], -9.81])
    given = [
        solve_ode(fall, (0.0, 1.0), [1.0, 0.0], events=Event(lambda t, x: x[0], -1, reset=reset))
        for reset in (bounce, lambda t, x: x * np.array([1.0, -0.8]))
    ]
    assert np.array_equal(given[0].x, given[1].x)
    assert np.array_equal(given[0].events["x_before"], given[1].events["x_before"])
    part = arc.Sampled(count, init=np.zeros(1), dt=0.25)
    found = solve_ode(lambda t, x, u: -x, (0.0, 1.0), np.ones(2), sampled=part)
    assert found.u[-1] == 5.0 and found.x[-1] == pytest.approx(np.exp(-np.ones(2)), abs=1e-8)
