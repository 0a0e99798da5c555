"""Sampled parts and inputs against exact discretisations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.simulate import Event, InputSeries, Sampled, odeint, solve_ode

GAIN = np.array([2.0, 1.5])
H = 0.1


def plant(t, x, u):
    return np.stack([x[1], u])


def feedback(t, x, u, *args):
    return -(GAIN[0] * x[0] + GAIN[1] * x[1])


def exact_loop(x, steps):
    """States and inputs of the double integrator under sampled feedback, by matrix exponential."""
    whole = np.zeros((3, 3))
    whole[0, 1] = whole[1, 2] = 1.0
    step = expm(whole * H)
    states, inputs = [np.asarray(x)], []
    for _ in range(steps):
        inputs.append(-GAIN @ states[-1])
        states.append(step[:2, :2] @ states[-1] + step[:2, 2] * inputs[-1])
    return np.array(states), np.array(inputs)


@pytest.mark.parametrize("method", ["dop853", "tsit5", "rodas5p"])
def test_sampled_controller(method):
    states, inputs = exact_loop([1.0, 0.0], 50)
    times = H * np.arange(51)
    part = Sampled(feedback, init=0.0, dt=H)
    found = solve_ode(plant, (0.0, 5.0), [1.0, 0.0], method=method, sampled=part, t_eval=times)
    assert found.success
    assert found.x == pytest.approx(states, abs=1e-12)
    assert found.u[:50] == pytest.approx(inputs, abs=1e-12)
    steps = solve_ode(plant, (0.0, 5.0), [1.0, 0.0], method=method, sampled=part)
    assert steps(times) == pytest.approx(states, abs=1e-12)
    assert set(np.round(times, 12)) <= set(np.round(steps.t, 12))
    fixed = solve_ode(plant, (0.0, 5.0), [1.0, 0.0], method="rk4", dt=0.03, sampled=part)
    assert fixed.x[-1] == pytest.approx(states[-1], abs=1e-12)


def test_several_rates_see_each_other_in_order():
    # A counter every 0.5 s, and every 0.25 s a copy of it: the copy is a sample behind the counter
    # if it comes first in the list.
    count = Sampled(lambda t, x, u: u[1] + 1.0, init=0.0, dt=0.5)
    copy = Sampled(lambda t, x, u: 10.0 * u[1], init=0.0, dt=0.25)

    def still(t, x, u):
        return 0.0 * x

    times = [0.0, 0.3, 0.6, 0.8, 1.0]
    found = solve_ode(still, (0.0, 1.1), 1.0, sampled=[copy, count], t_eval=times)
    assert found.u[1].tolist() == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert found.u[0].tolist() == [0.0, 10.0, 10.0, 20.0, 20.0]


def test_offset_and_times():
    ramp = {"init": 0.0, "update": lambda t, x, u: t}
    still = lambda t, x, u: 0.0 * x
    times = np.array([0.0, 0.19, 0.21, 0.69, 0.71, 0.95])
    late = solve_ode(
        still, (0.0, 1.0), 0.0, sampled=Sampled(**ramp, dt=0.5, offset=0.2), t_eval=times
    )
    assert late.u == pytest.approx([0.0, 0.0, 0.2, 0.2, 0.7, 0.7])
    given = Sampled(**ramp, times=[0.2, 0.3, 0.9])
    assert solve_ode(still, (0.0, 1.0), 0.0, sampled=given, t_eval=times).u == pytest.approx(
        [0.0, 0.0, 0.2, 0.3, 0.3, 0.9]
    )


@pytest.mark.parametrize("method", ["foh", "zoh"])
def test_input_series(method):
    rng = np.random.default_rng(3)
    t, u = np.sort(rng.uniform(0.2, 4.0, 12)), rng.standard_normal(12)
    series = InputSeries(t, u, hold=method)

    def exact(time):
        if method == "foh":
            return np.interp(time, t, u)
        return u[np.clip(np.searchsorted(t, time, side="right") - 1, 0, None)]

    for time in (0.0, t[3], 0.5 * (t[3] + t[4]), 9.0):
        assert float(series(time)) == pytest.approx(exact(time), abs=1e-14)
    x, knots = np.array([0.3]), np.r_[0.0, t, 5.0]
    for a, b in pairwise(knots):
        middle = exact(0.5 * (a + b))

        def slope(s, y, middle=middle):
            return (exact(s) if method == "foh" else middle) - y

        x = solve_ivp(slope, (a, b), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    found = solve_ode(lambda t, x, u: u - x, (0.0, 5.0), [0.3], inputs=series)
    assert found.x[-1] == pytest.approx(x, abs=1e-9)
    assert found.stats["rejected"] <= 3
    assert found.u.shape == found.t.shape


def test_input_function_and_sampled_part_together():
    part = Sampled(lambda t, x, u, k: {"sum": u["sum"] + x}, init={"sum": 0.0}, dt=1.0)
    found = solve_ode(
        lambda t, x, v, u, k: k * v + 0.0 * u["sum"],
        (0.0, 2.0),
        1.0,
        inputs=np.cos,
        sampled=part,
        args=(2.0,),
        t_eval=[0.0, 0.5, 1.5, 2.0],
    )
    values, memory = found.u
    assert found.x == pytest.approx(1.0 + 2.0 * np.sin(found.t), abs=1e-9)
    assert values == pytest.approx(np.cos(found.t))
    one, two = 1.0 + 2.0 * np.sin([1.0, 2.0])
    assert memory["sum"] == pytest.approx([1.0, 1.0, 2.0 + 2.0 * np.sin(1.0), 1.0 + one + two])


@pytest.mark.long
def test_batches_and_events():
    start = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    times = H * np.arange(31)
    part = Sampled(feedback, init=0.0, dt=H)
    crossing = Event(lambda t, x, u: x[0])
    given = {"sampled": part, "t_eval": times, "events": crossing}
    many = solve_ode(plant, (0.0, 3.0), start, in_axes=0, **given)
    for k, x in enumerate(start):
        assert many.x[k] == pytest.approx(exact_loop(x, 30)[0], abs=1e-11)
        alone = solve_ode(plant, (0.0, 3.0), x, **given)
        assert np.array_equal(alone.x, many.x[k]) and np.array_equal(alone.u, many.u[k])
    assert many.events["count"][0, 0] == 1


def test_gradient_through_a_sampled_loop():
    part = Sampled(lambda t, x, u, k: -(k[0] * x[0] + k[1] * x[1]), init=0.0, dt=H)

    def end(k):
        return odeint(
            lambda t, x, u, k: plant(t, x, u), (0.0, 2.0), [1.0, 0.0], args=(k,), sampled=part
        )

    def exact(k):
        # The matrix exponential of the double integrator in closed form.
        x = np.array([1.0, 0.0])
        for _ in range(20):
            u = -(k[0] * x[0] + k[1] * x[1])
            x = np.stack([x[0] + H * x[1] + 0.5 * H * H * u, x[1] + H * u])
        return x

    assert end(GAIN) == pytest.approx(exact(GAIN), abs=1e-12)
    assert arc.jac(end)(GAIN) == pytest.approx(arc.jac(exact)(GAIN), abs=1e-11)


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="give either dt, the period, or times"):
        Sampled(feedback, init=0.0)
    with pytest.raises(ValueError, match="dt must be positive"):
        Sampled(feedback, init=0.0, dt=0)
    with pytest.raises(TypeError, match=r"sampled\[0\] is a function: write sampled="):
        solve_ode(plant, (0.0, 1.0), [1.0, 0.0], sampled=[feedback])
    with pytest.raises(TypeError, match=r"inputs is a float: write a function u\(t\)"):
        solve_ode(plant, (0.0, 1.0), [1.0, 0.0], inputs=1.0)
    with pytest.raises(ValueError, match="goes back in time"):
        solve_ode(plant, (1.0, 0.0), [1.0, 0.0], sampled=Sampled(feedback, init=0.0, dt=H))
    wide = Sampled(lambda t, x, u: x, init=0.0, dt=H)
    with pytest.raises(TraceError, match=r"sampled\[0\].update must return a memory like its init"):
        solve_ode(plant, (0.0, 1.0), [1.0, 0.0], sampled=wide)
    with pytest.raises(ValueError, match=r"but t\[0\] = 0 is followed by t\[1\] = 0"):
        InputSeries([0.0, 0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="hold='cubic' is not one of"):
        InputSeries([0.0, 1.0], [1.0, 2.0], hold="cubic")
    with pytest.raises(ValueError, match=r"u has shape \(3,\), but there are 2 times"):
        InputSeries([0.0, 1.0], [1.0, 2.0, 3.0])


# ---- keys --------------------------------------------------------------------------------------


def noisy(t, x, u, *args, key):
    return arc.random.normal(key)


def expected_noise(key, place, samples):
    base = arc.random.fold_in(key, place)
    return np.array([arc.random.normal(arc.random.fold_in(base, k)) for k in range(samples)])


@pytest.mark.parametrize("times", [None, np.array([0.0, 0.1, 0.25, 0.7])])
def test_a_part_gets_a_key_for_each_sample(times):
    key = arc.random.key(6)
    rate = {"dt": 0.1} if times is None else {"times": times}
    at = 0.1 * np.arange(10) if times is None else times
    part = Sampled(noisy, init=0.0, key=key, **rate)
    found = solve_ode(lambda t, x, u: u - x, (0.0, 0.95), 0.0, sampled=part, t_eval=at + 0.01)
    np.testing.assert_array_equal(found.u, expected_noise(key, 0, len(at)))
    again = solve_ode(lambda t, x, u: u - x, (0.0, 0.95), 0.0, sampled=part, t_eval=at + 0.01)
    np.testing.assert_array_equal(again.x, found.x)


def test_parts_with_one_key_differ():
    key = arc.random.key(6)
    parts = [Sampled(noisy, init=0.0, dt=0.1, key=key) for _ in range(2)]
    at = 0.1 * np.arange(4) + 0.05
    found = solve_ode(lambda t, x, u: u[0] + u[1], (0.0, 0.4), 0.0, sampled=parts, t_eval=at)
    for place in (0, 1):
        np.testing.assert_array_equal(found.u[place], expected_noise(key, place, 4))


def test_a_key_of_its_own_for_each_instance_of_a_batch():
    keys = arc.random.split(arc.random.key(1), 5)
    part = Sampled(noisy, init=0.0, dt=0.1, key=lambda key: key)

    def plant(t, x, u, key):
        return u - x

    at = np.array([0.05, 0.15])
    batch = solve_ode(
        plant, (0.0, 0.2), np.zeros((5, 1)), args=(keys,), in_axes=(0, 0), sampled=part, t_eval=at
    )
    for k, key in enumerate(keys):
        np.testing.assert_array_equal(batch.u[k], expected_noise(key, 0, 2))
        alone = solve_ode(plant, (0.0, 0.2), [0.0], args=(key,), sampled=part, t_eval=at)
        np.testing.assert_array_equal(batch.x[k], alone.x)


def test_a_wrong_key():
    with pytest.raises(TypeError, match=r"Sampled: key must be a key"):
        Sampled(noisy, init=0.0, dt=0.1, key=7)


def test_hidden_randomness_in_a_part():
    rng = np.random.default_rng(0)
    part = Sampled(lambda t, x, u: rng.normal(), init=0.0, dt=0.1)
    with pytest.raises(TraceError, match=r"arc\.random"):
        solve_ode(lambda t, x, u: u - x, (0.0, 1.0), 0.0, sampled=part)
