"""Events against closed forms; cases that could hang end with a status."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.simulate.events.event import Event
from archimedes.simulate.ode import odeint, solve_ode
from archimedes.simulate.statuses import Status

G = 9.81


def fall(t, x):
    return np.stack([x[1], -G + 0.0 * x[1]])


def floor(e):
    return Event(lambda t, x: x[0], direction=-1, reset=lambda t, x: np.stack([x[0], -e * x[1]]))


def bounces(height, e, count):
    """Times of the bounces of a ball dropped from rest."""
    first = np.sqrt(2.0 * height / G)
    return first * (1.0 + 2.0 * np.cumsum(np.r_[0.0, e ** np.arange(1, count)]))


def height_at(times, height, e):
    """Height of the bouncing ball in closed form."""
    at = bounces(height, e, 60)
    k = np.searchsorted(at, times)
    speed = np.sqrt(2.0 * G * height) * e**k
    since = times - at[np.maximum(k, 1) - 1]
    return np.where(k == 0, height - G * times**2 / 2, speed * since - G * since**2 / 2)


def oscillate(t, x):
    return np.stack([x[1], -x[0]])


@pytest.mark.parametrize("method", ["dop853", "tsit5", "bs3", "rodas5p", "esdirk4"])
def test_twenty_bounces(method):
    exact = bounces(1.0, 0.8, 20)
    found = solve_ode(fall, (0.0, exact[-1] + 1e-3), [1.0, 0.0], method=method, events=[floor(0.8)])
    assert found.success and found.events["event"].tolist() == [0] * 20
    assert np.abs(found.events["t"] - exact).max() < 1e-11
    assert found.events["x_after"][:, 1] == pytest.approx(-0.8 * found.events["x_before"][:, 1])


def test_outputs_between_bounces():
    times = np.linspace(0.0, 3.5, 57)
    exact = height_at(times, 1.0, 0.8)
    given = {"events": floor(0.8), "t_eval": times}
    assert solve_ode(fall, (0.0, 3.5), [1.0, 0.0], **given).x[:, 0] == pytest.approx(
        exact, abs=1e-11
    )
    kept = solve_ode(fall, (0.0, 3.5), [1.0, 0.0], dense=True, **given)
    assert kept.x[:, 0] == pytest.approx(exact, abs=1e-11)
    steps = solve_ode(fall, (0.0, 3.5), [1.0, 0.0], events=floor(0.8))
    assert steps(times)[:, 0] == pytest.approx(exact, abs=1e-11)
    # At an event there are two samples: speed falls, then rises.
    twice = np.flatnonzero(np.diff(steps.t) == 0.0)
    assert np.array_equal(steps.t[twice], steps.events["t"])
    assert (steps.x[twice, 1] < 0.0).all() and (steps.x[twice + 1, 1] > 0.0).all()
    last = odeint(fall, (0.0, 3.5), [1.0, 0.0], events=floor(0.8))
    assert last[0] == pytest.approx(exact[-1], abs=1e-11)


@pytest.mark.parametrize("method", ["dop853", "tsit5", "rodas5p"])
def test_terminal_time(method):
    stop = Event(lambda t, x: x[0], terminal=True)
    found = solve_ode(
        oscillate, (0.0, 9.0), [1.0, 0.0], method=method, events=stop, rtol=1e-11, atol=1e-13
    )
    assert found.status == Status.EVENT and found.success
    assert abs(found.t[-1] - np.pi / 2) < 1e-10
    assert found.x[-1] == pytest.approx([0.0, -1.0], abs=1e-10)
    assert f"terminal event occurred at t = {found.t[-1]:.17g}" in found.message


def test_direction_and_going_back():
    for direction, places in ((1, [1.5]), (-1, [0.5]), (0, [0.5, 1.5])):
        event = Event(lambda t, x: x[0], direction=direction)
        found = solve_ode(oscillate, (0.0, 6.0), [1.0, 0.0], events=event)
        assert found.events["t"] == pytest.approx(np.pi * np.array(places), abs=1e-8)
        back = solve_ode(oscillate, (0.0, -6.0), [1.0, 0.0], events=event)
        assert back.events["t"] == pytest.approx(-np.pi * np.array(places), abs=1e-8)


def test_simultaneous_events_fire_in_order():
    ramp = lambda t, x: np.ones_like(x)
    double = Event(lambda t, x: t - 1.0, reset=lambda t, x: 2.0 * x)
    add = Event(lambda t, x: x[0] - 1.0, reset=lambda t, x: x + 1.0)
    first = solve_ode(ramp, (0.0, 2.0), [0.0, 0.0], events=[double, add])
    assert first.events["event"].tolist() == [0, 1] and np.ptp(first.events["t"]) == 0.0
    assert first.x[-1] == pytest.approx([4.0, 4.0])
    second = solve_ode(ramp, (0.0, 2.0), [0.0, 0.0], events=[add, double])
    assert second.x[-1] == pytest.approx([5.0, 5.0])


def test_crossing_twice_within_a_step_is_seen():
    # Two roots 2 sqrt(2 eps) apart, much closer than steps are long.
    for eps in (1e-3, 1e-5):
        event = Event(lambda t, x, eps: x[0] + 1.0 - eps)
        found = solve_ode(
            lambda t, x, eps: oscillate(t, x), (0.0, 6.0), [1.0, 0.0], events=event, args=(eps,)
        )
        exact = np.pi + np.arccos(1.0 - eps) * np.array([-1.0, 1.0])
        assert found.events["t"] == pytest.approx(exact, abs=1e-6)


def test_grazing_ends_well():
    for eps in (1e-9, 0.0, -1e-9, -1e-3):
        event = Event(lambda t, x, eps=eps: x[0] + 1.0 - eps)
        found = solve_ode(oscillate, (0.0, 20.0), [1.0, 0.0], events=event)
        assert found.status == 0 and found.t[-1] == 20.0
        assert len(found.events["t"]) in (0, 2, 4, 6)


def test_accumulation_ends_with_a_status():
    found = solve_ode(fall, (0.0, 10.0), [1.0, 0.0], events=floor(0.5))
    assert found.status == Status.CHATTERING and not found.success
    assert "accumulate (Zeno)" in found.message
    assert found.t[-1] == pytest.approx(3.0 * np.sqrt(2.0 / G), abs=1e-9)
    exact = bounces(1.0, 0.5, 25)
    assert np.abs(found.events["t"][:25] - exact).max() < 1e-10


def test_chattering_ends_with_a_status():
    relay = solve_ode(lambda t, x: -np.sign(x), (0.0, 5.0), [1.0], events=Event(lambda t, x: x[0]))
    assert relay.status == Status.CHATTERING and relay.t[-1] == pytest.approx(1.0, abs=1e-6)
    # A ball that comes to rest fires for ever at the same place.
    rest = solve_ode(fall, (0.0, 5.0), [1.0, 0.0], events=floor(0.0))
    assert rest.status == Status.CHATTERING and rest.t[-1] == pytest.approx(np.sqrt(2.0 / G))


def test_fixed_steps_keep_their_grid():
    event = Event(lambda t, x: x[0])
    found = solve_ode(oscillate, (0.0, 5.0), [1.0, 0.0], method="rk4", dt=0.01, events=event)
    assert found.events["t"] == pytest.approx([np.pi / 2, 3 * np.pi / 2], abs=1e-8)
    between = np.setdiff1d(found.t, found.events["t"])
    assert between == pytest.approx(0.01 * np.arange(501), abs=1e-12)


def test_structs_and_arguments():
    @arc.struct
    class State:
        height: float
        speed: float

    def dynamics(t, x, g):
        return State(x.speed, -g)

    bounce = Event(
        lambda t, x, g: x.height,
        direction=-1,
        reset=lambda t, x, g: x.replace(speed=-0.8 * x.speed),
    )
    found = solve_ode(dynamics, (0.0, 2.0), State(1.0, 0.0), events=bounce, args=(G,))
    assert found.events["t"] == pytest.approx(bounces(1.0, 0.8, 3), abs=1e-11)
    assert isinstance(found.events["x_after"], State)


@pytest.mark.long
def test_batches_fire_each_on_its_own():
    heights = np.array([0.9, 1.1, 1.6, 2.0])
    start = np.stack([heights, 0.0 * heights], axis=1)
    times = np.linspace(0.0, 3.5, 29)
    given = {"t_eval": times, "events": floor(0.8)}
    many = solve_ode(fall, (0.0, 3.5), start, in_axes=0, **given)
    for k, height in enumerate(heights):
        assert many.x[k, :, 0] == pytest.approx(height_at(times, height, 0.8), abs=1e-10)
        alone = solve_ode(fall, (0.0, 3.5), start[k], **given)
        assert np.array_equal(alone.x, many.x[k])
        assert many.events["count"][k, 0] == len(alone.events["t"])
        own = many[k].events
        for name in ("t", "event", "x_before", "x_after"):
            assert np.array_equal(own[name], alone.events[name])
    total = int(many.events["count"].sum())
    assert f"events: {total} in 4 trajectories, 4 to 11 in each" in repr(many)
    zeno = solve_ode(fall, (0.0, 6.0), start, in_axes=0, t_eval=times, events=floor(0.5))
    assert (zeno.status == Status.CHATTERING).all()


@pytest.mark.long
def test_batches_keep_all_events():
    # More instances than a group has, of which some have no event; steps, and structs.
    starts = np.linspace(0.2, 3.0, 150)

    def decay(t, x):
        return {"a": -x["a"], "b": 0.0 * x["b"]}

    half = Event(lambda t, x: x["a"] - 0.5, reset=lambda t, x: {"a": x["a"], "b": x["b"] + 1.0})
    end = Event(lambda t, x: x["a"] - 0.25, terminal=True)
    x0 = {"a": starts, "b": np.zeros((150, 2))}
    for given in ({"t_eval": [0.5, 3.0]}, {"t_eval": np.linspace(0.0, 3.0, 50)}, {}):
        many = solve_ode(decay, (0.0, 3.0), x0, in_axes=0, events=[half, end], **given)
        fired = (starts > 0.5).astype(int)
        assert np.array_equal(many.events["count"][:, 0], fired)
        first = many.events["t"][starts > 0.5, 0]
        assert first == pytest.approx(np.log(starts[starts > 0.5] / 0.5), abs=1e-7)
        assert many.events["x_after"]["b"].shape == (150, 2, 2)
        for k in (0, 20, 149):
            alone = solve_ode(
                decay,
                (0.0, 3.0),
                {"a": starts[k], "b": np.zeros(2)},
                events=[half, end],
                **given,
            )
            assert np.array_equal(many[k].events["t"], alone.events["t"])
            assert np.array_equal(many[k].events["event"], alone.events["event"])
            assert np.array_equal(many[k].events["x_after"]["b"], alone.events["x_after"]["b"])
            assert np.array_equal(many[k].t, alone.t)
            assert np.array_equal(many[k].x["b"], alone.x["b"])
    none = solve_ode(decay, (0.0, 0.1), x0, in_axes=0, events=Event(lambda t, x: x["a"] + 1.0))
    assert none.events["t"].shape == (150, 0) and "events: 0" in repr(none)


def test_gradient_through_bounces():
    def height(h0):
        return odeint(fall, (0.0, 3.5), np.stack([h0, 0.0 * h0]), events=floor(0.8))[0]

    step = 1e-5
    exact = (height_at(3.5, 1.0 + step, 0.8) - height_at(3.5, 1.0 - step, 0.8)) / (2.0 * step)
    assert float(height(1.0)) == pytest.approx(float(height_at(3.5, 1.0, 0.8)), abs=1e-11)
    assert float(arc.jac(height)(1.0)) == pytest.approx(float(exact), rel=1e-8)
    assert float(arc.grad(height)(1.0)) == pytest.approx(float(exact), rel=1e-8)


def test_gradient_of_a_terminal_time():
    # The time is part of the state; it ends where x = exp(-k t) falls below a half.
    def time(k):
        stop = Event(lambda t, x, k: x[0] - 0.5, terminal=True)
        return odeint(
            lambda t, x, k: np.stack([-k * x[0], 1.0 + 0.0 * k]),
            (0.0, 9.0),
            [1.0, 0.0],
            args=(k,),
            events=stop,
            rtol=1e-11,
        )[1]

    assert float(arc.grad(time)(0.7)) == pytest.approx(-np.log(2.0) / 0.49, rel=1e-8)


def test_an_event_may_be_a_function():
    def below(t, x):
        return x[0]

    given = {"t": (0.0, 1.0), "x0": [1.0, 0.0]}
    single = solve_ode(fall, given["t"], given["x0"], events=below)
    several = solve_ode(fall, given["t"], given["x0"], events=[below, Event(below)])
    assert single.events["t"] == pytest.approx([np.sqrt(2.0 / G)])
    assert several.events["event"].tolist() == [0, 1]
    # As SciPy has it.
    below.terminal, below.direction = True, -1.0
    ended = solve_ode(fall, given["t"], given["x0"], events=below)
    assert ended.status == Status.EVENT and ended.t[-1] == pytest.approx(np.sqrt(2.0 / G))
    below.direction = 1
    assert solve_ode(fall, given["t"], given["x0"], events=below).status == 0


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="direction=2 is not one of -1, 0, 1"):
        Event(lambda t, x: x[0], direction=2)
    with pytest.raises(TypeError, match=r"fn must be a function fn\(t, x, \*args\), got float"):
        Event(1.0)
    with pytest.raises(TypeError, match="reset must be a function"):
        Event(lambda t, x: x[0], reset=3)
    with pytest.raises(TypeError, match=r"events\[1\] is a float: write a function g"):
        solve_ode(fall, (0.0, 1.0), [1.0, 0.0], events=[lambda t, x: x[0], 0.5])
    with pytest.raises(TypeError, match=r"events\[0\] is a type: write a function g"):
        solve_ode(fall, (0.0, 1.0), [1.0, 0.0], events=Event)
    with pytest.raises(ValueError, match=r"events\[0\].fn must return one number"):
        solve_ode(fall, (0.0, 1.0), [1.0, 0.0], events=Event(lambda t, x: x))
    wrong = Event(lambda t, x: x[0], reset=lambda t, x: x[:1])
    with pytest.raises(TraceError, match=r"reset returned x of shape \(1,\), the state has \(2,\)"):
        solve_ode(fall, (0.0, 1.0), [1.0, 0.0], events=wrong)
