"""Delays: responses against closed forms, and what combinations keep."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

import archimedes as arc
from archimedes import control as ac

s = ac.tf("s")
T = np.linspace(0.0, 6.0, 61)


def sum_of_powers(t, power):
    """The solution of dx/dt = -x(t - 1) by the method of steps, and its integral."""
    terms = range(int(t + 1e-9) + 1)
    return sum((-1) ** k * (t - k) ** (k + power) / factorial(k + power) for k in terms)


def test_delay_in_a_loop_is_exact():
    loop = ac.feedback(1 / s, ac.delay(1.0))
    impulse, step = (np.array([sum_of_powers(t, k) for t in T]) for k in (0, 1))
    np.testing.assert_allclose(ac.initial_response(loop, T, [1.0]).y[:, 0], impulse, atol=1e-12)
    np.testing.assert_allclose(ac.impulse_response(loop, T).y[:, 0], impulse, atol=1e-12)
    np.testing.assert_allclose(ac.step_response(loop, T).y[:, 0], step, atol=1e-12)
    w = np.array([0.1, 1.0, 5.0, 40.0])
    found = ac.frequency_response(loop, w).values[0, 0]
    np.testing.assert_allclose(found, 1.0 / (1j * w + np.exp(-1j * w)), rtol=1e-12)


def test_two_delays_that_no_step_divides():
    # Echoes: a direct path, one after 0.3 s, one after pi / 5 s, both.
    echo = (1.0 + 0.5 * ac.delay(0.3)) * (1.0 + 0.25 * ac.delay(np.pi / 5)) * (1 / (s + 1))
    wanted = np.zeros(len(T))
    for size, late in ((1.0, 0.0), (0.5, 0.3), (0.25, np.pi / 5), (0.125, 0.3 + np.pi / 5)):
        wanted += size * np.where(late <= T, 1.0 - np.exp(-np.maximum(T - late, 0.0)), 0.0)
    np.testing.assert_allclose(ac.step_response(echo, T).y[:, 0], wanted, atol=1e-12)
    u = np.sin(3.0 * T)
    fine = np.linspace(0.0, 6.0, 60 * 64 + 1)

    def late_input(late):
        return np.where(fine >= late, np.interp(fine - late, T, u), 0.0)

    # Kinks at 0.3 s are on the fine grid, the others are not: its error is second order.
    late = ac.forced_response(ac.delay(0.3) * (1 / (s + 1)), T, u).y[:, 0]
    wanted = ac.forced_response(1 / (s + 1), fine, late_input(0.3)).y[::64, 0]
    np.testing.assert_allclose(late, wanted, atol=1e-12)


def test_inputs_that_are_held():
    u = np.sin(3.0 * T)
    for time in (0.3, 0.25):
        late = ac.delay(time) * (1 / (s + 1))
        steps = late.discretize(0.05)
        held = ac.forced_response(steps, u=np.repeat(u, 2)[:-1]).y[::2]
        np.testing.assert_allclose(ac.forced_response(late, T, u, hold="zoh").y, held, atol=1e-12)


def test_delayed_feedthrough_repeats_impulses():
    # dx/dt = -x + r, r = u - r(t - 1) / 2: each second an impulse of half the size.
    comb = ac.feedback(1.0, 0.5 * ac.delay(1.0)) * (1 / (s + 1))
    t = np.linspace(0.05, 5.05, 51) - 0.05
    wanted = sum((-0.5) ** k * np.where(t >= k - 1e-9, np.exp(-(t - k)), 0.0) for k in range(6))
    np.testing.assert_allclose(
        ac.impulse_response((1 / (s + 1)) * ac.feedback(1.0, 0.5 * ac.delay(1.0)), t).y[:, 0],
        wanted,
        atol=1e-9,
    )
    step = sum((-0.5) ** k * np.where(t >= k - 1e-9, 1.0 - np.exp(-(t - k)), 0.0) for k in range(6))
    np.testing.assert_allclose(ac.step_response(comb, t).y[:, 0], step, atol=1e-12)


def test_margins_of_a_delayed_integrator():
    # L = exp(-s / 2) / s: |L| = 1 at 1 rad/s; real at pi rad/s with the gain 1 / pi.
    found = ac.margins(ac.delay(0.5) * (1 / s))
    assert found.gain == pytest.approx(np.pi, rel=1e-12)
    assert found.phase == pytest.approx(np.pi / 2 - 0.5, rel=1e-12)
    assert found.delay == pytest.approx(np.pi / 2 - 0.5, rel=1e-12)
    assert found.stable
    assert not ac.margins(4.0 * ac.delay(0.5) * (1 / s)).stable


def test_pade_and_steps_approach_the_delay():
    late = ac.delay(0.5) * (1 / (s + 1))
    w = np.linspace(0.1, 4.0, 20)
    exact = ac.frequency_response(late, w).values
    errors = [np.abs(ac.frequency_response(late.pade(n), w).values - exact).max() for n in (1, 3)]
    assert errors[0] < 0.2 and errors[1] < 1e-3
    steps = late.discretize(0.1)
    assert steps.nstates == 6
    t = 0.1 * np.arange(30)
    np.testing.assert_allclose(
        ac.step_response(steps, t).y, ac.step_response(late, t).y, atol=1e-12
    )
    assert ac.delay(0.3, dt=0.1).nstates == 3
    compiled = arc.compile(lambda x, u: steps.step(x, u))
    x, y = compiled(np.zeros(6), np.ones(1))
    assert x.shape == (6,) and y[0] == 0.0


def test_names_units_and_parts_are_kept():
    plant = ac.StateSpace(
        np.diag([-1.0, -2.0]),
        np.eye(2),
        np.eye(2),
        np.zeros((2, 2)),
        inputs=("left", "right"),
        outputs=("speed", "turn"),
        input_units=("N", "N"),
        output_units=("m/s", "rad/s"),
    )
    for late in (ac.delay(0.1, channels=2) * plant, plant * ac.delay(0.1, channels=2)):
        assert late.inputs == ("left", "right") and late.output_units == ("m/s", "rad/s")
        part = late["turn", "left"]
        assert (part.inputs, part.outputs) == (("left",), ("turn",))
        assert (part.ninputs, part.noutputs) == (1, 1)
    loop = ac.connect(
        plant * ac.delay(0.1, channels=2),
        ac.tf([3.0], [1.0]).rename(inputs="e", outputs="left"),
        ac.summing_junction(["r", "-speed"], "e"),
        inputs=["r", "right"],
        outputs=["speed", "turn"],
    )
    assert loop.inputs == ("r", "right") and loop.output_units == ("m/s", "rad/s")
    w = np.array([0.3, 2.0])
    late = np.exp(-0.1j * w)
    found = ac.frequency_response(loop, w).values
    np.testing.assert_allclose(found[0, 0], 3 * late / (1j * w + 1 + 3 * late), rtol=1e-12)


def test_recorded_and_differentiated():
    def phase(time, w):
        return ac.frequency_response(ac.delay(time) * (1 / s), np.reshape(w, (1,))).imag[0, 0, 0]

    # Im of -j exp(-j w time) / w is -cos(w time) / w.
    assert arc.compile(phase)(0.3, 2.0) == pytest.approx(-np.cos(0.6) / 2.0)
    assert arc.grad(phase)(0.3, 2.0) == pytest.approx(np.sin(0.6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ac.poles(ac.delay(1.0)), r"has delays: replace them with system.pade\(3\)"),
        (lambda: ac.hinfsyn(ac.delay(1.0), 1, 1), r"has delays: replace them"),
        (lambda: ac.delay(0.25, dt=0.1), "a delay of 0.25 s is not a multiple of dt = 0.1 s"),
        (lambda: ac.delay(-1.0), "delays must be positive"),
        (
            lambda: ac.delay(1.0) * ac.tf([1.0], [1.0, 0.5], 0.1),
            r"make it with delay\(time, dt=0.1\)",
        ),
        (
            lambda: arc.compile(lambda k: ac.step_response(k * ac.delay(1.0), T).y)(1.0),
            r"in recorded code use system.discretize\(dt\)",
        ),
        (lambda: ac.margins(ac.delay(1.0, channels=2)), "one output and one input"),
        (
            lambda: ac.step_response(ac.delay(1e-7) * (1 / s), [0.0, 1.0, 2.0]),
            r"because a delay or a mode is so short",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
