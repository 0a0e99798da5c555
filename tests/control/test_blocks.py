"""PID, lead-lag and limits: closed forms, loops of plain numbers, compiled code and C."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

import archimedes as arc
from archimedes.control import PID, IIRFilter, LeadLag, Limiter, tf2ss


def outputs(block, start, inputs):
    state, found = start, []
    for u in inputs:
        state, y = block.step(state, u)
        found.append(y)
    return np.array(found)


def test_a_pid_is_its_transfer_function():
    """kp + ki dt / (1 - q) + kd (1 - q) / ((T + dt) - T q), with q a delay of one step."""
    kp, ki, kd, T, dt = 2.0, 3.0, 0.4, 0.05, 0.01
    pid = PID(kp, ki, kd, dt=dt, filter_time=T)
    e = np.random.default_rng(0).normal(size=40)
    wanted = kp * e
    wanted = wanted + signal.lfilter([ki * dt], [1.0, -1.0], e)
    wanted = wanted + signal.lfilter([kd, -kd], [T + dt, -T], e)
    np.testing.assert_allclose(outputs(pid, pid.start(), e), wanted, atol=1e-12)


def response(pid, seconds=6.0):
    """A lag of 1 s under control, set point 1, actuator limited by the controller itself."""

    def step(carry, _):
        y, state = carry
        state, u = pid.step(state, 1.0 - y)
        return (y + pid.dt * (u - y), state), (y, u)

    start = (0.0, pid.start())
    return arc.scan(step, start, length=int(seconds / pid.dt))[1]


def test_anti_windup_removes_the_overshoot():
    limits = {"lower": -1.1, "upper": 1.1}
    wound, _ = response(PID(5.0, 5.0, dt=0.02, tracking=np.inf, **limits))
    y, u = response(PID(5.0, 5.0, dt=0.02, **limits))
    assert wound.max() > 1.05 and y.max() < 1.01
    assert u.max() <= 1.1 and u.min() >= -1.1
    assert y[-1] == pytest.approx(1.0, abs=0.01)


def test_rates_are_limited():
    _, u = response(PID(5.0, 5.0, dt=0.02, rate=3.0, lower=-2.0, upper=2.0))
    assert np.abs(np.diff(u, prepend=0.0)).max() <= 3.0 * 0.02 + 1e-15
    limiter = Limiter(dt=0.1, lower=-1.0, upper=1.0, rate=5.0)
    found = outputs(limiter, 0.0, [3.0, 3.0, 3.0, -0.2, -9.0, -9.0, -9.0])
    np.testing.assert_allclose(found, [0.5, 1.0, 1.0, 0.5, 0.0, -0.5, -1.0], atol=1e-15)


def test_a_start_without_a_jump():
    pid = PID(2.0, 1.0, dt=0.1)
    _, first = pid.step(pid.start(error=0.3, output=0.7), 0.3)
    assert first == pytest.approx(0.7 + 0.1 * 0.3)
    block = LeadLag(lead=0.5, lag=0.1, dt=0.02, gain=3.0)
    assert block.step(block.start(2.0), 2.0)[1] == pytest.approx(6.0)


def test_lead_lag_against_scipy():
    block = LeadLag(lead=0.5, lag=0.1, dt=0.02, gain=3.0)
    b, a = signal.bilinear([1.5, 3.0], [0.1, 1.0], fs=50.0)
    u = np.random.default_rng(0).normal(size=40)
    np.testing.assert_allclose(
        outputs(block, block.start(), u), signal.lfilter(b, a, u), atol=1e-12
    )


BLOCKS = [
    PID(2.0, 1.0, 0.1, dt=0.1, filter_time=0.2, lower=-1.0, upper=1.0, rate=8.0, tracking=0.3),
    PID(np.array([2.0, 3.0]), 1.0, dt=0.1, upper=np.array([1.0, 2.0])),
    LeadLag(lead=0.5, lag=0.1, dt=0.02),
    Limiter(dt=0.1, lower=-1.0, upper=1.0, rate=5.0),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: type(b).__name__)
def test_the_same_bits_everywhere(block):
    start = block.start() if hasattr(block, "start") else 0.0
    u = np.random.default_rng(0).normal(size=30)
    wanted = outputs(block, start, u)

    def run(u):
        return arc.scan(block.step, start, u)[1]

    for backend in ("interpreter", "llvm"):
        np.testing.assert_array_equal(arc.compile(run, backend=backend)(u), wanted)
    np.testing.assert_array_equal(arc.vmap(run)(np.stack([u, -u]))[0], wanted)


def test_derivatives_in_the_gains():
    def effort(kp):
        y, u = response(PID(kp, 2.0, dt=0.05), 2.0)
        return np.sum((y - 1) ** 2) + 0.1 * np.sum(u**2)

    slope = (effort(3.0 + 1e-6) - effort(3.0 - 1e-6)) / 2e-6
    assert arc.grad(effort)(3.0) == pytest.approx(slope, rel=1e-6)


def test_a_pid_as_c(tmp_path):
    pid = BLOCKS[0]

    def controller(state, error):
        return pid.step(state, error)

    project = arc.codegen(
        controller, (pid.start(), 0.0), output_dir=tmp_path, return_names=["state_new", "output"]
    )
    assert project.verify(samples=8).outputs == 5


@pytest.mark.long
def test_other_blocks_as_c(tmp_path):
    """Lead-lag, limiter, digital filter and linear system, one behind the other."""
    lead = LeadLag(lead=0.5, lag=0.1, dt=0.02)
    hold = Limiter(dt=0.02, lower=-1.0, upper=1.0, rate=9.0)
    smooth = IIRFilter(*signal.butter(2, 0.2))
    plant = tf2ss([1.0], [1.0, 0.4, 2.0]).discretize(0.02)

    def chain(a, b, c, d, u):
        a, u = lead.step(a, u)
        b, u = hold.step(b, u)
        c, u = smooth.step(c, u)
        d, y = plant.step(d, u[None])
        return a, b, c, d, y

    given = (lead.start(), 0.0, smooth.start(), np.zeros(2), 0.3)
    names = ["an", "bn", "cn", "dn", "y"]
    project = arc.codegen(chain, given, output_dir=tmp_path, return_names=names)
    assert project.verify(samples=4).outputs == 8


MESSAGES = [
    (lambda: PID(1.0, dt=0.0), "dt must be positive and finite"),
    (lambda: PID(1.0, dt=0.1, lower=1.0, upper=0.0), "lower and upper:"),
    (lambda: PID(1.0, dt=0.1, rate=-1.0), "rate must not be negative"),
    (lambda: PID(1.0, dt=0.1, filter_time=-1.0), "filter_time must not be negative"),
    (lambda: PID(1.0, dt=0.1, tracking=np.nan), "tracking must be a number"),
    (lambda: LeadLag(lead=1.0, lag=0.0, dt=0.1), "lag must be positive and finite"),
    (lambda: Limiter(dt=0.1, lower=np.nan), "lower and upper:"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
