"""Derivatives of solves: all ways to ask for them, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import Quaternion
from tests.simulate.solve_derivative_cases import bounce, decay, drop, falling, forced, hits

ONE = np.ones(())
WAYS = {
    "grad": arc.grad,
    "jac": arc.jac,
    "jvp": lambda fn: lambda p: arc.jvp(fn)(p, ONE),
    "vjp": lambda fn: lambda p: arc.vjp(fn)(p, ONE),
}


def final(T):
    return arc.odeint(decay, (0.0, T), 1.0)


@pytest.mark.parametrize("outer", WAYS)
@pytest.mark.parametrize("inner", WAYS)
def test_every_way_of_a_second_derivative(outer, inner):
    found = WAYS[outer](WAYS[inner](final))(1.5)
    assert np.isclose(found, np.exp(-1.5), rtol=1e-8)


def test_reverse_three_times():
    assert np.isclose(arc.grad(arc.grad(arc.grad(final)))(1.5), -np.exp(-1.5), rtol=1e-8)


def test_fifth_derivative():
    def sine(T):
        return arc.odeint(lambda t, x: np.cos(t), (0.0, T), 0.0)

    fn = sine
    for _ in range(5):
        fn = WAYS["jvp"](fn)
    assert np.isclose(fn(1.5), np.cos(1.5), rtol=1e-12)


def test_examples_of_the_issue():
    second = arc.grad(arc.grad(lambda T: arc.odeint(lambda t, x: -x, (0.0, T), 1.0)))
    assert abs(second(1.5) - 0.22313016014842982) < 1e-9
    speed = arc.grad(arc.grad(lambda h: drop(h, (0.0, 10.0), hits(terminal=True))[1]))
    assert abs(speed(5.0) - 0.25 * np.sqrt(2 * 9.81) * 5.0**-1.5) < 1e-9  # 0.0990


@pytest.mark.long
def test_backends_give_the_same_bits():
    def both(p):
        ball = arc.hess(lambda h: drop(h, (0.0, 1.0), hits(reset=bounce), "heun", dt=0.25)[0])
        times = arc.hess(lambda s: arc.odeint(forced, (s, 2.0 * s), 1.0, "heun", dt=0.25))
        return np.stack([ball(p), times(p)])

    runs = [arc.compile(both, backend=name) for name in ("interpreter", "llvm")]
    first, second = (run(1.2) for run in runs)
    assert first.tobytes() == second.tobytes()


@pytest.mark.long
def test_batches():
    ends = np.array([0.5, 1.0, 1.5])
    assert np.allclose(arc.vmap(arc.grad(arc.grad(final)))(ends), np.exp(-ends), rtol=1e-8)
    total = arc.grad(lambda T: np.sum(arc.vmap(arc.grad(final))(T)))
    assert np.allclose(total(ends), np.exp(-ends), rtol=1e-8)
    speed = arc.vmap(arc.hess(lambda h: drop(h, (0.0, 5.0), hits(terminal=True))[1]))
    heights = np.array([2.0, 3.0, 5.0])
    assert np.allclose(speed(heights), 0.25 * np.sqrt(2 * 9.81) * heights**-1.5, rtol=1e-9)


@pytest.mark.long
def test_hessian_of_all_that_a_bounce_depends_on():
    def height(p):
        h, e, g, T = p
        event = arc.Event(
            lambda t, x, g: x[0],
            direction=-1,
            reset=lambda t, x, g: np.stack([x[0], -e * x[1]]),  # e is closed over
        )
        return arc.odeint(
            lambda t, x, g: np.stack([x[1], -g + 0.0 * x[0]]),
            (0.0, T),
            np.stack([h, 0.0 * h]),
            "bs3",
            args=(g,),
            events=event,
        )[0]

    def exact(p):
        h, e, g, T = p
        t = np.sqrt(2.0 * h / g)
        return e * g * t * (T - t) - g * (T - t) ** 2 / 2.0

    point = np.array([2.0, 0.8, 9.81, 1.0])
    wanted = arc.hess(exact)(point)
    assert np.allclose(arc.hess(height)(point), wanted, rtol=1e-10, atol=1e-10)
    assert np.allclose(arc.jac(arc.jac(height))(point), wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("method", ["dopri5", "rodas5p", "esdirk4"])
def test_hessian_of_a_nonlinear_solution(method):
    """Logistic growth in rate, state, end and start: Newton's iteration is differentiated too."""

    def exact(p):
        r, x, T, t = p
        return 1.0 / (1.0 + (1.0 / x - 1.0) * np.exp(-r * (T - t)))

    def solved(p):
        r, x, T, t = p
        return arc.odeint(lambda t, x, r: r * x * (1.0 - x), (t, T), x, method, args=(r,))

    point = np.array([1.7, 0.2, 2.0, 0.3])
    wanted = arc.hess(exact)(point)
    assert np.abs(arc.hess(solved)(point) - wanted).max() < 1e-6 * np.abs(wanted).max()


def test_outputs_depend_on_their_own_time_only():
    times = np.array([0.2, 0.4, 1.2])
    found = arc.jac(lambda t: arc.odeint(decay, (0.0, 1.5), 1.0, t_eval=t))(times)
    assert np.allclose(found, np.diag(-np.exp(-times)), rtol=1e-7)


def test_attitudes_stay_on_their_manifold():
    def scalar_part(T):
        def spin(t, q):
            return q.kinematics(np.array([0.0, 0.0, 2.0]), baumgarte=0.0)

        return arc.odeint(spin, (0.0, T), Quaternion([1.0, 0.0, 0.0, 0.0])).array[0]

    # q = (cos T, 0, 0, sin T)
    assert np.isclose(arc.hess(scalar_part)(0.7), -np.cos(0.7), rtol=1e-7)


def test_float32():
    def single(T):
        return np.sum(arc.odeint(decay, (0.0, T), np.ones(1, dtype=np.float32)))

    assert np.isclose(arc.hess(single)(1.5), np.exp(-1.5), rtol=1e-6)
    assert arc.hess(final)(np.float32(1.5)).dtype == np.float32


def test_solves_in_loops_and_in_solves():
    def three(T):
        step = lambda x, _: (arc.odeint(decay, (0.0, T), x, "tsit5"), None)
        return arc.scan(step, 1.0 + 0.0 * T, length=3)[0]

    assert np.isclose(arc.hess(three)(0.5), 9.0 * np.exp(-1.5), rtol=1e-7)

    def nested(T):
        def rate(t, x):  # x exp(-t)
            return arc.odeint(lambda s, y: -y, (0.0, t), x, "rk4", dt=0.05)

        return arc.odeint(rate, (0.0, T), 1.0, "rk4", dt=0.05)

    # x' = x exp(-t): x = exp(1 - exp(-t))
    T = 0.7
    exact = np.exp(1.0 - np.exp(-T)) * (np.exp(-2.0 * T) - np.exp(-T))
    assert np.isclose(WAYS["jvp"](WAYS["jvp"](nested))(T), exact, rtol=1e-5)


# ---- inputs and sampled parts --------------------------------------------------------------


def test_inputs_take_a_traced_end():
    def driven(T):
        return arc.odeint(lambda t, x, u: u, (0.0, T), 0.0, inputs=lambda t: np.cos(t))

    assert np.isclose(arc.hess(driven)(1.5), -np.sin(1.5), rtol=1e-8)
    start = arc.hess(
        lambda s: arc.odeint(lambda t, x, u: u, (s, 2.0), 0.0, inputs=lambda t: np.cos(t))
    )
    assert np.isclose(start(0.7), np.sin(0.7), rtol=1e-8)


def test_sampled_parts_take_a_traced_end():
    hold = arc.Sampled(lambda t, x, u: -2.0 * x, init=0.0, dt=0.5)

    def held(T):
        return arc.odeint(lambda t, x, u: -x + u, (0.0, T), 1.0, sampled=hold)

    # Between samples x' = u - x, so that x'' = -x'.
    first, second = arc.grad(held)(1.7), arc.hess(held)(1.7)
    assert np.isclose(second, -first, rtol=1e-12)
    assert np.isnan(arc.compile(held)(-1.0))
    with pytest.raises(arc.TraceError, match=r"t_span\[0\] is traced.*start that is a number"):
        arc.grad(lambda s: arc.odeint(decay, (s, 1.0), 1.0, sampled=hold))(0.0)


# ---- where there is no derivative ----------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "event", [lambda t, x, p: x < p, lambda t, x, p: np.sign(x - p)], ids=["comparison", "sign"]
)
def test_times_of_events_without_slope_are_unknown(way, event):
    def after(p):
        changed = arc.Event(event, reset=lambda t, x, p: x + 1.0)
        return arc.odeint(lambda t, x, p: -x, (0.0, 1.0), 1.0, "bs3", args=(p,), events=changed)

    assert np.isfinite(arc.compile(after)(0.5))
    assert np.isnan(WAYS[way](after)(0.5))


@pytest.mark.long
def test_a_truth_value_of_time_alone_does_not_move():
    def after(p):
        changed = arc.Event(lambda t, x, p: t > 0.5, reset=lambda t, x, p: x + p * p)
        return arc.odeint(lambda t, x, p: -x, (0.0, 1.0), 1.0, "tsit5", args=(p,), events=changed)

    assert np.isclose(arc.grad(after)(0.7), 1.4 * np.exp(-0.5), rtol=1e-7)
    assert np.isclose(arc.hess(after)(0.7), 2.0 * np.exp(-0.5), rtol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_failed_solves_have_no_derivative(way):
    """x' = x^2 from 1 has no solution beyond t = 1."""

    def squares(t, x):
        return x * x

    assert np.isnan(WAYS[way](lambda T: arc.odeint(squares, (0.0, T), 1.0))(1.5))
    assert np.isnan(WAYS[way](lambda x: arc.odeint(squares, (0.0, 1.5), x))(1.0))
    assert np.isnan(WAYS[way](lambda T: arc.odeint(decay, (0.0, T), 1.0, max_steps=2))(1.5))


def test_outputs_that_were_not_reached_have_no_derivative():
    times = np.array([0.2, 1.2])
    found = arc.jac(lambda h: drop(h, (0.0, 2.0), hits(terminal=True), t_eval=times)[0])(2.0)
    assert found[0] == 1.0 and np.isnan(found[1])


def test_no_outputs():
    none = np.zeros(0)
    assert arc.compile(lambda x: arc.odeint(decay, (0.0, 1.0), x, t_eval=none))(1.0).shape == (0,)
    total = arc.grad(lambda x: np.sum(arc.odeint(decay, (0.0, 1.0), x, t_eval=none)))
    assert total(1.0) == 0.0


def test_events_at_the_ends_of_the_span():
    """At the start an event has been; one that rounding puts behind the end has not."""
    start = arc.jac(lambda v: arc.odeint(falling, (0.0, 0.5), np.stack([0.0 * v, v]), "bs3"))
    there = arc.jac(
        lambda v: arc.odeint(
            falling, (0.0, 0.5), np.stack([0.0 * v, v]), "bs3", events=hits(reset=bounce)
        )
    )
    assert np.array_equal(start(5.0), there(5.0))
    ends = drop(9.81 / 2.0, (0.0, 1.0), hits(reset=bounce))
    slope = arc.jac(lambda h: drop(h, (0.0, 1.0), hits(reset=bounce)))(9.81 / 2.0)
    wanted = [1.0, 0.0] if ends[1] < 0.0 else [-0.8, 1.8]
    assert np.allclose(slope, wanted, rtol=1e-9)


def test_cvode_says_what_to_use():
    with pytest.raises(arc.ArchimedesError, match="rodas5p"):
        arc.grad(lambda T: arc.odeint(decay, (0.0, T), 1.0, "cvode"))(1.0)
